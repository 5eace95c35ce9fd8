// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking messages of derived types, and what a program may do with their requests: each way to
// complete them, beside others, ignored statuses, cancelled, freed, looked at, given to no one;
// with types and communicators freed meanwhile. The argument "threads": each thread its own
// messages.
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "completion.hpp"

using namespace battery;

namespace {

constexpr int rounds = 60;  // a plan comes after some messages, and its trial after more

// Values at some distance, with what lies between them; or records of an int and a double.
class Values {
  public:
    Values(int number, bool is_mixed) : number_(number), is_mixed_(is_mixed) {
        if (is_mixed) {
            const int lengths[] = {1, 1};
            const MPI_Aint places[] = {0, 8};
            const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
            MPI_Type_create_struct(2, lengths, places, types, &type);
        } else {
            MPI_Type_vector(number, 1, 2, MPI_DOUBLE, &type);
        }
        MPI_Type_commit(&type);
        memory_.assign(static_cast<size_t>(number) * 16, 0x11);
    }
    ~Values() { free_type(); }
    Values(const Values&) = delete;
    Values& operator=(const Values&) = delete;

    void free_type() {
        if (type != MPI_DATATYPE_NULL) MPI_Type_free(&type);
    }
    char* memory() { return memory_.data(); }
    int count() const { return is_mixed_ ? number_ : 1; }
    int bytes() const { return number_ * (is_mixed_ ? 12 : 8); }
    void fill(uint64_t id) {
        for (size_t i = 0; i < memory_.size(); ++i) memory_[i] = byte(id, i);
    }
    // The first `number` values are of `id`, all else of `before`.
    void expect(uint64_t id, uint64_t before, int number, const char* what) const {
        for (size_t i = 0; i < memory_.size(); ++i) {
            const bool has_come = is_value(i) && static_cast<int>(i / 16) < number;
            if (memory_[i] != byte(has_come ? id : before, i))
                check_equal(static_cast<int64_t>(i), -1, what);
        }
    }
    int number() const { return number_; }

    MPI_Datatype type = MPI_DATATYPE_NULL;

  private:
    static char byte(uint64_t id, size_t i) { return static_cast<char>(mix(id * 65537 + i)); }
    bool is_value(size_t i) const { return is_mixed_ ? i % 16 < 4 || i % 16 >= 8 : i % 16 < 8; }

    const int number_;
    const bool is_mixed_;
    std::vector<char> memory_;
};

int right() { return (world.rank + 1) % world.size; }
int left() { return (world.rank + world.size - 1) % world.size; }

struct Exchange {
    Exchange(Random& common, MPI_Comm on, int tag_of_thread)
        : comm(on),
          tag(tag_of_thread),
          number(numbers[common.below(4)]),
          is_mixed(common.chance(40)),
          out(number, is_mixed),
          in(number, is_mixed) {}

    void begin(int round) {
        id = static_cast<uint64_t>(tag * 4096 + round * 2);
        out.fill(id + static_cast<uint64_t>(world.rank) * 7919);
        in.fill(id + 1);
    }
    void receive(MPI_Request* request) {
        MPI_Irecv(in.memory(), in.count(), in.type, left(), tag, comm, request);
    }
    void send(decltype(MPI_Isend)* by, MPI_Request* request) {
        by(out.memory(), out.count(), out.type, right(), tag, comm, request);
    }
    void judge(const char* what) {
        in.expect(id + static_cast<uint64_t>(left()) * 7919, id + 1, number, what);
    }
    void judge(const MPI_Status& status) const {
        int bytes = 0;
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        check_equal(status.MPI_SOURCE, left(), "source");
        check_equal(status.MPI_TAG, tag, "tag");
        check_equal(bytes, in.bytes(), "bytes");
    }

