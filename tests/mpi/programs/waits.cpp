// SPDX-License-Identifier: BSD-3-Clause
// Blocked calls of all kinds at random, beside threads that compute on and off, with pauses before
// the calls that end them and signals that interrupt them: none may be lost.
//   (none)   one thread communicates
//   threads  two, each on a communicator of its own, at MPI_THREAD_MULTIPLE
// BATTERY_WAITS: how many each thread makes at most (default 600, of two 100). Each may cost a time
// slice of every thread that computes, so 20 seconds end them.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "battery.hpp"

using namespace battery;

namespace {

// A thread beside the calls. again(): made until this ends.
class Beside {
  public:
    template <class Again>
    explicit Beside(Again again)
        : thread_([this, again]() mutable {
              while (!is_over_) again();
          }) {}
    ~Beside() {
        is_over_ = true;
        thread_.join();
    }
    Beside(const Beside&) = delete;
    Beside& operator=(const Beside&) = delete;

  private:
    std::atomic<bool> is_over_{false};
    std::thread thread_;
};

// Computes for some milliseconds, sleeps for some.
auto computing(uint64_t stream) {
    return [own = own_random(stream)]() mutable {
        volatile uint64_t number = 1;
        for (int i = own.between(1, 40) * 100000; i > 0; --i)
            number = number * 6364136223846793005U + 1;
        if (own.chance(30)) usleep(static_cast<unsigned>(own.between(100, 8000)));
    };
}

// To any thread of the process that takes them, also one that sleeps; not to the one that sends.
auto signals() {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    sigaction(SIGUSR1, &action, nullptr);
    return [own = own_random(7)]() mutable {
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, SIGUSR1);
        pthread_sigmask(SIG_BLOCK, &one, nullptr);
        usleep(static_cast<unsigned>(own.between(500, 20000)));
        kill(getpid(), SIGUSR1);
    };
}

// One communicating thread. The ranks' threads of the same stream make the same calls.
class Stream {
  public:
    Stream(uint64_t number, MPI_Comm comm)
        : comm_(comm), common_(common_random(number)), own_(own_random(number + 100)) {}

    void run(int waits) {
        for (call_ = 0; call_ < waits; ++call_) {
            if (call_ % 50 == 49 && time_is_up()) return;
            const int count = common_.chance(60)   ? common_.between(0, 14)
                              : common_.chance(70) ? common_.between(15, 4000)
                                                   : common_.between(4001, 40000);
            in_.assign(static_cast<size_t>(count), value_of(world.rank));
            out_.assign(static_cast<size_t>(count), -1);
            one_call(common_.below(9), count);
        }
    }

