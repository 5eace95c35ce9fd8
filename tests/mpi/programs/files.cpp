// SPDX-License-Identifier: BSD-3-Clause
// MPI-IO with receives outstanding: ROMIO calls MPI from inside the library. Writes one file under
// the temporary folder.
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "completion.hpp"

using namespace battery;

namespace {

constexpr int width = 1000;

int right() { return (world.rank + 1) % world.size; }
int left() { return (world.rank + world.size - 1) % world.size; }

// One name for all ranks of this job, no other job's.
std::string file_name() {
    const char* folder = std::getenv("TMPDIR");
    int id = static_cast<int>(getpid());
    MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return std::string(folder ? folder : "/tmp") + "/mpi-battery-" + std::to_string(id);
}

std::vector<int> content(int rank, int salt) {
    std::vector<int> data(width);
    for (int i = 0; i < width; ++i) data[static_cast<size_t>(i)] = rank * 10000 + salt * 2000 + i;
    return data;
}

MPI_Offset place(int rank, int round) {
    return static_cast<MPI_Offset>(sizeof(int)) * width * (round * world.size + rank);
}

void judge(const std::vector<int>& in, int rank, int salt, const MPI_Status& status) {
    int count = -1;
    MPI_Get_count(&status, MPI_INT, &count);
    check_equal(count, width, "count of a read");
    check(in == content(rank, salt), "what was read is what was written");
    topic("read").add_bytes(in.data(), in.size() * sizeof(int));
}

void write_and_read(MPI_File file, int round) {
    const std::vector<int> out = content(world.rank, round);
    std::vector<int> in(width, -1);
    MPI_Status status;
    MPI_File_write_at_all(file, place(world.rank, round), out.data(), width, MPI_INT, &status);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at(file, place(left(), round), in.data(), width, MPI_INT, &status);
    judge(in, left(), round, status);
    MPI_File_read_at_all(file, place(right(), round), in.data(), width, MPI_INT, &status);
    judge(in, right(), round, status);
}

// The requests of nonblocking file calls beside messages.
void nonblocking(MPI_File file, MPI_Comm comm, Random& own) {
    const std::vector<int> out = content(world.rank, 3);
    std::vector<int> in(width, -1);
    int message = -1;
    std::vector<MPI_Request> requests(3);
    MPI_Irecv(&message, 1, MPI_INT, left(), 12, comm, &requests[0]);
    MPI_File_iwrite_at(file, place(world.rank, 3), out.data(), width, MPI_INT, &requests[1]);
    MPI_Isend(&world.rank, 1, MPI_INT, right(), 12, comm, &requests[2]);
    // Testall of MPICH 4.0.2 can free the request of a file twice.
    if (own.chance(50))
        MPI_Waitall(3, requests.data(), MPI_STATUSES_IGNORE);
    else
        for (MPI_Request& each : requests) MPI_Wait(&each, MPI_STATUS_IGNORE);
    check_equal(message, left(), "message beside Iwrite");
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Request request;
    MPI_Status status;
    MPI_File_iread_at(file, place(left(), 3), in.data(), width, MPI_INT, &request);
    MPI_Wait(&request, &status);
    judge(in, left(), 3, status);
}

// Interleaved by a file view, so that the collective write exchanges data between ranks.
void interleaved(const std::string& name) {
    MPI_File file;
    MPI_Datatype view;
    MPI_Status status;
    const std::vector<int> out = content(world.rank, 4);
    std::vector<int> in(width, -1);
    MPI_File_open(MPI_COMM_WORLD, name.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                  &file);
    MPI_Type_vector(width / 10, 10, 10 * world.size, MPI_INT, &view);
    MPI_Type_commit(&view);
    MPI_File_set_view(file,
                      static_cast<MPI_Offset>(world.rank * 10 * static_cast<int>(sizeof(int))),
                      MPI_INT, view, "native", MPI_INFO_NULL);
    MPI_File_write_all(file, out.data(), width, MPI_INT, &status);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    MPI_File_read_all(file, in.data(), width, MPI_INT, &status);
    judge(in, world.rank, 4, status);
    MPI_Type_free(&view);
    MPI_File_close(&file);
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    Random own = own_random(11);
    const std::string name = file_name();
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    int in = -1;
    MPI_Request pending;
    MPI_Irecv(&in, 1, MPI_INT, left(), 11, comm, &pending);  // outstanding all the time
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, name.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                  &file);
    for (int round = 0; round < 3; ++round) write_and_read(file, round);
    nonblocking(file, comm, own);
    MPI_File_close(&file);
    interleaved(name);
    MPI_Send(&world.rank, 1, MPI_INT, right(), 11, comm);
    MPI_Wait(&pending, MPI_STATUS_IGNORE);
    check_equal(in, left(), "receive outstanding across files");
    MPI_Barrier(MPI_COMM_WORLD);
    if (world.rank == 0) MPI_File_delete(name.c_str(), MPI_INFO_NULL);
    MPI_Comm_free(&comm);
    return end();
}
