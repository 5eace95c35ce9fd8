// SPDX-License-Identifier: BSD-3-Clause
// MPICH calls an error handler function inside the call that failed, at MPI_THREAD_MULTIPLE with
// its lock held, which is not recursive. It gets a trampoline instead, which only writes down what
// was to be called; the entry calls it (finish). Must not be used for errors that no entry of ours
// returns from.
#include "error_handlers.hpp"

#include <unwind.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <type_traits>
#include <utility>

#include "base/api.hpp"
#include "offload/api.hpp"

namespace vecmpi::intercept {

thread_local constinit unsigned errors_waiting = 0;

namespace {

// One call that the library wanted to make.
struct FailedCall {
    void (*call)(FailedCall& failed, int* code);  // knows the types
    library::AnyFunction function;
    int cxx_kind;     // of MPI 2's C++ bindings
    MPI_File object;  // or, in its first bytes, the handle of a communicator, window or session
    int code;
};

// More errors within one call are reported at once, as the library does.
constexpr unsigned most_waiting = 8;
thread_local constinit FailedCall waiting[most_waiting]
    __attribute__((tls_model("initial-exec"))) = {};

// From the call that failed outwards: was it an entry of ours that called the library?
struct Walk {
    bool in_library = false;
    bool by_entry = true;
};

_Unwind_Reason_Code look_at_frame(_Unwind_Context* frame, void* found) {
    auto& walk = *static_cast<Walk*>(found);
    const auto* address = reinterpret_cast<const void*>(_Unwind_GetIP(frame));
    if (library::in_one_object(address, reinterpret_cast<const void*>(real.Comm_size))) {
        walk.in_library = true;
        return _URC_NO_REASON;
    }
    if (!walk.in_library) return _URC_NO_REASON;  // still in the trampoline
    walk.by_entry = library::in_one_object(address, reinterpret_cast<const void*>(look_at_frame));
    return _URC_END_OF_STACK;
}

// Not where a plugin found the library's function by dlsym on its handle.
bool entry_follows() noexcept {
    Walk walk;
    _Unwind_Backtrace(look_at_frame, &walk);
    return walk.by_entry;
}

// From the offload thread no entry returns to the program; before MPI_Init and after MPI_Finalize
// none of ours is entered.
bool may_wait() noexcept {
    return errors_waiting < most_waiting && offload::engine_runs() &&
           !offload::is_offload_thread() && entry_follows();
}

void wait_with(const FailedCall& failed) noexcept { waiting[errors_waiting++] = failed; }

template <class Handle>
using HandlerFunction = void(Handle*, int*, ...);

template <class Handle>
void call_function(FailedCall& failed, int* code) {
    auto* function = reinterpret_cast<HandlerFunction<Handle>*>(failed.function);
    function(reinterpret_cast<Handle*>(&failed.object), code, 0);  // MPICH passes the 0 too
}

template <class Handle>
void report(HandlerFunction<Handle>* function, Handle* object, int* code) {
    if (!may_wait()) return function(object, code, 0);
    FailedCall failed{
        call_function<Handle>, reinterpret_cast<library::AnyFunction>(function), 0, {}, *code};
    // NOLINTNEXTLINE(bugprone-sizeof-expression): the handle itself; MPI_File is a pointer
    std::memcpy(&failed.object, object, sizeof *object);
    wait_with(failed);
}

// ---- trampolines: one a function, for ever: communicators keep handlers that were freed ---------

template <class Handle, unsigned size>
struct Trampolines {
    using Function = HandlerFunction<Handle>;

    template <unsigned i>
    static void trampoline(Handle* object, int* code, ...) {
        report<Handle>(functions[i].load(std::memory_order_acquire), object, code);
    }

    static Function* take(Function* function) noexcept {
        // MPI_Errhandler_create of MPICH calls MPI_Comm_create_errhandler.
        if (behind(function) != function) return function;
        const std::lock_guard lock(taking);
        for (unsigned i = 0; i < size; ++i) {
            Function* present = functions[i].load(std::memory_order_relaxed);
            if (present == nullptr) functions[i].store(function, std::memory_order_release);
            if (present == nullptr || present == function) return all[i];
        }
        count(Counter::decline_handlers);
        return function;
    }

