// SPDX-License-Identifier: BSD-3-Clause
// Wait and Test over random mixtures of virtual, real, null and inactive requests: every operation
// is reported once, with its own status (MPI 4.0, 3.7.3 and 3.7.5). Single cases are in
// offload_completion.cpp.
#include <catch2/catch.hpp>
#include <random>

#include "running_engine.hpp"

using namespace vecmpi;
using namespace vecmpi::offload;

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
                request = engine->facts.queues ? queued(label, plan) : library_request(label, plan);
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
void check_result(Mixture& mixture, int index, const MPI_Status& status, int error = -77) {
    REQUIRE(index >= 0);
    REQUIRE(index < static_cast<int>(mixture.labels.size()));
    int& label = mixture.labels[static_cast<size_t>(index)];
    REQUIRE(label != never_reported);
    CHECK(status.MPI_SOURCE == label);
    CHECK(status.MPI_TAG == label + 1);
    CHECK(status.MPI_ERROR == error);
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

TEST_CASE("Waitany, Testany: each operation is reported once, then nothing is left",
          "[offload][completion]") {
    on_random_mixtures([](Mixture& mixture, bool blocking) {
        const int count = static_cast<int>(mixture.requests.size());
        for (;;) {
            int index = -5, flag = 1;
            MPI_Status status = untouched_status();
            if (blocking)
                REQUIRE(wait_any(count, mixture.requests.data(), &index, &status) == MPI_SUCCESS);
            else
                REQUIRE(test_any(count, mixture.requests.data(), &index, &flag, &status) ==
                        MPI_SUCCESS);
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

TEST_CASE("Waitsome, Testsome: each operation is reported once, then nothing is left",
          "[offload][completion]") {
    on_random_mixtures([](Mixture& mixture, bool blocking) {
        const int count = static_cast<int>(mixture.requests.size());
        for (;;) {
            int outcount = -5;
            std::vector<int> indices(mixture.requests.size(), -5);
            std::vector<MPI_Status> statuses(mixture.requests.size(), untouched_status());
            auto* const call = blocking ? wait_some : test_some;
            REQUIRE(call(count, mixture.requests.data(), &outcount, indices.data(),
                         statuses.data()) == MPI_SUCCESS);
            if (outcount == MPI_UNDEFINED) return;
            REQUIRE(outcount >= (blocking ? 1 : 0));
            REQUIRE(outcount <= mixture.active);
            for (int i = 0; i < outcount; ++i)
                check_result(mixture, indices[static_cast<size_t>(i)],
                             statuses[static_cast<size_t>(i)]);
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
                REQUIRE(test_all(count, mixture.requests.data(), &flag, statuses.data()) ==
                        MPI_SUCCESS);
            }
        }
        for (int i = 0; i < count; ++i) {
            const MPI_Status& status = statuses[static_cast<size_t>(i)];
            if (mixture.labels[static_cast<size_t>(i)] == never_reported)
                CHECK(is_empty(status));
            else
                check_result(mixture, i, status, blocking ? MPI_SUCCESS : -77);
        }
    });
}

TEST_CASE("Wait, Test: one request of each kind", "[offload][completion]") {
    on_random_mixtures([](Mixture& mixture, bool blocking) {
        for (size_t i = 0; i < mixture.requests.size(); ++i) {
            MPI_Status status = untouched_status();
            int flag = 0;
            if (blocking) REQUIRE(wait_one(&mixture.requests[i], &status) == MPI_SUCCESS);
            while (!blocking && !flag)
                REQUIRE(test_one(&mixture.requests[i], &flag, &status) == MPI_SUCCESS);
            if (mixture.labels[i] == never_reported)
                CHECK(is_empty(status));
            else
                check_result(mixture, static_cast<int>(i), status);
        }
    });
}
