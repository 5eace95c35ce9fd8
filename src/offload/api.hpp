// SPDX-License-Identifier: BSD-3-Clause
// Door of src/offload: the only place that issues MPI operations and completes requests.
//
// Glossary
//   operation       one nonblocking call with its arguments, ready to be issued
//   slot            storage of one queued operation: arguments, status, completion flag
//   virtual request the MPI_Request that the program gets for a slot; a value MPICH never produces
//   engine          queue, window of active requests and the loop over them; one owner at a time
//   job             work of many operations that the engine carries on until it is done
//   owner           the thread that holds the engine: the offload thread, or a program thread
//   inside a call
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "base/api.hpp"
#include "library/api.hpp"

namespace vecmpi::offload {

// ---- operations ----------------------------------------------------------------------------

using IssueFunction = int (*)(const void* arguments, MPI_Request* mpi_request) noexcept;
constexpr size_t max_argument_bytes = 128;

// No communicator argument: a value that is no communicator's handle, nor MPI_COMM_NULL, which a
// program may pass.
constexpr MPI_Comm no_comm_argument = static_cast<MPI_Comm>(0x80000000u);

// What can be said of a call's arguments without asking the library. Absent arguments keep their
// defaults.
struct CallFacts {
    MPI_Comm comm = no_comm_argument;
    MPI_Count count = 0;  // of the buffer; of the send side where there are two
    MPI_Count other_count = 0;
    MPI_Datatype type = MPI_BYTE;
    MPI_Datatype other_type = MPI_BYTE;
    int peer = MPI_PROC_NULL;  // destination or source
    int other_peer = MPI_PROC_NULL;
    int tag = 0;
    int other_tag = 0;
    int root = 0;
    MPI_Op op = MPI_SUM;
    const void* sendbuf = nullptr;  // or the only buffer
    const void* recvbuf = nullptr;
    bool collective = false;
    bool reduces = false;      // op is given
    bool vector_form = false;  // counts come in arrays: not looked at
    bool type_arrays =
        false;  // datatypes come in arrays: the mpi_f08 bindings pass copies that end with the call
};

struct Operation {
    Call call;
    IssueFunction issue;
    const void* arguments;  // copied; trivially copyable
    uint16_t argument_bytes;
    CallFacts facts;
};

template <class Arguments>
Operation make_operation(Call call, IssueFunction issue, const Arguments& arguments,
                         const CallFacts& facts) noexcept {
    static_assert(std::is_trivially_copyable_v<Arguments>);
    static_assert(sizeof(Arguments) <= max_argument_bytes);
    return {call, issue, &arguments, sizeof(Arguments), facts};
}

// Nonblocking call: issues it or puts it on the queue; *app_request is real or virtual
// (MPI 4.0, 3.7 and 6.12).
int post(const Operation& operation, MPI_Request* app_request) noexcept;

// Blocking call as its nonblocking twin: returns when it is complete. Waits on the ladder.
int run_twin(const Operation& operation, MPI_Status* status) noexcept;

// True where a blocking point-to-point call on this communicator may run as its twin; else the
// caller uses the real blocking function. Declines re-entrant calls, communicators with an error
// handler of their own, and everything where the library itself waits as well.
bool twin_serves(MPI_Comm comm) noexcept;

// True where the library surely takes the arguments, judged without asking it. For calls whose
// parts must not be begun when one of them would be refused. The communicator is one that
// twin_serves().
bool library_surely_takes(const Operation& operation) noexcept;

// True where blocking collectives on this communicator run as their nonblocking twins. Equal on all
// ranks of the communicator: MPI does not match a blocking collective with a nonblocking one
// (MPI 4.0, 6.12). So also in a callback, where another rank may call outside of one: the library
// does not hold its lock there. Declines only on the offload thread, which cannot wait for itself.
bool collective_twin_serves(MPI_Comm comm) noexcept;

// Whose calls come back to MPI from inside a call: the library's own (ROMIO), which go straight to
// the real functions; or the program's (callbacks), which are served as usual. An error handler of
// the program may leave the call by longjmp: with `program` nothing is left behind.
enum class Reentry { library, program };

// A call that the library executes on the caller's thread: everything posted before is issued
// first.
class DirectCall {
  public:
    explicit DirectCall(Call call, Reentry reentry = Reentry::library) noexcept;
    ~DirectCall() noexcept;
    DirectCall(const DirectCall&) = delete;
    DirectCall& operator=(const DirectCall&) = delete;

