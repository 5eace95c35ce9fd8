// SPDX-License-Identifier: BSD-3-Clause
// process_vm_readv, until all is there.
#include "peer_memory.hpp"

#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace vecmpi::pipeline::node {

namespace {
uint64_t random_word() noexcept {
    uint64_t word = 0;
    if (getrandom(&word, sizeof word, GRND_NONBLOCK) == sizeof word) return word;
    return reinterpret_cast<uintptr_t>(&word);
}
}  // namespace

PeerProcess this_process() noexcept {
    static const uint64_t word = random_word();
    return {reinterpret_cast<uintptr_t>(&word), word, getpid()};
}

bool is_readable(const PeerProcess& peer) noexcept {
    uint64_t word = 0;
    return read_memory(peer, peer.word_address, &word, sizeof word) && word == peer.word;
}

bool are_readable(const PeerProcess& peer,
                  const std::array<uint64_t, tried_addresses>& addresses) noexcept {
    const int errno_of_program = errno;
    unsigned char bytes[tried_addresses];
    const iovec here{bytes, sizeof bytes};
    iovec there[tried_addresses];
    for (size_t i = 0; i < tried_addresses; ++i)
        there[i] = {reinterpret_cast<void*>(static_cast<uintptr_t>(addresses[i])), 1};
    const ssize_t got = process_vm_readv(peer.process, &here, 1, there, tried_addresses, 0);
    errno = errno_of_program;
    return got == static_cast<ssize_t>(sizeof bytes);
}

bool read_memory(const PeerProcess& peer, uint64_t from, void* to, size_t bytes) noexcept {
    const int errno_of_program = errno;
    size_t done = 0;
    while (done < bytes) {
        const iovec here{static_cast<char*>(to) + done, bytes - done};
        const iovec there{reinterpret_cast<void*>(static_cast<uintptr_t>(from + done)),
                          bytes - done};
        const ssize_t got = process_vm_readv(peer.process, &here, 1, &there, 1, 0);
        if (got <= 0) break;
        done += static_cast<size_t>(got);
    }
    errno = errno_of_program;
    return done == bytes;
}

}  // namespace vecmpi::pipeline::node
