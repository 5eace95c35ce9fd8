// SPDX-License-Identifier: BSD-3-Clause
// Failed operations and handles that nobody knows: what each completion call returns, and which
// MPI_ERROR fields it writes (MPI 4.0, 3.2.5 and 3.7.5: only together with MPI_ERR_IN_STATUS).
#include <catch2/catch.hpp>

#include "running_engine.hpp"

using namespace vecmpi;
using namespace vecmpi::offload;

namespace {

const auto stale = static_cast<MPI_Request>(0x2f00aaaau);    // virtual, but nobody's
const auto unknown = static_cast<MPI_Request>(0xac00ffffu);  // the library does not know it

// A virtual request that fails, one that does not, and a request of the library that fails.
struct Three {
    MPI_Request requests[3] = {queued(1, {.looks = 1, .error = MPI_ERR_TRUNCATE}),
                               queued(2, {.looks = 1}),
                               library_request(3, {.looks = 1, .error = MPI_ERR_OTHER})};
    int errors[3] = {MPI_ERR_TRUNCATE, MPI_SUCCESS, MPI_ERR_OTHER};
};

}  // namespace

TEST_CASE("Wait returns the error of the operation and leaves MPI_ERROR alone",
          "[offload][errors]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    Three three;
    for (int i = 0; i < 3; ++i) {
        MPI_Status status = untouched_status();
        CHECK(wait_one(&three.requests[i], &status) == three.errors[i]);
        CHECK(status.MPI_SOURCE == i + 1);
        CHECK(status.MPI_ERROR == -77);
        CHECK(three.requests[i] == MPI_REQUEST_NULL);
    }
}

TEST_CASE("an error of the call itself comes with the completion of what was queued",
          "[offload][errors]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    MPI_Request request = queued(1, {.issue_error = MPI_ERR_OTHER});
    MPI_Status status = untouched_status();
    CHECK(wait_one(&request, &status) == MPI_ERR_OTHER);
    CHECK(is_empty(status));
    CHECK(request == MPI_REQUEST_NULL);
}

TEST_CASE("Waitall returns MPI_ERR_IN_STATUS and writes every MPI_ERROR", "[offload][errors]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    Three three;
    MPI_Request requests[5] = {MPI_REQUEST_NULL, three.requests[1], three.requests[0],
                               MPI_REQUEST_NULL, three.requests[2]};
    SECTION("with statuses") {
        std::vector<MPI_Status> statuses(5, untouched_status());
        CHECK(wait_all(5, requests, statuses.data()) == MPI_ERR_IN_STATUS);
        const int expected[5] = {MPI_SUCCESS, MPI_SUCCESS, MPI_ERR_TRUNCATE, MPI_SUCCESS,
                                 MPI_ERR_OTHER};
        for (size_t i = 0; i < 5; ++i) CHECK(statuses[i].MPI_ERROR == expected[i]);
        CHECK(statuses[1].MPI_SOURCE == 2);
        CHECK(statuses[2].MPI_SOURCE == 1);
        CHECK(statuses[4].MPI_SOURCE == 3);
    }
    SECTION("without statuses") {
        CHECK(wait_all(5, requests, MPI_STATUSES_IGNORE) == MPI_ERR_IN_STATUS);
    }
    for (MPI_Request request : requests) CHECK(request == MPI_REQUEST_NULL);
}

// As MPICH 4.3's does where a persistent receive has failed.
TEST_CASE("Waitall does not lose a failure that Testsome does not name", "[offload][errors]") {
    FreshLibrary library;
    RunningEngine running(Mode::callers);
    engine->note(RequestKind::persistent);
    static decltype(real.Testsome) testsome;
    testsome = real.Testsome;
    real.Testsome = [](int count, MPI_Request requests[], int* found, int places[],
                       MPI_Status statuses[]) {
        const int rc = testsome(count, requests, found, places, statuses);
        for (int i = 0; i < *found; ++i) statuses[i].MPI_ERROR = MPI_SUCCESS;
        return rc;
    };
    MPI_Request requests[2] = {fake::persistent(1, {.looks = 1, .error = MPI_ERR_TRUNCATE}),
                               library_request(2, {.looks = 1})};
    REQUIRE(real.Start(&requests[0]) == MPI_SUCCESS);
    std::vector<MPI_Status> statuses(2, untouched_status());
    CHECK(wait_all(2, requests, statuses.data()) == MPI_ERR_IN_STATUS);
    real.Testsome = testsome;
    CHECK(statuses[0].MPI_ERROR == MPI_ERR_UNKNOWN);
    CHECK(statuses[1].MPI_ERROR == MPI_SUCCESS);
}

