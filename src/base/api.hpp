// SPDX-License-Identifier: BSD-3-Clause
// Door of src/base: settings, log, counters, topology, waiting, loaded libraries. Knows nothing of
// MPI calls.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace vecmpi::base {

// ---- settings ------------------------------------------------------------------------------

enum class OffloadMode : uint8_t { automatic, on, off };
enum class IntranodeMode : uint8_t { automatic, on, off };
enum class WaitMode : uint8_t { automatic, spin, yield, sleep };
enum class IsaChoice : uint8_t { automatic, off, scalar, sse4, avx2, avx512, neon, sve };
enum class PackMode : uint8_t { automatic, off, on, block, permute, gather };
enum class LogLevel : uint8_t { error, warn, info, debug };
// How a collective is done: as the settings name it (src/base/setting_values.cpp).
enum class CollectivePath : uint8_t {
    automatic,
    mpi,        // the library's own
    segmented,  // segments of the library's nonblocking collective
    ring,       // from here on: schedules of ours (src/pipeline/algorithms.hpp)
    rabenseifner,
    recursive_doubling,
    recursive_halving,
    hierarchical,
    chain,
    binomial,
    scatter_allgather,
    bruck
};

const char* name_of(CollectivePath path) noexcept;
constexpr CollectivePath schedule_paths[] = {CollectivePath::ring,
                                             CollectivePath::rabenseifner,
                                             CollectivePath::recursive_doubling,
                                             CollectivePath::recursive_halving,
                                             CollectivePath::hierarchical,
                                             CollectivePath::chain,
                                             CollectivePath::binomial,
                                             CollectivePath::scatter_allgather,
                                             CollectivePath::bruck};

// Which path serves a collective of a given size: the last range that holds the size wins.
class PathRanges {
  public:
    struct Range {
        size_t from_bytes;  // inclusive
        size_t to_bytes;    // exclusive; SIZE_MAX for "max"
        CollectivePath path;
    };
    CollectivePath at(size_t bytes) const noexcept;
    std::vector<Range> ranges;
};

struct CpuChoice {
    enum class Kind : uint8_t { automatic, none, list } kind = Kind::automatic;
    std::vector<int> cpus;  // by local rank, with kind list
};

// Constants of the network between nodes that the user gave; below 0: not given. Whole numbers, so
// that all ranks compute with the same.
struct NetworkSetting {
    int64_t latency_ns = -1;
    int64_t bytes_per_s = -1;
    int64_t overhead_ns = -1;  // of a message, on each side
    bool operator==(const NetworkSetting&) const = default;
};

struct ProfileChoice {
    enum class Kind : uint8_t { automatic, off, file } kind = Kind::automatic;
    std::string file;  // with kind file
};

struct ReportTarget {
    enum class Kind : uint8_t { off, summary, json } kind = Kind::off;
    std::string file;  // with kind json
};

struct Settings {
    bool enabled = true;
    OffloadMode offload = OffloadMode::automatic;
    CpuChoice cpu;
    WaitMode wait = WaitMode::automatic;
    IsaChoice isa = IsaChoice::automatic;
    unsigned segments = 0;     // 0: auto
    size_t segment_bytes = 0;  // 0: auto
    IntranodeMode intranode = IntranodeMode::automatic;
    size_t single_copy = 0;  // 0: auto; SIZE_MAX: off
    PathRanges allreduce, bcast, reduce, reduce_scatter, allgather;
    NetworkSetting network;
    PackMode pack = PackMode::automatic;
    ProfileChoice profile;
    unsigned traits_off = 0;  // a bit for each row of traits.def
    bool reproducible = false;
    ReportTarget report;
    LogLevel log = LogLevel::warn;
};

struct SettingsResult {
    Settings settings;
    std::string problem;                // one line: variable, value, what is accepted; empty: fine
    std::vector<std::string> warnings;  // unknown VECMPI_ names, each with the nearest real one
    std::vector<std::string> values;    // in the order of settings.def: as given, else the default
    uint64_t agreement_hash = 0;        // over the values that all ranks must share
};

// Pure: reads only the array given. environment: as `environ`, ended by a null pointer.
SettingsResult parse_settings(const char* const* environment);

// Reads the environment once; later calls return the same object. Never throws.
const SettingsResult& process_settings() noexcept;
inline const Settings& settings() noexcept { return process_settings().settings; }
inline bool report_is_wanted() noexcept {
    return settings().report.kind != ReportTarget::Kind::off;
}

