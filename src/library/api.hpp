// SPDX-License-Identifier: BSD-3-Clause
// Door of src/library: all that is known of the inside of an MPI library and of UCX. Everything
// else asks here by what it wants to know, and names no symbol and no version.
//
// Glossary
//   real function   the MPI library's own PMPI_X, found by bind_real_functions()
//   poll            one call of UCX's progress function by the MPI library
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/api.hpp"
#include "library/api/mpi_calls.hpp"  // generated: enum class Call, call_name()
#include "library/api/mpi_real.hpp"   // generated: struct RealFunctions, extern RealFunctions real

namespace vecmpi::library {

// ---- the library ----------------------------------------------------------------------------

// Finds the MPI library among the loaded ones and fills `real`. served: it has the MPICH ABI.
struct BoundLibrary {
    bool found = false;
    bool served = false;
    std::string soname;
    void* handle = nullptr;
};
const BoundLibrary& bind_real_functions() noexcept;
std::string library_version();  // first line of MPI_Get_library_version, tabs as blanks

// ---- traits: what was found out about its inside ----------------------------------------

enum class Trait : uint8_t {
#define VECMPI_TRAIT(name, promise, proof, without) name,
#include "base/api/traits.def"
#undef VECMPI_TRAIT
    number_of_traits
};
struct TraitText {
    const char *name, *promise, *proof, *without;
};
const TraitText& text_of(Trait trait) noexcept;
// Before the proof: false where VECMPI_TRAITS_OFF names it, and then nothing of it may be tried.
bool may_have(Trait trait) noexcept;
// The proof's answer, in MPI_Init. Returns whether it holds.
bool note_trait(Trait trait, bool proved) noexcept;
// Those that only its version tells. In MPI_Init.
void note_traits_of_version() noexcept;
bool has_trait(Trait trait) noexcept;        // false before the proof
const char* state_of(Trait trait) noexcept;  // yes, no, off, not asked
std::string describe_traits();               // one line: those that hold, and those that do not

// What MPI_Init asks for: MPI_THREAD_SINGLE unless the environment says otherwise. Nothing for a
// value that the library will refuse.
std::optional<int> default_thread_level() noexcept;

// ---- handles --------------------------------------------------------------------------------

// Object kind in bits 29-26 of an MPICH handle; kind 0 in bits 31-30 is an invalid handle.
constexpr bool handle_is(int handle, unsigned object) noexcept {
    const auto value = static_cast<unsigned>(handle);
    return (value >> 30) != 0 && ((value >> 26) & 0xfu) == object;
}
constexpr bool is_comm_handle(MPI_Comm comm) noexcept { return handle_is(comm, 1); }
constexpr bool is_type_handle(MPI_Datatype type) noexcept { return handle_is(type, 3); }
constexpr bool is_op_handle(MPI_Op op) noexcept { return handle_is(op, 6); }
constexpr bool is_builtin_type(MPI_Datatype type) noexcept {
    return (static_cast<unsigned>(type) >> 26) == 0x13u;
}
constexpr size_t builtin_type_bytes(MPI_Datatype type) noexcept {
    return (static_cast<unsigned>(type) >> 8) & 0xffu;
}
constexpr bool is_builtin_op(MPI_Op op) noexcept {
    return (static_cast<unsigned>(op) >> 26) == 0x16u;
}

// No library of the ABI gives out a request between this, its MPI_REQUEST_NULL, and 0x2fffffff.
constexpr uint32_t null_request = 0x2c000000u;
constexpr uint32_t unused_requests = 0x03ffffffu;  // behind it
constexpr bool is_unused_request(MPI_Request request) noexcept {
    return static_cast<uint32_t>(request) - null_request - 1 < unused_requests;
}

// Predefined types by a small number: 0x4c00SSII, SS bytes, II below 0x80, and the pairs with gaps
// 0x8c00000N, N below 8.
constexpr size_t type_indices = 0x88;
constexpr size_t type_index(MPI_Datatype type) noexcept {
    const auto value = static_cast<unsigned>(type);
    return value >> 26 == 0x23 ? 0x80 + (value & 0x7u) : value & 0x7fu;
}

// ---- definitions and imports ----------------------------------------------------------------

// The next definition in the loader's order, or one in a library that came with RTLD_LOCAL, such as
// MPI_Status_c2f08 in MPICH's Fortran library; null where there is none. Never loads anything.
void* defined_elsewhere(const char* symbol) noexcept;

// What a caller would have reached without this library, and where its object lies in memory. Keeps
// the definition loaded.
struct CallersChoice {
    void* address = nullptr;
    uintptr_t begin = 0, end = 0;
};
CallersChoice definition_for(uintptr_t caller, const char* symbol) noexcept;

// Do both addresses lie in the same loaded object?
bool in_one_object(const void* one, const void* other) noexcept;

// From now on the object in memory at `inside` that calls `symbol` through its procedure linkage
// table calls `replacement`; no other object does. False where it has no such entry, or where the
// kernel refuses to make the entry writable. Source: System V gABI, "Dynamic Linking".
bool replace_import(const void* inside, const char* symbol, const void* replacement) noexcept;

// The same, found once: a later write asks no loader, so it may be made where the library holds its
// locks, which a thread that loads something may wait for.
class Import {
  public:
    Import() = default;
    Import(const void* inside, const char* symbol) noexcept;
    explicit operator bool() const noexcept { return entry_ != nullptr; }
    bool replace(const void* replacement) const noexcept;

