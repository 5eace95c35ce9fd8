// SPDX-License-Identifier: BSD-3-Clause
// An MPI library of one process for unit tests: fills `real` with functions that complete requests
// when the test says so and write down who called what. Errors and inactive requests behave as in
// MPICH 4.0. Moves no data.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "offload/api.hpp"

namespace fake {

constexpr int on_command = -1;
constexpr int barrier = -1000000;  // the label of every MPI_Ibarrier

// What MPICH 4.0 does differently with some persistent requests.
enum class Quirk {
    none,
    proc_null,             // complete when started; Testsome and Testany take it for inactive
    persistent_collective  // Testsome reports it again and again; Testall refuses it
};

// How an operation goes. A test names its operations by labels; the status of each holds its label
// as MPI_SOURCE.
struct Plan {
    int looks = on_command;         // the look that finds it complete, 1 being the first
    int error = MPI_SUCCESS;        // of the operation when it is complete
    int issue_error = MPI_SUCCESS;  // of the call that issues it: there is no request then
    bool no_request = false;        // the call does it all and gives MPI_REQUEST_NULL
    int free_error = MPI_SUCCESS;   // of MPI_Request_free: the request stays
    Quirk quirk = Quirk::none;
};

enum class What { issue, start, direct, free, cancel };

struct Event {
    What what;
    int label;
    std::thread::id thread;
};

// Forgets everything and fills `real`.
void reset();

// ---- what an operation of the program under test calls ----------------------------------------

int issue(int label, const Plan& plan, MPI_Request* request) noexcept;
void direct(int label) noexcept;                               // a call that is not queued
MPI_Request persistent(int label, const Plan& plan) noexcept;  // inactive, as after X_init

// ---- what the test does and asks ----------------------------------------------------------------

void complete(int label, int error = MPI_SUCCESS);  // an active operation
bool is_active(int label);                          // issued, neither complete nor freed
bool is_allocated(int label);                       // the library still has the request object
std::vector<Event> events();
std::vector<int> labels_of(What what);  // in the order of the events
bool has_event(What what, int label);
std::thread::id thread_of(What what, int label);
int calls_of_testsome();
int most_at_once();  // calls inside issue, Start and Testsome at the same time
int most_active();   // requests that were active at the same time

// Called without any lock from inside the library, on the thread that is in it. Set them before
// threads run.
extern std::function<void(int label)> inside_issue;
extern std::function<void()> inside_testsome;
extern std::function<void()> inside_test;
extern std::function<void()> inside_question;  // MPI_Comm_test_inter

// ---- communicators ------------------------------------------------------------------------------

struct Communicator {
    int size = 2;
    bool inter = false;
    bool foreign = false;  // its last process is not in MPI_COMM_WORLD
    bool freed = false;    // the library refuses it
    bool marked = false;   // has each attribute that is asked for
    MPI_Errhandler handler = MPI_ERRORS_ARE_FATAL;
};

constexpr MPI_Errhandler user_handler = 0x54000007;  // any value that is no predefined handler

MPI_Comm communicator(int number);  // its handle; number 0 is MPI_COMM_WORLD
Communicator& facts_of(MPI_Comm comm);
int communicator_questions();  // calls of MPI_Comm_test_inter
int handler_references();      // handlers given out by MPI_Comm_get_errhandler and not freed

// What MPI_Finalize does first. False where no attribute was set, or its callback failed.
bool delete_attribute_of_self();

// ---- reductions ---------------------------------------------------------------------------------

struct Reduction {
    const void* sendbuf;
    void* recvbuf;
    int count;
};
// MPI_Iallreduce completes at the first look; its labels are -1, -2 and so on. Without a function
// the result is this rank's own contribution.
extern std::function<void(const void* sendbuf, void* recvbuf, int count)> reduce;
std::vector<Reduction> reductions();

}  // namespace fake
