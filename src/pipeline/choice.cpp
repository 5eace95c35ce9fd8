// SPDX-License-Identifier: BSD-3-Clause
// The choice between the library, its segments and our schedules. Rests only on what is equal on
// all ranks.
#include "choice.hpp"

#include <algorithm>

#include "pipeline/segments/segment_count.hpp"

namespace vecmpi::pipeline {

namespace {

// In the order of enum Collective.
struct Rule {
    // Below these the library's own is as fast or faster. Two ranks reach the link's limit by the
    // library, too: we win only where arithmetic overlaps, 1.03 to 1.07 times over 1 Gbit/s.
    uint64_t auto_from_bytes, two_ranks_from_bytes;
};
constexpr uint64_t never = UINT64_MAX;

constexpr Rule rules[] = {
    {4096, 4 << 20}, {4096, 4 << 20}, {4096, never}, {4096, never},
    {1024, never},   {32768, never},  {0, never},  // barrier
    {never, never},  {never, never},               // scan, exscan
    {1024, never},   {1024, never},                // gather, scatter
};
static_assert(sizeof(rules) / sizeof(rules[0]) == number_of_scheduled_collectives);

constexpr double must_gain = 1.05;  // the model is no better than that, by far
// One more piece of a circulant Bcast is one more round, whatever the number of ranks.
constexpr unsigned tried_segments[] = {1, 2, 4, 8, 16, 32, 64};
constexpr unsigned most_tried_segments = 16;  // of the others
constexpr uint64_t least_segment_bytes = 32768, least_block_bytes = 16384;
constexpr uint64_t most_segments = 4096;    // schedules number them by 16 bits
constexpr uint64_t most_blocks = 1u << 18;  // of a schedule: its steps take memory

// Recursive halving sends less, in more messages: from here on it wins, whatever the network.
constexpr uint64_t halving_from_bytes = 16384;
constexpr int halving_from_ranks = 4;  // with fewer there is nothing to halve

uint64_t settled_segments(uint64_t bytes, const Settings& settings) noexcept {
    if (settings.segments != 0) return settings.segments;
    if (settings.segment_bytes == 0) return 0;
    return bytes / settings.segment_bytes + (bytes % settings.segment_bytes != 0);
}

// What is cut into segments: the vector, or the largest block.
uint64_t bytes_to_cut(const ChoiceFacts& facts) noexcept {
    return std::max(facts.bytes, facts.largest_bytes);
}

bool has_tree_of_blocks(const ChoiceFacts& facts) noexcept {
    return facts.collective == Collective::gather || facts.collective == Collective::scatter;
}

// A segment that is cut further has pieces worth a message, and the schedule stays short.
bool is_sensible(CollectivePath algorithm, const ChoiceFacts& facts, unsigned segments) noexcept {
    // Nobody waits for a part of a block, and the root's link is never idle.
    if (algorithm == CollectivePath::pairwise || has_tree_of_blocks(facts)) return false;
    if (algorithm != CollectivePath::circulant && segments > most_tried_segments) return false;
    const auto blocks = static_cast<uint64_t>(blocks_of_segment(algorithm, facts));
    const uint64_t bytes = bytes_to_cut(facts) / segments;
    return bytes >= least_segment_bytes && bytes / blocks >= least_block_bytes &&
           segments * blocks <= most_blocks;
}

struct Best {
    CollectivePath path = CollectivePath::mpi;
    unsigned segments = 1;
    double us = 0;
};

Best best_segments(CollectivePath algorithm, const ChoiceFacts& facts,
                   const Settings& settings) noexcept {
    const NetworkConstants network = network_constants(settings.network);
    const auto us = [&](unsigned segments) noexcept {
        return predicted_us(algorithm, facts, {segments, facts.lanes}, network);
    };
    const auto elements = static_cast<uint64_t>(std::max<int64_t>(1, facts.elements));
    if (const uint64_t settled = settled_segments(bytes_to_cut(facts), settings); settled != 0) {
        const auto segments = static_cast<unsigned>(std::min({settled, elements, most_segments}));
        return {algorithm, segments, us(segments)};
    }
    Best best{algorithm, 1, us(1)};
    for (unsigned segments : tried_segments) {
        if (segments > elements || !is_sensible(algorithm, facts, segments)) break;
        if (const double time = us(segments); time < best.us) best = {algorithm, segments, time};
    }
    return best;
}

// What the model does not know, measured with 3 to 5 hosts at 500 Mbit/s. Where the partner changes
// from round to round, each connection begins anew to fill the link: rabenseifner took 1.2 to 1.3
// times as long as the ring from 4 MiB on (4 hosts: from 16 MiB on), no longer up to 2 MiB. A
// program that computes meanwhile loses more by the rounds of a ring. With 4 hosts and 4 MiB the
// library took 1.2 (Bcast) to 2.1 times (Allreduce) as long as the bytes that it sends.
constexpr double changing_partners = 1.25, library = 1.25;
constexpr uint64_t changing_partners_from_bytes = 4 << 20, library_from_bytes = 1 << 20;

bool keeps_partners(CollectivePath path) noexcept {
    return path == CollectivePath::ring || path == CollectivePath::chain ||
           path == CollectivePath::scatter_allgather;
}

uint64_t bytes_of_vector(const ChoiceFacts& facts) noexcept {
    return facts.collective == Collective::allgather || facts.collective == Collective::alltoall
               ? facts.bytes * static_cast<uint64_t>(facts.ranks)
               : facts.bytes;
}

double handicap(CollectivePath path, const ChoiceFacts& facts) noexcept {
    // Both run the same tree: neither is known to be the faster.
    if (has_tree_of_blocks(facts)) return 1;
    // Nobody has measured it yet.
    if (path == CollectivePath::circulant) return changing_partners;
    const uint64_t bytes = bytes_of_vector(facts);
    if (path == CollectivePath::mpi) return bytes < library_from_bytes ? 1 : library;
    // The partners of an Alltoall change whatever the way.
    const bool shows = bytes >= changing_partners_from_bytes && !facts.nonblocking &&
                       facts.collective != Collective::alltoall;
    return shows && !keeps_partners(path) ? changing_partners : 1;
}

// As the collective's setting says, where it has one.
CollectivePath path_set(Collective collective, uint64_t bytes, const Settings& settings) noexcept {
    return has_setting(collective) ? settings.paths_of(collective).at(bytes)
                                   : CollectivePath::automatic;
}

// Under VECMPI_REPRODUCIBLE: the one that the user named, if it keeps the order of summation.
CollectivePath algorithm_in_order(CollectivePath named, const ChoiceFacts& facts) noexcept {
    const bool keeps_order =
        named == CollectivePath::recursive_doubling || named == CollectivePath::recursive_halving;
    return keeps_order && facts.collective == Collective::allreduce
               ? named
               : reproducible_algorithm(facts.collective, facts.bytes, facts.ranks);
}

uint64_t auto_from_bytes(const ChoiceFacts& facts) noexcept {
    // MPICH's MPI_Ialltoall fills the link better than its MPI_Alltoall, and than ours.
    if (facts.collective == Collective::alltoall && facts.nonblocking) return never;
    const Rule& rule = rules[static_cast<size_t>(facts.collective)];
    return facts.ranks == 2 ? rule.two_ranks_from_bytes : rule.auto_from_bytes;
}

// An Alltoall has nothing to bundle unless each node has several ranks: it would be pairwise.
bool has_a_point(CollectivePath path, const ChoiceFacts& facts) noexcept {
    return path != CollectivePath::hierarchical || facts.collective != Collective::alltoall ||
           (facts.uniform && facts.most_ranks_on_a_node > 1);
}

bool may_be_cut(const ChoiceFacts& facts, const Settings& settings) noexcept {
    Counter why{};
    return !facts.nonblocking && has_setting(facts.collective) &&
           number_of_segments(
               {facts.collective, facts.bytes, facts.elements, facts.ranks, facts.spans_world},
               settings, &why) != 0;
}

// A trial's first round serves one call by each. What the model is sure of is not tried, unless the
// loser costs no more than that.
bool is_open(double ours_us, double library_us) noexcept {
    constexpr double sure = 2.5, most_lost_us = 5000;
    const double more = std::max(ours_us, library_us), less = std::min(ours_us, library_us);
    return more < sure * less || more - less < most_lost_us;
}

Best best_algorithm(const ChoiceFacts& facts, const Settings& settings) noexcept {
    Best best;
    for (CollectivePath path : schedule_paths) {
        if (!is_algorithm_of(facts.collective, path) || !has_a_point(path, facts)) continue;
        Best other = best_segments(path, facts, settings);
        other.us *= handicap(path, facts);
        if (best.path == CollectivePath::mpi || other.us < best.us) best = other;
    }
    return best;
}

}  // namespace

unsigned segments_for(CollectivePath algorithm, const ChoiceFacts& facts,
                      const Settings& settings) noexcept {
    return best_segments(algorithm, facts, settings).segments;
}

CollectivePath reproducible_algorithm(Collective collective, uint64_t bytes, int ranks) noexcept {
    switch (collective) {
        case Collective::reduce:
            return CollectivePath::binomial;
        case Collective::reduce_scatter:
            return CollectivePath::ring;
        default:
            break;
    }
    const bool halves = bytes >= halving_from_bytes && ranks >= halving_from_ranks;
    return halves ? CollectivePath::recursive_halving : CollectivePath::recursive_doubling;
}

bool may_be_scheduled(Collective collective, uint64_t bytes, bool several_nodes,
                      const Settings& settings, Counter* why) noexcept {
    const auto decline = [why](Counter reason) noexcept {
        *why = reason;
        return false;
    };
    if (bytes == 0) return decline(Counter::decline_small);
    if (reduces(collective) && settings.reproducible) return true;
    const CollectivePath path = path_set(collective, bytes, settings);
    if (is_algorithm_of(collective, path)) return true;
    if (path != CollectivePath::automatic) return decline(Counter::decline_setting);
    if (!several_nodes) return decline(Counter::decline_layout);
    return bytes >= rules[static_cast<size_t>(collective)].auto_from_bytes ||
           decline(Counter::decline_small);
}

bool may_be_scheduled_at_some_size(Collective collective, bool several_nodes,
                                   const Settings& settings) noexcept {
    return several_nodes || (reduces(collective) && settings.reproducible) ||
           (has_setting(collective) && !settings.paths_of(collective).ranges.empty());
}

uint64_t librarys_below(Collective collective, const Settings& settings) noexcept {
    const bool is_set = has_setting(collective) && !settings.paths_of(collective).ranges.empty();
    if (is_set || (reduces(collective) && settings.reproducible)) return 0;
    return std::min(rules[static_cast<size_t>(collective)].auto_from_bytes,
                    segments_from_bytes(collective));
}

Choice choose(const ChoiceFacts& facts, const Settings& settings) noexcept {
    Choice choice;
    choice.library_us = library_cost(facts, network_constants(settings.network)).us *
                        handicap(CollectivePath::mpi, facts);
    const auto decline = [&choice](Counter why) noexcept {
        choice.why = why;
        return choice;
    };
    const auto take = [&choice](const Best& best) noexcept {
        choice.path = best.path;
        choice.segments = best.segments;
        choice.predicted_us = best.us;
        return choice;
    };
    const bool is_reduction = reduces(facts.collective);
    const CollectivePath path = path_set(facts.collective, facts.bytes, settings);
    if (facts.ranks < 2) return decline(Counter::decline_setting);
    if (facts.bytes == 0 || facts.elements == 0) return decline(Counter::decline_small);
    if (is_reduction && !facts.commutative) {
        if (path == CollectivePath::mpi) return decline(Counter::decline_setting);
        // The library's own segments are reduced in the order of the ranks.
        const bool keeps_order = path == CollectivePath::segmented && !settings.reproducible;
        return keeps_order ? take({path, 1, 0}) : decline(Counter::decline_order);
    }
    if (is_reduction && settings.reproducible)
        return take(best_segments(algorithm_in_order(path, facts), facts, settings));
    if (is_algorithm_of(facts.collective, path)) return take(best_segments(path, facts, settings));
    if (path == CollectivePath::segmented) return take({path, 1, 0});
    if (path == CollectivePath::mpi) return decline(Counter::decline_setting);
    const Best best = best_algorithm(facts, settings);
    choice.predicted_us = best.us;
    choice.segments = best.segments;
    if (facts.nodes < 2) return decline(Counter::decline_layout);
    if (facts.bytes < auto_from_bytes(facts)) return decline(Counter::decline_small);
    choice.rival = best.path;
    choice.may_be_cut = may_be_cut(facts, settings);
    choice.is_open = is_open(best.us, choice.library_us) && !facts.user_op;
    return best.us * must_gain > choice.library_us ? decline(Counter::decline_slower) : take(best);
}

}  // namespace vecmpi::pipeline
