// SPDX-License-Identifier: BSD-3-Clause
// The offload thread: whether there is one, what it does, and how it rests. It runs the engine's
// loop while no thread of the program does.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "base/api.hpp"

namespace vecmpi::offload {

class Engine;

// What the thread is there for. None -> serve by start(); serve -> stand_back -> stood_back by
// let_stand_back(); any -> end -> none by stop().
enum class Duty : uint32_t {
    none,        // there is no thread
    serve,       // it issues what is queued, and makes progress
    stand_back,  // it is to stay out of the library; what is queued may still be its
    stood_back,  // it does, and has left nothing to issue
    end          // it is to end
};

// Whether the thread has a CPU to itself. Changes both ways while it runs: it notices others on its
// CPU, and later tries again.
enum class ThreadCpu : uint32_t { shared, own };

class OffloadThread {
  public:
    explicit OffloadThread(Engine& engine) noexcept : engine_(engine) {}
    OffloadThread(const OffloadThread&) = delete;
    OffloadThread& operator=(const OffloadThread&) = delete;

    bool start(const OffloadPlan& plan) noexcept;
    void stop() noexcept;
    bool exists() const noexcept { return duty() != Duty::none; }
    bool spins() const noexcept { return exists() && has_own_cpu(); }

    // From this call on the thread stays out of the library, and callers issue at once. It goes on
    // with jobs where nobody else would. Never taken back while the engine runs. Any thread may
    // call it. When it returns, the previous owner has left the library, and everything that was
    // queued has been issued. Not so in a callback, for which the owner may be waiting.
    void let_stand_back() noexcept;
    bool stands_back() const noexcept {
        const Duty now = duty();
        return now == Duty::stand_back || now == Duty::stood_back;
    }

    // After something to do was stored: the thread may be parked.
    void wake() noexcept;
    // The float environment of the last poster of a reduction: the thread computes in it from now
    // on, whoever issued the operation. A program thread that issues keeps its own. In an
    // IssueScope.
    void compute_as(const FloatEnvironment& floats) noexcept;

  private:
    // The values of the futex word.
    enum Rest : uint32_t { awake, parked, between_polls };

    static void* entry(void* thread) noexcept;
    Duty duty() const noexcept { return duty_.load(std::memory_order_relaxed); }
    bool has_own_cpu() const noexcept {
        return cpu_.load(std::memory_order_relaxed) == ThreadCpu::own;
    }
    void run() noexcept;
    bool look() noexcept;
    bool park_if_idle() noexcept;
    bool rest_between_polls(uint64_t interval_us) noexcept;
    bool posts_since(uint64_t* posted_before) const noexcept;
    void claim_cpu() noexcept;
    void share_cpu() noexcept;

    Engine& engine_;
    alignas(64) std::atomic<uint32_t> rest_{awake};  // futex word
    std::atomic<Duty> duty_{Duty::none};  // stand_back: stored before the engine is owned
    std::atomic<ThreadCpu> cpu_{ThreadCpu::shared};
    std::atomic<FloatEnvironment> floats_{};  // written in an IssueScope
    FloatEnvironment own_floats_{};           // what the thread has; the thread's alone
    bool fences_are_asymmetric_ = false;      // between wake() and park_if_idle(); set by start()
    OffloadPlan plan_;
    pthread_t thread_{};
};

}  // namespace vecmpi::offload
