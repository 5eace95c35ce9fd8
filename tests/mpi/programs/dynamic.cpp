// SPDX-License-Identifier: BSD-3-Clause
// MPI_Comm_spawn and MPI_Open_port amid outstanding operations: MPICH 4.0.2 refuses both on UCX;
// the same error must come back and everything must work on. Needs no port and no second program.
#include <string>

#include "battery.hpp"

using namespace battery;

namespace {

void note(const char* call, int code) { topic(call).add(static_cast<uint64_t>(error_class(code))); }

void refused_calls(const char* program) {
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter = MPI_COMM_NULL;
    const int opened = MPI_Open_port(MPI_INFO_NULL, port);
    note("Open_port", opened);
    if (opened == MPI_SUCCESS) MPI_Close_port(port);
    const int spawned = MPI_Comm_spawn(program, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                                       &inter, MPI_ERRCODES_IGNORE);
    note("Comm_spawn", spawned);
    if (spawned == MPI_SUCCESS) MPI_Comm_disconnect(&inter);
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {  // where spawning works
        MPI_Comm_disconnect(&parent);
        return MPI_Finalize();
    }
    const int right = (world.rank + 1) % world.size;
    const int left = (world.rank + world.size - 1) % world.size;
    int in = -1;
    int sum = -1;
    MPI_Request requests[2];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Irecv(&in, 1, MPI_INT, left, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Iallreduce(&world.rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
    refused_calls(argv[0]);
    MPI_Send(&world.rank, 1, MPI_INT, right, 1, MPI_COMM_WORLD);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    check_equal(in, left, "receive outstanding across dynamic processes");
    check_equal(sum, world.size * (world.size - 1) / 2, "sum outstanding across dynamic processes");
    return end();
}
