// SPDX-License-Identifier: BSD-3-Clause
// Interposes ucp_worker_progress, which MPICH's ch4:ucx calls in every wait of its own and which
// never gives the CPU away: Init, communicator creation, RMA synchronisation, blocking collectives.
// Must not be used to make progress.
#include "progress.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "elsewhere.hpp"
#include "imports.hpp"
#include "vecmpi/offload.hpp"

namespace vecmpi {
namespace {

using ProgressFunction = unsigned (*)(void* worker);

// Whom a caller would reach without us. A process may hold two copies of UCX, and a worker of one
// must not come to the other.
struct Route {
    std::atomic<uintptr_t> begin{0};  // the caller's object in memory; stored last, with release
    std::atomic<uintptr_t> end{0};
    std::atomic<ProgressFunction> function{nullptr};
};
constexpr size_t most_routes = 8;
constinit Route routes[most_routes];
constinit std::mutex making_route;

constinit std::atomic<bool> resting{false};
constinit std::atomic<bool> seen{false};
WaitPolicy library_policy;
thread_local constinit Ladder library_ladder
    __attribute__((tls_model("initial-exec"))){library_policy};

// At MPI_THREAD_MULTIPLE the library polls with its lock held, and gives it up for a moment after
// each poll in vain. A thread that rests in the poll keeps the others out, and hands the CPU to one
// that finds the lock taken: threads then starve for seconds. So a rest is due from the poll on,
// and is taken once the lock is free.
thread_local constinit bool rest_due __attribute__((tls_model("initial-exec"))) = false;

int unlock_and_rest(pthread_mutex_t* mutex) noexcept {
    const int rc = pthread_mutex_unlock(mutex);
    if (rest_due) {
        rest_due = false;
        library_ladder.rest();
    }
    return rc;
}

ProgressFunction known_function(uintptr_t caller) noexcept {
    for (const Route& route : routes) {
        const uintptr_t begin = route.begin.load(std::memory_order_acquire);
        if (begin == 0) return nullptr;
        if (caller - begin < route.end.load(std::memory_order_relaxed) - begin)
            return route.function.load(std::memory_order_relaxed);
    }
    return nullptr;
}

void rest_at_unlock(uintptr_t inside) noexcept {
    replace_import(reinterpret_cast<const void*>(inside), "pthread_mutex_unlock",
                   reinterpret_cast<const void*>(unlock_and_rest));
}

// Whoever calls was linked to UCX, so there is a definition. Not kept where the table is full.
ProgressFunction find_function(uintptr_t caller) noexcept {
    const CallersChoice found = definition_for(caller, "ucp_worker_progress");
    const auto function = reinterpret_cast<ProgressFunction>(found.address);
    if (function == nullptr || found.begin == 0) return function;
    const std::lock_guard<std::mutex> lock(making_route);
    if (ProgressFunction already = known_function(caller)) return already;
    for (Route& route : routes) {
        if (route.begin.load(std::memory_order_relaxed) != 0) continue;
        route.end.store(found.end, std::memory_order_relaxed);
        route.function.store(function, std::memory_order_relaxed);
        if (resting.load(std::memory_order_acquire)) rest_at_unlock(caller);
        route.begin.store(found.begin, std::memory_order_release);
        break;
    }
    return function;
}

unsigned rest_after(unsigned events) noexcept {
    if (!seen.load(std::memory_order_relaxed)) [[unlikely]]
        seen.store(true, std::memory_order_relaxed);
    // Under the engine's own loop the loop rests, and knows better when.
    if (note_library_events(events)) return events;
    if (events != 0) {
        library_ladder.reset();
        return events;
    }
    // No unlock came after the last poll: the library holds no lock, or does not give it up here.
    if (rest_due) library_ladder.rest();
    rest_due = true;
    return events;
}

unsigned progress(void* worker, uintptr_t caller) noexcept {
    ProgressFunction function = known_function(caller);
    if (function == nullptr) function = find_function(caller);
    if (function == nullptr) return 0;
    if (!resting.load(std::memory_order_acquire)) return function(worker);
    return rest_after(function(worker));
}

constexpr const char* rendezvous_threshold = "UCX_RNDV_THRESH";

}  // namespace

void rest_in_library(const WaitPolicy& policy) noexcept {
    library_policy = policy;
    resting.store(true, std::memory_order_release);
    // Who polled before, in a session that came first.
    const std::lock_guard<std::mutex> lock(making_route);
    for (const Route& route : routes)
        if (const uintptr_t begin = route.begin.load(std::memory_order_relaxed); begin != 0)
            rest_at_unlock(begin);
}

bool library_polls_seen() noexcept { return seen.load(std::memory_order_relaxed); }

void stop_resting_in_library() noexcept { resting.store(false, std::memory_order_relaxed); }

EagerUcx::EagerUcx(bool wanted) noexcept
    : set_(wanted && std::getenv(rendezvous_threshold) == nullptr) {
    if (set_) setenv(rendezvous_threshold, "40K", 0);
}

EagerUcx::~EagerUcx() {
    if (set_) unsetenv(rendezvous_threshold);
}

}  // namespace vecmpi

// UCX's prototype: unsigned ucp_worker_progress(ucp_worker_h), the handle being a pointer.
extern "C" __attribute__((visibility("default"))) unsigned ucp_worker_progress(
    void* worker) noexcept {
    return vecmpi::progress(worker, reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
}
