// SPDX-License-Identifier: BSD-3-Clause
// What completing one request and completing several have in common (MPI 4.0, 3.7.3 and 3.7.5). All
// end in one loop, Engine::wait_until, or one look, Engine::progress_once; they differ in what one
// attempt must find.
#pragma once

#include <algorithm>

#include "engine.hpp"

namespace vecmpi::offload {

// The library's own answer for a null or inactive request, MPI_ERROR left alone.
void set_empty(MPI_Status* status) noexcept;
void copy_status(const MPI_Status& from, MPI_Status* to) noexcept;
// Beside an error of another request, those that have none say so.
void no_errors(MPI_Status statuses[], int from, int to) noexcept;

enum class Readiness { pending, complete, inactive, unknown };
Readiness readiness(const Slot* slot) noexcept;
// Where callers complete, the state is what the library says now.
Readiness ask_for(Slot* slot, bool may_call) noexcept;
// Takes the result of a complete virtual request: the slot is free afterwards, or inactive if
// persistent.
int consume(Slot* slot, MPI_Request* request, MPI_Status* status) noexcept;

// The library's own call: no engine is needed, or the library itself is asking about its own
// requests.
bool hand_on(int count, const MPI_Request requests[]) noexcept;

inline bool any_virtual(int count, const MPI_Request requests[]) noexcept {
    return requests && std::any_of(requests, requests + std::max(count, 0), is_virtual);
}

// Until the attempt is finished, or once.
template <class Attempt>
bool run(bool blocking, Attempt attempt) noexcept {
    if (!blocking) return engine->progress_once(attempt);
    engine->wait_until(attempt);
    return true;
}

}  // namespace vecmpi::offload
