// SPDX-License-Identifier: BSD-3-Clause
// MPI_THREAD_MULTIPLE: messages of several threads at once, requests handed from one thread to
// another.
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "completion.hpp"

using namespace battery;

namespace {

int right() { return (world.rank + 1) % world.size; }
int left() { return (world.rank + world.size - 1) % world.size; }

void run_threads(int count, const std::function<void(int)>& body) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
    for (std::thread& thread : threads) thread.join();
}

// Each thread has a tag of its own on one communicator.
void own_tag(MPI_Comm comm, int thread, Digest* digest) {
    Random random = own_random(100 + static_cast<uint64_t>(thread));
    for (int round = 0; round < 25; ++round) {
        const size_t length = round % 12 == 5 ? 30000 : static_cast<size_t>(round * 3);
        std::vector<int> in(length, -1);
        const std::vector<int> out(length, world.rank * 1000 + thread * 100 + round);
        std::vector<MPI_Request> requests(2);
        const auto count = static_cast<int>(length);
        MPI_Irecv(in.data(), count, MPI_INT, left(), thread, comm, &requests[0]);
        const auto send = random.chance(50) ? MPI_Isend : MPI_Issend;
        send(out.data(), count, MPI_INT, right(), thread, comm, &requests[1]);
        const std::vector<MPI_Status> statuses = complete(random, requests);
        for (const int value : in)
            check_equal(value, left() * 1000 + thread * 100 + round, "element of a thread");
        digest->add_status(statuses[0], MPI_INT);
    }
}

// Blocking ping-pong of every thread with its partner thread.
void blocking(MPI_Comm comm, int thread, Digest* digest) {
    for (int round = 0; round < 25; ++round) {
        int in = -1;
        const int out = world.rank * 100 + round;
        MPI_Status status;
        MPI_Sendrecv(&out, 1, MPI_INT, right(), 50 + thread, &in, 1, MPI_INT, left(), 50 + thread,
                     comm, &status);
        check_equal(in, left() * 100 + round, "element of Sendrecv");
        digest->add_status(status, MPI_INT);
    }
}

// Requests of one thread, completed by another.
class Handover {
  public:
    void put(MPI_Request request) {
        const std::lock_guard<std::mutex> lock(mutex_);
        waiting_.push_back(request);
        changed_.notify_one();
    }
    MPI_Request take() {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return !waiting_.empty(); });
        const MPI_Request request = waiting_.front();
        waiting_.pop_front();
        return request;
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<MPI_Request> waiting_;
};

void hand_over(MPI_Comm comm) {
    constexpr int messages = 200;
    Handover handover;
    std::vector<int> in(messages, -1);
    std::vector<int> out(messages);
    std::thread waiter([&handover] {
        for (int i = 0; i < 2 * messages; ++i) {
            MPI_Request request = handover.take();
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    });
    for (int i = 0; i < messages; ++i) {
        const auto at = static_cast<size_t>(i);
        out[at] = world.rank * 1000 + i;
        MPI_Request request;
        MPI_Irecv(&in[at], 1, MPI_INT, left(), 90, comm, &request);
        handover.put(request);
        MPI_Isend(&out[at], 1, MPI_INT, right(), 90, comm, &request);
        handover.put(request);
    }
    waiter.join();
    for (int i = 0; i < messages; ++i)
        check_equal(in[static_cast<size_t>(i)], left() * 1000 + i, "handed-over element");
    topic("handover").add_bytes(in.data(), in.size() * sizeof(int));
}

// One thread waits in a receive while another sends what the neighbour waits for. Not to the rank
// itself: plain MPICH 4.0.2 hung there once in some thousand runs.
void receive_while_sending(MPI_Comm comm) {
    for (int round = 0; round < 20; ++round) {
        int in = -1;
        std::thread receiver(
            [&] { MPI_Recv(&in, 1, MPI_INT, left(), 91, comm, MPI_STATUS_IGNORE); });
        MPI_Send(&round, 1, MPI_INT, right(), 91, comm);
        receiver.join();
        check_equal(in, round, "message received by one thread while another sends");
    }
}

void run_all(MPI_Comm comm, int threads) {
    std::vector<Digest> digests(static_cast<size_t>(threads));
    run_threads(threads, [&](int i) { own_tag(comm, i, &digests[static_cast<size_t>(i)]); });
    run_threads(threads, [&](int i) { blocking(comm, i, &digests[static_cast<size_t>(i)]); });
    for (const Digest& digest : digests) topic("threads").add(digest.value());
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv, MPI_THREAD_MULTIPLE);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (const int threads : {2, 3, 6}) run_all(comm, threads);
    hand_over(comm);
    receive_while_sending(comm);
    MPI_Comm_free(&comm);
    return end();
}
