// SPDX-License-Identifier: BSD-3-Clause
// Sleeping until UCX has something. ucp_init_version is interposed, to ask for the wake-up feature
// (UCP_FEATURE_WAKEUP). ucp_worker_arm promises that the worker's descriptor becomes readable with
// the next event. A worker is armed where it was polled, under the library's lock.
#include "wakeup.hpp"

#include <dirent.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "base/api/needs.hpp"

namespace vecmpi::library {

thread_local constinit Arming arming = {};
thread_local constinit bool is_announced = false;
constinit std::atomic<uint32_t> sleepers{0};

namespace {

constinit std::atomic<bool> granted{false}, wakes{false};
constinit bool wanted_in_init = false;  // in MPI_Init

// ---- functions of UCX ---------------------------------------------------------------------------

using GetDescriptor = UcxStatus (*)(void* worker, int* descriptor);
using Arm = UcxStatus (*)(void* worker);
// Found in MPI_Init: who polls must not ask the loader.
constinit std::atomic<GetDescriptor> get_descriptor{nullptr};
constinit std::atomic<Arm> arm_worker{nullptr};

bool find_functions(uintptr_t caller) noexcept {
    const auto get = definition_for(caller, "ucp_worker_get_efd").address;
    const auto arm = definition_for(caller, "ucp_worker_arm").address;
    get_descriptor.store(reinterpret_cast<GetDescriptor>(get), std::memory_order_relaxed);
    arm_worker.store(reinterpret_cast<Arm>(arm), std::memory_order_relaxed);
    return get != nullptr && arm != nullptr;
}

// ---- bells: by them other threads of the process wake a sleeper ---------------------------------

enum class BellState : uint32_t { free, awake, asleep };
struct alignas(64) ThreadBell {
    std::atomic<BellState> state{BellState::free};
    Bell bell;  // made once, before somebody sleeps; kept for who is next
};
constexpr size_t most_bells = 16;  // further threads yield
constinit ThreadBell bells[most_bells];

// Made in MPI_Init, one before and one after UCX's descriptors. A program that closes all
// descriptors, or all from some number on, closes one of these. Then UCX's must not be touched.
constinit Bell first_sentinel, last_sentinel;
bool descriptors_stand() noexcept { return first_sentinel.is_there() && last_sentinel.is_there(); }

thread_local constinit ThreadBell* own_bell __attribute__((tls_model("initial-exec"))) = nullptr;

// Gives a thread's bell back when the thread ends. (A thread_local with a destructor asks the
// loader.)
constinit std::atomic<bool> bells_come_back{false};
pthread_key_t key_of_bell;

void make_bells_come_back() noexcept {
    if (bells_come_back.load(std::memory_order_relaxed)) return;
    const auto give_back = [](void* bell) {
        forget_armed();
        own_bell = nullptr;  // the thread may still call MPI, and get another one
        static_cast<ThreadBell*>(bell)->state.store(BellState::free, std::memory_order_release);
    };
    if (pthread_key_create(&key_of_bell, give_back) == 0)
        bells_come_back.store(true, std::memory_order_release);
}

// Null where all are in use.
ThreadBell* bell_of_thread() noexcept {
    if (own_bell != nullptr) return own_bell;
    if (!bells_come_back.load(std::memory_order_acquire)) return nullptr;
    for (ThreadBell& one : bells) {
        BellState nobody = BellState::free;
        if (!one.state.compare_exchange_strong(nobody, BellState::awake, std::memory_order_acq_rel))
            continue;
        if ((one.bell.is_there() || one.bell.make()) && pthread_setspecific(key_of_bell, &one) == 0)
            return own_bell = &one;
        one.state.store(BellState::free, std::memory_order_release);
        return nullptr;
    }
    return nullptr;
}

// From here on whoever moves something rings. Sequentially consistent, as polls are after our look:
// other polls come later under the library's lock, or see this.
bool lie_down() noexcept {
    ThreadBell* const own = bell_of_thread();
    if (own == nullptr) return false;
    own->state.store(BellState::asleep, std::memory_order_release);
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    return true;
}

void get_up() noexcept {
    sleepers.fetch_sub(1, std::memory_order_relaxed);
    const BellState before = own_bell->state.exchange(BellState::awake, std::memory_order_acquire);
    if (before == BellState::asleep) return;
    own_bell->bell.forget_rings();  // one may still be on its way: then the next sleep is short
}

// ---- what UCX is asked for in MPI_Init ----------------------------------------------------------

// The beginning of ucp_params_t (ucp/api/ucp.h): bits say which fields are set, features is the
// first. Later fields are copied without knowledge, by the offsets of their ends on LP64.
struct UcxParams {
    uint64_t fields = 0, features = 0;
    unsigned char others[72] = {};
};
constexpr uint64_t has_features = 1, wakeup_feature = uint64_t{1} << 4;
constexpr size_t end_of_field[] = {16, 24, 32, 40, 48, 52, 64, 72, 80, 84};

// Copies what the caller has set. False where it has fields that we do not know.
bool copy_params(const void* params, UcxParams& copy) noexcept {
    uint64_t fields;
    std::memcpy(&fields, params, sizeof fields);
    if ((fields & has_features) == 0 || (fields >> std::size(end_of_field)) != 0) return false;
    size_t bytes = 0;
    for (size_t bit = 0; bit < std::size(end_of_field); ++bit)
        if ((fields >> bit & 1) != 0) bytes = end_of_field[bit];
    std::memcpy(&copy, params, bytes);
    return true;
}

bool has_entries(const char* folder) noexcept {
    DIR* const list = opendir(folder);
    if (list == nullptr) return false;
    bool any = false;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): a list of our own
    for (const dirent* entry; !any && (entry = readdir(list)) != nullptr;)
        any = entry->d_name[0] != '.';
    closedir(list);
    return any;
}

// May UCX use one of these transports, by what the user named?
bool may_use_one(std::initializer_list<const char*> transports) noexcept {
    const char* const named = std::getenv("UCX_TLS");  // NOLINT(concurrency-mt-unsafe): in MPI_Init
    if (named == nullptr) return true;
    for (const char* one : transports)
        if (named[0] != '^' && std::strstr(named, one) != nullptr) return true;
    return false;
}

// Waking takes descriptors, and UCX fails where none are left.
bool has_descriptors() noexcept {
    constexpr rlim_t enough = 256;
    rlimit limit{};
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= enough;
}

// UCX leaves out transports that cannot wake, and finds no path to a peer where none is left. TCP
// and the memory of a node can. Its `self` cannot: a message of a rank to itself goes through
// memory (0.15 us instead of 0.11), or by TCP (4 us). Where there is no memory, and where there are
// faster networks or accelerators, the user must ask for it.
bool may_ask_for_wakeup() noexcept {
    if (!wanted_in_init || !may_have(Trait::wakeup) || !may_have(Trait::polls) ||
        !has_descriptors())
        return false;
    const bool by_memory = may_use_one({"sm", "shm", "posix", "sysv", "all"});
    if (settings().wait == WaitMode::sleep) return by_memory || may_use_one({"tcp"});
    return by_memory && !has_entries("/sys/class/infiniband") &&
           access("/dev/nvidiactl", F_OK) != 0 && access("/dev/kfd", F_OK) != 0;
}

using Init = UcxStatus (*)(unsigned major, unsigned minor, const void* params, const void* config,
                           void** context);

UcxStatus init_with_wakeup(Init init, unsigned major, unsigned minor, const void* params,
                           const void* config, void** context, uintptr_t caller) noexcept {
    UcxParams wider;
    if (!copy_params(params, wider) || !find_functions(caller))
        return init(major, minor, params, config, context);
    wider.features |= wakeup_feature;
    const UcxStatus status = init(major, minor, &wider, config, context);
    if (status != 0) return init(major, minor, params, config, context);
    make_bells_come_back();
    if (!first_sentinel.is_there()) first_sentinel.make();
    granted.store(true, std::memory_order_relaxed);
    return status;
}

// Sleeps of this thread that another one of the process has cut short, where several slept.
class ShortSleeps {
  public:
    void note(bool by_crowd, uint64_t slept_us) noexcept {
        constexpr uint64_t short_us = 200;
        constexpr unsigned most = 8, least_again = 6;
        constexpr uint64_t pause_us = 50'000;
        if (by_crowd && slept_us < short_us)
            ++more_than_others_;
        else if (more_than_others_ > 0)
            --more_than_others_;
        if (more_than_others_ < most) return;
        more_than_others_ = least_again;
        until_us_ = monotonic_us() + pause_us;
    }
    bool are_the_rule() noexcept {
        if (until_us_ == 0) return false;
        if (monotonic_us() < until_us_) return true;
        until_us_ = 0;
        return false;
    }

