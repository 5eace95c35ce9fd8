// SPDX-License-Identifier: BSD-3-Clause
// What is known of a communicator: asked once, forgotten when it may change; and what rests on it.
#include <catch2/catch.hpp>

#include "running_engine.hpp"

using namespace vecmpi;
using namespace vecmpi::offload;

using Handler = CommTraits::Handler;

TEST_CASE("comm_traits: the library is asked once", "[offload][communicators]") {
    FreshLibrary library;
    RunningEngine running(Mode::alone);
    const MPI_Comm comm = fake::communicator(1);
    fake::facts_of(comm).size = 7;
    const int before = fake::communicator_questions();
    for (int i = 0; i < 3; ++i) {
        const CommTraits traits = comm_traits(comm);
        CHECK(traits.size == 7);
        CHECK_FALSE(traits.inter);
        CHECK(traits.world_only);
        CHECK(traits.handler == Handler::fatal);
    }
    CHECK(fake::communicator_questions() == before + 1);
    fake::facts_of(comm).size = 8;
    forget_comm_traits();
    CHECK(comm_traits(comm).size == 8);
}

TEST_CASE("comm_traits: MPICH's threadcomms and streams are not served",
          "[offload][communicators]") {
    FreshLibrary library;
    RunningEngine running(Mode::alone);
    const MPI_Comm comm = fake::communicator(1);
    SECTION("a communicator whose ranks are threads") {
        real.X_Comm_test_threadcomm = [](MPI_Comm asked, int* flag) {
            *flag = asked == fake::communicator(1);
            return int{MPI_SUCCESS};
        };
        CHECK(comm_traits(comm).size == 0);
    }
    SECTION("a communicator with streams") {
        real.Comm_set_attr = [](MPI_Comm asked, int, void*) {
            fake::facts_of(asked).marked = true;
            return int{MPI_SUCCESS};
        };
        mark_stream_comm(comm);
        CHECK(comm_traits(comm).size == 0);
    }
    CHECK(comm_traits(MPI_COMM_WORLD).size == 2);
}

TEST_CASE("comm_traits: kinds of communicators and handlers", "[offload][communicators]") {
    FreshLibrary library;
    RunningEngine running(Mode::alone);
    const MPI_Comm comm = fake::communicator(1);
    fake::Communicator& facts = fake::facts_of(comm);
    SECTION("inter-communicator: the remote size") {
        facts.inter = true;
        facts.size = 5;
        CHECK(comm_traits(comm).inter);
        CHECK(comm_traits(comm).size == 5);
    }
    SECTION("MPI_ERRORS_RETURN") {
        facts.handler = MPI_ERRORS_RETURN;
        CHECK(comm_traits(comm).handler == Handler::returns);
    }
    SECTION("MPI_ERRORS_ABORT") {
        facts.handler = MPI_ERRORS_ABORT;
        CHECK(comm_traits(comm).handler == Handler::fatal);
    }
    SECTION("a handler of the program: its reference is given back") {
        facts.handler = fake::user_handler;
        CHECK(comm_traits(comm).handler == Handler::user);
        CHECK(fake::handler_references() == 0);
    }
    SECTION("a topology, asked twice") {
        real.Topo_test = [](MPI_Comm, int* kind) { return *kind = MPI_CART, int{MPI_SUCCESS}; };
        CHECK(comm_traits(comm).neighbours);
        CHECK(comm_traits(comm).neighbours);
        CHECK(comm_traits(comm).size == facts.size);
    }
    SECTION("none, asked twice") {
        CHECK_FALSE(comm_traits(comm).neighbours);
        CHECK_FALSE(comm_traits(comm).neighbours);
    }
    SECTION("more ranks than a cache entry holds") {
        facts.size = 1 << 26;
        CHECK(comm_traits(comm).size == 1 << 26);
        CHECK(comm_traits(comm).size == 1 << 26);
    }
    SECTION("the largest size that one holds, with everything else set") {
        facts.size = (1 << 26) - 1;
        facts.inter = true;
        facts.handler = fake::user_handler;
        for (int i = 0; i < 2; ++i) {
            const CommTraits traits = comm_traits(comm);
            CHECK(traits.size == (1 << 26) - 1);
            CHECK(traits.inter);
            CHECK(traits.handler == Handler::user);
        }
    }
    SECTION("a freed one is served by nothing, and known no longer than that") {
        facts.freed = true;
        CHECK(comm_traits(comm).size == 0);
        CHECK_FALSE(comm_traits(comm).world_only);
        CHECK_FALSE(twin_serves(comm));
        facts.freed = false;  // its handle is that of another one now
        facts.size = 4;
        CHECK(comm_traits(comm).size == 4);
    }
}

