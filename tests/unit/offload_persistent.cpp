// SPDX-License-Identifier: BSD-3-Clause
// Persistent requests: inactive, started, complete, inactive again; and where the library keeps
// them.
#include <catch2/catch.hpp>

#include "running_engine.hpp"

using namespace vecmpi;
using namespace vecmpi::offload;

TEST_CASE("persistent: inactive, started, complete, inactive again", "[offload][requests]") {
    FreshLibrary library;
    RunningEngine running(Mode::thread);
    MPI_Request request = made_persistent(1, {.looks = 2});
    REQUIRE(is_virtual(request));
    const MPI_Request handle = request;
    MPI_Status status = untouched_status();
    CHECK(wait_one(&request, &status) == MPI_SUCCESS);  // inactive: at once, empty status
    CHECK(is_empty(status));
    for (int round = 0; round < 3; ++round) {
        CHECK(start(&request) == MPI_SUCCESS);
        status = untouched_status();
        CHECK(wait_one(&request, &status) == MPI_SUCCESS);
        CHECK(status.MPI_SOURCE == 1);
        CHECK(status.MPI_ERROR == -77);
        CHECK(request == handle);
        int flag = 0;
        CHECK(test_one(&request, &flag, &status) == MPI_SUCCESS);
        CHECK(flag == 1);
        CHECK(is_empty(status));
    }
    CHECK(fake::labels_of(fake::What::start) == std::vector<int>{1, 1, 1});
    CHECK(request_free(&request) == MPI_SUCCESS);
    CHECK(request == MPI_REQUEST_NULL);
    CHECK_FALSE(fake::is_allocated(1));
    CHECK(engine->pool.find(handle) == nullptr);
}

TEST_CASE("persistent: a request that is active cannot be started", "[offload][requests]") {
    FreshLibrary library;
    RunningEngine running(Mode::thread);
    MPI_Request request = made_persistent(1);
    CHECK(start(&request) == MPI_SUCCESS);
    CHECK(start(&request) == MPI_ERR_REQUEST);
    REQUIRE(eventually([] { return fake::is_active(1); }));
    CHECK(start(&request) == MPI_ERR_REQUEST);
    fake::complete(1);
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(request_free(&request) == MPI_SUCCESS);
    MPI_Request once = queued(2, {.looks = 1});
    CHECK(start(&once) == MPI_ERR_REQUEST);  // not persistent
    CHECK(wait_one(&once, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

TEST_CASE("persistent: Startall mixes virtual and real, in order", "[offload][requests]") {
    FreshLibrary library;
    RunningEngine running(Mode::thread);
    MPI_Request requests[4] = {made_persistent(1, {.looks = 1}), fake::persistent(2, {.looks = 1}),
                               made_persistent(3, {.looks = 1}), fake::persistent(4, {.looks = 1})};
    for (int round = 0; round < 2; ++round) {
        CHECK(start_all(4, requests) == MPI_SUCCESS);
        CHECK(wait_all(4, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    }
    CHECK(fake::labels_of(fake::What::start) == std::vector<int>{1, 2, 3, 4, 1, 2, 3, 4});
    for (MPI_Request& request : requests) CHECK(request_free(&request) == MPI_SUCCESS);
}

TEST_CASE("persistent: an error of MPI_Start comes with the completion", "[offload][requests]") {
    FreshLibrary library;
    RunningEngine running(Mode::thread);
    MPI_Request request = made_persistent(1, {.issue_error = MPI_ERR_OTHER});
    CHECK(start(&request) == MPI_SUCCESS);
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_ERR_OTHER);
    CHECK(is_virtual(request));
    CHECK(request_free(&request) == MPI_SUCCESS);
}

TEST_CASE("persistent: the error of one among several, which Testsome loses",
          "[offload][requests]") {
    FreshLibrary library;
    RunningEngine running(Mode::thread);
    MPI_Request requests[] = {made_persistent(1, {.looks = 3}),
                              made_persistent(2, {.looks = 3, .error = MPI_ERR_TRUNCATE}),
                              made_persistent(3, {.looks = 4}), queued(4, {.looks = 3})};
    for (int i = 0; i < 3; ++i) REQUIRE(start(&requests[i]) == MPI_SUCCESS);
    const int expected[] = {MPI_SUCCESS, MPI_ERR_TRUNCATE, MPI_SUCCESS, MPI_SUCCESS};
    for (int i = 0; i < 4; ++i) {
        MPI_Status status = untouched_status();
        CHECK(wait_one(&requests[i], &status) == expected[i]);
        CHECK(status.MPI_SOURCE == i + 1);
    }
    for (int i = 0; i < 3; ++i) CHECK(request_free(&requests[i]) == MPI_SUCCESS);
}

TEST_CASE("persistent: complete when started, which Testsome does not see", "[offload][requests]") {
    FreshLibrary library;
    RunningEngine running(Mode::thread);
    MPI_Request request = made_persistent(1, {.quirk = fake::Quirk::proc_null});
    for (int round = 0; round < 2; ++round) {
        MPI_Status status = untouched_status();
        CHECK(start(&request) == MPI_SUCCESS);
        CHECK(wait_one(&request, &status) == MPI_SUCCESS);
        CHECK(status.MPI_SOURCE == 1);
    }
    CHECK(request_free(&request) == MPI_SUCCESS);
}

TEST_CASE("persistent: a collective is complete once a start", "[offload][requests]") {
    FreshLibrary library;
    RunningEngine running(Mode::thread);
    MPI_Request request =
        made_persistent(1, {.looks = 3, .quirk = fake::Quirk::persistent_collective});
    for (int round = 0; round < 3; ++round) {
        CHECK(start(&request) == MPI_SUCCESS);
        CHECK(wait_all(1, &request, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
        int index = 0;
        CHECK(wait_any(1, &request, &index, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        CHECK(index == MPI_UNDEFINED);
    }
    CHECK(request_free(&request) == MPI_SUCCESS);
}

TEST_CASE("persistent requests stay the library's where no thread serves them",
          "[offload][requests]") {
    const Mode mode = GENERATE(Mode::alone, Mode::callers);
    FreshLibrary library;
    RunningEngine running(mode);
    MPI_Request request = made_persistent(1, {.looks = 3});
    CHECK_FALSE(is_virtual(request));
    CHECK(start(&request) == MPI_SUCCESS);
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(request_free(&request) == MPI_SUCCESS);
}

TEST_CASE("persistent requests of a communicator with its own handler stay the library's",
          "[offload][requests]") {
    FreshLibrary library;
    const MPI_Comm comm = fake::communicator(1);
    fake::facts_of(comm).handler = fake::user_handler;
    RunningEngine running(Mode::thread);
    MPI_Request request = fake::persistent(1, {});
    const MPI_Request made = request;
    adopt_persistent(large(comm), &request);
    CHECK(request == made);
}
