// SPDX-License-Identifier: BSD-3-Clause
// Table of calls: which ones the library surely takes (they may be queued), which it may refuse
// (they may not).
#include "offload/plausible.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace vecmpi;
using namespace vecmpi::offload;

namespace {

const char send_buffer = 0, receive_buffer = 0;
constexpr int tag_upper_bound = 1000;
constexpr MPI_Datatype derived_type = static_cast<MPI_Datatype>(0x8c000007u);
constexpr MPI_Op user_op = static_cast<MPI_Op>(0x98000002u);

CallFacts message() {
    CallFacts facts;
    facts.comm = MPI_COMM_WORLD;
    facts.count = 4;
    facts.type = MPI_INT;
    facts.peer = 1;
    facts.tag = 7;
    facts.sendbuf = &send_buffer;
    return facts;
}

CallFacts exchange() {
    CallFacts facts = message();
    facts.other_count = 4;
    facts.other_type = MPI_INT;
    facts.other_peer = 2;
    facts.recvbuf = &receive_buffer;
    return facts;
}

CallFacts reduction() {
    CallFacts facts;
    facts.comm = MPI_COMM_WORLD;
    facts.count = 4;
    facts.type = MPI_INT;
    facts.sendbuf = &send_buffer;
    facts.recvbuf = &receive_buffer;
    facts.collective = facts.reduces = true;
    return facts;
}

template <class Change>
CallFacts with(CallFacts facts, Change change) {
    change(facts);
    return facts;
}

struct Row {
    std::string what;
    Call call;
    CallFacts facts;
    bool expected;
};

void check(const std::vector<Row>& rows, const CommTraits& comm) {
    for (const Row& row : rows) {
        INFO(row.what);
        CHECK(plausible(row.call, row.facts, comm, tag_upper_bound) == row.expected);
    }
}

CommTraits three_ranks() {
    CommTraits comm;
    comm.size = 3;
    return comm;
}

}  // namespace

TEST_CASE("plausible: point-to-point", "[offload][plausible]") {
    using F = CallFacts&;
    check(
        {
            {"send", Call::Isend, message(), true},
            {"receive", Call::Irecv, message(), true},
            {"large count", Call::Isend_c, with(message(), [](F f) { f.count = 1LL << 40; }), true},
            {"negative count", Call::Isend, with(message(), [](F f) { f.count = -1; }), false},
            {"no type", Call::Isend, with(message(), [](F f) { f.type = MPI_DATATYPE_NULL; }),
             false},
            {"a communicator as type", Call::Isend,
             with(message(), [](F f) { f.type = MPI_COMM_WORLD; }), false},
            {"derived type", Call::Isend, with(message(), [](F f) { f.type = derived_type; }),
             true},
            {"null buffer", Call::Isend, with(message(), [](F f) { f.sendbuf = nullptr; }), false},
            {"null buffer, nothing to send", Call::Isend,
             with(message(), [](F f) { f.sendbuf = nullptr, f.count = 0; }), true},
            {"MPI_BOTTOM with a derived type", Call::Isend,
             with(message(), [](F f) { f.sendbuf = MPI_BOTTOM, f.type = derived_type; }), true},
            {"to MPI_PROC_NULL", Call::Isend, with(message(), [](F f) { f.peer = MPI_PROC_NULL; }),
             true},
            {"to the last rank", Call::Isend, with(message(), [](F f) { f.peer = 2; }), true},
            {"beyond the last rank", Call::Isend, with(message(), [](F f) { f.peer = 3; }), false},
            {"to a negative rank", Call::Isend, with(message(), [](F f) { f.peer = -5; }), false},
            {"to any source", Call::Isend, with(message(), [](F f) { f.peer = MPI_ANY_SOURCE; }),
             false},
            {"from any source", Call::Irecv, with(message(), [](F f) { f.peer = MPI_ANY_SOURCE; }),
             true},
            {"from any source, large count", Call::Irecv_c,
             with(message(), [](F f) { f.peer = MPI_ANY_SOURCE; }), true},
            {"highest tag", Call::Isend, with(message(), [](F f) { f.tag = tag_upper_bound; }),
             true},
            {"tag too high", Call::Isend, with(message(), [](F f) { f.tag = tag_upper_bound + 1; }),
             false},
            {"negative tag", Call::Isend, with(message(), [](F f) { f.tag = -3; }), false},
            {"send with any tag", Call::Isend, with(message(), [](F f) { f.tag = MPI_ANY_TAG; }),
             false},
            {"receive with any tag", Call::Irecv, with(message(), [](F f) { f.tag = MPI_ANY_TAG; }),
             true},
        },
        three_ranks());
}