TEST_CASE("comm_traits: more communicators than the cache has entries",
          "[offload][communicators]") {
    FreshLibrary library;
    RunningEngine running(Mode::alone);
    for (int number = 1; number < 200; ++number)
        fake::facts_of(fake::communicator(number)).size = number;
    for (int round = 0; round < 2; ++round)
        for (int number = 1; number < 200; ++number)
            REQUIRE(comm_traits(fake::communicator(number)).size == number);
}

TEST_CASE("comm_traits: threads ask while another one forgets", "[offload][communicators]") {
    FreshLibrary library;
    RunningEngine running(Mode::callers);
    for (int number = 1; number <= 4; ++number)
        fake::facts_of(fake::communicator(number)).size = number;
    std::atomic<bool> stop{false};
    std::vector<int> wrong(2, 0);
    std::vector<std::thread> askers;
    for (int t = 0; t < 2; ++t)
        askers.emplace_back([t, &wrong, &stop] {
            for (int i = 0; !stop; ++i) {
                const int number = 1 + i % 4;
                wrong[static_cast<size_t>(t)] +=
                    comm_traits(fake::communicator(number)).size != number;
            }
        });
    for (int i = 0; i < 2000; ++i) forget_comm_traits();
    stop = true;
    for (std::thread& asker : askers) asker.join();
    CHECK(wrong == std::vector<int>{0, 0});
}

TEST_CASE("an operation is queued only where the window has the same handler",
          "[offload][communicators]") {
    struct Row {
        MPI_Errhandler world, comm;
        bool queued;
    };
    const Row row = GENERATE(Row{MPI_ERRORS_ARE_FATAL, MPI_ERRORS_ARE_FATAL, true},
                             Row{MPI_ERRORS_RETURN, MPI_ERRORS_RETURN, true},
                             Row{MPI_ERRORS_ARE_FATAL, MPI_ERRORS_RETURN, false},
                             Row{MPI_ERRORS_RETURN, MPI_ERRORS_ARE_FATAL, false},
                             Row{fake::user_handler, MPI_ERRORS_RETURN, false},
                             Row{fake::user_handler, fake::user_handler, false});
    FreshLibrary library;
    const MPI_Comm comm = fake::communicator(1);
    fake::facts_of(MPI_COMM_WORLD).handler = row.world;
    fake::facts_of(comm).handler = row.comm;
    RunningEngine running(Mode::thread);
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK(post_fake(1, {.looks = 1}, &request, large(comm)) == MPI_SUCCESS);
    CHECK(is_virtual(request) == row.queued);
    CHECK(wait_one(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

TEST_CASE("nothing is raised while a handle is asked about", "[offload][communicators]") {
    FreshLibrary library;
    RunningEngine running(Mode::alone);
    std::vector<bool> asks;
    fake::inside_question = [&asks] { asks.push_back(library::errors_are_quiet()); };
    comm_traits(fake::communicator(1));
    fake::inside_question = nullptr;
    CHECK(asks == std::vector<bool>{true});
    CHECK_FALSE(library::errors_are_quiet());
}

TEST_CASE("one buffer for both sides is refused where the library looks",
          "[offload][communicators]") {
    FreshLibrary library;
    {
        RunningEngine running(Mode::alone);
        CHECK(aliases_are_refused());
    }
    real.Alltoallv = [](const void*, auto*, auto*, MPI_Datatype, void*, auto*, auto*, MPI_Datatype,
                        MPI_Comm) { return int{MPI_SUCCESS}; };
    {
        RunningEngine running(Mode::alone);
        CHECK_FALSE(aliases_are_refused());
    }
    FreshLibrary another;
    RunningEngine running(Mode::alone);
    CHECK(aliases_are_refused());
}

// For the rest of the process the groups of communicators are compared; the other tests have none
// of another world.
TEST_CASE("processes of another world are found once there can be any",
          "[offload][communicators]") {
    FreshLibrary library;
    RunningEngine running(Mode::alone);
    const MPI_Comm native = fake::communicator(1), mixed = fake::communicator(2),
                   inter = fake::communicator(3);
    fake::facts_of(mixed).foreign = true;
    fake::facts_of(inter).foreign = fake::facts_of(inter).inter = true;
    note_dynamic_processes();
    CHECK(comm_traits(native).world_only);
    CHECK_FALSE(comm_traits(mixed).world_only);
    CHECK_FALSE(comm_traits(inter).world_only);
}