// One row of settings.def as a user sees it.
struct SettingText {
    const char* name;
    const char* default_value;
    const char* accepted;
    const char* text;
    bool must_agree;
    const char* field;  // of struct Settings
};
const std::vector<SettingText>& setting_texts();

// "64K", "4M", "1G", "max", plain bytes. False when it is none of these.
bool parse_bytes(std::string_view text, size_t& bytes) noexcept;
std::string format_bytes(uint64_t bytes);
// Three digits and a unit: "1.23 s". The same in every locale.
std::string format_time(uint64_t ns);

// A JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
std::string quote_json(std::string_view text);

// ---- parts of a vector ---------------------------------------------------------------------

// Elements [first, first + count) of the vector.
struct Segment {
    int64_t first = 0;
    int64_t count = 0;
};

// The i-th of n nearly equal parts of `elements`: sizes differ by at most one, larger ones first.
constexpr Segment segment(int64_t elements, unsigned n, unsigned i) noexcept {
    const int64_t base = elements / n, extra = elements % n;
    const int64_t index = i;
    return {index * base + std::min(index, extra), base + (index < extra ? 1 : 0)};
}

// ---- log -----------------------------------------------------------------------------------

// One line on standard error, "vecmpi: " or "vecmpi[rank]: " first, written with one write(2).
void log_line(LogLevel level, const char* format, ...) noexcept
    __attribute__((format(printf, 2, 3)));
bool log_wants(LogLevel level) noexcept;
void set_log_rank(int world_rank) noexcept;

// ---- counters and report -------------------------------------------------------------------

enum class Counter : uint16_t {
#define VECMPI_COUNTER(name, kind, text) name,
#include "base/api/counters.def"
#undef VECMPI_COUNTER
    number_of_counters
};

enum class CounterKind : uint8_t { event, decline };
struct CounterText {
    const char* name;
    CounterKind kind;
    const char* text;
};
const CounterText& text_of(Counter counter) noexcept;

// For whom something is counted. Nothing (one predictable branch) until somebody asks.
struct CountedFor {
    static constexpr uint8_t report = 1, trace = 2, tools = 4;
};
extern std::atomic<uint8_t> counting;
void count_event(Counter counter, uint64_t add) noexcept;
inline void count(Counter counter, uint64_t add = 1) noexcept {
    if (counting.load(std::memory_order_relaxed) != 0) [[unlikely]]
        count_event(counter, add);
}

// How a call was served. Where several paths had a part in it, the last of them in this order is
// the call's.
enum class Path : uint8_t {
    library,
    direct,
    inline_issue,
    queued,
    completion,
    segmented,
    scattered,
    scheduled,
    on_node,
    own_pack,
    own_kernel,
    number_of_paths
};
constexpr size_t max_calls = 1024;  // MPI functions that can be counted; the intercept names them
// This path has a part in the call that this thread is in. bytes: for the trace.
void count_call_event(size_t call, Path path, uint64_t bytes) noexcept;
inline void count_call(size_t call, Path path, uint64_t bytes) noexcept {
    if (counting.load(std::memory_order_relaxed) != 0) [[unlikely]]
        count_call_event(call, path, bytes);
}

// A call of the program's, from here to the end of the scope; the report's row for it is known
// then. A call inside it (from a callback) takes its time for itself, so none counts twice. A scope
// that is left by longjmp counts nothing, and does no harm.
class CallTimer {
  public:
    // path: where count_call() names none. counts: false for a call that is not the program's own.
    CallTimer(size_t call, Path path, bool counts) noexcept;
    ~CallTimer();
    CallTimer(const CallTimer&) = delete;
    CallTimer& operator=(const CallTimer&) = delete;
    bool counts() const noexcept { return counts_; }
    void add_bytes(uint64_t bytes) noexcept { bytes_ += bytes; }

  private:
    size_t call_;
    uint64_t bytes_ = 0, began_ = 0;
    uint64_t outer_inner_ticks_;  // of the call around this one
    Path outer_path_;
    bool counts_;
};

// From now on the report counts.
void begin_report() noexcept;
// The run's time begins: at the end of MPI_Init.
void begin_run() noexcept;
// MPI_Pcontrol: the report stops to count, or goes on; forgets what it has counted.
void count_for_report(bool on) noexcept;
void empty_report() noexcept;

// Counters as tools see them: counted while somebody wants them, whatever the report does. Nests.
void count_for_tools(bool on) noexcept;
uint64_t counted_for_tools(Counter counter) noexcept;

// From now on each counted call is a line of the log at level debug: name, path, bytes. Names come
// from above, since base knows no MPI call.
void trace_calls(const char* (*name_of_call)(size_t call)) noexcept;

