// SPDX-License-Identifier: BSD-3-Clause
// Descriptors that the program may close, and bells: datagram sockets in the abstract namespace
// (unix(7)). These need no file, leave nothing behind, and are rung by name.
//
// Threads that wait in MPI make system calls by number: these are no points of cancellation
// (pthreads(7)).
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>

#include "base/api.hpp"

namespace vecmpi::base {
namespace {

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

}  // namespace

uint64_t random_token() noexcept {
    uint64_t token = 0;
    while (token == 0)
        if (syscall(SYS_getrandom, &token, sizeof token, 0) != sizeof token) return 0;
    return token;
}

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

void OwnDescriptor::close() noexcept {
    if (is_there()) syscall(SYS_close, number_);
    *this = {};
}

bool Bell::make() noexcept {
    name_ = random_token();
    socket_ = OwnDescriptor(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const Address address = address_of(name_);
    if (name_ != 0 && socket_.number() >= 0 &&
        bind(socket_.number(), reinterpret_cast<const sockaddr*>(&address.name), address.bytes) ==
            0)
        return true;
    close();
    return false;
}

// A bell that is full has been rung often enough.
bool Bell::ring(uint64_t name) const noexcept {
    if (!is_there()) return false;
    const Address address = address_of(name);
    const long sent = syscall(SYS_sendto, socket_.number(), nullptr, 0, MSG_DONTWAIT | MSG_NOSIGNAL,
                              &address.name, address.bytes);
    return sent >= 0 || errno == EAGAIN;
}

void Bell::forget_rings() const noexcept {
    constexpr int most = 64;  // more than a bell keeps by default
    if (!is_there()) return;
    char nothing;
    for (int i = 0; i < most; ++i)
        if (syscall(SYS_recvfrom, socket_.number(), &nothing, sizeof nothing, MSG_DONTWAIT, nullptr,
                    nullptr) < 0)
            return;
}

}  // namespace vecmpi::base
