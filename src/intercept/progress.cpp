// SPDX-License-Identifier: BSD-3-Clause
// Interposes ucp_worker_progress, which MPICH's ch4:ucx calls in every wait of its own and which
// never gives the CPU away: Init, communicator creation, RMA synchronisation, blocking collectives.
// Must not be used to make progress.
#include "progress.hpp"

#include <atomic>
#include <cstdlib>

#include "elsewhere.hpp"
#include "vecmpi/offload.hpp"

namespace vecmpi {
namespace {

using ProgressFunction = unsigned (*)(void* worker);

unsigned find_and_progress(void* worker) noexcept;

// What the symbol leads to: find_and_progress, then UCX's own function or resting_progress.
// Relaxed: each value may be called by any thread at any time.
constinit std::atomic<ProgressFunction> target{find_and_progress};
// UCX's own function. Stored with release before target leads away from find_and_progress.
constinit std::atomic<ProgressFunction> ucx_progress{nullptr};
constinit std::atomic<bool> seen{false};

WaitPolicy library_policy;
thread_local constinit Ladder library_ladder
    __attribute__((tls_model("initial-exec"))){library_policy};

unsigned resting_progress(void* worker) noexcept {
    const unsigned events = ucx_progress.load(std::memory_order_acquire)(worker);
    if (!seen.load(std::memory_order_relaxed)) [[unlikely]]
        seen.store(true, std::memory_order_relaxed);
    if (note_library_events(events))
        return events;  // the engine's own loop rests, and knows better when
    if (events != 0)
        library_ladder.reset();
    else
        library_ladder.rest();
    return events;
}

bool find_ucx() noexcept {
    if (ucx_progress.load(std::memory_order_acquire) == nullptr)
        ucx_progress.store(
            reinterpret_cast<ProgressFunction>(defined_elsewhere("ucp_worker_progress")),
            std::memory_order_release);
    return ucx_progress.load(std::memory_order_relaxed) != nullptr;
}

// Whoever calls was linked to UCX, so there is a definition; without one no caller could have a
// worker either.
unsigned find_and_progress(void* worker) noexcept {
    if (!find_ucx()) return 0;
    ProgressFunction expected = find_and_progress;
    target.compare_exchange_strong(expected, ucx_progress.load(std::memory_order_relaxed),
                                   std::memory_order_relaxed, std::memory_order_relaxed);
    return ucx_progress.load(std::memory_order_relaxed)(worker);
}

}  // namespace

void rest_in_library(const WaitPolicy& policy) noexcept {
    if (!find_ucx()) return;
    library_policy = policy;
    target.store(resting_progress, std::memory_order_release);
}

bool library_polls_seen() noexcept { return seen.load(std::memory_order_relaxed); }

void stop_resting_in_library() noexcept {
    if (ProgressFunction own = ucx_progress.load(std::memory_order_acquire))
        target.store(own, std::memory_order_relaxed);
}

namespace {
constexpr const char* rendezvous_threshold = "UCX_RNDV_THRESH";
}

EagerUcx::EagerUcx(bool wanted) noexcept
    : set_(wanted && std::getenv(rendezvous_threshold) == nullptr) {
    if (set_) setenv(rendezvous_threshold, "128K", 0);
}

EagerUcx::~EagerUcx() {
    if (set_) unsetenv(rendezvous_threshold);
}

}  // namespace vecmpi

// UCX's prototype: unsigned ucp_worker_progress(ucp_worker_h), the handle being a pointer.
extern "C" __attribute__((visibility("default"))) unsigned ucp_worker_progress(
    void* worker) noexcept {
    return vecmpi::target.load(std::memory_order_acquire)(worker);
}
