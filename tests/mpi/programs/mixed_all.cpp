// SPDX-License-Identifier: BSD-3-Clause
// Waitall and Testall over requests of unlike kinds: persistent ones beside generalized ones, files
// beside messages, failed ones beside pending ones.
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "battery.hpp"

using namespace battery;

namespace {

constexpr int large = 5000;

int right() { return (world.rank + 1) % world.size; }
int left() { return (world.rank + world.size - 1) % world.size; }

int query(void*, MPI_Status* status) {
    MPI_Status_set_elements(status, MPI_INT, 0);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}
int release(void*) { return MPI_SUCCESS; }
int cancel(void*, int) { return MPI_SUCCESS; }

// A generalized request was made once: persistent requests go on as before.
void persistent_after_generalized() {
    MPI_Request generalized;
    MPI_Request requests[2];
    std::vector<int> in(large, -1);
    std::vector<int> out(large);
    MPI_Grequest_start(query, release, cancel, nullptr, &generalized);
    MPI_Grequest_complete(generalized);
    MPI_Wait(&generalized, MPI_STATUS_IGNORE);
    MPI_Recv_init(in.data(), large, MPI_INT, left(), 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(out.data(), large, MPI_INT, right(), 1, MPI_COMM_WORLD, &requests[1]);
    for (int round = 0; round < 3; ++round) {
        out[large - 1] = world.rank * 10 + round;
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check(requests[0] != MPI_REQUEST_NULL, "a persistent request stays");
        check_equal(in[large - 1], left() * 10 + round, "element by a persistent receive");
        topic("persistent").add(static_cast<uint64_t>(in[large - 1]));
    }
    for (MPI_Request& request : requests) MPI_Request_free(&request);
}

std::string file_name() {
    const char* folder = std::getenv("TMPDIR");
    int id = static_cast<int>(getpid());
    MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return std::string(folder ? folder : "/tmp") + "/mpi-battery-all-" + std::to_string(id);
}

void complete_both(bool blocking, MPI_Request requests[]) {
    int flag = 0;
    if (blocking) MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    while (!blocking && !flag) MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
}

// The message to rank 0 is sent only when the collective write is through, in which rank 0 takes
// part by the call that waits for the message too.
void file_and_message(MPI_File file, bool blocking) {
    std::vector<int> data(1024, world.rank);
    std::vector<int> in(large, -1);
    const std::vector<int> out(large, 77);
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    if (world.rank == 0) MPI_Irecv(in.data(), large, MPI_INT, 1, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_File_iwrite_all(file, data.data(), 1024, MPI_INT, &requests[1]);
    if (world.rank == 0)
        complete_both(blocking, requests);
    else
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    if (world.rank == 1) MPI_Send(out.data(), large, MPI_INT, 0, 2, MPI_COMM_WORLD);
    if (world.rank != 0) return;
    check_equal(in[large - 1], 77, "message beside a file");
    topic(blocking ? "Waitall with a file" : "Testall with a file").add(77);
}

void files_and_messages() {
    MPI_File file;
    MPI_Info info;
    MPI_Datatype rows;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", "enable");
    MPI_File_open(MPI_COMM_WORLD, file_name().c_str(),
                  MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info, &file);
    MPI_Type_vector(64, 16, 16 * world.size, MPI_INT, &rows);
    MPI_Type_commit(&rows);
    MPI_File_set_view(file, world.rank * 64, MPI_INT, rows, "native", info);
    file_and_message(file, true);
    file_and_message(file, false);
    MPI_File_close(&file);
    MPI_Type_free(&rows);
    MPI_Info_free(&info);
}

// Until the first `count` are complete, with an error or not.
void settle(int count, const MPI_Request requests[]) {
    for (int i = 0; i < count; ++i) {
        int flag = 0;
        while (!flag) MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE);
    }
}

// Three messages around the ring: complete, too long, pending. Testall reports the failure and
// leaves the pending one.
void failed_and_pending(int count_of_failed, int count_of_pending) {
    std::vector<int> in[3];
    std::vector<int> out(large, 9);
    MPI_Request requests[3];
    MPI_Request sends[2];
    MPI_Status statuses[3];
    const int counts[3] = {large, count_of_failed, count_of_pending};
    for (int i = 0; i < 3; ++i) {
        in[i].resize(large);
        MPI_Irecv(in[i].data(), counts[i], MPI_INT, left(), i, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Isend(out.data(), large, MPI_INT, right(), 0, MPI_COMM_WORLD, &sends[0]);
    MPI_Isend(out.data(), count_of_failed + 1, MPI_INT, right(), 1, MPI_COMM_WORLD, &sends[1]);
    settle(2, requests);
    int flag = 0;
    int code = MPI_SUCCESS;
    while (!flag && code == MPI_SUCCESS) code = MPI_Testall(3, requests, &flag, statuses);
    check_class(code, MPI_ERR_IN_STATUS, "Testall");
    check_equal(flag, 0, "flag of Testall beside a pending request");
    check_class(statuses[0].MPI_ERROR, MPI_SUCCESS, "status of the complete one");
    check_class(statuses[1].MPI_ERROR, MPI_ERR_TRUNCATE, "status of the failed one");
    check_class(statuses[2].MPI_ERROR, MPI_ERR_PENDING, "status of the pending one");
    check(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL, "null after Testall");
    check(requests[2] != MPI_REQUEST_NULL, "the pending request stays");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(out.data(), count_of_pending, MPI_INT, right(), 2, MPI_COMM_WORLD);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
    check_equal(in[2][0], 9, "element of the pending one");
    topic("Testall with a failure").add(static_cast<uint64_t>(error_class(code)));
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    persistent_after_generalized();
    if (world.size > 1) files_and_messages();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    failed_and_pending(1, 1);
    failed_and_pending(1, 2000);
    failed_and_pending(2000, 1);
    failed_and_pending(2000, 2000);
    return end();
}
