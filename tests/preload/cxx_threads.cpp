// SPDX-License-Identifier: BSD-3-Clause
// C++: threads that talk on their own communicators under MPI_THREAD_MULTIPLE, exceptions, static
// objects.
#include <mpi.h>

#include <cstdio>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int number_of_threads = 3;
constexpr int rounds = 50;

// Lives longer than main: whatever the library does at exit must leave it alone.
struct Diary {
    std::vector<std::string> lines;
    ~Diary() { std::fputs(lines.size() > 3 ? "diary closed\n" : "diary short\n", stdout); }
};
Diary diary;

class Communicator {
  public:
    explicit Communicator(MPI_Comm parent) { MPI_Comm_dup(parent, &comm_); }
    ~Communicator() { MPI_Comm_free(&comm_); }
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;
    MPI_Comm handle() const { return comm_; }
    int rank() const {
        int rank;
        MPI_Comm_rank(comm_, &rank);
        return rank;
    }
    int size() const {
        int size;
        MPI_Comm_size(comm_, &size);
        return size;
    }

  private:
    MPI_Comm comm_ = MPI_COMM_NULL;
};

long talk(const Communicator& own, int thread) {
    const int right = (own.rank() + 1) % own.size();
    const int left = (own.rank() + own.size() - 1) % own.size();
    long total = 0;
    for (int round = 0; round < rounds; ++round) {
        std::vector<int> out(64 + round), in(64 + round);
        std::iota(out.begin(), out.end(), own.rank() * 1000 + round + thread);
        MPI_Request requests[2];
        MPI_Irecv(in.data(), static_cast<int>(in.size()), MPI_INT, left, round, own.handle(),
                  &requests[0]);
        MPI_Isend(out.data(), static_cast<int>(out.size()), MPI_INT, right, round, own.handle(),
                  &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        total += std::accumulate(in.begin(), in.end(), 0L);
    }
    long sum = 0;
    MPI_Allreduce(&total, &sum, 1, MPI_LONG, MPI_SUM, own.handle());
    return sum;
}

void checked(int code) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length, error_class;
    MPI_Error_class(code, &error_class);
    MPI_Error_string(error_class, text, &length);
    throw std::runtime_error(text);
}

void throws_across_mpi(int rank) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    try {
        checked(MPI_Send(nullptr, 1, MPI_INT, 0, 0, MPI_COMM_NULL));
        std::printf("%d: nothing thrown\n", rank);
    } catch (const std::runtime_error& error) {
        std::printf("%d: caught %s\n", rank, error.what());
    }
}

}  // namespace

int main(int argc, char** argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::printf("%d: level %d\n", rank, provided == MPI_THREAD_MULTIPLE);
    {
        std::vector<Communicator*> own;
        for (int i = 0; i < number_of_threads; ++i) own.push_back(new Communicator(MPI_COMM_WORLD));
        std::vector<long> sums(number_of_threads);
        std::vector<std::thread> threads;
        for (int i = 0; i < number_of_threads; ++i)
            threads.emplace_back([&, i] { sums[i] = talk(*own[i], i); });
        for (auto& thread : threads) thread.join();
        for (int i = 0; i < number_of_threads; ++i) {
            std::printf("%d: thread %d: %ld\n", rank, i, sums[i]);
            diary.lines.push_back("thread");
            delete own[i];
        }
    }
    throws_across_mpi(rank);
    diary.lines.push_back("end");
    MPI_Finalize();
}
