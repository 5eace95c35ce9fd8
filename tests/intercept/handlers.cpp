// SPDX-License-Identifier: BSD-3-Clause
// The generated handlers, one test a class of the function table, on a fake engine and fake real
// functions.
#include <catch2/catch.hpp>
#include <set>

#include "entries.hpp"
#include "fake_engine.hpp"
#include "served.hpp"

using namespace vecmpi;
using test::enter;
using test::fake;

namespace {

constexpr MPI_Comm comm = 0x44000000;
constexpr MPI_Request real_request = 0x6c000001;

// Arguments of the last real call, and whether it came inside a DirectCall.
struct {
    const void* buffer;
    MPI_Count count;
    MPI_Datatype type;
    int peer, tag, root;
    MPI_Comm comm;
    MPI_Message message;
    int direct_calls;
    int times;
} seen;

int real_isend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm on,
               MPI_Request* request) {
    seen = {buf, count, datatype, dest, tag, 0, on, 0, fake.open_direct_calls, seen.times + 1};
    *request = real_request;
    return MPI_SUCCESS;
}

int real_send_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                MPI_Comm on) {
    seen = {buf, count, datatype, dest, tag, 0, on, 0, fake.open_direct_calls, seen.times + 1};
    return 99;
}

int real_recv(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm on,
              MPI_Status*) {
    seen = {buf, count, datatype, source, tag, 0, on, 0, fake.open_direct_calls, seen.times + 1};
    return 98;
}

int real_imrecv(void* buf, int count, MPI_Datatype datatype, MPI_Message* message,
                MPI_Request* request) {
    seen = {buf, count, datatype, 0, 0, 0, 0, *message, fake.open_direct_calls, seen.times + 1};
    *message = MPI_MESSAGE_NULL;
    *request = real_request;
    return MPI_SUCCESS;
}

int real_bcast(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm on) {
    seen = {buffer, count, datatype, 0, 0, root, on, 0, fake.open_direct_calls, seen.times + 1};
    return 97;
}

int real_comm_dup(MPI_Comm on, MPI_Comm* newcomm) {
    seen.comm = on;
    seen.direct_calls = fake.open_direct_calls;
    *newcomm = on + 1;
    return MPI_SUCCESS;
}

int persistent_result = MPI_SUCCESS;
int real_send_init(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request* request) {
    seen.direct_calls = fake.open_direct_calls;
    *request = real_request;
    return persistent_result;
}

void begin() {
    test::reset();
    seen = {};
    persistent_result = MPI_SUCCESS;
}

}  // namespace

TEST_CASE("a call comes to us while one of its needs exists", "[handlers]") {
    constexpr intercept::Handler needed{nullptr, intercept::When::needed,
                                        Need::queue | Need::counting};
    STATIC_REQUIRE_FALSE(
        intercept::comes_to_us(needed, true, Need::messages | Need::error_handlers));
    STATIC_REQUIRE(intercept::comes_to_us(needed, true, Need::messages | Need::queue));
    STATIC_REQUIRE_FALSE(
        intercept::comes_to_us(needed, false, Need::queue));  // the engine does not run
    constexpr intercept::Handler running{nullptr, intercept::When::running, 0};
    STATIC_REQUIRE(intercept::comes_to_us(running, true, 0));
    STATIC_REQUIRE_FALSE(intercept::comes_to_us(running, false, ~0u));
    STATIC_REQUIRE(intercept::comes_to_us({nullptr, intercept::When::always, 0}, false, 0));
    STATIC_REQUIRE_FALSE(intercept::comes_to_us({nullptr, intercept::When::never, 0}, true, ~0u));
}

TEST_CASE("post: the operation carries call, arguments and facts", "[handlers]") {
    begin();
    int data[3];
    MPI_Request request = MPI_REQUEST_NULL;
    REQUIRE(enter<calls::Isend>(data, 3, MPI_INT, 4, 5, comm, &request) == MPI_SUCCESS);
    REQUIRE(fake.posted);
    CHECK(fake.posted->call == Call::Isend);
    CHECK(request != MPI_REQUEST_NULL);
    const offload::CallFacts& facts = fake.posted->facts;
    CHECK((facts.comm == comm && facts.count == 3 && facts.type == MPI_INT));
    CHECK((facts.peer == 4 && facts.tag == 5 && facts.sendbuf == data));
    CHECK_FALSE((facts.collective || facts.reduces || facts.vector_form));

    real.Isend = real_isend;
    MPI_Request mpi_request = MPI_REQUEST_NULL;
    REQUIRE(fake.posted->issue_now(&mpi_request) == MPI_SUCCESS);
    CHECK((seen.buffer == data && seen.count == 3 && seen.type == MPI_INT));
    CHECK((seen.peer == 4 && seen.tag == 5 && seen.comm == comm));
    CHECK(mpi_request == real_request);
}

