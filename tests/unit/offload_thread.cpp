// SPDX-License-Identifier: BSD-3-Clause
// The offload thread: parks when nothing is pending, wakes, never parks on pending work, stands
// back; life and fork.
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "base/api/needs.hpp"
#include "offload/completion.hpp"
#include "offload/poll_interval.hpp"
#include "running_engine.hpp"

using namespace vecmpi;
using namespace vecmpi::offload;

namespace {

// One field of the kernel's view of the thread named "vecmpi"; empty where there is no such thread.
std::string field_of_thread(const std::string& name) {
    std::string value;
    DIR* tasks = opendir("/proc/self/task");
    REQUIRE(tasks != nullptr);
    while (const dirent* task = readdir(tasks)) {
        std::ifstream status(std::string("/proc/self/task/") + task->d_name + "/status");
        std::string line;
        bool ours = false;
        while (std::getline(status, line)) {
            if (line.starts_with("Name:")) ours = line.ends_with("\tvecmpi");
            if (ours && line.starts_with(name + ":")) value = line.substr(line.find('\t') + 1);
        }
    }
    closedir(tasks);
    return value;
}

// Parked: it sleeps, and over many periods of a thread that still looks around it is not run once.
bool sleeps_undisturbed() {
    const std::string before = field_of_thread("voluntary_ctxt_switches");
    usleep(20000);
    return field_of_thread("State").starts_with("S") && !before.empty() &&
           field_of_thread("voluntary_ctxt_switches") == before;
}

int counter(Counter which) {
    return static_cast<int>(counter_snapshot()[static_cast<size_t>(which)]);
}

}  // namespace

TEST_CASE("the idle thread parks, and wakes for a call", "[offload][thread]") {
    const bool own_cpu = GENERATE(false, true);
    FreshLibrary library;
    RunningEngine running(Mode::thread, own_cpu);
    for (int round = 1; round <= 3; ++round) {
        REQUIRE(eventually(sleeps_undisturbed));
        CHECK(fake::calls_of_testsome() == round - 1);
        MPI_Request request = queued(round, {.looks = 1});
        // Nobody helps: the thread wakes, issues, looks.
        REQUIRE(eventually(
            [&] { return engine->pool.find(request)->state.load() == SlotState::done; }));
        CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        CHECK(fake::thread_of(fake::What::issue, round) != std::this_thread::get_id());
    }
}

