// SPDX-License-Identifier: BSD-3-Clause
// What each caller of an interposed function would have reached without us. Nearly always there is
// only one. Found without a lock. Inside src/library only.
#pragma once

#include <atomic>
#include <mutex>
#include <new>

#include "library/api.hpp"

namespace vecmpi::library {

// Of the MPI library that serves the program; others in the process may call the same function.
inline bool is_of_mpi_library(const CallersChoice& choice) noexcept {
    return choice.is_of(reinterpret_cast<uintptr_t>(real.Comm_size));
}

class CallersChoices {
  public:
    explicit constexpr CallersChoices(const char* symbol) noexcept : symbol_(symbol) {}
    CallersChoice for_caller(uintptr_t caller) noexcept {
        const Known* const known = find(caller);
        return known != nullptr ? known->choice : look_up(caller);
    }

  private:
    struct Known {
        const CallersChoice choice;
        const Known* const next;
    };

    const Known* find(uintptr_t caller) const noexcept {
        const Known* known = last_.load(std::memory_order_acquire);
        while (known != nullptr && !known->choice.is_of(caller)) known = known->next;
        return known;
    }

    // Entries are few, one for each loaded object, and stay: readers hold no lock.
    [[gnu::noinline]] CallersChoice look_up(uintptr_t caller) noexcept {
        const std::lock_guard lock(mutex_);
        if (const Known* const known = find(caller)) return known->choice;
        const CallersChoice choice = definition_for(caller, symbol_);
        if (!choice.is_of(caller)) return choice;
        const Known* const before = last_.load(std::memory_order_relaxed);
        if (const Known* const known = new (std::nothrow) Known{choice, before})
            last_.store(known, std::memory_order_release);
        return choice;
    }

    const char* const symbol_;
    std::mutex mutex_;
    std::atomic<const Known*> last_{nullptr};
};

}  // namespace vecmpi::library
