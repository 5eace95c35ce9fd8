// SPDX-License-Identifier: BSD-3-Clause
// Test on all, and Wait and Test on any and some, of virtual, real and null requests.
#include "mixture.hpp"

namespace vecmpi::offload {

namespace {

int test_all_of(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) noexcept {
    int rc = MPI_SUCCESS;
    if (!any_virtual(count, requests)) {
        engine->progress_once([&](bool may_call) noexcept {
            *flag = 0;
            if (!may_call) return false;
            rc = real.Testall(count, requests, flag, statuses);
            return *flag != 0 || rc != MPI_SUCCESS;
        });
        return rc;
    }
    Mixture mixture(count, requests);
    if (!mixture.usable()) return MPI_ERR_NO_MEM;
    if (const int bad = mixture.stale(); bad >= 0) return refuse_stale(&requests[bad]);
    *flag = 0;
    if (!engine->progress_once(
            [&](bool may_call) noexcept { return mixture.look_at_all(may_call, &rc); }))
        return MPI_SUCCESS;
    if (rc != MPI_SUCCESS && rc != MPI_ERR_IN_STATUS)
        return rc;  // the library refused its part: nothing was completed
    *flag = mixture.all_complete();
    return mixture.report_all(statuses);
}

int complete_any(bool blocking, int count, MPI_Request requests[], int* index, int* flag,
                 MPI_Status* status) noexcept {
    int rc = MPI_SUCCESS;
    *flag = 0;
    *index = MPI_UNDEFINED;
    if (!any_virtual(count, requests)) {
        run(blocking, [&](bool may_call) noexcept {
            if (!may_call) return false;
            rc = real.Testany(count, requests, index, flag, status);
            return *flag != 0 || rc != MPI_SUCCESS;
        });
        return rc;
    }
    Mixture mixture(count, requests);
    if (!mixture.usable()) return MPI_ERR_NO_MEM;
    if (const int bad = mixture.stale(); bad >= 0) return refuse_stale(&requests[bad]);
    *flag = run(blocking, [&](bool may_call) noexcept {
        return mixture.find_any(may_call, index, status, &rc);
    });
    return rc;
}

int complete_some(bool blocking, int incount, MPI_Request requests[], int* outcount, int indices[],
                  MPI_Status statuses[]) noexcept {
    int rc = MPI_SUCCESS;
    if (!any_virtual(incount, requests)) {
        *outcount = 0;
        run(blocking, [&](bool may_call) noexcept {
            if (!may_call) return false;
            rc = real.Testsome(incount, requests, outcount, indices, statuses);
            return *outcount != 0 || rc != MPI_SUCCESS;
        });
        return rc;
    }
    Mixture mixture(incount, requests);
    if (!mixture.usable()) return MPI_ERR_NO_MEM;
    if (const int bad = mixture.stale(); bad >= 0) return refuse_stale(&requests[bad]);
    *outcount = 0;
    run(blocking, [&](bool may_call) noexcept {
        return mixture.find_some(may_call, outcount, indices, statuses, &rc);
    });
    return rc;
}

}  // namespace

int wait_any(int count, MPI_Request requests[], int* index, MPI_Status* status) noexcept {
    if (!index || !status || hand_on(count, requests))
        return real.Waitany(count, requests, index, status);
    int flag;
    return after_job_errors(complete_any(true, count, requests, index, &flag, status));
}

int test_any(int count, MPI_Request requests[], int* index, int* flag,
             MPI_Status* status) noexcept {
    if (!index || !flag || !status || hand_on(count, requests))
        return real.Testany(count, requests, index, flag, status);
    return after_job_errors(complete_any(false, count, requests, index, flag, status));
}

int test_all(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) noexcept {
    if (!flag || !statuses || hand_on(count, requests))
        return real.Testall(count, requests, flag, statuses);
    return after_job_errors(test_all_of(count, requests, flag, statuses));
}

int wait_some(int incount, MPI_Request requests[], int* outcount, int indices[],
              MPI_Status statuses[]) noexcept {
    if (!outcount || !indices || !statuses || hand_on(incount, requests))
        return real.Waitsome(incount, requests, outcount, indices, statuses);
    return after_job_errors(complete_some(true, incount, requests, outcount, indices, statuses));
}

int test_some(int incount, MPI_Request requests[], int* outcount, int indices[],
              MPI_Status statuses[]) noexcept {
    if (!outcount || !indices || !statuses || hand_on(incount, requests))
        return real.Testsome(incount, requests, outcount, indices, statuses);
    return after_job_errors(complete_some(false, incount, requests, outcount, indices, statuses));
}

}  // namespace vecmpi::offload