TEST_CASE("plausible: both sides of a send-receive", "[offload][plausible]") {
    using F = CallFacts&;
    check(
        {
            {"exchange", Call::Isendrecv, exchange(), true},
            {"from any source with any tag", Call::Isendrecv,
             with(exchange(),
                  [](F f) { f.other_peer = MPI_ANY_SOURCE, f.other_tag = MPI_ANY_TAG; }),
             true},
            {"to any source", Call::Isendrecv,
             with(exchange(), [](F f) { f.peer = MPI_ANY_SOURCE; }), false},
            {"bad source", Call::Isendrecv, with(exchange(), [](F f) { f.other_peer = 3; }), false},
            {"bad receive tag", Call::Isendrecv, with(exchange(), [](F f) { f.other_tag = -9; }),
             false},
            {"bad receive count", Call::Isendrecv,
             with(exchange(), [](F f) { f.other_count = -1; }), false},
            {"bad receive type", Call::Isendrecv,
             with(exchange(), [](F f) { f.other_type = MPI_DATATYPE_NULL; }), false},
            {"null receive buffer", Call::Isendrecv,
             with(exchange(), [](F f) { f.recvbuf = nullptr; }), false},
        },
        three_ranks());
}

TEST_CASE("plausible: collectives", "[offload][plausible]") {
    using F = CallFacts&;
    check(
        {
            {"allreduce", Call::Iallreduce, reduction(), true},
            {"in place", Call::Iallreduce, with(reduction(), [](F f) { f.sendbuf = MPI_IN_PLACE; }),
             true},
            {"one buffer for both sides", Call::Iallreduce,
             with(reduction(), [](F f) { f.recvbuf = f.sendbuf; }), false},
            {"both buffers null, nothing to do", Call::Iallreduce,
             with(reduction(), [](F f) { f.sendbuf = f.recvbuf = nullptr, f.count = 0; }), true},
            {"no op", Call::Iallreduce, with(reduction(), [](F f) { f.op = MPI_OP_NULL; }), false},
            {"user op on a derived type", Call::Iallreduce,
             with(reduction(), [](F f) { f.op = user_op, f.type = derived_type; }), true},
            {"sum of a derived type", Call::Iallreduce,
             with(reduction(), [](F f) { f.type = derived_type; }), false},
            {"sum of doubles", Call::Iallreduce,
             with(reduction(), [](F f) { f.type = MPI_DOUBLE; }), true},
            {"bits of doubles", Call::Iallreduce,
             with(reduction(), [](F f) { f.op = MPI_BAND, f.type = MPI_DOUBLE; }), false},
            {"bits of bytes: not in our list, so the library says", Call::Iallreduce,
             with(reduction(), [](F f) { f.op = MPI_BAND, f.type = MPI_BYTE; }), false},
            {"place of the largest pair", Call::Iallreduce,
             with(reduction(), [](F f) { f.op = MPI_MAXLOC, f.type = MPI_2INT; }), true},
            {"place of the largest integer", Call::Iallreduce,
             with(reduction(), [](F f) { f.op = MPI_MAXLOC; }), false},
            {"last root", Call::Ireduce, with(reduction(), [](F f) { f.root = 2; }), true},
            {"root beyond", Call::Ireduce, with(reduction(), [](F f) { f.root = 3; }), false},
            {"root MPI_ROOT inside one group", Call::Ireduce,
             with(reduction(), [](F f) { f.root = MPI_ROOT; }), false},
            {"counts in arrays", Call::Ialltoallv,
             with(reduction(), [](F f) { f.vector_form = true, f.reduces = false, f.count = -1; }),
             true},
        },
        three_ranks());
}

TEST_CASE("plausible: inter-communicators", "[offload][plausible]") {
    CommTraits comm = three_ranks();
    comm.inter = true;
    using F = CallFacts&;
    check(
        {
            {"root MPI_ROOT", Call::Ireduce, with(reduction(), [](F f) { f.root = MPI_ROOT; }),
             true},
            {"root MPI_PROC_NULL", Call::Ireduce,
             with(reduction(), [](F f) { f.root = MPI_PROC_NULL; }), true},
            {"to the last of the remote group", Call::Isend,
             with(message(), [](F f) { f.peer = 2; }), true},
            {"beyond the remote group", Call::Isend, with(message(), [](F f) { f.peer = 3; }),
             false},
        },
        comm);
}

TEST_CASE("plausible: nothing is taken for a communicator of unknown size",
          "[offload][plausible]") {
    const CommTraits freed;  // as comm_traits() reports one that the library refuses
    CHECK_FALSE(plausible(Call::Isend, message(), freed, tag_upper_bound));
    CHECK_FALSE(plausible(Call::Iallreduce, reduction(), freed, tag_upper_bound));
}