// MPI_Test leaves the looks to a thread that has a CPU of its own.
TEST_CASE("the idle thread wakes for a message that its caller has issued", "[offload][thread]") {
    struct Nothing : Ending {
        void complete(const MPI_Status&, int) noexcept override {}
    };
    FreshLibrary library;
    RunningEngine running(Mode::thread, true);
    REQUIRE(eventually(sleeps_undisturbed));
    const FakeArguments arguments{1, {.looks = 3}};
    MPI_Request request = MPI_REQUEST_NULL;
    const auto served =
        post_with_ending(make_operation(Call::Irecv, issue_fake, arguments, small()),
                         std::make_unique<Nothing>(), &request);
    REQUIRE(served == MPI_SUCCESS);
    REQUIRE(is_virtual(request));
    CHECK(fake::thread_of(fake::What::issue, 1) == std::this_thread::get_id());
    int flag = 0;
    CHECK(eventually([&] {
        CHECK(test_one(&request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        return flag != 0;
    }));
}

TEST_CASE("parking is counted", "[offload][thread]") {
    FreshLibrary library;
    RunningEngine running(Mode::thread);
    count_for_report(true);
    const int before = counter(Counter::thread_parks);
    MPI_Request request = queued(1, {.looks = 1});
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(eventually([before] { return counter(Counter::thread_parks) > before; }));
    count_for_report(false);
}

TEST_CASE("the thread goes on looking while something is pending", "[offload][thread]") {
    const bool own_cpu = GENERATE(false, true);
    FreshLibrary library;
    RunningEngine running(Mode::thread, own_cpu);
    MPI_Request request = queued(1);
    REQUIRE(eventually([] { return fake::calls_of_testsome() > 2000; }));  // through all its rests
    MPI_Request second = queued(2, {.looks = 1});                          // which a new call ends
    REQUIRE(eventually([&] { return engine->pool.find(second)->state.load() == SlotState::done; }));
    fake::complete(1);
    REQUIRE(
        eventually([&] { return engine->pool.find(request)->state.load() == SlotState::done; }));
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(wait_one(&second, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(eventually(sleeps_undisturbed));
}

// A program thread took the command from the queue and has not put it into the window yet: nothing
// is to be seen.
TEST_CASE("the thread does not park while a command is between queue and window",
          "[offload][thread]") {
    FreshLibrary library;
    fake::inside_issue = [](int) { usleep(20000); };
    RunningEngine running(Mode::thread);
    MPI_Request request = MPI_REQUEST_NULL;
    engine->own();
    post_fake(1, {.looks = 3}, &request);
    engine->as_owner([] { engine->drain(); });
    CHECK(fake::thread_of(fake::What::issue, 1) == std::this_thread::get_id());
    CHECK(eventually([&] { return engine->pool.find(request)->state.load() == SlotState::done; }));
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

TEST_CASE("calls that race with parking are never forgotten", "[offload][thread]") {
    FreshLibrary library;
    RunningEngine running(Mode::thread);
    for (int i = 0; i < 3000; ++i) {
        MPI_Request request = queued(i, {.looks = 1});
        if (i % 3 == 0) {
            const DirectCall drains_it(Call::Comm_dup);
        }
        Slot* slot = engine->pool.find(request);
        REQUIRE(eventually([slot] { return slot->state.load() == SlotState::done; }));
        REQUIRE(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    }
}

TEST_CASE("MPI_Finalize issues what is queued and ends the thread", "[offload][thread]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    {
        RunningEngine running(mode);
        MPI_Request request = queued(1);
        REQUIRE(engine_has_thread() == (mode == Mode::thread));
        CHECK(cancel(&request) == MPI_SUCCESS);
        CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        MPI_Request freed = MPI_REQUEST_NULL;
        post_fake(2, {.no_request = true}, &freed);
        quiesce_engine();
        CHECK(fake::has_event(fake::What::issue, 2));
        CHECK_FALSE(engine->thread.exists());
        CHECK(engine_runs());  // for the library's callbacks
        CHECK(wait_one(&freed, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    }
    CHECK_FALSE(engine_runs());
    // The kernel lists a thread for a moment after it was joined.
    CHECK(eventually([] { return field_of_thread("State").empty(); }));
}

TEST_CASE("without a running engine every call is the library's", "[offload][thread]") {
    FreshLibrary library;
    REQUIRE_FALSE(engine_runs());
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK(post_fake(1, {.looks = 3}, &request) == MPI_SUCCESS);
    CHECK_FALSE(is_virtual(request));
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK_FALSE(twin_serves(MPI_COMM_WORLD));
    CHECK_FALSE(collective_twin_serves(MPI_COMM_WORLD));
    const DirectCall scope(Call::Comm_dup);
    CHECK_FALSE(is_reentrant());
}

TEST_CASE("the engine starts again after it was stopped", "[offload][thread]") {
    for (int round = 0; round < 5; ++round) {
        FreshLibrary library;
        RunningEngine running(round % 2 == 0 ? Mode::thread : Mode::callers);
        MPI_Request request = queued(1, {.looks = 2});
        CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    }
}

TEST_CASE("the program is told the thread level that it asked for", "[offload][thread]") {
    FreshLibrary library;
    for (int level : {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED}) {
        int told = -1;
        start_engine(level, MPI_THREAD_SERIALIZED, {}, false, &told);
        CHECK(told == level);
        CHECK(app_thread_level() == level);
        CHECK(level_to_request(level) >= level);
        quiesce_engine();
        stop_engine();
    }
    int told = -1;
    start_engine(MPI_THREAD_MULTIPLE, MPI_THREAD_SERIALIZED, {}, false, &told);
    CHECK(told == MPI_THREAD_SERIALIZED);  // no more than the library has
    quiesce_engine();
    stop_engine();
}

// Called in a forked child, where no assertion of the test framework may run.
bool child_uses_only_the_library() {
    static int issued = 0;
    real.Wait = [](MPI_Request* request, MPI_Status*) {
        *request = MPI_REQUEST_NULL;
        return MPI_SUCCESS;
    };
    const auto issue = [](const void*, MPI_Request* request) noexcept {
        ++issued;
        *request = static_cast<MPI_Request>(0xac000001u);
        return MPI_SUCCESS;
    };
    const int no_arguments = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    const int rc = post(make_operation(Call::Isend, issue, no_arguments, large()), &request);
    if (engine_runs() || engine_has_thread() || rc != MPI_SUCCESS || issued != 1 ||
        is_virtual(request))
        return false;
    if (twin_serves(MPI_COMM_WORLD) || collective_twin_serves(MPI_COMM_WORLD)) return false;
    { const DirectCall scope(Call::Comm_dup); }
    if (wait_one(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    return request == MPI_REQUEST_NULL;
}

TEST_CASE("a forked child never touches the engine", "[offload][thread]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    const bool held = GENERATE(false, true);
    FreshLibrary library;
    RunningEngine running(mode);
    MPI_Request request = queued(1);
    REQUIRE(eventually([] { return fake::is_active(1); }));
    if (held) engine->own();  // as if another thread were inside at the fork
    const pid_t child = fork();
    if (child == 0) _exit(child_uses_only_the_library() ? 0 : 1);
    REQUIRE(child > 0);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    if (held) engine->leave();
    fake::complete(1);
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

TEST_CASE("offload thread: the library serves until something is queued, and when all is complete",
          "[offload][thread]") {
    FreshLibrary library;
    RunningEngine running(Mode::thread);
    engine->facts.library_may_wait = true;
    set_need(Need::messages, false);
    CHECK_FALSE(twin_serves(MPI_COMM_WORLD));

    MPI_Request direct = MPI_REQUEST_NULL;
    CHECK(post_fake(1, {.looks = 1}, &direct, small()) == MPI_SUCCESS);
    CHECK_FALSE(is_virtual(direct));
    MPI_Request persistent = fake::persistent(2, {});
    adopt_persistent(small(), &persistent);
    CHECK_FALSE(is_virtual(persistent));
    CHECK_FALSE(has_need(Need::messages));

    MPI_Request behind = queued(3);
    CHECK(is_virtual(behind));
    CHECK(has_need(Need::messages));
    CHECK(twin_serves(MPI_COMM_WORLD));
    REQUIRE(eventually([] { return fake::is_active(3); }));
    CHECK(twin_serves(MPI_COMM_WORLD));  // issued, but under way
    CHECK(hand_on(1, &direct) == false);
    fake::complete(3);
    CHECK(wait_one(&behind, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(eventually([] { return !twin_serves(MPI_COMM_WORLD); }));

    CHECK(hand_on(1, &direct));
    CHECK(wait_one(&direct, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(request_free(&persistent) == MPI_SUCCESS);
    engine->facts.library_may_wait = false;
}

TEST_CASE("poll interval: longer while little moves, shorter while much does",
          "[offload][thread]") {
    PollInterval interval;
    for (uint64_t expected : {100, 200, 400, 400}) CHECK(interval.next_us(3) == expected);
    for (uint64_t expected : {200, 100, 50, 50}) CHECK(interval.next_us(1000) == expected);
    interval.restart();
    CHECK(interval.next_us(0) == 100);
    for (int i = 0; i < 249; ++i) CHECK(interval.next_us(0) <= 400);
    CHECK(interval.next_us(0) == 1000);
    CHECK(interval.next_us(1) == 400);
    interval.restart();
    CHECK(interval.next_us(0) == 100);
}
