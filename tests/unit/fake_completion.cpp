// SPDX-License-Identifier: BSD-3-Clause
// Test and Wait of the fake MPI library, all on examine(). Holds no test.
#include "fake_table.hpp"

namespace fake {

using vecmpi::real;

namespace {

// What one request contributed to a call, copied out from under the lock.
struct Result {
    int place = 0;
    MPI_Status status{};
    int error = MPI_SUCCESS;
    bool keeps_handle = false;
};

// Which calls ask: MPICH 4.0 treats some requests differently in them, see Quirk.
enum class Asker { test, testsome_or_any, testall };

Result take(Request& request, int place, Asker asker) {
    Result result{place, status_of(request), request.error, request.persistent};
    const bool again =
        request.plan.quirk == Quirk::persistent_collective && asker == Asker::testsome_or_any;
    if (!again) request.state = request.persistent ? State::inactive : State::gone;
    return result;
}

enum class Kind { unknown, null_or_inactive, pending, complete };

// Looks at one request: its kind, and with `taken` its result if it is complete.
Kind examine(MPI_Request handle, int place, Asker asker, Result* taken) {
    if (handle == MPI_REQUEST_NULL) return Kind::null_or_inactive;
    Request* request = request_of(handle);
    if (!request) return Kind::unknown;
    const Quirk quirk = request->plan.quirk;
    if (quirk == Quirk::persistent_collective && asker == Asker::testall) return Kind::unknown;
    if (quirk == Quirk::proc_null && asker == Asker::testsome_or_any) return Kind::null_or_inactive;
    look_at(*request);
    if (request->state == State::inactive) return Kind::null_or_inactive;
    if (request->state == State::active) return Kind::pending;
    if (taken) *taken = take(*request, place, asker);
    return Kind::complete;
}

Kind examine_locked(MPI_Request handle, int place, Asker asker, Result* taken) {
    const Locked lock;
    return examine(handle, place, asker, taken);
}

int fake_Test(MPI_Request* handle, int* flag, MPI_Status* status) {
    if (inside_test && *handle != MPI_REQUEST_NULL) inside_test();
    Result result;
    const Kind kind = examine_locked(*handle, 0, Asker::test, &result);
    if (kind == Kind::unknown) return MPI_ERR_REQUEST;  // the flag stays as it was
    *flag = kind != Kind::pending;
    if (kind == Kind::pending) return MPI_SUCCESS;
    give_status(kind == Kind::complete ? result.status : empty_status(), status);
    if (kind == Kind::complete && !result.keeps_handle) *handle = MPI_REQUEST_NULL;
    return result.error;
}

int fake_Testsome(int count, MPI_Request handles[], int* outcount, int indices[],
                  MPI_Status statuses[]) {
    const InsideLibrary inside;
    if (inside_testsome) inside_testsome();
    const std::vector<MPI_Request> asked(handles, handles + count);
    std::vector<Result> results;
    bool any_active = false, any_unknown = false, any_failed = false;
    {
        const Locked lock;
        ++library.calls_of_testsome;
        for (int i = 0; i < count; ++i)
            any_unknown |= asked[static_cast<size_t>(i)] != MPI_REQUEST_NULL &&
                           !request_of(asked[static_cast<size_t>(i)]);
        for (int i = 0; i < count && !any_unknown; ++i) {
            Result result;
            const Kind kind =
                examine(asked[static_cast<size_t>(i)], i, Asker::testsome_or_any, &result);
            any_active |= kind != Kind::null_or_inactive;
            if (kind == Kind::complete) results.push_back(result);
            any_failed |= result.error != MPI_SUCCESS;
        }
    }
    if (any_unknown) return MPI_ERR_REQUEST;
    *outcount = any_active ? static_cast<int>(results.size()) : MPI_UNDEFINED;
    for (size_t i = 0; i < results.size(); ++i) {
        indices[i] = results[i].place;
        if (!results[i].keeps_handle) handles[results[i].place] = MPI_REQUEST_NULL;
        if (statuses == MPI_STATUSES_IGNORE) continue;
        give_status(results[i].status, &statuses[i]);
        // MPICH 4.3 and later lose the error of a persistent one.
        if (any_failed) statuses[i].MPI_ERROR = results[i].keeps_handle ? 0 : results[i].error;
    }
    return any_failed ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

int fake_Testany(int count, MPI_Request handles[], int* index, int* flag, MPI_Status* status) {
    bool any_active = false;
    for (int i = 0; i < count; ++i) {
        Result result;
        const Kind kind = examine_locked(handles[i], i, Asker::testsome_or_any, &result);
        if (kind == Kind::unknown) return MPI_ERR_REQUEST;
        any_active |= kind == Kind::pending;
        if (kind != Kind::complete) continue;
        *flag = 1;
        *index = i;
        give_status(result.status, status);
        if (!result.keeps_handle) handles[i] = MPI_REQUEST_NULL;
        return result.error;
    }
    *flag = !any_active;
    *index = MPI_UNDEFINED;
    if (*flag) give_status(empty_status(), status);
    return MPI_SUCCESS;
}

// All or nothing, but an error ends it early: what is still pending gets MPI_ERR_PENDING then.
int fake_Testall(int count, MPI_Request handles[], int* flag, MPI_Status statuses[]) {
    const std::vector<MPI_Request> asked(handles, handles + count);
    std::vector<Kind> kinds(asked.size());
    std::vector<Result> results(asked.size());
    bool any_pending = false, any_failed = false;
    {
        const Locked lock;
        for (size_t i = 0; i < asked.size(); ++i) {
            kinds[i] = examine(asked[i], static_cast<int>(i), Asker::testall, nullptr);
            if (kinds[i] == Kind::unknown) return MPI_ERR_REQUEST;
            any_pending |= kinds[i] == Kind::pending;
            any_failed |= kinds[i] == Kind::complete && request_of(asked[i])->error != MPI_SUCCESS;
        }
        if (!any_pending || any_failed)
            for (size_t i = 0; i < asked.size(); ++i)
                if (kinds[i] == Kind::complete)
                    results[i] = take(*request_of(asked[i]), static_cast<int>(i), Asker::testall);
    }
    *flag = !any_pending;
    if (any_pending && !any_failed) return MPI_SUCCESS;
    for (size_t i = 0; i < asked.size(); ++i) {
        const bool complete = kinds[i] == Kind::complete;
        if (complete && !results[i].keeps_handle) handles[i] = MPI_REQUEST_NULL;
        if (statuses == MPI_STATUSES_IGNORE) continue;
        if (kinds[i] != Kind::pending)
            give_status(complete ? results[i].status : empty_status(), &statuses[i]);
        if (any_failed)
            statuses[i].MPI_ERROR = kinds[i] == Kind::pending ? MPI_ERR_PENDING : results[i].error;
    }
    return any_failed ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

int fake_Wait(MPI_Request* handle, MPI_Status* status) {
    int flag = 0, error = MPI_SUCCESS;
    while (flag == 0 && error == MPI_SUCCESS) error = fake_Test(handle, &flag, status);
    return error;
}

int fake_Waitall(int count, MPI_Request handles[], MPI_Status statuses[]) {
    int flag = 0, error = MPI_SUCCESS;
    while (flag == 0 && error == MPI_SUCCESS) error = fake_Testall(count, handles, &flag, statuses);
    return error;
}

int fake_Waitany(int count, MPI_Request handles[], int* index, MPI_Status* status) {
    int flag = 0, error = MPI_SUCCESS;
    while (flag == 0 && error == MPI_SUCCESS)
        error = fake_Testany(count, handles, index, &flag, status);
    return error;
}

int fake_Waitsome(int count, MPI_Request handles[], int* outcount, int indices[],
                  MPI_Status statuses[]) {
    int error = MPI_SUCCESS;
    *outcount = 0;
    while (*outcount == 0 && error == MPI_SUCCESS)
        error = fake_Testsome(count, handles, outcount, indices, statuses);
    return error;
}

}  // namespace

void fill_completion() {
    real.Test = fake_Test;
    real.Testsome = fake_Testsome;
    real.Testany = fake_Testany;
    real.Testall = fake_Testall;
    real.Wait = fake_Wait;
    real.Waitall = fake_Waitall;
    real.Waitany = fake_Waitany;
    real.Waitsome = fake_Waitsome;
}

}  // namespace fake
