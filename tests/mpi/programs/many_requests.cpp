// SPDX-License-Identifier: BSD-3-Clause
// More requests outstanding than any pool of slots holds, and completion calls over nothing active.
#include <vector>

#include "completion.hpp"

using namespace battery;

namespace {

constexpr int requests_a_side = 11000;  // receives, and as many sends

void post_many(MPI_Comm comm, int first_tag) {
    const int right = (world.rank + 1) % world.size;
    const int left = (world.rank + world.size - 1) % world.size;
    std::vector<int> in(requests_a_side, -1);
    std::vector<int> out(requests_a_side);
    std::vector<MPI_Request> requests(2 * requests_a_side);
    for (int i = 0; i < requests_a_side; ++i) {
        const auto at = static_cast<size_t>(i);
        MPI_Irecv(&in[at], 1, MPI_INT, left, first_tag + i % 7, comm, &requests[at]);
    }
    for (int i = 0; i < requests_a_side; ++i) {
        const auto at = static_cast<size_t>(i);
        out[at] = world.rank * 100000 + i;
        MPI_Isend(&out[at], 1, MPI_INT, right, first_tag + i % 7, comm,
                  &requests[requests_a_side + at]);
    }
    MPI_Waitall(2 * requests_a_side, requests.data(), MPI_STATUSES_IGNORE);
    for (int i = 0; i < requests_a_side; ++i)
        check_equal(in[static_cast<size_t>(i)], left * 100000 + i, "element");
    topic("many").add_bytes(in.data(), in.size() * sizeof(int));
}

void wait_for_nothing() {
    std::vector<MPI_Request> none(5, MPI_REQUEST_NULL);
    std::vector<MPI_Status> statuses(5);
    std::vector<int> indices(5);
    int index = 0;
    int flag = 0;
    MPI_Waitany(5, none.data(), &index, &statuses[0]);
    check_equal(index, MPI_UNDEFINED, "index of Waitany over null requests");
    check_empty(statuses[0]);
    MPI_Testany(5, none.data(), &index, &flag, &statuses[0]);
    check_equal(index, MPI_UNDEFINED, "index of Testany over null requests");
    check_equal(flag, 1, "flag of Testany over null requests");
    MPI_Waitsome(5, none.data(), &index, indices.data(), statuses.data());
    check_equal(index, MPI_UNDEFINED, "outcount of Waitsome over null requests");
    MPI_Waitall(5, none.data(), statuses.data());
    for (const MPI_Status& status : statuses) check_empty(status);
    MPI_Testall(5, none.data(), &flag, MPI_STATUSES_IGNORE);
    check_equal(flag, 1, "flag of Testall over null requests");
    MPI_Wait(&none[0], &statuses[0]);
    check_empty(statuses[0]);
    MPI_Request_get_status(none[0], &flag, &statuses[0]);
    check_equal(flag, 1, "flag of Request_get_status of the null request");
    check_empty(statuses[0]);
    MPI_Waitall(0, nullptr, MPI_STATUSES_IGNORE);
    MPI_Waitany(0, nullptr, &index, MPI_STATUS_IGNORE);
    check_equal(index, MPI_UNDEFINED, "index of Waitany over no requests");
}

// Complete before MPI_Waitall looks at them, and so many that the library takes them in parts: a
// collective in the first, messages alone in the last.
void kinds_apart() {
    constexpr int messages = 100;
    const int one = 1;
    int sum = 0;
    std::vector<int> in(messages, -1), out(messages);
    std::vector<MPI_Request> requests(2 * messages + 1);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF, &requests[0]);
    for (int i = 0; i < messages; ++i) {
        const auto at = static_cast<size_t>(i);
        out[at] = 1000 * world.rank + i;
        MPI_Irecv(&in[at], 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[1 + at]);
        MPI_Isend(&out[at], 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[1 + messages + at]);
    }
    for (const MPI_Request request : requests)
        for (int flag = 0; flag == 0;) MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    MPI_Waitall(2 * messages + 1, requests.data(), MPI_STATUSES_IGNORE);
    check_equal(sum, 1, "sum beside messages");
    check(in == out, "messages beside a collective");
    for (const MPI_Request request : requests)
        check(request == MPI_REQUEST_NULL, "null after Waitall");
}

// Slots are used again and again.
void reuse(MPI_Comm comm) {
    const int right = (world.rank + 1) % world.size;
    const int left = (world.rank + world.size - 1) % world.size;
    for (int i = 0; i < 5000; ++i) {
        int in = -1;
        MPI_Request requests[2];
        MPI_Irecv(&in, 1, MPI_INT, left, 5, comm, &requests[0]);
        MPI_Isend(&i, 1, MPI_INT, right, 5, comm, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check_equal(in, i, "element of a short round");
    }
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    wait_for_nothing();
    post_many(comm, 10);
    post_many(comm, 20);
    reuse(comm);
    kinds_apart();
    wait_for_nothing();
    MPI_Comm_free(&comm);
    return end();
}
