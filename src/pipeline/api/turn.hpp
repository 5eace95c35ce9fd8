// SPDX-License-Identifier: BSD-3-Clause
// Part of the door of src/pipeline: a call that takes part in a trial. Paths of ours and the
// library's own call take turns (base/api/trial.hpp), and each call is timed.
#pragma once

#include <cstdint>

#include "base/api/settings.hpp"

namespace vecmpi::pipeline {

// From the choice of who serves the call to its end.
struct TimedTurn {
    void (*end)(const TimedTurn&) noexcept = nullptr;  // null: not timed
    void* whose = nullptr;                             // `end` knows its type
    uint64_t begun_ns = 0, epoch = 0;                  // of the table of communicators
    Collective collective = Collective::allreduce;
};

// Ends with its scope. Moves only where nothing is timed.
class Turn {
  public:
    Turn() = default;
    explicit Turn(const TimedTurn& timed) noexcept : timed_(timed) {}
    ~Turn() {
        if (timed_.end != nullptr) [[unlikely]]
            timed_.end(timed_);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    void forget() noexcept { timed_ = {}; }  // it has no time

  private:
    TimedTurn timed_{};
};

// A path declined, since it is the turn of one that is asked later, or of the library.
inline thread_local constinit TimedTurn turn_of_others
    __attribute__((tls_model("initial-exec"))) = {};
inline TimedTurn take_turn_of_others() noexcept {
    if (turn_of_others.end == nullptr) [[likely]]
        return {};
    const TimedTurn turn = turn_of_others;
    turn_of_others = {};
    return turn;
}

// Ends the job: ranks have chosen differently, and some would wait forever.
[[noreturn]] void choices_differ(Collective collective) noexcept;

}  // namespace vecmpi::pipeline
