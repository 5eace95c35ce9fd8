// SPDX-License-Identifier: BSD-3-Clause
// Waitall and Testall where looking at one request must not wait for another: generalized requests
// beside virtual ones, and failures beside pending requests (MPI 4.0, 3.7.5).
#include <catch2/catch.hpp>
#include <thread>

#include "running_engine.hpp"

using namespace vecmpi;
using namespace vecmpi::offload;

namespace {

struct GeneralizedRequests {
    GeneralizedRequests() { note_requests_of_files(); }
    ~GeneralizedRequests() { engine->forget_kind(RequestKind::generalized); }
};

// A virtual request whose operation is complete with this error.
MPI_Request finished(int label, int error) {
    MPI_Request request = queued(label, {.looks = 1, .error = error});
    REQUIRE(eventually([&] {
        int flag = 0;
        MPI_Status status;
        request_get_status(request, &flag, &status);
        return flag != 0;
    }));
    return request;
}

}  // namespace

TEST_CASE("Waitall beside generalized requests: persistent requests go on", "[offload][all]") {
    FreshLibrary library;
    RunningEngine running(Mode::thread);
    const GeneralizedRequests exist;
    MPI_Request requests[3] = {made_persistent(1, {.looks = 2}), library_request(2, {.looks = 2}),
                               MPI_REQUEST_NULL};
    const MPI_Request persistent = requests[0];
    REQUIRE(is_virtual(persistent));
    for (int round = 0; round < 3; ++round) {
        CHECK(start(&requests[0]) == MPI_SUCCESS);
        MPI_Status statuses[3] = {untouched_status(), untouched_status(), untouched_status()};
        CHECK(wait_all(3, requests, statuses) == MPI_SUCCESS);
        CHECK(requests[0] == persistent);
        CHECK(requests[1] == MPI_REQUEST_NULL);
        CHECK(statuses[0].MPI_SOURCE == 1);
        CHECK(statuses[0].MPI_ERROR == MPI_SUCCESS);
        CHECK((round == 0 ? statuses[1].MPI_SOURCE == 2 : is_empty(statuses[1])));
        CHECK(is_empty(statuses[2]));
    }
    CHECK(request_free(&requests[0]) == MPI_SUCCESS);
}

TEST_CASE("Waitall beside generalized requests: errors of both kinds", "[offload][all]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    const GeneralizedRequests exist;
    const int real_error = GENERATE(MPI_SUCCESS, MPI_ERR_OTHER);
    MPI_Request requests[2] = {queued(1, {.looks = 1, .error = MPI_ERR_TRUNCATE}),
                               library_request(2, {.looks = 1, .error = real_error})};
    MPI_Status statuses[2] = {untouched_status(), untouched_status()};
    CHECK(wait_all(2, requests, statuses) == MPI_ERR_IN_STATUS);
    CHECK(statuses[0].MPI_ERROR == MPI_ERR_TRUNCATE);
    CHECK(statuses[1].MPI_ERROR == real_error);
    CHECK(requests[0] == MPI_REQUEST_NULL);
    CHECK(requests[1] == MPI_REQUEST_NULL);
}

TEST_CASE(
    "Waitall beside generalized requests: the library looks at its own while a virtual one is "
    "pending",
    "[offload][all]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    const GeneralizedRequests exist;
    MPI_Request requests[2] = {queued(1), library_request(2, {.looks = 5})};
    bool in_time = false;
    std::thread partner([&] {  // whose message comes after our part of a collective file call
        in_time = eventually([] { return !fake::is_active(2); });
        fake::complete(1);
    });
    CHECK(wait_all(2, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    partner.join();
    CHECK(in_time);
}

TEST_CASE("Testall looks at the library's requests while a virtual one is pending",
          "[offload][all]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    MPI_Request requests[2] = {queued(1), library_request(2, {.looks = 5})};
    const MPI_Request before[2] = {requests[0], requests[1]};
    MPI_Status statuses[2] = {untouched_status(), untouched_status()};
    int flag = 1;
    for (int look = 0; look < 5; ++look) {
        CHECK(test_all(2, requests, &flag, statuses) == MPI_SUCCESS);
        CHECK(flag == 0);
    }
    CHECK_FALSE(fake::is_active(2));
    CHECK(fake::is_allocated(2));  // looked at, not taken
    CHECK(std::equal(requests, requests + 2, before));
    fake::complete(1);
    while (flag == 0) REQUIRE(test_all(2, requests, &flag, statuses) == MPI_SUCCESS);
    CHECK(statuses[0].MPI_SOURCE == 1);
    CHECK(statuses[1].MPI_SOURCE == 2);
}

TEST_CASE("Testall reports a failure at once: what is pending stays", "[offload][all]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    const bool virtual_failed = GENERATE(false, true);
    const bool virtual_pending = GENERATE(false, true);
    MPI_Request requests[4] = {virtual_pending ? queued(1) : library_request(1),
                               virtual_failed
                                   ? finished(2, MPI_ERR_TRUNCATE)
                                   : library_request(2, {.looks = 1, .error = MPI_ERR_TRUNCATE}),
                               finished(3, MPI_SUCCESS), MPI_REQUEST_NULL};
    MPI_Status statuses[4] = {untouched_status(), untouched_status(), untouched_status(),
                              untouched_status()};
    const MPI_Request pending = requests[0];
    int flag = 1;
    CHECK(test_all(4, requests, &flag, statuses) == MPI_ERR_IN_STATUS);
    CHECK(flag == 0);
    CHECK(statuses[0].MPI_ERROR == MPI_ERR_PENDING);
    CHECK(statuses[1].MPI_ERROR == MPI_ERR_TRUNCATE);
    CHECK(statuses[2].MPI_ERROR == MPI_SUCCESS);
    CHECK(statuses[2].MPI_SOURCE == 3);
    CHECK(statuses[3].MPI_ERROR == MPI_SUCCESS);
    CHECK(requests[0] == pending);
    CHECK(requests[1] == MPI_REQUEST_NULL);
    CHECK(requests[2] == MPI_REQUEST_NULL);
    fake::complete(1);
    CHECK(wait_all(4, requests, statuses) == MPI_SUCCESS);
    CHECK(statuses[0].MPI_SOURCE == 1);
}

TEST_CASE("Testall with a failure and nothing pending: the flag is set", "[offload][all]") {
    FreshLibrary library;
    RunningEngine running(Mode::thread);
    MPI_Request requests[2] = {finished(1, MPI_ERR_TRUNCATE), library_request(2, {.looks = 1})};
    MPI_Status statuses[2] = {untouched_status(), untouched_status()};
    int flag = 0;
    CHECK(test_all(2, requests, &flag, statuses) == MPI_ERR_IN_STATUS);
    CHECK(flag == 1);
    CHECK(statuses[1].MPI_ERROR == MPI_SUCCESS);
}