  private:
    void** entry_ = nullptr;
    bool is_read_only_ = false;
};

// A program that would use a function if the library had it refers to it weakly, and finds ours.
// Makes such references null where is_missing() says so of what they are bound to, in all objects
// that are loaded now. is_missing() runs under the loader's lock: it must not ask the loader.
using IsMissing = bool (*)(const void* bound) noexcept;
void clear_weak_references(IsMissing is_missing) noexcept;

// ---- questions whose answer may be an error -------------------------------------------------

// While there is one on this thread, an error of the library's is an answer to us, and nothing that
// the program may hear of: the library returns the code and calls no error handler, where
// that can be prevented.
class QuietErrors {
  public:
    QuietErrors() noexcept;
    ~QuietErrors();
    QuietErrors(const QuietErrors&) = delete;
    QuietErrors& operator=(const QuietErrors&) = delete;
};
bool errors_are_quiet() noexcept;
bool errors_can_be_quiet() noexcept;

// From now on the library raises no error while comm_traits() asks about a handle. Only where it
// raises them by MPIR_Err_return_comm through its procedure linkage table, as MPICH does; elsewhere
// src/offload has errors returned for the time of the question.
void keep_questions_quiet() noexcept;

// ---- error handlers of MPI 2's C++ bindings ---------------------------------------------------

// Calls a handler's function, which takes an object. kind: what `object` is a handle of; for
// cxx_kind_of_file it points to an MPI_File.
using AnyFunction = void (*)();
using CxxCaller = void (*)(int kind, int* object, int* code, AnyFunction function);
constexpr int cxx_kind_of_file = 1;
// From now on the library calls answer(caller) in place of the caller that the bindings name.
// answer: for ever.
void answer_cxx_callers(CxxCaller (*answer)(CxxCaller caller) noexcept) noexcept;

// ---- polls, and how the library rests in its own waits --------------------------------------

// What the library's polls on this thread have moved so far; added to by each.
extern thread_local constinit uint64_t library_events __attribute__((tls_model("initial-exec")));

// Jobs that are not done. Relaxed: a look more or less does no harm.
extern std::atomic<uint32_t> jobs_under_way;
extern std::atomic<uint32_t> jobs_on_memory;  // those that wait for what other processes write

// After a poll that the MPI library made on this thread: when may it advance the jobs? Never
// where the engine's loop does, or its thread; at once where the library holds no lock.
enum class JobLook { none, at_once, after_unlock };

// What src/offload answers to a poll.
struct PollAnswers {
    JobLook (*look)() noexcept;       // after a poll while there are jobs
    void (*advance_jobs)() noexcept;  // in a wait that holds no lock of the library's
    bool (*loop_rests)() noexcept;    // the engine's loop called the library on this thread
};
// Until then there are no jobs, and no loop. answers: for ever.
void answer_polls(const PollAnswers& answers) noexcept;

// From now on the library's progress polls rest on the ladder when they find nothing. Before the
// real MPI_Init, which waits too.
void rest_in_library(const WaitPolicy& policy) noexcept;

// While on, the locks of who polls come through here: from before the real MPI_Init until the tests
// whose answer is library_shows_polls(). Afterwards only its unlocks do, from the first on after
// which something is due.
void watch_locks_of_library(bool on) noexcept;

// True once a poll came through here: only libraries that call UCX (MPICH's ch4:ucx) do.
bool library_polls_seen() noexcept;

// Whether code at this address is the MPI library's own; false as long as it has not polled.
// Its own calls of nonblocking collectives (ROMIO's) come whenever this rank looks at some request,
// in another order among the rest on each rank.
bool is_mpi_library(uintptr_t address) noexcept;

// Before the tests that the next question is about: what polled until now may have held other
// locks.
void forget_global_lock() noexcept;
// True where a look at the jobs follows the polls of the MPI library itself: those of a library
// below it (libfabric) come with locks held that nobody knows. locks: it polls with a lock held,
// and must have shown that we see it taken and given back.
bool library_shows_polls(bool locks) noexcept;

// ---- sleeping until a message comes ---------------------------------------------------------
// A thread that waits has its polls arm what they find empty, and sleeps once all are armed: the
// next message to one of them wakes it, or another thread whose poll moved something.

// Before the real MPI_Init: UCX is to be asked for what wakes. A message to the own rank then takes
// 135 ns in place of 56 (1 KiB, MPICH 4.0.2), since its shortest way cannot wake.
void want_wakeup(bool wanted) noexcept;
// Can a sleeper be woken by every message? Proved in MPI_Init, after messages have moved.
bool library_wakes() noexcept;
// neighbours_by_polls: messages between ranks of this node are known to come by polls.
void prove_wakeup(bool neighbours_by_polls) noexcept;

// The polls of this thread's next look are to arm.
void arm_next_polls() noexcept;
// So often in a row nothing was armed, and the thread looks again at once; then it rests.
constexpr uint32_t most_refusals = 32;
// After a look in vain: sleeps if its polls armed, at most for so long. False where they did not.
// door: a descriptor that wakes as well, or -1; enough by itself where the library does not wake.
bool sleep_if_armed(uint64_t limit_us, int door = -1) noexcept;
// This thread goes on without a sleep.
void forget_armed() noexcept;
// Threads that sleep, or are about to.
extern std::atomic<uint32_t> sleepers;
void ring_sleepers() noexcept;
// There is something to do that a sleeper of this process may wait for.
inline void wake_sleepers() noexcept {
    if (sleepers.load(std::memory_order_relaxed) != 0) [[unlikely]]
        ring_sleepers();
}
// While there is one, this thread is in a call that waits, and may sleep in the library's own
// waits. A test must not, nor a post.
extern thread_local constinit int blocking_calls __attribute__((tls_model("initial-exec")));
// The polls of this thread have armed something, and others ring for it.
extern thread_local constinit bool is_announced __attribute__((tls_model("initial-exec")));
class BlockingCall {
  public:
    BlockingCall() noexcept { ++blocking_calls; }
    ~BlockingCall() {
        if (--blocking_calls == 0 && is_announced) [[unlikely]]
            forget_armed();  // another thread has completed what it waited for
    }
    BlockingCall(const BlockingCall&) = delete;
    BlockingCall& operator=(const BlockingCall&) = delete;
};
// A sleep never lasts longer: what comes by another way than a poll is seen then.
constexpr uint64_t longest_sleep_us = 1000;

// The library polls at its own speed again.
void stop_resting_in_library() noexcept;

// While it lives, UCX finds a higher threshold for rendezvous in the environment, unless the user
// set one: 64 KiB by Allreduce (messages of 32 and 16 KiB) on 4 ranks on 2 CPUs take 36 us instead
// of 80. No higher, since eager messages that nobody waits for fill memory. UCX reads it once, in
// MPI_Init.
class EagerUcx {
  public:
    explicit EagerUcx(bool wanted) noexcept;
    ~EagerUcx();
    EagerUcx(const EagerUcx&) = delete;
    EagerUcx& operator=(const EagerUcx&) = delete;