TEST_CASE("post: a message that the engine leaves to its caller goes to the real function",
          "[handlers]") {
    begin();
    fake.caller_issues = true;
    real.Isend = real_isend;
    int data[3];
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK(enter<calls::Isend>(data, 3, MPI_INT, 4, 5, comm, &request) == MPI_SUCCESS);
    CHECK((seen.buffer == data && seen.count == 3 && request == real_request));
    CHECK_FALSE(fake.posted);
}

TEST_CASE("post: the library refuses a call that has no place for its request", "[handlers]") {
    begin();
    real.Isend = [](const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request* request) {
        return request == nullptr ? MPI_ERR_REQUEST : MPI_SUCCESS;
    };
    CHECK(enter<calls::Isend>(nullptr, 0, MPI_INT, 1, 2, comm, nullptr) == MPI_ERR_REQUEST);
    CHECK_FALSE(fake.posted);
}

TEST_CASE("post: a re-entrant call goes to the real function", "[handlers]") {
    begin();
    fake.reentrant = true;
    real.Isend = real_isend;
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK(enter<calls::Isend>(nullptr, 0, MPI_INT, 1, 2, comm, &request) == MPI_SUCCESS);
    CHECK(request == real_request);
    CHECK_FALSE(fake.posted);
}

TEST_CASE("post: a matched message travels by value and is used up", "[handlers]") {
    begin();
    MPI_Message message = 0x2c000123;
    MPI_Request request;
    REQUIRE(enter<calls::Imrecv>(nullptr, 2, MPI_INT, &message, &request) == MPI_SUCCESS);
    CHECK(message == MPI_MESSAGE_NULL);
    real.Imrecv = real_imrecv;
    REQUIRE(fake.posted->issue_now(&request) == MPI_SUCCESS);
    CHECK(seen.message == 0x2c000123);

    SECTION("not after an error") {
        fake.result = MPI_ERR_OTHER;
        message = 0x2c000124;
        CHECK(enter<calls::Imrecv>(nullptr, 2, MPI_INT, &message, &request) == MPI_ERR_OTHER);
        CHECK(message == 0x2c000124);
    }
    SECTION("the operation can be issued from its copy more than once") {
        REQUIRE(fake.posted->issue_now(&request) == MPI_SUCCESS);
        CHECK(seen.message == 0x2c000123);
    }
}

TEST_CASE("post: facts of calls with two sides, with counts in arrays, with an operation",
          "[handlers]") {
    begin();
    MPI_Request request;
    int out[2], in[2], counts[2] = {1, 1}, displacements[2] = {0, 1};
    SECTION("Isendrecv") {
        enter<calls::Isendrecv>(out, 1, MPI_INT, 2, 3, in, 4, MPI_FLOAT, 5, 6, comm, &request);
        const offload::CallFacts& facts = fake.posted->facts;
        CHECK((facts.count == 1 && facts.type == MPI_INT && facts.peer == 2 && facts.tag == 3));
        CHECK((facts.other_count == 4 && facts.other_type == MPI_FLOAT && facts.other_peer == 5));
        CHECK((facts.sendbuf == out && facts.recvbuf == in && !facts.collective));
    }
    SECTION("Igatherv") {
        enter<calls::Igatherv>(out, 2, MPI_INT, in, counts, displacements, MPI_FLOAT, 1, comm,
                               &request);
        const offload::CallFacts& facts = fake.posted->facts;
        CHECK((facts.collective && facts.vector_form && facts.root == 1));
        CHECK((facts.count == 2 && facts.type == MPI_INT && facts.other_type == MPI_FLOAT));
    }
    SECTION("Iscatterv") {
        enter<calls::Iscatterv>(out, counts, displacements, MPI_INT, in, 3, MPI_FLOAT, 0, comm,
                                &request);
        const offload::CallFacts& facts = fake.posted->facts;
        CHECK((facts.collective && facts.vector_form && facts.other_count == 3));
        CHECK((facts.type == MPI_INT && facts.other_type == MPI_FLOAT));
    }
    SECTION("Ireduce_scatter_block has one side only") {
        enter<calls::Ireduce_scatter_block>(out, in, 7, MPI_INT, MPI_MAX, comm, &request);
        const offload::CallFacts& facts = fake.posted->facts;
        CHECK((facts.count == 7 && facts.type == MPI_INT && facts.op == MPI_MAX));
        CHECK((facts.collective && facts.reduces && !facts.vector_form));
    }
    SECTION("Ialltoallw has no type of its own") {
        MPI_Datatype types[2] = {MPI_INT, MPI_INT};
        enter<calls::Ialltoallw>(out, counts, displacements, types, in, counts, displacements,
                                 types, comm, &request);
        const offload::CallFacts& facts = fake.posted->facts;
        CHECK((facts.collective && facts.vector_form && facts.type == MPI_BYTE));
    }
    SECTION("Ibarrier") {
        enter<calls::Ibarrier>(comm, &request);
        CHECK((fake.posted->facts.collective && fake.posted->facts.comm == comm));
    }
    SECTION("a large count keeps its upper half") {
        enter<calls::Isend_c>(out, MPI_Count{5} << 32, MPI_BYTE, 0, 0, comm, &request);
        CHECK(fake.posted->facts.count == MPI_Count{5} << 32);
        CHECK(fake.posted->call == Call::Isend_c);
    }
}

