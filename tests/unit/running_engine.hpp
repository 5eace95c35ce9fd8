// SPDX-License-Identifier: BSD-3-Clause
// The engine over the fake library for the life of a test, and short forms of what a program does
// with it.
#pragma once

#include <catch2/catch.hpp>
#include <chrono>
#include <vector>

#include "fake_mpi.hpp"
#include "offload/engine.hpp"

enum class Mode {
    alone,    // one program thread, nothing is queued
    callers,  // MPI_THREAD_MULTIPLE, program threads take turns as owners
    thread    // an offload thread
};

class RunningEngine {
  public:
    explicit RunningEngine(Mode mode, bool own_cpu = false, bool many_producers = true) {
        using namespace vecmpi;
        // Less than MPI_THREAD_MULTIPLE from the library: start_engine() makes no thread, whatever
        // this host has.
        offload::start_engine(MPI_THREAD_SERIALIZED, MPI_THREAD_SERIALIZED, {}, false, nullptr);
        REQUIRE(offload::engine_runs());
        offload::engine->expect_many_producers(many_producers);
        offload::engine->facts.wait = yielding;
        offload::engine->facts.yields_at_once = true;
        offload::engine->facts.library_may_wait = false;  // it spins, and more ranks than CPUs wait
        if (mode == Mode::thread) {
            OffloadPlan plan;
            plan.own_thread = true;
            plan.own_cpu = own_cpu;
            REQUIRE(offload::engine->thread.start(plan));
        }
        offload::engine->facts.queues = offload::engine->facts.many_callers = mode != Mode::alone;
    }
    ~RunningEngine() {
        vecmpi::offload::quiesce_engine();
        CHECK_FALSE(vecmpi::offload::engine->has_work());
        vecmpi::offload::stop_engine();
        vecmpi::offload::forget_comm_traits();
    }
    RunningEngine(const RunningEngine&) = delete;
    RunningEngine& operator=(const RunningEngine&) = delete;

  private:
    static inline const vecmpi::WaitPolicy yielding{
        .spins = 10, .pauses = 0, .yields = UINT32_MAX, .sleep_us = 0, .max_sleep_us = 0};
};

// Before each engine that a test starts: what the fake library does must be set before threads run.
struct FreshLibrary {
    FreshLibrary() { fake::reset(); }
};

inline bool step_as_owner() {
    vecmpi::offload::engine->own();
    return vecmpi::offload::engine->as_owner([] { return vecmpi::offload::engine->step(); });
}

// ---- operations ---------------------------------------------------------------------------------

inline vecmpi::offload::CallFacts message(MPI_Count bytes, MPI_Comm comm = MPI_COMM_WORLD) {
    static const char buffer = 0;
    vecmpi::offload::CallFacts facts;
    facts.comm = comm;
    facts.count = bytes;
    facts.type = MPI_BYTE;
    facts.peer = 1;
    facts.sendbuf = &buffer;
    return facts;
}
inline vecmpi::offload::CallFacts large(MPI_Comm comm = MPI_COMM_WORLD) {
    return message(1 << 20, comm);
}
inline vecmpi::offload::CallFacts small(MPI_Comm comm = MPI_COMM_WORLD) { return message(8, comm); }

struct FakeArguments {
    int label;
    fake::Plan plan;
};

inline int issue_fake(const void* raw, MPI_Request* request) noexcept {
    const auto& arguments = *static_cast<const FakeArguments*>(raw);
    return fake::issue(arguments.label, arguments.plan, request);
}

inline int post_fake(int label, const fake::Plan& plan, MPI_Request* request,
                     const vecmpi::offload::CallFacts& facts = large()) {
    const FakeArguments arguments{label, plan};
    return vecmpi::offload::post(
        vecmpi::offload::make_operation(vecmpi::Call::Isend, issue_fake, arguments, facts),
        request);
}

inline int run_fake(int label, const fake::Plan& plan, MPI_Status* status,
                    const vecmpi::offload::CallFacts& facts = large()) {
    const FakeArguments arguments{label, plan};
    return vecmpi::offload::run_twin(
        vecmpi::offload::make_operation(vecmpi::Call::Isend, issue_fake, arguments, facts), status);
}

// A virtual request. Without an offload thread, as if another program thread were the owner just
// then.
inline MPI_Request queued(int label, const fake::Plan& plan = {}) {
    MPI_Request request = MPI_REQUEST_NULL;
    const bool has_thread = vecmpi::offload::engine->thread.exists();
    if (!has_thread) vecmpi::offload::engine->own();
    const int rc = post_fake(label, plan, &request);
    if (!has_thread) vecmpi::offload::engine->leave();
    REQUIRE(rc == MPI_SUCCESS);
    REQUIRE(vecmpi::offload::is_virtual(request));
    return request;
}

// A request of the library that the program holds.
inline MPI_Request library_request(int label, const fake::Plan& plan = {}) {
    MPI_Request request = MPI_REQUEST_NULL;
    fake::issue(label, plan, &request);
    return request;
}

// An inactive persistent request: virtual where there is an offload thread.
inline MPI_Request made_persistent(int label, const fake::Plan& plan = {}) {
    MPI_Request request = fake::persistent(label, plan);
    vecmpi::offload::adopt_persistent(large(), &request);
    return request;
}

// As ROMIO, inside the library: such requests of files call no function of the program.
inline void note_requests_of_files() {
    const vecmpi::offload::Within romio(vecmpi::offload::Inside::library);
    vecmpi::offload::note_generalized_requests();
}

// Until something that another thread does has happened. The limit only ends a test that would
// hang.
template <class Condition>
bool eventually(Condition condition) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > limit) return false;
        std::this_thread::yield();
    }
    return true;
}

// A status that nothing has been written to.
inline MPI_Status untouched_status() {
    MPI_Status status{};
    status.MPI_SOURCE = -77;
    status.MPI_TAG = -77;
    status.MPI_ERROR = -77;
    return status;
}

inline bool is_empty(const MPI_Status& status) {
    return status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG;
}