TEST_CASE("handles by kind", "[offload][plausible]") {
    CHECK(library::is_comm_handle(MPI_COMM_WORLD));
    CHECK(library::is_comm_handle(MPI_COMM_SELF));
    CHECK(library::is_comm_handle(static_cast<MPI_Comm>(0x84000003u)));
    CHECK_FALSE(library::is_comm_handle(MPI_COMM_NULL));
    CHECK_FALSE(library::is_comm_handle(MPI_INT));
    CHECK(library::is_type_handle(MPI_INT));
    CHECK(library::is_type_handle(derived_type));
    CHECK_FALSE(library::is_type_handle(MPI_DATATYPE_NULL));
    CHECK(library::is_builtin_type(MPI_DOUBLE));
    CHECK_FALSE(library::is_builtin_type(derived_type));
    CHECK(library::builtin_type_bytes(MPI_DOUBLE) == 8);
    CHECK(library::builtin_type_bytes(MPI_BYTE) == 1);
    CHECK(library::builtin_type_bytes(MPI_2INT) == 8);
    CHECK(library::is_op_handle(MPI_SUM));
    CHECK(library::is_op_handle(user_op));
    CHECK_FALSE(library::is_op_handle(MPI_OP_NULL));
}

TEST_CASE("payload_bytes", "[offload][plausible]") {
    CallFacts facts = message();
    CHECK(payload_bytes(facts) == 16);
    facts.count = 1LL << 40;
    CHECK(payload_bytes(facts) == size_t{1} << 42);
    facts.count = -1;
    CHECK(payload_bytes(facts) == 0);
    facts = message();
    facts.type = derived_type;
    CHECK(payload_bytes(facts) == 0);
    facts = message();
    facts.vector_form = true;
    CHECK(payload_bytes(facts) == 0);
}

TEST_CASE("plausible_where_errors_return: what the call itself may refuse is not queued",
          "[offload][plausible]") {
    using F = CallFacts&;
    static int memory[64];
    const auto allgather = [](const void* input) {
        CallFacts facts;
        facts.collective = true;
        facts.type = facts.other_type = MPI_INT;
        facts.count = facts.other_count = 1;
        facts.sendbuf = input;
        facts.recvbuf = memory;
        return facts;
    };
    const CallFacts apart = allgather(memory + 4);
    CommTraits comm;
    comm.size = 4;
    const std::vector<Row> rows{
        {"input where data come in", Call::Iallgather, allgather(memory), false},
        {"input in the last block", Call::Iallgather, allgather(memory + 3), false},
        {"input behind the last block", Call::Iallgather, apart, true},
        {"in place", Call::Iallgather, allgather(MPI_IN_PLACE), true},
        {"counts in arrays", Call::Iallgatherv, with(apart, [](F f) { f.vector_form = true; }),
         false},
        {"derived type", Call::Iallgather, with(apart, [](F f) { f.type = derived_type; }), false},
        {"a message", Call::Isend, message(), true},
        {"an attached buffer may be full", Call::Ibsend, message(), false},
        {"the same, large count", Call::Ibsend_c, message(), false},
        {"no neighbours perhaps", Call::Ineighbor_allgather, apart, false},
        {"the same, large count", Call::Ineighbor_alltoall_c, apart, false},
        {"null input", Call::Iallgather, allgather(nullptr), false},
        {"null input of no elements", Call::Iallgather,
         with(allgather(nullptr), [](F f) { f.count = 0; }), true},
        {"null output", Call::Iallgather, with(apart, [](F f) { f.recvbuf = nullptr; }), false},
        {"null output of a reduction", Call::Iallreduce,
         with(reduction(), [](F f) { f.recvbuf = nullptr; }), false},
        {"output in place", Call::Iallreduce,
         with(reduction(), [](F f) { f.recvbuf = MPI_IN_PLACE; }), false},
        {"a reduction", Call::Iallreduce, reduction(), true},
        {"no output where no root is", Call::Ireduce,
         with(reduction(), [](F f) { f.recvbuf = nullptr; }), true},
        {"the same of a gather", Call::Igather, with(apart, [](F f) { f.recvbuf = nullptr; }),
         true},
        {"no output on rank 0 of a scan", Call::Iexscan,
         with(reduction(), [](F f) { f.recvbuf = nullptr; }), true},
        {"no output where no root is, blocking", Call::Reduce,
         with(reduction(), [](F f) { f.recvbuf = nullptr; }), true},
        {"no input where no root is", Call::Iscatter, allgather(nullptr), true},
        {"the root's own block in place", Call::Iscatter,
         with(apart, [](F f) { f.recvbuf = MPI_IN_PLACE; }), true},
        {"null output of a scatter", Call::Iscatter, with(apart, [](F f) { f.recvbuf = nullptr; }),
         false},
        {"broadcast", Call::Ibcast,
         with(apart, [](F f) { f.recvbuf = nullptr, f.other_count = 0; }), true},
        {"broadcast of a null buffer", Call::Ibcast,
         with(allgather(nullptr), [](F f) { f.recvbuf = nullptr, f.other_count = 0; }), false},
    };
    for (const Row& row : rows) {
        INFO(row.what);
        CHECK(plausible_where_errors_return(row.call, row.facts, comm) == row.expected);
    }
    comm.neighbours = true;
    CHECK(plausible_where_errors_return(Call::Ineighbor_allgather, apart, comm));
    comm.inter = true;
    CHECK_FALSE(plausible_where_errors_return(Call::Iallgather, apart, comm));
    CHECK(plausible_where_errors_return(Call::Isend, message(), comm));
}
