// SPDX-License-Identifier: BSD-3-Clause
// The table of requests of the fake MPI library. For fake_*.cpp only; all of it under Locked but
// what says otherwise.
#pragma once

#include <atomic>

#include "fake_lock.hpp"
#include "fake_mpi.hpp"

namespace fake {

enum class State { inactive, active, complete, gone };

struct Request {
    int label = 0;
    Plan plan;
    State state = State::gone;
    bool persistent = false;
    bool cancelled = false;
    bool freed = false;  // by MPI_Request_free while active
    int looks = 0;
    int error = MPI_SUCCESS;
};

struct Library {
    std::vector<Request> requests;  // never reused: a handle that is used twice is found out
    std::vector<Event> events;
    std::vector<Reduction> reductions;
    MPI_Comm_delete_attr_function* on_delete = nullptr;  // of the one keyval there can be
    bool attribute_set = false;                          // on MPI_COMM_SELF
    int calls_of_testsome = 0;
    int active = 0;
    int most_active = 0;
};

extern Library library;

// A call in which no other may be: counts how many are, for most_at_once(). Without the lock.
class InsideLibrary {
  public:
    InsideLibrary();
    ~InsideLibrary();
    InsideLibrary(const InsideLibrary&) = delete;
    InsideLibrary& operator=(const InsideLibrary&) = delete;
    static std::atomic<int> most;
};

Request* request_of(MPI_Request handle);  // null for a handle that the library does not know
MPI_Request add(int label, const Plan& plan, bool is_persistent);
void activate(Request& request);
void look_at(Request& request);  // complete it if this is the look that finds it so
void set_complete(Request& request, int error);
void note(What what, int label);

// Pure.
MPI_Status empty_status();
MPI_Status status_of(const Request& request);
void give_status(const MPI_Status& from, MPI_Status* to);  // leaves MPI_ERROR alone

// Fill `real`. Without the lock.
void fill_completion();
void reset_communicators();

}  // namespace fake
