// SPDX-License-Identifier: BSD-3-Clause
// The needs of this process, by which entries are bound.
#include "base/api/needs.hpp"

#include <atomic>
#include <mutex>

namespace vecmpi::base {
namespace {

constinit std::mutex changing;
using Bind = void (*)(unsigned needs) noexcept;
constinit Bind bind_again = nullptr;  // with the lock

}  // namespace

// Stored with the lock, after the entries are bound. So whoever finds a need here need not wait.
constinit std::atomic<unsigned> bound_needs{0};

void set_need(unsigned need, bool exists) noexcept {
    if (((bound_needs.load(std::memory_order_acquire) & need) != 0) == exists) return;
    const std::lock_guard lock(changing);
    const unsigned before = bound_needs.load(std::memory_order_relaxed);
    const unsigned needs = exists ? before | need : before & ~need;
    if (bind_again != nullptr && needs != before) bind_again(needs);
    bound_needs.store(needs, std::memory_order_release);
}

void bind_by_needs(void (*bind)(unsigned needs) noexcept) noexcept {
    const std::lock_guard lock(changing);
    bind_again = bind;
    bind(bound_needs.load(std::memory_order_relaxed));
}

}  // namespace vecmpi::base
