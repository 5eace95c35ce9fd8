// SPDX-License-Identifier: BSD-3-Clause
// The phases of the algorithms. Each is a loop over rounds; what waits for what is not said here.
#include "phases.hpp"

#include <algorithm>
#include <bit>

#include "block_runs.hpp"
#include "pipeline/node/api/butterfly_plan.hpp"

namespace vecmpi::pipeline {

namespace {

using node::ButterflyPlan;

// The tree of recursive doubling: each extra hands its vector to its master and gets the result.
ButterflyPlan tree_of(const Team& team) noexcept { return {team.size, team.me}; }

// What the lower of two has, it has on the left: both sides compute the same.
void reduce_in_order(Track& track, bool mine_is_lower, Place mine, Place theirs, Place to,
                     int64_t count) {
    if (mine_is_lower)
        track.reduce(mine, theirs, to, count);
    else
        track.reduce(theirs, mine, to, count);
}

// Returns where the vector of those that go on lies then.
Place fold(Track& track, const Team& team, const ButterflyPlan& plan, Segment vector, Place input,
           Place output) {
    if (plan.is_extra()) track.send(input + vector.first, vector.count, team.rank(team.me + 1));
    if (!plan.has_extra()) return input;
    const Place theirs = track.scratch(vector.count);
    track.receive(theirs, vector.count, team.rank(team.me - 1));
    track.reduce(theirs, input + vector.first, output + vector.first, vector.count);
    return output;
}

void unfold(Track& track, const Team& team, const ButterflyPlan& plan, Segment vector,
            Place output) {
    track.next_round();
    if (plan.has_extra()) track.send(output + vector.first, vector.count, team.rank(team.me - 1));
    if (plan.is_extra()) track.receive(output + vector.first, vector.count, team.rank(team.me + 1));
}

}  // namespace

std::vector<int> circulant_skips(int p) {
    std::vector<int> skips{p};
    while (skips.back() > 1) skips.push_back((skips.back() + 1) / 2);
    return skips;
}

// Round k: block me-k-1 goes on, block me-k-2 comes and is reduced.
void ring_reduce_scatter(Track& track, const Team& team, const Blocks& blocks, Place base,
                         Place result) {
    const int p = team.size, me = team.me;
    if (p == 1) return track.copy(base + at(blocks, 0).first, result, at(blocks, 0).count);
    const int64_t slot_elements = largest_block(blocks);
    // While one is sent, the next is received.
    const Place slots[2] = {track.scratch(slot_elements), track.scratch(slot_elements)};
    const int next = team.rank((me + 1) % p), previous = team.rank(modulo(me - 1, p));
    for (int k = 0; k < p - 1; ++k) {
        track.next_round();
        const Segment& sent = at(blocks, modulo(me - k - 1, p));
        const Segment& taken = at(blocks, modulo(me - k - 2, p));
        const Place slot = slots[k % 2];
        track.send(k == 0 ? base + sent.first : slots[(k + 1) % 2], sent.count, next);
        track.receive(slot, taken.count, previous);
        track.reduce(slot, base + taken.first, k == p - 2 ? result : slot, taken.count);
    }
}

namespace {

// Reduce-scatter over the circulant graph. Round with skip s, after one with skip t: blocks
// me+s..me+t-1 go to me+s, for which they are blocks me..me+t-s-1. Blocks me..me+reduced-1 lie in
// `partial`; the others are still as they were.
class CirculantReduction {
  public:
    CirculantReduction(Track& track, const Team& team, const Blocks& blocks, Place base,
                       Place partial, Place result)
        : track_(track),
          team_(team),
          blocks_(blocks),
          base_(base),
          partial_(partial),
          result_(result) {
        // The first round has the most elements, and the others take some of the same memory.
        int64_t most = 0;
        for (int i = 0; i < team.size / 2; ++i) most += at(blocks, (team.me + i) % team.size).count;
        arrived_ = track.scratch(most);
    }

    // number: blocks that go, and that come.
    void round(int skip, int number, bool is_last) {
        track_.next_round();
        const int reduced_there = std::clamp(reduced_ - skip, 0, number);
        const int to = team_.rank((team_.me + skip) % team_.size);
        give(to, partial_, skip, reduced_there);
        give(to, base_, skip + reduced_there, number - reduced_there);
        const int from = team_.rank(modulo(team_.me - skip, team_.size));
        const int64_t taken = take(from, 0, reduced_there, 0, is_last);
        take(from, reduced_there, number - reduced_there, taken, is_last);
        reduced_ = std::max(reduced_, number);
    }

