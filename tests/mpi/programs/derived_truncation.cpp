// SPDX-License-Identifier: BSD-3-Clause
// Receives into derived types that are too small, with MPI_ERRORS_RETURN: codes and statuses of
// each way to receive, bytes that must stay as they are, messages behind them that arrive whole.
#include <atomic>
#include <vector>

#include "completion.hpp"
#include "typed_blocks.hpp"

using namespace battery;

namespace {

constexpr int messages = 8;  // the odd ones are too long for their receive

enum class Way {
    wait,
    test,
    recv,
    sendrecv,
    waitall,
    waitsome,
    waitany,
    mrecv,
    imrecv,
    persistent,
};
constexpr int ways = 10;

bool is_too_long(int i) { return i % 2 == 1; }

// From the left neighbour, and to the right one: the same types for all messages.
class Round {
  public:
    Round(Random& common, Random& own, MPI_Comm comm)
        : comm_(comm),
          id_(common.next()),
          unit_(static_cast<Unit>(common.below(5))),
          way_(static_cast<Way>(common.below(ways))),
          units_(numbers(common)),
          out_(own, unit_, units_, Placing::by_extent),
          in_(own, unit_, rooms(own), Placing::by_extent) {
        for (int i = 0; i < messages; ++i) {
            out_.fill(index(i), id(world.rank, i));
            if (!is_too_long(i)) in_.expect(index(i), id(left(), i), out_.bytes_in(index(i)));
        }
    }

    void run() {
        switch (way_) {
            case Way::wait:
                return by_wait();
            case Way::test:
                return by_test();
            case Way::recv:
                return by_recv();
            case Way::sendrecv:
                return by_sendrecv();
            case Way::waitall:
                return by_waitall();
            case Way::waitsome:
                return by_waitsome();
            case Way::waitany:
                return by_waitany();
            case Way::mrecv:
                return by_probe(false);
            case Way::imrecv:
                return by_probe(true);
            case Way::persistent:
                return by_persistent();
        }
    }

    // What a truncated receive leaves in its blocks is undefined, and what is between them is not.
    void judge() {
        for (int i = 1; i < messages; i += 2) in_.accept(index(i));
        in_.check_all("wrong byte of a receive buffer (offset)");
        out_.check_all("changed byte of a send buffer (offset)");
    }

  private:
    static size_t index(int i) { return static_cast<size_t>(i); }
    static int right() { return (world.rank + 1) % world.size; }
    static int left() { return (world.rank + world.size - 1) % world.size; }
    uint64_t id(int from, int i) const { return mix(id_ + static_cast<uint64_t>(from * 64 + i)); }

    std::vector<int> numbers(Random& common) const {
        const int most = unit_ == Unit::record ? 700 / 12 : common.chance(60) ? 60 : 1000;
        std::vector<int> units;
        for (int i = 0; i < messages; ++i) units.push_back(12 * common.between(1, most));
        return units;
    }
    std::vector<int> rooms(Random& own) const {
        constexpr int numbers[] = {1, 3, 5, 12};
        const int together = numbers[own.below(4)];
        std::vector<int> rooms;
        for (int i = 0; i < messages; ++i) {
            const int enough = (units_[index(i)] + together - 1) / together;
            const int too_few = (units_[index(i)] - 1) / together;
            const int least = own.chance(20) ? 0 : own.chance(50) ? too_few : too_few / 2;
            rooms.push_back(together * (is_too_long(i) ? least : enough + own.below(3)));
        }
        return rooms;
    }

    void send(int i) {
        MPI_Isend(out_.block(index(i)), out_.count(index(i)), out_.type(), right(), i, comm_,
                  &sends_[i]);
    }
    void irecv(int i, MPI_Request* request) {
        MPI_Irecv(in_.block(index(i)), in_.count(index(i)), in_.type(), left(), i, comm_, request);
    }
    void post() {
        for (int i = 0; i < messages; ++i) irecv(i, &requests_[i]);
        for (int i = 0; i < messages; ++i) send(i);
    }
    void end_sends() {
        for (MPI_Request& request : sends_)
            check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS, "send");
    }

