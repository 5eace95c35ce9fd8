// SPDX-License-Identifier: BSD-3-Clause
// Requests, real and virtual (MPI 4.0, 3.7.3-3.7.5, 3.8, 3.9, 4.2).
#pragma once

#include <mpi.h>

#include "library/api.hpp"
#include "offload/api/operations.hpp"

namespace vecmpi::offload {

inline bool is_virtual(MPI_Request request) noexcept { return library::is_unused_request(request); }

int wait_one(MPI_Request* request, MPI_Status* status) noexcept;
int test_one(MPI_Request* request, int* flag, MPI_Status* status) noexcept;
int wait_any(int count, MPI_Request requests[], int* index, MPI_Status* status) noexcept;
int test_any(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status) noexcept;
int wait_all(int count, MPI_Request requests[], MPI_Status statuses[]) noexcept;
int test_all(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) noexcept;
int wait_some(int incount, MPI_Request requests[], int* outcount, int indices[],
              MPI_Status statuses[]) noexcept;
int test_some(int incount, MPI_Request requests[], int* outcount, int indices[],
              MPI_Status statuses[]) noexcept;
int request_get_status(MPI_Request request, int* flag, MPI_Status* status) noexcept;
int request_get_status_all(int count, const MPI_Request requests[], int* flag,
                           MPI_Status statuses[]) noexcept;
int request_get_status_any(int count, const MPI_Request requests[], int* index, int* flag,
                           MPI_Status* status) noexcept;
int request_get_status_some(int incount, const MPI_Request requests[], int* outcount, int indices[],
                            MPI_Status statuses[]) noexcept;
int request_is_complete(MPI_Request request) noexcept;  // MPICH's extension
int request_free(MPI_Request* request) noexcept;
int cancel(MPI_Request* request) noexcept;
int start(MPI_Request* request) noexcept;
int start_all(int count, MPI_Request requests[]) noexcept;
int pready(int partition, MPI_Request request) noexcept;
int pready_range(int low, int high, MPI_Request request) noexcept;
int pready_list(int length, const int partitions[], MPI_Request request) noexcept;
int parrived(MPI_Request request, int partition, int* flag) noexcept;

// After a real persistent request was made: puts a virtual one in its place where the offload
// thread serves it.
void adopt_persistent(const CallFacts& facts, MPI_Request* app_request) noexcept;

// From now on there may be generalized requests. Only the library's own Waitall completes them
// rightly: the Testall of MPICH 4.0 and 5.0 frees them twice, and ROMIO's collective calls match
// only if all ranks make progress with one request after the other.
void note_generalized_requests() noexcept;
// The same of files and of MPI 4.1's MPI_Buffer_iflush, whose functions wait for nobody. ROMIO
// makes them by calls that come to us, but not in a library of the standard ABI.
void note_file_requests() noexcept;
// From now on the library's progress calls functions of the program (MPIX_Async_start of
// MPICH 4.1). They must not run on the offload thread, which the program does not know. Nothing
// where no engine runs.
void note_poll_functions() noexcept;
// From now on there may be persistent ones that no call of ours has made.
void note_persistent_requests() noexcept;
// A session may have made generalized and persistent requests before the engine ran.
void note_earlier_requests() noexcept;

}  // namespace vecmpi::offload