TEST_CASE("twin: runs as the nonblocking call, with the status", "[handlers]") {
    begin();
    MPI_Status status;
    int data;
    fake.result = 42;
    CHECK(enter<calls::Recv>(&data, 1, MPI_INT, 3, 4, comm, &status) == 42);
    REQUIRE(fake.run);
    CHECK((fake.run->call == Call::Recv && fake.run->issue == offload::issue<calls::Irecv> &&
           fake.run->status == &status));
    CHECK(fake.direct_calls.empty());

    SECTION("a send has none") {
        CHECK(enter<calls::Ssend>(&data, 1, MPI_INT, 3, 4, comm) == 42);
        CHECK((fake.run->issue == offload::issue<calls::Issend> &&
               fake.run->status == MPI_STATUS_IGNORE));
    }
    SECTION("a matched receive uses its message up") {
        MPI_Message message = 0x2c000009;
        fake.result = MPI_SUCCESS;
        CHECK(enter<calls::Mrecv>(&data, 1, MPI_INT, &message, &status) == MPI_SUCCESS);
        CHECK((fake.run->issue == offload::issue<calls::Imrecv> && message == MPI_MESSAGE_NULL));
    }
}

TEST_CASE("twin: declined, the library executes the call itself", "[handlers]") {
    begin();
    int data;
    real.Send_c = real_send_c;
    real.Recv = real_recv;
    SECTION("where twins do not serve") {
        fake.twins = false;
        CHECK(enter<calls::Send_c>(&data, 6, MPI_INT, 1, 2, comm) == 99);
        CHECK((seen.count == 6 && seen.peer == 1 && seen.tag == 2));
    }
    SECTION("a receive from no one, whose request has no status in MPICH") {
        CHECK(enter<calls::Recv>(&data, 1, MPI_INT, MPI_PROC_NULL, 2, comm, MPI_STATUS_IGNORE) ==
              98);
    }
    CHECK_FALSE(fake.run);
    CHECK(seen.direct_calls == 1);
    CHECK(fake.open_direct_calls == 0);
}