TEST_CASE("Waitall without a failure clears MPI_ERROR, as MPICH does", "[offload][errors]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    MPI_Request requests[3] = {queued(1, {.looks = 1}), MPI_REQUEST_NULL,
                               library_request(2, {.looks = 1})};
    std::vector<MPI_Status> statuses(3, untouched_status());
    CHECK(wait_all(3, requests, statuses.data()) == MPI_SUCCESS);
    CHECK(statuses[0].MPI_ERROR == MPI_SUCCESS);
    CHECK(statuses[1].MPI_ERROR == -77);  // of the null request
    CHECK(statuses[2].MPI_ERROR == MPI_SUCCESS);
}

TEST_CASE("Waitall returns when the last operation is complete, though the first failed",
          "[offload][errors]") {
    const bool mixed = GENERATE(false, true);
    FreshLibrary library;
    RunningEngine running(mixed ? Mode::callers : Mode::alone);
    const fake::Plan fails{.looks = 1, .error = MPI_ERR_OTHER}, late{.looks = 20};
    MPI_Request requests[2] = {mixed ? queued(1, fails) : library_request(1, fails),
                               library_request(2, late)};
    MPI_Status statuses[2] = {untouched_status(), untouched_status()};
    CHECK(wait_all(2, requests, statuses) == MPI_ERR_IN_STATUS);
    CHECK_FALSE(fake::is_active(2));
    CHECK(statuses[0].MPI_ERROR == MPI_ERR_OTHER);
    if (statuses[1].MPI_ERROR == MPI_ERR_PENDING)
        CHECK(wait_one(&requests[1], MPI_STATUS_IGNORE) == MPI_SUCCESS);
    else
        CHECK(statuses[1].MPI_ERROR == MPI_SUCCESS);
}

TEST_CASE("Testall with a failure", "[offload][errors]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    Three three;
    std::vector<MPI_Status> statuses(3, untouched_status());
    int flag = 0, rc = MPI_SUCCESS;
    while (!flag && rc == MPI_SUCCESS) rc = test_all(3, three.requests, &flag, statuses.data());
    CHECK(rc == MPI_ERR_IN_STATUS);
    for (int i = 0; i < 3; ++i)
        CHECK(statuses[static_cast<size_t>(i)].MPI_ERROR == three.errors[i]);
}

TEST_CASE("Waitsome returns MPI_ERR_IN_STATUS for what it reports", "[offload][errors]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    Three three;
    int reported = 0;
    for (int calls = 0; calls < 10; ++calls) {
        int outcount = 0, indices[3];
        std::vector<MPI_Status> statuses(3, untouched_status());
        const int rc = wait_some(3, three.requests, &outcount, indices, statuses.data());
        if (outcount == MPI_UNDEFINED) break;
        REQUIRE(outcount > 0);
        bool failed = false;
        for (int i = 0; i < outcount; ++i) failed |= three.errors[indices[i]] != MPI_SUCCESS;
        CHECK(rc == (failed ? MPI_ERR_IN_STATUS : MPI_SUCCESS));
        for (int i = 0; i < outcount; ++i) {
            const MPI_Status& status = statuses[static_cast<size_t>(i)];
            CHECK(status.MPI_SOURCE == indices[i] + 1);
            CHECK(status.MPI_ERROR == (failed ? three.errors[indices[i]] : -77));
        }
        reported += outcount;
    }
    CHECK(reported == 3);
}

TEST_CASE("Waitany returns the error of the one it reports", "[offload][errors]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    Three three;
    for (int i = 0; i < 3; ++i) {
        int index = MPI_UNDEFINED;
        MPI_Status status = untouched_status();
        const int rc = wait_any(3, three.requests, &index, &status);
        REQUIRE(index != MPI_UNDEFINED);
        CHECK(rc == three.errors[index]);
        CHECK(status.MPI_SOURCE == index + 1);
        CHECK(status.MPI_ERROR == -77);
    }
}

