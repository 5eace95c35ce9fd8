// SPDX-License-Identifier: BSD-3-Clause
// The table of requests of the fake MPI library. Holds no test.
#include "fake_table.hpp"

#include <algorithm>

namespace fake {

Library library;
std::atomic<int> InsideLibrary::most{0};

namespace {

std::atomic<int> at_once{0};

constexpr unsigned first_handle = 0xac000000u;  // requests of MPICH look like this

MPI_Request handle_of(size_t index) {
    return static_cast<MPI_Request>(first_handle + static_cast<unsigned>(index));
}

}  // namespace

// Relaxed: `most` is looked at after the threads are joined.
InsideLibrary::InsideLibrary() {
    const int now = at_once.fetch_add(1, std::memory_order_relaxed) + 1;
    int seen = most.load(std::memory_order_relaxed);
    while (seen < now && !most.compare_exchange_weak(seen, now, std::memory_order_relaxed)) {
    }
}

InsideLibrary::~InsideLibrary() { at_once.fetch_sub(1, std::memory_order_relaxed); }

Request* request_of(MPI_Request handle) {
    const unsigned index = static_cast<unsigned>(handle) - first_handle;
    if (index >= library.requests.size()) return nullptr;
    Request& request = library.requests[index];
    return request.state == State::gone || request.freed ? nullptr : &request;
}

void note(What what, int label) {
    library.events.push_back({what, label, std::this_thread::get_id()});
}

void set_complete(Request& request, int error) {
    if (request.state == State::active) --library.active;
    request.state = request.freed ? State::gone : State::complete;
    request.error = error;
}

void activate(Request& request) {
    request.state = State::active;
    request.looks = 0;
    request.cancelled = false;
    library.most_active = std::max(library.most_active, ++library.active);
}

MPI_Request add(int label, const Plan& plan, bool is_persistent) {
    Request request;
    request.label = label;
    request.plan = plan;
    request.persistent = is_persistent;
    request.state = State::inactive;
    library.requests.push_back(request);
    if (!is_persistent) activate(library.requests.back());
    return handle_of(library.requests.size() - 1);
}

void look_at(Request& request) {
    if (request.state == State::active && request.plan.looks != on_command &&
        ++request.looks >= request.plan.looks)
        set_complete(request, request.plan.error);
}

MPI_Status empty_status() {
    MPI_Status status{};
    status.MPI_SOURCE = MPI_ANY_SOURCE;
    status.MPI_TAG = MPI_ANY_TAG;
    return status;
}

MPI_Status status_of(const Request& request) {
    MPI_Status status{};
    status.MPI_SOURCE = request.label;
    status.MPI_TAG = request.label + 1;
    status.count_hi_and_cancelled = request.cancelled ? 1 : 0;  // the lowest bit, as in MPICH
    return status;
}

void give_status(const MPI_Status& from, MPI_Status* to) {
    if (to == MPI_STATUS_IGNORE) return;
    const int kept = to->MPI_ERROR;
    *to = from;
    to->MPI_ERROR = kept;
}

}  // namespace fake
