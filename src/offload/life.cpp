// SPDX-License-Identifier: BSD-3-Clause
// Start and stop of the engine, in MPI_Init and MPI_Finalize.
#include <algorithm>
#include <cstdlib>
#include <new>

#include "agreement.hpp"
#include "arithmetic.hpp"
#include "base/api/needs.hpp"
#include "base/api/profile.hpp"
#include "engine.hpp"

namespace vecmpi::offload {

namespace {

// Zero in a forked child, which never touches the engine.
std::atomic<uint32_t>* running = nullptr;

struct Decision {
    HostView host;
    OffloadPlan plan;
};
int app_level = MPI_THREAD_SINGLE;

// Made on first use and never destroyed: the library is in processes that need none of it.
Decision& decision() noexcept {
    static Decision& made = *[] {
        auto* fresh = new Decision{look_at_host(settings().cpu), {}};
        fresh->plan = plan_offload(settings(), fresh->host);
        return fresh;
    }();
    return made;
}

bool make_engine() noexcept {
    if (!running) {
        void* page = allocate_wiped_on_fork(sizeof(std::atomic<uint32_t>));
        if (page) running = new (page) std::atomic<uint32_t>(0);
    }
    if (!engine) engine = new (std::nothrow) Engine;
    return running && engine && engine->pool.usable();
}

// Where every rank has its CPU, a library that spins waits as well as we would. The user may have
// asked for something else.
bool may_spin(bool crowded) noexcept {
    const WaitMode mode = settings().wait;
    return mode == WaitMode::spin || (mode == WaitMode::automatic && !crowded);
}

void apply_wait_policy(bool library_rests) noexcept {
    const auto& [host, plan] = decision();
    const Crowd crowd = crowd_of(host, plan);
    const bool crowded = crowd != Crowd::none;
    engine->facts.library_may_wait = library_rests || may_spin(crowded);
    engine->facts.wait = wait_policy(settings().wait, crowd);
    engine->facts.callers_with_cpu = settings().wait == WaitMode::automatic && !crowded
                                         ? static_cast<uint32_t>(cpus_of_rank(host))
                                         : UINT32_MAX;
    engine->facts.yields_at_once = engine->facts.wait.spins + engine->facts.wait.pauses <= 2;
    looks_by_itself = std::max(engine->facts.wait.spins, 1u);
}

void start_offload_thread(int lib_provided) noexcept {
    OffloadPlan& plan = decision().plan;
    if (!plan.own_thread) {
        count(Counter::decline_no_cpu, settings().offload == OffloadMode::automatic);
        return;
    }
    if (lib_provided < MPI_THREAD_MULTIPLE) {
        count(Counter::decline_level);
        plan.reason = "off: the MPI library does not provide MPI_THREAD_MULTIPLE";
        return;
    }
    if (plan.cpu >= 0) engine->pool.prefer_node(numa_node_of_cpu(plan.cpu));
    if (!engine->thread.start(plan)) plan.reason = "off: the system refused a thread";
}

void read_tag_upper_bound() noexcept {
    void* value = nullptr;
    int found = 0;
    real.Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &found);
    if (found) engine->facts.tag_upper_bound = *static_cast<int*>(value);
}

// by_polls: so the messages of the agreement came. Where all ranks share the node, that shows how
// its messages come; else it says nothing of them.
void note_how_messages_come(bool by_polls) noexcept {
    const HostView& host = decision().host;
    const bool is_one_node = host.local_ranks > 1 && host.is_whole_job;
    library::prove_wakeup(host.local_ranks == 1 || (is_one_node && by_polls));
    library::prove_own_memory(is_one_node && !by_polls);
}

void note_facts_of_library(int lib_provided, const LibraryWaits& library_waits) noexcept {
    apply_wait_policy(library_waits.rest);
    static constexpr library::PollAnswers answers{
        job_look_after_poll, advance_jobs_in_library, []() noexcept {
            return this_thread.is(Inside::engine) || this_thread.is(Inside::wait) ||
                   this_thread.is(Inside::job);
        }};
    library::answer_polls(answers);
    engine->facts.callers_serve_jobs = library_waits.serve_jobs;
    library::note_traits_of_version();
    library::ask_about_predefined_types();
    engine->facts.operators_lock_library = !library::has_trait(library::Trait::free_operators);
    engine->facts.library_locks = lib_provided == MPI_THREAD_MULTIPLE;
    read_tag_upper_bound();
}

// Starts the offload thread, where there is to be one.
void choose_who_waits_how(int lib_provided) noexcept {
    const bool multiple = app_level == MPI_THREAD_MULTIPLE;
    engine->expect_many_producers(multiple);
    start_offload_thread(lib_provided);
    engine->facts.many_callers = engine->thread.exists() || multiple;
    engine->facts.queues = engine->thread.exists() || (multiple && !engine->facts.library_may_wait);
    // Threads that wait for jobs do not wait for each other: the library may call functions of the
    // program in any of them.
    if (multiple && !engine->facts.queues) engine->begin_with_callers();
    if (decision().host.is_whole_job) engine->facts.most_bytes_of_caller = size_t{8} << 10;
}

// After the thread's start, which the system may have refused: what is agreed on must be true.
OwnMeans means_of_this_rank(const LibraryWaits& library_waits) noexcept {
    OwnMeans means{.has_engine = true};
    means.is_alone_on_node = decision().host.local_ranks == 1;
    // A job on the offload thread makes progress there, and so would run the program's operators.
    // ROMIO's own nonblocking collectives, which come in another order on each rank, must not
    // become jobs.
    means.serves_jobs = library_waits.serve_jobs ||
                        (engine->thread.exists() && !engine->facts.operators_lock_library &&
                         library::library_shows_its_calls());
    means.wants_twins =
        library::has_trait(library::Trait::twins) && !library_waits.rest && node_is_crowded();
    return means;
}

}  // namespace

