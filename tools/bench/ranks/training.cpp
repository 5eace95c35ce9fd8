// SPDX-License-Identifier: BSD-3-Clause
// training: a program in the shape of data-parallel training. Threads compute a step, and beside
// them one thread reduces the step's gradients: buckets by a blocking Allreduce each, before each
// one a small Allreduce by which the ranks find out that all have it (as Horovod does). A step ends
// when both are done. Needs MPI_THREAD_MULTIPLE.
//
//   comm = the reductions alone
//   comp = the computation alone, a fixed amount of work in each thread
//   both = a step
//   hidden = 100 * (comm + comp - both) / min(comm, comp), within 0 and 100
//
// Each is the time of the slowest rank; the three are measured in turn.
#include <mpi.h>

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <thread>

#include "bench.hpp"
#include "record.hpp"
#include "timing.hpp"
#include "work.hpp"

namespace vecmpi::bench {
namespace {

constexpr int ready_words = 17;

struct Bucket {
    explicit Bucket(std::size_t bytes) : in(bytes / sizeof(float), 1), out(in.size()) {}
    std::vector<float> in, out;
};

void reduce_gradients(Bucket& bucket, long buckets) {
    int ready[ready_words] = {}, all_ready[ready_words];
    for (long i = 0; i < buckets; i++) {
        MPI_Allreduce(ready, all_ready, ready_words, MPI_INT, MPI_BOR, MPI_COMM_WORLD);
        MPI_Allreduce(bucket.in.data(), bucket.out.data(), static_cast<int>(bucket.in.size()),
                      MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
}

// The threads of one rank. They live as long as this does, and sleep between the steps.
class Trainer {
  public:
    Trainer(int computing, std::uint64_t steps, std::size_t bucket_bytes, long buckets)
        : bucket_(bucket_bytes), ends_(computing + 2) {
        for (int i = 0; i < computing; i++)
            threads_.emplace_back([this, steps] {
                each_step([&] {
                    if (computes_) work(steps);
                });
            });
        threads_.emplace_back([this, buckets] {
            each_step([&] {
                if (communicates_) reduce_gradients(bucket_, buckets);
            });
        });
    }
    ~Trainer() {
        is_over_ = true;
        ends_.arrive_and_wait();
        for (std::thread& thread : threads_) thread.join();
    }
    Trainer(const Trainer&) = delete;
    Trainer& operator=(const Trainer&) = delete;

    double step_ns(bool computes, bool communicates) {
        computes_ = computes;
        communicates_ = communicates;
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = now_ns();
        ends_.arrive_and_wait();
        ends_.arrive_and_wait();
        return largest(now_ns() - begin);
    }

  private:
    template <class Part>
    void each_step(const Part& part) {
        for (;;) {
            ends_.arrive_and_wait();
            if (is_over_) return;
            part();
            ends_.arrive_and_wait();
        }
    }
    Bucket bucket_;
    std::barrier<> ends_;  // orders the three that follow
    bool computes_ = false, communicates_ = false, is_over_ = false;
    std::vector<std::thread> threads_;
};

void measure_with(int computing, const Options& options) {
    const auto steps = static_cast<std::uint64_t>(
        from_rank_0(static_cast<double>(steps_for(1e6 * options.compute_ms))));
    Trainer trainer(computing, steps, options.sizes.front(), options.buckets);
    trainer.step_ns(computing > 0, true);  // warm-up
    Samples comm, comp, both;
    for (long i = 0; i < options.steps; i++) {
        both.add(trainer.step_ns(computing > 0, true));
        if (computing == 0) continue;
        comm.add(trainer.step_ns(false, true));
        comp.add(trainer.step_ns(true, false));
    }
    const double both_ns = both.quantile(0.5);
    const double comm_ns = computing == 0 ? both_ns : comm.quantile(0.5);
    const double comp_ns = computing == 0 ? 0 : comp.quantile(0.5);
    char detail[160];
    std::snprintf(detail, sizeof detail, "{\"comm_ns\":%.0f,\"comp_ns\":%.0f,\"both_ns\":%.0f}",
                  comm_ns, comp_ns, both_ns);
    const auto at = static_cast<double>(computing);
    print_figure({"step", at, "ns", "lower"}, both_ns, detail);
    if (computing == 0) return;
    const double hidden = 100 * (comm_ns + comp_ns - both_ns) / std::min(comm_ns, comp_ns);
    print_figure({"hidden", at, "%", "higher"}, std::clamp(hidden, 0.0, 100.0), detail);
}

}  // namespace

void measure_training(const Options& options) {
    require_thread_multiple();
    for (const int computing : options.threads) measure_with(computing, options);
}

}  // namespace vecmpi::bench