// All that the report counted as one flat vector of 64-bit numbers, times in ns, so that ranks can
// be summed; same length on all ranks.
std::vector<uint64_t> counter_snapshot();

struct ReportFacts {
    int ranks = 1;
    int nodes = 1;
    int ranks_with_thread = 0;
    std::string mpi_library;              // first line of MPI_Get_library_version
    std::vector<const char*> call_names;  // index = call
    std::vector<std::string> notes;       // one line each, such as why the thread is on or off
};
// Of counter_snapshot(), over all ranks.
struct ReportNumbers {
    std::vector<uint64_t> totals;   // sums
    std::vector<uint64_t> largest;  // each number on the rank where it is largest
};
// Pure.
std::string format_summary(const ReportFacts& facts, const ReportNumbers& numbers);
std::string format_json(const ReportFacts& facts, const ReportNumbers& numbers);

// ---- topology and placement ----------------------------------------------------------------

// What a process can know of its place on the node before MPI_Init.
struct HostView {
    std::vector<int> cpus;  // affinity mask, ascending
    int cpus_of_node = 1;   // online CPUs of the node, or the cgroup's CPU quota where lower
    int local_ranks = 0;    // from the launcher's environment; 0: unknown
    int local_rank = 0;
    bool is_whole_job = false;  // the launcher says that no rank is on another node
    int threads_per_rank = 1;   // OMP_NUM_THREADS; all CPUs of the mask where an OpenMP runtime is
                                // loaded and it is unset
    std::vector<int>
        numa_node;  // of each entry of cpus; empty where there is one node or no libnuma
};
HostView look_at_host() noexcept;

// What the processes of one node have in common, and most likely no others.
uint64_t hash_of_node_name() noexcept;

struct OffloadPlan {
    bool own_thread = false;
    bool own_cpu = false;   // a CPU that no program thread needs: the thread may spin
    int cpu = -1;           // pin there; -1: inherit the mask
    std::vector<int> mask;  // where the thread may go when the CPU turns out to be crowded
    std::string reason;     // one line for the report and vecmpi-info
};
// Pure.
OffloadPlan plan_offload(const Settings& settings, const HostView& host);

// Pure: more threads that want to run than CPUs to run them.
bool oversubscribed(const HostView& host, const OffloadPlan& plan) noexcept;

// Pure: CPUs that one rank's threads may count on, at least 1.
int cpus_of_rank(const HostView& host) noexcept;

// NUMA node of a CPU through libnuma if it is installed (loaded on first use); -1 unknown.
int numa_node_of_cpu(int cpu) noexcept;
// Prefers pages of [address, address+bytes) on that node; no effect without libnuma or with node
// -1.
void prefer_numa_node(void* address, size_t bytes, int node) noexcept;

// Keeps the calling thread on these CPUs; false where the system refuses.
bool keep_this_thread_on(const std::vector<int>& cpus) noexcept;
bool this_thread_is_on(const std::vector<int>& cpus) noexcept;  // these, ascending, and no others

// A thread that looks and yields on a CPU which others want as well: tells so from how often, and
// for how long, it was off, when that goes on for 50 ms. The kernel needs less to move a thread
// that has another CPU to go to.
class CrowdedCpu {
  public:
    explicit CrowdedCpu(uint64_t patience_us) noexcept
        : first_patience_us_(patience_us), patience_us_(patience_us) {}
    // Call after each look in vain, and yield after some: asks the system every 5 ms.
    bool noticed() noexcept {
        constexpr uint32_t looks_between_clocks = 16;
        return ++looks_ % looks_between_clocks == 0 && check();
    }
    // Call after a sleep: the time until now does not count.
    void slept() noexcept { began_us_ = 0; }
    // After noticed(): it is time to try again, since what starts on a node is there for a moment.
    // After patience_us, then after twice as long each time, up to a minute, until a try holds for
    // longer than that.
    bool may_be_over() noexcept;

  private:
    bool check() noexcept;

    uint32_t looks_ = 0;
    uint64_t began_us_ = 0;  // 0: with the next check
    uint64_t switches_then_ = 0;
    uint64_t ran_us_then_ = 0;
    uint32_t crowded_spans_ = 0;  // less those that were not
    uint64_t noticed_us_ = 0, tried_us_ = 0;
    uint64_t first_patience_us_, patience_us_;
};
// Pure, of some milliseconds. A competitor that computes takes time slices of 3 or 4 ms in turn,
// and half of the time; one that yields as well is let in hundreds of times a millisecond. What
// else runs on an idle CPU now and then is neither so long nor so frequent; a thread that waits for
// a lock is not pushed off. switches: involuntary ones and yields; ran_us: CPU time of the thread.
bool is_crowded(uint64_t switches, uint64_t ran_us, uint64_t elapsed_us) noexcept;

