// SPDX-License-Identifier: BSD-3-Clause
// A model of a machine's CPUs, by which ways of waiting are compared: ranks whose waiting threads
// exchange messages in rounds, beside threads that compute. A step of the model is 1 us. Not a
// model of caches, nor of any one scheduler: time slices in turn, a yield goes to the end of the
// queue, who is woken goes to its head and takes the CPU of one that computes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/api.hpp"

namespace vecmpi::test {

struct SimulatedJob {
    int cpus, ranks, computing;   // threads that compute, of each rank
    int64_t compute_us;           // each of them, in all
    int rounds;                   // messages of each rank, each awaited by the next one
    int64_t work_us, latency_us;  // CPU time of a message, and its way
    bool can_be_woken = true;
};

class SimulatedCpus {
  public:
    SimulatedCpus(const SimulatedJob& job, const WaitPolicy& policy)
        : job_(job), policy_(policy), running_(static_cast<size_t>(job.cpus), nobody) {
        for (int rank = 0; rank < job.ranks; ++rank) {
            threads_.push_back({.rank = rank, .left_us = job.work_us});
            for (int i = 0; i < job.computing; ++i) threads_.push_back({.left_us = job.compute_us});
        }
        for (int i = 0; i < static_cast<int>(threads_.size()); ++i) queue_.push_back(i);
        arrives_us_.assign(static_cast<size_t>(job.ranks), {});
    }

    // When all is done; most_us where it is not by then.
    int64_t run(int64_t most_us) {
        for (now_us_ = 0; now_us_ < most_us && !all_done(); ++now_us_) {
            wake_sleepers();
            for (int& thread : running_) give_time(thread);
        }
        return now_us_;
    }

  private:
    static constexpr int nobody = -1;
    static constexpr int64_t slice_us = 3000, never_us = INT64_MAX;
    static constexpr int64_t longest_sleep_us = 1000,
                             wake_us = 5;  // of the library's, the kernel's
    static constexpr uint32_t looks_in_us = 20;

    struct Thread {
        int rank = nobody;  // of one that waits for messages
        int64_t left_us;    // of the work under way
        int rounds = 0;     // done
        int64_t slice_left_us = slice_us;
        uint32_t steps = 0;
        int64_t yielded_us = never_us;  // since when it waits for its CPU to come back
        int64_t sleeps_since_us = never_us;
        Neighbours neighbours{};
    };

    bool is_done(const Thread& thread) const {
        return thread.rank == nobody ? thread.left_us <= 0 : thread.rounds == job_.rounds;
    }
    bool all_done() const {
        return std::all_of(threads_.begin(), threads_.end(),
                           [this](const Thread& one) { return is_done(one); });
    }
    bool has_arrived(const Thread& thread) const {
        const int from = (thread.rank + job_.ranks - 1) % job_.ranks;
        const auto& sent = arrives_us_[static_cast<size_t>(from)];
        const auto round = static_cast<size_t>(thread.rounds);
        return sent.size() > round && sent[round] <= now_us_;
    }

    void wake_sleepers() {
        for (int i = 0; i < static_cast<int>(threads_.size()); ++i) {
            Thread& thread = threads_[static_cast<size_t>(i)];
            if (thread.sleeps_since_us == never_us) continue;
            if (!has_arrived(thread) && now_us_ - thread.sleeps_since_us < longest_sleep_us)
                continue;
            thread.sleeps_since_us = never_us;
            thread.left_us = wake_us;
            wakes_up(i);
        }
    }
    void wakes_up(int woken) {
        const auto computes = [this](int thread) {
            return thread != nobody && threads_[static_cast<size_t>(thread)].rank == nobody;
        };
        const auto idle = std::find(running_.begin(), running_.end(), nobody);
        const auto taken = idle != running_.end()
                               ? idle
                               : std::find_if(running_.begin(), running_.end(), computes);
        if (taken == running_.end()) return queue_.push_front(woken);
        if (*taken != nobody) queue_.push_front(*taken);
        *taken = woken;
    }

    // 1 us of a CPU.
    void give_time(int& running) {
        if (running == nobody) {
            if (queue_.empty()) return;
            running = queue_.front();
            queue_.pop_front();
            Thread& next = threads_[static_cast<size_t>(running)];
            if (next.yielded_us != never_us)
                next.neighbours.yielded(static_cast<uint64_t>(now_us_ - next.yielded_us),
                                        static_cast<uint64_t>(now_us_), policy_.long_yields);
            next.yielded_us = never_us;
        }
        Thread& thread = threads_[static_cast<size_t>(running)];
        --thread.slice_left_us;
        const bool keeps = thread.left_us > 0 ? (work(thread), true) : wait(thread);
        if (is_done(thread) || thread.sleeps_since_us != never_us) {
            running = nobody;
        } else if (!queue_.empty() && (!keeps || thread.slice_left_us <= 0)) {
            queue_.push_back(running);
            thread.slice_left_us = slice_us;
            running = nobody;
        } else if (!keeps) {
            thread.yielded_us = never_us;  // nobody took it up
        }
    }
    void work(Thread& thread) {
        if (--thread.left_us > 0 || thread.rank == nobody) return;
        auto& sent = arrives_us_[static_cast<size_t>(thread.rank)];
        if (static_cast<int>(sent.size()) == thread.rounds)  // not the work of waking up
            sent.push_back(now_us_ + job_.latency_us);
    }
    // False where it gives the CPU away.
    bool wait(Thread& thread) {
        if (has_arrived(thread)) {
            ++thread.rounds;
            thread.left_us = job_.work_us;
            thread.steps = 0;
            return true;
        }
        const auto now_us = static_cast<uint64_t>(now_us_);
        switch (next_rest(policy_, thread.steps,
                          {job_.can_be_woken, thread.neighbours.compute(now_us)})) {
            case Rest::look:
            case Rest::pause:
                thread.steps = policy_.pauses == UINT32_MAX ? 0 : thread.steps + looks_in_us;
                thread.steps = std::min(thread.steps, policy_.spins + policy_.pauses);
                return true;
            case Rest::yield:
                thread.yielded_us = now_us_;
                return false;
            case Rest::sleep:
            case Rest::timed_sleep:
                thread.sleeps_since_us = now_us_;
                return false;
        }
        return true;
    }

    const SimulatedJob job_;
    const WaitPolicy policy_;
    std::vector<Thread> threads_;
    std::deque<int> queue_;                         // of threads that want a CPU
    std::vector<int> running_;                      // by CPU
    std::vector<std::vector<int64_t>> arrives_us_;  // by rank that sent it, and round
    int64_t now_us_ = 0;
};

}  // namespace vecmpi::test
