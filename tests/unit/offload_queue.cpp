// SPDX-License-Identifier: BSD-3-Clause
// From the call to the library: what is issued at once, what waits in the queue, and that the order
// of each program thread is kept whichever way its calls go.
#include <catch2/catch.hpp>
#include <random>

#include "running_engine.hpp"

using namespace vecmpi;
using namespace vecmpi::offload;

namespace {

constexpr int labels_per_thread = 1000000;

// Labels of one thread in the order in which the library saw them.
bool in_order(const std::vector<int>& labels, int thread) {
    int last = -1;
    for (int label : labels) {
        if (label / labels_per_thread != thread) continue;
        if (label <= last) return false;
        last = label;
    }
    return true;
}

// Posts in batches and completes each batch; sizes by chance, so that some are issued inline and
// some are queued.
void post_many(int thread, int batches, unsigned seed, int* failures) {
    std::mt19937 random(seed);
    int label = thread * labels_per_thread;
    for (int batch = 0; batch < batches; ++batch) {
        std::vector<MPI_Request> requests(1 + random() % 20, MPI_REQUEST_NULL);
        for (MPI_Request& request : requests) {
            const fake::Plan plan{.looks = 1 + static_cast<int>(random() % 4)};
            if (post_fake(++label, plan, &request, random() % 2 ? large() : small()) != MPI_SUCCESS)
                ++*failures;
        }
        if (wait_all(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE) !=
            MPI_SUCCESS)
            ++*failures;
    }
}

// Its argument: where to tell whether the calling thread holds the engine.
int issue_and_tell_owner(const void* arguments, MPI_Request* request) noexcept {
    **static_cast<bool* const*>(arguments) = this_thread.is(Inside::engine);
    return fake::issue(1, {.looks = 1}, request);
}

}  // namespace

TEST_CASE("threads post together: each keeps its order", "[offload][queue]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    const unsigned seed = std::random_device{}();
    INFO("seed " << seed);
    constexpr int threads = 4, batches = 100;
    FreshLibrary library;
    RunningEngine running(mode);
    std::vector<std::thread> program;
    std::vector<int> failures(threads, 0);
    for (int t = 0; t < threads; ++t)
        program.emplace_back(post_many, t, batches, seed + static_cast<unsigned>(t),
                             &failures[static_cast<size_t>(t)]);
    for (std::thread& thread : program) thread.join();
    const std::vector<int> labels = fake::labels_of(fake::What::issue);
    for (int t = 0; t < threads; ++t) {
        CHECK(failures[static_cast<size_t>(t)] == 0);
        CHECK(in_order(labels, t));
    }
    // Without an offload thread a lone caller may be inside when another comes: the library has a
    // lock at that level.
    if (mode == Mode::thread) CHECK(fake::most_at_once() == 1);
}

