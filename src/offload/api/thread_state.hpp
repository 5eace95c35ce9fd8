// SPDX-License-Identifier: BSD-3-Clause
// What a thread is doing right now. Decides nothing: others ask.
#pragma once

#include <cstdint>

#include "base/api/waiting.hpp"

namespace vecmpi::offload {

// A thread may be in several of these at once, and in one of them again: a poll of the library
// looks at a job, inside a call of the engine's owner.
enum class Inside : uint8_t {
    library = 1 << 0,  // a real function that we called: calls from here are the library's own
    engine = 1 << 1,   // this thread owns the engine
    issuing = 1 << 2,  // it holds the right to issue, see Engine::IssueScope
    job = 1 << 3,      // Job::advance()
    wait = 1 << 4,     // a wait of the engine, which rests by itself
    poll = 1 << 5,     // a poll of the library, which looks at jobs
};
constexpr uint8_t operator|(Inside one, Inside other) noexcept {
    return static_cast<uint8_t>(static_cast<uint8_t>(one) | static_cast<uint8_t>(other));
}

// Loader's static TLS: no allocation on access.
struct ThreadState {
    uint8_t inside = 0;  // a bit for each of Inside
    bool is_offload_thread = false;
    FailingLooks failing_looks;

    bool is(Inside what) const noexcept { return (inside & static_cast<uint8_t>(what)) != 0; }
    // Only where it is not inside that yet.
    void enter(Inside what) noexcept {
        inside = static_cast<uint8_t>(inside | static_cast<uint8_t>(what));
    }
    void leave(Inside what) noexcept {
        inside = static_cast<uint8_t>(inside & ~static_cast<unsigned>(what));
    }
};
extern thread_local constinit ThreadState this_thread __attribute__((tls_model("initial-exec")));

// This thread is inside that, to the end of the scope. Inside::library is for a call of the library
// within a path of ours. As in a DirectCall, calls that come back to MPI are the library's own; but
// nothing is put in order or counted.
class Within {
  public:
    explicit Within(Inside what) noexcept : Within(static_cast<uint8_t>(what)) {}
    explicit Within(uint8_t what) noexcept : before_(this_thread.inside) {
        this_thread.inside = static_cast<uint8_t>(before_ | what);
    }
    ~Within() { this_thread.inside = before_; }
    Within(const Within&) = delete;
    Within& operator=(const Within&) = delete;

  private:
    uint8_t before_;
};

}  // namespace vecmpi::offload
