// SPDX-License-Identifier: BSD-3-Clause
// Open_port, Comm_accept and Comm_connect between two halves of the job, with receives outstanding. Needs two ranks.
#include <cstring>

#include "battery.hpp"

using namespace battery;

int main(int argc, char** argv) {
    begin(argc, argv);
    const bool server = world.rank % 2 == 0;
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, world.rank % 2, world.rank, &half);
    char port[MPI_MAX_PORT_NAME] = "";
    if (world.rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    }
    if (world.rank == 1)
        MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int in = -1;
    MPI_Request pending;
    MPI_Irecv(&in, 1, MPI_INT, world.rank, 9, MPI_COMM_WORLD, &pending);
    MPI_Comm inter;
    if (server) MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter);
    else MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter);
    int sum = -1;
    const int one = server ? 1 : 100;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
    const int evens = (world.size + 1) / 2;
    check_equal(sum, server ? (world.size - evens) * 100 : evens, "sum of the other half");
    topic("connected").add(static_cast<uint64_t>(sum));
    MPI_Send(&one, 1, MPI_INT, world.rank, 9, MPI_COMM_WORLD);
    MPI_Wait(&pending, MPI_STATUS_IGNORE);
    check_equal(in, one, "receive outstanding across accept and connect");
    MPI_Comm_disconnect(&inter);
    if (world.rank == 0) MPI_Close_port(port);
    MPI_Comm_free(&half);
    return end();
}
