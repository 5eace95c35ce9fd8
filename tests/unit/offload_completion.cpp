// SPDX-License-Identifier: BSD-3-Clause
// Wait and Test over mixtures of virtual, real, null and inactive requests (MPI 4.0, 3.7.3 and 3.7.5). What happens when
// operations fail is in offload_errors.cpp.
#include <catch2/catch.hpp>
#include <random>

#include "running_engine.hpp"

using namespace vecmpi;

namespace {

constexpr int never_reported = -1;

// What a program holds in one array, and what it must get back for each.
struct Mixture {
    std::vector<MPI_Request> requests;
    std::vector<int> labels;  // never_reported for null and inactive ones
    int active = 0;
};

Mixture random_mixture(std::mt19937& random, int count, int* next_label) {
    Mixture mixture;
    for (int i = 0; i < count; ++i) {
        const int label = ++*next_label;
        const fake::Plan plan{.looks = 1 + static_cast<int>(random() % 6)};
        MPI_Request request = MPI_REQUEST_NULL;
        bool active = true;
        switch (random() % 6) {
            case 0:
                active = false;
                break;
            case 1:
                request = made_persistent(label, plan);
                active = false;
                break;
            case 2:
                request = made_persistent(label, plan);
                start(&request);
                break;
            case 3:
                request = library_request(label, plan);
                break;
            default:
                request = engine->queues ? queued(label, plan) : library_request(label, plan);
        }
        mixture.requests.push_back(request);
        mixture.labels.push_back(active ? label : never_reported);
        mixture.active += active;
    }
    return mixture;
}

void free_persistent(Mixture& mixture) {
    for (MPI_Request& request : mixture.requests)
        if (request != MPI_REQUEST_NULL) CHECK(request_free(&request) == MPI_SUCCESS);
}

// One completion as the program sees it: right place, right status, reported once.
void check_result(Mixture& mixture, int index, const MPI_Status& status) {
    REQUIRE(index >= 0);
    REQUIRE(index < static_cast<int>(mixture.labels.size()));
    int& label = mixture.labels[static_cast<size_t>(index)];
    REQUIRE(label != never_reported);
    CHECK(status.MPI_SOURCE == label);
    CHECK(status.MPI_TAG == label + 1);
    CHECK(status.MPI_ERROR == -77);
    label = never_reported;
    --mixture.active;
}

// Runs `complete(mixture)` on many random mixtures, with and without blocking, in all modes.
template <class Complete>
void on_random_mixtures(Complete complete) {
    const Mode mode = GENERATE(Mode::alone, Mode::callers, Mode::thread);
    const bool blocking = GENERATE(false, true);
    const unsigned seed = std::random_device{}();
    INFO("mode " << static_cast<int>(mode) << ", blocking " << blocking << ", seed " << seed);
    std::mt19937 random(seed);
    FreshLibrary library;
    RunningEngine running(mode);
    int label = 0;
    for (int round = 0; round < 100; ++round) {
        Mixture mixture = random_mixture(random, static_cast<int>(random() % 9), &label);
        complete(mixture, blocking);
        REQUIRE(mixture.active == 0);
        free_persistent(mixture);
    }
}

}  // namespace

TEST_CASE("Waitany, Testany: each operation is reported once, then nothing is left", "[offload][completion]") {
    on_random_mixtures([](Mixture& mixture, bool blocking) {
        const int count = static_cast<int>(mixture.requests.size());
        for (;;) {
            int index = -5, flag = 1;
            MPI_Status status = untouched_status();
            if (blocking)
                REQUIRE(wait_any(count, mixture.requests.data(), &index, &status) == MPI_SUCCESS);
            else
                REQUIRE(test_any(count, mixture.requests.data(), &index, &flag, &status) == MPI_SUCCESS);
            if (flag && index != MPI_UNDEFINED) {
                check_result(mixture, index, status);
                continue;
            }
            REQUIRE(index == MPI_UNDEFINED);
            if (!flag) continue;
            CHECK(is_empty(status));
            return;
        }
    });
}

