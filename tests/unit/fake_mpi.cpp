// SPDX-License-Identifier: BSD-3-Clause
// Requests of the fake MPI library: a table under one lock. Holds no test.
#include "fake_mpi.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "fake_lock.hpp"

namespace fake {

using vecmpi::real;

std::function<void(int)> inside_issue;
std::function<void()> inside_testsome;
std::function<void()> inside_test;
std::function<void(const void*, void*, int)> reduce;

namespace {

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
    int calls_of_testsome = 0;
    int active = 0;
    int most_active = 0;
};
Library library;

// Relaxed: for a look after the threads are joined.
std::atomic<int> at_once{0}, most{0};

class InsideLibrary {
  public:
    InsideLibrary() {
        const int now = at_once.fetch_add(1, std::memory_order_relaxed) + 1;
        int seen = most.load(std::memory_order_relaxed);
        while (seen < now && !most.compare_exchange_weak(seen, now, std::memory_order_relaxed)) {
        }
    }
    ~InsideLibrary() { at_once.fetch_sub(1, std::memory_order_relaxed); }
    InsideLibrary(const InsideLibrary&) = delete;
    InsideLibrary& operator=(const InsideLibrary&) = delete;
};

constexpr unsigned first_handle = 0xac000000u;  // requests of MPICH look like this

MPI_Request handle_of(size_t index) {
    return static_cast<MPI_Request>(first_handle + static_cast<unsigned>(index));
}

// Null for a handle that the library does not know.
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

// What one request contributed to a call, copied out from under the lock.
struct Result {
    int place = 0;
    MPI_Status status{};
    int error = MPI_SUCCESS;
    bool keeps_handle = false;
};

Result take(Request& request, int place) {
    Result result{place, status_of(request), request.error, request.persistent};
    request.state = request.persistent ? State::inactive : State::gone;
    return result;
}

// Single completion leaves MPI_ERROR alone.
void give_status(const MPI_Status& from, MPI_Status* to) {
    if (to == MPI_STATUS_IGNORE) return;
    const int kept = to->MPI_ERROR;
    *to = from;
    to->MPI_ERROR = kept;
}

// ---- completion -------------------------------------------------------------------------------

enum class Kind { unknown, null_or_inactive, pending, complete };

// Looks at one request: its kind, and with `taken` its result if it is complete.
Kind examine(MPI_Request handle, int place, Result* taken) {
    if (handle == MPI_REQUEST_NULL) return Kind::null_or_inactive;
    Request* request = request_of(handle);
    if (!request) return Kind::unknown;
    look_at(*request);
    if (request->state == State::inactive) return Kind::null_or_inactive;
    if (request->state == State::active) return Kind::pending;
    if (taken) *taken = take(*request, place);
    return Kind::complete;
}

Kind examine_locked(MPI_Request handle, int place, Result* taken) {
    const Locked lock;
    return examine(handle, place, taken);
}

int fake_Test(MPI_Request* handle, int* flag, MPI_Status* status) {
    if (inside_test && *handle != MPI_REQUEST_NULL) inside_test();
    Result result;
    const Kind kind = examine_locked(*handle, 0, &result);
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
            const Kind kind = examine(asked[static_cast<size_t>(i)], i, &result);
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
        if (any_failed) statuses[i].MPI_ERROR = results[i].error;
    }
    return any_failed ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

int fake_Testany(int count, MPI_Request handles[], int* index, int* flag, MPI_Status* status) {
    bool any_active = false;
    for (int i = 0; i < count; ++i) {
        Result result;
        const Kind kind = examine_locked(handles[i], i, &result);
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
            kinds[i] = examine(asked[i], static_cast<int>(i), nullptr);
            if (kinds[i] == Kind::unknown) return MPI_ERR_REQUEST;
            any_pending |= kinds[i] == Kind::pending;
            any_failed |= kinds[i] == Kind::complete && request_of(asked[i])->error != MPI_SUCCESS;
        }
        if (!any_pending || any_failed)
            for (size_t i = 0; i < asked.size(); ++i)
                if (kinds[i] == Kind::complete)
                    results[i] = take(*request_of(asked[i]), static_cast<int>(i));
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
    while (flag == 0 && error == MPI_SUCCESS) error = fake_Testany(count, handles, index, &flag, status);
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

// ---- other calls on requests ------------------------------------------------------------------

int fake_Request_free(MPI_Request* handle) {
    const Locked lock;
    Request* request = request_of(*handle);
    if (!request) return MPI_ERR_REQUEST;
    note(What::free, request->label);
    if (request->plan.free_error != MPI_SUCCESS) return request->plan.free_error;
    request->freed = true;
    if (request->state != State::active) request->state = State::gone;
    *handle = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

int fake_Cancel(MPI_Request* handle) {
    const Locked lock;
    Request* request = request_of(*handle);
    if (!request) return MPI_ERR_REQUEST;
    note(What::cancel, request->label);
    if (request->state != State::active) return MPI_SUCCESS;
    request->cancelled = true;
    set_complete(*request, MPI_SUCCESS);
    return MPI_SUCCESS;
}

int fake_Request_get_status(MPI_Request handle, int* flag, MPI_Status* status) {
    MPI_Status found = empty_status();
    int error = MPI_SUCCESS;
    *flag = 1;
    if (handle != MPI_REQUEST_NULL) {
        const Locked lock;
        Request* request = request_of(handle);
        if (!request) return MPI_ERR_REQUEST;
        look_at(*request);
        *flag = request->state != State::active;
        if (request->state == State::complete) {
            found = status_of(*request);
            error = request->error;
        }
    }
    if (*flag) give_status(found, status);
    return error;
}

int fake_Start(MPI_Request* handle) {
    const InsideLibrary inside;
    int label = 0;
    {
        const Locked lock;
        Request* request = request_of(*handle);
        if (!request || !request->persistent || request->state != State::inactive)
            return MPI_ERR_REQUEST;
        label = request->label;
        note(What::start, label);
        if (request->plan.issue_error != MPI_SUCCESS) return request->plan.issue_error;
        activate(*request);
    }
    if (inside_issue) inside_issue(label);
    return MPI_SUCCESS;
}

int fake_Startall(int count, MPI_Request handles[]) {
    for (int i = 0; i < count; ++i)
        if (const int rc = fake_Start(&handles[i]); rc != MPI_SUCCESS) return rc;
    return MPI_SUCCESS;
}

// Partitioned calls are an error on a request that is not active, as in MPICH 4.0.
int on_active(MPI_Request handle) {
    const Locked lock;
    Request* request = request_of(handle);
    if (!request || (request->state != State::active && request->state != State::complete))
        return MPI_ERR_REQUEST;
    note(What::direct, request->label);
    return MPI_SUCCESS;
}

int fake_Pready(int, MPI_Request handle) { return on_active(handle); }
int fake_Pready_range(int, int, MPI_Request handle) { return on_active(handle); }
int fake_Pready_list(int, int*, MPI_Request handle) { return on_active(handle); }
int fake_Parrived(MPI_Request handle, int, int* flag) {
    const int rc = on_active(handle);
    if (rc != MPI_SUCCESS) return rc;
    const Locked lock;
    *flag = request_of(handle)->state == State::complete;
    return MPI_SUCCESS;
}

// ---- reductions -------------------------------------------------------------------------

int bytes_of(MPI_Datatype type) { return (static_cast<unsigned>(type) >> 8) & 0xff; }

int fake_Iallreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype type, MPI_Op,
                    MPI_Comm, MPI_Request* request) {
    if (reduce)
        reduce(sendbuf, recvbuf, count);
    else if (sendbuf != MPI_IN_PLACE)
        std::memcpy(recvbuf, sendbuf, static_cast<size_t>(count) * static_cast<size_t>(bytes_of(type)));
    const Locked lock;
    library.reductions.push_back({sendbuf, recvbuf, count});
    *request = add(-static_cast<int>(library.reductions.size()), Plan{.looks = 1}, false);
    return MPI_SUCCESS;
}

void fill_requests() {
    real.Test = fake_Test;
    real.Testsome = fake_Testsome;
    real.Testany = fake_Testany;
    real.Testall = fake_Testall;
    real.Wait = fake_Wait;
    real.Waitall = fake_Waitall;
    real.Waitany = fake_Waitany;
    real.Waitsome = fake_Waitsome;
    real.Request_free = fake_Request_free;
    real.Cancel = fake_Cancel;
    real.Request_get_status = fake_Request_get_status;
    real.Start = fake_Start;
    real.Startall = fake_Startall;
    real.Pready = fake_Pready;
    real.Pready_range = fake_Pready_range;
    real.Pready_list = fake_Pready_list;
    real.Parrived = fake_Parrived;
}

}  // namespace

void reset() {
    {
        const Locked lock;
        library = Library{};
    }
    most = 0;
    inside_issue = nullptr;
    inside_testsome = nullptr;
    inside_test = nullptr;
    reduce = nullptr;
    real = vecmpi::RealFunctions{};
    fill_requests();
    real.Iallreduce = fake_Iallreduce;
    reset_communicators();
}

int issue(int label, const Plan& plan, MPI_Request* request) noexcept {
    const InsideLibrary inside;
    {
        const Locked lock;
        note(What::issue, label);
    }
    if (inside_issue) inside_issue(label);
    if (plan.issue_error != MPI_SUCCESS || plan.no_request) return plan.issue_error;
    MPI_Request made;
    {
        const Locked lock;
        made = add(label, plan, false);
    }
    *request = made;
    return MPI_SUCCESS;
}

void direct(int label) noexcept {
    const Locked lock;
    note(What::direct, label);
}

MPI_Request persistent(int label, const Plan& plan) noexcept {
    const Locked lock;
    return add(label, plan, true);
}

void complete(int label, int error) {
    const Locked lock;
    for (Request& request : library.requests)
        if (request.label == label && request.state == State::active) set_complete(request, error);
}

bool is_active(int label) {
    const Locked lock;
    return std::ranges::any_of(library.requests, [label](const Request& request) {
        return request.label == label && request.state == State::active;
    });
}

bool is_allocated(int label) {
    const Locked lock;
    return std::ranges::any_of(library.requests, [label](const Request& request) {
        return request.label == label && request.state != State::gone;
    });
}

std::vector<Event> events() {
    const Locked lock;
    return library.events;
}

std::vector<int> labels_of(What what) {
    std::vector<int> labels;
    for (const Event& event : events())
        if (event.what == what) labels.push_back(event.label);
    return labels;
}

bool has_event(What what, int label) {
    const std::vector<int> labels = labels_of(what);
    return std::ranges::find(labels, label) != labels.end();
}

std::thread::id thread_of(What what, int label) {
    for (const Event& event : events())
        if (event.what == what && event.label == label) return event.thread;
    return {};
}

int calls_of_testsome() {
    const Locked lock;
    return library.calls_of_testsome;
}

int most_at_once() { return most.load(std::memory_order_relaxed); }

int most_active() {
    const Locked lock;
    return library.most_active;
}

std::vector<Reduction> reductions() {
    const Locked lock;
    return library.reductions;
}

}  // namespace fake
