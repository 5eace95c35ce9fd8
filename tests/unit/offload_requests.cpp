// SPDX-License-Identifier: BSD-3-Clause
// What a program does with requests besides completing them: free, cancel, look, partitions.
// Persistent ones are in offload_persistent.cpp.
#include <catch2/catch.hpp>

#include "running_engine.hpp"

using namespace vecmpi;
using namespace vecmpi::offload;

namespace {

SlotState state_of(MPI_Request request) { return engine->pool.find(request)->state.load(); }

// A virtual request whose operation is complete, but not yet taken by the program.
MPI_Request queued_and_done(int label, const fake::Plan& plan) {
    MPI_Request request = queued(label, plan);
    REQUIRE(eventually([request] {
        step_as_owner();
        return state_of(request) == SlotState::done;
    }));
    return request;
}

}  // namespace

TEST_CASE("Request_free of an active operation lets it complete", "[offload][requests]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    const bool is_persistent = GENERATE(false, true);
    if (is_persistent && mode == Mode::callers) return;
    FreshLibrary library;
    RunningEngine running(mode);
    MPI_Request request;
    if (is_persistent) {
        request = made_persistent(1);
        CHECK(start(&request) == MPI_SUCCESS);
    } else {
        request = queued(1);
    }
    const MPI_Request handle = request;
    REQUIRE(eventually([] { return fake::is_active(1); }));
    CHECK(request_free(&request) == MPI_SUCCESS);
    CHECK(request == MPI_REQUEST_NULL);
    CHECK(engine->pool.find(handle) == nullptr);
    CHECK(fake::is_active(1));
    CHECK(fake::has_event(fake::What::free, 1));
    MPI_Request next = queued(2, {.looks = 1});  // the window has closed the gap
    CHECK(wait_one(&next, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    fake::complete(1);
    CHECK_FALSE(fake::is_allocated(1));
}

TEST_CASE("Request_free of what is still queued issues it first", "[offload][requests]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    MPI_Request request = MPI_REQUEST_NULL;
    engine->own();
    post_fake(1, {}, &request);
    std::thread other([&request] { request_free(&request); });
    CHECK(fake::events().empty());
    engine->leave();
    other.join();
    CHECK(request == MPI_REQUEST_NULL);
    CHECK(fake::labels_of(fake::What::issue) == std::vector<int>{1});
    CHECK(fake::labels_of(fake::What::free) == std::vector<int>{1});
    CHECK(fake::is_active(1));
    fake::complete(1);
}

TEST_CASE("Request_free of what is complete", "[offload][requests]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    MPI_Request request = queued_and_done(1, {.looks = 1});
    const MPI_Request handle = request;
    CHECK(request_free(&request) == MPI_SUCCESS);
    CHECK(request == MPI_REQUEST_NULL);
    CHECK(engine->pool.find(handle) == nullptr);
    CHECK_FALSE(fake::is_allocated(1));
    CHECK_FALSE(fake::has_event(fake::What::free, 1));  // Testsome had freed it
}

TEST_CASE("Request_free that the library refuses changes nothing", "[offload][requests]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    MPI_Request request = queued(1, {.free_error = MPI_ERR_OTHER});
    const MPI_Request handle = request;
    CHECK(request_free(&request) == MPI_ERR_OTHER);
    CHECK(request == handle);
    fake::complete(1);
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

// The library walks the window while its callback frees one of the requests in it.
TEST_CASE("Request_free from a callback of Testsome", "[offload][requests]") {
    FreshLibrary library;
    std::vector<MPI_Request> requests(3, MPI_REQUEST_NULL);
    int freed = -1;
    fake::inside_testsome = [&] {
        if (freed == -1) freed = request_free(&requests[0]);
    };
    RunningEngine running(Mode::callers);
    for (int i = 0; i < 3; ++i) requests[static_cast<size_t>(i)] = queued(i + 1, {.looks = 2 + i});
    MPI_Status statuses[2];
    CHECK(wait_all(2, &requests[1], statuses) == MPI_SUCCESS);
    CHECK(freed == MPI_SUCCESS);
    CHECK(requests[0] == MPI_REQUEST_NULL);
    CHECK(statuses[0].MPI_SOURCE == 2);
    CHECK(statuses[1].MPI_SOURCE == 3);
    CHECK_FALSE(fake::is_allocated(1));
}

TEST_CASE("Cancel of an active operation", "[offload][requests]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    MPI_Request request = queued(1);
    CHECK(cancel(&request) == MPI_SUCCESS);
    CHECK(is_virtual(request));
    MPI_Status status = untouched_status();
    CHECK(wait_one(&request, &status) == MPI_SUCCESS);
    CHECK((status.count_hi_and_cancelled & 1) == 1);
    CHECK(fake::labels_of(fake::What::cancel) == std::vector<int>{1});
}

TEST_CASE("Cancel comes too late for what is complete", "[offload][requests]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    MPI_Request request = queued_and_done(1, {.looks = 1, .error = MPI_ERR_TRUNCATE});
    CHECK(cancel(&request) == MPI_SUCCESS);
    MPI_Status status = untouched_status();
    CHECK(wait_one(&request, &status) == MPI_ERR_TRUNCATE);
    CHECK((status.count_hi_and_cancelled & 1) == 0);
    CHECK_FALSE(fake::has_event(fake::What::cancel, 1));
}

TEST_CASE("Request_get_status takes nothing", "[offload][requests]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    MPI_Request request = queued(1);
    int flag = 1;
    MPI_Status status = untouched_status();
    CHECK(request_get_status(request, &flag, &status) == MPI_SUCCESS);
    CHECK(flag == 0);
    CHECK(status.MPI_SOURCE == -77);
    REQUIRE(eventually([] { return fake::is_active(1); }));
    fake::complete(1, MPI_ERR_TRUNCATE);
    int rc = MPI_SUCCESS;
    while (!flag) rc = request_get_status(request, &flag, &status);
    for (int round = 0; round < 2; ++round) {
        CHECK(rc == MPI_ERR_TRUNCATE);
        CHECK(flag == 1);
        CHECK(status.MPI_SOURCE == 1);
        CHECK(status.MPI_ERROR == -77);
        rc = request_get_status(request, &flag, &status);
    }
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_ERR_TRUNCATE);
}

TEST_CASE("Request_get_status of null, real and inactive requests", "[offload][requests]") {
    FreshLibrary library;
    RunningEngine running(Mode::thread);
    MPI_Request inactive = made_persistent(1), active = library_request(2);
    int flag = 0;
    MPI_Status status = untouched_status();
    CHECK(request_get_status(MPI_REQUEST_NULL, &flag, &status) == MPI_SUCCESS);
    CHECK(flag == 1);
    CHECK(is_empty(status));
    status = untouched_status();
    CHECK(request_get_status(inactive, &flag, &status) == MPI_SUCCESS);
    CHECK(flag == 1);
    CHECK(is_empty(status));
    CHECK(request_get_status(active, &flag, &status) == MPI_SUCCESS);
    CHECK(flag == 0);
    fake::complete(2);
    CHECK(wait_one(&active, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(request_free(&inactive) == MPI_SUCCESS);
}

TEST_CASE("looks at several requests: virtual, real, null and inactive ones mix",
          "[offload][requests]") {
    FreshLibrary library;
    RunningEngine running(Mode::thread);
    MPI_Request inactive = made_persistent(1), active = queued(2), own = library_request(3);
    const MPI_Request requests[] = {MPI_REQUEST_NULL, inactive, active, own};
    int index = 0, flag = 1, number = 0, indices[4] = {};
    MPI_Status statuses[4] = {};
    CHECK(request_get_status_any(4, requests, &index, &flag, statuses) == MPI_SUCCESS);
    CHECK((flag == 0 && index == MPI_UNDEFINED));
    CHECK(request_get_status_some(4, requests, &number, indices, statuses) == MPI_SUCCESS);
    CHECK(number == 0);
    CHECK(request_get_status_all(4, requests, &flag, statuses) == MPI_SUCCESS);
    CHECK(flag == 0);
    CHECK(request_is_complete(active) == 0);

    REQUIRE(eventually([] { return fake::is_active(2); }));
    fake::complete(2, MPI_ERR_TRUNCATE);
    REQUIRE(eventually([active] { return request_is_complete(active) == 1; }));
    CHECK(request_get_status_any(4, requests, &index, &flag, statuses) == MPI_ERR_TRUNCATE);
    CHECK((flag == 1 && index == 2 && statuses[0].MPI_SOURCE == 2));
    CHECK(request_get_status_some(4, requests, &number, indices, statuses) == MPI_ERR_IN_STATUS);
    CHECK(statuses[0].MPI_ERROR == MPI_ERR_TRUNCATE);
    CHECK((number == 1 && indices[0] == 2));
    CHECK(request_get_status_all(4, requests, &flag, MPI_STATUSES_IGNORE) == MPI_ERR_IN_STATUS);
    CHECK(flag == 0);
    CHECK(request_get_status_all(4, requests, &flag, statuses) == MPI_ERR_IN_STATUS);
    CHECK((flag == 0 && statuses[1].MPI_ERROR == MPI_SUCCESS));
    CHECK((statuses[2].MPI_ERROR == MPI_ERR_TRUNCATE && statuses[3].MPI_ERROR == MPI_ERR_PENDING));

    fake::complete(3);
    CHECK(request_get_status_some(4, requests, &number, indices, statuses) == MPI_ERR_IN_STATUS);
    CHECK((statuses[0].MPI_ERROR == MPI_ERR_TRUNCATE && statuses[1].MPI_ERROR == MPI_SUCCESS));
    CHECK((number == 2 && indices[0] == 2 && indices[1] == 3));
    CHECK((statuses[0].MPI_SOURCE == 2 && statuses[1].MPI_SOURCE == 3));
    CHECK(request_get_status_all(4, requests, &flag, statuses) == MPI_ERR_IN_STATUS);
    CHECK(flag == 1);
    CHECK((statuses[2].MPI_ERROR == MPI_ERR_TRUNCATE && statuses[3].MPI_ERROR == MPI_SUCCESS));
    CHECK(wait_one(&active, MPI_STATUS_IGNORE) == MPI_ERR_TRUNCATE);  // nothing was taken
    CHECK(wait_one(&own, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(request_get_status_any(2, requests, &index, &flag, statuses) == MPI_SUCCESS);
    CHECK((flag == 1 && index == MPI_UNDEFINED));
    CHECK(is_empty(statuses[0]));
    statuses[1] = untouched_status();
    CHECK(request_get_status_all(2, requests, &flag, statuses) == MPI_SUCCESS);
    CHECK((flag == 1 && statuses[1].MPI_ERROR == -77));
    CHECK(request_get_status_some(2, requests, &number, indices, statuses) == MPI_SUCCESS);
    CHECK(number == MPI_UNDEFINED);
    CHECK(request_free(&inactive) == MPI_SUCCESS);
}

TEST_CASE("with poll functions the thread stands back, and asking makes no progress",
          "[offload][requests]") {
    FreshLibrary library;
    RunningEngine running(Mode::thread);
    std::atomic<int> looks{0};
    fake::inside_test = [&] { ++looks; };
    fake::inside_testsome = fake::inside_test;
    MPI_Request before = queued(1), after = MPI_REQUEST_NULL;
    REQUIRE(eventually([] { return fake::is_active(1); }));
    note_poll_functions();
    CHECK(engine->thread.stands_back());
    looks = 0;
    for (int i = 0; i < 10; ++i) CHECK(request_is_complete(before) == 0);
    fake::complete(1);
    CHECK(request_is_complete(before) == 1);
    CHECK(looks == 0);
    CHECK(wait_one(&before, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(post_fake(2, {.looks = 1}, &after) == MPI_SUCCESS);
    CHECK(fake::thread_of(fake::What::issue, 2) == std::this_thread::get_id());
    CHECK(wait_one(&after, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

TEST_CASE("what was queued for the thread is issued when it stands back", "[offload][requests]") {
    FreshLibrary library;
    RunningEngine running(Mode::thread);
    std::atomic<bool> hold{false}, held{false};
    fake::inside_testsome = [&] {
        for (held = hold.load(); hold;) std::this_thread::yield();
    };
    MPI_Request requests[] = {queued(1), MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    REQUIRE(eventually([] { return fake::is_active(1); }));
    hold = true;
    REQUIRE(eventually([&] { return held.load(); }));
    requests[1] = queued(2);
    requests[2] = queued(3);
    std::thread release([&] {
        eventually([] { return engine->thread.stands_back(); });
        hold = false;
    });
    engine->thread.let_stand_back();
    release.join();
    CHECK((fake::is_active(2) && fake::is_active(3)));
    CHECK(fake::thread_of(fake::What::issue, 3) == std::this_thread::get_id());
    for (int tag = 1; tag <= 3; ++tag) fake::complete(tag);
    CHECK(wait_all(3, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
}

TEST_CASE("partitioned: Pready goes to the started request, Parrived is true when all is there",
          "[offload][requests]") {
    FreshLibrary library;
    RunningEngine running(Mode::thread);
    MPI_Request request = made_persistent(1);
    int flag = 1, partitions[2] = {2, 3};
    CHECK(start(&request) == MPI_SUCCESS);
    CHECK(pready(0, request) == MPI_SUCCESS);
    CHECK(pready_range(0, 1, request) == MPI_SUCCESS);
    CHECK(pready_list(2, partitions, request) == MPI_SUCCESS);
    CHECK(parrived(request, 0, &flag) == MPI_SUCCESS);
    CHECK(flag == 0);
    fake::complete(1);
    for (flag = 0; !flag;) REQUIRE(parrived(request, 0, &flag) == MPI_SUCCESS);
    CHECK(parrived(request, 1, &flag) == MPI_SUCCESS);  // the library's request is inactive by now
    CHECK(flag == 1);
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(request_free(&request) == MPI_SUCCESS);
}

TEST_CASE("requests live on inside MPI_Finalize", "[offload][requests]") {
    FreshLibrary library;
    RunningEngine running(Mode::thread);
    MPI_Request active = queued(1), idle = made_persistent(2, {.looks = 2});
    REQUIRE(eventually([] { return fake::is_active(1); }));
    quiesce_engine();  // now the library deletes the attributes of MPI_COMM_SELF
    CHECK(start(&idle) == MPI_SUCCESS);
    CHECK(wait_one(&idle, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(request_free(&idle) == MPI_SUCCESS);
    CHECK(cancel(&active) == MPI_SUCCESS);
    CHECK(wait_one(&active, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}
