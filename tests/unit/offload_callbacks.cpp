// SPDX-License-Identifier: BSD-3-Clause
// The owner of the engine inside a function of the program that waits for a lock: what the holder
// of the lock may call without waiting for the owner.
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "running_engine.hpp"

using namespace vecmpi;
using namespace vecmpi::offload;

namespace {

// A lock of the program, taken by a callback that the library runs inside the owner's Testsome.
struct InterpreterLock {
    std::atomic<bool> held{true};
    std::atomic<bool> wanted{false};
    std::atomic<bool> starved{false};
    InterpreterLock() {
        fake::inside_testsome = [this] { take(); };
    }
    // In a look at a single request, of the offload thread or of the thread that looks first.
    enum Taker { offload_thread, first_thread };
    explicit InterpreterLock(Taker taker) {
        fake::inside_test = [this, taker] {
            if (taker == offload_thread ? this_thread.is_offload_thread : !wanted.exchange(true))
                take();
        };
    }

  private:
    void take() {
        wanted = true;
        starved = starved || !eventually([this] { return !held.load(); });
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
    if (mode == Mode::callers)
        waiter.join();
    else
        CHECK(wait_one(&first, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK_FALSE(lock.starved);
    std::vector<int> in_order;
    for (int label = 1; label <= 101; ++label) in_order.push_back(label);
    CHECK(fake::labels_of(fake::What::issue) == in_order);
}

TEST_CASE("where callers ask, nothing waits for an offload thread that is inside a callback",
          "[offload][callbacks]") {
    const bool many_producers = GENERATE(false, true), own_cpu = GENERATE(false, true);
    FreshLibrary library;
    InterpreterLock lock(InterpreterLock::offload_thread);
    RunningEngine running(Mode::thread, own_cpu, many_producers);
    engine->let_callers_complete();
    MPI_Request stuck = queued(1);
    REQUIRE(eventually([&] { return lock.wanted.load(); }));
    int flag = 1, index = -1, indices[2];
    MPI_Status statuses[2];
    CHECK(test_one(&stuck, &flag, statuses) == MPI_SUCCESS);
    CHECK(flag == 0);
    MPI_Request small_one = library_request(2, {.looks = 3});
    CHECK(wait_one(&small_one, statuses) == MPI_SUCCESS);
    CHECK(statuses[0].MPI_SOURCE == 2);
    MPI_Request queued_one = queued(3, {.looks = 3, .error = MPI_ERR_TRUNCATE});
    CHECK(wait_one(&queued_one, statuses) == MPI_ERR_TRUNCATE);
    MPI_Request both[2] = {queued(4), library_request(5, {.looks = 2})};
    CHECK(test_all(2, both, &flag, statuses) == MPI_SUCCESS);
    CHECK(flag == 0);
    CHECK(wait_any(2, both, &index, statuses) == MPI_SUCCESS);
    CHECK(index == 1);
    CHECK(test_some(2, both, &index, indices, statuses) == MPI_SUCCESS);
    CHECK(index == 0);
    fake::complete(4);
    CHECK(wait_all(2, both, statuses) == MPI_SUCCESS);
    MPI_Request cancelled = queued(6), freed = queued(7),
                persistent = made_persistent(8, {.looks = 2});
    CHECK(cancel(&cancelled) == MPI_SUCCESS);
    CHECK(wait_one(&cancelled, statuses) == MPI_SUCCESS);
    CHECK(request_free(&freed) == MPI_SUCCESS);
    for (int round = 0; round < 2; ++round) {
        CHECK(start(&persistent) == MPI_SUCCESS);
        CHECK(wait_one(&persistent, statuses) == MPI_SUCCESS);
        CHECK(statuses[0].MPI_SOURCE == 8);
    }
    CHECK(request_free(&persistent) == MPI_SUCCESS);
    CHECK(lock.held);
    lock.held = false;
    fake::complete(1);
    CHECK(wait_one(&stuck, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK_FALSE(lock.starved);
    CHECK(fake::calls_of_testsome() == 0);
}

TEST_CASE("where callers ask, no thread of the program waits for another that is inside a callback",
          "[offload][callbacks]") {
    FreshLibrary library;
    RunningEngine running(Mode::callers);
    engine->let_callers_complete();
    InterpreterLock lock(InterpreterLock::first_thread);
    MPI_Request first = library_request(1, {.looks = 1});
    std::thread waiter([&] { wait_one(&first, MPI_STATUS_IGNORE); });
    REQUIRE(eventually([&] { return lock.wanted.load(); }));
    for (int label = 2; label < 10; ++label) {
        MPI_Request request = MPI_REQUEST_NULL;
        CHECK(post_fake(label, {.looks = 2}, &request) == MPI_SUCCESS);
        CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        CHECK(run_fake(100 + label, {.looks = 2}, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    }
    CHECK(lock.held);
    lock.held = false;
    waiter.join();
    fake::inside_test = nullptr;
    CHECK_FALSE(lock.starved);
}

TEST_CASE("callers ask from the first operator of the program on, when the owner's look has ended",
          "[offload][callbacks]") {
    FreshLibrary library;
    std::atomic<int> looking{0};
    fake::inside_testsome = [&] {
        ++looking;
        usleep(5000);
        --looking;
    };
    RunningEngine running(Mode::thread);
    MPI_Request before = queued(1), requests[2];
    CallFacts facts = large();
    facts.collective = facts.reduces = true;
    facts.type = MPI_INT;
    REQUIRE(eventually([&] { return looking != 0; }));
    facts.op = MPI_MAX;
    CHECK(post_fake(2, {.looks = 1}, &requests[0], facts) == MPI_SUCCESS);
    CHECK_FALSE(engine->callers_complete());
    REQUIRE(eventually([&] { return looking != 0; }));
    facts.op = static_cast<MPI_Op>(0x98000000u);
    CHECK(post_fake(3, {.looks = 1}, &requests[1], facts) == MPI_SUCCESS);
    CHECK(engine->callers_complete());
    CHECK(looking == 0);
    const int looks = fake::calls_of_testsome();
    fake::complete(1);
    CHECK(wait_one(&before, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    for (MPI_Request& request : requests)
        CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(fake::calls_of_testsome() == looks);
}

TEST_CASE("callers begin to ask while threads post, wait, test, cancel and free",
          "[offload][callbacks]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    std::atomic<int> wrong{0};
    std::vector<std::thread> program;
    for (int thread = 0; thread < 3; ++thread)
        program.emplace_back([thread, &wrong] {
            for (int i = 1; i <= 300; ++i) {
                const int label = thread * 1000 + i;
                const fake::Plan plan{.looks = 1 + i % 3};
                MPI_Request requests[2] = {MPI_REQUEST_NULL, library_request(10000 + label, plan)};
                MPI_Status status = untouched_status();
                int flag = 0;
                post_fake(label, plan, &requests[0], i % 4 ? large() : small());
                if (thread == 0 && i == 100) engine->let_callers_complete();
                if (i % 7 == 0) cancel(&requests[0]);
                if (i % 5 == 0) request_free(&requests[0]);
                if (i % 5 == 0 || i % 3 == 0) {
                    wait_all(2, requests, MPI_STATUSES_IGNORE);
                    continue;
                }
                while (!flag) test_one(&requests[0], &flag, &status);
                wrong += i % 7 != 0 && status.MPI_SOURCE != label;
                wait_one(&requests[1], &status);
                wrong += status.MPI_SOURCE != 10000 + label;
            }
        });
    for (std::thread& thread : program) thread.join();
    CHECK(wrong == 0);
    CHECK(engine->callers_complete());
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

TEST_CASE("an operator that runs with the library's lock held keeps the offload thread out",
          "[offload][callbacks]") {
    constexpr auto users = static_cast<MPI_Op>(0x98000001u);
    FreshLibrary library;
    std::atomic<int> calls_of_thread{0};
    const auto note = [&] { calls_of_thread += this_thread.is_offload_thread; };
    fake::inside_issue = [&](int) { note(); };
    fake::inside_test = fake::inside_testsome = note;
    RunningEngine running(Mode::thread);
    note_op(users);
    CHECK_FALSE(engine->thread.stands_back());  // MPICH 4 runs it without
    engine->facts.operators_lock_library = true;
    note_op(MPI_SUM);
    CHECK_FALSE(engine->thread.stands_back());
    note_op(users);
    CHECK(engine->thread.stands_back());
    calls_of_thread = 0;

    MPI_Request request = MPI_REQUEST_NULL, persistent = made_persistent(2, {.looks = 5});
    CHECK(post_fake(1, {.looks = 5}, &request) == MPI_SUCCESS);
    CHECK(fake::is_active(1));
    CHECK(start(&persistent) == MPI_SUCCESS);
    CHECK(fake::is_active(2));
    usleep(20000);  // the thread's chance
    CHECK(calls_of_thread == 0);
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(wait_one(&persistent, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(calls_of_thread == 0);
    CHECK(request_free(&persistent) == MPI_SUCCESS);
}