    static constexpr int numbers[] = {5, 100, 900, 5000};
    const MPI_Comm comm;
    const int tag, number;
    const bool is_mixed;
    Values out, in;
    uint64_t id = 0;
};

// Each of the ways to complete, with statuses and without.
void complete_in_all_ways(Random& common, MPI_Comm comm, int tag, bool is_alone) {
    Exchange exchange(common, comm, tag);
    Random own = own_random(static_cast<uint64_t>(tag));
    for (int round = 0; round < rounds; ++round) {
        const bool with_statuses = own.chance(60), is_ready = is_alone && round % 4 == 3;
        std::vector<MPI_Request> requests(2);
        exchange.begin(round);
        exchange.receive(&requests[0]);
        if (is_ready) MPI_Barrier(comm);
        exchange.send(is_ready         ? MPI_Irsend
                      : own.chance(50) ? MPI_Issend
                                       : MPI_Isend,
                      &requests[1]);
        Completion completion(requests);
        completion.finish(own, with_statuses);
        if (with_statuses) exchange.judge(completion.status(0));
        exchange.judge("received bytes");
    }
}

// Beside requests of bytes, a persistent one, a generalized one, and null ones.
void complete_beside_others(Random& common, MPI_Comm comm, bool with_generalized) {
    Exchange exchange(common, comm, 5);
    int sent = 3, received = 0;
    MPI_Request persistent;
    MPI_Recv_init(&received, 1, MPI_INT, left(), 6, comm, &persistent);
    for (int round = 0; round < rounds; ++round) {
        exchange.begin(round);
        MPI_Request requests[6] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, persistent,
                                   MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        MPI_Status statuses[6];
        MPI_Start(&requests[2]);
        exchange.receive(&requests[1]);
        exchange.send(MPI_Isend, &requests[3]);
        MPI_Isend(&sent, 1, MPI_INT, right(), 6, comm, &requests[4]);
        if (with_generalized) {
            MPI_Grequest_start(
                [](void*, MPI_Status* status) {
                    MPI_Status_set_elements(status, MPI_BYTE, 0);
                    MPI_Status_set_cancelled(status, 0);
                    return int{MPI_SUCCESS};
                },
                [](void*) { return int{MPI_SUCCESS}; }, [](void*, int) { return int{MPI_SUCCESS}; },
                nullptr, &requests[5]);
            MPI_Grequest_complete(requests[5]);
        }
        MPI_Waitall(6, requests, statuses);
        exchange.judge(statuses[1]);
        exchange.judge("received beside others");
        check_equal(received, 3, "int beside");
    }
    MPI_Request_free(&persistent);
}

// Types and communicator go while the messages are under way.
void free_meanwhile(Random& common, MPI_Comm comm) {
    for (int round = 0; round < rounds; ++round) {
        MPI_Comm own;
        MPI_Comm_dup(comm, &own);
        Exchange exchange(common, own, 7);
        exchange.begin(round);
        MPI_Request requests[2];
        exchange.receive(&requests[0]);
        if (common.chance(50)) MPI_Barrier(comm);
        exchange.send(MPI_Isend, &requests[1]);
        exchange.out.free_type();
        exchange.in.free_type();
        MPI_Comm_free(&own);
        Values other(exchange.number, !exchange.is_mixed);  // may get the handle
        MPI_Status statuses[2];
        MPI_Waitall(2, requests, statuses);
        exchange.judge(statuses[0]);
        exchange.judge("received with freed types");
    }
}

// Requests that the program frees: their messages come all the same.
void free_requests(Random& common, MPI_Comm comm) {
    for (int round = 0; round < rounds / 4; ++round) {
        Exchange exchange(common, comm, 8);
        exchange.begin(round);
        MPI_Request receive, send;
        exchange.receive(&receive);
        MPI_Request_free(&receive);
        if (common.chance(50)) MPI_Barrier(comm);
        exchange.send(MPI_Issend, &send);
        if (common.chance(50))
            MPI_Request_free(&send);
        else
            MPI_Wait(&send, MPI_STATUS_IGNORE);
        // Not a barrier: through a node's memory it may look at no message.
        for (int i = 0, none = 0; i < 300; ++i)
            MPI_Sendrecv(&i, 1, MPI_INT, right(), 12, &none, 1, MPI_INT, left(), 12, comm,
                         MPI_STATUS_IGNORE);
        exchange.judge("received by a freed request");
    }
}

// A receive that nothing matches is cancelled, and leaves its memory alone.
void cancel_receives(Random& common, MPI_Comm comm) {
    Exchange exchange(common, comm, 9);
    for (int round = 0; round < rounds; ++round) {
        exchange.begin(round);
        MPI_Request request;
        MPI_Status status;
        int flag = 1;
        exchange.receive(&request);
        MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
        check_equal(flag, 0, "nothing has come");
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &flag);
        check_equal(flag, 1, "cancelled");
        check(request == MPI_REQUEST_NULL, "null after a cancelled receive");
        exchange.in.expect(0, exchange.id + 1, 0, "memory of a cancelled receive");
    }
}

