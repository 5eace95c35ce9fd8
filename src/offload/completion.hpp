// SPDX-License-Identifier: BSD-3-Clause
// What completing one request and completing several have in common (MPI 4.0, 3.7.3 and 3.7.5). A
// Wait ends in Engine::wait_until, a Test in Engine::progress_once. The calls differ in what an
// attempt must find.
#pragma once

#include <algorithm>

#include "engine.hpp"
#include "job_requests.hpp"
#include "statuses.hpp"

namespace vecmpi::offload {

enum class Readiness { pending, complete, inactive, unknown };
Readiness readiness(const Slot* slot) noexcept;
// The same, but where callers complete it asks the library first.
Readiness ask_for(Slot* slot, bool may_call) noexcept;
// Gives the program the result of a complete virtual request. The slot is free afterwards, or
// inactive if persistent. Returns the request's error.
int consume(Slot* slot, MPI_Request* request, MPI_Status* status) noexcept;

// True where the call goes to the library as it is: no engine is needed, or the library itself
// calls with its own requests.
bool hand_on(int count, const MPI_Request requests[]) noexcept;

inline bool any_virtual(int count, const MPI_Request requests[]) noexcept {
    return requests && std::any_of(requests, requests + std::max(count, 0), is_virtual);
}

// Wait, or Test. True if the attempt was finished.
template <class Attempt>
bool run(bool blocking, Attempt attempt) noexcept {
    if (!blocking) return engine->progress_once(attempt);
    engine->wait_until(attempt);
    return true;
}

}  // namespace vecmpi::offload
