// SPDX-License-Identifier: BSD-3-Clause
// The twelve ways to complete requests, chosen at random. Must not depend on which request
// completes first.
#include "completion.hpp"

#include <algorithm>

namespace battery {

bool Completion::all_done() const {
    return std::all_of(done_.begin(), done_.end(), [](bool done) { return done; });
}

// A request that was done before gives the empty status in calls that take them all.
void Completion::note(size_t i, const MPI_Status& status, bool with_status) {
    if (done_[i]) {
        if (with_status) check_empty(status);
        return;
    }
    done_[i] = true;
    if (with_status) statuses_[i] = status;
}

void Completion::note_all(const std::vector<MPI_Status>& statuses, bool with_statuses) {
    for (size_t i = 0; i < requests_.size(); ++i) note(i, statuses[i], with_statuses);
}

void Completion::step_one(Random& random, bool with_statuses, int way) {
    const auto i = static_cast<size_t>(random.below(count()));
    MPI_Status status;
    MPI_Status* place = with_statuses ? &status : MPI_STATUS_IGNORE;
    int flag = 1;
    if (way == 0) MPI_Wait(&requests_[i], place);
    if (way == 1) MPI_Test(&requests_[i], &flag, place);
    if (way == 2) {  // twice: it must not free the request
        MPI_Request_get_status(requests_[i], &flag, MPI_STATUS_IGNORE);
        if (flag) MPI_Request_get_status(requests_[i], &flag, place);
        if (flag) MPI_Wait(&requests_[i], place);
    }
    if (flag) note(i, status, with_statuses);
}

void Completion::step_all(bool with_statuses, bool wait) {
    std::vector<MPI_Status> statuses(requests_.size());
    MPI_Status* place = with_statuses ? statuses.data() : MPI_STATUSES_IGNORE;
    int flag = 1;
    if (wait)
        MPI_Waitall(count(), requests_.data(), place);
    else
        MPI_Testall(count(), requests_.data(), &flag, place);
    if (flag) note_all(statuses, with_statuses);
}

void Completion::step_any(bool with_statuses, bool wait) {
    MPI_Status status;
    MPI_Status* place = with_statuses ? &status : MPI_STATUS_IGNORE;
    int index = -7;
    int flag = 1;
    if (wait)
        MPI_Waitany(count(), requests_.data(), &index, place);
    else
        MPI_Testany(count(), requests_.data(), &index, &flag, place);
    if (!flag) return;
    if (index != MPI_UNDEFINED) {
        check(!done_[static_cast<size_t>(index)], "Waitany gives an active request");
        return note(static_cast<size_t>(index), status, with_statuses);
    }
    check(all_done(), "Waitany is undefined only when nothing is active");
    if (with_statuses) check_empty(status);
}

void Completion::step_some(bool with_statuses, bool wait) {
    std::vector<MPI_Status> statuses(requests_.size());
    std::vector<int> indices(requests_.size());
    MPI_Status* place = with_statuses ? statuses.data() : MPI_STATUSES_IGNORE;
    int completed = -7;
    const auto call = wait ? MPI_Waitsome : MPI_Testsome;
    call(count(), requests_.data(), &completed, indices.data(), place);
    if (completed == MPI_UNDEFINED)
        return check(all_done(), "Waitsome is undefined only when nothing is active");
    check(!wait || completed > 0, "Waitsome completes at least one");
    for (int k = 0; k < completed; ++k) {
        const auto i = static_cast<size_t>(indices[static_cast<size_t>(k)]);
        check(!done_[i], "Waitsome gives active requests");
        note(i, statuses[static_cast<size_t>(k)], with_statuses);
    }
}

void Completion::step(Random& random, bool with_statuses) {
    const int way = random.below(9);
    if (requests_.empty()) return;
    if (way < 3) return step_one(random, with_statuses, way);
    const bool wait = way % 2 == 0;
    if (way < 5) return step_all(with_statuses, wait);
    if (way < 7) return step_any(with_statuses, wait);
    step_some(with_statuses, wait);
}

void Completion::finish(Random& random, bool with_statuses) {
    for (size_t i = 0; i < requests_.size(); ++i)
        if (requests_[i] == MPI_REQUEST_NULL) done_[i] = true;
    while (!all_done()) step(random, with_statuses);
}

std::vector<MPI_Status> complete(Random& random, std::vector<MPI_Request>& requests) {
    Completion completion(requests);
    completion.finish(random);
    std::vector<MPI_Status> statuses(requests.size());
    for (size_t i = 0; i < requests.size(); ++i) statuses[i] = completion.status(i);
    return statuses;
}

}  // namespace battery
