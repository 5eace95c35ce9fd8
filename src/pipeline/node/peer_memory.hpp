// SPDX-License-Identifier: BSD-3-Clause
// Reading the memory of another process of this node: single copy, by process_vm_readv(2). The
// system may forbid it: ptrace_scope, another user, a container without the right, a kernel without
// it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace vecmpi::pipeline::node {

// How a process is found, and known to be the right one: two PID namespaces use the same numbers.
struct PeerProcess {
    uint64_t word_address = 0, word = 0;
    int32_t process = 0;
};

PeerProcess this_process() noexcept;
// Reads the word of that process.
bool is_readable(const PeerProcess& peer) noexcept;
// A byte at each of these addresses; in one call.
constexpr size_t tried_addresses = 4;
bool are_readable(const PeerProcess& peer,
                  const std::array<uint64_t, tried_addresses>& addresses) noexcept;
// From so many bytes on it may be faster than two copies.
constexpr size_t worth_a_system_call = size_t{32} << 10;
// All of it, or false.
bool read_memory(const PeerProcess& peer, uint64_t from, void* to, size_t bytes) noexcept;

}  // namespace vecmpi::pipeline::node
