// SPDX-License-Identifier: BSD-3-Clause
// MPI_Finalize with freed requests that may still be active, buffered sends undelivered, attributes
// to delete on self.
#include <vector>

#include "battery.hpp"

using namespace battery;

namespace {

int deleted = 0;
int at_finalize(MPI_Comm, int, void*, void*) {
    ++deleted;
    int flag = -1;
    MPI_Finalized(&flag);  // not yet (MPI 4.0, 11.2.4)
    check_equal(flag, 0, "Finalized in a delete function of MPI_COMM_SELF");
    int in = -1;
    MPI_Sendrecv(&deleted, 1, MPI_INT, 0, 2, &in, 1, MPI_INT, 0, 2, MPI_COMM_SELF,
                 MPI_STATUS_IGNORE);
    check_equal(in, deleted, "message in a delete function at MPI_Finalize");
    return MPI_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    const int right = (world.rank + 1) % world.size;
    const int left = (world.rank + world.size - 1) % world.size;
    static std::vector<int> out(50, world.rank);
    static std::vector<int> in(50, -1);
    static char buffer[100000];
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &key, nullptr);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
    MPI_Buffer_attach(buffer, sizeof buffer);

    MPI_Request request;
    MPI_Bsend(out.data(), 50, MPI_INT, right, 1, MPI_COMM_WORLD);
    MPI_Irecv(in.data(), 50, MPI_INT, left, 1, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_equal(in[49], left, "buffered message");
    topic("buffered").add_bytes(in.data(), in.size() * sizeof(int));

    // Received by the right; freed here, so that only the right knows when.
    MPI_Isend(out.data(), 50, MPI_INT, right, 2, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    MPI_Recv(in.data(), 50, MPI_INT, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);

    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_disconnect(&copy);
    check(copy == MPI_COMM_NULL, "null after Comm_disconnect");
    void* address;
    int bytes;
    MPI_Buffer_detach(&address, &bytes);
    end();
    check_equal(deleted, 1, "calls of the delete function at MPI_Finalize");
    return 0;
}