// ---- waiting -------------------------------------------------------------------------------

inline void cpu_pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

uint64_t monotonic_us() noexcept;  // since the machine started

// When a blocked thread sleeps until something wakes it, where the library can do that: never,
// while who takes up its yields computes, or in every wait after its last yield.
enum class Sleeps : uint8_t { never, beside_work, always };

// How far and how fast the ladder is climbed. A step is one unsuccessful look by the caller.
struct WaitPolicy {
    uint32_t spins = 0;     // looks that follow at once
    uint32_t pauses = 0;    // then looks with a pause instruction between
    uint32_t yields = 0;    // then looks with sched_yield between; UINT32_MAX: for ever
    uint32_t sleep_us = 0;  // then sleeps of this length, doubling up to max_sleep_us
    uint32_t max_sleep_us = 0;
    Sleeps sleeps = Sleeps::never;
};
// Pure.
WaitPolicy wait_policy(WaitMode mode, bool is_oversubscribed) noexcept;

// What a thread that waits does after a look in vain: look again, pause before it, give the CPU
// away, sleep until it is woken, or sleep blindly for a while.
enum class Rest : uint8_t { look, pause, yield, sleep, nap };
// steps: looks in vain so far, as far as they count. others_compute: those who take up the yields.
// Pure.
struct WhoWaits {
    bool can_be_woken = false, others_compute = false;
};
Rest next_rest(const WaitPolicy& policy, uint32_t steps, WhoWaits who) noexcept;

// What a thread has learnt by its yields of who else wants its CPU. One that waits as well gives it
// back within microseconds, one that computes keeps it for a time slice. Pure.
class Neighbours {
  public:
    void yielded(uint64_t took_us, uint64_t now_us) noexcept;
    // They compute, and it is not yet time for a yield that may tell otherwise.
    bool compute(uint64_t now_us) const noexcept { return now_us < ask_again_us_; }
    bool computed_lately() const noexcept { return ask_again_us_ != 0; }

  private:
    uint64_t ask_again_us_ = 0;
    uint32_t long_ones_ = 0;  // in a row
};

// One climb: call rest() after each unsuccessful look, reset() after a success. Keeps a reference
// to the policy.
class Ladder {
  public:
    explicit constexpr Ladder(const WaitPolicy& policy) noexcept : policy_(policy) {}
    void rest() noexcept {
        if (!spins()) climb();
    }
    // The next look may come at once; true so often, from the last reset on.
    bool spins() noexcept {
        if (steps_ >= policy_.spins) return false;
        ++steps_;
        return true;
    }
    // The same for who cannot tell that what it waited for has come: a yield that nobody took up
    // means that the CPU is ours, and begins the ladder anew.
    void rest_if_wanted() noexcept;
    // Is it time to sleep, rather than to rest? Of who can be woken, and only then rests no more.
    bool wants_sleep() const noexcept;
    // The same where more threads wait than there are CPUs. 16 looks, about 1 us, see most answers
    // of a near neighbour without two context switches (2 threads a core: 7.0 against 4.7 million
    // messages/s; 64 looks gain no more and cost 8 threads a fifth).
    void rest_in_crowd() noexcept {
        if (++steps_ % 16 == 0) give_way();
    }
    void reset() noexcept { steps_ = 0; }
    void end_spins() noexcept { steps_ = std::max(steps_, policy_.spins); }
    static void give_way() noexcept;  // one sched_yield, for loops that are not ours

  private:
    void climb() noexcept;  // pause, yield, nap
    const WaitPolicy& policy_;
    uint32_t steps_ = 0;
};

// Parks until the word differs from `expected`, a wake, or the timeout (0: none). Inside one
// process only.
void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, uint64_t timeout_us) noexcept;
void futex_wake_all(std::atomic<uint32_t>& word) noexcept;

// While it lives no cancellation of this thread is acted on: an unwinder must not come through
// functions that do not throw, and plain MPI has no points of cancellation where we make something.
class NoCancellation {
  public:
    NoCancellation() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
    ~NoCancellation() { pthread_setcancelstate(before_, nullptr); }
    NoCancellation(const NoCancellation&) = delete;
    NoCancellation& operator=(const NoCancellation&) = delete;

  private:
    int before_ = PTHREAD_CANCEL_ENABLE;
};