  private:
    unsigned more_than_others_ = 0;
    uint64_t until_us_ = 0;  // 0: they are not
};
thread_local constinit ShortSleeps short_sleeps;

}  // namespace

bool sleep_pays() noexcept {
    return settings().wait == WaitMode::sleep || !short_sleeps.are_the_rule();
}

void ring_sleepers() noexcept {
    for (ThreadBell& one : bells) {
        if (one.state.load(std::memory_order_relaxed) != BellState::asleep) continue;
        BellState asleep = BellState::asleep;
        if (one.state.compare_exchange_strong(asleep, BellState::awake, std::memory_order_acq_rel))
            one.bell.ring(one.bell.name());
    }
}

bool arm(void* worker) noexcept {
    if (!descriptors_stand()) {
        wakes.store(false, std::memory_order_relaxed);
        forget_armed();
        return false;
    }
    unsigned place = 0;
    while (place < arming.workers && arming.worker[place] != worker) ++place;
    if (place == Arming::most_workers) return false;
    if (!is_announced && !(is_announced = lie_down())) return false;
    int descriptor = -1;
    const NoCancellation scope;  // UCX reads and sends there
    if (get_descriptor.load(std::memory_order_relaxed)(worker, &descriptor) != 0 ||
        arm_worker.load(std::memory_order_relaxed)(worker) != 0) {
        const bool wanted = arming.wanted;  // it has something, or had: the next poll finds it
        forget_armed();
        arming.wanted = wanted;
        return false;
    }
    arming.found[place] = {descriptor, POLLIN, 0};
    if (place < arming.workers) return arming.complete = true;
    arming.worker[place] = worker;
    ++arming.workers;
    return true;
}

