// SPDX-License-Identifier: BSD-3-Clause
// Blocks of the root's vector up and down a binomial tree: Gather and Scatter. Positions of the
// tree count from the root; one with `bit` as its lowest bit has the blocks of `bit` positions, its
// own first.
#include <algorithm>
#include <bit>

#include "block_runs.hpp"
#include "phases.hpp"

namespace vecmpi::pipeline {

namespace {

class Tree {
  public:
    Tree(const Team& team, int root, const Blocks& blocks)
        : team_(team), root_(root), blocks_(blocks), me_(modulo(team.me - root, team.size)) {}

    int me() const noexcept { return me_; }
    bool is_root() const noexcept { return me_ == 0; }
    bool is_leaf() const noexcept { return me_ % 2 == 1 || me_ + 1 == team_.size; }
    int64_t block_elements() const noexcept { return at(blocks_, 0).count; }
    int rank_at(int position) const noexcept { return team_.rank((position + root_) % team_.size); }
    // Of a position below which there are `bit` others, or as many as are left.
    int64_t elements_of(int position, int bit) const noexcept {
        return std::min(bit, team_.size - position) * block_elements();
    }
    // Those of the root's vector as runs: visit(run, elements before it).
    template <class Visit>
    void each_run_of(int position, int bit, Visit visit) const {
        each_run(
            blocks_, (position + root_) % team_.size, std::min(bit, team_.size - position),
            [&](const Segment& run, int before, int) { visit(run, before * block_elements()); });
    }
    bool is_one_run(int position, int bit) const {
        int runs = 0;
        each_run_of(position, bit, [&](const Segment&, int64_t) { ++runs; });
        return runs == 1;
    }
    Place in_vector(Place vector, int position) const noexcept {
        return vector + at(blocks_, (position + root_) % team_.size).first;
    }

  private:
    const Team& team_;
    const int root_;
    const Blocks& blocks_;
    const int me_;
};

// What does not lie in one piece in the root's vector is collected, so that each message is one.
void receive_at_root(Track& track, const Tree& tree, int child, Place output) {
    const int64_t elements = tree.elements_of(child, child);
    if (tree.is_one_run(child, child))
        return track.receive(tree.in_vector(output, child), elements, tree.rank_at(child));
    const Place collected = track.scratch(elements);
    track.receive(collected, elements, tree.rank_at(child));
    tree.each_run_of(child, child, [&](const Segment& run, int64_t before) {
        track.copy(collected + before, output + run.first, run.count);
    });
}

void send_from_root(Track& track, const Tree& tree, int child, Place input) {
    const int64_t elements = tree.elements_of(child, child);
    if (tree.is_one_run(child, child))
        return track.send(tree.in_vector(input, child), elements, tree.rank_at(child));
    const Place collected = track.scratch(elements);
    tree.each_run_of(child, child, [&](const Segment& run, int64_t before) {
        track.copy(input + run.first, collected + before, run.count);
    });
    track.send(collected, elements, tree.rank_at(child));
}

}  // namespace

void binomial_gather(Track& track, const Team& team, int root, const Blocks& blocks, Place own,
                     Place output) {
    const Tree tree(team, root, blocks);
    const int p = team.size, me = tree.me();
    const int64_t elements = tree.block_elements();
    Place collected = own;
    if (tree.is_root()) {
        track.copy(own, tree.in_vector(output, 0), elements);
    } else if (!tree.is_leaf()) {
        collected = track.scratch(tree.elements_of(me, me & -me));
        track.copy(own, collected, elements);
    }
    for (int bit = 1; bit < p; bit *= 2) {
        track.next_round();
        if ((me & (bit - 1)) != 0) continue;  // gave it before
        if ((me & bit) != 0)
            track.send(collected, tree.elements_of(me, bit), tree.rank_at(me - bit));
        else if (tree.is_root())
            receive_at_root(track, tree, bit, output);
        else if (me + bit < p)
            track.receive(collected + bit * elements, tree.elements_of(me + bit, bit),
                          tree.rank_at(me + bit));
    }
}

void binomial_scatter(Track& track, const Team& team, int root, const Blocks& blocks, Place input,
                      Place own, bool in_place) {
    const Tree tree(team, root, blocks);
    const int p = team.size, me = tree.me();
    const int64_t elements = tree.block_elements();
    Place collected = own;
    for (int bit = static_cast<int>(std::bit_ceil(static_cast<unsigned>(p))) / 2; bit > 0;
         bit /= 2) {
        track.next_round();
        if ((me & (bit - 1)) != 0) continue;  // gets it later
        if ((me & bit) != 0) {
            if (!tree.is_leaf()) collected = track.scratch(tree.elements_of(me, bit));
            track.receive(collected, tree.elements_of(me, bit), tree.rank_at(me - bit));
        } else if (me + bit >= p) {
            continue;
        } else if (tree.is_root()) {
            send_from_root(track, tree, bit, input);
        } else {
            track.send(collected + bit * elements, tree.elements_of(me + bit, bit),
                       tree.rank_at(me + bit));
        }
    }
    // Others wait for what is sent.
    if (tree.is_root() && !in_place)
        track.copy(tree.in_vector(input, 0), own, elements);
    else if (!tree.is_root() && !tree.is_leaf())
        track.copy(collected, own, elements);
}

}  // namespace vecmpi::pipeline