// A descriptor of ours: the program may close it, and have another file there, which must be left
// alone.
class OwnDescriptor {
  public:
    OwnDescriptor() = default;
    explicit OwnDescriptor(int number) noexcept;  // of an object with an inode of its own
    bool is_there() const noexcept;
    int number() const noexcept { return number_; }
    void close() noexcept;

  private:
    int number_ = -1;
    uint64_t device_ = 0, inode_ = 0;
};

uint64_t random_token() noexcept;  // 0 where the system has none

// Rung by its name, by who has a bell himself: its descriptor is readable then, until the rings are
// forgotten. One thread at a time, but for ring() and forget_rings().
class Bell {
  public:
    bool make() noexcept;  // false where the system refuses one
    void close() noexcept { socket_.close(); }
    bool is_there() const noexcept { return socket_.is_there(); }
    int descriptor() const noexcept { return socket_.number(); }
    uint64_t name() const noexcept { return name_; }
    bool ring(uint64_t name) const noexcept;  // false where there is no such bell, or none here
    void forget_rings() const noexcept;

  private:
    OwnDescriptor socket_;
    uint64_t name_ = 0;
};

// ---- doors: sleeping until another process of the node has written something ------------------

// In memory that the processes share; one of each, which it alone opens.
struct Door {
    std::atomic<uint32_t> asleep;   // a thread of the process sleeps, or is about to
    std::atomic<uint32_t> is_deaf;  // somebody cannot ring here: nobody sleeps
    std::atomic<uint64_t> name;     // of the bell; 0: none
};
// This process's door. False where the system refuses a bell. One at a time.
bool open_door(Door* door) noexcept;
void close_door() noexcept;
bool has_door() noexcept;  // and may sleep at it
// Who lies down looks once more, and may then sleep until the descriptor is readable; -1: not here.
// What rings is missed once in a great while, so a sleep must end by itself.
int lie_down_at_door() noexcept;
void get_up_from_door() noexcept;
// Before anybody relies on it, by each peer that has a door: can it be rung?
void test_bell(Door& peer) noexcept;
// After something was written that the door's process may wait for. A load, where nobody sleeps.
void ring_at(Door& door) noexcept;
inline void ring_if_asleep(Door& door) noexcept {
    if (door.asleep.load(std::memory_order_relaxed) != 0) [[unlikely]]
        ring_at(door);
}

// Full fences in pairs where one side runs often and the other seldom: the light one costs nothing,
// the heavy one a system call (membarrier(2), private expedited) that runs a fence on every CPU
// with a thread of this process.
bool asymmetric_fences_work() noexcept;  // asks the kernel on first use
inline void light_fence(bool asymmetric) noexcept {
    if (asymmetric)
        std::atomic_signal_fence(std::memory_order_seq_cst);
    else
        std::atomic_thread_fence(std::memory_order_seq_cst);
}
bool heavy_fence(bool asymmetric) noexcept;  // false where the kernel refuses it

// ---- floating-point environment --------------------------------------------------------------

// Rounding, flush-to-zero, precision and traps of a thread; not the flags that operations raise.
struct FloatEnvironment {
    uint32_t vector;  // MXCSR, or FPCR on aarch64
    uint32_t x87;     // control word; long double on x86-64
    bool operator==(const FloatEnvironment&) const = default;
};
FloatEnvironment float_environment() noexcept;  // of the calling thread
void set_float_environment(
    const FloatEnvironment& wanted) noexcept;  // clears the flags if it changes

// ---- loaded libraries ----------------------------------------------------------------------

struct LoadedLibrary {
    std::string path;
    std::string soname;
};
// In link-map order (RTLD_LOCAL libraries too). Never loads anything.
std::vector<LoadedLibrary> loaded_libraries();
// How often the loader has loaded one so far: as long as this stays, no other is there.
uint64_t libraries_ever_loaded() noexcept;
// Handle of a library that is already loaded, or null. Never loads anything.
void* handle_of_loaded(const LoadedLibrary& library) noexcept;

// Memory of malloc, which fails without an exception: null.
struct Freed {
    void operator()(void* memory) const noexcept { std::free(memory); }
};
template <class T>
using Buffer = std::unique_ptr<T[], Freed>;

template <class T>
Buffer<T> allocate(size_t elements) noexcept {
    return Buffer<T>(static_cast<T*>(std::malloc(std::max<size_t>(elements, 1) * sizeof(T))));
}

// Memory that a forked child sees as zeros (MADV_WIPEONFORK), zeroed here too; null on failure.
void* allocate_wiped_on_fork(size_t bytes) noexcept;

}  // namespace vecmpi::base

// Its names are the vocabulary of all folders.
namespace vecmpi {
using namespace base;
}
