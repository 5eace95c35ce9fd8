// SPDX-License-Identifier: BSD-3-Clause
// footprint: what it costs that a library is there. Figures are the largest of all ranks; those
// after MPI_Finalize are rank 0's, because ranks can no longer agree then.
#include <mpi.h>

#include "bench.hpp"
#include "machine.hpp"
#include "record.hpp"
#include "timing.hpp"

namespace vecmpi::bench {
namespace {

int ranks_of_job = 0;  // kept for after MPI_Finalize

void print_one(const char* name, const char* unit, double value) {
    print_figure({name, static_cast<double>(ranks_of_job), unit, "lower"}, value);
}

double mib(long kib) { return static_cast<double>(kib) / 1024; }

}  // namespace

void measure_footprint(const StartCost& cost) {
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_of_job);
    print_one("MPI_Init", "ns", 1e6 * largest(cost.init_ms));
    print_one("RSS before Init", "MiB", largest(mib(cost.rss_kib_before)));
    print_one("RSS after Init", "MiB", largest(mib(cost.rss_kib)));
    print_one("peak RSS after Init", "MiB", largest(mib(cost.peak_kib)));
    print_one("threads after Init", "", largest(cost.threads));
}

void measure_footprint_end(double finalize_ms) {
    const Footprint memory = read_footprint();
    print_one("MPI_Finalize", "ns", 1e6 * finalize_ms);
    print_one("RSS after Finalize", "MiB", mib(memory.rss_kib));
    print_one("peak RSS at the end", "MiB", mib(memory.peak_kib));
    print_one("threads at the end", "", memory.threads);
}

}  // namespace vecmpi::bench
