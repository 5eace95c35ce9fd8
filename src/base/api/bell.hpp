// SPDX-License-Identifier: BSD-3-Clause
// Bells, which processes of a node ring by name.
#pragma once

#include <cstdint>

namespace vecmpi::base {

// A descriptor of ours. The program may close it and open another file under its number, which must
// be left alone.
class OwnDescriptor {
  public:
    OwnDescriptor() = default;
    explicit OwnDescriptor(int number) noexcept;  // of an object with an inode of its own
    bool is_there() const noexcept;
    int number() const noexcept { return number_; }
    void close() noexcept;

  private:
    int number_ = -1;
    uint64_t device_ = 0, inode_ = 0;
};

uint64_t random_token() noexcept;  // 0 where the system has none

// A bell is rung by name, by a process that has one itself. Its descriptor is readable then, until
// forget_rings(). One thread at a time, but for ring() and forget_rings().
class Bell {
  public:
    bool make() noexcept;  // false where the system refuses one
    void close() noexcept { socket_.close(); }
    bool is_there() const noexcept { return socket_.is_there(); }
    int descriptor() const noexcept { return socket_.number(); }
    uint64_t name() const noexcept { return name_; }
    bool ring(uint64_t name) const noexcept;  // false where there is no such bell, or none here
    void forget_rings() const noexcept;

  private:
    OwnDescriptor socket_;
    uint64_t name_ = 0;
};

}  // namespace vecmpi::base
