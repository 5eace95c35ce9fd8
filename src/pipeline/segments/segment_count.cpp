// SPDX-License-Identifier: BSD-3-Clause
// The decision whether and how often to cut. Rests only on what is equal on all ranks.
#include "segment_count.hpp"

namespace vecmpi::pipeline {

namespace {

// Two ranks reach the link's limit uncut, and cutting costs 3 to 10 %; three gain 1.15 to 1.6
// times, five 1.6 to 2.5 times.
constexpr int auto_from_ranks = 3;
constexpr uint64_t never = UINT64_MAX;
constexpr unsigned auto_segments = 4;
constexpr uint64_t most_segments = 1u << 20;

uint64_t wanted_segments(uint64_t bytes, const Settings& settings) noexcept {
    if (settings.segments != 0) return settings.segments;
    if (settings.segment_bytes == 0) return auto_segments;
    return (bytes + settings.segment_bytes - 1) / settings.segment_bytes;
}

}  // namespace

uint64_t segments_from_bytes(Collective collective) noexcept {
    return collective == Collective::allreduce ? 1u << 20 : never;
}

unsigned number_of_segments(const SegmentFacts& facts, const Settings& settings,
                            Counter* why) noexcept {
    const auto decline = [why](Counter reason) noexcept {
        *why = reason;
        return 0u;
    };
    const CollectivePath path = settings.paths_of(facts.collective).at(facts.bytes);
    if (path == CollectivePath::mpi || facts.ranks < 2) return decline(Counter::decline_setting);
    if (reduces(facts.collective) && settings.reproducible)
        return decline(Counter::decline_reproducible);
    // An algorithm of ours that cannot serve the call leaves it as if nothing were set.
    if (path != CollectivePath::segmented) {
        if (!facts.several_nodes || facts.ranks < auto_from_ranks)
            return decline(Counter::decline_layout);
        if (facts.bytes < segments_from_bytes(facts.collective))
            return decline(Counter::decline_small);
    }
    const uint64_t wanted = wanted_segments(facts.bytes, settings);
    const uint64_t possible = std::min<uint64_t>(wanted, static_cast<uint64_t>(facts.elements));
    if (possible < 2) return decline(Counter::decline_small);
    return static_cast<unsigned>(std::min<uint64_t>(possible, most_segments));
}

}  // namespace vecmpi::pipeline