TEST_CASE("one program thread: a call is issued at once, and the request is the library's",
          "[offload][queue]") {
    FreshLibrary library;
    RunningEngine running(Mode::alone);
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK(post_fake(1, {}, &request) == MPI_SUCCESS);
    CHECK_FALSE(is_virtual(request));
    CHECK(fake::thread_of(fake::What::issue, 1) == std::this_thread::get_id());
    fake::complete(1);
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

TEST_CASE("the offload thread issues what is queued, unasked", "[offload][queue]") {
    FreshLibrary library;
    RunningEngine running(Mode::thread);
    MPI_Request request = queued(1);
    REQUIRE(eventually([] { return fake::is_active(1); }));
    CHECK(fake::thread_of(fake::What::issue, 1) != std::this_thread::get_id());
    fake::complete(1);
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(request == MPI_REQUEST_NULL);
}

TEST_CASE("a small message is issued at once while nothing is queued", "[offload][queue]") {
    FreshLibrary library;
    RunningEngine running(Mode::thread);
    MPI_Request request = MPI_REQUEST_NULL;
    REQUIRE(post_fake(1, {.looks = 1}, &request, small()) == MPI_SUCCESS);
    CHECK_FALSE(is_virtual(request));
    CHECK(fake::thread_of(fake::What::issue, 1) == std::this_thread::get_id());
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

TEST_CASE("a small message does not overtake what is queued", "[offload][queue]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    engine->own();  // somebody else is inside: all must wait
    post_fake(1, {.looks = 1}, &requests[0], large());
    post_fake(2, {.looks = 1}, &requests[1], small());
    CHECK(fake::events().empty());
    engine->leave();
    post_fake(3, {.looks = 1}, &requests[2], small());
    CHECK(wait_all(3, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    CHECK(fake::labels_of(fake::What::issue) == std::vector<int>{1, 2, 3});
}

TEST_CASE("what is posted while another thread leaves the engine is issued", "[offload][queue]") {
    FreshLibrary library;
    RunningEngine running(Mode::callers);
    MPI_Request late = MPI_REQUEST_NULL;
    // The waiting thread has drained the queue and looks at its own request: now a second thread
    // posts.
    fake::inside_test = [&late] {
        if (late != MPI_REQUEST_NULL || !this_thread.is(Inside::engine)) return;
        std::thread([&late] { post_fake(2, {}, &late); }).join();
    };
    MPI_Request request = library_request(1, {.looks = 3});
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(is_virtual(late));
    CHECK(fake::is_active(2));  // though no call of the program came after
    fake::complete(2);
    CHECK(wait_one(&late, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

TEST_CASE("what is posted when the owner has just left is issued", "[offload][queue]") {
    FreshLibrary library;
    RunningEngine running(Mode::callers);
    forget_comm_traits();
    // The poster asks about the communicator before it finds the engine taken, and again before it
    // queues the command: just then the owner leaves.
    int questions = 0;
    fake::inside_question = [&questions] {
        ++questions;
        if (questions == 1) forget_comm_traits();
        if (questions == 2) engine->leave();
    };
    MPI_Request request = MPI_REQUEST_NULL;
    engine->own();
    CHECK(post_fake(1, {.looks = 1}, &request) == MPI_SUCCESS);
    CHECK(questions == 2);
    CHECK(is_virtual(request));
    CHECK(fake::is_active(1));
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

TEST_CASE("a call with implausible arguments gets its error from the library at once",
          "[offload][queue]") {
    FreshLibrary library;
    RunningEngine running(Mode::thread);
    CallFacts facts = large();
    facts.peer = 99;
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK(post_fake(1, {.issue_error = MPI_ERR_RANK}, &request, facts) == MPI_ERR_RANK);
    CHECK(request == MPI_REQUEST_NULL);
    CHECK(fake::thread_of(fake::What::issue, 1) == std::this_thread::get_id());
}

TEST_CASE("a communicator with an error handler of its own is served on the caller's thread",
          "[offload][queue]") {
    const Mode mode = GENERATE(Mode::alone, Mode::callers, Mode::thread);
    FreshLibrary library;
    const MPI_Comm comm = fake::communicator(1);
    fake::facts_of(comm).handler = fake::user_handler;
    bool was_owner = true;
    fake::inside_issue = [&was_owner](int label) {
        if (label == 2) was_owner = this_thread.is(Inside::engine);
    };
    RunningEngine running(mode);
    MPI_Request first = MPI_REQUEST_NULL, second = MPI_REQUEST_NULL;
    post_fake(1, {.looks = 1}, &first, large());
    post_fake(2, {.looks = 1}, &second, large(comm));
    CHECK(fake::labels_of(fake::What::issue) == std::vector<int>{1, 2});  // nothing overtakes
    CHECK(fake::thread_of(fake::What::issue, 2) == std::this_thread::get_id());
    CHECK_FALSE(was_owner);  // the handler may leave by longjmp
    CHECK_FALSE(is_virtual(second));
    CHECK_FALSE(twin_serves(comm));
    CHECK(twin_serves(MPI_COMM_WORLD));
    CHECK(wait_one(&first, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(wait_one(&second, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

TEST_CASE("a call without a communicator: count, type and the handler of MPI_COMM_WORLD decide",
          "[offload][queue]") {
    const bool bad_type = GENERATE(false, true), user_handler = GENERATE(false, true);
    FreshLibrary library;
    if (user_handler) fake::facts_of(MPI_COMM_WORLD).handler = fake::user_handler;
    RunningEngine running(Mode::thread);
    CallFacts facts = large(no_comm_argument);
    if (bad_type) facts.type = MPI_DATATYPE_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK(post_fake(1, {.looks = 1}, &request, facts) == MPI_SUCCESS);
    CHECK(is_virtual(request) == (!bad_type && !user_handler));
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

TEST_CASE("a call without a communicator is not queued once handlers may differ",
          "[offload][queue]") {
    FreshLibrary library;
    RunningEngine running(Mode::thread);
    engine->handlers_may_differ.store(true);
    MPI_Request matched = MPI_REQUEST_NULL, other = MPI_REQUEST_NULL;
    CHECK(post_fake(1, {.looks = 1}, &matched, large(no_comm_argument)) == MPI_SUCCESS);
    CHECK(post_fake(2, {.looks = 1}, &other) == MPI_SUCCESS);
    CHECK_FALSE(is_virtual(matched));
    CHECK(is_virtual(other));
    CHECK(wait_one(&matched, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(wait_one(&other, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

TEST_CASE("without a free slot a call goes to the library, in order", "[offload][queue]") {
    FreshLibrary library;
    RunningEngine running(Mode::thread);
    MPI_Request before = queued(1, {.looks = 1});
    std::vector<Slot*> slots;
    while (Slot* slot = engine->pool.take()) slots.push_back(slot);
    MPI_Request after = MPI_REQUEST_NULL;
    CHECK(post_fake(2, {.looks = 1}, &after) == MPI_SUCCESS);
    CHECK_FALSE(is_virtual(after));
    CHECK(fake::labels_of(fake::What::issue) == std::vector<int>{1, 2});
    for (Slot* slot : slots) engine->pool.give(slot);
    CHECK(wait_one(&before, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(wait_one(&after, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

TEST_CASE("DirectCall: everything posted before is issued first", "[offload][queue]") {
    const Mode mode = GENERATE(Mode::callers, Mode::thread);
    FreshLibrary library;
    RunningEngine running(mode);
    std::vector<MPI_Request> requests(50);
    engine->own();
    for (int i = 0; i < 50; ++i) post_fake(i, {.looks = 1}, &requests[static_cast<size_t>(i)]);
    engine->leave();
    {
        const DirectCall scope(Call::Comm_dup);
        CHECK(is_reentrant());
        CHECK(fake::labels_of(fake::What::issue).size() == 50);
        const DirectCall inner(Call::Comm_dup);  // a callback of the library: nothing to do
        CHECK(is_reentrant());
    }
    CHECK_FALSE(is_reentrant());
    CHECK(wait_all(50, requests.data(), MPI_STATUSES_IGNORE) == MPI_SUCCESS);
}

TEST_CASE("a callback inside the library may call MPI", "[offload][queue]") {
    const Mode mode = GENERATE(Mode::alone, Mode::callers, Mode::thread);
    FreshLibrary library;
    std::atomic<bool> done{false};
    bool held = false, reentrant = false;
    int waited = -1;
    MPI_Request inner = MPI_REQUEST_NULL;
    fake::inside_issue = [&](int label) {
        if (label != 1) return;
        held = this_thread.is(Inside::engine);
        reentrant = is_reentrant();
        { const DirectCall scope(Call::Comm_dup); }
        inner = library_request(2, {.looks = 3});
        waited = wait_one(&inner, MPI_STATUS_IGNORE);
        done = true;
    };
    RunningEngine running(mode);
    MPI_Request request = MPI_REQUEST_NULL;
    post_fake(1, {.looks = 1}, &request);
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(done);
    CHECK(reentrant == held);  // with the engine in hand, calls go straight to the library
    CHECK(waited == MPI_SUCCESS);
    CHECK(inner == MPI_REQUEST_NULL);
}

TEST_CASE("a lone thread calls the library without the engine, until another comes",
          "[offload][queue]") {
    FreshLibrary library;
    RunningEngine running(Mode::callers);
    bool owned = false;
    const auto post_one = [&owned] {
        bool* const tell = &owned;
        MPI_Request request = MPI_REQUEST_NULL;
        post(make_operation(Call::Isend, issue_and_tell_owner, tell, large()), &request);
        CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    };
    post_one();
    post_one();
    CHECK_FALSE(owned);
    std::thread(post_one).join();
    post_one();
    CHECK(owned);
    post_one();
    CHECK_FALSE(owned);
}

TEST_CASE("a lone thread does not overtake what is queued", "[offload][queue]") {
    FreshLibrary library;
    RunningEngine running(Mode::callers);
    MPI_Request first = queued(1, {.looks = 1});
    MPI_Request second = MPI_REQUEST_NULL;
    post_fake(2, {.looks = 1}, &second);
    CHECK(wait_one(&second, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(wait_one(&first, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(fake::labels_of(fake::What::issue) == std::vector<int>{1, 2});
}

TEST_CASE("one producer: the ring keeps the order", "[offload][queue]") {
    FreshLibrary library;
    RunningEngine running(Mode::thread, GENERATE(false, true), false);
    constexpr int rounds = 50, batch = 40;
    for (int round = 0; round < rounds; ++round) {
        std::vector<MPI_Request> requests(batch, MPI_REQUEST_NULL);
        for (int i = 0; i < batch; ++i)
            REQUIRE(post_fake(round * batch + i + 1, {.looks = 1 + i % 3},
                              &requests[static_cast<size_t>(i)]) == MPI_SUCCESS);
        REQUIRE(wait_all(batch, requests.data(), MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    }
    const std::vector<int> labels = fake::labels_of(fake::What::issue);
    REQUIRE(labels.size() == rounds * batch);
    for (int i = 0; i < rounds * batch; ++i) CHECK(labels[static_cast<size_t>(i)] == i + 1);
}