    void judge_one(int code, int i, const char* what) {
        check_class(code, is_too_long(i) ? MPI_ERR_TRUNCATE : MPI_SUCCESS, what);
        // Waitsome may return them in any order.
        topic(what).add_unordered(static_cast<uint64_t>(error_class(code) * messages + i));
    }
    void judge_one(int code, const MPI_Status& status, int i, const char* what) {
        judge_one(code, i, what);
        check_equal(status.MPI_SOURCE, left(), "source");
        check_equal(status.MPI_TAG, i, "tag");
        // MPICH 4.0.2 leaves the count of a truncated message as it was in the request's last use.
        if (is_too_long(i)) return;
        int elements = 0;
        MPI_Get_elements(&status, in_.type(), &elements);
        check_equal(elements, units_[index(i)] * basics(unit_), "elements");
        topic("statuses").add_status(status, in_.type());
    }

    void by_wait() {
        post();
        for (int i = 0; i < messages; ++i) {
            MPI_Status status;
            const int code = MPI_Wait(&requests_[i], &status);
            judge_one(code, status, i, "Wait");
            check(requests_[i] == MPI_REQUEST_NULL, "null after an error");
        }
        end_sends();
    }

    void by_test() {
        post();
        for (int i = 0; i < messages; ++i) {
            MPI_Status status;
            int flag = 0, code = MPI_SUCCESS;
            while (!flag && code == MPI_SUCCESS) code = MPI_Test(&requests_[i], &flag, &status);
            judge_one(code, status, i, "Test");
        }
        end_sends();
    }

    void by_recv() {
        for (int i = 0; i < messages; ++i) {
            MPI_Status status;
            send(i);
            const int code = MPI_Recv(in_.block(index(i)), in_.count(index(i)), in_.type(), left(),
                                      i, comm_, &status);
            judge_one(code, status, i, "Recv");
        }
        end_sends();
    }

    void by_sendrecv() {
        for (int i = 0; i < messages; ++i) {
            MPI_Status status;
            const size_t b = index(i);
            const int code =
                MPI_Sendrecv(out_.block(b), out_.count(b), out_.type(), right(), i, in_.block(b),
                             in_.count(b), in_.type(), left(), i, comm_, &status);
            judge_one(code, status, i, "Sendrecv");
        }
    }

    // Until all are complete, so that no request is pending when one fails.
    void settle() {
        for (MPI_Request& request : requests_) {
            int flag = 0;
            while (!flag) MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
        }
    }

    // How much is complete behind the first error is up to the library (MPI 4.0, 3.7.5).
    void by_waitall() {
        MPI_Status statuses[messages];
        post();
        settle();
        check_class(MPI_Waitall(messages, requests_, statuses), MPI_ERR_IN_STATUS, "Waitall");
        for (int i = 0; i < messages; ++i) {
            if (requests_[i] == MPI_REQUEST_NULL) {
                judge_one(statuses[i].MPI_ERROR, statuses[i], i, "Waitall");
                continue;
            }
            check_class(statuses[i].MPI_ERROR, MPI_ERR_PENDING, "status of what is left");
            judge_one(MPI_Wait(&requests_[i], &statuses[i]), statuses[i], i, "Waitall");
        }
        end_sends();
    }

    void by_waitsome() {
        post();
        settle();
        for (int left = messages; left > 0;) {
            MPI_Status statuses[messages];
            int indices[messages], found = 0;
            const int code = MPI_Waitsome(messages, requests_, &found, indices, statuses);
            check(found != MPI_UNDEFINED, "something is left");
            bool is_any = false;
            for (int k = 0; k < found; ++k) is_any |= is_too_long(indices[k]);
            check_class(code, is_any ? MPI_ERR_IN_STATUS : MPI_SUCCESS, "Waitsome");
            for (int k = 0; k < found; ++k)
                judge_one(is_any ? statuses[k].MPI_ERROR : code, indices[k], "Waitsome status");
            left -= found;
        }
        end_sends();
    }

    void by_waitany() {
        post();
        for (int k = 0; k < messages; ++k) {
            int i = -1;
            const int code = MPI_Waitany(messages, requests_, &i, MPI_STATUS_IGNORE);
            check(i >= 0 && i < messages, "index of Waitany with an error");
            check_class(code, is_too_long(i) ? MPI_ERR_TRUNCATE : MPI_SUCCESS, "Waitany");
            check(requests_[i] == MPI_REQUEST_NULL, "null after Waitany");
        }
        end_sends();
    }

