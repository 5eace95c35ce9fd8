// SPDX-License-Identifier: BSD-3-Clause
// Generalized requests alone and mixed with messages in every kind of completion. Their callbacks
// are counted.
#include <thread>
#include <vector>

#include "completion.hpp"

using namespace battery;

namespace {

struct State {
    int id;
    int queried = 0;
    int freed = 0;
    int cancelled = 0;
};

int query(void* extra, MPI_Status* status) {
    auto* state = static_cast<State*>(extra);
    ++state->queried;
    MPI_Status_set_elements(status, MPI_INT, state->id);
    MPI_Status_set_cancelled(status, state->cancelled);
    status->MPI_SOURCE = 1000 + state->id;
    status->MPI_TAG = 2000 + state->id;
    return MPI_SUCCESS;
}
int release(void* extra) {
    ++static_cast<State*>(extra)->freed;
    return MPI_SUCCESS;
}
int cancel(void* extra, int complete) {
    static_cast<State*>(extra)->cancelled = !complete;
    return MPI_SUCCESS;
}

void judge(const State& state, const MPI_Status& status) {
    int count = -1;
    MPI_Get_count(&status, MPI_INT, &count);
    check_equal(count, state.id, "count that the query function set");
    check_equal(status.MPI_SOURCE, 1000 + state.id, "source that the query function set");
    check(state.queried >= 1, "the query function was called");
    check_equal(state.freed, 1, "calls of the free function");
    topic("generalized").add_status(status, MPI_INT);
}

// Half of the array are generalized requests, half are messages around the ring.
void run_mixed(Random& random, MPI_Comm comm, int round) {
    constexpr int pairs = 6;
    const int right = (world.rank + 1) % world.size;
    const int left = (world.rank + world.size - 1) % world.size;
    std::vector<State> states;
    std::vector<int> in(pairs, -1);
    std::vector<int> out(pairs);
    std::vector<MPI_Request> requests(2 * pairs);
    std::vector<MPI_Request> sends(pairs);
    for (int i = 0; i < pairs; ++i) states.push_back({round * 10 + i});
    for (int i = 0; i < pairs; ++i) {
        const auto at = static_cast<size_t>(i);
        out[at] = world.rank * 7 + i;
        MPI_Irecv(&in[at], 1, MPI_INT, left, i, comm, &requests[2 * at]);
        MPI_Grequest_start(query, release, cancel, &states[at], &requests[2 * at + 1]);
        MPI_Isend(&out[at], 1, MPI_INT, right, i, comm, &sends[at]);
    }
    const std::vector<MPI_Request> handles = requests;
    const auto finish = [&] {
        for (size_t i = 0; i < pairs; ++i) MPI_Grequest_complete(handles[2 * i + 1]);
    };
    if (random.chance(50))
        finish();
    else {
        int flag = 1;
        MPI_Testall(2 * pairs, requests.data(), &flag, MPI_STATUSES_IGNORE);
        check_equal(flag, 0, "Testall with an incomplete generalized request");
        finish();
    }
    const std::vector<MPI_Status> statuses = complete(random, requests);
    complete(random, sends);
    for (size_t i = 0; i < pairs; ++i) {
        judge(states[i], statuses[2 * i + 1]);
        check_equal(in[i], left * 7 + static_cast<int>(i), "element");
    }
}

// Another thread completes it while this one waits.
void complete_from_thread() {
    State state{3};
    MPI_Request request;
    MPI_Status status;
    MPI_Grequest_start(query, release, cancel, &state, &request);
    std::thread other([request] { MPI_Grequest_complete(request); });
    MPI_Wait(&request, &status);
    other.join();
    judge(state, status);
}

void cancel_one() {
    State state{4};
    MPI_Request request;
    MPI_Status status;
    int cancelled = -1;
    MPI_Grequest_start(query, release, cancel, &state, &request);
    MPI_Cancel(&request);
    MPI_Grequest_complete(request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    check_equal(cancelled, 1, "cancelled generalized request");
}

// A null request in between. What MPI_ERROR of its status is then, libraries see differently.
void wait_beside_null(MPI_Comm comm) {
    State state{5};
    MPI_Request requests[] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL,
                              MPI_REQUEST_NULL};
    MPI_Status statuses[4] = {};
    for (MPI_Status& status : statuses) status.MPI_ERROR = MPI_ERR_OTHER;
    const std::vector<int> out(1 << 16, world.rank);
    std::vector<int> in(out.size());
    const int number = static_cast<int>(out.size());
    MPI_Irecv(in.data(), number, MPI_INT, world.rank, 0, comm, &requests[0]);
    MPI_Grequest_start(query, release, cancel, &state, &requests[2]);
    MPI_Isend(out.data(), number, MPI_INT, world.rank, 0, comm, &requests[3]);
    MPI_Grequest_complete(requests[2]);
    MPI_Waitall(4, requests, statuses);
    judge(state, statuses[2]);
    check_equal(in.back(), world.rank, "element");
    topic("beside null").add_status(statuses[1], MPI_INT);
    for (const MPI_Status& status : statuses)
        topic("beside null").add(static_cast<uint64_t>(status.MPI_ERROR));
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv, MPI_THREAD_MULTIPLE);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    Random random = own_random(6);
    for (int round = 0; round < 6; ++round) run_mixed(random, comm, round);
    complete_from_thread();
    cancel_one();
    wait_beside_null(comm);
    MPI_Comm_free(&comm);
    return end();
}