TEST_CASE("Waitsome, Testsome: each operation is reported once, then nothing is left", "[offload][completion]") {
    on_random_mixtures([](Mixture& mixture, bool blocking) {
        const int count = static_cast<int>(mixture.requests.size());
        for (;;) {
            int outcount = -5;
            std::vector<int> indices(mixture.requests.size(), -5);
            std::vector<MPI_Status> statuses(mixture.requests.size(), untouched_status());
            auto* const call = blocking ? wait_some : test_some;
            REQUIRE(call(count, mixture.requests.data(), &outcount, indices.data(), statuses.data()) == MPI_SUCCESS);
            if (outcount == MPI_UNDEFINED) return;
            REQUIRE(outcount >= (blocking ? 1 : 0));
            REQUIRE(outcount <= mixture.active);
            for (int i = 0; i < outcount; ++i)
                check_result(mixture, indices[static_cast<size_t>(i)], statuses[static_cast<size_t>(i)]);
        }
    });
}

TEST_CASE("Waitall, Testall: all or nothing, in the order of the array", "[offload][completion]") {
    on_random_mixtures([](Mixture& mixture, bool blocking) {
        const int count = static_cast<int>(mixture.requests.size());
        std::vector<MPI_Status> statuses(mixture.requests.size(), untouched_status());
        const std::vector<MPI_Request> before = mixture.requests;
        if (blocking) {
            REQUIRE(wait_all(count, mixture.requests.data(), statuses.data()) == MPI_SUCCESS);
        } else {
            for (int flag = 0; !flag;) {
                REQUIRE(mixture.requests == before);
                REQUIRE(test_all(count, mixture.requests.data(), &flag, statuses.data()) == MPI_SUCCESS);
            }
        }
        for (int i = 0; i < count; ++i) {
            const MPI_Status& status = statuses[static_cast<size_t>(i)];
            if (mixture.labels[static_cast<size_t>(i)] == never_reported)
                CHECK(is_empty(status));
            else
                check_result(mixture, i, status);
        }
    });
}

TEST_CASE("Wait, Test: one request of each kind", "[offload][completion]") {
    on_random_mixtures([](Mixture& mixture, bool blocking) {
        for (size_t i = 0; i < mixture.requests.size(); ++i) {
            MPI_Status status = untouched_status();
            int flag = 0;
            if (blocking) REQUIRE(wait_one(&mixture.requests[i], &status) == MPI_SUCCESS);
            while (!blocking && !flag) REQUIRE(test_one(&mixture.requests[i], &flag, &status) == MPI_SUCCESS);
            if (mixture.labels[i] == never_reported)
                CHECK(is_empty(status));
            else
                check_result(mixture, static_cast<int>(i), status);
        }
    });
}

TEST_CASE("statuses may be ignored", "[offload][completion]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    const auto pair = [](int label) {
        return std::vector<MPI_Request>{queued(label, {.looks = 1}), library_request(label + 1, {.looks = 1})};
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
    CHECK(test_one(&requests[1], &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS);  // its look finds the first
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

TEST_CASE("Testany, Testsome: a result that is there already is reported", "[offload][completion]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    std::vector<MPI_Request> requests{library_request(9), queued(1, {.looks = 1})};
    Slot* slot = engine->pool.find(requests[1]);
    REQUIRE(eventually([slot] {
        if (engine->try_own()) {
            {
                const OwnerScope scope;
                engine->step();
            }
            engine->leave();
        }
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
                wrong[static_cast<size_t>(t)] +=
                    rc != MPI_SUCCESS || statuses[0].MPI_SOURCE != label || statuses[1].MPI_SOURCE != label + 1;
            }
        });
    for (std::thread& thread : program) thread.join();
    CHECK(wrong == std::vector<int>(threads, 0));
}

TEST_CASE("wait_until looks as the owner until there is something", "[offload][completion]") {
    const Mode mode = GENERATE(Mode::alone, Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    struct Looks {
        int left = 5;
        bool always_owner = true;
    } looks;
    wait_until(
        [](void* context) {
            auto& mine = *static_cast<Looks*>(context);
            mine.always_owner &= this_thread.owns_engine;
            return --mine.left == 0;
        },
        &looks);
    CHECK(looks.left == 0);
    CHECK(looks.always_owner);
    CHECK_FALSE(this_thread.owns_engine);
}