  private:
    bool marks_inside_;
};

// For a call of the library's that is a part of a path of ours: comes back to MPI as a DirectCall
// does, but orders nothing and counts nothing.
class PartOfCall {
  public:
    PartOfCall() noexcept;
    ~PartOfCall() noexcept;
    PartOfCall(const PartOfCall&) = delete;
    PartOfCall& operator=(const PartOfCall&) = delete;
};

// For a call that runs without the library: it comes after all that this thread posted before.
void issue_what_was_posted() noexcept;

// True inside a real function that we called on this thread: hand the call on untouched.
bool is_reentrant() noexcept;

// True on the offload thread: nothing there returns to the program.
bool is_offload_thread() noexcept;

// ---- requests (MPI 4.0, 3.7.3-3.7.5, 3.8, 3.9, 4.2) -------------------------------------------

inline bool is_virtual(MPI_Request request) noexcept { return library::is_unused_request(request); }

int wait_one(MPI_Request* request, MPI_Status* status) noexcept;
int test_one(MPI_Request* request, int* flag, MPI_Status* status) noexcept;
int wait_any(int count, MPI_Request requests[], int* index, MPI_Status* status) noexcept;
int test_any(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status) noexcept;
int wait_all(int count, MPI_Request requests[], MPI_Status statuses[]) noexcept;
int test_all(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) noexcept;
int wait_some(int incount, MPI_Request requests[], int* outcount, int indices[],
              MPI_Status statuses[]) noexcept;
int test_some(int incount, MPI_Request requests[], int* outcount, int indices[],
              MPI_Status statuses[]) noexcept;
int request_get_status(MPI_Request request, int* flag, MPI_Status* status) noexcept;
int request_get_status_all(int count, const MPI_Request requests[], int* flag,
                           MPI_Status statuses[]) noexcept;
int request_get_status_any(int count, const MPI_Request requests[], int* index, int* flag,
                           MPI_Status* status) noexcept;
int request_get_status_some(int incount, const MPI_Request requests[], int* outcount, int indices[],
                            MPI_Status statuses[]) noexcept;
int request_is_complete(MPI_Request request) noexcept;  // MPICH's extension
int request_free(MPI_Request* request) noexcept;
int cancel(MPI_Request* request) noexcept;
int start(MPI_Request* request) noexcept;
int start_all(int count, MPI_Request requests[]) noexcept;
int pready(int partition, MPI_Request request) noexcept;
int pready_range(int low, int high, MPI_Request request) noexcept;
int pready_list(int length, const int partitions[], MPI_Request request) noexcept;
int parrived(MPI_Request request, int partition, int* flag) noexcept;

// After a real persistent request was made on comm: gives the program a virtual one in its place
// where the offload thread serves it, else leaves it. op: of a reduction.
void adopt_persistent(MPI_Comm comm, MPI_Request* app_request, MPI_Op op = MPI_SUM) noexcept;

// From now on there may be requests that only the library's own Waitall takes rightly: generalized
// ones, those of files among them. MPICH 4.0's Testall frees them twice, and ROMIO's collective
// calls match only if all ranks make progress with one request after the other.
void note_generalized_requests() noexcept;
// From now on the library's progress calls functions of the program (MPIX_Async_start of
// MPICH 4.1): not on a thread that the program does not know. Nothing where no engine runs.
void note_poll_functions() noexcept;
// Such requests and persistent ones may exist from before the engine ran: a session made them.
void note_earlier_requests() noexcept;

// ---- jobs ---------------------------------------------------------------------------------------

class Job {
  public:
    virtual ~Job() = default;
    // One look: issues and completes what can be. True when all is done; it is not called again
    // then, and the engine destroys the job. Called inside the library (is_reentrant() holds), by
    // one thread at a time but not always the same, with the float environment of the thread that
    // posted the job. Never blocks, and never waits for a lock that may be held while the library
    // is called: it may run deep inside a wait of the library.
    virtual bool advance() noexcept = 0;
    int error = MPI_SUCCESS;  // of the whole, once done
    // advance() calls nothing of the library's. Whoever looks in vain then lets the library look:
    // the rank that is waited for may itself wait for a message of ours.
    bool waits_for_memory = false;

