// SPDX-License-Identifier: BSD-3-Clause
// The decision whether and how often to cut. Rests only on what is equal on all ranks.
#include "segments.hpp"

namespace vecmpi::pipeline {

namespace {

struct Rule {
    Segmented collective;
    const PathRanges Settings::*paths;
    bool reduces;              // VECMPI_REPRODUCIBLE keeps it whole
    uint64_t auto_from_bytes;  // on several nodes
};

constexpr uint64_t never = UINT64_MAX;
// Two ranks reach the link's limit uncut, and cutting costs 3 to 10 %; three gain 1.15 to 1.6
// times, five 1.6 to 2.5 times (docs/segments.md).
constexpr int auto_from_ranks = 3;

// In the order of enum Segmented.
constexpr Rule rules[] = {
    {Segmented::allreduce, &Settings::allreduce, true, 1u << 20},
    {Segmented::bcast, &Settings::bcast, false, never},
    {Segmented::reduce, &Settings::reduce, true, never},
    {Segmented::reduce_scatter, &Settings::reduce_scatter, true, never},
    {Segmented::allgather, &Settings::allgather, false, never},
};

constexpr unsigned auto_segments = 4;
constexpr uint64_t most_segments = 1u << 20;

uint64_t wanted_segments(uint64_t bytes, const Settings& settings) noexcept {
    if (settings.segments != 0) return settings.segments;
    if (settings.segment_bytes == 0) return auto_segments;
    return (bytes + settings.segment_bytes - 1) / settings.segment_bytes;
}

}  // namespace

unsigned number_of_segments(const SegmentFacts& facts, const Settings& settings,
                            Counter* why) noexcept {
    const Rule& rule = rules[static_cast<size_t>(facts.collective)];
    const auto decline = [why](Counter reason) noexcept {
        *why = reason;
        return 0u;
    };
    const CollectivePath path = (settings.*rule.paths).at(facts.bytes);
    if (path == CollectivePath::mpi || facts.ranks < 2) return decline(Counter::decline_setting);
    if (rule.reduces && settings.reproducible) return decline(Counter::decline_reproducible);
    // An algorithm of ours that cannot serve the call leaves it as if nothing were set.
    if (path != CollectivePath::segmented) {
        if (!facts.several_nodes || facts.ranks < auto_from_ranks)
            return decline(Counter::decline_layout);
        if (facts.bytes < rule.auto_from_bytes) return decline(Counter::decline_small);
    }
    const uint64_t wanted = wanted_segments(facts.bytes, settings);
    const uint64_t possible = std::min<uint64_t>(wanted, static_cast<uint64_t>(facts.elements));
    if (possible < 2) return decline(Counter::decline_small);
    return static_cast<unsigned>(std::min<uint64_t>(possible, most_segments));
}

}  // namespace vecmpi::pipeline
