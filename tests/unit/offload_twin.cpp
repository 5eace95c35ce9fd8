// SPDX-License-Identifier: BSD-3-Clause
// Blocking calls as their nonblocking twin: they take over the engine, keep the order, and return
// what the call returned.
#include <catch2/catch.hpp>

#include "running_engine.hpp"

using namespace vecmpi;
using namespace vecmpi::offload;

TEST_CASE("run_twin takes over an idle engine", "[offload][twin]") {
    const Mode mode = GENERATE(Mode::alone, Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    MPI_Status status = untouched_status();
    CHECK(run_fake(1, {.looks = 5}, &status) == MPI_SUCCESS);
    CHECK(status.MPI_SOURCE == 1);
    CHECK(status.MPI_ERROR == -77);
    CHECK(fake::thread_of(fake::What::issue, 1) == std::this_thread::get_id());
}

TEST_CASE("run_twin issues what is queued before its own operation", "[offload][twin]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    MPI_Request request = MPI_REQUEST_NULL;
    engine->own();
    post_fake(1, {.looks = 1}, &request);
    std::thread blocked([] { run_fake(2, {.looks = 2}, MPI_STATUS_IGNORE); });
    engine->leave();
    blocked.join();
    CHECK(fake::labels_of(fake::What::issue) == std::vector<int>{1, 2});
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

TEST_CASE("run_twin returns the errors of the call and of the operation", "[offload][twin]") {
    const Mode mode = GENERATE(Mode::alone, Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    CHECK(run_fake(1, {.issue_error = MPI_ERR_COUNT}, MPI_STATUS_IGNORE) == MPI_ERR_COUNT);
    CHECK(run_fake(2, {.looks = 2, .error = MPI_ERR_TRUNCATE}, MPI_STATUS_IGNORE) ==
          MPI_ERR_TRUNCATE);
    MPI_Status status = untouched_status();
    CHECK(run_fake(3, {.no_request = true}, &status) == MPI_SUCCESS);
    CHECK(is_empty(status));
}

TEST_CASE("run_twin waits its turn when others hold the engine", "[offload][twin]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    constexpr int threads = 4, calls = 300;
    std::vector<std::thread> program;
    std::vector<int> wrong(threads, 0);
    for (int t = 0; t < threads; ++t)
        program.emplace_back([t, &wrong] {
            for (int i = 0; i < calls; ++i) {
                const int label = t * 1000000 + i;
                MPI_Status status{};
                const int rc = run_fake(label, {.looks = 1 + i % 3}, &status);
                wrong[static_cast<size_t>(t)] += rc != MPI_SUCCESS || status.MPI_SOURCE != label;
            }
        });
    for (std::thread& thread : program) thread.join();
    CHECK(wrong == std::vector<int>(threads, 0));
    // Without an offload thread a lone caller may be inside when another comes: the library has a
    // lock at that level.
    if (mode == Mode::thread) CHECK(fake::most_at_once() == 1);
}