TEST_CASE("typed: a message of a derived datatype goes as its type, or as bytes", "[handlers]") {
    begin();
    constexpr auto derived = static_cast<MPI_Datatype>(0xcc000001u);
    int data;
    MPI_Status status;
    real.Send_c = real_send_c;
    real.Recv = [](void* buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm on,
                   MPI_Status* filled) {
        real_recv(buf, count, type, source, tag, on, filled);
        filled->MPI_TAG = 24;
        return MPI_SUCCESS;
    };
    real.Get_count_c = [](const MPI_Status* filled, MPI_Datatype, MPI_Count* count) {
        *count = filled->MPI_TAG;
        return MPI_SUCCESS;
    };
    fake.twins = false;
    SECTION("by its type") {
        CHECK(enter<calls::Send_c>(&data, 6, derived, 1, 2, comm) == 99);
        CHECK((seen.count == 6 && seen.type == derived && seen.buffer == &data));
        CHECK(enter<calls::Recv>(&data, 6, derived, 1, 2, comm, &status) == MPI_SUCCESS);
        CHECK((seen.count == 6 && seen.type == derived && seen.buffer == &data));
        CHECK(fake.received_by_library == 1);
        CHECK(fake.sent_by_library == 0);  // an error
        real.Send_c = [](const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm) {
            return MPI_SUCCESS;
        };
        CHECK(enter<calls::Send_c>(&data, 6, derived, 1, 2, comm) == MPI_SUCCESS);
        CHECK(fake.sent_by_library == 1);
        CHECK(fake.unpacked == -1);
    }
    SECTION("as bytes") {
        fake.bytes_of_message = 48;
        CHECK(enter<calls::Send_c>(&data, 6, derived, 1, 2, comm) == 99);
        CHECK((seen.count == 48 && seen.type == MPI_BYTE && seen.buffer != &data));
        CHECK((seen.peer == 1 && seen.tag == 2));
        for (MPI_Status* const of_program : {&status, MPI_STATUS_IGNORE}) {
            fake.unpacked = -1;
            CHECK(enter<calls::Recv>(&data, 6, derived, 1, 2, comm, of_program) == MPI_SUCCESS);
            CHECK((seen.count == 48 && seen.type == MPI_BYTE && seen.buffer != &data));
            CHECK(fake.unpacked == 24);  // what has come
        }
        CHECK(fake.received_by_library == 0);
    }
    SECTION("what the library has served before") {
        using Way = datatype::TypedCall::Way;
        fake.bytes_of_message = 48;
        const auto leave = [](Way way) {
            for (datatype::LeftCall& left : datatype::left_calls) left = {};
            const datatype::TypedCall call{
                .way = way, .type = derived, .object = library::number_of_handle(comm), .count = 6};
            datatype::place_of(call).call = call;
        };
        const auto send_goes_by_type = [&](Way left) {
            leave(left);
            enter<calls::Send_c>(&data, 6, derived, 1, 2, comm);
            return seen.type == derived && seen.buffer == &data;
        };
        const auto receive_goes_by_type = [&](Way left) {
            leave(left);
            enter<calls::Recv>(&data, 6, derived, 1, 2, comm, &status);
            return seen.type == derived && seen.buffer == &data;
        };
        CHECK(send_goes_by_type(Way::send));
        CHECK(receive_goes_by_type(Way::receive));
        for (const Way other : {Way::post_send, Way::post_receive}) {
            CHECK_FALSE(send_goes_by_type(other));
            CHECK_FALSE(receive_goes_by_type(other));
        }
        leave(Way::send);
        enter<calls::Send_c>(&data, 7, derived, 1, 2, comm);  // another message
        CHECK(seen.type == MPI_BYTE);
        ++datatype::handles_gone;
        CHECK_FALSE(send_goes_by_type(Way::send));
        --datatype::handles_gone;
    }
    SECTION("a receive that fails") {
        fake.bytes_of_message = 48;
        real.Recv = real_recv;
        CHECK(enter<calls::Recv>(&data, 6, derived, 1, 2, comm, &status) == 98);
        CHECK(fake.unpacked == -1);
    }
}

TEST_CASE("typed: a nonblocking message of a derived datatype goes as its type, or as bytes",
          "[handlers]") {
    begin();
    constexpr auto derived = static_cast<MPI_Datatype>(0xcc000001u);
    int data;
    MPI_Request request = MPI_REQUEST_NULL;
    const auto goes_by_type = [&]() {
        fake.posted.reset();
        REQUIRE(enter<calls::Irecv>(&data, 6, derived, 1, 2, comm, &request) == MPI_SUCCESS);
        const offload::CallFacts& facts = fake.posted->facts;
        return !fake.has_ending && facts.type == derived && facts.count == 6 &&
               facts.sendbuf == &data;
    };
    CHECK(goes_by_type());
    fake.bytes_of_message = 48;
    SECTION("as bytes") {
        REQUIRE(enter<calls::Isend_c>(&data, 6, derived, 1, 2, comm, &request) == MPI_SUCCESS);
        CHECK(fake.has_ending);
        CHECK((fake.posted->facts.type == MPI_BYTE && fake.posted->facts.count == 48));
        CHECK((fake.posted->facts.peer == 1 && fake.posted->facts.tag == 2));
        CHECK(fake.posted->facts.sendbuf != &data);
    }
    SECTION("one that came for its type alone, and goes by it") {
        set_need(Need::messages, false);
        real.Isend = real_isend;
        fake.posted.reset();
        CHECK(enter<calls::Isend>(&data, 6, MPI_INT, 1, 2, comm, &request) == MPI_SUCCESS);
        fake.bytes_of_message = 0;
        CHECK(enter<calls::Isend>(&data, 6, derived, 1, 2, comm, &request) == MPI_SUCCESS);
        CHECK((seen.times == 2 && seen.type == derived && seen.buffer == &data));
        CHECK_FALSE(fake.posted);
    }
    SECTION("no slot is left") {
        fake.has_slot = false;
        CHECK(goes_by_type());
    }
}

