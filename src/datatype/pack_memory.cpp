// SPDX-License-Identifier: BSD-3-Clause
#include "pack_memory.hpp"

#include <atomic>

#include "base/api.hpp"

namespace vecmpi::datatype {

namespace {

constinit std::atomic<size_t> taken{0};

size_t most_pack_memory() noexcept {
    constexpr size_t by_default = size_t{64} << 20;
    return settings().pack_memory != 0 ? settings().pack_memory : by_default;
}

}  // namespace

bool take_pack_memory(size_t bytes) noexcept {
    const size_t most = most_pack_memory();
    if (bytes > most) return false;
    if (taken.fetch_add(bytes, std::memory_order_relaxed) + bytes <= most) return true;
    taken.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
}

void give_back_pack_memory(size_t bytes) noexcept {
    taken.fetch_sub(bytes, std::memory_order_relaxed);
}

}  // namespace vecmpi::datatype
