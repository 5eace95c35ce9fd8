// SPDX-License-Identifier: BSD-3-Clause
// The engine's window: more active requests than one Testsome looks at, completed in any order.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "running_engine.hpp"

using namespace vecmpi;
using namespace vecmpi::offload;

namespace {

std::vector<MPI_Request> queued_many(int count, const fake::Plan& plan = {}) {
    std::vector<MPI_Request> requests;
    for (int i = 0; i < count; ++i) requests.push_back(queued(i, plan));
    return requests;
}

}  // namespace

TEST_CASE("every request of a long window is looked at within one turn", "[offload][window]") {
    const int count = GENERATE(1, 63, 64, 65, 127, 128, 129, 300);
    FreshLibrary library;
    RunningEngine running(Mode::callers);
    std::vector<MPI_Request> requests = queued_many(count);
    const int turns = (count + 63) / 64;
    for (int label : {0, count / 2, count - 1}) {
        if (!fake::is_active(label)) continue;  // the same one, for small counts
        INFO("request " << label << " of " << count);
        fake::complete(label);
        Slot* slot = engine->pool.find(requests[static_cast<size_t>(label)]);
        // One more: the turn may begin in the middle, and then its last look is a short one.
        for (int look = 0; look < turns + 1 && slot->state.load() != SlotState::done; ++look)
            step_as_owner();
        CHECK(slot->state.load() == SlotState::done);
    }
    for (int label = 0; label < count; ++label) fake::complete(label);
    CHECK(wait_all(count, requests.data(), MPI_STATUSES_IGNORE) == MPI_SUCCESS);
}

TEST_CASE("a long window completes in any order, each request with its own status",
          "[offload][window]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    const unsigned seed = std::random_device{}();
    INFO("seed " << seed);
    constexpr int count = 500;
    FreshLibrary library;
    RunningEngine running(mode);
    std::vector<MPI_Request> requests = queued_many(count);
    REQUIRE(eventually([] { return fake::is_active(count - 1); }));
    std::vector<int> order(count);
    for (int i = 0; i < count; ++i) order[static_cast<size_t>(i)] = i;
    std::shuffle(order.begin(), order.end(), std::mt19937(seed));
    for (size_t i = 0; i < order.size(); i += 50) {
        for (size_t j = i; j < i + 50; ++j) fake::complete(order[j]);
        for (size_t j = i; j < i + 50; ++j) {
            MPI_Status status = untouched_status();
            REQUIRE(wait_one(&requests[static_cast<size_t>(order[j])], &status) == MPI_SUCCESS);
            REQUIRE(status.MPI_SOURCE == order[j]);
        }
    }
}

TEST_CASE("requests freed and cancelled from the middle of a long window", "[offload][window]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    const unsigned seed = std::random_device{}();
    INFO("seed " << seed);
    constexpr int count = 200;
    std::mt19937 random(seed);
    FreshLibrary library;
    RunningEngine running(mode);
    std::vector<MPI_Request> requests = queued_many(count, {.looks = 3});
    for (MPI_Request& request : requests) {
        switch (random() % 3) {
            case 0:
                REQUIRE(request_free(&request) == MPI_SUCCESS);
                break;
            case 1:
                REQUIRE(cancel(&request) == MPI_SUCCESS);
                break;
            default:
                step_as_owner();
        }
    }
    std::vector<MPI_Status> statuses(count, untouched_status());
    CHECK(wait_all(count, requests.data(), statuses.data()) == MPI_SUCCESS);
    for (int i = 0; i < count; ++i) {
        const MPI_Status& status = statuses[static_cast<size_t>(i)];
        CHECK((is_empty(status) || status.MPI_SOURCE == i));
        fake::complete(i);  // what was freed while active
    }
}

TEST_CASE("all slots may be active at once", "[offload][window]") {
    FreshLibrary library;
    RunningEngine running(Mode::callers);
    std::vector<MPI_Request> requests;
    engine->own();
    for (;;) {
        MPI_Request request = MPI_REQUEST_NULL;
        Slot* probe = engine->pool.take();
        if (!probe) break;
        engine->pool.give(probe);
        REQUIRE(post_fake(static_cast<int>(requests.size()), {.looks = 1}, &request) ==
                MPI_SUCCESS);
        REQUIRE(is_virtual(request));
        requests.push_back(request);
    }
    engine->leave();
    CHECK(requests.size() == slot_count);
    CHECK(fake::most_active() == static_cast<int>(slot_count));
    MPI_Request one_more = MPI_REQUEST_NULL;
    CHECK(post_fake(-1, {.looks = 1}, &one_more) == MPI_SUCCESS);
    CHECK_FALSE(is_virtual(one_more));
    CHECK(wait_one(&one_more, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(wait_all(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE) ==
          MPI_SUCCESS);
}

TEST_CASE("a communicator that gets another handler than MPI_COMM_WORLD while something is pending",
          "[offload][window]") {
    const bool persistent = GENERATE(false, true);
    struct Change {
        int comm;
        MPI_Errhandler handler;
        bool asks;
    };
    const Change change =
        GENERATE(Change{1, MPI_ERRORS_ARE_FATAL, false}, Change{1, MPI_ERRORS_RETURN, true},
                 Change{1, fake::user_handler, true}, Change{0, MPI_ERRORS_RETURN, true});
    FreshLibrary library;
    RunningEngine running(Mode::thread);
    const MPI_Comm comm = fake::communicator(change.comm);
    const auto set_handler = [comm](MPI_Errhandler handler) {
        fake::facts_of(comm).handler = handler;
        forget_comm_traits();
        note_handler(comm);
    };
    set_handler(MPI_ERRORS_RETURN);
    set_handler(MPI_ERRORS_ARE_FATAL);
    CHECK_FALSE(engine->callers_complete());  // nothing was pending
    MPI_Request request = persistent ? made_persistent(1) : queued(1);
    set_handler(change.handler);
    CHECK(engine->callers_complete() == change.asks);
    if (persistent) CHECK(start(&request) == MPI_SUCCESS);
    REQUIRE(eventually([] { return fake::is_active(1); }));
    fake::complete(1, MPI_ERR_TRUNCATE);
    const int looks = fake::calls_of_testsome();
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_ERR_TRUNCATE);
    if (change.asks) CHECK(fake::calls_of_testsome() == looks);
    if (persistent) CHECK(request_free(&request) == MPI_SUCCESS);
}

TEST_CASE(
    "a handler function that MPI_COMM_WORLD gets later sees each error, on the program's thread",
    "[offload][window]") {
    const bool own_cpu = GENERATE(false, true), blocking = GENERATE(false, true);
    FreshLibrary library;
    RunningEngine running(Mode::thread, own_cpu);
    MPI_Request request = queued(1);
    REQUIRE(eventually([] { return fake::is_active(1); }));
    fake::facts_of(MPI_COMM_WORLD).handler = fake::user_handler;
    forget_comm_traits();
    note_handler(MPI_COMM_WORLD);  // whoever looked by Testsome has ended
    const int looks = fake::calls_of_testsome();
    fake::complete(1, MPI_ERR_TRUNCATE);
    int flag = 0, error = MPI_SUCCESS;
    if (blocking) error = wait_one(&request, MPI_STATUS_IGNORE);
    while (!blocking && flag == 0 && error == MPI_SUCCESS)
        error = test_one(&request, &flag, MPI_STATUS_IGNORE);
    CHECK(error == MPI_ERR_TRUNCATE);
    CHECK(fake::calls_of_testsome() == looks);
}