TEST_CASE("after a call that completes messages those are looked at that the program has freed",
          "[handlers]") {
    begin();
    CHECK(enter<calls::Barrier>(comm) == MPI_SUCCESS);
    CHECK(fake.looks_after_freed == 0);
    offload::freed_endings = 1;
    CHECK(enter<calls::Barrier>(comm) == MPI_SUCCESS);
    CHECK(fake.looks_after_freed == 1);
    offload::freed_endings = 0;
}

TEST_CASE("typed transfers: the library may be given packed values", "[handlers]") {
    begin();
    double data;
    constexpr auto derived = static_cast<MPI_Datatype>(0x8c000123u);
    constexpr auto win = static_cast<MPI_Win>(0xa0000001u);
    real.Put = [](const void* origin, int count, MPI_Datatype type, int target, MPI_Aint place, int,
                  MPI_Datatype, MPI_Win) {
        seen.buffer = const_cast<void*>(origin);
        seen.count = count;
        seen.type = type;
        seen.peer = target;
        return place == 40 ? 91 : MPI_SUCCESS;
    };
    SECTION("a predefined type, or no target, is the library's") {
        enter<calls::Put>(&data, 6, MPI_DOUBLE, 1, 40, 6, MPI_DOUBLE, win);
        enter<calls::Put>(&data, 6, derived, MPI_PROC_NULL, 40, 6, MPI_DOUBLE, win);
        CHECK((seen.count == 6 && seen.type == derived && seen.buffer == &data));
        CHECK_FALSE(fake.transfer);
    }
    SECTION("by its type") {
        CHECK(enter<calls::Put>(&data, 6, derived, 1, 40, 6, MPI_DOUBLE, win) == 91);
        CHECK((seen.count == 6 && seen.type == derived && seen.buffer == &data));
        CHECK((fake.transfer == datatype::TypedCall::Way::put && fake.transfer_error == 91));
    }
    SECTION("packed") {
        fake.doubles_of_transfer = 7;
        CHECK(enter<calls::Put>(&data, 6, derived, 1, 48, 6, MPI_DOUBLE, win) == MPI_SUCCESS);
        CHECK((seen.count == 7 && seen.type == MPI_DOUBLE && seen.buffer != &data));
        CHECK((seen.peer == 1 && fake.transfer_error == MPI_SUCCESS));
    }
    SECTION("get and accumulate") {
        real.Get = [](void*, int, MPI_Datatype, int, MPI_Aint, int, MPI_Datatype, MPI_Win) {
            return MPI_SUCCESS;
        };
        real.Accumulate = [](const void*, int, MPI_Datatype, int, MPI_Aint, int, MPI_Datatype,
                             MPI_Op, MPI_Win) { return MPI_SUCCESS; };
        enter<calls::Get>(&data, 6, derived, 1, 48, 6, MPI_DOUBLE, win);
        CHECK(fake.transfer == datatype::TypedCall::Way::get);
        enter<calls::Accumulate>(&data, 6, derived, 1, 48, 6, MPI_DOUBLE, MPI_SUM, win);
        CHECK(fake.transfer == datatype::TypedCall::Way::accumulate);
    }
    SECTION("completed at one target, or at all") {
        real.Win_flush_local = [](int, MPI_Win) { return 92; };
        real.Win_fence = [](int, MPI_Win) { return MPI_SUCCESS; };
        real.Win_unlock_all = [](MPI_Win) { return MPI_SUCCESS; };
        CHECK(enter<calls::Win_flush_local>(3, win) == 92);
        CHECK((fake.completed->error == 92 && fake.completed->target == 3));
        CHECK_FALSE(fake.completed->waits_for_others);
        CHECK(enter<calls::Win_fence>(5, win) == MPI_SUCCESS);
        CHECK((fake.completed->target == datatype::all_targets));
        CHECK(fake.completed->waits_for_others);
        CHECK(enter<calls::Win_unlock_all>(win) == MPI_SUCCESS);
        CHECK((fake.completed->target == datatype::all_targets));
        CHECK_FALSE(fake.completed->waits_for_others);
    }
}

