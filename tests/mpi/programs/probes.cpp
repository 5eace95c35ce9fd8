// SPDX-License-Identifier: BSD-3-Clause
// Probe, Iprobe, Mprobe, Improbe with Mrecv and Imrecv, counts from the probe. Must not know sizes
// beforehand.
#include <deque>
#include <vector>

#include "completion.hpp"

using namespace battery;

namespace {

constexpr int rounds = 4;

struct Arrived {
    MPI_Status probed{};
    MPI_Status received{};
    std::vector<int> data;
    int request = -1;
};

std::vector<int> content(int from, int to, int index) {
    Random random(world.seed + static_cast<uint64_t>(from * 1000 + to * 10 + index));
    const int elements = random.chance(15) ? 0 : random.chance(80) ? random.below(200) : 60000;
    std::vector<int> data(static_cast<size_t>(elements));
    for (int& value : data) value = static_cast<int>(random.next());
    return data;
}

// Receives all messages to this rank in one round without knowing their sizes.
class Receiver {
  public:
    Receiver(Random& random, MPI_Comm comm, int messages)
        : random_(random), comm_(comm), messages_(messages) {}

    void run() {
        for (int i = 0; i < messages_; ++i) receive_one();
        const std::vector<MPI_Status> statuses = complete(random_, requests_);
        for (Arrived& arrived : arrived_) {
            if (arrived.request >= 0)
                arrived.received = statuses[static_cast<size_t>(arrived.request)];
            judge(arrived);
        }
    }

  private:
    void receive_one() {
        Arrived& arrived = arrived_.emplace_back();
        MPI_Message message = MPI_MESSAGE_NULL;
        const int way = random_.below(4);
        if (way == 0) MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &arrived.probed);
        if (way == 1) MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &message, &arrived.probed);
        int flag = way < 2;
        while (!flag && way == 2)
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &flag, &arrived.probed);
        while (!flag && way == 3)
            MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &flag, &message, &arrived.probed);
        int count = -1;
        MPI_Get_count(&arrived.probed, MPI_INT, &count);
        arrived.data.resize(static_cast<size_t>(count));
        if (way % 2 == 0)
            receive(arrived, count);
        else
            receive_matched(arrived, count, message);
    }

    void receive(Arrived& arrived, int count) {
        const int source = arrived.probed.MPI_SOURCE;
        const int tag = arrived.probed.MPI_TAG;
        if (random_.chance(50)) {
            MPI_Recv(arrived.data.data(), count, MPI_INT, source, tag, comm_, &arrived.received);
            return;
        }
        arrived.request = static_cast<int>(requests_.size());
        MPI_Irecv(arrived.data.data(), count, MPI_INT, source, tag, comm_,
                  &requests_.emplace_back());
    }

    void receive_matched(Arrived& arrived, int count, MPI_Message message) {
        if (random_.chance(50)) {
            MPI_Mrecv(arrived.data.data(), count, MPI_INT, &message, &arrived.received);
        } else {
            arrived.request = static_cast<int>(requests_.size());
            MPI_Imrecv(arrived.data.data(), count, MPI_INT, &message, &requests_.emplace_back());
        }
        check(message == MPI_MESSAGE_NULL, "the message handle is null after Mrecv");
    }

    static void judge(const Arrived& arrived) {
        const int from = arrived.probed.MPI_SOURCE;
        const uint64_t probed = hash_of(arrived.probed, MPI_INT);
        check(probed == hash_of(arrived.received, MPI_INT), "received status is the probed one");
        check(arrived.data == content(from, world.rank, arrived.probed.MPI_TAG),
              "content of a probed message");
        topic("probed").add_unordered(
            probed ^ hash_bytes(arrived.data.data(), arrived.data.size() * sizeof(int)));
    }

    Random& random_;
    MPI_Comm comm_;
    int messages_;
    std::vector<MPI_Request> requests_;
    std::deque<Arrived> arrived_;
};

void run_round(Random& random, MPI_Comm comm, int round) {
    std::deque<std::vector<int>> sent;
    std::vector<MPI_Request> requests;
    for (int to = 0; to < world.size; ++to)
        for (int k = 0; k < 4; ++k) {
            const int index = round * 4 + k;
            const std::vector<int>& data = sent.emplace_back(content(world.rank, to, index));
            const auto call = random.chance(50) ? MPI_Isend : MPI_Issend;
            call(data.data(), static_cast<int>(data.size()), MPI_INT, to, index, comm,
                 &requests.emplace_back());
        }
    Receiver(random, comm, 4 * world.size).run();
    complete(random, requests);
    MPI_Barrier(comm);
}

void probe_nothing(MPI_Comm comm) {
    MPI_Status status;
    MPI_Message message = MPI_MESSAGE_NULL;
    int flag = 1;
    MPI_Iprobe(0, 77, comm, &flag, &status);
    check_equal(flag, 0, "Iprobe where nothing was sent");
    MPI_Improbe(0, 77, comm, &flag, &message, &status);
    check_equal(flag, 0, "Improbe where nothing was sent");
}

void probe_null_process(MPI_Comm comm) {
    MPI_Status status;
    MPI_Message message = MPI_MESSAGE_NULL;
    int flag = 0;
    MPI_Probe(MPI_PROC_NULL, 5, comm, &status);
    topic("null").add_status(status, MPI_INT);
    MPI_Iprobe(MPI_PROC_NULL, 5, comm, &flag, &status);
    check_equal(flag, 1, "Iprobe of MPI_PROC_NULL");
    topic("null").add_status(status, MPI_INT);
    MPI_Mprobe(MPI_PROC_NULL, 5, comm, &message, &status);
    check(message == MPI_MESSAGE_NO_PROC, "Mprobe of MPI_PROC_NULL");
    MPI_Mrecv(nullptr, 0, MPI_INT, &message, &status);
    check_equal(status.MPI_SOURCE, MPI_PROC_NULL, "source of MPI_MESSAGE_NO_PROC");
    topic("null").add_status(status, MPI_INT);
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    Random random = own_random(1);
    probe_nothing(comm);
    MPI_Barrier(comm);
    for (int round = 0; round < rounds; ++round) run_round(random, comm, round);
    probe_null_process(comm);
    MPI_Comm_free(&comm);
    return end();
}