  protected:
    Job() = default;
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;
};

// True where jobs go on whatever call their rank is in, be it a wait of the library's own. Agreed
// in MPI_Init: equal on all ranks of MPI_COMM_WORLD. False before MPI_Init and from MPI_Finalize
// on.
bool jobs_are_served() noexcept;
// True while a thread of ours looks at jobs without rest. Of this rank only.
bool jobs_are_watched() noexcept;

// Nonblocking: the request completes with the job; it is virtual, or stands in for one that no slot
// is left for. Jobs and operations posted before have no order among them. comm: whose error
// handler hears of Job::error, in the call that completes the request. Always MPI_SUCCESS. A job of
// which the other ranks have begun theirs cannot be declined: without memory for it the call
// returns when it is done.
int post_job(Call call, std::unique_ptr<Job> job, MPI_Comm comm, MPI_Request* app_request) noexcept;

// Blocking, on this thread; other jobs go on meanwhile. Returns job.error, which comm's handler has
// heard of.
int run_job(Call call, Job& job, MPI_Comm comm) noexcept;
// The same for a job that calls an operator of the program, which may wait for other threads, which
// may call MPI: nobody must wait for this thread meanwhile, so it does not own the engine.
int run_job_beside(Call call, Job& job, MPI_Comm comm) noexcept;

// What a persistent request knows of its jobs; lives as long as the process.
struct JobMaker {
    // The job of one MPI_Start from the arguments that the request keeps. Null: there is nothing to
    // do, and the request is complete with *error. Called inside the library, on the program's
    // thread.
    std::unique_ptr<Job> (*make)(const void* arguments, int* error) noexcept;
    // The request is gone, and its last job done: frees what the arguments own.
    void (*drop)(const void* arguments) noexcept;
};

// A persistent request, inactive, virtual. arguments: trivially copyable, at most
// max_argument_bytes. MPI_ERR_NO_MEM, and nothing done, where no slot is left: whether all ranks
// have one is for the caller to find out, who may communicate in MPI_X_init (MPI 4.0, 6.13).
int make_persistent_job(Call call, MPI_Comm comm, const JobMaker& maker, const void* arguments,
                        size_t argument_bytes, MPI_Request* app_request) noexcept;

// What src/offload answers to the library's polls (PollAnswers).
library::JobLook job_look_after_poll() noexcept;
void advance_jobs_in_library() noexcept;

// ---- arithmetic (MPI 4.0, 6.9) ------------------------------------------------------------------

// MPI_Reduce_local of a predefined op on a predefined type by a kernel. False, and nothing done,
// where that does not give the library's bits for sure or the library may refuse the arguments.
bool reduce_by_kernel(const void* in, void* inout, MPI_Count count, MPI_Datatype type,
                      MPI_Op op) noexcept;
// The library reduced so without an error: the next one may be the kernel's.
void note_reduced_by_library(MPI_Op op, MPI_Datatype type) noexcept;
// True for a predefined op on a predefined type, where we have a kernel and the library accepts the
// pair. Equal on all ranks.
bool is_reducible(MPI_Op op, MPI_Datatype type) noexcept;
// to = left op right, with the bits that MPI_Reduce_local(left, right) would leave in right. `to`
// may be left or right; otherwise it must not overlap them. The library accepts op and type, and
// elements of `extent` bytes. Operators of the program are called.
int reduce_elements(const void* left, const void* right, void* to, MPI_Count count,
                    MPI_Datatype type, MPI_Count extent, MPI_Op op) noexcept;
// A buffer may then be memory that only the GPU reads, and the library knows what to do with it. Of
// this process, now.
bool gpu_runtime_is_loaded() noexcept;
// Before a window is made and freed. While there is one the library accumulates as it does by
// itself.
void note_window_made() noexcept;
void note_window_freed() noexcept;

// ---- facts of arguments -------------------------------------------------------------------

// An array argument, one entry a rank: of int, or MPI_Count or MPI_Aint in the large-count forms.
class RankArray {
  public:
    template <class Integer>
    RankArray(const Integer* values) noexcept : values_(values), wide_(sizeof(Integer) == 8) {
        static_assert(std::is_integral_v<Integer> &&
                      (sizeof(Integer) == 4 || sizeof(Integer) == 8));
    }
    MPI_Count operator[](int rank) const noexcept {
        if (wide_) return static_cast<MPI_Count>(static_cast<const int64_t*>(values_)[rank]);
        return static_cast<const int32_t*>(values_)[rank];
    }
    bool missing() const noexcept { return values_ == nullptr; }
    const int* as_ints() const noexcept {  // null where they are wider
        return wide_ ? nullptr : static_cast<const int*>(values_);
    }

