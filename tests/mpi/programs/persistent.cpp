// SPDX-License-Identifier: BSD-3-Clause
// Persistent point-to-point requests of all modes, started and completed in random ways. Reuses
// each many times.
#include <vector>

#include "completion.hpp"
#include "layout.hpp"

using namespace battery;

namespace {

constexpr int modes = 4;
constexpr int repetitions = 12;
constexpr int sizes[] = {0, 3, 1000, 70000};

// One message in each mode to the right, as many from the left.
class Ring {
  public:
    Ring(Random& random, MPI_Comm comm)
        : random_(random),
          comm_(comm),
          right_((world.rank + 1) % world.size),
          left_((world.rank + world.size - 1) % world.size) {
        for (int i = 0; i < pairs; ++i) {
            out_.emplace_back(random_, element_of(i), size(i));
            in_.emplace_back(random_, element_of(i), size(i) + 5);
        }
        for (int i = 0; i < pairs; ++i) make_receive(i);
        for (int i = 0; i < pairs; ++i) make_send(i);
    }

    ~Ring() {
        for (MPI_Request& request : requests_) MPI_Request_free(&request);
    }

    void run(int repetition) {
        for (int i = 0; i < pairs; ++i) out_[index(i)].fill(id(world.rank, i, repetition), size(i));
        start_receives();
        MPI_Barrier(comm_);  // ready sends need posted receives
        start_sends();
        Completion completion(requests_);
        completion.finish(random_);
        for (int i = 0; i < pairs; ++i) judge(completion.status(index(i)), i, repetition);
        check_inactive();
    }

  private:
    static constexpr int pairs = modes * 4;
    static size_t index(int i) { return static_cast<size_t>(i); }
    static int size(int i) { return sizes[i / modes]; }
    static uint64_t id(int rank, int i, int repetition) {
        return mix(world.seed + static_cast<uint64_t>(rank * 100000 + i * 100 + repetition));
    }

    void make_receive(int i) {
        Layout& layout = in_[index(i)];
        const bool any = i % 5 == 0;
        MPI_Recv_init(layout.address(), layout.count(), layout.type(), any ? MPI_ANY_SOURCE : left_,
                      i, comm_, &requests_.emplace_back());
        layout.free_type();
    }

    void make_send(int i) {
        constexpr decltype(&MPI_Send_init) calls[modes] = {MPI_Send_init, MPI_Ssend_init,
                                                           MPI_Bsend_init, MPI_Rsend_init};
        Layout& layout = out_[index(i)];
        calls[i % modes](layout.address(), layout.count(), layout.type(), right_, i, comm_,
                         &requests_.emplace_back());
        layout.free_type();
    }

    void start(size_t first, size_t count) {
        if (random_.chance(50)) {
            MPI_Startall(static_cast<int>(count), requests_.data() + first);
            return;
        }
        for (size_t i = 0; i < count; ++i) MPI_Start(&requests_[first + i]);
    }
    void start_receives() { start(0, pairs); }
    void start_sends() { start(pairs, pairs); }

    void judge(const MPI_Status& status, int i, int repetition) {
        int count = -1;
        MPI_Get_count(&status, element_of(i).type, &count);
        check_equal(status.MPI_SOURCE, left_, "source");
        check_equal(status.MPI_TAG, i, "tag");
        check_equal(count, size(i), "count");
        in_[index(i)].check_content(id(left_, i, repetition), count, "element (index)");
        topic("persistent").add(hash_of(status, element_of(i).type) ^ in_[index(i)].hash(count));
    }

    // Inactive requests stay, and complete at once with the empty status (MPI 4.0, 3.9).
    void check_inactive() {
        const auto count = static_cast<int>(requests_.size());
        for (const MPI_Request request : requests_)
            check(request != MPI_REQUEST_NULL, "a persistent request survives its completion");
        MPI_Status status;
        int flag = 0;
        int index = 0;
        MPI_Wait(&requests_[0], &status);
        check_empty(status);
        MPI_Test(&requests_[pairs], &flag, &status);
        check_equal(flag, 1, "flag of an inactive request");
        check_empty(status);
        MPI_Waitany(count, requests_.data(), &index, &status);
        check_equal(index, MPI_UNDEFINED, "index of Waitany over inactive requests");
        check_empty(status);
        std::vector<int> indices(requests_.size());
        MPI_Testsome(count, requests_.data(), &index, indices.data(), MPI_STATUSES_IGNORE);
        check_equal(index, MPI_UNDEFINED, "outcount of Testsome over inactive requests");
    }

    Random& random_;
    MPI_Comm comm_;
    int right_;
    int left_;
    std::vector<Layout> out_;
    std::vector<Layout> in_;
    std::vector<MPI_Request> requests_;  // receives, then sends
};

// Request_free of an active persistent request: the operation goes on (MPI 4.0, 3.9).
void free_active(MPI_Comm comm) {
    const int right = (world.rank + 1) % world.size;
    const int left = (world.rank + world.size - 1) % world.size;
    int out[2] = {world.rank, 4711};
    int in[2] = {-1, -1};
    MPI_Request receive;
    MPI_Request send;
    MPI_Recv_init(in, 2, MPI_INT, left, 90, comm, &receive);
    MPI_Send_init(out, 2, MPI_INT, right, 90, comm, &send);
    MPI_Start(&receive);
    MPI_Start(&send);
    MPI_Request_free(&send);
    check(send == MPI_REQUEST_NULL, "a freed request is null");
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    check_equal(in[0], left, "element from the left");
    check_equal(in[1], 4711, "second element");
    MPI_Request_free(&receive);
    MPI_Barrier(comm);  // the send buffer lives until it is received
    topic("freed").add_bytes(in, sizeof in);
}

// Persistent requests to MPI_PROC_NULL.
void null_process(MPI_Comm comm) {
    int value = 5;
    MPI_Request requests[2];
    MPI_Recv_init(&value, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &requests[0]);
    MPI_Send_init(&value, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &requests[1]);
    for (int i = 0; i < 3; ++i) {
        MPI_Startall(2, requests);
        MPI_Status statuses[2];
        MPI_Waitall(2, requests, statuses);
        int count = -1;
        MPI_Get_count(&statuses[0], MPI_INT, &count);
        check_equal(count, 0, "count from MPI_PROC_NULL");
    }
    check_equal(value, 5, "buffer of a receive from MPI_PROC_NULL");
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    std::vector<char> buffer(4 << 20);
    MPI_Buffer_attach(buffer.data(), static_cast<int>(buffer.size()));
    Random random = own_random(2);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    {
        Ring ring(random, comm);
        for (int i = 0; i < repetitions; ++i) ring.run(i);
    }
    free_active(comm);
    null_process(comm);
    MPI_Comm_free(&comm);
    void* address;
    int bytes;
    MPI_Buffer_detach(&address, &bytes);
    return end();
}
