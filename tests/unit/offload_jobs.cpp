// SPDX-License-Identifier: BSD-3-Clause
// Jobs: who looks at them, what their requests do, and what happens without slots, or at the end.
#include <catch2/catch.hpp>

#include "running_engine.hpp"

using namespace vecmpi;
using namespace vecmpi::offload;

namespace {

constexpr MPI_Comm comm = MPI_COMM_WORLD;

// What a job leaves behind.
struct Trace {
    std::atomic<int> looks{0}, threads_inside{0};
    std::atomic<bool> may_end{true}, destroyed{false}, overlapped{false}, outside{false};
};

class CountedJob : public Job {
  public:
    CountedJob(Trace& trace, int looks, int result = MPI_SUCCESS) : trace_(trace), looks_(looks) {
        error = result;
    }
    ~CountedJob() override { trace_.destroyed = true; }
    bool advance() noexcept override {
        if (trace_.threads_inside.fetch_add(1) != 0) trace_.overlapped = true;
        if (!is_reentrant()) trace_.outside = true;
        MPI_Request none = MPI_REQUEST_NULL;
        int flag;
        real.Test(&none, &flag, MPI_STATUS_IGNORE);
        const bool done = ++trace_.looks >= looks_ && trace_.may_end;
        trace_.threads_inside.fetch_sub(1);
        return done;
    }