  private:
    bool time_is_up() const {
        const int mine = MPI_Wtime() - begun_ > 20 ? 1 : 0;
        int any = 0;
        MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, comm_);
        return any != 0;
    }
    int value_of(int rank) const { return 16 * call_ + rank; }
    int left() const { return (world.rank + world.size - 1) % world.size; }
    int right() const { return (world.rank + 1) % world.size; }
    void pause() {
        if (own_.chance(20)) usleep(static_cast<unsigned>(own_.between(1, 3000)));
    }
    void check_out(int expected) {
        for (const int found : out_) check_equal(found, expected, "element");
    }
    MPI_Request send(int count) {
        MPI_Request request;
        pause();
        MPI_Isend(in_.data(), count, MPI_INT, right(), call_ % 1000, comm_, &request);
        return request;
    }
    MPI_Request receive(int count) {
        MPI_Request request;
        MPI_Irecv(out_.data(), count, MPI_INT, left(), call_ % 1000, comm_, &request);
        return request;
    }

    void one_call(int which, int count) {
        const int sum = 16 * call_ * world.size + world.size * (world.size - 1) / 2;
        switch (which) {
            case 0: {  // a blocking receive
                MPI_Request sent = send(count);
                MPI_Recv(out_.data(), count, MPI_INT, left(), call_ % 1000, comm_,
                         MPI_STATUS_IGNORE);
                MPI_Wait(&sent, MPI_STATUS_IGNORE);
                return check_out(value_of(left()));
            }
            case 1: {  // any of two, then the other
                MPI_Request both[2] = {receive(count), MPI_REQUEST_NULL};
                both[1] = send(count);
                for (int i = 0; i < 2; ++i) {
                    int index;
                    MPI_Waitany(2, both, &index, MPI_STATUS_IGNORE);
                    check(index == 0 || index == 1, "one of two requests");
                }
                return check_out(value_of(left()));
            }
            case 2: {  // a probe, and what it has found
                MPI_Request sent = send(count);
                MPI_Status status;
                int found;
                MPI_Probe(left(), call_ % 1000, comm_, &status);
                MPI_Get_count(&status, MPI_INT, &found);
                check_equal(found, count, "probed count");
                MPI_Recv(out_.data(), count, MPI_INT, left(), call_ % 1000, comm_,
                         MPI_STATUS_IGNORE);
                MPI_Wait(&sent, MPI_STATUS_IGNORE);
                return check_out(value_of(left()));
            }
            case 3:
                pause();
                MPI_Sendrecv(in_.data(), count, MPI_INT, right(), 0, out_.data(), count, MPI_INT,
                             left(), 0, comm_, MPI_STATUS_IGNORE);
                return check_out(value_of(left()));
            case 4:
                pause();
                MPI_Barrier(comm_);
                return;
            case 5:
            case 6:
                pause();
                MPI_Allreduce(in_.data(), out_.data(), count, MPI_INT, MPI_SUM, comm_);
                return check_out(sum);
            case 7: {  // beside a message
                MPI_Request all[3];
                MPI_Iallreduce(in_.data(), out_.data(), count, MPI_INT, MPI_SUM, comm_, &all[0]);
                int token = world.rank, got = -1;
                MPI_Irecv(&got, 1, MPI_INT, left(), 1000, comm_, &all[1]);
                pause();
                MPI_Isend(&token, 1, MPI_INT, right(), 1000, comm_, &all[2]);
                MPI_Waitall(3, all, MPI_STATUSES_IGNORE);
                check_equal(got, left(), "token");
                return check_out(sum);
            }
            default: {
                const int root = call_ % world.size;
                if (world.rank == root) out_ = in_;
                pause();
                MPI_Bcast(out_.data(), count, MPI_INT, root, comm_);
                return check_out(value_of(root));
            }
        }
    }

    const MPI_Comm comm_;
    const double begun_ = MPI_Wtime();
    Random common_, own_;
    int call_ = 0;
    std::vector<int> in_, out_;
};

}  // namespace

int main(int argc, char** argv) {
    read_arguments(argc, argv);
    const int threads = world.argument == "threads" ? 2 : 1;
    begin(argc, argv, threads == 1 ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE);
    const char* const named = std::getenv("BATTERY_WAITS");
    const int waits = named != nullptr ? std::atoi(named) : threads == 1 ? 600 : 100;
    {
        std::vector<std::unique_ptr<Beside>> beside;
        for (int i = own_random(5).below(3); i > 0; --i)
            beside.push_back(std::make_unique<Beside>(computing(static_cast<uint64_t>(50 + i))));
        beside.push_back(std::make_unique<Beside>(signals()));
        MPI_Comm comms[2];
        std::vector<std::thread> others;
        for (int i = 0; i < threads; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        for (int i = 1; i < threads; ++i)
            others.emplace_back([&, i] { Stream(static_cast<uint64_t>(i), comms[i]).run(waits); });
        Stream(0, comms[0]).run(waits);
        for (std::thread& other : others) other.join();
        for (int i = 0; i < threads; ++i) MPI_Comm_free(&comms[i]);
    }
    topic("waits").add(static_cast<uint64_t>(waits));
    return end();
}