TEST_CASE("collective: twin where the ranks agreed, else direct", "[handlers]") {
    begin();
    int data;
    real.Bcast = real_bcast;
    SECTION("twin") {
        fake.result = 41;
        CHECK(enter<calls::Bcast>(&data, 1, MPI_INT, 2, comm) == 41);
        CHECK((fake.run->call == Call::Bcast && fake.run->issue == offload::issue<calls::Ibcast>));
        CHECK((fake.run->facts.root == 2 && fake.run->status == MPI_STATUS_IGNORE));
        CHECK(enter<calls::Barrier>(comm) == 41);
        CHECK(fake.run->issue == offload::issue<calls::Ibarrier>);
    }
    SECTION("direct") {
        fake.collective_twins = false;
        CHECK(enter<calls::Bcast>(&data, 1, MPI_INT, 2, comm) == 97);
        CHECK((seen.direct_calls == 1 && seen.root == 2));
        CHECK(fake.direct_calls == std::vector{Call::Bcast});
    }
    SECTION("the pipeline is asked first, in the form of the call") {
        fake.pipeline = 31;
        MPI_Request request = MPI_REQUEST_NULL;
        CHECK(enter<calls::Bcast>(&data, 1, MPI_INT, 2, comm) == 31);
        CHECK(fake.form.call == Call::Bcast);
        CHECK(fake.form.kind == pipeline::CollectiveForm::Kind::blocking);
        CHECK(enter<calls::Ibcast>(&data, 1, MPI_INT, 2, comm, &request) == 31);
        CHECK(fake.form.kind == pipeline::CollectiveForm::Kind::nonblocking);
        CHECK(fake.form.request == &request);
        CHECK(enter<calls::Bcast_init>(&data, 1, MPI_INT, 2, comm, MPI_INFO_NULL, &request) == 31);
        CHECK(fake.form.kind == pipeline::CollectiveForm::Kind::persistent);
        CHECK((!fake.run && !fake.posted && seen.direct_calls == 0));
    }
    SECTION("the node is asked before that") {
        fake.intranode = 29;
        fake.pipeline = 31;
        CHECK(enter<calls::Bcast>(&data, 1, MPI_INT, 2, comm) == 29);
        CHECK(enter<calls::Barrier>(comm) == 29);
        MPI_Request request = MPI_REQUEST_NULL;
        CHECK(enter<calls::Ibcast>(&data, 1, MPI_INT, 2, comm, &request) == 29);
        CHECK(fake.form.kind == pipeline::CollectiveForm::Kind::nonblocking);
        CHECK(enter<calls::Ibarrier>(comm, &request) == 29);
        CHECK(enter<calls::Barrier_init>(comm, MPI_INFO_NULL, &request) == 29);
        CHECK(fake.form.kind == pipeline::CollectiveForm::Kind::persistent);
        CHECK(fake.form.request == &request);
        CHECK(fake.asked_on_node == std::vector{Call::Bcast, Call::Barrier, Call::Ibcast,
                                                Call::Ibarrier, Call::Barrier_init});
        fake.reentrant = true;  // other ranks may make this call outside of a callback
        CHECK(enter<calls::Bcast>(&data, 1, MPI_INT, 2, comm) == 29);
        fake.reentrant = false;
        fake.intranode.reset();
        CHECK(enter<calls::Bcast>(&data, 1, MPI_INT, 2, comm) == 31);
        CHECK_FALSE(fake.ended_turn_of);
    }
    SECTION("a call of so few bytes that no path over hosts serves it") {
        const auto other = static_cast<MPI_Comm>(MPI_COMM_SELF + 1);
        fake.pipeline = 31;
        fake.intranode = 29;
        pipeline::calls_left.below_bytes[static_cast<size_t>(Collective::bcast)] = 8;
        pipeline::calls_left.world_is_over_hosts = true;
        const auto of_bytes = [&](MPI_Comm on, int bytes) {
            return enter<calls::Bcast>(&data, bytes, MPI_BYTE, 2, on);
        };
        CHECK(of_bytes(MPI_COMM_WORLD, 7) == 97);
        CHECK(fake.asked_on_node.empty());
        CHECK(of_bytes(MPI_COMM_WORLD, 8) == 29);
        CHECK(of_bytes(MPI_COMM_WORLD, 0) == 29);
        CHECK(of_bytes(other, 7) == 29);  // of one node, perhaps
        pipeline::calls_left.ranks_are_alone = true;
        CHECK(of_bytes(other, 7) == 97);
        pipeline::private_comms_wanted = 1;
        CHECK(of_bytes(other, 7) == 29);
        pipeline::private_comms_wanted = 0;
        for (const unsigned need : {Need::twins, Need::counting}) {
            set_need(need, true);
            CHECK(of_bytes(other, 7) == 29);
            set_need(need, false);
        }
        CHECK(fake.waits_for_issue == 0);
        set_need(Need::queue, true);
        CHECK(of_bytes(other, 7) == 97);
        CHECK(fake.waits_for_issue == 1);
        set_need(Need::queue, false);
        pipeline::calls_left = {};
    }
    SECTION("a call that no path can serve") {
        fake.pipeline = 31;
        fake.intranode = 29;
        MPI_Request request = MPI_REQUEST_NULL;
        const auto bcast = [&](MPI_Comm on) {
            return enter<calls::Bcast>(&data, 1, MPI_INT, 0, on);
        };
        const auto ibcast = [&](MPI_Comm on) {
            return enter<calls::Ibcast>(&data, 1, MPI_INT, 0, on, &request);
        };
        CHECK((bcast(MPI_COMM_SELF) == 97 && ibcast(MPI_COMM_SELF) == MPI_SUCCESS));
        CHECK((bcast(comm) == 29 && ibcast(comm) == 29));
        pipeline::calls_left.nothing_serves_later = true;
        CHECK((bcast(comm) == 29 && ibcast(comm) == MPI_SUCCESS));
        pipeline::calls_left = {.world_is_one_rank = true};
        CHECK((bcast(comm) == 97 && ibcast(comm) == MPI_SUCCESS));
        pipeline::calls_left = {.only_node_serves = true};
        CHECK(bcast(comm) == 29);
        fake.intranode.reset();
        CHECK(bcast(comm) == 97);
        set_need(Need::counting, true);
        CHECK(bcast(comm) == 31);
        set_need(Need::counting, false);
        pipeline::private_comms_wanted = 1;  // this call may have to make one
        CHECK(bcast(comm) == 31);
        pipeline::private_comms_wanted = 0;
        pipeline::calls_left = {};
    }
    SECTION("the library's turn in a trial ends with its call") {
        pipeline::turn_of_others.end = [](const pipeline::TimedTurn& turn) noexcept {
            fake.ended_turn_of = turn.collective;
        };
        pipeline::turn_of_others.collective = Collective::bcast;
        fake.pipeline = 31;
        CHECK(enter<calls::Bcast>(&data, 1, MPI_INT, 2, comm) == 31);
        CHECK(fake.ended_turn_of == Collective::bcast);
        CHECK(pipeline::turn_of_others.end == nullptr);
        fake.ended_turn_of.reset();
        CHECK(enter<calls::Bcast>(&data, 1, MPI_INT, 2, comm) == 31);
        CHECK_FALSE(fake.ended_turn_of);
    }
    SECTION("re-entrant") {
        fake.reentrant = true;
        fake.collective_twins = false;  // says the engine
        CHECK(enter<calls::Bcast>(&data, 1, MPI_INT, 2, comm) == 97);
        CHECK_FALSE(fake.run);
        fake.pipeline = 31;  // which declines what it cannot serve here
        CHECK(enter<calls::Bcast>(&data, 1, MPI_INT, 2, comm) == 31);
    }
}

