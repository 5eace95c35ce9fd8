// SPDX-License-Identifier: BSD-3-Clause
// Messages of which something is left to do when they are complete.
#include <catch2/catch.hpp>

#include "running_engine.hpp"

using namespace vecmpi;
using namespace vecmpi::offload;

namespace {

struct Seen {
    int times = 0, error = -1, source = -1;
    bool is_gone = false;
};

class Noting : public Ending {
  public:
    explicit Noting(Seen& seen) : seen_(seen) {}
    ~Noting() override { seen_.is_gone = true; }
    void complete(const MPI_Status& status, int error) noexcept override {
        ++seen_.times;
        seen_.error = error;
        seen_.source = status.MPI_SOURCE;
    }

  private:
    Seen& seen_;
};

// In place of a receive, whose request is never complete at once.
MPI_Request posted(Seen& seen, int label, const fake::Plan& plan = {}, Call call = Call::Irecv) {
    const FakeArguments arguments{label, plan};
    MPI_Request request = MPI_REQUEST_NULL;
    const auto served = post_with_ending(make_operation(call, issue_fake, arguments, large()),
                                         std::make_unique<Noting>(seen), &request);
    REQUIRE(served);
    CHECK(*served == plan.issue_error);
    return request;
}

const auto modes = {Mode::alone, Mode::callers, Mode::thread};

}  // namespace

TEST_CASE("an ending comes once, before the message is seen complete", "[offload][endings]") {
    const Mode mode = GENERATE(values(modes));
    const int way = GENERATE(range(0, 7));
    FreshLibrary library;
    RunningEngine running(mode);
    Seen seen, others;
    MPI_Request requests[] = {posted(seen, 1), library_request(2), MPI_REQUEST_NULL};
    REQUIRE(is_virtual(requests[0]));
    REQUIRE(eventually([] { return fake::is_active(1); }));
    int flag = 1, index = -1, indices[3], number = 0;
    MPI_Status status = untouched_status(), statuses[3];
    CHECK(test_one(requests, &flag, &status) == MPI_SUCCESS);
    CHECK(flag == 0);
    fake::complete(1, MPI_ERR_TRUNCATE);
    int rc = MPI_SUCCESS;
    switch (way) {
        case 0:
            rc = wait_one(requests, &status);
            break;
        case 1:
            for (flag = 0; !flag;) rc = test_one(requests, &flag, &status);
            break;
        case 2:
            rc = wait_any(3, requests, &index, &status);
            CHECK(index == 0);
            break;
        case 3:
            CHECK(wait_some(3, requests, &number, indices, statuses) == MPI_ERR_IN_STATUS);
            CHECK((number == 1 && indices[0] == 0));
            rc = statuses[0].MPI_ERROR;
            status = statuses[0];
            break;
        case 4:
            fake::complete(2);
            CHECK(wait_all(3, requests, statuses) == MPI_ERR_IN_STATUS);
            rc = statuses[0].MPI_ERROR;
            status = statuses[0];
            break;
        case 5:
            for (flag = 0; !flag;) rc = request_get_status(requests[0], &flag, &status);
            CHECK(seen.times == 1);
            CHECK(wait_one(requests, MPI_STATUS_IGNORE) == MPI_ERR_TRUNCATE);
            break;
        default:
            REQUIRE(eventually([&] { return request_is_complete(requests[0]) != 0; }));
            CHECK(seen.times == 1);
            rc = wait_one(requests, &status);
    }
    CHECK(rc == MPI_ERR_TRUNCATE);
    CHECK(status.MPI_SOURCE == 1);
    CHECK(requests[0] == MPI_REQUEST_NULL);
    CHECK((seen.times == 1 && seen.error == MPI_ERR_TRUNCATE && seen.source == 1));
    CHECK(seen.is_gone);
    if (requests[1] != MPI_REQUEST_NULL) {
        fake::complete(2);
        CHECK(wait_one(&requests[1], MPI_STATUS_IGNORE) == MPI_SUCCESS);
    }
}

TEST_CASE("an ending comes where each thread asks for its own", "[offload][endings]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    Seen seen, freed;
    MPI_Request request = posted(seen, 1), forgotten = posted(freed, 2);
    note_generalized_requests();
    CHECK_FALSE(may_have_ending(Call::Irecv, large()));
    engine->forget_kind(RequestKind::generalized);  // for the tests that follow
    REQUIRE(eventually([] { return fake::is_active(2); }));
    CHECK(request_free(&forgotten) == MPI_SUCCESS);
    fake::complete(1);
    fake::complete(2);
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(seen.times == 1);
    REQUIRE(eventually([] {
        look_after_freed_requests();
        return freed_endings == 0;
    }));
    CHECK((freed.times == 1 && freed.is_gone));
}

TEST_CASE("a message whose request the program frees still has its ending", "[offload][endings]") {
    const Mode mode = GENERATE(values(modes));
    FreshLibrary library;
    RunningEngine running(mode);
    Seen seen;
    MPI_Request request = posted(seen, 1);
    const MPI_Request handle = request;
    CHECK(request_free(&request) == MPI_SUCCESS);
    CHECK(request == MPI_REQUEST_NULL);
    CHECK(freed_endings == 1);
    fake::complete(1);
    REQUIRE(eventually([] {
        look_after_freed_requests();
        return freed_endings == 0;
    }));
    CHECK((seen.times == 1 && seen.is_gone));
    CHECK(engine->pool.find(handle) == nullptr);
}

TEST_CASE("a cancelled message has its ending", "[offload][endings]") {
    const Mode mode = GENERATE(values(modes));
    FreshLibrary library;
    RunningEngine running(mode);
    Seen seen;
    MPI_Request request = posted(seen, 1);
    CHECK(cancel(&request) == MPI_SUCCESS);
    MPI_Status status = untouched_status();
    CHECK(wait_one(&request, &status) == MPI_SUCCESS);
    CHECK((status.count_hi_and_cancelled & 1) == 1);
    CHECK(seen.times == 1);
}

TEST_CASE("without a message there is no ending", "[offload][endings]") {
    FreshLibrary library;
    RunningEngine running(Mode::alone);
    Seen seen;
    CHECK(posted(seen, 1, {.issue_error = MPI_ERR_OTHER}) == MPI_REQUEST_NULL);
    CHECK((seen.times == 0 && seen.is_gone));
    SECTION("no slot is left") {
        std::vector<Slot*> slots;
        while (Slot* const slot = engine->pool.take()) slots.push_back(slot);
        const FakeArguments arguments{2, {}};
        MPI_Request request = MPI_REQUEST_NULL;
        Seen none;
        CHECK_FALSE(post_with_ending(make_operation(Call::Irecv, issue_fake, arguments, large()),
                                     std::make_unique<Noting>(none), &request));
        CHECK((none.times == 0 && none.is_gone));
        CHECK_FALSE(fake::has_event(fake::What::issue, 2));
        for (Slot* const slot : slots) engine->pool.give(slot);
    }
    SECTION("a communicator whose errors the window does not raise") {
        const MPI_Comm comm = fake::communicator(1);
        CHECK(may_have_ending(Call::Irecv, large(comm)));
        fake::facts_of(comm).handler = MPI_ERRORS_RETURN;
        forget_comm_traits();
        CHECK_FALSE(may_have_ending(Call::Irecv, large(comm)));
    }
}