  private:
    Trace& trace_;
    int looks_;
};

MPI_Request posted_job(Trace& trace, int looks, int result = MPI_SUCCESS) {
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK(post_job(Call::Iallreduce, std::make_unique<CountedJob>(trace, looks, result), comm,
                   &request) == MPI_SUCCESS);
    return request;
}

// The error handler that is called, and with what.
struct Raised {
    MPI_Comm comm = MPI_COMM_NULL;
    int error = MPI_SUCCESS;
    int times = 0;
    bool held = false;
};
Raised raised;

void watch_errors() {
    raised = {};
    real.Comm_call_errhandler = [](MPI_Comm handlers_comm, int error) {
        raised = {handlers_comm, error, raised.times + 1, this_thread.is(Inside::engine)};
        return int{MPI_SUCCESS};
    };
}

// Stand-ins are receives from this process, by tag.
int messages_too_long;
void make_stand_ins_work() {
    messages_too_long = 0;
    real.Comm_split = [](MPI_Comm, int, int, MPI_Comm* made) {
        *made = fake::communicator(1);
        return int{MPI_SUCCESS};
    };
    real.Comm_free = [](MPI_Comm* freed) {
        *freed = MPI_COMM_NULL;
        return int{MPI_SUCCESS};
    };
    real.Irecv = [](void*, int, MPI_Datatype, int, int tag, MPI_Comm, MPI_Request* request) {
        return fake::issue(1000 + tag, {}, request);
    };
    real.Isend = [](const void*, int count, MPI_Datatype, int, int tag, MPI_Comm,
                    MPI_Request* request) {
        messages_too_long += count != 0;
        fake::complete(1000 + tag, count != 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
        *request = MPI_REQUEST_NULL;
        return int{MPI_SUCCESS};
    };
}

class NoSlotLeft {
  public:
    NoSlotLeft() {
        while (Slot* slot = engine->pool.take()) taken_.push_back(slot);
    }
    ~NoSlotLeft() {
        for (Slot* slot : taken_) engine->pool.give(slot);
    }

  private:
    std::vector<Slot*> taken_;
};

int dropped = 0;

class CountedSource final : public JobSource {
  public:
    CountedSource(Trace& trace, int looks, int error) noexcept
        : trace_(trace), looks_(looks), error_(error) {}
    ~CountedSource() override { ++dropped; }
    std::unique_ptr<Job> start(int* error) noexcept override {
        if (!is_reentrant()) trace_.outside = true;
        *error = error_;
        if (looks_ == 0) return nullptr;
        return std::make_unique<CountedJob>(trace_, looks_);
    }

  private:
    Trace& trace_;
    const int looks_, error_;
};

MPI_Request persistent_job(Trace& trace, int looks, int error = MPI_SUCCESS) {
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK(make_persistent_job(Call::Allreduce_init, comm,
                              std::make_unique<CountedSource>(trace, looks, error),
                              &request) == MPI_SUCCESS);
    REQUIRE(is_virtual(request));
    return request;
}

}  // namespace

TEST_CASE("jobs: a request completes after as many looks as its job needs", "[offload][jobs]") {
    const Mode mode = GENERATE(Mode::alone, Mode::callers, Mode::thread);
    const bool own_cpu = GENERATE(false, true);
    const int looks = GENERATE(1, 2, 50);
    FreshLibrary library;
    RunningEngine running(mode, own_cpu);
    Trace waited, tested;
    MPI_Request request = posted_job(waited, looks);
    REQUIRE(is_virtual(request));
    MPI_Status status = untouched_status();
    CHECK(wait_one(&request, &status) == MPI_SUCCESS);
    CHECK(request == MPI_REQUEST_NULL);
    CHECK(is_empty(status));
    CHECK(status.MPI_ERROR == -77);
    CHECK(waited.looks == looks);
    CHECK(waited.destroyed);
    request = posted_job(tested, looks);
    CHECK(eventually([&] {
        int flag = 0;
        CHECK(test_one(&request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        return flag != 0;
    }));
    CHECK(request == MPI_REQUEST_NULL);
    CHECK(tested.looks == looks);
    CHECK_FALSE((waited.overlapped || waited.outside || tested.overlapped || tested.outside));
}

TEST_CASE("jobs: waits are ours even where the library waits as well", "[offload][jobs]") {
    FreshLibrary library;
    RunningEngine running(Mode::alone);
    engine->facts.library_may_wait = true;
    REQUIRE(engine->facts.library_waits_as_well());
    Trace traces[5];
    MPI_Request requests[3] = {posted_job(traces[0], 3), library_request(1, {.looks = 2}),
                               MPI_REQUEST_NULL};
    CHECK(wait_all(3, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    CHECK((requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL));
    requests[0] = posted_job(traces[1], 3);
    int index = -1, found = 0, flag = 0, indices[3];
    CHECK(wait_any(3, requests, &index, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(index == 0);
    requests[0] = posted_job(traces[2], 3);
    CHECK(wait_some(3, requests, &found, indices, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    CHECK((found == 1 && indices[0] == 0));
    requests[0] = posted_job(traces[3], 3);
    requests[1] = library_request(2, {.looks = 3});
    while (!flag) CHECK(test_all(3, requests, &flag, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    CHECK((requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL));
    requests[0] = posted_job(traces[4], 3);
    for (flag = 0; !flag;)
        CHECK(test_any(3, requests, &index, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(index == 0);
    engine->facts.library_may_wait = false;
}

TEST_CASE("jobs: mixtures of jobs, queued operations and real requests", "[offload][jobs]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    const bool generalized = GENERATE(false, true);
    FreshLibrary library;
    RunningEngine running(mode);
    if (generalized) note_requests_of_files();
    Trace traces[2];
    MPI_Request requests[5] = {library_request(1, {.looks = 3}), posted_job(traces[0], 7),
                               queued(2, {.looks = 4}), MPI_REQUEST_NULL, posted_job(traces[1], 2)};
    MPI_Status statuses[5];
    CHECK(wait_all(5, requests, statuses) == MPI_SUCCESS);
    for (MPI_Request request : requests) CHECK(request == MPI_REQUEST_NULL);
    CHECK((statuses[0].MPI_SOURCE == 1 && statuses[2].MPI_SOURCE == 2));
    CHECK((is_empty(statuses[1]) && is_empty(statuses[4])));
    engine->forget_kind(RequestKind::generalized);
}

TEST_CASE("jobs: with no slot left a request of the library stands in", "[offload][jobs]") {
    const Mode mode = GENERATE(Mode::alone, Mode::callers, Mode::thread);
    const int error = GENERATE(int{MPI_SUCCESS}, int{MPI_ERR_OTHER});
    FreshLibrary library;
    make_stand_ins_work();
    RunningEngine running(mode);
    const NoSlotLeft none;
    Trace traces[2];
    for (Trace& trace : traces) trace.may_end = false;
    MPI_Request requests[2] = {posted_job(traces[0], 3, error), posted_job(traces[1], 5)};
    CHECK_FALSE((is_virtual(requests[0]) || is_virtual(requests[1])));
    int flag = 0;
    CHECK(test_one(&requests[0], &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(flag == 0);
    traces[1].may_end = true;
    CHECK(wait_one(&requests[1], MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(traces[1].destroyed);
    CHECK_FALSE(traces[0].destroyed);
    traces[0].may_end = true;
    CHECK(wait_one(&requests[0], MPI_STATUS_IGNORE) ==
          (error == MPI_SUCCESS ? MPI_SUCCESS : MPI_ERR_TRUNCATE));
    CHECK(messages_too_long == (error != MPI_SUCCESS));
}

TEST_CASE("jobs: without a stand-in either, the call returns when the job is done",
          "[offload][jobs]") {
    FreshLibrary library;
    RunningEngine running(Mode::alone);
    watch_errors();
    real.Comm_split = [](MPI_Comm, int, int, MPI_Comm*) { return int{MPI_ERR_NO_MEM}; };
    const NoSlotLeft none;
    Trace trace;
    CHECK(posted_job(trace, 9) == MPI_REQUEST_NULL);
    CHECK(trace.looks == 9);
    CHECK(trace.destroyed);
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK(make_persistent_job(Call::Allreduce_init, comm,
                              std::make_unique<CountedSource>(trace, 1, MPI_SUCCESS),
                              &request) == MPI_ERR_NO_MEM);
}

TEST_CASE("jobs: an error is raised by the handler of the communicator, nothing held",
          "[offload][jobs]") {
    const Mode mode = GENERATE(Mode::alone, Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    watch_errors();
    Trace traces[3];
    MPI_Request request = posted_job(traces[0], 3, MPI_ERR_OTHER);
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_ERR_OTHER);
    CHECK((raised.comm == comm && raised.error == MPI_ERR_OTHER && raised.times == 1));
    CHECK_FALSE(raised.held);
    MPI_Request requests[2] = {posted_job(traces[1], 3), posted_job(traces[2], 2, MPI_ERR_INTERN)};
    MPI_Status statuses[2];
    CHECK(wait_all(2, requests, statuses) == MPI_ERR_IN_STATUS);
    CHECK((statuses[0].MPI_ERROR == MPI_SUCCESS && statuses[1].MPI_ERROR == MPI_ERR_INTERN));
    CHECK((raised.error == MPI_ERR_INTERN && raised.times == 2));
    CountedJob job(traces[0], 5, MPI_ERR_OTHER);
    CHECK(run_job(job, comm) == MPI_ERR_OTHER);
    CHECK(raised.times == 3);
}

TEST_CASE("jobs: persistent ones are made anew at each start", "[offload][jobs]") {
    const Mode mode = GENERATE(Mode::alone, Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    engine->facts.library_may_wait = mode == Mode::alone;
    Trace traces[2], nothing;
    MPI_Request requests[3] = {persistent_job(traces[0], 3), persistent_job(traces[1], 5),
                               persistent_job(nothing, 0)};
    const MPI_Request handle = requests[0];
    CHECK(wait_all(3, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);  // inactive
    for (int round = 1; round <= 3; ++round) {
        CHECK(start_all(3, requests) == MPI_SUCCESS);
        CHECK(wait_all(3, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
        CHECK(requests[0] == handle);
        for (Trace& trace : traces) {
            CHECK(trace.destroyed);
            trace.looks = 0;
            trace.destroyed = false;
        }
    }
    int flag = 0;
    CHECK(test_one(&requests[1], &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(flag == 1);
    for (MPI_Request& request : requests) CHECK(request_free(&request) == MPI_SUCCESS);
    CHECK(engine->pool.find(handle) == nullptr);
    CHECK_FALSE((traces[0].outside || nothing.outside));
    engine->facts.library_may_wait = false;
}

TEST_CASE("jobs: nothing to do but an error", "[offload][jobs]") {
    FreshLibrary library;
    RunningEngine running(Mode::alone);
    watch_errors();
    Trace trace;
    MPI_Request request = persistent_job(trace, 0, MPI_ERR_NO_MEM);
    CHECK(start(&request) == MPI_SUCCESS);
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_ERR_NO_MEM);
    CHECK(raised.error == MPI_ERR_NO_MEM);
    const int before = dropped;
    CHECK(request_free(&request) == MPI_SUCCESS);
    CHECK(dropped == before + 1);
}

TEST_CASE("jobs: a freed request's job goes on, and its slot comes back", "[offload][jobs]") {
    const Mode mode = GENERATE(Mode::alone, Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    Trace trace, other;
    trace.may_end = false;
    MPI_Request request = posted_job(trace, 2);
    const MPI_Request handle = request;
    CHECK(cancel(&request) != MPI_SUCCESS);
    int flag = 1;
    CHECK(request_get_status(request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(flag == 0);
    CHECK(request_free(&request) == MPI_SUCCESS);
    CHECK(request == MPI_REQUEST_NULL);
    trace.may_end = true;
    MPI_Request second = posted_job(other, 30);
    CHECK(wait_one(&second, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(eventually([&] { return trace.destroyed && !engine->pool.find(handle); }));
}

TEST_CASE("jobs: a blocking job lets the others go on", "[offload][jobs]") {
    const Mode mode = GENERATE(Mode::alone, Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    Trace first, second;
    MPI_Request request = posted_job(first, 5);
    CountedJob job(second, 100);
    CHECK(run_job(job, comm) == MPI_SUCCESS);
    CHECK(eventually([&] { return first.destroyed.load(); }));
    int flag = 0;
    CHECK(request_get_status(request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(flag == 1);
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

TEST_CASE("jobs: where callers ask, an owner that does not come back holds up no job",
          "[offload][jobs]") {
    FreshLibrary library;
    RunningEngine running(Mode::callers);
    engine->let_callers_complete();
    REQUIRE(engine->callers_complete());
    REQUIRE(engine->try_own());  // as if another thread were stuck in an operator
    Trace traces[4];
    MPI_Request requests[3] = {posted_job(traces[0], 20), library_request(1, {.looks = 2}),
                               posted_job(traces[1], 30)};
    CHECK(wait_all(3, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    MPI_Request tested = posted_job(traces[2], 20);
    for (int flag = 0; !flag;) CHECK(test_one(&tested, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CountedJob job(traces[3], 20);
    CHECK(run_job(job, comm) == MPI_SUCCESS);
    engine->leave();
}

TEST_CASE("jobs: looks from a wait of the library", "[offload][jobs]") {
    FreshLibrary library;
    RunningEngine running(Mode::alone);
    CHECK(job_look_after_poll() == library::JobLook::at_once);
    engine->facts.library_locks = true;
    CHECK(job_look_after_poll() == library::JobLook::after_unlock);
    engine->facts.library_locks = false;
    engine->own();
    engine->as_owner([] { CHECK(job_look_after_poll() == library::JobLook::none); });
    Trace trace;
    MPI_Request request = posted_job(trace, 4);
    CHECK(library::jobs_under_way == 1);
    for (int i = 0; i < 3; ++i) advance_jobs_in_library();
    CHECK(trace.destroyed);
    CHECK(library::jobs_under_way == 0);
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

TEST_CASE("jobs: served where all ranks say so", "[offload][jobs]") {
    FreshLibrary library;
    const bool serve = GENERATE(false, true);
    CHECK_FALSE(jobs_are_served());
    start_engine(MPI_THREAD_SERIALIZED, MPI_THREAD_SERIALIZED, {.serve_jobs = serve}, false,
                 nullptr);
    CHECK(jobs_are_served() == serve);
    quiesce_engine();
    CHECK(jobs_are_served() == serve);  // in callbacks of MPI_Finalize as on ranks outside of it
    stop_engine();
    CHECK_FALSE(jobs_are_served());
}

TEST_CASE("jobs: MPI_Finalize survives a job that never ends", "[offload][jobs]") {
    const Mode mode = GENERATE(Mode::alone, Mode::thread);
    FreshLibrary library;
    Trace trace;  // outlives the engine; the job is left behind
    MPI_Request request;
    {
        RunningEngine running(mode);
        trace.may_end = false;
        request = posted_job(trace, 1);
    }
    engine->pool.give(engine->pool.find(request));  // other tests count them
    CHECK_FALSE(trace.destroyed);
    CHECK(library::jobs_under_way == 0);
}

TEST_CASE("jobs: many threads, many jobs, one thread at a time in each", "[offload][jobs]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    const bool asks = GENERATE(false, true);
    FreshLibrary library;
    RunningEngine running(mode);
    if (asks) engine->let_callers_complete();
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread)
        threads.emplace_back([&wrong, thread] {
            for (int round = 0; round < 100; ++round) {
                Trace traces[8];
                MPI_Request requests[8];
                for (int i = 0; i < 8; ++i)
                    if (post_job(Call::Iallreduce,
                                 std::make_unique<CountedJob>(traces[i], 1 + (thread + i) % 5),
                                 comm, &requests[i]) != MPI_SUCCESS)
                        ++wrong;
                if (round % 3 == 0) advance_jobs_in_library();
                wait_all(8, requests, MPI_STATUSES_IGNORE);
                for (int i = 0; i < 8; ++i)
                    if (!traces[i].destroyed || traces[i].overlapped ||
                        traces[i].looks != 1 + (thread + i) % 5)
                        ++wrong;
            }
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
}