TEST_CASE("direct: inside a DirectCall of its own name", "[handlers]") {
    begin();
    real.Comm_dup = real_comm_dup;
    MPI_Comm copy = MPI_COMM_NULL;
    CHECK(enter<calls::Comm_dup>(comm, &copy) == MPI_SUCCESS);
    CHECK((copy == comm + 1 && seen.direct_calls == 1 && fake.open_direct_calls == 0));
    CHECK(fake.direct_calls == std::vector{Call::Comm_dup});
}

TEST_CASE("direct: a nonblocking file call says that it makes a request", "[handlers]") {
    begin();
    int data;
    MPI_Request request = MPI_REQUEST_NULL;
    real.File_iwrite = [](MPI_File, const void*, int, MPI_Datatype, MPI_Request*) {
        return fake.files_noted == 1 ? 93 : MPI_SUCCESS;
    };
    CHECK(enter<calls::File_iwrite>(MPI_FILE_NULL, &data, 1, MPI_INT, &request) == 93);
    real.File_seek = [](MPI_File, MPI_Offset, int) { return 94; };
    CHECK(enter<calls::File_seek>(MPI_FILE_NULL, 0, MPI_SEEK_SET) == 94);
    CHECK(fake.files_noted == 1);
}

TEST_CASE("persistent: the request is adopted after the call, unless it failed", "[handlers]") {
    begin();
    real.Send_init = real_send_init;
    MPI_Request request;
    SECTION("made") {
        CHECK(enter<calls::Send_init>(nullptr, 0, MPI_INT, 1, 2, comm, &request) == MPI_SUCCESS);
        CHECK(seen.direct_calls == 1);
        CHECK(fake.adopted == std::vector{std::pair{comm, real_request}});
    }
    SECTION("failed") {
        persistent_result = MPI_ERR_RANK;
        CHECK(enter<calls::Send_init>(nullptr, 0, MPI_INT, 1, 2, comm, &request) == MPI_ERR_RANK);
        CHECK(fake.adopted.empty());
    }
    SECTION("re-entrant") {
        fake.reentrant = true;
        CHECK(enter<calls::Send_init>(nullptr, 0, MPI_INT, 1, 2, comm, &request) == MPI_SUCCESS);
        CHECK((fake.adopted.empty() && fake.direct_calls.empty()));
        CHECK(fake.noted_persistent == 1);
    }
}

