// SPDX-License-Identifier: BSD-3-Clause
// Decides where each entry leads: handler, real function, or the MPI library as if vecmpi were not
// there.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "entries.hpp"
#include "intercept/api.hpp"
#include "offload/api.hpp"
#include "report.hpp"

namespace vecmpi::intercept {
namespace {

Call call_of(size_t entry) noexcept { return static_cast<Call>(entry / 2); }

size_t entry_of(Call call, bool profiling) noexcept {
    return 2 * static_cast<size_t>(call) + (profiling ? 1 : 0);
}

std::string symbol_of(size_t entry) {
    const char* name = library::call_name(call_of(entry));
    return entry % 2 != 0 ? std::string("P") + name : std::string(name);
}

EntryFunction as_entry(void* address) noexcept { return reinterpret_cast<EntryFunction>(address); }

EntryFunction first_call_of(size_t entry) noexcept {
    return as_entry(const_cast<char*>(vecmpi_first_calls + entry * bytes_per_first_call));
}

EntryFunction real_function(Call call) noexcept {
    EntryFunction function;
    const char* members = reinterpret_cast<const char*>(&real);
    std::memcpy(&function, members + static_cast<size_t>(call) * sizeof function, sizeof function);
    return function;
}

// Where there is a report every call comes to us. Null where the bound library lacks the function:
// its entry then stays with its first call.
EntryFunction served_target(Call call, bool served, unsigned needs) noexcept {
    const Handler& handler = handlers[static_cast<size_t>(call)];
    const EntryFunction function = real_function(call);
    if (!library::library_has(call)) return nullptr;
    const bool reported = served && report_is_wanted();
    if (reported && call == Call::Pcontrol) return vecmpi_pcontrol_entry;
    if (!comes_to_us(handler, served, reported ? ~0u : needs)) return function;
    const EntryFunction timed = timed_handlers[static_cast<size_t>(call)];
    return reported && timed != nullptr ? timed : handler.function;
}

// ---- without vecmpi -----------------------------------------------------------------------------

// What the program would have called without this library: the next definition in the loader's
// order, so that tools preloaded behind this library stay in place; in a library that came with
// RTLD_LOCAL, its own.
EntryFunction untouched_target(const library::BoundLibrary& library, const char* symbol) noexcept {
    void* next = dlsym(RTLD_NEXT, symbol);
    return as_entry(next != nullptr ? next : dlsym(library.handle, symbol));
}

// ---- failures -----------------------------------------------------------------------------------

// Not log_line(): there may be no MPI library, and then the settings are not read.
[[noreturn]] void abort_with(const std::string& line) noexcept {
    const std::string text = "vecmpi: " + line + "\n";
    if (write(STDERR_FILENO, text.data(), text.size()) < 0) std::perror("vecmpi");
    std::abort();
}

// MPI_Initialized and MPI_Finalized where no MPI library is in the process.
int neither_began_nor_ended(int* flag) noexcept {
    *flag = 0;
    return MPI_SUCCESS;
}

#if defined(VECMPI_STANDARD_ABI)
// mpi4py asks whatever has MPI_Get_version, before it loads bindings and library.
int version_of_this_abi(int* major, int* minor) noexcept {
    *major = MPI_ABI_VERSION;
    *minor = MPI_ABI_SUBVERSION;
    return MPI_SUCCESS;
}
#endif

EntryFunction target_without_library(size_t entry) {
    const Call call = call_of(entry);
    if (call == Call::Initialized || call == Call::Finalized)
        return reinterpret_cast<EntryFunction>(neither_began_nor_ended);
#if defined(VECMPI_STANDARD_ABI)
    if (call == Call::Abi_get_version) return reinterpret_cast<EntryFunction>(version_of_this_abi);
#endif
    abort_with(symbol_of(entry) + " was called, but this process has loaded no MPI library");
}

// True on rank 0 of the launchers that set a rank, and without a launcher.
bool is_first_rank() noexcept {
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
        if (const char* rank = std::getenv(name)) return std::strcmp(rank, "0") == 0;
    return true;
}

void explain_once(const library::BoundLibrary& library) noexcept {
    static constinit std::atomic<bool> explained{false};
    if (explained.exchange(true, std::memory_order_relaxed) || !is_first_rank()) return;
    const char* const build = library::build_for_other_abi(library.soname);
    if (*build != '\0' && library::other_build_is_preloaded()) return;
    log_line(LogLevel::warn, "%s does not have %s: every MPI call passes through untouched%s%s",
             library.soname.empty() ? "the MPI library" : library.soname.c_str(), library::abi_name,
             *build == '\0' ? "" : "; preload ", build);
}

// ---- binding ------------------------------------------------------------------------------------

// Only entries that no one has bound: a thread that is late must not undo bind_entries().
void bind_if_unbound(size_t entry, EntryFunction target) noexcept {
    EntryFunction expected = first_call_of(entry);
    if (target != nullptr)
        vecmpi_entry_slots[entry].compare_exchange_strong(
            expected, target, std::memory_order_release, std::memory_order_relaxed);
}

void bind_untouched(const library::BoundLibrary& library) {
    for (size_t entry = 0; entry < number_of_entries; ++entry)
        bind_if_unbound(entry, untouched_target(library, symbol_of(entry).c_str()));
}

void bind_unserved() noexcept {
    for (size_t entry = 0; entry < number_of_entries; ++entry)
        bind_if_unbound(entry, served_target(call_of(entry), false, 0));
}

// ---- what the library lacks ---------------------------------------------------------------------

// Entries that nothing was found for. Relaxed: whoever binds finds the same.
constinit std::atomic<bool> missing[number_of_entries]{};

void note_missing() {
    for (size_t entry = 0; entry < number_of_entries; ++entry)
        if (vecmpi_entry_slots[entry].load(std::memory_order_acquire) == first_call_of(entry) &&
            dlsym(RTLD_NEXT, symbol_of(entry).c_str()) == nullptr)
            missing[entry].store(true, std::memory_order_relaxed);
}

bool is_missing(const void* bound) noexcept {
    const auto offset =
        reinterpret_cast<uintptr_t>(bound) - reinterpret_cast<uintptr_t>(vecmpi_entries);
    return offset < number_of_entries * bytes_per_entry &&
           missing[offset / bytes_per_entry].load(std::memory_order_relaxed);
}

EntryFunction bind_first_call(size_t entry) {
    const library::BoundLibrary& library = library::bind_real_functions();
    if (!library.found) return target_without_library(entry);
    if (library.served && settings().enabled) {
        bind_unserved();
    } else {
        if (settings().enabled) explain_once(library);
        bind_untouched(library);
    }
    note_missing();
    library::clear_weak_references(is_missing);
    EntryFunction target = vecmpi_entry_slots[entry].load(std::memory_order_acquire);
    if (target != first_call_of(entry)) return target;
    const std::string symbol = symbol_of(entry);
    target = as_entry(library::defined_elsewhere(symbol.c_str()));
    if (target == nullptr) abort_with(symbol + " is not in " + library.soname);
    bind_if_unbound(entry, target);
    return target;
}

void bind_all(bool served, unsigned needs) noexcept {
    for (size_t i = 0; i < library::number_of_calls; ++i) {
        const Call call = static_cast<Call>(i);
        const EntryFunction target = served_target(call, served, needs);
        if (target == nullptr) continue;
        for (bool profiling : {false, true}) {
            auto& slot = vecmpi_entry_slots[entry_of(call, profiling)];
            if (slot.load(std::memory_order_relaxed) != target)
                slot.store(target, std::memory_order_release);
        }
    }
}

void bind_served(unsigned needs) noexcept { bind_all(true, needs); }
void bind_handed_on(unsigned needs) noexcept { bind_all(false, needs); }

}  // namespace

void bind_entries(bool served) noexcept {
    bind_by_needs(served ? bind_served : bind_handed_on);
    if (served) library::clear_weak_references(is_missing);  // of what came after the first call
}

}  // namespace vecmpi::intercept

vecmpi::intercept::EntryFunction vecmpi_bind_first_call(size_t entry,
                                                        uintptr_t first_argument) noexcept {
    if (entry < vecmpi::intercept::number_of_entries)
        return vecmpi::intercept::bind_first_call(entry);
    vecmpi::intercept::obey_pcontrol(static_cast<int>(first_argument));
    return vecmpi::intercept::real_function(vecmpi::Call::Pcontrol);
}