  private:
    bool set_;
};

// ---- the table of op functions --------------------------------------------------------------

// in, inout, number of elements, datatype: MPICH 4.0, src/include/mpir_op.h.
using OpFunction = void (*)(void* in, void* inout, MPI_Aint* length, MPI_Datatype* type);

// The low byte of a predefined op's handle: MPI_MAX is 1, MPI_MAXLOC is 12.
constexpr size_t first_op = 1, last_op = 12;
constexpr unsigned null_op = 0x58000000u;  // what precedes that byte
constexpr size_t op_index(MPI_Op op) noexcept { return static_cast<unsigned>(op) & 0xffu; }
constexpr bool is_predefined_op(MPI_Op op) noexcept {
    return (static_cast<unsigned>(op) & ~0xffu) == null_op && op_index(op) >= first_op &&
           op_index(op) <= last_op;
}
constexpr MPI_Op predefined_op(size_t index) noexcept {
    return static_cast<MPI_Op>(null_op + index);
}

struct CodeRange {
    uintptr_t begin, end;
};

// Where in words[0..count) a null stands before last_op different addresses of code: what the table
// looks like. Pure.
std::vector<size_t> op_table_candidates(const uintptr_t words[], size_t count,
                                        const std::vector<CodeRange>& code);

// The library's table, whose entry op_index(op) may be replaced from now on, or null with the
// reason. Needs an initialised library that no other thread is in: the proof replaces entries for
// the time of a call of MPI_Reduce_local.
OpFunction* find_op_table(const BoundLibrary& library, const char** where) noexcept;

// The library's collectives call the functions of the table: it may have something faster beside
// them, which would be left out while no window exists.
void reduce_by_op_functions() noexcept;
void reduce_as_before() noexcept;
void note_windows(int more) noexcept;  // made, or freed where negative

// ---- UCX's datatypes ------------------------------------------------------------------------
// MPICH's ch4:ucx
// has UCX call functions of its own for messages of datatypes with gaps.

// ucp_generic_dt_ops_t, ucs_status_t (0: done) and two functions of ucp/api/ucp.h.
using UcxStatus = signed char;
struct UcxOps {
    void* (*start_pack)(void* context, const void* buffer, size_t count);
    void* (*start_unpack)(void* context, void* buffer, size_t count);
    size_t (*packed_size)(void* state);
    size_t (*pack)(void* state, size_t offset, void* to, size_t most);  // returns bytes
    UcxStatus (*unpack)(void* state, size_t offset, const void* from, size_t bytes);
    void (*finish)(void* state);
    bool operator==(const UcxOps&) const = default;
};
using UcxCreate = UcxStatus (*)(const UcxOps* ops, void* context, uint64_t* ucx_type);
using UcxDestroy = void (*)(uint64_t ucx_type);

// Who stands between the library and UCX.
struct UcxTypeAnswers {
    UcxStatus (*create)(UcxCreate create, const UcxOps& ops, void* context,
                        uint64_t* ucx_type) noexcept;
    void (*destroy)(UcxDestroy destroy, uint64_t ucx_type) noexcept;
};
// Commits a type, by the library alone, and looks whether it is shown to UCX. In MPI_Init.
bool library_shows_types() noexcept;
// Until then the library's calls go on to UCX as they are. answers: for ever.
void answer_ucx_types(const UcxTypeAnswers& answers) noexcept;

}  // namespace vecmpi::library
