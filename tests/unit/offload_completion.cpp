// SPDX-License-Identifier: BSD-3-Clause
// Wait and Test on virtual, real, null and inactive requests (MPI 4.0, 3.7.3 and 3.7.5): single
// cases. Random mixtures are in offload_mixtures.cpp, failed operations in offload_errors.cpp.
#include <catch2/catch.hpp>
#include <random>

#include "running_engine.hpp"

using namespace vecmpi;
using namespace vecmpi::offload;

TEST_CASE("statuses may be ignored", "[offload][completion]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    const auto pair = [](int label) {
        return std::vector<MPI_Request>{queued(label, {.looks = 1}),
                                        library_request(label + 1, {.looks = 1})};
    };
    std::vector<MPI_Request> requests = pair(1);
    CHECK(wait_all(2, requests.data(), MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    CHECK(requests == std::vector<MPI_Request>(2, MPI_REQUEST_NULL));
    requests = pair(3);
    int index = 0, indices[2], outcount = 0;
    CHECK(wait_any(2, requests.data(), &index, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(wait_some(2, requests.data(), &outcount, indices, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    CHECK(outcount == 1);
    CHECK(requests == std::vector<MPI_Request>(2, MPI_REQUEST_NULL));
}

TEST_CASE("a Test that finds nothing changes nothing", "[offload][completion]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    std::vector<MPI_Request> requests{queued(1), MPI_REQUEST_NULL, library_request(2)};
    const std::vector<MPI_Request> before = requests;
    int flag = 1, index = 5, outcount = 5, indices[3];
    std::vector<MPI_Status> statuses(3, untouched_status());
    CHECK(test_one(&requests[0], &flag, statuses.data()) == MPI_SUCCESS);
    CHECK(flag == 0);
    CHECK(test_all(3, requests.data(), &flag, statuses.data()) == MPI_SUCCESS);
    CHECK(flag == 0);
    CHECK(test_any(3, requests.data(), &index, &flag, statuses.data()) == MPI_SUCCESS);
    CHECK(flag == 0);
    CHECK(index == MPI_UNDEFINED);
    CHECK(test_some(3, requests.data(), &outcount, indices, statuses.data()) == MPI_SUCCESS);
    CHECK(outcount == 0);
    CHECK(requests == before);
    fake::complete(2);  // still not all
    CHECK(test_all(3, requests.data(), &flag, statuses.data()) == MPI_SUCCESS);
    CHECK(flag == 0);
    CHECK(requests == before);
    REQUIRE(eventually([] { return fake::is_active(1); }));
    fake::complete(1);
    CHECK(wait_all(3, requests.data(), statuses.data()) == MPI_SUCCESS);
    CHECK(statuses[0].MPI_SOURCE == 1);
    CHECK(statuses[2].MPI_SOURCE == 2);
}

// The answers for "nothing to wait for" must not depend on who holds the engine just then.
TEST_CASE("Test on null requests while others hold the engine", "[offload][completion]") {
    FreshLibrary library;
    RunningEngine running(Mode::callers);
    std::atomic<bool> stop{false};
    std::thread other([&stop] {
        while (!stop) {
            engine->own();
            for (int i = 0; i < 50; ++i) cpu_pause();
            engine->leave();
        }
    });
    int wrong = 0;
    for (int round = 0; round < 2000; ++round) {
        MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        int flag = 0, index = 0, outcount = 0, indices[2];
        test_one(requests, &flag, MPI_STATUS_IGNORE);
        wrong += flag != 1;
        test_all(2, requests, &flag, MPI_STATUSES_IGNORE);
        wrong += flag != 1;
        test_any(2, requests, &index, &flag, MPI_STATUS_IGNORE);
        wrong += flag != 1 || index != MPI_UNDEFINED;
        test_some(2, requests, &outcount, indices, MPI_STATUSES_IGNORE);
        wrong += outcount != MPI_UNDEFINED;
    }
    stop = true;
    other.join();
    CHECK(wrong == 0);
}

TEST_CASE("a result found by another thread is taken without the engine", "[offload][completion]") {
    FreshLibrary library;
    RunningEngine running(Mode::callers);
    std::vector<MPI_Request> requests{queued(1, {.looks = 1}), queued(2)};
    int flag = 0, index = -1;
    CHECK(test_one(&requests[1], &flag, MPI_STATUS_IGNORE) ==
          MPI_SUCCESS);  // its look finds the first
    MPI_Status status = untouched_status();
    engine->own();  // as if another thread were inside
    CHECK(wait_any(2, requests.data(), &index, &status) == MPI_SUCCESS);
    engine->leave();
    CHECK(index == 0);
    CHECK(status.MPI_SOURCE == 1);
    fake::complete(2);
    CHECK(test_any(2, requests.data(), &index, &flag, &status) == MPI_SUCCESS);
    CHECK(flag == 1);
    CHECK(index == 1);
    CHECK(status.MPI_SOURCE == 2);
}

TEST_CASE("Testany, Testsome: a result that is there already is reported",
          "[offload][completion]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    std::vector<MPI_Request> requests{library_request(9), queued(1, {.looks = 1})};
    Slot* slot = engine->pool.find(requests[1]);
    REQUIRE(eventually([slot] {
        if (engine->try_own()) engine->as_owner([] { engine->step(); });
        return slot->state.load() == SlotState::done;
    }));
    int index = -1, flag = 0;
    MPI_Status status = untouched_status();
    SECTION("Testany") {
        CHECK(test_any(2, requests.data(), &index, &flag, &status) == MPI_SUCCESS);
        CHECK(flag == 1);
    }
    SECTION("Testsome") {
        CHECK(test_some(2, requests.data(), &flag, &index, &status) == MPI_SUCCESS);
        CHECK(flag == 1);
    }
    CHECK(index == 1);
    CHECK(status.MPI_SOURCE == 1);
    CHECK(requests[1] == MPI_REQUEST_NULL);
    fake::complete(9);
    CHECK(wait_one(&requests[0], MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

TEST_CASE("threads wait for their own requests together", "[offload][completion]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    constexpr int threads = 4, rounds = 200;
    std::vector<int> wrong(threads, 0);
    std::vector<std::thread> program;
    for (int t = 0; t < threads; ++t)
        program.emplace_back([t, &wrong] {
            std::mt19937 random(static_cast<unsigned>(t));
            for (int round = 0; round < rounds; ++round) {
                const int label = t * 1000000 + 2 * round;
                const fake::Plan plan{.looks = 1 + static_cast<int>(random() % 5)};
                MPI_Request requests[2] = {MPI_REQUEST_NULL, library_request(label + 1, plan)};
                MPI_Status statuses[2];
                post_fake(label, plan, &requests[0]);
                const int rc = wait_all(2, requests, statuses);
                wrong[static_cast<size_t>(t)] += rc != MPI_SUCCESS ||
                                                 statuses[0].MPI_SOURCE != label ||
                                                 statuses[1].MPI_SOURCE != label + 1;
            }
        });
    for (std::thread& thread : program) thread.join();
    CHECK(wrong == std::vector<int>(threads, 0));
}

TEST_CASE("wait_until looks from inside the engine until there is something",
          "[offload][completion]") {
    const Mode mode = GENERATE(Mode::alone, Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    struct Looks {
        int left = 5;
        bool always_inside = true;
    } looks;
    wait_until(
        [](void* context) {
            auto& mine = *static_cast<Looks*>(context);
            mine.always_inside &= is_reentrant();
            return --mine.left == 0;
        },
        &looks);
    CHECK(looks.left == 0);
    CHECK(looks.always_inside);
    CHECK_FALSE(is_reentrant());
    CHECK_FALSE(this_thread.is(Inside::engine));
}

TEST_CASE("Waitall takes a persistent collective once", "[offload][completion]") {
    const bool mixed = GENERATE(false, true);
    FreshLibrary library;
    RunningEngine running(mixed ? Mode::callers : Mode::alone);
    engine->note(RequestKind::persistent);
    MPI_Request collective =
        fake::persistent(1, {.looks = 1, .quirk = fake::Quirk::persistent_collective});
    for (int round = 0; round < 2; ++round) {
        MPI_Request requests[3] = {collective, library_request(2, {.looks = 4}),
                                   mixed ? queued(3, {.looks = 2}) : MPI_REQUEST_NULL};
        MPI_Status statuses[3];
        REQUIRE(start(&requests[0]) == MPI_SUCCESS);
        CHECK(wait_all(3, requests, statuses) == MPI_SUCCESS);
        CHECK(requests[0] == collective);
        CHECK(requests[1] == MPI_REQUEST_NULL);
        CHECK(requests[2] == MPI_REQUEST_NULL);
        CHECK(statuses[0].MPI_SOURCE == 1);
        CHECK(statuses[1].MPI_SOURCE == 2);
    }
    CHECK(request_free(&collective) == MPI_SUCCESS);
}

TEST_CASE("Waitall beside generalized requests: the library waits for what is its own",
          "[offload][completion]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    note_requests_of_files();
    MPI_Request requests[4] = {queued(1, {.looks = 3}), library_request(2, {.looks = 4}),
                               MPI_REQUEST_NULL, queued(3, {.looks = 1, .error = MPI_ERR_OTHER})};
    MPI_Status statuses[4];
    CHECK(wait_all(4, requests, statuses) == MPI_ERR_IN_STATUS);
    for (MPI_Request request : requests) CHECK(request == MPI_REQUEST_NULL);
    CHECK(statuses[0].MPI_SOURCE == 1);
    CHECK(statuses[1].MPI_SOURCE == 2);
    CHECK(is_empty(statuses[2]));
    CHECK(statuses[0].MPI_ERROR == MPI_SUCCESS);
    CHECK(statuses[1].MPI_ERROR == MPI_SUCCESS);
    CHECK(statuses[2].MPI_ERROR == MPI_SUCCESS);
    CHECK(statuses[3].MPI_ERROR == MPI_ERR_OTHER);
    engine->forget_kind(RequestKind::generalized);
}
