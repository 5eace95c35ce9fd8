// SPDX-License-Identifier: BSD-3-Clause
// Part of the door of src/pipeline/node: a call that takes part in a trial. Transports of ours and
// the library's own call take turns (base/api/trial.hpp), and each call is timed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/api/settings.hpp"

namespace vecmpi::pipeline::node {

// From the choice of its transport to the end of the call.
struct TimedTurn {
    class NodeComm* node = nullptr;    // null: not timed
    uint64_t begun_ns = 0, epoch = 0;  // of the table of communicators
    Collective collective = Collective::allreduce;
};
void end_turn(const TimedTurn& turn) noexcept;

// Ends with its scope. Moves only where nothing is timed.
class Turn {
  public:
    Turn() = default;
    explicit Turn(const TimedTurn& timed) noexcept : timed_(timed) {}
    ~Turn() {
        if (timed_.node != nullptr) [[unlikely]]
            end_turn(timed_);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

  private:
    const TimedTurn timed_{};
};

// A path of this folder declined, since it is the library's turn.
extern thread_local constinit TimedTurn librarys_turn __attribute__((tls_model("initial-exec")));
inline TimedTurn take_librarys_turn() noexcept {
    if (librarys_turn.node == nullptr) [[likely]]
        return {};
    const TimedTurn turn = librarys_turn;
    librarys_turn = {};
    return turn;
}

}  // namespace vecmpi::pipeline::node