  private:
    const void* values_;
    bool wide_;
};

MPI_Count size_of(MPI_Datatype type) noexcept;
struct TypeShape {
    MPI_Count bytes = 0;
    MPI_Count extent = 0;
    bool builtin = false;  // its bytes in memory are its packed bytes
};
TypeShape shape_of(MPI_Datatype type) noexcept;
// Found out by packing nothing: the library itself refuses a type that is not committed, before any
// rank waits.
bool is_committed(MPI_Datatype type, MPI_Comm comm) noexcept;

// A null buffer that is no MPI_BOTTOM: the library's to refuse. (A part of it would not be null.)
bool is_refused(const void* buffer, MPI_Count count, MPI_Datatype type) noexcept;
// The same of one that is written to, where MPI_IN_PLACE means nothing.
bool is_refused_output(const void* buffer, MPI_Count count, MPI_Datatype type) noexcept;

// A real request that stays pending until it is ended: who tests it makes the library poll.
// MPI_REQUEST_NULL where the library refuses one.
MPI_Request start_endless_request() noexcept;
void end_endless_request(MPI_Request* request) noexcept;

// ---- waiting on something other than a request ------------------------------------------------

// Calls look(context), which may call the library, until it returns true, resting on the ladder
// between.
void wait_until(bool (*look)(void* context), void* context) noexcept;

// Before the first of the next three and of a job that waits for memory, inside a DirectCall.
void prepare_to_poll() noexcept;
// Returns once look() says so, which calls no MPI and is cheap: others change memory that this
// process shares with them. First by itself, then on the ladder; the library and jobs go on then.
extern uint32_t looks_by_itself;  // at least 1
void wait_for_memory_on_ladder(bool (*look)(const void* context), const void* context) noexcept;
template <class Look>
void wait_for_memory(const Look& look) noexcept {
    for (uint32_t looks = looks_by_itself; looks != 0; --looks)
        if (look()) return;
    wait_for_memory_on_ladder(
        [](const void* context) { return (*static_cast<const Look*>(context))(); }, &look);
}
// Lets the library look once at what is under way, where no thread of ours does: for calls that
// often return without asking it.
void make_progress() noexcept;

// After a look of the program's own loop (Iprobe) that found nothing: on an oversubscribed node
// whoever must send has no CPU while the program asks again.
void rest_after_failing_look() noexcept;

// ---- communicators ---------------------------------------------------------------------------

struct CommTraits {
    int size = 0;  // of the remote group on an inter-communicator
    bool inter = false;
    bool world_only = true;  // every process belongs to this process's MPI_COMM_WORLD
    enum class Handler : uint8_t { fatal, returns, user } handler = Handler::fatal;
};
// Cached. Of a handle that is no communicator (any more) the size is 0.
CommTraits comm_traits(MPI_Comm comm) noexcept;
// Collective over comm, blocking, by the library: can all ranks, and did all give the same number?
bool all_can(MPI_Comm comm, bool can, uint64_t same_number = 0) noexcept;
// A session may outlive MPI_Finalize, and its requests with it, when nobody knows virtual ones any
// more. Which communicators are of a session nobody can tell: no request of one that was first used
// afterwards is virtual. Each rank's own: who needs it for all of them asks all_can().
bool session_was_opened() noexcept;
// Before a communicator is freed or its error handler changes.
void forget_comm_traits() noexcept;
// The communicator's error handler may be another one now.
void note_handler(MPI_Comm comm) noexcept;
// From now on communicators may hold processes of other MPI_COMM_WORLDs (spawn, connect, sessions).
void note_dynamic_processes() noexcept;
// Calls on this new communicator of MPIX_Stream_comm_create go to the library as they are.
void mark_stream_comm(MPI_Comm comm) noexcept;
// A session is opened. It may outlive MPI_Finalize.
void note_session() noexcept;

// ---- life -------------------------------------------------------------------------------------

// What all ranks of MPI_COMM_WORLD found out together in MPI_Init.
struct Agreement {
    bool valid = false;             // false before MPI_Init and after MPI_Finalize
    bool twin_collectives = false;  // some node is oversubscribed and its library spins
    bool one_node = true;
    bool serves_jobs = false;  // jobs_are_served()
    bool profile = false;      // all ranks have the same collective part of a profile, not empty
};
const Agreement& agreement() noexcept;

// In MPI_Init: MPI_Finalize will call `work` before anything else ends, but after the program's own
// callbacks on MPI_COMM_SELF, which may wait for ranks that are not in there yet.
void call_last_in_finalize(MPI_Comm_delete_attr_function* work) noexcept;

// Thread level to ask the library for when the program asked for app_level: raised for the offload
// thread.
int level_to_request(int app_level) noexcept;
// How the library should rest in its own waits: as blocked program threads do, but never asleep,
// since a poll cannot tell a wait from a test.
WaitPolicy library_wait_policy() noexcept;
// True where all ranks share one node and its CPUs are too few: each handshake of a rendezvous
// waits for a rank that has no CPU.
bool blocked_calls_may_sleep() noexcept;  // may want to be woken by the next message
bool handshakes_are_slow() noexcept;
// How the library's own waits go.
struct LibraryWaits {
    bool rest = false;        // they follow library_wait_policy()
    bool serve_jobs = false;  // they look after jobs
};

// After the real MPI_Init_thread.
// session_came_first: threads may be inside the library. *app_provided: what the program is told.
// Collective over MPI_COMM_WORLD.
void start_engine(int app_level, int lib_provided, const LibraryWaits& library_waits,
                  bool session_came_first, int* app_provided) noexcept;
// Before the real MPI_Finalize: issues what is queued, joins the thread. The engine still serves
// the library's callbacks, each call in its caller's thread, by the paths of the ranks that are not
// in there yet.
void quiesce_engine() noexcept;
// After the real MPI_Finalize.
void stop_engine() noexcept;
bool engine_runs() noexcept;  // false in a forked child, before start and after stop
bool engine_has_thread() noexcept;
int app_thread_level() noexcept;  // what MPI_Query_thread tells the program
std::string engine_reason();      // why the thread is on or off, one line

}  // namespace vecmpi::offload
