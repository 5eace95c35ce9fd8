// SPDX-License-Identifier: BSD-3-Clause
// Why calls of the program must come to vecmpi. Without any reason an entry leads to the MPI
// library's own function. src/intercept binds entries anew when a reason comes or goes;
// src/intercept/handler_classes.hpp says which function needs what. A door of src/base.
#pragma once

#include <atomic>

namespace vecmpi::base {

struct Need {
    // We wait better than the library, or the program has, or may have, a request of the engine's.
    static constexpr unsigned messages = 1u << 0;
    static constexpr unsigned queue = 1u << 1;  // calls may be queued, and others keep order
    static constexpr unsigned twins = 1u << 2;  // blocking collectives run as their twins
    static constexpr unsigned virtual_requests = 1u << 3;  // the program may hold some
    static constexpr unsigned error_handlers = 1u << 4;    // functions of the program
    static constexpr unsigned counting = 1u << 5;          // for the report, tools, a trace
    static constexpr unsigned sleepers = 1u << 7;  // blocked calls sleep: they say that they block
    static constexpr unsigned message_plans = 1u << 6;   // some are to be made
    static constexpr unsigned typed_messages = 1u << 8;  // may be sent and received as bytes
    static constexpr unsigned typed_requests = 1u << 9;  // nonblocking ones too
    // something is left to do of their messages
    static constexpr unsigned freed_requests = 1u << 10;
    static constexpr unsigned typed_transfers = 1u << 11;  // a window and a derived type exist
    static constexpr unsigned held_transfers = 1u << 12;   // what completes them says so
    static constexpr unsigned looks = 1u << 13;  // ranks share CPUs: calls that look once say so
    static constexpr unsigned later_looks = 1u << 14;  // collectives return without a poll
};

// Returns after the entries are bound for it. Only then may the caller hand the program something
// that needs them, such as a virtual request. Any thread; those that change the same need must not
// do so at once. Calls nothing but the bound function.
void set_need(unsigned need, bool exists) noexcept;

// Relaxed: a call that comes for one need asks whether there is another reason to look at it.
extern std::atomic<unsigned> bound_needs;
inline bool has_need(unsigned need) noexcept {
    return (bound_needs.load(std::memory_order_relaxed) & need) != 0;
}

// Calls bind(needs) now, and whenever a need comes or goes; one call at a time.
void bind_by_needs(void (*bind)(unsigned needs) noexcept) noexcept;

}  // namespace vecmpi::base

namespace vecmpi {
using namespace base;
}
