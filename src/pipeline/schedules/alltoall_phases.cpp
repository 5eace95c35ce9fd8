// SPDX-License-Identifier: BSD-3-Clause
// The phases of Alltoall. Each block goes from one rank to one other; nothing is reduced.
#include <algorithm>

#include "block_runs.hpp"
#include "phases.hpp"

namespace vecmpi::pipeline {

void pairwise_alltoall(Track& track, const Team& team, const Blocks& blocks, Place input,
                       Place output) {
    const int p = team.size, me = team.me;
    track.copy(input + at(blocks, me).first, output + at(blocks, me).first, at(blocks, me).count);
    for (int k = 1; k < p; ++k) {
        track.next_round();
        const int to = (me + k) % p, from = modulo(me - k, p);
        track.send(input + at(blocks, to).first, at(blocks, to).count, team.rank(to));
        track.receive(output + at(blocks, from).first, at(blocks, from).count, team.rank(from));
    }
}

// In round k those whose positions add up to k (modulo p) exchange: what comes takes the place of
// what went, which was copied. A receive that waited for the send itself would wait for ever where
// both sides' sends wait for receives.
void pairwise_alltoall_in_place(Track& track, const Team& team, const Blocks& blocks, Place base) {
    constexpr int most_slots = 4;  // exchanges under way at once
    const int p = team.size, slots = std::min(most_slots, p - 1);
    const int64_t elements = at(blocks, team.me).count;
    const Place copies = track.scratch(slots * elements);
    for (int k = 0, slot = 0; k < p; ++k) {
        track.next_round();
        const int partner = modulo(k - team.me, p);
        if (partner == team.me) continue;
        const Place block = base + at(blocks, partner).first, copy = copies + slot * elements;
        track.copy(block, copy, elements);
        track.send(copy, elements, team.rank(partner));
        track.receive(block, elements, team.rank(partner));
        slot = (slot + 1) % slots;
    }
}

namespace {

// Bruck's: block i of `mine` has a way of i positions left before the rounds; in the round of a bit
// all go on whose way has it. Those are packed into one message.
class BruckRounds {
  public:
    BruckRounds(Track& track, const Team& team, int64_t elements)
        : track_(track),
          team_(team),
          elements_(elements),
          mine_(track.scratch(team.size * elements)),
          given_(track.scratch(team.size / 2 * elements)),
          arrived_(track.scratch(team.size / 2 * elements)) {}

    void round(int bit) {
        const int p = team_.size, me = team_.me;
        track_.next_round();
        const int number = each_run_with(bit, [&](int first, int before, int held) {
            track_.copy(mine_at(first), given_ + before * elements_, held * elements_);
        });
        track_.send(given_, number * elements_, team_.rank((me + bit) % p));
        track_.receive(arrived_, number * elements_, team_.rank(modulo(me - bit, p)));
        each_run_with(bit, [&](int first, int before, int held) {
            track_.copy(arrived_ + before * elements_, mine_at(first), held * elements_);
        });
    }
    Place mine_at(int i) const noexcept { return mine_ + i * elements_; }

  private:
    // visit(first of neighbouring blocks, number of blocks before these, number of them). Returns
    // the number of all.
    template <class Visit>
    int each_run_with(int bit, Visit visit) const {
        int number = 0;
        for (int first = bit; first < team_.size; first += 2 * bit) {
            const int held = std::min(bit, team_.size - first);
            visit(first, number, held);
            number += held;
        }
        return number;
    }

    Track& track_;
    const Team& team_;
    const int64_t elements_;
    const Place mine_, given_, arrived_;
};

}  // namespace

// 1. The own block first, then those of the next positions. 2. Rounds. 3. Block i came from me-i.
void bruck_alltoall(Track& track, const Team& team, const Blocks& blocks, Place input,
                    Place output) {
    const int p = team.size, me = team.me;
    const int64_t elements = at(blocks, me).count;
    BruckRounds rounds(track, team, elements);
    each_run(blocks, me, p, [&](const Segment& run, int before, int) {
        track.copy(input + run.first, rounds.mine_at(before), run.count);
    });
    for (int bit = 1; bit < p; bit *= 2) rounds.round(bit);
    for (int i = 0; i < p; ++i)
        track.copy(rounds.mine_at(i), output + at(blocks, modulo(me - i, p)).first, elements);
}

namespace {

// The same number of elements to each of the team and from it: both begin at the own position's.
// pack(to) appends the copies that put together what goes there: in the order in which it goes, or
// all ranks would begin with the same one.
template <class Pack>
void exchange(Track& track, const Team& team, Place given, Place taken, int64_t elements,
              Pack pack) {
    for (int k = 1; k < team.size; ++k) {
        track.next_round();
        const int to = (team.me + k) % team.size, from = modulo(team.me - k, team.size);
        pack(to);
        track.send(given + to * elements, elements, team.rank(to));
        track.receive(taken + from * elements, elements, team.rank(from));
    }
    pack(team.me);
    track.copy(given + team.me * elements, taken + team.me * elements, elements);
}

}  // namespace

// Blocks by (node, place). 1. By place, to the neighbours. 2. What all neighbours have for ranks at
// the own place by node, over the nodes. 3. What came from a node is by place, as the output.
void bundled_alltoall(Track& track, const Team& on_node, const Team& over_nodes,
                      const Blocks& blocks, Place input, Place output) {
    const int r = on_node.size, nodes = over_nodes.size;
    const int64_t elements = at(blocks, 0).count, all = elements * r * nodes;
    const Place by_place = track.scratch(all), of_neighbours = track.scratch(all),
                by_node = track.scratch(all);
    exchange(track, on_node, by_place, of_neighbours, nodes * elements, [&](int place) {
        for (int n = 0; n < nodes; ++n)
            track.copy(input + at(blocks, n * r + place).first,
                       by_place + (place * nodes + n) * elements, elements);
    });
    const Place arrived = by_place;  // what lay there was sent
    exchange(track, over_nodes, by_node, arrived, r * elements, [&](int node) {
        for (int i = 0; i < r; ++i)
            track.copy(of_neighbours + (i * nodes + node) * elements,
                       by_node + (node * r + i) * elements, elements);
    });
    each_run(blocks, 0, r * nodes, [&](const Segment& run, int before, int) {
        track.copy(arrived + before * elements, output + run.first, run.count);
    });
}

}  // namespace vecmpi::pipeline
