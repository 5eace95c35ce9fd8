// SPDX-License-Identifier: BSD-3-Clause
// vecmpi-bench-ranks: the MPI program that vecmpi-bench starts, plain and preloaded. One
// measurement a run, records as JSON lines from rank 0. It must not depend on vecmpi in any way.
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>

#include "bench.hpp"
#include "machine.hpp"
#include "record.hpp"
#include "timing.hpp"

namespace vecmpi::bench {
namespace {

int world_rank() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

// mpirun has told the rank its number before MPI_Init; hydra's name for it, and Open MPI's.
int rank_before_init() {
    for (const char* name : {"PMI_RANK", "OMPI_COMM_WORLD_RANK"})
        if (const char* rank = std::getenv(name)) return std::atoi(rank);
    return 0;
}

bool pin(const Options& options, int rank) {
    const int cpu = options.cpus[static_cast<std::size_t>(rank) % options.cpus.size()];
    if (pin_this_thread(cpu)) return true;
    std::fprintf(stderr, "vecmpi-bench-ranks: rank %d may not run on CPU %d\n", rank, cpu);
    return false;
}

StartCost start_mpi(bool many_threads) {
    StartCost cost{};
    cost.rss_kib_before = read_footprint().rss_kib;
    const double start = now_ns();
    int provided = 0;
    if (many_threads)
        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
    else
        MPI_Init(nullptr, nullptr);
    cost.init_ms = (now_ns() - start) / 1e6;
    const Footprint memory = read_footprint();
    cost.rss_kib = memory.rss_kib;
    cost.peak_kib = memory.peak_kib;
    cost.threads = memory.threads;
    return cost;
}

// Every rank's host and the CPUs that its main thread may use, as a JSON list.
std::string places_of_ranks(int ranks) {
    char mine[64] = {}, host[33] = {};
    gethostname(host, sizeof host - 1);
    std::snprintf(mine, sizeof mine, "%s:%.28s", host, read_threads().front().cpus.c_str());
    std::vector<char> all(sizeof mine * static_cast<std::size_t>(ranks));
    MPI_Gather(mine, sizeof mine, MPI_CHAR, all.data(), sizeof mine, MPI_CHAR, 0, MPI_COMM_WORLD);
    std::vector<std::string> places;
    for (int r = 0; r < ranks; r++)
        places.emplace_back(&all[sizeof mine * static_cast<std::size_t>(r)]);
    return json_list(places);
}

void print_header(const Options& options) {
    int ranks = 0, length = 0;
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Get_library_version(version, &length);
    const std::string library = version;
    const std::string places = places_of_ranks(ranks);
    if (world_rank() != 0) return;
    JsonLine line("header");
    line.text("measurement", options.measurement).number("ranks", ranks);
    line.number("clock_overhead_ns", clock_overhead_ns());
    line.text("mpi", library.substr(0, library.find('\n'))).text("preload", mapped_preload());
    line.raw("places", places).print();
}

using Measurement = std::function<void(const Options&, const StartCost&)>;

const std::map<std::string, Measurement>& measurements() {
    static const std::map<std::string, Measurement> table{
        {"post", [](auto& o, auto&) { measure_post(o); }},
        {"latency", [](auto& o, auto&) { measure_latency(o); }},
        {"everyday", [](auto& o, auto&) { measure_everyday(o); }},
        {"overlap", [](auto& o, auto&) { measure_overlap(o); }},
        {"threads", [](auto& o, auto&) { measure_threads(o); }},
        {"oversub", [](auto& o, auto&) { measure_oversub(o); }},
        {"footprint", [](auto&, auto& cost) { measure_footprint(cost); }},
        {"idle", [](auto& o, auto&) { measure_idle(o); }},
        {"reduce", [](auto& o, auto&) { measure_reduce(o); }},
        {"reductions", [](auto& o, auto&) { measure_reductions(o); }},
        {"allreduce", [](auto& o, auto&) { measure_allreduce(o); }},
        {"collectives", [](auto& o, auto&) { measure_collectives(o); }},
        {"intranode", [](auto& o, auto&) { measure_intranode(o); }},
        {"network", [](auto& o, auto&) { measure_network(o); }},
        {"pack", [](auto& o, auto&) { measure_pack(o); }},
        {"messages", [](auto& o, auto&) { measure_messages(o); }},
        {"applications", [](auto& o, auto&) { measure_applications(o); }},
        {"training", [](auto& o, auto&) { measure_training(o); }},
        {"wake", [](auto& o, auto&) { measure_wake(o); }},
    };
    return table;
}

int run(const Options& options, const Measurement& measurement) {
    alarm(options.limit_s);
    if (options.pin == Pin::process && !pin(options, rank_before_init())) return 1;
    const StartCost cost = start_mpi(options.measurement == "threads" || options.multiple);
    const int rank = world_rank();
    if (options.pin == Pin::main && !pin(options, rank)) MPI_Abort(MPI_COMM_WORLD, 1);
    print_header(options);
    measurement(options, cost);
    print_threads();
    const double start = now_ns();
    MPI_Finalize();
    if (rank == 0 && options.measurement == "footprint")
        measure_footprint_end((now_ns() - start) / 1e6);
    return 0;
}

}  // namespace
}  // namespace vecmpi::bench

int main(int argc, char** argv) {
    if (argc == 2 && std::string(argv[1]) == "operators") {  // started by the driver without mpirun
        vecmpi::bench::print_op_table();
        return 0;
    }
    if (argc == 2 && std::string(argv[1]) == "calls") {  // in the same way
        vecmpi::bench::print_collective_calls();
        return 0;
    }
    vecmpi::bench::Options options;
    std::string error = vecmpi::bench::parse_options(argc, argv, options);
    if (error.empty() && options.measurement == "exchange") {  // started without mpirun, too
        vecmpi::bench::print_exchange(options);
        return 0;
    }
    const auto& table = vecmpi::bench::measurements();
    const auto chosen = table.find(options.measurement);
    if (error.empty() && chosen == table.end())
        error = "no measurement is called '" + options.measurement + "'";
    if (error.empty()) return vecmpi::bench::run(options, chosen->second);
    std::fprintf(stderr, "vecmpi-bench-ranks: %s\n", error.c_str());
    return 2;
}
