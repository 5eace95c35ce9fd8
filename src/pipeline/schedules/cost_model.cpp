// SPDX-License-Identifier: BSD-3-Clause
// The phases of the algorithms, in closed form.
#include "cost_model.hpp"

namespace vecmpi::pipeline::cost {

namespace {
// Ranks of a node are neighbours, so one message leaves it in each round. chain: the mean of the
// edges that a block passes.
Round round_of_ring(const Model& m, int ranks, double block, double reduced) noexcept {
    const Round over = m.one(block, 1, reduced), inside = m.one(block, 0, reduced);
    const double edges = m.nodes > 1 ? m.nodes : 0;
    Round mean = inside;
    mean.chain = (edges * over.chain + (ranks - edges) * inside.chain) / ranks;
    // With neighbours on the node a rank talks to another node on one side only.
    if (m.nodes > 1)
        mean.busy =
            m.on_node == 1 ? over.busy : std::max(m.wire(block), (over.busy + inside.busy) / 2);
    return mean;
}
// The slowest rank sets the pace, or the way of a block around.
Round at_pace(Round round) noexcept { return {std::max(round.chain, round.busy), round.busy}; }
}  // namespace

// Patarasuk, Yuan, JPDC 69, 2009: p-1 rounds of n/p bytes.
double ring(const Model& m, int ranks, double bytes, bool reduces, Needs memory) noexcept {
    const double block = bytes / ranks;
    const Round round = at_pace(round_of_ring(m, ranks, block, reduces ? block : 0));
    return m.first(round, memory) + (ranks - 2.0) * m.all(round, memory);
}

// The largest block passes p-1 ranks, its segments one behind the other; and each rank passes on
// the others' blocks, too.
double ring_of_blocks(const Model& m, double mean) noexcept {
    const double largest = m.blocks(mean, 1), other = m.blocks(mean, 2) - largest;
    const Round large = round_of_ring(m, m.ranks, largest, 0),
                small = at_pace(round_of_ring(m, m.ranks, other, 0));
    const double way = (m.ranks - 1.0) * large.chain + (m.segments - 1) * large.busy;
    const double others = other >= 1 ? (m.ranks - 2.0) * m.all(small, Needs::nothing) : 0;
    return std::max(way, m.first(at_pace(large), Needs::nothing) + others);
}

// Träff, arXiv 2410.14234: ceil(log2 p) rounds, of half of the vector, a quarter, ... What a round
// sends may have come two rounds before, if p is no power of two. Blocks that are cut lie apart:
// each is a message of its own.
double circulant(const Model& m, int ranks, double bytes, int sharing, bool reduces, Needs memory,
                 bool blocks_are_cut) noexcept {
    constexpr int most_rounds = 64;
    struct {
        int64_t number;
        double done;
    } rounds[most_rounds];
    int k = 0;
    double free_at = 0, last = 0;
    for (int64_t reach = ranks; reach > 1 && k < most_rounds; ++k) {
        const int64_t skip = (reach + 1) / 2, number = reach - skip;
        double ready = 0;
        for (int j = 0; j < k; ++j)
            if (rounds[j].number > skip) ready = rounds[j].done;
        const double part = m.blocks(bytes / ranks, static_cast<double>(number));
        const int crossing = sharing > 0 ? sharing : m.crossing(skip);
        const double messages = blocks_are_cut ? static_cast<double>(number) : 1;
        Round round = m.one(part, crossing, reduces ? part : 0, messages);
        // All skips that are shorter than a node lead together over one border at most.
        if (sharing == 0 && skip < m.on_node && reach <= m.on_node && m.nodes > 1)
            round.chain = std::max(round.busy, m.one(part, 0, reduces ? part : 0, messages).chain);
        const double begins = std::max(ready, free_at);
        free_at = begins + m.segments * round.busy;
        rounds[k] = {number, begins + (k == 0 ? m.first(round, memory) : m.all(round, memory))};
        last = std::max(last, rounds[k].done);
        reach = skip;
    }
    return last;
}

// Thakur et al., IJHPCA 19, 2005: ranks beyond the largest power of two hand over their vector, and
// get the result back. One way is used by the first, the other by the second.
double folds(const Model& m, double bytes) noexcept {
    if (floor_power_of_two(m.ranks) == m.ranks) return 0;
    // Pairs of neighbours: the first that lies on two nodes begins with rank on_node - 1.
    const int folded = m.ranks - floor_power_of_two(m.ranks);
    const int crossing = m.on_node % 2 == 1 && (m.on_node - 1) / 2 < folded ? 1 : 0;
    return m.all(m.one(bytes, crossing, bytes), Needs::lane) + m.one(bytes, crossing, 0).chain;
}

double halving(const Model& m, int core, double bytes, bool reduces, Needs memory,
               bool are_leaders) noexcept {
    double us = 0;
    for (int distance = core / 2; distance > 0; distance /= 2) {
        const double part = m.blocks(bytes / core, distance);
        const int crossing = are_leaders ? 1 : m.crossing_of_pairs(distance);
        const Round round = m.one(part, crossing, reduces ? part : 0);
        us += distance == 1 ? m.first(round, memory) : m.all(round, memory);
    }
    return us;
}

// A tree: the root has a child on each of ceil(log2 p) levels, the uppermost on other nodes. Where
// p is no power of two nobody is as deep as that, but the root still serves each of its children.
double binomial(const Model& m, int ranks, int on_node, double bytes, bool reduces) noexcept {
    const auto all_levels = static_cast<double>(ceil_log2(ranks));
    const double inside =
        ranks <= on_node ? all_levels : static_cast<double>(ceil_log2(floor_power_of_two(on_node)));
    const double over = all_levels - inside, reduced = reduces ? bytes : 0;
    const bool is_full = floor_power_of_two(ranks) == ranks;
    const auto levels = [&](double number, int crossing, bool are_full) noexcept {
        const Round round = m.one(bytes, crossing, reduced);
        // The root only sends, or only receives.
        const double overhead = m.one(0, crossing, 0).busy;
        const double busy = std::max(m.one(bytes, crossing, 0).busy - overhead / 2,
                                     m.one(0, crossing, reduced).busy - overhead / 2);
        const double level = m.all({round.chain, std::min(round.busy, busy)}, Needs::nothing);
        const double begins =
            are_full ? std::max(level, round.chain + (m.segments - 1) * busy) : m.segments * busy;
        return (number - 1) * level + begins;
    };
    const bool has_over = over > 0;
    return (has_over ? levels(over, 1, is_full) : 0) +
           (inside > 0 ? levels(inside, 0, is_full || has_over) : 0);
}

// From rank to rank: each receives and sends the vector once.
double chain(const Model& m, double bytes, bool reduces) noexcept {
    const double reduced = reduces ? bytes : 0;
    const Round over = m.one(bytes, 1, reduced), inside = m.one(bytes, 0, reduced);
    // The reduction ends where the root is, and passes its node twice.
    const double hops_over = m.nodes - 1.0 + (reduces && m.nodes > 1 && m.on_node > 1 ? 1.0 : 0.0);
    const double way = hops_over * over.chain + (m.ranks - 1 - hops_over) * inside.chain;
    const Round& slowest = m.nodes > 1 ? over : inside;
    const double times = reduces && m.ranks > 2 ? m.groups : 1;
    return way + std::max((times - 1) * slowest.chain, (m.segments - 1) * slowest.busy);
}

// Träff, arXiv 2312.11236: a piece leaves the root in each round, and passes ceil(log2 p) ranks, or
// one less where p is no power of two. Where it is one, the first of them are on the root's node:
// half of their messages to other nodes go while the last of them waits for the piece.
double circulant_bcast(const Model& m, double bytes) noexcept {
    const bool is_full = floor_power_of_two(m.ranks) == m.ranks;
    double inside = 0, over = 0, busy = 0, of_root = 0, rounds = 0;
    for (int64_t reach = m.ranks; reach > 1; ++rounds) {
        const int64_t skip = (reach + 1) / 2;
        const Round round = m.one(bytes, m.crossing(skip), 0);
        if (is_full && skip < m.on_node)
            inside += m.one(bytes, 0, 0).chain;
        else
            over += round.chain;
        busy += round.busy;
        of_root += m.one(bytes, std::min(1, m.crossing(skip)), 0).busy;
        reach = skip;
    }
    const double early = inside > 0 && over > 0 ? m.wire(bytes) * m.on_node / 2 : 0;
    const double way = is_full ? std::max(over, inside + over - early)
                               : std::max(of_root, over * (rounds - 1) / rounds);
    return way + (m.segments - 1) * busy / rounds;
}

namespace {
// Until a position of the tree has its blocks and those of the `ranks - 1` below it. The child on
// each level has as many as all before it, the last one those that are left. busy: of the root.
Round tree_of(const Model& m, double bytes, int ranks) noexcept {
    Round all{0, 0};
    for (int bit = 1; bit < ranks; bit += bit) {
        const int child = std::min(bit, ranks - bit);
        const bool is_over = bit >= m.on_node;
        const double part = bytes * child, overhead = m.one(0, is_over ? 1 : 0, 0).busy / 2;
        const double busy = std::max(overhead, is_over ? m.wire(part) : m.copied(part));
        const double ready = child == bit ? all.chain : tree_of(m, bytes, child).chain;
        const double passed = m.one(part, is_over ? 1 : 0, 0).chain;
        all = {std::max(all.chain + busy, ready + passed), all.busy + busy};
        if (child < bit) break;
    }
    return all;
}
}  // namespace

double tree_of_blocks(const Model& m, double bytes) noexcept {
    return m.first(tree_of(m, bytes, m.ranks), Needs::lane);
}

double dissemination(const Model& m, int ranks, int on_node) noexcept {
    double us = 0;
    for (int64_t distance = 1; distance < ranks; distance *= 2)
        us += m.one(0, ranks > on_node ? m.crossing(distance) : 0, 0).chain;
    return us;
}

// Every other rank's block between it and the root, whose link carries those of other nodes.
double with_root(const Model& m, double bytes) noexcept {
    const double block = bytes / m.ranks;
    const double wire = m.wire(block) * (m.nodes > 1 ? m.ranks - m.on_node : m.ranks - 1);
    const double busy = std::max(wire, m.overhead() * (m.ranks - 1));
    return m.one(block, 1, 0).chain + m.segments * busy - std::max(m.wire(block), m.overhead());
}

namespace {
// So many messages of `bytes` that wait for nothing, `crossing` ranks of a node at once: link and
// processor carry them all, and one is under way before and after that.
Round side_by_side(const Model& m, double bytes, double number, double crossing) noexcept {
    if (number < 1) return {0, 0};
    const Round all = m.one(number * bytes, crossing, 0, number), one = m.one(bytes, crossing, 0);
    return {all.busy + one.chain - one.busy, all.busy};
}
}  // namespace

double all_pairs(const Model& m, double bytes) noexcept {
    const double over = m.nodes > 1 ? m.ranks - m.on_node : 0, inside = m.ranks - 1 - over;
    const Round far = side_by_side(m, bytes, over, m.on_node),
                near = side_by_side(m, bytes, inside, 0);
    return std::max(m.first(far, Needs::nothing), m.first(near, Needs::nothing)) +
           m.segments * m.copied(bytes);
}

// Blocks are packed for each round and unpacked after it, and rotated before the first and after
// the last.
double bruck_rounds(const Model& m, double bytes) noexcept {
    double us = 2 * m.segments * m.copied(bytes * m.ranks);
    for (int64_t bit = 1; bit < m.ranks; bit *= 2) {
        const int64_t whole = m.ranks / (2 * bit) * bit, rest = m.ranks % (2 * bit) - bit;
        const double part = bytes * static_cast<double>(whole + std::max<int64_t>(0, rest));
        Round round = m.one(part, m.crossing(bit), 0);
        round.chain += 2 * m.copied(part);
        round.busy += 2 * m.copied(part);
        us += m.all(round, Needs::lane);
    }
    return us;
}

double bundled(const Model& m, double bytes) noexcept {
    if (!m.uniform || m.nodes == 1 || m.on_node == 1) return all_pairs(m, bytes);
    const double r = m.on_node;
    const Round near = side_by_side(m, m.nodes * bytes, r - 1, 0),
                far = side_by_side(m, r * bytes, m.nodes - 1, r);
    const double copied = 3 * m.copied(bytes * m.ranks);
    return m.first({near.chain + far.chain + copied, std::max({near.busy, far.busy, copied})},
                   Needs::lane);
}

}  // namespace vecmpi::pipeline::cost