int level_to_request(int level) noexcept {
    if (!decision().plan.own_thread) return level;
    // Registers with the kernel, before MPI_Init makes threads: later that would take about 10 ms.
    asymmetric_fences_work();
    return std::max(level, int{MPI_THREAD_MULTIPLE});
}

WaitPolicy library_wait_policy() noexcept {
    const auto& [host, plan] = decision();
    WaitPolicy policy = wait_policy(settings().wait, crowd_of(host, plan));
    // A second poll at once: 39 in place of 22 us for an Allreduce of 16 KiB on 4 ranks.
    if (policy.spins <= 1) policy.spins = 0;
    // No pauses: messages may come by another way than the polls that we see (MPICH 5, MPI_Probe of
    // 1 byte: 0.86 of plain). Yields no sooner: threads that share a CPU and talk in step would
    // lose it to each other (ping-pong of 2 threads: 0.25 us become 8 us with 20 spins;
    // docs/offload.md).
    if (settings().wait == WaitMode::automatic) policy.pauses = 0;
    policy.sleep_us = policy.max_sleep_us = 0;
    return policy;
}

bool node_is_crowded() noexcept {
    const auto& [host, plan] = decision();
    return oversubscribed(host, plan);
}

// Not on one node whose ranks have their CPUs. There nobody is known to need the CPU of a rank that
// waits, and the latency of messages is so low that waking must cost nothing.
bool blocked_calls_may_sleep() noexcept {
    const auto& [host, plan] = decision();
    if (settings().wait == WaitMode::sleep) return true;
    return settings().wait == WaitMode::automatic && host.local_ranks > 0 &&
           (!host.is_whole_job || oversubscribed(host, plan));
}

bool handshakes_are_slow() noexcept {
    const auto& [host, plan] = decision();
    return host.is_whole_job && host.local_ranks > 1 && oversubscribed(host, plan);
}

void start_engine(int level, int lib_provided, const LibraryWaits& library_waits,
                  bool session_came_first, int* app_provided) noexcept {
    app_level = std::min(level, lib_provided);
    if (app_provided) *app_provided = app_level;
    if (log_wants(LogLevel::debug))
        trace_calls([](size_t call) { return library::call_name(static_cast<Call>(call)); });
    if (report_is_wanted()) begin_report();
    if (!make_engine()) {  // no memory: every call stays with the library, on all ranks
        agree_over_world({}, library_wait_policy());
        return;
    }
    note_facts_of_library(lib_provided, library_waits);
    load_profile(kernels::isa_name(kernels::best_isa()), library::library_version);
    if (!session_came_first) ask_about_aliases();  // else threads may be inside the library
    adopt_arithmetic(library::bind_real_functions(), session_came_first);
    engine->reset();
    choose_who_waits_how(lib_provided);
    const uint64_t events_before = library::library_events;
    const bool agreed = agree_over_world(means_of_this_rank(library_waits), engine->facts.wait);
    note_how_messages_come(library::library_events != events_before);
    if (!agreed) return engine->thread.stop();
    running->store(1, std::memory_order_release);
    set_need(Need::messages, !engine->facts.library_waits_as_well());
    set_need(Need::queue, engine->facts.queues);
    set_need(Need::looks, engine->facts.yields_at_once);
    set_need(Need::twins, agreement().twin_collectives);
    log_line(LogLevel::info, "offload thread %s", decision().plan.reason.c_str());
    if (const int cpu = decision().host.refused_cpu; cpu >= 0)
        log_line(LogLevel::warn,
                 "VECMPI_CPU: no thread may run on CPU %d of this host, so it is left out; "
                 "accepted are CPUs that are "
                 "online and that the job may use",
                 cpu);
}

void quiesce_engine() noexcept {
    { DirectCall everything_issued(Call::Finalize); }
    engine->thread.stop();
    engine->jobs.end();
    end_pending_for_ever();
}

void stop_engine() noexcept {
    engine->jobs.forget_requests();
    forget_comm_traits();
    forget_agreement();
    if (engine_runs()) running->store(0, std::memory_order_release);
}

bool engine_runs() noexcept { return running && running->load(std::memory_order_relaxed) != 0; }
bool engine_has_thread() noexcept { return engine_runs() && engine->thread.exists(); }
int app_thread_level() noexcept { return app_level; }
std::string engine_reason() { return decision().plan.reason; }

}  // namespace vecmpi::offload
