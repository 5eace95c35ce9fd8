// SPDX-License-Identifier: BSD-3-Clause
// Doors: a process that waits for memory which it shares with others of its node sleeps until one
// of them rings. A datagram socket in the abstract namespace (unix(7)): no file, nothing stays
// behind, and one descriptor however many the others are.
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <mutex>

#include "vecmpi/base.hpp"

namespace vecmpi {
namespace {

// Of this process. A forked child has the descriptor, and not the memory.
struct OwnDoor {
    std::mutex mutex;  // of opening, closing, lying down and getting up
    std::atomic<Door*> door{nullptr};
    OwnDescriptor bell;
    uint32_t sleepers = 0;  // threads
};
constinit OwnDoor own;

struct Address {
    sockaddr_un name{};
    socklen_t bytes = 0;
};
Address address_of(uint64_t name) noexcept {
    Address address;
    address.name.sun_family = AF_UNIX;
    char* const text = address.name.sun_path + 1;  // a name that begins with 0 is no file's
    const int length = std::snprintf(text, sizeof address.name.sun_path - 1, "vecmpi-%016llx",
                                     static_cast<unsigned long long>(name));
    address.bytes =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
    return address;
}

// System calls by number: a thread that waits in MPI is in no point of cancellation (pthreads(7)).

// Who has rung often has left the bell full: no more is needed.
bool ring_bell(uint64_t name) noexcept {
    const Address address = address_of(name);
    const long sent = syscall(SYS_sendto, own.bell.number(), nullptr, 0,
                              MSG_DONTWAIT | MSG_NOSIGNAL, &address.name, address.bytes);
    return sent >= 0 || errno == EAGAIN;
}

void forget_rings() noexcept {
    constexpr int most = 64;  // more than a bell keeps by default
    char nothing;
    for (int i = 0; i < most; ++i)
        if (syscall(SYS_recvfrom, own.bell.number(), &nothing, sizeof nothing, MSG_DONTWAIT,
                    nullptr, nullptr) < 0)
            return;
}

}  // namespace

OwnDescriptor::OwnDescriptor(int number) noexcept {
    struct stat status {};
    if (number < 0 || fstat(number, &status) != 0) return;
    number_ = number;
    device_ = status.st_dev;
    inode_ = status.st_ino;
}

bool OwnDescriptor::is_there() const noexcept {
    struct stat status {};
    return number_ >= 0 && fstat(number_, &status) == 0 && status.st_dev == device_ &&
           status.st_ino == inode_;
}

bool open_door(Door* door) noexcept {
    const std::lock_guard lock(own.mutex);
    uint64_t name = 0;
    if (getrandom(&name, sizeof name, 0) != sizeof name || name == 0) return false;
    const int bell = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bell < 0) return false;
    const Address address = address_of(name);
    if (bind(bell, reinterpret_cast<const sockaddr*>(&address.name), address.bytes) != 0) {
        syscall(SYS_close, bell);
        return false;
    }
    own.bell = OwnDescriptor(bell);
    own.sleepers = 0;
    door->asleep.store(0, std::memory_order_relaxed);
    door->is_deaf.store(0, std::memory_order_relaxed);
    door->name.store(name, std::memory_order_release);
    own.door.store(door, std::memory_order_release);
    return true;
}

void close_door() noexcept {
    const std::lock_guard lock(own.mutex);
    if (own.door.exchange(nullptr, std::memory_order_relaxed) == nullptr) return;
    if (own.bell.is_there()) syscall(SYS_close, own.bell.number());
    own.bell = {};
}

bool has_door() noexcept {
    const Door* const door = own.door.load(std::memory_order_acquire);
    return door != nullptr && door->is_deaf.load(std::memory_order_relaxed) == 0;
}

int lie_down_at_door() noexcept {
    const std::lock_guard lock(own.mutex);
    Door* const door = own.door.load(std::memory_order_relaxed);
    if (door == nullptr || door->is_deaf.load(std::memory_order_relaxed) != 0) return -1;
    if (!own.bell.is_there()) {
        door->is_deaf.store(1, std::memory_order_relaxed);
        return -1;
    }
    // Those who were rung for are awake, or about to be.
    if (own.sleepers++ == 0 || door->asleep.load(std::memory_order_relaxed) == 0) forget_rings();
    // Before our next look, for who writes after it. His store may still be on its way to us when
    // he sees nobody asleep: then the sleep ends by itself.
    door->asleep.store(1, std::memory_order_seq_cst);
    return own.bell.number();
}

void get_up_from_door() noexcept {
    const std::lock_guard lock(own.mutex);
    Door* const door = own.door.load(std::memory_order_relaxed);
    if (door == nullptr || own.sleepers == 0) return;
    if (--own.sleepers == 0) door->asleep.store(0, std::memory_order_relaxed);
}

void test_bell(Door& peer) noexcept {
    const std::lock_guard lock(own.mutex);
    if (!own.bell.is_there() || !ring_bell(peer.name.load(std::memory_order_acquire)))
        peer.is_deaf.store(1, std::memory_order_relaxed);
}

// Once for each time somebody lay down: the first who rings says so.
void ring_at(Door& door) noexcept {
    if (door.asleep.exchange(0, std::memory_order_relaxed) == 0) return;
    const std::lock_guard lock(own.mutex);
    if (!own.bell.is_there() || !ring_bell(door.name.load(std::memory_order_relaxed)))
        door.is_deaf.store(1, std::memory_order_relaxed);
}

}  // namespace vecmpi
