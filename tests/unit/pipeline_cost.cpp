// SPDX-License-Identifier: BSD-3-Clause
// The cost model against a simulation of the schedules, and its behaviour where nothing can be
// simulated.
#include "pipeline/schedules/cost.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "simulated_network.hpp"

using namespace vecmpi;
using namespace vecmpi::pipeline;

namespace {

// Of closed forms from the simulation, of all cases of one algorithm, by ratio whichever is larger.
// Where this is exceeded, a formula has lost touch with its schedule.
constexpr double mean_tolerance = 1.15, usual_tolerance = 1.35, worst_tolerance = 2.5;
constexpr double usual_share = 0.9;  // of the cases are within usual_tolerance

NetworkConstants fast_network() {
    NetworkConstants network;
    network.latency_us = 1.5;
    network.bytes_per_us = 12500;
    network.overhead_us = 0.3;
    network.node_latency_us = 0.3;
    network.node_overhead_us = 0.2;
    network.node_bytes_per_us = 8000;
    return network;
}

struct Case {
    CostFacts facts;
    Pipelining pipelining;
};

CostFacts facts_of(Collective collective, uint64_t bytes, int ranks, int nodes) {
    return {collective,         bytes, ranks, nodes, ranks / nodes + (ranks % nodes != 0),
            ranks % nodes == 0, false, 0};
}

// Trees of blocks are never cut by the model, and a barrier has nothing to cut.
bool is_whole(Collective collective) {
    return collective == Collective::gather || collective == Collective::scatter ||
           collective == Collective::barrier;
}

// False of scan and exscan.
bool is_scheduled(Collective collective) {
    return std::any_of(std::begin(schedule_paths), std::end(schedule_paths),
                       [&](CollectivePath path) { return is_algorithm_of(collective, path); });
}

std::vector<Case> cases_of(Collective collective) {
    std::vector<Case> cases;
    for (int ranks : {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 32, 64})
        for (int on_node : {1, 2, 4}) {
            if (ranks % on_node != 0 || ranks == on_node) continue;
            for (uint64_t bytes : {1u << 10, 1u << 14, 1u << 17, 1u << 20, 1u << 24})
                for (unsigned segments : {1u, 2u, 4u, 16u}) {
                    if (segments > 1 && bytes / segments < 16384) continue;
                    if (segments > 4 && ranks > 16) continue;
                    if (segments > 1 && is_whole(collective)) continue;
                    const bool has_parts = collective == Collective::allgather ||
                                           collective == Collective::alltoall ||
                                           is_whole(collective);
                    cases.push_back({facts_of(collective, has_parts ? bytes / 16 : bytes, ranks,
                                              ranks / on_node),
                                     {segments, 2}});
                }
        }
    return cases;
}

// Of an Allgatherv: one rank gives all, half of it or twice the mean.
std::vector<Case> uneven_cases() {
    std::vector<Case> cases;
    for (const Case& even : cases_of(Collective::allgather))
        for (uint64_t largest : {even.facts.bytes * static_cast<uint64_t>(even.facts.ranks),
                                 even.facts.bytes * static_cast<uint64_t>(even.facts.ranks) / 2,
                                 even.facts.bytes * 2}) {
            cases.push_back(even);
            cases.back().facts.largest_bytes = largest / 4 * 4;
        }
    return cases;
}

// The ratio of closed forms to the simulation.
class Ratios {
  public:
    void add(CollectivePath path, const Case& one, const NetworkConstants& network) {
        const double simulated = test::simulated_us(path, one.facts, one.pipelining, network);
        REQUIRE(simulated > 0);
        const double off =
            std::fabs(std::log(predicted_us(path, one.facts, one.pipelining, network) / simulated));
        sum_ += off;
        ++cases_;
        usual_ += off <= std::log(usual_tolerance);
        if (off <= worst_) return;
        worst_ = off;
        worst_case_ = std::to_string(one.facts.ranks) + " ranks " +
                      std::to_string(one.facts.nodes) + " nodes " +
                      std::to_string(one.facts.bytes) + " bytes, largest " +
                      std::to_string(one.facts.largest_bytes) + ", " +
                      std::to_string(one.pipelining.segments) + " segments";
    }
    void check(const std::string& what, double share = usual_share) const {
        INFO(what << ": mean " << std::exp(sum_ / cases_) << ", usual " << double(usual_) / cases_
                  << ", worst " << std::exp(worst_) << " " << worst_case_);
        CHECK(sum_ / cases_ <= std::log(mean_tolerance));
        CHECK(usual_ >= share * cases_);
        CHECK(worst_ <= std::log(worst_tolerance));
    }

  private:
    double sum_ = 0, worst_ = 0;
    int cases_ = 0, usual_ = 0;
    std::string worst_case_;
};

}  // namespace