void want_wakeup(bool wanted) noexcept { wanted_in_init = wanted; }
bool library_wakes() noexcept {
    return wakes.load(std::memory_order_relaxed) && bell_of_thread() != nullptr;
}

void prove_wakeup(bool neighbours_by_polls) noexcept {
    // MPICH 4's ch4:ucx has no shared memory of its own between ranks; MPICH 5's has.
    const bool by_polls = neighbours_by_polls || library_is_mpich("4.0");
    const bool may_sleep = by_polls && granted.load(std::memory_order_relaxed);
    if (may_sleep && !last_sentinel.is_there()) last_sentinel.make();
    const bool holds = may_sleep && descriptors_stand();
    wakes.store(note_trait(Trait::wakeup, holds), std::memory_order_relaxed);
    // The first wait sleeps, too. By default entries are bound when a wait wants to sleep.
    if (holds && settings().wait == WaitMode::sleep) set_need(Need::sleepers, true);
}

void forget_armed() noexcept {
    if (is_announced) get_up();
    is_announced = false;
    arming.wanted = arming.complete = false;
    arming.workers = 0;
}

bool sleep_if_armed(uint64_t limit_us, int door) noexcept {
    arming.wanted = false;
    if (arming.workers == 0 && (door < 0 || library_wakes())) return false;
    // poll(2) passes over descriptors below 0.
    pollfd& bell =
        arming.found[arming.workers] = {is_announced ? own_bell->bell.descriptor() : -1, POLLIN, 0};
    pollfd& node = arming.found[arming.workers + 1] = {door, POLLIN, 0};
    const timespec limit{static_cast<time_t>(limit_us / 1000000),
                         static_cast<long>(limit_us % 1000000 * 1000)};
    const uint64_t begin_us = monotonic_us();
    // By number: no point of cancellation. Else an unwinder would pass through frames that do not
    // throw.
    timespec left = limit;  // which the kernel changes
    const long ready = syscall(SYS_ppoll, arming.found, arming.workers + 2, &left, nullptr, 0);
    const bool is_refused = ready < 0 && errno != EINTR;
    const uint64_t slept_us = monotonic_us() - begin_us;
    // This one, the offload thread, and at least one more that waits.
    constexpr uint32_t crowd = 3;
    const bool by_crowd =
        ready > 0 && bell.revents != 0 && sleepers.load(std::memory_order_relaxed) >= crowd;
    short_sleeps.note(by_crowd, slept_us);
    count(Counter::sleeps);
    count(Counter::slept_us, slept_us);
    if (ready > 0)
        count(bell.revents != 0   ? Counter::woken_by_thread
              : node.revents != 0 ? Counter::woken_by_node
                                  : Counter::woken_by_message);
    forget_armed();
    // A descriptor that wakes at once, again and again, may be readable for ever, or be gone. Then
    // this is no sleep.
    constexpr uint64_t least_us = 5;
    return !is_refused && (ready <= 0 || slept_us >= least_us);
}

}  // namespace vecmpi::library

// UCX's prototype: ucs_status_t ucp_init_version(unsigned, unsigned, const ucp_params_t*, const
// ucp_config_t*, ucp_context_h*), which its inline ucp_init() calls.
extern "C" __attribute__((visibility("default"))) vecmpi::library::UcxStatus ucp_init_version(
    unsigned major, unsigned minor, const void* params, const void* config,
    void** context) noexcept {
    using namespace vecmpi::library;
    const auto* const caller = __builtin_return_address(0);
    const auto init = reinterpret_cast<Init>(
        definition_for(reinterpret_cast<uintptr_t>(caller), "ucp_init_version").address);
    const bool by_library = in_one_object(caller, reinterpret_cast<const void*>(real.Comm_size));
    if (by_library) disconnect_endpoints(true);  // a session may come after MPI_Finalize
    if (by_library && may_ask_for_wakeup())
        return init_with_wakeup(init, major, minor, params, config, context,
                                reinterpret_cast<uintptr_t>(caller));
    return init(major, minor, params, config, context);
}
