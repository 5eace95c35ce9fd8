// SPDX-License-Identifier: BSD-3-Clause
// Test on all, Wait and Test on any and some, of virtual, real and null requests.
#include "mixed_requests.hpp"

namespace vecmpi::offload {

namespace {

// Wait or Test on several requests. Of real ones alone ask_library(&rc) asks, a call of the
// library; else look(mixed, may_call, &rc) does. Both say whether they are finished. Returns rc.
template <class AskLibrary, class Look>
int complete(bool blocking, int count, MPI_Request requests[], AskLibrary ask_library,
             Look look) noexcept {
    int rc = MPI_SUCCESS;
    if (!any_virtual(count, requests)) {
        run(blocking, [&](bool may_call) noexcept {
            return may_call && (ask_library(&rc) || rc != MPI_SUCCESS);
        });
        return rc;
    }
    MixedRequests mixed(count, requests);
    if (const int refused = mixed.check(); refused != MPI_SUCCESS) return refused;
    run(blocking, [&](bool may_call) noexcept { return look(mixed, may_call, &rc); });
    return rc;
}

int complete_all(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) noexcept {
    *flag = 0;
    return complete(
        false, count, requests,
        [=](int* rc) noexcept {
            *rc = real.Testall(count, requests, flag, statuses);
            return *flag != 0;
        },
        [=](MixedRequests& mixed, bool may_call, int* rc) noexcept {
            if (!mixed.look_at_all(may_call, rc)) return false;
            if (*rc != MPI_SUCCESS && *rc != MPI_ERR_IN_STATUS)
                return true;  // the library refused its part: nothing was completed
            *flag = mixed.all_complete();
            *rc = mixed.report_all(statuses);
            return true;
        });
}

int complete_any(bool blocking, int count, MPI_Request requests[], int* index, int* flag,
                 MPI_Status* status) noexcept {
    *flag = 0;
    *index = MPI_UNDEFINED;
    return complete(
        blocking, count, requests,
        [=](int* rc) noexcept {
            *rc = real.Testany(count, requests, index, flag, status);
            // None was active. MPICH's Testany writes no status then, its Waitany an empty one.
            if (*rc == MPI_SUCCESS && *flag && *index == MPI_UNDEFINED) set_empty(status);
            return *flag != 0;
        },
        [=](MixedRequests& mixed, bool may_call, int* rc) noexcept {
            *flag = mixed.find_any(may_call, index, status, rc);
            return *flag != 0;
        });
}

int complete_some(bool blocking, int count, MPI_Request requests[], int* outcount, int indices[],
                  MPI_Status statuses[]) noexcept {
    *outcount = 0;
    return complete(
        blocking, count, requests,
        [=](int* rc) noexcept {
            *rc = real.Testsome(count, requests, outcount, indices, statuses);
            return *outcount != 0;
        },
        [=](MixedRequests& mixed, bool may_call, int* rc) noexcept {
            return mixed.find_some(may_call, outcount, indices, statuses, rc);
        });
}

}  // namespace

int wait_any(int count, MPI_Request requests[], int* index, MPI_Status* status) noexcept {
    if (!index || is_missing(status) || hand_on(count, requests))
        return real.Waitany(count, requests, index, status);
    int flag;
    return after_job_errors(complete_any(true, count, requests, index, &flag, status));
}

int test_any(int count, MPI_Request requests[], int* index, int* flag,
             MPI_Status* status) noexcept {
    if (!index || !flag || is_missing(status) || hand_on(count, requests))
        return real.Testany(count, requests, index, flag, status);
    return after_job_errors(complete_any(false, count, requests, index, flag, status));
}

int test_all(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) noexcept {
    if (!flag || is_missing(statuses) || hand_on(count, requests))
        return real.Testall(count, requests, flag, statuses);
    return after_job_errors(complete_all(count, requests, flag, statuses));
}

int wait_some(int incount, MPI_Request requests[], int* outcount, int indices[],
              MPI_Status statuses[]) noexcept {
    if (!outcount || !indices || is_missing(statuses) || hand_on(incount, requests))
        return real.Waitsome(incount, requests, outcount, indices, statuses);
    return after_job_errors(complete_some(true, incount, requests, outcount, indices, statuses));
}

int test_some(int incount, MPI_Request requests[], int* outcount, int indices[],
              MPI_Status statuses[]) noexcept {
    if (!outcount || !indices || is_missing(statuses) || hand_on(incount, requests))
        return real.Testsome(incount, requests, outcount, indices, statuses);
    return after_job_errors(complete_some(false, incount, requests, outcount, indices, statuses));
}

}  // namespace vecmpi::offload
