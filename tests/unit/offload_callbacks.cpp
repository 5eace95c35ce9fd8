// SPDX-License-Identifier: BSD-3-Clause
// The owner of the engine inside a function of the program that waits for a lock: what the holder of the
// lock may call without waiting for the owner.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "running_engine.hpp"

using namespace vecmpi;

namespace {

// A lock of the program, taken by a callback that the library runs inside the owner's Testsome.
struct InterpreterLock {
    std::atomic<bool> held{true};
    std::atomic<bool> wanted{false};
    std::atomic<bool> starved{false};
    InterpreterLock() {
        fake::inside_testsome = [this] {
            wanted = true;
            starved = starved || !eventually([this] { return !held.load(); });
        };
    }
};

}  // namespace

TEST_CASE("a direct call does not wait for an owner that is inside a callback",
          "[offload][callbacks]") {
    const bool many_producers = GENERATE(false, true);
    FreshLibrary library;
    InterpreterLock lock;
    RunningEngine running(Mode::thread, false, many_producers);
    MPI_Request request = queued(1, {.looks = 1});
    REQUIRE(eventually([&] { return lock.wanted.load(); }));
    { DirectCall type_free(Call::Type_free); }
    CHECK(lock.held);
    lock.held = false;
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK_FALSE(lock.starved);
}

TEST_CASE("a direct call issues what is queued beside an owner that is inside a callback",
          "[offload][callbacks]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    InterpreterLock lock;
    RunningEngine running(mode);
    MPI_Request first = queued(1, {.looks = 1});
    std::thread waiter;
    if (mode == Mode::callers) waiter = std::thread([&] { wait_one(&first, MPI_STATUS_IGNORE); });
    REQUIRE(eventually([&] { return lock.wanted.load(); }));
    std::vector<MPI_Request> others;
    for (int label = 2; label <= 100; ++label) {  // beyond one Testsome
        others.push_back(MPI_REQUEST_NULL);
        CHECK(post_fake(label, {.looks = 1}, &others.back()) == MPI_SUCCESS);
    }
    MPI_Request small_one = MPI_REQUEST_NULL;
    CHECK(post_fake(101, {.looks = 1}, &small_one, small()) == MPI_SUCCESS);
    others.push_back(small_one);
    { DirectCall type_free(Call::Type_free); }
    CHECK(fake::thread_of(fake::What::issue, 101) == std::this_thread::get_id());
    CHECK(lock.held);
    lock.held = false;
    CHECK(wait_all(static_cast<int>(others.size()), others.data(), MPI_STATUSES_IGNORE) ==
          MPI_SUCCESS);
    if (mode == Mode::callers) waiter.join();
    else CHECK(wait_one(&first, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK_FALSE(lock.starved);
    std::vector<int> in_order;
    for (int label = 1; label <= 101; ++label) in_order.push_back(label);
    CHECK(fake::labels_of(fake::What::issue) == in_order);
}

TEST_CASE("direct calls of one thread while others post and wait: nothing is lost, order is kept",
          "[offload][callbacks]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    std::vector<std::thread> program;
    for (int thread = 0; thread < 3; ++thread)
        program.emplace_back([thread] {
            for (int i = 1; i <= 300; ++i) {
                MPI_Request request = MPI_REQUEST_NULL;
                const int label = thread * 1000 + i;
                post_fake(label, {.looks = 1 + i % 3}, &request, i % 4 ? large() : small());
                if (i % 3 == 0) DirectCall type_free(Call::Type_free);
                wait_one(&request, MPI_STATUS_IGNORE);
            }
        });
    for (std::thread& thread : program) thread.join();
    std::vector<int> last(3, 0);
    for (int label : fake::labels_of(fake::What::issue)) {
        CHECK(label % 1000 == last[static_cast<size_t>(label / 1000)] + 1);
        last[static_cast<size_t>(label / 1000)] = label % 1000;
    }
    CHECK(last == std::vector<int>(3, 300));
}

TEST_CASE("a direct call comes after everything that was posted before", "[offload][callbacks]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    for (int label = 1; label <= 200; ++label) {
        MPI_Request request = queued(label, {.looks = 1});
        {
            DirectCall type_free(Call::Type_free);
            REQUIRE(fake::has_event(fake::What::issue, label));
        }
        CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    }
}