TEST_CASE("a stale virtual request gets the library's error, in all calls", "[offload][errors]") {
    const Mode mode = GENERATE(Mode::alone, Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    MPI_Request requests[2] = {MPI_REQUEST_NULL, stale};
    int flag = 0, index = 0, count = 0, indices[2];
    CHECK(wait_one(&requests[1], MPI_STATUS_IGNORE) == MPI_ERR_REQUEST);
    CHECK(test_one(&requests[1], &flag, MPI_STATUS_IGNORE) == MPI_ERR_REQUEST);
    CHECK(wait_any(2, requests, &index, MPI_STATUS_IGNORE) == MPI_ERR_REQUEST);
    CHECK(test_any(2, requests, &index, &flag, MPI_STATUS_IGNORE) == MPI_ERR_REQUEST);
    CHECK(wait_all(2, requests, MPI_STATUSES_IGNORE) == MPI_ERR_REQUEST);
    CHECK(test_all(2, requests, &flag, MPI_STATUSES_IGNORE) == MPI_ERR_REQUEST);
    CHECK(wait_some(2, requests, &count, indices, MPI_STATUSES_IGNORE) == MPI_ERR_REQUEST);
    CHECK(test_some(2, requests, &count, indices, MPI_STATUSES_IGNORE) == MPI_ERR_REQUEST);
    CHECK(request_get_status(requests[1], &flag, MPI_STATUS_IGNORE) == MPI_ERR_REQUEST);
    CHECK(cancel(&requests[1]) == MPI_ERR_REQUEST);
    CHECK(start(&requests[1]) == MPI_ERR_REQUEST);
    CHECK(start_all(2, requests) == MPI_ERR_REQUEST);
    CHECK(pready(0, requests[1]) == MPI_ERR_REQUEST);
    CHECK(parrived(requests[1], 0, &flag) == MPI_ERR_REQUEST);
    CHECK(request_free(&requests[1]) == MPI_ERR_REQUEST);
    CHECK(requests[1] == stale);
}

TEST_CASE("a request that the library refuses: its error, and nothing of the rest is lost",
          "[offload][errors]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    MPI_Request requests[2] = {queued(1), unknown};
    int flag = 0, index = 0, count = 0, indices[2];
    CHECK(wait_any(2, requests, &index, MPI_STATUS_IGNORE) == MPI_ERR_REQUEST);
    CHECK(test_any(2, requests, &index, &flag, MPI_STATUS_IGNORE) == MPI_ERR_REQUEST);
    CHECK(wait_some(2, requests, &count, indices, MPI_STATUSES_IGNORE) == MPI_ERR_REQUEST);
    CHECK(test_some(2, requests, &count, indices, MPI_STATUSES_IGNORE) == MPI_ERR_REQUEST);
    CHECK(wait_all(2, requests, MPI_STATUSES_IGNORE) == MPI_ERR_REQUEST);
    REQUIRE(is_virtual(requests[0]));
    fake::complete(1);
    CHECK(wait_one(&requests[0], MPI_STATUS_IGNORE) == MPI_SUCCESS);
    std::vector<MPI_Request> done{queued(2, {.looks = 1}), unknown};
    CHECK(test_one(&done[1], &flag, MPI_STATUS_IGNORE) == MPI_ERR_REQUEST);
    int rc = MPI_SUCCESS;
    while (rc == MPI_SUCCESS) rc = test_all(2, done.data(), &flag, MPI_STATUSES_IGNORE);
    CHECK(rc == MPI_ERR_REQUEST);
    CHECK(wait_one(&done[0], MPI_STATUS_IGNORE) == MPI_SUCCESS);  // still there, or null
}

TEST_CASE("the window lost a request to the library: whoever waits for it gets the error",
          "[offload][errors]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    MPI_Request good = queued(1), bad = queued(2);
    REQUIRE(eventually([] { return fake::is_active(1) && fake::is_active(2); }));
    engine->own();
    MPI_Request behind_our_back = engine->pool.find(bad)->mpi_request;
    CHECK(real.Request_free(&behind_our_back) == MPI_SUCCESS);
    engine->leave();
    CHECK(wait_one(&bad, MPI_STATUS_IGNORE) == MPI_ERR_REQUEST);
    fake::complete(1);
    CHECK(wait_one(&good, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}
