// SPDX-License-Identifier: BSD-3-Clause
// Wrong arguments with MPI_ERRORS_RETURN: the call itself returns the class, nothing is posted. No
// call here may succeed.
#include <vector>

#include "battery.hpp"

using namespace battery;

namespace {

int buffer[4];
MPI_Comm comm;

void note(int code, int expected, const char* what) {
    check_class(code, expected, what);
    topic(what).add(static_cast<uint64_t>(error_class(code)));
}

using Send = decltype(&MPI_Send);
using Isend = decltype(&MPI_Isend);

void bad_sends() {
    constexpr Send sends[] = {MPI_Send, MPI_Ssend, MPI_Rsend};
    for (const Send send : sends) {
        note(send(buffer, 1, MPI_INT, world.size, 0, comm), MPI_ERR_RANK, "rank of a send");
        note(send(buffer, 1, MPI_INT, -7, 0, comm), MPI_ERR_RANK, "negative rank of a send");
        note(send(buffer, 1, MPI_INT, 0, -3, comm), MPI_ERR_TAG, "tag of a send");
        note(send(buffer, -1, MPI_INT, 0, 0, comm), MPI_ERR_COUNT, "count of a send");
        note(send(buffer, 1, MPI_DATATYPE_NULL, 0, 0, comm), MPI_ERR_TYPE, "type of a send");
        note(send(nullptr, 1, MPI_INT, 0, 0, comm), MPI_ERR_BUFFER, "buffer of a send");
        note(send(buffer, 1, MPI_INT, 0, 0, MPI_COMM_NULL), MPI_ERR_COMM, "comm of a send");
    }
}

void bad_nonblocking_sends() {
    constexpr Isend sends[] = {MPI_Isend, MPI_Issend, MPI_Irsend};
    for (const Isend send : sends) {
        MPI_Request r = MPI_REQUEST_NULL;
        note(send(buffer, 1, MPI_INT, world.size, 0, comm, &r), MPI_ERR_RANK, "rank of an isend");
        note(send(buffer, 1, MPI_INT, 0, -3, comm, &r), MPI_ERR_TAG, "tag of an isend");
        note(send(buffer, -1, MPI_INT, 0, 0, comm, &r), MPI_ERR_COUNT, "count of an isend");
        note(send(buffer, 1, MPI_DATATYPE_NULL, 0, 0, comm, &r), MPI_ERR_TYPE, "type of an isend");
        note(send(nullptr, 1, MPI_INT, 0, 0, comm, &r), MPI_ERR_BUFFER, "buffer of an isend");
        note(send(buffer, 1, MPI_INT, 0, 0, MPI_COMM_NULL, &r), MPI_ERR_COMM, "comm of an isend");
        note(send(buffer, 1, MPI_INT, 0, 0, comm, nullptr), MPI_ERR_ARG, "request of an isend");
    }
}

void uncommitted_type() {
    MPI_Datatype type;
    MPI_Request request;
    MPI_Type_contiguous(2, MPI_INT, &type);
    note(MPI_Isend(buffer, 1, type, 0, 0, comm, &request), MPI_ERR_TYPE, "uncommitted type");
    note(MPI_Bcast(buffer, 1, type, 0, comm), MPI_ERR_TYPE, "uncommitted type in Bcast");
    MPI_Type_free(&type);
}

void bad_receives() {
    MPI_Request r = MPI_REQUEST_NULL;
    MPI_Status s;
    note(MPI_Recv(buffer, 1, MPI_INT, world.size, 0, comm, &s), MPI_ERR_RANK, "rank of a recv");
    note(MPI_Recv(buffer, 1, MPI_INT, 0, -5, comm, &s), MPI_ERR_TAG, "tag of a recv");
    note(MPI_Recv(buffer, -2, MPI_INT, 0, 0, comm, &s), MPI_ERR_COUNT, "count of a recv");
    note(MPI_Irecv(buffer, 1, MPI_INT, world.size, 0, comm, &r), MPI_ERR_RANK, "rank of an irecv");
    note(MPI_Irecv(buffer, 1, MPI_INT, 0, -5, comm, &r), MPI_ERR_TAG, "tag of an irecv");
    note(MPI_Irecv(buffer, -2, MPI_INT, 0, 0, comm, &r), MPI_ERR_COUNT, "count of an irecv");
    note(MPI_Irecv(buffer, 1, MPI_DATATYPE_NULL, 0, 0, comm, &r), MPI_ERR_TYPE, "type of an irecv");
    note(MPI_Probe(world.size + 2, 0, comm, &s), MPI_ERR_RANK, "rank of a probe");
    note(MPI_Recv_init(buffer, 1, MPI_INT, 99, 0, comm, &r), MPI_ERR_RANK, "rank of Recv_init");
    note(MPI_Send_init(buffer, 1, MPI_INT, 0, -9, comm, &r), MPI_ERR_TAG, "tag of Send_init");
    note(MPI_Sendrecv(buffer, 1, MPI_INT, 99, 0, buffer + 2, 1, MPI_INT, 0, 0, comm, &s),
         MPI_ERR_RANK, "rank of Sendrecv");
}

// The message stays and can be received rightly.
void bad_matched_receives() {
    std::vector<int> out(2000, 5);
    std::vector<int> in(2000);
    MPI_Request send;
    MPI_Request r = MPI_REQUEST_NULL;
    MPI_Message message;
    MPI_Isend(out.data(), 2000, MPI_INT, world.rank, 4, MPI_COMM_WORLD, &send);
    MPI_Mprobe(world.rank, 4, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    note(MPI_Imrecv(in.data(), 2000, MPI_DATATYPE_NULL, &message, &r), MPI_ERR_TYPE,
         "type of Imrecv");
    note(MPI_Imrecv(in.data(), -1, MPI_INT, &message, &r), MPI_ERR_COUNT, "count of Imrecv");
    check(message != MPI_MESSAGE_NULL, "the message after a refused Imrecv");
    MPI_Mrecv(in.data(), 2000, MPI_INT, &message, MPI_STATUS_IGNORE);
    check_equal(in[1999], 5, "matched message");
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    message = MPI_MESSAGE_NULL;
    note(MPI_Imrecv(in.data(), 2000, MPI_INT, &message, &r), MPI_ERR_REQUEST, "null message");
}

// The message that the receiving side would have matched stays, and the buffer is as it was.
void refused_exchanges() {
    struct Side {
        int count, dest, tag, expected;
    };
    for (const int length : {1, 5000})
        for (const Side bad : {Side{1, 99, 5, MPI_ERR_RANK}, Side{1, world.rank, -9, MPI_ERR_TAG},
                               Side{-1, world.rank, 5, MPI_ERR_COUNT}}) {
            std::vector<int> out(5000, 42);
            std::vector<int> in(5000, -1);
            MPI_Request send;
            int found = 0;
            MPI_Isend(out.data(), length, MPI_INT, world.rank, 5, comm, &send);
            while (found == 0) MPI_Iprobe(world.rank, 5, comm, &found, MPI_STATUS_IGNORE);
            note(MPI_Sendrecv(buffer, bad.count, MPI_INT, bad.dest, bad.tag, in.data(), 5000,
                              MPI_INT, world.rank, 5, comm, MPI_STATUS_IGNORE),
                 bad.expected, "sending side of Sendrecv");
            check_equal(in[0], -1, "buffer of a refused Sendrecv");
            MPI_Iprobe(world.rank, 5, comm, &found, MPI_STATUS_IGNORE);
            check_equal(found, 1, "the message after a refused Sendrecv");
            MPI_Recv(in.data(), 5000, MPI_INT, world.rank, 5, comm, MPI_STATUS_IGNORE);
            check_equal(in[0], 42, "element of the message");
            MPI_Wait(&send, MPI_STATUS_IGNORE);
        }
}

// One rank errs on a communicator that was freed; its handle comes back with the next one. All
// ranks must then serve that alike.
void freed_communicator() {
    std::vector<int> out(100000, 1);
    std::vector<int> in(100000);
    MPI_Comm made;
    MPI_Comm_dup(comm, &made);
    const MPI_Comm freed = made;
    MPI_Comm_free(&made);
    if (world.rank == 0) {
        MPI_Request r = MPI_REQUEST_NULL;
        note(MPI_Bcast(out.data(), 100000, MPI_INT, 0, freed), MPI_ERR_COMM, "freed comm of Bcast");
        note(MPI_Isend(buffer, 1, MPI_INT, 0, 0, freed, &r), MPI_ERR_COMM, "freed comm of Isend");
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    MPI_Allreduce(out.data(), in.data(), 100000, MPI_INT, MPI_SUM, made);
    check_equal(in[99999], world.size, "sum on a handle that was another's");
    MPI_Comm_free(&made);
}

void bad_collectives() {
    MPI_Request r = MPI_REQUEST_NULL;
    int out[4];
    note(MPI_Bcast(buffer, 1, MPI_INT, world.size, comm), MPI_ERR_ROOT, "root of Bcast");
    note(MPI_Bcast(buffer, -1, MPI_INT, 0, comm), MPI_ERR_COUNT, "count of Bcast");
    note(MPI_Ibcast(buffer, 1, MPI_INT, -1, comm, &r), MPI_ERR_ROOT, "root of Ibcast");
    note(MPI_Allreduce(buffer, out, 1, MPI_INT, MPI_OP_NULL, comm), MPI_ERR_OP, "op of Allreduce");
    note(MPI_Iallreduce(buffer, out, 1, MPI_INT, MPI_OP_NULL, comm, &r), MPI_ERR_OP,
         "op of Iallreduce");
    note(MPI_Allreduce(buffer, out, 1, MPI_FLOAT, MPI_BAND, comm), MPI_ERR_OP, "op and type");
    note(MPI_Allreduce(buffer, out, 1, MPI_DATATYPE_NULL, MPI_SUM, comm), MPI_ERR_OP,
         "type of Allreduce");
    note(MPI_Allreduce(buffer, buffer, 1, MPI_INT, MPI_SUM, comm), MPI_ERR_BUFFER,
         "aliased buffers");
    note(MPI_Iallreduce(buffer, buffer, 1, MPI_INT, MPI_SUM, comm, &r), MPI_ERR_BUFFER,
         "aliased buffers of Iallreduce");
    note(MPI_Barrier(MPI_COMM_NULL), MPI_ERR_COMM, "comm of Barrier");
    note(MPI_Ibarrier(MPI_COMM_NULL, &r), MPI_ERR_COMM, "comm of Ibarrier");
    note(MPI_Reduce(buffer, out, 1, MPI_INT, MPI_SUM, 77, comm), MPI_ERR_ROOT, "root of Reduce");
}

// Large ones, which may be cut: part of a null buffer is no null buffer.
void null_buffers() {
    constexpr int count = 1 << 20;
    std::vector<int> in(count, 1);
    note(MPI_Allreduce(in.data(), nullptr, count, MPI_INT, MPI_SUM, comm), MPI_ERR_BUFFER,
         "null buffer of Allreduce");
    note(MPI_Allreduce(MPI_IN_PLACE, nullptr, count, MPI_INT, MPI_SUM, comm), MPI_ERR_BUFFER,
         "null buffer of Allreduce in place");
    note(MPI_Bcast(nullptr, count, MPI_INT, 0, comm), MPI_ERR_BUFFER, "null buffer of Bcast");
    note(MPI_Allgather(in.data(), count, MPI_INT, nullptr, count, MPI_INT, comm), MPI_ERR_BUFFER,
         "null buffer of Allgather");
    note(MPI_Reduce(nullptr, in.data(), count, MPI_INT, MPI_SUM, 0, comm), MPI_ERR_BUFFER,
         "null buffer of Reduce");
}

// So large that an offload thread would issue them later.
void refused_nonblocking() {
    constexpr int count = 1 << 16;
    MPI_Request r = MPI_REQUEST_NULL;
    std::vector<int> in(count, 1);
    std::vector<int> all(static_cast<size_t>(count) * static_cast<size_t>(world.size));
    note(MPI_Ibsend(in.data(), count, MPI_INT, world.rank, 0, comm, &r), MPI_ERR_BUFFER,
         "Ibsend without an attached buffer");
    note(MPI_Ibcast(nullptr, count, MPI_INT, 0, comm, &r), MPI_ERR_BUFFER, "null buffer of Ibcast");
    note(MPI_Iallreduce(in.data(), nullptr, count, MPI_INT, MPI_SUM, comm, &r), MPI_ERR_BUFFER,
         "null buffer of Iallreduce");
    note(MPI_Iallgather(in.data(), count, MPI_INT, MPI_IN_PLACE, count, MPI_INT, comm, &r),
         MPI_ERR_BUFFER, "MPI_IN_PLACE as result of Iallgather");
    note(MPI_Ineighbor_allgather(in.data(), count, MPI_INT, all.data(), count, MPI_INT, comm, &r),
         MPI_ERR_TOPOLOGY, "Ineighbor_allgather without neighbours");
}

// MPI_IN_PLACE is no place to write to.
void outputs_in_place() {
    constexpr int count = 1 << 16;
    std::vector<int> in(static_cast<size_t>(count) * static_cast<size_t>(world.size), 1);
    note(MPI_Allreduce(in.data(), MPI_IN_PLACE, count, MPI_INT, MPI_SUM, comm), MPI_ERR_BUFFER,
         "MPI_IN_PLACE as result of Allreduce");
    note(MPI_Reduce_scatter_block(in.data(), MPI_IN_PLACE, count, MPI_INT, MPI_SUM, comm),
         MPI_ERR_BUFFER, "MPI_IN_PLACE as result of Reduce_scatter_block");
    note(MPI_Allgather(in.data(), count, MPI_INT, MPI_IN_PLACE, count, MPI_INT, comm),
         MPI_ERR_BUFFER, "MPI_IN_PLACE as result of Allgather");
}

// Whichever side it is on.
void types_not_committed() {
    constexpr int count = 1 << 16;
    std::vector<int> in(count, 1);
    std::vector<int> out(static_cast<size_t>(count) * static_cast<size_t>(world.size), 1);
    MPI_Datatype type;
    MPI_Type_contiguous(count, MPI_INT, &type);
    note(MPI_Allgather(in.data(), 1, type, out.data(), count, MPI_INT, comm), MPI_ERR_TYPE,
         "uncommitted type that Allgather sends");
    note(MPI_Allgather(in.data(), count, MPI_INT, out.data(), 1, type, comm), MPI_ERR_TYPE,
         "uncommitted type that Allgather receives");
    note(MPI_Bcast(in.data(), 1, type, 0, comm), MPI_ERR_TYPE, "uncommitted type of Bcast");
    MPI_Type_free(&type);
}

void types_not_committed_of_transfers() {
    constexpr int count = 2000;
    std::vector<double> there(count, 1), here(2 * count, 1);
    MPI_Win win;
    MPI_Win_create(there.data(), count * sizeof(double), sizeof(double), MPI_INFO_NULL, comm, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, win);
    MPI_Datatype type;
    MPI_Type_vector(count, 1, 2, MPI_DOUBLE, &type);
    for (int use = 0; use < 3; ++use) {
        note(MPI_Put(here.data(), 1, type, world.rank, 0, count, MPI_DOUBLE, win), MPI_ERR_TYPE,
             "uncommitted type of Put");
        note(MPI_Get(here.data(), 1, type, world.rank, 0, count, MPI_DOUBLE, win), MPI_ERR_TYPE,
             "uncommitted type of Get");
    }
    MPI_Type_commit(&type);
    MPI_Put(here.data(), 1, type, world.rank, 0, count, MPI_DOUBLE, win);
    MPI_Win_unlock_all(win);
    MPI_Type_free(&type);
    MPI_Win_free(&win);
}

void bad_local_reductions() {
    int in[4] = {1, 2, 3, 4}, inout[4] = {};
    for (int use = 0; use < 3; ++use) MPI_Reduce_local(in, inout, 4, MPI_INT, MPI_SUM);
    note(MPI_Reduce_local(in, MPI_IN_PLACE, 4, MPI_INT, MPI_SUM), MPI_ERR_BUFFER,
         "MPI_IN_PLACE in Reduce_local");
    MPI_Request r = MPI_REQUEST_NULL;
    note(MPI_Iallreduce(in, inout, 4, MPI_INT, MPI_REPLACE, comm, &r), MPI_ERR_OP,
         "MPI_REPLACE in Iallreduce");
}

// Requests that no call made. (In the standard ABI the library may take one for an address.)
void bad_requests() {
    MPI_Request none = MPI_REQUEST_NULL;
#if defined(MPICH_NUMVERSION)
    MPI_Request strange = 0x2c000077;
    note(MPI_Wait(&strange, MPI_STATUS_IGNORE), MPI_ERR_REQUEST, "strange request in Wait");
    note(MPI_Waitall(1, &strange, MPI_STATUSES_IGNORE), MPI_ERR_REQUEST,
         "strange request in Waitall");
    note(MPI_Request_free(&strange), MPI_ERR_REQUEST, "strange request in Request_free");
#endif
    note(MPI_Request_free(&none), MPI_ERR_REQUEST, "null request in Request_free");
    note(MPI_Cancel(&none), MPI_ERR_REQUEST, "null request in Cancel");
    note(MPI_Start(&none), MPI_ERR_REQUEST, "null request in Start");
    note(MPI_Wait(nullptr, MPI_STATUS_IGNORE), MPI_ERR_ARG, "null pointer in Wait");
    note(MPI_Waitall(-1, &none, MPI_STATUSES_IGNORE), MPI_ERR_COUNT, "count of Waitall");
}

// A request handle that was completed is stale: using it again is an error, not somebody else's
// request.
void stale_request() {
    MPI_Request request;
    MPI_Request more;
    int in = 0;
    MPI_Irecv(&in, 1, MPI_INT, world.rank, 3, comm, &request);
    check_class(MPI_Start(&request), MPI_ERR_REQUEST, "Start of a receive");
    MPI_Isend(&world.rank, 1, MPI_INT, world.rank, 3, comm, &more);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Wait(&more, MPI_STATUS_IGNORE);
    check_equal(in, world.rank, "element after an error");
}

// The library works on as before.
void still_works() {
    int sum = 0;
    const int one = 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    check_equal(sum, world.size, "sum after all errors");
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // for what has no communicator
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    bad_sends();
    bad_nonblocking_sends();
    uncommitted_type();
    bad_receives();
    bad_matched_receives();
    refused_exchanges();
    freed_communicator();
    bad_collectives();
    null_buffers();
    refused_nonblocking();
    outputs_in_place();
    types_not_committed();
    types_not_committed_of_transfers();
    bad_local_reductions();
    bad_requests();
    stale_request();
    still_works();
    MPI_Comm_free(&comm);
    return end();
}
