// SPDX-License-Identifier: BSD-3-Clause
// The owner of the engine inside a function of the program that waits for a lock: what the holder of the
// lock may call without waiting for the owner.
#include <atomic>
#include <catch2/catch.hpp>

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