TEST_CASE("requests: each call reaches its function of the door", "[handlers]") {
    begin();
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int a, b, list[1] = {0};
    const auto reached = [](int code) {
        CHECK(code == MPI_SUCCESS);
        return fake.request_function;
    };
    CHECK(reached(enter<calls::Wait>(requests, statuses)) == "wait_one");
    CHECK(reached(enter<calls::Test>(requests, &a, statuses)) == "test_one");
    CHECK(reached(enter<calls::Waitany>(2, requests, &a, statuses)) == "wait_any");
    CHECK(reached(enter<calls::Testany>(2, requests, &a, &b, statuses)) == "test_any");
    CHECK(reached(enter<calls::Waitall>(2, requests, statuses)) == "wait_all");
    CHECK(reached(enter<calls::Testall>(2, requests, &a, statuses)) == "test_all");
    CHECK(reached(enter<calls::Waitsome>(2, requests, &a, &b, statuses)) == "wait_some");
    CHECK(reached(enter<calls::Testsome>(2, requests, &a, &b, statuses)) == "test_some");
    CHECK(reached(enter<calls::Request_get_status>(MPI_REQUEST_NULL, &a, statuses)) ==
          "request_get_status");
    CHECK(reached(enter<calls::Request_get_status_all>(2, requests, &a, statuses)) ==
          "request_get_status_all");
    CHECK(reached(enter<calls::Request_get_status_any>(2, requests, &a, &b, statuses)) ==
          "request_get_status_any");
    CHECK(reached(enter<calls::Request_get_status_some>(2, requests, &a, list, statuses)) ==
          "request_get_status_some");
    CHECK(reached(enter<calls::X_Request_is_complete>(MPI_REQUEST_NULL)) == "request_is_complete");
    CHECK(reached(enter<calls::Request_free>(requests)) == "request_free");
    CHECK(reached(enter<calls::Cancel>(requests)) == "cancel");
    CHECK(reached(enter<calls::Start>(requests)) == "start");
    CHECK(reached(enter<calls::Startall>(2, requests)) == "start_all");
    CHECK(reached(enter<calls::Pready>(0, MPI_REQUEST_NULL)) == "pready");
    CHECK(reached(enter<calls::Pready_range>(0, 1, MPI_REQUEST_NULL)) == "pready_range");
    CHECK(reached(enter<calls::Pready_list>(1, list, MPI_REQUEST_NULL)) == "pready_list");
    set_need(Need::virtual_requests, true);  // else it comes for a look only
    CHECK(reached(enter<calls::Parrived>(MPI_REQUEST_NULL, 0, &a)) == "parrived");
    set_need(Need::virtual_requests, false);
}

TEST_CASE("calls: every number has a name of its own", "[handlers]") {
    std::set<std::string> names;
    for (size_t i = 0; i < library::number_of_calls; ++i)
        names.insert(library::call_name(static_cast<Call>(i)));
    CHECK(names.size() == library::number_of_calls);
    CHECK(names.count("MPI_Send_c") == 1);
    CHECK(library::number_of_calls <= max_calls);
    CHECK(std::string(library::call_name(Call::Send)) == "MPI_Send");
    CHECK(std::string(library::call_name(Call::T_cvar_read)) == "MPI_T_cvar_read");
}