  private:
    // Blocks me+first, me+first+1, ...
    void give(int to, Place memory, int first, int number) {
        each_run(blocks_, team_.me + first, number, [&](const Segment& run, int, int) {
            track_.send(memory + run.first, run.count, to);
        });
    }
    // The same, to where elements have arrived so far. Returns how many have then.
    int64_t take(int from, int first, int number, int64_t arrived, bool is_last) {
        each_run(blocks_, team_.me + first, number, [&](const Segment& run, int skipped, int held) {
            const Place theirs = arrived_ + arrived;
            arrived += run.count;
            track_.receive(theirs, run.count, from);
            // What we have reduced already ends within the run, or before, or behind.
            const int begins = first + skipped;
            const int again = std::clamp(reduced_ - begins, 0, held);
            const int64_t cut =
                again == held
                    ? run.count
                    : at(blocks_, (team_.me + begins + again) % team_.size).first - run.first;
            const Place to = is_last ? result_ : partial_ + run.first;
            track_.reduce(theirs, partial_ + run.first, to, cut);
            track_.reduce(theirs + cut, base_ + run.first + cut, to + cut, run.count - cut);
        });
        return arrived;
    }

    Track& track_;
    const Team& team_;
    const Blocks& blocks_;
    const Place base_, partial_, result_;
    Place arrived_;
    int reduced_ = 0;
};

}  // namespace

void circulant_reduce_scatter(Track& track, const Team& team, const Blocks& blocks, Place base,
                              Place partial, Place result) {
    if (team.size == 1) return track.copy(base + at(blocks, 0).first, result, at(blocks, 0).count);
    const std::vector<int> skips = circulant_skips(team.size);
    CirculantReduction reduction(track, team, blocks, base, partial, result);
    for (size_t k = 1; k < skips.size(); ++k)
        reduction.round(skips[k], skips[k - 1] - skips[k], k + 1 == skips.size());
}

// Round k: block me-k goes on, block me-k-1 comes.
void ring_allgather(Track& track, const Team& team, const Blocks& blocks, Place base,
                    int complete) {
    const int p = team.size, me = team.me;
    const int next = team.rank((me + 1) % p), previous = team.rank(modulo(me - 1, p));
    for (int k = 0; k < p - 1; ++k) {
        track.next_round();
        const Segment& sent = at(blocks, modulo(me - k, p));
        const Segment& taken = at(blocks, modulo(me - k - 1, p));
        if ((me + 1) % p != complete) track.send(base + sent.first, sent.count, next);
        if (me != complete) track.receive(base + taken.first, taken.count, previous);
    }
}

// Blocks me..me+s-1 are there; the first t-s of them go to me-s.
void circulant_allgather(Track& track, const Team& team, const Blocks& blocks, Place base) {
    const int p = team.size, me = team.me;
    const std::vector<int> skips = circulant_skips(p);
    for (size_t k = skips.size() - 1; k > 0; --k) {
        track.next_round();
        const int s = skips[k], number = skips[k - 1] - s;
        const int to = team.rank(modulo(me - s, p)), from = team.rank((me + s) % p);
        each_run(blocks, me, number, [&](const Segment& run, int, int) {
            track.send(base + run.first, run.count, to);
        });
        each_run(blocks, me + s, number, [&](const Segment& run, int, int) {
            track.receive(base + run.first, run.count, from);
        });
    }
}

void doubling_allreduce(Track& track, const Team& team, Segment vector, Place input, Place output) {
    const ButterflyPlan plan = tree_of(team);
    Place mine = fold(track, team, plan, vector, input, output);
    if (team.size == 1)
        return track.copy(input + vector.first, output + vector.first, vector.count);
    const Place theirs = track.scratch(plan.is_extra() ? 0 : vector.count);
    for (int distance = plan.core() / 2; distance > 0; distance /= 2) {
        track.next_round();
        if (plan.is_extra()) continue;
        const int peer = team.rank(plan.participant(plan.number() ^ distance));
        track.send(mine + vector.first, vector.count, peer);
        track.receive(theirs, vector.count, peer);
        reduce_in_order(track, (plan.number() & distance) == 0, mine + vector.first, theirs,
                        output + vector.first, vector.count);
        mine = output;
    }
    unfold(track, team, plan, vector, output);
}

// Halving: of blocks [first, first + number) the half without `id` goes to the partner.
void halving_allreduce(Track& track, const Team& team, Segment vector, Place input, Place output) {
    const ButterflyPlan plan = tree_of(team);
    Place mine = fold(track, team, plan, vector, input, output);
    if (team.size == 1)
        return track.copy(input + vector.first, output + vector.first, vector.count);
    const Blocks blocks = equal_blocks(vector, plan.core());
    const auto run = [&](int first, int number) {
        const Segment &begin = at(blocks, first), &end = at(blocks, first + number - 1);
        return Segment{begin.first, end.first + end.count - begin.first};
    };
    const Place theirs = track.scratch(plan.is_extra() ? 0 : run(0, plan.core() / 2).count);
    for (int distance = plan.core() / 2; distance > 0; distance /= 2) {
        track.next_round();
        if (plan.is_extra()) continue;
        const int peer = team.rank(plan.participant(plan.number() ^ distance));
        const int kept_first = plan.number() & ~(distance - 1);
        const Segment kept = run(kept_first, distance),
                      given = run(kept_first ^ distance, distance);
        track.send(mine + given.first, given.count, peer);
        track.receive(theirs, kept.count, peer);
        reduce_in_order(track, (plan.number() & distance) == 0, mine + kept.first, theirs,
                        output + kept.first, kept.count);
        mine = output;
    }
    for (int distance = 1; distance < plan.core(); distance *= 2) {
        track.next_round();
        if (plan.is_extra()) continue;
        const int peer = team.rank(plan.participant(plan.number() ^ distance));
        const int held_first = plan.number() & ~(distance - 1);
        const Segment held = run(held_first, distance),
                      missing = run(held_first ^ distance, distance);
        track.send(output + held.first, held.count, peer);
        track.receive(output + missing.first, missing.count, peer);
    }
    unfold(track, team, plan, vector, output);
}

// The chain begins behind the root and ends with it.
void chain_reduce(Track& track, const Team& team, int root, Segment vector, Place input,
                  Place output) {
    const int p = team.size, place = modulo(team.me - root - 1, p);
    if (p == 1) return track.copy(input + vector.first, output + vector.first, vector.count);
    const int next = team.rank((team.me + 1) % p), previous = team.rank(modulo(team.me - 1, p));
    if (place == 0) return track.send(input + vector.first, vector.count, next);
    const bool ends = place == p - 1;
    const Place theirs = track.scratch(vector.count);
    track.receive(theirs, vector.count, previous);
    track.reduce(theirs, input + vector.first, ends ? output + vector.first : theirs, vector.count);
    if (!ends) track.send(theirs, vector.count, next);
}

void binomial_reduce(Track& track, const Team& team, int root, Segment vector, Place input,
                     Place output) {
    const int p = team.size, v = modulo(team.me - root, p);  // the root is 0 of the tree
    if (p == 1) return track.copy(input + vector.first, output + vector.first, vector.count);
    const auto rank_of = [&](int other) { return team.rank((other + root) % p); };
    Place mine = input + vector.first;
    const bool has_children = v % 2 == 0 && v + 1 < p;
    const Place theirs = has_children ? track.scratch(vector.count) : Place{};
    const Place sum = v == 0         ? output + vector.first
                      : has_children ? track.scratch(vector.count)
                                     : Place{};
    for (int bit = 1; bit < p; bit *= 2) {
        track.next_round();
        const bool sent = (v & (bit - 1)) != 0;
        if (!sent && (v & bit) != 0) track.send(mine, vector.count, rank_of(v - bit));
        if (sent || (v & bit) != 0 || v + bit >= p) continue;
        track.receive(theirs, vector.count, rank_of(v + bit));
        track.reduce(mine, theirs, sum, vector.count);
        mine = sum;
    }
}

void gather_to_root(Track& track, const Team& team, int root, const Blocks& blocks, Place own,
                    Place output) {
    track.next_round();
    if (team.me != root) return track.send(own, at(blocks, team.me).count, team.rank(root));
    for (int i = 1; i < team.size; ++i) {
        const int sender = (root + i) % team.size;
        track.receive(output + at(blocks, sender).first, at(blocks, sender).count,
                      team.rank(sender));
    }
}

void scatter_from_root(Track& track, const Team& team, int root, const Blocks& blocks, Place base) {
    track.next_round();
    const Segment& own = at(blocks, team.me);
    if (team.me != root) return track.receive(base + own.first, own.count, team.rank(root));
    for (int i = 1; i < team.size; ++i) {
        const int receiver = (root + i) % team.size;
        track.send(base + at(blocks, receiver).first, at(blocks, receiver).count,
                   team.rank(receiver));
    }
}

void chain_bcast(Track& track, const Team& team, int root, Segment vector, Place base) {
    const int p = team.size, place = modulo(team.me - root, p);
    if (place != 0)
        track.receive(base + vector.first, vector.count, team.rank(modulo(team.me - 1, p)));
    if (place != p - 1) track.send(base + vector.first, vector.count, team.rank((team.me + 1) % p));
}

void binomial_bcast(Track& track, const Team& team, int root, Segment vector, Place base) {
    const int p = team.size, v = modulo(team.me - root, p);
    const auto rank_of = [&](int other) { return team.rank((other + root) % p); };
    for (int bit = static_cast<int>(std::bit_ceil(static_cast<unsigned>(p))) / 2; bit > 0;
         bit /= 2) {
        track.next_round();
        if ((v & (bit - 1)) != 0) continue;  // gets it later
        if ((v & bit) != 0) {
            track.receive(base + vector.first, vector.count, rank_of(v - bit));
        } else if (v + bit < p) {
            track.send(base + vector.first, vector.count, rank_of(v + bit));
        }
    }
}

// A signal tells of all ranks that the sender knows to have come: 1, 2, 4, ...
void dissemination_barrier(Track& track, const Team& team) {
    for (int distance = 1; distance < team.size; distance *= 2) {
        track.next_round();
        track.signal(team.rank((team.me + distance) % team.size));
        track.await_signal(team.rank(modulo(team.me - distance, team.size)));
    }
}

}  // namespace vecmpi::pipeline