TEST_CASE("The closed forms follow the simulation of the schedules", "[pipeline][cost]") {
    for (int c = 0; c < static_cast<int>(number_of_scheduled_collectives); ++c)
        for (CollectivePath path : schedule_paths) {
            const auto collective = static_cast<Collective>(c);
            if (!is_algorithm_of(collective, path)) continue;
            Ratios ratios;
            for (const NetworkConstants& network : {NetworkConstants(), fast_network()})
                for (const Case& one : cases_of(collective)) ratios.add(path, one, network);
            ratios.check(std::to_string(c) + " " + name_of(path));
        }
}

TEST_CASE("The closed forms follow the simulation where blocks are uneven", "[pipeline][cost]") {
    for (CollectivePath path : {CollectivePath::ring, CollectivePath::bruck}) {
        Ratios ratios;
        for (const NetworkConstants& network : {NetworkConstants(), fast_network()})
            for (const Case& one : uneven_cases()) ratios.add(path, one, network);
        // Of bruck's messages those with the largest block share links less than the form says.
        ratios.check(name_of(path), path == CollectivePath::bruck ? 0.85 : usual_share);
    }
}

TEST_CASE("The model stays finite for large jobs", "[pipeline][cost]") {
    for (int c = 0; c < static_cast<int>(number_of_scheduled_collectives); ++c) {
        if (!is_scheduled(static_cast<Collective>(c))) continue;
        for (int ranks : {1, 2, 100000, 1 << 30})
            for (uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40, UINT64_MAX})
                for (int nodes : {1, ranks}) {
                    const CostFacts facts =
                        facts_of(static_cast<Collective>(c), bytes, ranks, nodes);
                    const NetworkConstants network;
                    CHECK(std::isfinite(library_cost(facts, network).us));
                    CHECK((ranks == 1 || library_cost(facts, network).us > 0));
                    for (CollectivePath path : schedule_paths) {
                        if (!is_algorithm_of(facts.collective, path)) continue;
                        const double us = predicted_us(path, facts, {16, 2}, network);
                        INFO(name_of(path) << " " << ranks << " " << bytes);
                        CHECK(std::isfinite(us));
                        CHECK((ranks == 1 || us > 0));
                    }
                }
    }
}

TEST_CASE("The library's algorithms are MPICH's", "[pipeline][cost]") {
    struct Row {
        Collective collective;
        uint64_t bytes;
        int ranks;
        bool user_op;
        std::string algorithm;
    };
    using enum Collective;
    const std::vector<Row> rows = {
        {allreduce, 2048, 16, false, "recursive doubling"},
        {allreduce, 2052, 16, false, "reduce-scatter and allgather of a power of two"},
        {allreduce, 1 << 20, 16, true, "recursive doubling"},
        {reduce, 2048, 16, false, "binomial"},
        {reduce, 2052, 16, false, "reduce-scatter and gather of a power of two"},
        {reduce, 1 << 20, 16, true, "binomial"},
        {reduce_scatter, 524288, 16, false, "recursive halving"},
        {reduce_scatter, 524292, 16, false, "pairwise exchange"},
        {bcast, 12287, 16, false, "binomial"},
        {bcast, 1 << 20, 7, false, "binomial"},
        {bcast, 12288, 16, false, "scatter and recursive doubling"},
        {bcast, 12288, 12, false, "scatter and ring"},
        {bcast, 524288, 16, false, "scatter and ring"},
        {allgather, 32767, 16, false, "recursive doubling"},
        {allgather, 32768, 16, false, "ring"},
        {allgather, 6826, 12, false, "Bruck"},
        {allgather, 6827, 12, false, "ring"},
        {alltoall, 256, 8, false, "Bruck"},
        {alltoall, 256, 7, false, "all pairs at once"},
        {alltoall, 257, 8, false, "all pairs at once"},
        {alltoall, 32768, 8, false, "all pairs at once"},
        {alltoall, 32769, 8, false, "pairwise exchange"},
        {barrier, barrier_bytes, 12, false, "dissemination"},
        {gather, 1 << 20, 12, false, "binomial"},
        {scatter, 64, 12, false, "binomial"},
    };
    for (const Row& row : rows) {
        CostFacts facts = facts_of(row.collective, row.bytes, row.ranks, row.ranks);
        facts.user_op = row.user_op;
        INFO(row.bytes << " bytes " << row.ranks << " ranks");
        CHECK(library_cost(facts, {}).algorithm == row.algorithm);
    }
    CostFacts uneven = facts_of(allgather, 1 << 20, 4, 4);
    uneven.largest_bytes = 4 << 20;
    CHECK(library_cost(uneven, {}).algorithm == std::string("ring in pieces"));
}

TEST_CASE("VECMPI_NETWORK replaces the constants that it names", "[pipeline][cost]") {
    const NetworkConstants plain, given = network_constants({1500, 12500000000, -1});
    CHECK(given.latency_us == 1.5);
    CHECK(given.bytes_per_us == 12500);
    CHECK(given.overhead_us == plain.overhead_us);
    CHECK(network_constants({}).latency_us == plain.latency_us);
    CHECK(network_constants({0, -1, 0}).latency_us == 0);
    CHECK(network_constants({0, -1, 0}).overhead_us == 0);
}