// Fewer values than the receive has room for, none, and messages to no one.
void receive_less(Random& common, MPI_Comm comm) {
    Exchange exchange(common, comm, 10);
    for (int round = 0; round < rounds; ++round) {
        exchange.begin(round);
        const int number = round % 3 == 0 ? 0 : common.below(exchange.number) / 2 * (round % 3 - 1);
        MPI_Datatype less;
        if (exchange.is_mixed)
            MPI_Type_dup(exchange.out.type, &less);
        else
            MPI_Type_vector(number, 1, 2, MPI_DOUBLE, &less);
        MPI_Type_commit(&less);
        int theirs = 0;
        MPI_Sendrecv(&number, 1, MPI_INT, right(), 11, &theirs, 1, MPI_INT, left(), 11, comm,
                     MPI_STATUS_IGNORE);
        MPI_Request requests[4];
        MPI_Status statuses[4];
        exchange.receive(&requests[0]);
        MPI_Isend(exchange.out.memory(), exchange.is_mixed ? number : 1, less, right(), 10, comm,
                  &requests[1]);
        MPI_Irecv(exchange.in.memory(), exchange.in.count(), exchange.in.type, MPI_PROC_NULL, 10,
                  comm, &requests[2]);
        MPI_Isend(exchange.out.memory(), exchange.out.count(), exchange.out.type, MPI_PROC_NULL, 10,
                  comm, &requests[3]);
        MPI_Type_free(&less);
        MPI_Waitall(4, requests, statuses);
        int bytes = -1;
        MPI_Get_count(&statuses[0], MPI_BYTE, &bytes);
        check_equal(bytes, theirs * (exchange.is_mixed ? 12 : 8), "bytes of a shorter message");
        exchange.in.expect(exchange.id + static_cast<uint64_t>(left()) * 7919, exchange.id + 1,
                           theirs, "bytes of a shorter message");
    }
}

// More than are kept under way elsewhere, received in another order than sent.
void many_at_once(MPI_Comm comm) {
    constexpr int many = 300;
    Values out(400, false), in(400 * many, false);
    MPI_Datatype one;
    MPI_Type_vector(400, 1, 2, MPI_DOUBLE, &one);
    MPI_Type_commit(&one);
    for (int round = 0; round < 4; ++round) {
        const auto id = static_cast<uint64_t>(round * 2);
        out.fill(id);
        in.fill(id + 1);
        std::vector<MPI_Request> requests(2 * many);
        for (int i = 0; i < many; ++i)
            MPI_Irecv(in.memory() + 6400 * i, 1, one, left(), many - i, comm,
                      &requests[static_cast<size_t>(i)]);
        for (int i = 0; i < many; ++i)
            MPI_Isend(out.memory(), 1, one, right(), i + 1, comm,
                      &requests[static_cast<size_t>(many + i)]);
        MPI_Waitall(2 * many, requests.data(), MPI_STATUSES_IGNORE);
        for (int i = 0; i < many; ++i)
            for (size_t at = 0; at < 6400; at += 16)
                check(std::equal(&in.memory()[6400 * i + static_cast<int>(at)],
                                 &in.memory()[6400 * i + static_cast<int>(at) + 8],
                                 out.memory() + at),
                      "one of many");
    }
    MPI_Type_free(&one);
}

void run_threads(MPI_Comm comm) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([=] {
            Random random = common_random(40 + static_cast<uint64_t>(t));
            for (int i = 0; i < 3; ++i) complete_in_all_ways(random, comm, 20 + t, false);
        });
    for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
    read_arguments(argc, argv);
    const bool is_threaded = world.argument == "threads";
    begin(argc, argv, is_threaded ? MPI_THREAD_MULTIPLE : -1);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    Random random = common_random(31);
    if (is_threaded) {
        run_threads(comm);
    } else {
        for (int i = 0; i < 6; ++i) complete_in_all_ways(random, comm, 4, true);
        for (int i = 0; i < 3; ++i) complete_beside_others(random, comm, false);
        free_meanwhile(random, comm);
        free_requests(random, comm);
        cancel_receives(random, comm);
        for (int i = 0; i < 4; ++i) receive_less(random, comm);
        many_at_once(comm);
        complete_beside_others(random, comm, true);
        complete_in_all_ways(random, comm, 4, true);
    }
    topic("rounds").add(rounds);
    MPI_Comm_free(&comm);
    return end();
}
