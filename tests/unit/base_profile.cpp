// SPDX-License-Identifier: BSD-3-Clause
// Profiles: every key, every malformed line, whether one fits, where it is looked for.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "base/api/profile.hpp"

using namespace vecmpi;
using namespace vecmpi::base;

namespace {

const std::string head = "version = 1\ncpu = Some CPU\nisa = avx2\n";

std::string problem_of(const std::string& rows) {
    const ParsedProfile parsed = parse_profile(head + rows);
    return parsed.problem.empty() ? "" : std::to_string(parsed.line) + ": " + parsed.problem;
}

class Folder {
  public:
    Folder() { REQUIRE(mkdtemp(path_) != nullptr); }
    ~Folder() {
        for (const std::string& file : files_) std::remove(file.c_str());
        rmdir(path_);
    }
    std::string name(const char* file) {
        files_.push_back(std::string(path_) + "/" + file);
        return files_.back();
    }
    std::string file(const char* of, const std::string& text) {
        std::string made = name(of);
        std::FILE* const stream = std::fopen(made.c_str(), "w");
        REQUIRE(stream != nullptr);
        std::fwrite(text.data(), 1, text.size(), stream);
        std::fclose(stream);
        return made;
    }

  private:
    char path_[64] = "/tmp/vecmpi-profile.XXXXXX";
    std::vector<std::string> files_;
};

std::string this_library() { return "MPICH Version: 4.0.2"; }

std::string problem_of_file(const std::string& file) {
    return read_profile(file, "Some CPU", "avx2", this_library).problem;
}

bool holds(const std::string& text, const char* part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("profile: every key is read", "[base][profile]") {
    const ParsedProfile parsed = parse_profile(
        "# a comment\r\n\n  version=1\ncpu = Some CPU\nisa = avx2\nmpi = MPICH Version: 4.0.2\n"
        "network = latency=2us,bandwidth=100Gbit\nreduce.half = sse4\n"
        "node.4.reduce_scatter = rounds, copy,library\nnode.2.bcast = copy,copy,copy\n"
        "pack.gather.8.sparse = yes\nunpack.permute.long.dense = no\nmove.columns.1.far = no");
    REQUIRE(parsed.problem == "");
    const Profile& profile = parsed.profile;
    CHECK(profile.cpu == "Some CPU");
    CHECK(profile.isa == "avx2");
    CHECK(profile.mpi == "MPICH Version: 4.0.2");
    CHECK(profile.network == NetworkSetting{2000, 12500000000, -1});
    CHECK(profile.reduce[1] == IsaChoice::sse4);
    CHECK(profile.reduce[0] == IsaChoice::automatic);
    REQUIRE(profile.transports_of(Collective::reduce_scatter, 4) != nullptr);
    using enum Transport;
    CHECK(*profile.transports_of(Collective::reduce_scatter, 4) ==
          std::array{copy_in_copy_out, single_copy, library});
    CHECK(profile.transports_of(Collective::bcast, 2) != nullptr);
    CHECK(profile.transports_of(Collective::bcast, 4) == nullptr);
    CHECK(profile.transports_of(Collective::reduce_scatter, 2) == nullptr);
    CHECK(profile.entries == 7);
    CHECK(profile.pack.at(PackKernel::pack_gather, 5, 40) == PackVerdict::yes);
    CHECK(profile.pack.at(PackKernel::pack_gather, 4, 40) == PackVerdict::built_in);
    CHECK(profile.pack.at(PackKernel::unpack_gather, 5, 40) == PackVerdict::built_in);
    CHECK(profile.pack.at(PackKernel::unpack_permute, 33, 50) == PackVerdict::no);
    CHECK(profile.pack.at(PackKernel::columns, 1, 4097) == PackVerdict::no);
}

TEST_CASE("profile: each malformed line is told with its number", "[base][profile]") {
    struct Case {
        const char* rows;
        const char* problem;  // a part of it
    };
    for (const auto& [rows, part] : std::vector<Case>{
             {"nonsense\n", "4: nonsense: accepted is key = value"},
             {"network =\n", "4: network =: accepted is key = value"},
             {"= 3\n", "4: = 3: accepted keys are"},
             {"\n\nspeed = 3\n", "6: speed = 3: accepted keys are"},
             {"isa = avx2\n", "4: isa = avx2: accepted is each key once"},
             {"network = latency=1us\nnetwork = latency=1us\n", "5: network = latency=1us: accep"},
             {"network = latency=1\n", "4: network = latency=1: accepted is what VECMPI_NETWORK"},
             {"network = bandwidth=1,5Gbit\n", "accepted is what VECMPI_NETWORK"},
             {"reduce.sum = avx2\n", "accepted are reduce.arithmetic"},
             {"reduce.x.half = avx2\n", "accepted are reduce.arithmetic"},
             {"reduce.half = fast\n", "accepted are scalar"},
             {"reduce.half = auto\n", "accepted are scalar"},
             {"reduce.half = off\n", "accepted are scalar"},
             {"node.2.gather = rounds,rounds,rounds\n", "accepted are node."},
             {"node.allreduce = rounds,rounds,rounds\n", "accepted are node."},
             {"node.1.bcast = rounds,rounds,rounds\n", "accepted are node."},
             {"node.-2.bcast = rounds,rounds,rounds\n", "accepted are node."},
             {"node.2x.bcast = rounds,rounds,rounds\n", "accepted are node."},
             {"node.02.bcast = rounds,rounds,rounds\n", "accepted are node."},
             {"node.99999999999.bcast = rounds,rounds,rounds\n", "accepted are node."},
             {"node.x.2.bcast = rounds,rounds,rounds\n", "accepted are node."},
             {"node.2.bcast = rounds,rounds\n", "accepted are three of"},
             {"node.2.bcast = rounds,rounds,rounds,rounds\n", "accepted are three of"},
             {"node.2.bcast = rounds,,rounds\n", "accepted are three of"},
             {"node.2.bcast = rounds,fast,rounds\n", "accepted are three of"},
             {"learned.2 = 64:copy\n", "accepted are learned."},
             {"learned.1.bcast = 64:copy\n", "accepted are learned."},
             {"learned.2..bcast = 64:copy\n", "accepted are learned."},
             {"learned..bcast = 64:copy\n", "accepted are learned."},
             {"learned.8..4.2.bcast = 64:library\n", "accepted are learned."},
             {"learned.02.bcast = 64:copy\n", "accepted are learned."},
             {"learned.2.Bcast = 64:copy\n", "accepted are learned."},
             {"learned.2.fan = 64:copy\n", "accepted are learned."},
             {"learned.4.1.4.bcast = 64:library\n", "accepted are learned."},
             {"learned.4.2.bcast = 64:library\n", "accepted are learned."},
             {"learned.9.4.2.2.bcast = 64:library\n", "accepted are learned."},
             {"learned.2.bcast = copy\n", "accepted are powers of two"},
             {"learned.2.bcast = 64:fast\n", "accepted are powers of two"},
             {"learned.2.bcast = 64:schedule\n", "accepted are powers of two"},
             {"learned.4.2.2.bcast = 64:copy\n", "accepted are powers of two"},
             {"learned.2.bcast = 65:copy\n", "accepted are powers of two"},
             {"learned.2.bcast = max:copy\n", "accepted are powers of two"},
             {"learned.2.bcast = 1K:copy,1024:rounds\n", "accepted are powers of two"},
             {"learned.2.bcast = 64:copy,\n", "accepted are powers of two"},
             {"pack.permute.3.dense = yes\n", "accepted are pack."},
             {"pack.permute.8.wide = yes\n", "accepted are pack."},
             {"pack.shuffle.8.dense = yes\n", "accepted are pack."},
             {"pack.masked.8.dense = yes\n", "accepted are pack."},
             {"pack.permute.8 = yes\n", "accepted are pack."},
             {"pack.permute.8.dense = maybe\n", "accepted are yes and no"},
             {"pack.permute.8.dense = \t\n", "accepted is key = value"},
             {"\x01\xff\n", "4: ?\xff: accepted"}}) {
        CAPTURE(rows, problem_of(rows));
        CHECK(holds(problem_of(rows), part));
    }
    CHECK(problem_of("speed = " + std::string(5000, 'x')).size() < 300);
}

TEST_CASE("profile: the head must be whole", "[base][profile]") {
    const auto problem = [](const char* text) { return parse_profile(text).problem; };
    CHECK(holds(problem(""), "empty"));
    CHECK(holds(problem("# nothing\n"), "empty"));
    CHECK(holds(problem("cpu = x\nversion = 1\n"), "version = 1 as the first line"));
    CHECK(holds(problem("version\n"), "version = 1 as the first line"));
    CHECK(
        holds(problem("version = 2\ncpu = x\nisa = y\n"), "version = 2: accepted is version = 1"));
    CHECK(holds(problem("version = 1\nversion = 1\n"), "each key once"));
    CHECK(holds(problem("version = 1\nisa = avx2\n"), "no cpu or no isa"));
    CHECK(holds(problem("version = 1\ncpu = x\n"), "no cpu or no isa"));
    CHECK(problem("version = 1\ncpu = x\nisa = y\n").empty());
    CHECK(parse_profile("version = 1\ncpu = x\nisa = y\n").profile.entries == 0);
}

TEST_CASE("profile: a file fits this host, or says why not", "[base][profile]") {
    Folder folder;
    const std::string rows = "node.2.bcast = copy,copy,copy\nreduce.half = sse4\n";
    const std::string good = folder.file("good", head + "mpi = MPICH Version: 4.0.2\n" + rows);
    const LoadedProfile read = read_profile(good, "Some CPU", "avx2", this_library);
    CHECK(read.problem == "");
    CHECK(read.file == good);
    CHECK(read.profile.entries == 2);
    CHECK(read_profile(good, "Some CPU", "avx2", nullptr).problem == "");

    for (const auto& [cpu, isa] : {std::pair{"Other CPU", "avx2"}, {"Some CPU", "avx512"}}) {
        const LoadedProfile other = read_profile(good, cpu, isa, this_library);
        CHECK(holds(other.problem, "is for Some CPU with avx2, this is "));
        CHECK(holds(other.problem, cpu));
        CHECK(other.profile == Profile{});
    }
    const LoadedProfile library = read_profile(folder.file("mpi", head + "mpi = MPICH 5\n" + rows),
                                               "Some CPU", "avx2", this_library);
    CHECK(holds(library.problem, "was measured with MPICH 5, this is MPICH Version: 4.0.2"));
    CHECK(library.profile.transports.empty());
    CHECK(library.profile.reduce[1] == IsaChoice::sse4);
    const std::string wild = "version = 1\ncpu = \x1b[31mX\nisa = \x07y\n";
    CHECK(holds(problem_of_file(folder.file("cpu", wild)), "is for ?[31mX with ?y, this is "));
    CHECK(holds(problem_of_file(folder.file("wild", head + "mpi = \x1b[31mX\n" + rows)),
                "was measured with ?[31mX, this is "));

    CHECK(holds(problem_of_file(folder.file("bad", head + "speed = 3\n")), "/bad:4: speed = 3: "));
    CHECK(holds(problem_of_file(folder.file("empty", "")), "/empty: empty"));
    CHECK(problem_of_file(folder.file("most", head + "#" + std::string(65000, 'x'))).empty());
    CHECK(holds(problem_of_file(folder.file("long", head + "#" + std::string(66000, 'x'))),
                "longer than 64 KiB"));
    CHECK(holds(problem_of_file(folder.name("none")), "No such file"));
    CHECK(holds(problem_of_file("/tmp"), "no regular file"));
    CHECK(holds(problem_of_file("/dev/zero"), "no regular file"));
    const std::string pipe = folder.name("pipe");
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    CHECK(holds(problem_of_file(pipe), "no regular file"));  // and does not wait for a writer
}

TEST_CASE("profile: the hash sees the collective part, and nothing else", "[base][profile]") {
    const auto hash = [](const std::string& rows) {
        const ParsedProfile parsed = parse_profile(head + rows);
        REQUIRE(parsed.problem == "");
        return hash_of_collective_part(parsed.profile);
    };
    const std::string two = "node.2.bcast = copy,copy,copy\n";
    const std::string four = "node.4.bcast = copy,copy,copy\n";
    CHECK(hash("") == 0);
    CHECK(hash("reduce.half = sse4\npack.gather.8.far = no\n") == 0);
    CHECK(hash(two) != 0);
    CHECK(hash(two) != hash(four));
    CHECK(hash(two) != hash("node.2.bcast = copy,copy,rounds\n"));
    CHECK(hash(two) != hash("node.2.reduce = copy,copy,copy\n"));
    CHECK(hash(two + four) == hash(four + two));
    CHECK(hash(two + "reduce.half = sse4\n") == hash(two));
    const std::string learned = "learned.2.barrier = 0:library\n";
    CHECK(hash(learned) != 0);
    CHECK(hash(learned) != hash("learned.2.barrier = 0:rounds\n"));
    CHECK(hash(learned) != hash("learned.4.barrier = 0:library\n"));
    CHECK(hash(learned + two) == hash(two + learned));
    CHECK(hash("learned.2.bcast = 1K:copy,64:rounds\n") ==
          hash("learned.2.bcast = 64:rounds, 1024:copy\n"));
    CHECK(hash("network = latency=1us\n") == hash("network = latency=1000ns\n"));
    CHECK(hash("network = latency=1us\n") != hash("network = overhead=1us\n"));
}

TEST_CASE("profile: what was learned is added, size by size", "[base][profile]") {
    Profile here;
    here.cpu = "Some CPU";
    here.isa = "avx2";
    here.mpi = this_library();
    const CommShape two{2, 1, 0}, over_nodes{8, 4, 2};
    const std::vector<LearnedRow> rows{
        {two, Collective::neighbor_alltoallw, {{0, 0}, {64, 2}, {size_t{1} << 30, 1}}},
        {over_nodes, Collective::reduce_scatter, {{size_t{2} << 20, 1}}}};

    const std::string begun = add_learned("", here, rows);
    const ParsedProfile first = parse_profile(begun);
    REQUIRE(first.problem == "");
    CHECK(first.profile.cpu == "Some CPU");
    CHECK(first.profile.mpi == this_library());
    REQUIRE(first.profile.learned_of(two, Collective::neighbor_alltoallw) != nullptr);
    CHECK(*first.profile.learned_of(two, Collective::neighbor_alltoallw) == rows[0]);
    CHECK(*first.profile.learned_of(over_nodes, Collective::reduce_scatter) == rows[1]);
    CHECK(first.profile.learned_of(CommShape{8, 4, 3}, Collective::reduce_scatter) == nullptr);
    CHECK(first.profile.learned_of(two, Collective::reduce_scatter) == nullptr);
    CHECK(holds(begun, "learned.2.neighbor_alltoallw = 0:rounds,64:library,1G:copy\n"));
    CHECK(holds(begun, "learned.8.4.2.reduce_scatter = 2M:segments\n"));

    // Comments, other rows and sizes stay; there is a library now.
    const std::string old = "# mine\n" + head +
                            "pack.gather.8.far = no\n"
                            "learned.2.neighbor_alltoallw=64:rounds, 128:rounds\n"
                            "learned.3.bcast = 64:copy";
    const std::string added = add_learned(old, here, rows);
    const ParsedProfile second = parse_profile(added);
    REQUIRE(second.problem == "");
    CHECK(added.starts_with("# mine\nversion = 1\n"));
    CHECK(second.profile.mpi == this_library());
    CHECK(second.profile.entries == 4);
    CHECK(holds(added, "neighbor_alltoallw = 0:rounds,64:library,128:rounds,1G:copy\n"));
    CHECK(second.profile.learned_of(CommShape{3, 1, 0}, Collective::bcast) != nullptr);
    CHECK(add_learned(added, here, rows) == added);
}

TEST_CASE("profile: what was learned is written whole or not at all", "[base][profile]") {
    Folder folder;
    const std::string isa = "avx2";
    const std::vector<LearnedRow> rows{{{2, 1, 0}, Collective::bcast, {{64, 0}}}};
    const auto write = [&](const std::string& file) {
        return write_learned({ProfileChoice::Kind::learn, file}, rows, isa.c_str(), this_library);
    };
    const auto read = [&](const std::string& file) {
        return read_profile(file, host_model(), isa.c_str(), this_library);
    };
    const std::string fresh = folder.name("fresh");
    CHECK(write(fresh).problem == "");
    CHECK(read(fresh).problem == "");
    CHECK(read(fresh).profile.learned == rows);
    CHECK(write(fresh).problem == "");
    CHECK(read(fresh).profile.learned == rows);

    // A link stays one, and a file keeps its permissions.
    const std::string link = folder.name("link");
    REQUIRE(symlink(fresh.c_str(), link.c_str()) == 0);
    REQUIRE(chmod(fresh.c_str(), 0600) == 0);
    CHECK(write(link).problem == "");
    struct stat status {};
    REQUIRE(lstat(link.c_str(), &status) == 0);
    CHECK(S_ISLNK(status.st_mode));
    REQUIRE(stat(fresh.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0600);

    // One that leads to nothing yet, too.
    const std::string dangling = folder.name("dangling");
    REQUIRE(symlink("made", dangling.c_str()) == 0);
    CHECK(write(dangling).problem == "");
    CHECK(read(folder.name("made")).profile.learned == rows);
    // What mktemp makes.
    CHECK(write(folder.file("empty", "")).problem == "");
    CHECK(read(folder.name("empty")).profile.learned == rows);

    const std::string of_host = "version = 1\ncpu = " + host_model() + "\nisa = avx2\n";
    const auto is_left_alone = [&](const char* name, const std::string& text, const char* why) {
        const std::string file = folder.file(name, text);
        CHECK(holds(write(file).problem, why));
        std::string left(text.size() + 1, '\0');
        std::FILE* const stream = std::fopen(file.c_str(), "r");
        left.resize(std::fread(left.data(), 1, left.size(), stream));
        std::fclose(stream);
        CHECK(left == text);
    };
    is_left_alone("host", head, "is for Some CPU");
    is_left_alone("library", of_host + "mpi = Other\n", "was measured with Other");
    is_left_alone("bad", of_host + "speed = 3\n", ":4: speed = 3: ");
    is_left_alone("long", of_host + "#" + std::string(65450, 'x') + "\n", "longer than 64 KiB");
    is_left_alone("unnamed", of_host + "node.2.bcast = copy,copy,copy\n", "of no MPI library");
    CHECK(holds(write(folder.name("") + "/").problem, "no regular file"));
    CHECK(holds(write("/dev/null/x").problem, "Not a directory"));
    CHECK(holds(write("/proc/vecmpi/x").problem, "No such file or directory"));
}

TEST_CASE("profile: where it is looked for", "[base][profile]") {
    using Places = std::vector<std::string>;
    CHECK(profile_places("/x", "/home/me", "a") == Places{"/x/vecmpi/a", "/etc/vecmpi/a"});
    CHECK(profile_places(nullptr, "/home/me", "a") ==
          Places{"/home/me/.config/vecmpi/a", "/etc/vecmpi/a"});
    CHECK(profile_places("x", "/home/me", "a")[0] == "/home/me/.config/vecmpi/a");
    CHECK(profile_places("", nullptr, "a") == Places{"/etc/vecmpi/a"});
    CHECK(profile_places(nullptr, "me", "a") == Places{"/etc/vecmpi/a"});
    CHECK(profile_name("Intel(R) Xeon(R) 8480+ @ 2/GHz family 6") ==
          "intel-r-xeon-r-8480-2-ghz-family-6.profile");
    CHECK(profile_name("../../etc/x") == "etc-x.profile");
    CHECK_FALSE(host_model().empty());
    CHECK(host_model() == host_model());
}

TEST_CASE("profile: classes of lengths and distances", "[base][profile]") {
    for (const auto& [bytes, of] : std::vector<std::pair<int64_t, size_t>>{{0, 0},
                                                                           {1, 0},
                                                                           {2, 1},
                                                                           {3, 2},
                                                                           {4, 2},
                                                                           {5, 3},
                                                                           {8, 3},
                                                                           {9, 4},
                                                                           {16, 4},
                                                                           {17, 5},
                                                                           {32, 5},
                                                                           {33, 6},
                                                                           {INT64_MAX, 6}})
        CHECK(block_class(bytes) == of);
    CHECK(distance_class(8, 8) == Distance::dense);
    CHECK(distance_class(8, 16) == Distance::dense);
    CHECK(distance_class(8, 17) == Distance::open);
    CHECK(distance_class(8, 32) == Distance::open);
    CHECK(distance_class(8, 33) == Distance::sparse);
    CHECK(distance_class(8, 4096) == Distance::sparse);
    CHECK(distance_class(8, 4097) == Distance::far);
    CHECK(distance_class(4096, 5000) == Distance::far);
}
