// SPDX-License-Identifier: BSD-3-Clause
// From a call to an issued or queued operation. Completion is in complete_one.cpp and its sisters.
#include <cstring>

#include "base/api/needs.hpp"
#include "engine.hpp"
#include "plausible.hpp"

namespace vecmpi::offload {

namespace {

constexpr size_t call_index(Call call) noexcept { return static_cast<size_t>(call); }

// The library's call on this thread. Nothing is held, so error handlers may do as they like.
int issue_unowned(const Operation& operation, MPI_Request* app_request) noexcept {
    DirectCall scope(operation.call, Reentry::program);
    return operation.issue(operation.arguments, app_request);
}

void count_inline(const Operation& operation) noexcept {
    count(Counter::issued_inline);
    count_call(call_index(operation.call), Path::inline_issue, payload_bytes(operation.facts));
}

// Where nobody else needs the engine. Nothing is queued or held.
int issue_by_library(const Operation& operation, MPI_Request* app_request) noexcept {
    const int rc = operation.issue(operation.arguments, app_request);
    count_inline(operation);
    return rc;
}

// After try_own(): on this thread, after everything that was queued. The program gets the real
// request.
int issue_owned(const Operation& operation, MPI_Request* app_request) noexcept {
    const int rc = engine->as_owner([&]() noexcept {
        if (engine->facts.queues) engine->drain();
        return operation.issue(operation.arguments, app_request);
    });
    count_inline(operation);
    return rc;
}

// The receive of a matched message does not name its communicator. It is queued only while all have
// the handler of MPI_COMM_WORLD.
bool is_of_unknown_handler(const CallFacts& facts) noexcept {
    return facts.comm == no_comm_argument &&
           engine->handlers_may_differ.load(std::memory_order_relaxed);
}
MPI_Comm comm_of(const CallFacts& facts) noexcept {
    return facts.comm == no_comm_argument ? MPI_COMM_WORLD : facts.comm;
}

// Why an operation cannot be queued, or number_of_counters if it can.
Counter reason_not_to_queue(Call call, const CallFacts& facts) noexcept {
    if (session_was_opened()) return Counter::decline_session;
    if (facts.type_arrays) return Counter::decline_arrays;
    if (is_of_unknown_handler(facts)) return Counter::decline_error_handler;
    const MPI_Comm comm = comm_of(facts);
    if (!library::is_comm_handle(comm)) return Counter::decline_arguments;
    const CommTraits traits = comm_traits(comm);
    if (!window_serves(traits.handler)) return Counter::decline_error_handler;
    if (!surely_taken(call, facts, traits, engine->facts.tag_upper_bound))
        return Counter::decline_arguments;
    return Counter::number_of_counters;
}

bool queue_operation(const Operation& operation, MPI_Request* app_request) noexcept {
    const Counter reason = reason_not_to_queue(operation.call, operation.facts);
    if (reason != Counter::number_of_counters) {
        count(reason);
        return false;
    }
    Slot* slot = engine->pool.take();
    if (!slot) return false;
    set_need(Need::messages, true);
    slot->issue = operation.issue;
    slot->call = operation.call;
    slot->has_ending = operation.ending != nullptr;
    if (slot->has_ending) slot->ending = operation.ending;
    slot->takes_floats = operation.facts.reduces;
    if (slot->takes_floats) slot->floats = float_environment();  // never with an ending
    std::memcpy(slot->arguments, operation.arguments, operation.argument_bytes);
    *app_request = engine->pool.handle(slot);
    count_call(call_index(operation.call), Path::queued, payload_bytes(operation.facts));
    engine->push(slot);
    return true;
}

// The caller issues a nonblocking call where no thread would do it better. Order is kept: nothing
// is queued before it.
bool may_issue_inline(const Operation& operation) noexcept {
    if (!engine->thread.exists() || engine->thread.stands_back()) return true;
    return is_small_message(operation.facts) && engine->nothing_queued();
}

// Its error handler may do as it likes, even leave by longjmp. So nothing may be held when it runs.
bool may_have_user_handler(const CallFacts& facts) noexcept {
    const MPI_Comm comm = comm_of(facts);
    return is_of_unknown_handler(facts) || (library::is_comm_handle(comm) &&
                                            comm_traits(comm).handler == CommTraits::Handler::user);
}

// Another thread owns the engine. The offload thread leaves it within a look to a WaitingCaller.
int issue_contended(const Operation& operation, MPI_Request* app_request) noexcept {
    for (int look = 0; look < 32 && !this_thread.is(Inside::engine); ++look) {
        if (engine->try_own()) return issue_owned(operation, app_request);
        cpu_pause();
    }
    return queue_operation(operation, app_request) ? int{MPI_SUCCESS}
                                                   : issue_unowned(operation, app_request);
}

}  // namespace

bool is_small_message(const CallFacts& facts) noexcept {
    return !facts.collective && library::is_builtin_type(facts.type) &&
           payload_bytes(facts) <= engine->facts.most_bytes_of_caller;
}

bool caller_issues(Call call, MPI_Count number, MPI_Datatype type) noexcept {
    if (!engine_runs()) return true;
    if (!library::is_builtin_type(type) || !engine->library_serves()) return false;
    const size_t bytes =
        number > 0 ? static_cast<size_t>(number) * library::builtin_type_bytes(type) : 0;
    if (engine->facts.queues && bytes > engine->facts.most_bytes_of_caller) return false;
    count(Counter::issued_inline);
    count_call(call_index(call), Path::inline_issue, bytes);
    return true;
}

bool window_serves(CommTraits::Handler handler) noexcept {
    using Handler = CommTraits::Handler;
    if (handler == Handler::user) return false;
    const Handler world = agreement().valid ? comm_traits(MPI_COMM_WORLD).handler : Handler::fatal;
    return handler == world;
}

int post(const Operation& operation, MPI_Request* app_request) noexcept {
    if (!engine_runs()) return operation.issue(operation.arguments, app_request);
    if (engine->library_serves() && (!engine->facts.queues || is_small_message(operation.facts)))
        return issue_by_library(operation, app_request);
    if (operation.facts.reduces) note_op(operation.facts.op);
    if (engine->facts.queues && engine->alone()) return issue_by_library(operation, app_request);
    if (may_have_user_handler(operation.facts)) {
        count(Counter::decline_error_handler);
        return issue_unowned(operation, app_request);
    }
    if (may_issue_inline(operation)) {
        if (engine->callers_complete()) return issue_unowned(operation, app_request);
        if (engine->try_own()) return issue_owned(operation, app_request);
    }
    if (!queue_operation(operation, app_request)) return issue_unowned(operation, app_request);
    // The owner may have left before it saw our command. Then this thread issues it.
    if (!engine->thread.exists() && engine->try_own()) engine->leave();
    if (engine->thread.stands_back()) engine->wait_until_issued();  // nobody else would
    return MPI_SUCCESS;
}

// A poll function of the program may ask for a request, where no ending may run.
bool may_have_ending(Call call, const CallFacts& facts) noexcept {
    return engine_runs() && !is_reentrant() && !engine->has_seen(RequestKind::generalized) &&
           reason_not_to_queue(call, facts) == Counter::number_of_counters;
}

// A slot is taken before anything is posted: what the library has begun must get one.
std::optional<int> post_with_ending(Operation operation, std::unique_ptr<Ending> ending,
                                    MPI_Request* app_request) noexcept {
    Slot* const slot = engine->pool.take();
    if (slot == nullptr) return std::nullopt;
    engine->jobs.note_posted();
    operation.ending = ending.get();
    const int error = post(operation, app_request);
    if (error == MPI_SUCCESS && is_virtual(*app_request)) {  // its slot owns the ending
        ending.release();  // NOLINT(bugprone-unused-return-value): the slot has the pointer
        engine->pool.give(slot);
        return error;
    }
    const auto is_sent = [&]() noexcept {
        return !is_receive(operation.call) && real.X_Request_is_complete != nullptr &&
               real.X_Request_is_complete(*app_request) != 0;
    };
    if (error != MPI_SUCCESS || *app_request == MPI_REQUEST_NULL || is_sent()) {
        engine->pool.give(slot);
        return error;
    }
    slot->mpi_request = *app_request;
    slot->call = operation.call;
    slot->ending = ending.release();
    slot->has_ending = true;
    *app_request = engine->pool.handle(slot);
    engine->adopt(slot);
    return error;
}

int run_twin(const Operation& operation, MPI_Status* status) noexcept {
    MPI_Request request = MPI_REQUEST_NULL;
    const auto completed = [&](int rc) noexcept {
        return rc == MPI_SUCCESS ? wait_one(&request, status) : rc;
    };
    if (operation.facts.reduces) note_op(operation.facts.op);
    if (engine->facts.queues && engine->alone())
        return completed(issue_by_library(operation, &request));
    if (engine->callers_complete()) return completed(issue_unowned(operation, &request));
    if (engine->try_own()) {
        count(Counter::taken_over, engine->thread.exists());
        return completed(issue_owned(operation, &request));
    }
    const WaitingCaller caller(*engine);
    return completed(issue_contended(operation, &request));
}

bool is_reentrant() noexcept { return this_thread.is(Inside::library); }
bool is_in_job() noexcept { return this_thread.is(Inside::job); }
bool is_offload_thread() noexcept { return this_thread.is_offload_thread; }

bool twin_serves(MPI_Comm comm) noexcept {
    if (is_reentrant() || !engine_runs() || engine->library_serves()) return false;
    if (!library::is_comm_handle(comm)) return false;
    // A truncated message is an error of the completion.
    if (window_serves(comm_traits(comm).handler)) return true;
    count(Counter::decline_error_handler);
    return false;
}

bool matched_twin_serves() noexcept {
    return twin_serves(MPI_COMM_WORLD) &&
           !engine->handlers_may_differ.load(std::memory_order_relaxed);
}

bool library_surely_takes(const Operation& operation) noexcept {
    return surely_taken(operation.call, operation.facts, comm_traits(comm_of(operation.facts)),
                        engine->facts.tag_upper_bound);
}

bool library_takes_committed(const Operation& operation) noexcept {
    return plausible(operation.call, operation.facts, comm_traits(comm_of(operation.facts)),
                     engine->facts.tag_upper_bound);
}

bool collective_twin_serves(MPI_Comm comm) noexcept {
    if (is_offload_thread() || !engine_runs() || !agreement().twin_collectives) return false;
    return library::is_comm_handle(comm) && comm_traits(comm).world_only;
}

DirectCall::DirectCall(Call call, Reentry reentry) noexcept : marks_inside_(false) {
    if (is_reentrant() || !engine_runs()) return;
    if (engine->facts.queues && !engine->all_issued()) engine->wait_until_issued();
    marks_inside_ = reentry == Reentry::library;
    if (marks_inside_) this_thread.enter(Inside::library);
    count_call(call_index(call), Path::direct, 0);
}

void issue_what_was_posted() noexcept {
    if (engine_runs() && engine->facts.queues && !engine->all_issued() && !is_reentrant())
        engine->wait_until_issued();
}

DirectCall::~DirectCall() noexcept {
    if (marks_inside_) this_thread.leave(Inside::library);
}

}  // namespace vecmpi::offload
