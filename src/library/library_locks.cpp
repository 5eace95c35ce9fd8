// SPDX-License-Identifier: BSD-3-Clause
#include "library_locks.hpp"

#include <mutex>
#include <utility>

#include "library/api.hpp"

namespace vecmpi::library {

thread_local constinit AtUnlock at_unlock = {};
constinit std::atomic<pthread_mutex_t*> global_lock{nullptr};
constinit std::atomic<bool> unlocks_come_here{false}, all_locks_come_here{false};

namespace {

// Locks taken before these functions came into place are not counted. That is in MPI_Init, when
// there are no jobs.
int lock_and_count(pthread_mutex_t* mutex) noexcept {
    const int rc = pthread_mutex_lock(mutex);
    at_unlock.locks_held += rc == 0;
    return rc;
}

int try_lock_and_count(pthread_mutex_t* mutex) noexcept {
    const int rc = pthread_mutex_trylock(mutex);
    at_unlock.locks_held += rc == 0;
    return rc;
}

int unlock_and_rest(pthread_mutex_t* mutex) noexcept {
    const int rc = pthread_mutex_unlock(mutex);
    if (at_unlock.locks_held > 0) {
        --at_unlock.locks_held;
        if (at_unlock.locks_held == 0 && std::exchange(at_unlock.polled, false) &&
            global_lock.load(std::memory_order_relaxed) == nullptr) [[unlikely]]
            global_lock.store(mutex, std::memory_order_relaxed);
    }
    if (at_unlock.due != AtUnlock::nothing) do_what_is_due(mutex);
    return rc;
}

// The library's imports, found in MPI_Init: who polls must not ask the loader. A thread that loads
// something may hold the loader's lock and wait for the library's.
struct LockImports {
    std::mutex mutex;
    Watched watched = Watched::none;
    Import lock, try_lock, unlock;
};
constinit LockImports imports;

// True where ours is in place.
template <class Function>
bool exchange(const Import& import, Function ours, Function own, bool wanted) noexcept {
    return import.replace(reinterpret_cast<const void*>(wanted ? ours : own)) && wanted;
}

}  // namespace

void find_library_locks() noexcept {
    const auto* const inside = reinterpret_cast<const void*>(real.Test);
    const std::lock_guard guard(imports.mutex);
    if (imports.lock || imports.unlock) return;
    imports.lock = Import(inside, "pthread_mutex_lock");
    imports.try_lock = Import(inside, "pthread_mutex_trylock");
    imports.unlock = Import(inside, "pthread_mutex_unlock");
}

void watch_library_locks(Watched what) noexcept {
    const std::lock_guard guard(imports.mutex);
    if (imports.watched == what) return;
    imports.watched = what;
    const bool unlocks =
        exchange(imports.unlock, unlock_and_rest, pthread_mutex_unlock, what != Watched::none);
    const bool all = what == Watched::all;
    exchange(imports.lock, lock_and_count, pthread_mutex_lock, all);
    exchange(imports.try_lock, try_lock_and_count, pthread_mutex_trylock, all);
    unlocks_come_here.store(unlocks, std::memory_order_relaxed);
    all_locks_come_here.store(all, std::memory_order_relaxed);
}

}  // namespace vecmpi::library
