// SPDX-License-Identifier: BSD-3-Clause
// The fake MPI library: all but Test, Wait and communicators. Holds no test.
#include "fake_mpi.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fake_table.hpp"

namespace fake {

using vecmpi::real;

std::function<void(int)> inside_issue;
std::function<void()> inside_testsome;
std::function<void()> inside_test;
std::function<void()> inside_question;
std::function<void(const void*, void*, int)> reduce;

namespace {

// Before anything reads the settings: what was measured on this host is not for tests.
[[maybe_unused]] const int without_profile = setenv("VECMPI_PROFILE", "off", 1);

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

int fake_Request_get_status_any(int count, const MPI_Request handles[], int* index, int* flag,
                                MPI_Status* status) {
    *index = MPI_UNDEFINED;
    *flag = 1;
    for (int i = 0; i < count; ++i) {
        {
            const Locked lock;
            const Request* request = request_of(handles[i]);
            if (!request || request->state == State::inactive) continue;
        }
        const int error = fake_Request_get_status(handles[i], flag, status);
        if (!*flag) continue;
        *index = i;
        return error;
    }
    if (*flag) give_status(empty_status(), status);
    return MPI_SUCCESS;
}

int fake_Request_is_complete(MPI_Request handle) {
    const Locked lock;
    const Request* request = request_of(handle);
    return !request || request->state != State::active;
}

int fake_Start(MPI_Request* handle) {
    const InsideLibrary inside;
    int label = 0;
    {
        const Locked lock;
        Request* request = request_of(*handle);
        if (!request || !request->persistent || request->state == State::active)
            return MPI_ERR_REQUEST;
        label = request->label;
        note(What::start, label);
        if (request->plan.issue_error != MPI_SUCCESS) return request->plan.issue_error;
        activate(*request);
        if (request->plan.quirk == Quirk::proc_null) set_complete(*request, MPI_SUCCESS);
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
        std::memcpy(recvbuf, sendbuf,
                    static_cast<size_t>(count) * static_cast<size_t>(bytes_of(type)));
    const Locked lock;
    library.reductions.push_back({sendbuf, recvbuf, count});
    *request = add(-static_cast<int>(library.reductions.size()), Plan{.looks = 1}, false);
    return MPI_SUCCESS;
}

int fake_Ibarrier(MPI_Comm, MPI_Request* request) {
    const Locked lock;
    *request = add(barrier, Plan{.looks = 1}, false);
    note(What::issue, barrier);
    return MPI_SUCCESS;
}

// ---- attributes of MPI_COMM_SELF: one at most ---------------------------------------------------

constexpr int only_key = 1;

int fake_Comm_create_keyval(MPI_Comm_copy_attr_function*, MPI_Comm_delete_attr_function* on_delete,
                            int* key, void*) {
    const Locked lock;
    library.on_delete = on_delete;
    *key = only_key;
    return MPI_SUCCESS;
}

int fake_Comm_set_attr(MPI_Comm comm, int key, void*) {
    const Locked lock;
    if (comm != MPI_COMM_SELF || key != only_key || !library.on_delete) return MPI_ERR_ARG;
    library.attribute_set = true;
    return MPI_SUCCESS;
}

int fake_Comm_free_keyval(int* key) {
    *key = MPI_KEYVAL_INVALID;
    return MPI_SUCCESS;
}

// ---- generalized requests: complete when their owner says so --------------------------------

int next_generalized = -2000000;  // no test asks for their labels

int fake_Grequest_start(MPI_Grequest_query_function*, MPI_Grequest_free_function*,
                        MPI_Grequest_cancel_function*, void*, MPI_Request* request) {
    const Locked lock;
    *request = add(next_generalized--, Plan{}, false);
    return MPI_SUCCESS;
}

int fake_Grequest_complete(MPI_Request handle) {
    const Locked lock;
    Request* request = request_of(handle);
    if (!request) return MPI_ERR_REQUEST;
    set_complete(*request, MPI_SUCCESS);
    return MPI_SUCCESS;
}

int fake_Get_library_version(char* version, int* length) {
    *length = std::snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING, "MPICH Version:      4.0.2");
    return MPI_SUCCESS;
}

void fill_requests() {
    real.Grequest_start = fake_Grequest_start;
    real.Grequest_complete = fake_Grequest_complete;
    real.Request_free = fake_Request_free;
    real.Cancel = fake_Cancel;
    real.Request_get_status = fake_Request_get_status;
    // Versions of mpi.h differ in const.
    real.Request_get_status_any = [](int count, auto* handles, int* index, int* flag,
                                     MPI_Status* status) {
        return fake_Request_get_status_any(count, handles, index, flag, status);
    };
    real.X_Request_is_complete = fake_Request_is_complete;
    real.Start = fake_Start;
    real.Startall = fake_Startall;
    real.Pready = fake_Pready;
    real.Pready_range = fake_Pready_range;
    real.Pready_list = [](int, auto*, MPI_Request handle) { return on_active(handle); };
    real.Parrived = fake_Parrived;
}

// Only asked whether one buffer may be both.
int fake_Alltoallv(const void* sendbuf, const int*, const int*, MPI_Datatype, void* recvbuf,
                   const int*, const int*, MPI_Datatype, MPI_Comm) {
    return sendbuf == recvbuf ? MPI_ERR_BUFFER : MPI_SUCCESS;
}

}  // namespace

void reset() {
    {
        const Locked lock;
        library = Library{};
    }
    InsideLibrary::most = 0;
    inside_issue = nullptr;
    inside_testsome = nullptr;
    inside_test = nullptr;
    inside_question = nullptr;
    reduce = nullptr;
    real = vecmpi::library::RealFunctions{};
    fill_completion();
    fill_requests();
    real.Get_library_version = fake_Get_library_version;
    real.Iallreduce = fake_Iallreduce;
    real.Ibarrier = fake_Ibarrier;
    real.Alltoallv = fake_Alltoallv;
    real.Comm_create_keyval = fake_Comm_create_keyval;
    real.Comm_set_attr = fake_Comm_set_attr;
    real.Comm_free_keyval = fake_Comm_free_keyval;
    reset_communicators();
}

bool delete_attribute_of_self() {
    MPI_Comm_delete_attr_function* on_delete = nullptr;
    {
        const Locked lock;
        if (!library.attribute_set) return false;
        library.attribute_set = false;
        on_delete = library.on_delete;
    }
    return on_delete(MPI_COMM_SELF, only_key, nullptr, nullptr) == MPI_SUCCESS;
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

int most_at_once() { return InsideLibrary::most.load(std::memory_order_relaxed); }

int most_active() {
    const Locked lock;
    return library.most_active;
}

std::vector<Reduction> reductions() {
    const Locked lock;
    return library.reductions;
}

}  // namespace fake