    // The probe says how long the message is, whatever the receive can take.
    void by_probe(bool is_nonblocking) {
        for (int i = 0; i < messages; ++i) {
            MPI_Message message = MPI_MESSAGE_NULL;
            MPI_Status status;
            const size_t b = index(i);
            send(i);
            MPI_Mprobe(left(), i, comm_, &message, &status);
            int elements = 0, code = MPI_SUCCESS;
            MPI_Get_elements(&status, in_.type(), &elements);
            check_equal(elements, units_[b] * basics(unit_), "elements of a probe");
            if (is_nonblocking) {
                code = MPI_Imrecv(in_.block(b), in_.count(b), in_.type(), &message, &requests_[i]);
                if (code == MPI_SUCCESS) code = MPI_Wait(&requests_[i], &status);
            } else {
                code = MPI_Mrecv(in_.block(b), in_.count(b), in_.type(), &message, &status);
            }
            judge_one(code, status, i, is_nonblocking ? "Imrecv" : "Mrecv");
        }
        end_sends();
    }

    // A persistent request that has failed can be started again.
    void by_persistent() {
        for (int i = 0; i < messages; ++i)
            MPI_Recv_init(in_.block(index(i)), in_.count(index(i)), in_.type(), left(), i, comm_,
                          &requests_[i]);
        for (int repetition = 0; repetition < 3; ++repetition) {
            MPI_Startall(messages, requests_);
            for (int i = 0; i < messages; ++i) send(i);
            for (int i = 0; i < messages; ++i) {
                MPI_Status status;
                const int code = MPI_Wait(&requests_[i], &status);
                judge_one(code, status, i, "persistent");
                check(requests_[i] != MPI_REQUEST_NULL, "a persistent request survives an error");
            }
            end_sends();
        }
        for (MPI_Request& request : requests_) MPI_Request_free(&request);
    }

    const MPI_Comm comm_;
    const uint64_t id_;
    const Unit unit_;
    const Way way_;
    const std::vector<int> units_;
    TypedBlocks out_, in_;
    MPI_Request sends_[messages], requests_[messages];
};

std::atomic<int> handled{0};
void handle(MPI_Comm*, int*, ...) { ++handled; }

// The error handler may change while a receive is under way: its error is for the new one. In a
// Wait, MPICH 4.0.2 asks that of MPI_COMM_WORLD; after a function MPICH 5.0.2 returns success.
void late_handler() {
    constexpr int doubles = 900;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Datatype types[2];
    for (int i = 0; i < 2; ++i) {
        MPI_Type_vector(doubles * (i + 1), 1, 2, MPI_DOUBLE, &types[i]);
        MPI_Type_commit(&types[i]);
    }
    const int right = (world.rank + 1) % world.size;
    std::vector<double> in(4 * doubles, 1), out(4 * doubles, 2);
    MPI_Request request;
    for (int i = 0; i < 60; ++i) {
        MPI_Irecv(in.data(), 1, types[0], MPI_ANY_SOURCE, 1, comm, &request);
        MPI_Send(out.data(), 1, types[0], right, 1, comm);
        check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS, "receive before");
    }
    MPI_Irecv(in.data(), 1, types[0], MPI_ANY_SOURCE, 1, comm, &request);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Barrier(comm);  // no message before its receive
    MPI_Send(out.data(), 1, types[1], right, 1, comm);
    const int code = error_class(MPI_Wait(&request, MPI_STATUS_IGNORE));
    topic("late error handler").add(static_cast<uint64_t>(handled * 100 + code));
    MPI_Errhandler_free(&handler);
    for (MPI_Datatype& type : types) MPI_Type_free(&type);
    MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // MPICH may ask it for a Wait
    late_handler();
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    Random common = common_random(91), own = own_random(92);
    for (int i = 0; i < 30; ++i) {
        Round round(common, own, comm);
        round.run();
        round.judge();
    }
    MPI_Comm_free(&comm);
    return end();
}
