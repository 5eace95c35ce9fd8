// SPDX-License-Identifier: BSD-3-Clause
// The _c forms with MPI_Count arguments: blocking, nonblocking, persistent, status queries. Counts
// stay small.
#include <vector>

#include "completion.hpp"

using namespace battery;

namespace {

constexpr MPI_Count elements = 3000;
MPI_Comm comm;

std::vector<int> content(int rank, int salt) {
    std::vector<int> data(elements);
    for (size_t i = 0; i < data.size(); ++i)
        data[i] = static_cast<int>(mix(static_cast<uint64_t>(rank * 1000 + salt) + i) & 0xffff);
    return data;
}

int right() { return (world.rank + 1) % world.size; }
int left() { return (world.rank + world.size - 1) % world.size; }

void judge(const std::vector<int>& in, int from, int salt, const MPI_Status& status) {
    MPI_Count count = -1;
    MPI_Count parts = -1;
    MPI_Get_count_c(&status, MPI_INT, &count);
    MPI_Get_elements_c(&status, MPI_INT, &parts);
    check_equal(count, elements, "count");
    check_equal(parts, elements, "elements");
    check(in == content(from, salt), "content");
    topic("messages").add_status(status, MPI_INT);
}

void send_all_modes() {
    constexpr decltype(&MPI_Isend_c) calls[] = {MPI_Isend_c, MPI_Issend_c, MPI_Ibsend_c};
    std::vector<char> buffer(1 << 20);
    MPI_Buffer_attach(buffer.data(), static_cast<int>(buffer.size()));
    for (int i = 0; i < 3; ++i) {
        std::vector<int> in(elements, -1);
        const std::vector<int> out = content(world.rank, i);
        MPI_Request requests[2];
        MPI_Status statuses[2];
        MPI_Irecv_c(in.data(), elements, MPI_INT, left(), i, comm, &requests[0]);
        calls[i](out.data(), elements, MPI_INT, right(), i, comm, &requests[1]);
        MPI_Waitall(2, requests, statuses);
        judge(in, left(), i, statuses[0]);
    }
    void* address;
    int bytes;
    MPI_Buffer_detach(&address, &bytes);
}

void blocking_messages() {
    constexpr decltype(&MPI_Send_c) calls[] = {MPI_Send_c, MPI_Ssend_c};
    for (int i = 0; i < 2; ++i) {
        std::vector<int> in(elements, -1);
        const std::vector<int> out = content(world.rank, 10 + i);
        MPI_Request request;
        MPI_Status status;
        MPI_Irecv_c(in.data(), elements, MPI_INT, left(), i, comm, &request);
        calls[i](out.data(), elements, MPI_INT, right(), i, comm);
        MPI_Wait(&request, &status);
        judge(in, left(), 10 + i, status);
    }
    std::vector<int> in(elements, -1);
    const std::vector<int> out = content(world.rank, 20);
    MPI_Request request;
    MPI_Status status;
    MPI_Isend_c(out.data(), elements, MPI_INT, right(), 9, comm, &request);
    MPI_Recv_c(in.data(), elements, MPI_INT, left(), 9, comm, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    judge(in, left(), 20, status);
    MPI_Sendrecv_c(out.data(), elements, MPI_INT, right(), 8, in.data(), elements, MPI_INT, left(),
                   8, comm, &status);
    judge(in, left(), 20, status);
    in = out;
    MPI_Sendrecv_replace_c(in.data(), elements, MPI_INT, right(), 7, left(), 7, comm, &status);
    judge(in, left(), 20, status);
}

void matched_probe() {
    std::vector<int> in(elements, -1);
    const std::vector<int> out = content(world.rank, 30);
    MPI_Request request;
    MPI_Message message;
    MPI_Status status;
    MPI_Isend_c(out.data(), elements, MPI_INT, right(), 6, comm, &request);
    MPI_Mprobe(left(), 6, comm, &message, &status);
    MPI_Mrecv_c(in.data(), elements, MPI_INT, &message, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    judge(in, left(), 30, status);
}

void persistent() {
    std::vector<int> in(elements, -1);
    const std::vector<int> out = content(world.rank, 40);
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Recv_init_c(in.data(), elements, MPI_INT, left(), 5, comm, &requests[0]);
    MPI_Send_init_c(out.data(), elements, MPI_INT, right(), 5, comm, &requests[1]);
    for (int i = 0; i < 3; ++i) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, statuses);
        judge(in, left(), 40, statuses[0]);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

std::vector<int> sum_of_all(int salt) {
    std::vector<int> sum(elements, 0);
    for (int rank = 0; rank < world.size; ++rank) {
        const std::vector<int> part = content(rank, salt);
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    }
    return sum;
}

void collectives() {
    const std::vector<int> in = content(world.rank, 50);
    std::vector<int> out(elements, -1);
    std::vector<int> all(elements * static_cast<size_t>(world.size), -1);
    MPI_Request request;
    MPI_Allreduce_c(in.data(), out.data(), elements, MPI_INT, MPI_SUM, comm);
    check(out == sum_of_all(50), "Allreduce_c");
    MPI_Iallreduce_c(in.data(), all.data(), elements, MPI_INT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(std::equal(out.begin(), out.end(), all.begin()), "Iallreduce_c");
    MPI_Reduce_c(in.data(), all.data(), elements, MPI_INT, MPI_SUM, 0, comm);
    check(world.rank > 0 || std::equal(out.begin(), out.end(), all.begin()), "Reduce_c");
    topic("sums").add_bytes(out.data(), out.size() * sizeof(int));

    out = content(world.rank, 60);
    MPI_Bcast_c(out.data(), elements, MPI_INT, world.size - 1, comm);
    check(out == content(world.size - 1, 60), "Bcast_c");
    out = content(world.rank, 61);
    MPI_Ibcast_c(out.data(), elements, MPI_INT, 0, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(out == content(0, 61), "Ibcast_c");
    MPI_Allgather_c(in.data(), elements, MPI_INT, all.data(), elements, MPI_INT, comm);
    for (int rank = 0; rank < world.size; ++rank)
        check(std::vector<int>(all.begin() + rank * elements,
                               all.begin() + (rank + 1) * elements) == content(rank, 50),
              "Allgather_c");
    topic("gathered").add_bytes(all.data(), all.size() * sizeof(int));
}

void vector_collectives() {
    const auto ranks = static_cast<size_t>(world.size);
    std::vector<MPI_Count> counts(ranks, elements / world.size);
    std::vector<MPI_Aint> places(ranks);
    for (size_t i = 0; i < ranks; ++i) places[i] = static_cast<MPI_Aint>(i) * counts[0];
    const std::vector<int> in = content(world.rank, 70);
    std::vector<int> out(elements, -1);
    MPI_Allgatherv_c(in.data(), counts[0], MPI_INT, out.data(), counts.data(), places.data(),
                     MPI_INT, comm);
    topic("vector").add_bytes(out.data(), out.size() * sizeof(int));
    MPI_Alltoallv_c(in.data(), counts.data(), places.data(), MPI_INT, out.data(), counts.data(),
                    places.data(), MPI_INT, comm);
    topic("vector").add_bytes(out.data(), out.size() * sizeof(int));
    MPI_Reduce_scatter_c(in.data(), out.data(), counts.data(), MPI_INT, MPI_SUM, comm);
    topic("vector").add_bytes(out.data(), static_cast<size_t>(counts[0]) * sizeof(int));
    MPI_Request request;
    MPI_Ialltoallv_c(in.data(), counts.data(), places.data(), MPI_INT, out.data(), counts.data(),
                     places.data(), MPI_INT, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    topic("vector").add_bytes(out.data(), out.size() * sizeof(int));
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    send_all_modes();
    blocking_messages();
    matched_probe();
    persistent();
    collectives();
    vector_collectives();
    MPI_Comm_free(&comm);
    return end();
}
