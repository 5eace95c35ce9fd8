// SPDX-License-Identifier: BSD-3-Clause
#include "check.hpp"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "base/api.hpp"

namespace vecmpi::info {
namespace {

using Kind = ProgramFile::Kind;

const NeededLibrary* find_library(const ProgramFile& program, bool (*is)(const std::string&)) {
    for (const NeededLibrary& library : program.libraries)
        if (is(library.soname)) return &library;
    return nullptr;
}

// A program cannot start without it; what loads a library may have it already.
const NeededLibrary* find_lost_library(const ProgramFile& program) {
    if (program.kind == Kind::library) return nullptr;
    for (const NeededLibrary& library : program.libraries)
        if (library.path.empty()) return &library;
    return nullptr;
}

bool needs(const std::vector<std::string>& needed, const std::string& soname) {
    return std::any_of(needed.begin(), needed.end(), [&](const std::string& name) {
        return name.substr(name.rfind('/') + 1) == soname;
    });
}

// "libmpich.so.12", or with the library that brings it.
std::string linked_with(const ProgramFile& program, const std::string& soname) {
    std::string text = "linked with " + soname;
    if (needs(program.needed, soname)) return text;
    for (const NeededLibrary& library : program.libraries)
        if (needs(library.needed, soname)) return text + " through " + library.soname;
    return text;
}

std::string name_of_abi(const MpiLibrary& library) {
    if (library.version.starts_with("Open MPI")) return " (Open MPI)";
    return library.soname == "libmpi.so.40" ? " (Open MPI)" : "";
}

// ---- what keeps the loader or vecmpi away ------------------------------------------------------

Judgement no_program(const std::string& what) { return {Verdict::no_program, what, ""}; }

Judgement judge_file(const CheckFacts& facts) {
    switch (facts.program.kind) {
        case Kind::missing:
            return no_program("no such program");
        case Kind::unreadable:
            return no_program(facts.program.script.empty()
                                  ? "not a file that can be read"
                                  : "its interpreter " + facts.program.path + " cannot be read");
        case Kind::unknown:
            return no_program("not a program: neither an ELF file nor a script");
        case Kind::other_machine:
            return {Verdict::not_served,
                    "built for another processor or C library than libvecmpi.so, so nothing can be "
                    "preloaded into it",
                    "build vecmpi there"};
        default:
            return {
                Verdict::not_served, "statically linked, so nothing can be preloaded into it",
                "link it dynamically (ldd shows libmpich.so.12, libmpi.so.12 or libmpi_abi.so.1)"};
    }
}

Judgement judge_without_mpi(const CheckFacts& facts) {
    const ProgramFile& program = facts.program;
    if (program.loads_more)
        return {Verdict::unknown,
                "linked with no MPI library; what it loads or starts later is served where that is "
                "of MPICH's family",
                "check what it loads; for Python: vecmpi-info --check $(python3 -c 'import "
                "mpi4py.MPI as m; print(m.__file__)')"};
    return {Verdict::not_served, "linked with no MPI library, and loads and starts nothing else",
            "nothing: vecmpi does nothing in it"};
}

Judgement judge_linked(const CheckFacts& facts) {
    const MpiLibrary& library = facts.mpi.front();
    const std::string linked = linked_with(facts.program, library.soname);
    const auto is_served = [](const MpiLibrary& one) { return one.is_served(); };
    const auto is_like_first = [&](const MpiLibrary& one) {
        return one.served_by == library.served_by;
    };
    if (std::any_of(facts.mpi.begin(), facts.mpi.end(), is_served) &&
        !std::all_of(facts.mpi.begin(), facts.mpi.end(), is_like_first))
        return {Verdict::not_served,
                linked + " and with " + facts.mpi.back().soname + ", so calls may go to either",
                "link all of it with one MPI library (ldd shows which parts want the other)"};
    if (!library.is_served())
        return {Verdict::not_served,
                linked + name_of_abi(library) +
                    ", which vecmpi does not serve: every MPI call will pass through",
                "compile it with MPICH's or Intel MPI's mpicc, and start it by their mpirun"};
    if (library.path.empty())
        return {Verdict::not_served, linked + ", which the loader does not find",
                "set LD_LIBRARY_PATH to the folder of " + library.soname};
    if (const NeededLibrary* const lost = find_lost_library(facts.program))
        return {
            Verdict::not_served,
            linked + ", but the loader does not find " + lost->soname + ", so it does not start",
            "set LD_LIBRARY_PATH to the folder of " + lost->soname};
    if (facts.program.has_sessions && !facts.program.has_init)
        return {Verdict::not_served,
                linked + ", but by MPI sessions alone, which pass through untouched",
                "call MPI_Init as well, where the program is yours"};
    if (!facts.is_on)
        return {Verdict::not_served, linked + ", but VECMPI=off is set", "unset VECMPI"};
    const bool is_library = facts.program.kind == Kind::library;
    return {Verdict::served, linked,
            is_library ? "vecmpi-run -n 4, with the program that loads it"
                       : "vecmpi-run -n 4 " + facts.name};
}

std::string row_of(const char* title, const std::string& text) {
    std::string line = std::string("  ") + title;
    line.resize(26, ' ');
    return line + text + "\n";
}

// ---- what would be served ----------------------------------------------------------------------

struct Feature {
    const char* title;
    // What it rests on in the library: the first, or else the second. Null: nothing.
    const char* trait;
    const char* other_trait;
    bool needs_plain_memory;  // off where buffers may be a GPU's
    const char* text;
};
constexpr Feature features[] = {
    {"collectives of a node", nullptr, nullptr, true, "yes, through memory that its ranks share"},
    {"collectives over hosts", nullptr, nullptr, false,
     "yes, as schedules and in segments, where these are faster"},
    {"nonblocking ones", "poll_locks", nullptr, false,
     "yes, the same; they go on while ranks wait"},
    {"reductions", "op_table", nullptr, true,
     "yes, by SIMD kernels, also inside the library's own calls"},
    {"derived datatypes", "message_types", nullptr, true,
     "yes, packed by plans, in messages, MPI_Pack, collectives, files"},
    {"more ranks than CPUs", "polls", "twins", false, "yes, ranks that wait give their CPU away"},
    {"operators of its own", "free_operators", nullptr, false,
     "yes, on the offload thread as well"},
};

const LibraryTrait* find_trait(const CheckFacts& facts, std::string_view name) {
    for (const LibraryTrait& trait : facts.traits)
        if (trait.name == name) return &trait;
    return nullptr;
}

std::string text_of(const Feature& feature, const CheckFacts& facts, bool has_gpu) {
    if (has_gpu && feature.needs_plain_memory)
        return "no, a GPU runtime is linked, whose memory only the library knows";
    if (feature.trait == nullptr) return feature.text;
    const LibraryTrait* const trait = find_trait(facts, feature.trait);
    if (trait == nullptr)
        return "not known: the library could not be asked (vecmpi-info --library)";
    if (trait->state == "yes") return feature.text;
    const LibraryTrait* const other =
        feature.other_trait == nullptr ? nullptr : find_trait(facts, feature.other_trait);
    // Of two that do not hold the second says what is left.
    return "in part: " +
           (other != nullptr && other->state != "yes" ? other->without : trait->without);
}

std::string served_text(const CheckFacts& facts) {
    const bool has_gpu = find_library(facts.program, is_gpu_runtime) != nullptr;
    std::string text;
    for (const Feature& feature : features)
        text += row_of(feature.title, text_of(feature, facts, has_gpu));
    text += row_of("offload thread", facts.offload);
    if (facts.program.has_sessions)
        text += row_of("MPI sessions",
                       "left alone; once one is open, nothing is handed to "
                       "the offload thread");
    return text + row_of("left to the library",
                         "files, one-sided calls and new communicators, but for "
                         "the packing of their data");
}

}  // namespace

bool is_mpi_library(const std::string& soname) {
    for (const std::string_view name : {"libmpi.so", "libmpich.so", "libmpi_abi.so"})
        if (soname.starts_with(name)) return true;
    return abi_of(soname) != MpiAbi::other;
}

bool is_gpu_runtime(const std::string& soname) {
    for (const std::string_view name :
         {"libcuda.so", "libcudart.so", "libamdhip64.so", "libze_loader.so"})
        if (soname.starts_with(name)) return true;
    return false;
}

Judgement judge(const CheckFacts& facts) {
    const ProgramFile& program = facts.program;
    if (program.kind != Kind::linked_dynamically && program.kind != Kind::library)
        return judge_file(facts);
    if (program.is_secure)
        return {Verdict::not_served,
                "setuid, setgid or with file capabilities, so the loader preloads nothing into it",
                "run a copy without them"};
    return facts.mpi.empty() ? judge_without_mpi(facts) : judge_linked(facts);
}

std::string format_brief_check(const CheckFacts& facts) {
    const std::string sentence = judge(facts).sentence;
    const std::string file = facts.mpi.empty() ? "" : facts.mpi.front().path;
    return sentence + "\n" + (file.empty() ? "" : file + "\n");
}

std::string format_check(const CheckFacts& facts) {
    const Judgement judgement = judge(facts);
    static constexpr const char* answers[] = {"yes, vecmpi would serve it",
                                              "no, vecmpi would not serve it", "", "it depends"};
    std::string text = facts.name + ": " + answers[static_cast<size_t>(judgement.verdict)] + ": " +
                       judgement.sentence + "\n";
    if (!facts.program.script.empty()) text += row_of("a script of", facts.program.path);
    for (const MpiLibrary& library : facts.mpi)
        if (!library.path.empty())
            text += row_of(
                "MPI library",
                library.path + ": " + (library.version.empty() ? "no version" : library.version));
    if (judgement.verdict == Verdict::served) {
        text +=
            row_of("preload", facts.mpi.front().served_by + " (vecmpi-run and vecmpi-preload do)");
        text += served_text(facts);
    }
    return text + "next: " + judgement.next + "\n";
}

int check_program(const std::string& name, bool is_brief) {
    CheckFacts facts;
    const Settings& settings = process_settings().settings;
    facts.name = name;
    facts.program = look_at_program(name);
    facts.is_on = settings.enabled;
    for (const NeededLibrary& library : facts.program.libraries) {
        if (!is_mpi_library(library.soname)) continue;
        MpiLibrary found = look_at_library(library.path, library.soname);
        found.path = library.path;
        facts.mpi.push_back(found);
    }
    const Verdict verdict = judge(facts).verdict;
    if (verdict == Verdict::no_program && !is_brief) {
        std::fprintf(stderr, "vecmpi-info: %s: %s\n", name.c_str(), judge(facts).sentence.c_str());
        return static_cast<int>(verdict);
    }
    if (verdict == Verdict::served && !is_brief) {
        facts.traits = ask_library_traits(facts.mpi.front().path);
        facts.offload = plan_offload(settings, look_at_host(settings.cpu)).reason;
    }
    std::fputs((is_brief ? format_brief_check(facts) : format_check(facts)).c_str(), stdout);
    return static_cast<int>(verdict);
}

}  // namespace vecmpi::info