    // The program's function behind a trampoline, or what it is given.
    static Function* behind(Function* given) noexcept {
        for (unsigned i = 0; i < size; ++i)
            if (given == all[i]) return functions[i].load(std::memory_order_acquire);
        return given;
    }

    template <unsigned... i>
    static constexpr std::array<Function*, size> list(std::integer_sequence<unsigned, i...>) {
        return {trampoline<i>...};
    }

    static constinit std::atomic<Function*> functions[size];
    static constinit std::mutex taking;
    static constexpr std::array<Function*, size> all =
        list(std::make_integer_sequence<unsigned, size>());
};

template <class Handle, unsigned size>
constinit std::atomic<HandlerFunction<Handle>*> Trampolines<Handle, size>::functions[size] = {};
template <class Handle, unsigned size>
constinit std::mutex Trampolines<Handle, size>::taking;

// Of communicators, windows and sessions: see deferred().
using OfComms = Trampolines<MPI_Comm, most_deferred>;
using OfFiles = Trampolines<MPI_File, most_deferred_of_files>;

// With another Fint MPICH marks handlers of Fortran, and gives them pointers to that type.
constexpr bool fortran_calls_as_c = sizeof(MPI_Fint) == sizeof(int);

// ---- MPI 2's C++ bindings: their caller gets the trampoline in place of the function ------------

constinit std::atomic<library::CxxCaller> cxx_caller{nullptr};

void call_by_cxx(FailedCall& failed, int* code) {
    cxx_caller.load(std::memory_order_relaxed)(
        failed.cxx_kind, reinterpret_cast<int*>(&failed.object), code, failed.function);
}

library::AnyFunction behind_trampoline(int kind, library::AnyFunction given) noexcept {
    if (kind == library::cxx_kind_of_file)
        return reinterpret_cast<library::AnyFunction>(
            OfFiles::behind(reinterpret_cast<OfFiles::Function*>(given)));
    return reinterpret_cast<library::AnyFunction>(
        OfComms::behind(reinterpret_cast<OfComms::Function*>(given)));
}

void report_by_cxx(int kind, int* object, int* code, library::AnyFunction given) {
    FailedCall failed{call_by_cxx, behind_trampoline(kind, given), kind, {}, *code};
    std::memcpy(&failed.object, object,
                kind == library::cxx_kind_of_file ? sizeof(MPI_File) : sizeof(int));
    if (may_wait()) return wait_with(failed);
    cxx_caller.load(std::memory_order_relaxed)(kind, object, code, failed.function);
}

}  // namespace

library::CxxCaller wait_for_entry(library::CxxCaller caller) noexcept {
    cxx_caller.store(caller, std::memory_order_relaxed);
    return report_by_cxx;
}

MPI_Comm_errhandler_function* deferred(MPI_Comm_errhandler_function* function) noexcept {
    return function && fortran_calls_as_c ? OfComms::take(function) : function;
}

MPI_File_errhandler_function* deferred(MPI_File_errhandler_function* function) noexcept {
    return function && fortran_calls_as_c ? OfFiles::take(function) : function;
}

// Taken off the list first: a function that leaves drops the others, as it would in the library.
// Inside the library a callback of the program may call: it must see its own error handled, and may
// catch what the function throws.
int call_error_handlers(int rc, const void* caller) {
    if (offload::is_reentrant() &&
        library::in_one_object(caller, reinterpret_cast<const void*>(real.Comm_size)))
        return rc;
    FailedCall failed[most_waiting];
    const unsigned number = std::exchange(errors_waiting, 0u);
    std::memcpy(failed, waiting, number * sizeof *failed);
    for (unsigned i = 0; i < number; ++i) {
        int code = failed[i].code;
        failed[i].call(failed[i], &code);
        // MPICH returns what the function makes of the code.
        if (rc == failed[i].code && rc != MPI_SUCCESS) rc = code;
    }
    return rc;
}

}  // namespace vecmpi::intercept
