// SPDX-License-Identifier: BSD-3-Clause
// Every algorithm of every collective, the schedules of all ranks run in memory: the right result,
// the same bits, as many elements and rounds as the theory says.
#include "pipeline/schedules/algorithms.hpp"

#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <sstream>

#include "memory_executor.hpp"

using namespace vecmpi;
using namespace vecmpi::pipeline;
using fake::Element;
using fake::Random;

namespace {

struct Row {
    Collective collective;
    CollectivePath algorithm;
};

std::vector<Row> all_rows() {
    std::vector<Row> rows;
    for (size_t c = 0; c < number_of_scheduled_collectives; ++c)
        for (int a = 0; a < static_cast<int>(number_of_collective_paths); ++a)
            if (is_algorithm_of(static_cast<Collective>(c), static_cast<CollectivePath>(a)))
                rows.push_back({static_cast<Collective>(c), static_cast<CollectivePath>(a)});
    return rows;
}

bool works_on_blocks(Collective collective) {
    return collective == Collective::reduce_scatter || collective == Collective::allgather;
}

// Blocks of as many elements, one behind the other: c.count are all of them.
bool has_equal_blocks(Collective collective) {
    return collective == Collective::alltoall || collective == Collective::gather ||
           collective == Collective::scatter;
}

bool has_root(Collective collective) {
    return collective == Collective::bcast || collective == Collective::reduce ||
           collective == Collective::gather || collective == Collective::scatter;
}

// Its schedules have a number of steps that grows with the ranks, not with their logarithm.
bool is_linear(const Row& row, bool uniform) {
    if (row.collective == Collective::alltoall) return true;
    if (row.algorithm == CollectivePath::hierarchical) return uniform;
    return row.algorithm == CollectivePath::ring ||
           row.algorithm == CollectivePath::scatter_allgather;
}

struct Case {
    Row row;
    int root = 0;
    int64_t count = 0;  // elements of the vector, or of all blocks of a rank
    Blocks blocks;
    unsigned segments = 1, lanes = 2;
    bool in_place = false;
    NodeLayout layout;
    fake::Order order;

    int ranks() const { return layout.ranks(); }
    Segment block(int rank) const {
        if (!has_equal_blocks(row.collective)) return blocks[static_cast<size_t>(rank)];
        return {count / ranks() * rank, count / ranks()};
    }
    bool in_place_on(int rank) const {
        return in_place &&
               (rank == root || row.collective == Collective::bcast || !has_root(row.collective));
    }
};

std::string text(const Case& c) {
    std::ostringstream out;
    out << "collective " << static_cast<int>(c.row.collective) << " algorithm "
        << static_cast<int>(c.row.algorithm) << ", " << c.ranks() << " ranks on "
        << c.layout.nodes() << " nodes" << (c.layout.order_is_by_rank() ? "" : " not by rank")
        << ", root " << c.root << ", " << c.count << " elements, " << c.segments << " segments, "
        << c.lanes << " lanes" << (c.in_place ? ", in place" : "") << ", sends "
        << static_cast<int>(c.order.sends) << ", limit " << c.order.limit << '+'
        << c.order.more_receives << ", seed " << c.order.seed << ", blocks";
    for (const Segment& block : c.blocks) out << ' ' << block.first << '+' << block.count;
    return out.str();
}

std::vector<Schedule> schedules_of(const Case& c) {
    std::vector<Schedule> schedules;
    for (int rank = 0; rank < c.ranks(); ++rank) {
        ScheduleRequest request;
        request.collective = c.row.collective;
        request.algorithm = c.row.algorithm;
        request.rank = rank;
        request.root = c.root;
        request.count = has_equal_blocks(c.row.collective) ? c.count / c.ranks() : c.count;
        request.blocks = &c.blocks;
        request.segments = c.segments;
        request.lanes = c.lanes;
        request.in_place = c.in_place_on(rank);
        request.layout = &c.layout;
        schedules.push_back(build_schedule(request));
    }
    return schedules;
}

// ---- what goes in and what must come out

using Input = Element (*)(int rank, int64_t element);
// Sums of these tell which ranks were taken, and how often.
Element any_input(int rank, int64_t element) {
    return fake::mixed(static_cast<uint64_t>(rank) << 40 | static_cast<uint64_t>(element));
}
Element input_of_rank(int rank, int64_t) { return any_input(rank, 0); }
Element add(Element left, Element right) { return left + right; }

std::vector<Element> vector_of(int rank, Segment part, Input input) {
    std::vector<Element> result;
    for (int64_t i = 0; i < part.count; ++i) result.push_back(input(rank, part.first + i));
    return result;
}

// Only the root has a result.
bool ends_at_root(const Case& c) {
    return c.row.collective == Collective::reduce || c.row.collective == Collective::gather;
}

int64_t output_elements(const Case& c, int rank) {
    if (ends_at_root(c) && rank != c.root) return 0;
    if (c.row.collective == Collective::scatter) return c.block(rank).count;
    if (c.row.collective == Collective::reduce_scatter && !c.in_place) return c.block(rank).count;
    return c.count;
}

fake::RankMemory memory_of(const Case& c, int rank, Input input) {
    fake::RankMemory memory;
    memory.output.assign(static_cast<size_t>(output_elements(c, rank)), fake::uninitialised);
    const bool gathers =
        c.row.collective == Collective::allgather || c.row.collective == Collective::gather;
    const bool scatters = c.row.collective == Collective::scatter;
    const Segment given = gathers ? c.block(rank) : Segment{0, c.count};
    const bool gives = (c.row.collective != Collective::bcast && !scatters) || rank == c.root;
    const std::vector<Element> values =
        gives ? vector_of(rank, given, input) : std::vector<Element>{};
    if (c.row.collective == Collective::bcast || (c.in_place_on(rank) && !scatters))
        std::copy(values.begin(), values.end(), memory.output.begin() + given.first);
    else
        memory.input = values;
    return memory;
}

std::vector<Element> sums(const Case& c) {
    std::vector<Element> result(static_cast<size_t>(c.count), 0);
    for (int rank = 0; rank < c.ranks(); ++rank)
        for (int64_t i = 0; i < c.count; ++i) result[static_cast<size_t>(i)] += any_input(rank, i);
    return result;
}

// The vector that all ranks, or the root, have at the end, and reduce_scatter has a part of.
std::vector<Element> expected_vector(const Case& c) {
    if (c.row.collective == Collective::bcast || c.row.collective == Collective::scatter)
        return vector_of(c.root, {0, c.count}, any_input);
    if (c.row.collective != Collective::allgather && c.row.collective != Collective::gather)
        return sums(c);
    std::vector<Element> result(static_cast<size_t>(c.count), fake::uninitialised);  // gaps stay
    for (int rank = 0; rank < c.ranks(); ++rank)
        for (int64_t i = 0; i < c.block(rank).count; ++i)
            result[static_cast<size_t>(c.block(rank).first + i)] =
                any_input(rank, c.block(rank).first + i);
    return result;
}

// Block i of the result is what rank i has for this one.
bool is_exchanged(const Case& c, int rank, const std::vector<Element>& output) {
    const int64_t block = c.count / c.ranks();
    for (int64_t i = 0; i < c.count; ++i)
        if (output[static_cast<size_t>(i)] !=
            any_input(static_cast<int>(i / block), rank * block + i % block))
            return false;
    return true;
}

bool is_right(const Case& c, int rank, const std::vector<Element>& output,
              const std::vector<Element>& expected) {
    if (c.row.collective == Collective::alltoall) return is_exchanged(c, rank, output);
    if (ends_at_root(c) && rank != c.root) return output.empty();
    if (c.row.collective == Collective::scatter && c.in_place_on(rank))
        return std::count(output.begin(), output.end(), fake::uninitialised) == c.block(rank).count;
    const bool scatters =
        c.row.collective == Collective::reduce_scatter || c.row.collective == Collective::scatter;
    const Segment part = scatters ? c.block(rank) : Segment{0, c.count};
    return std::equal(output.begin(), output.begin() + part.count, expected.begin() + part.first);
}

struct Ran {
    std::string error;
    int rounds = 0;
    std::vector<fake::RankMemory> memories;
};

Ran run(const Case& c, Input input, fake::Operation operation) {
    Ran ran;
    for (int rank = 0; rank < c.ranks(); ++rank) ran.memories.push_back(memory_of(c, rank, input));
    const fake::Outcome outcome =
        fake::run_in_memory(schedules_of(c), ran.memories, operation, c.order);
    ran.error = outcome.error;
    ran.rounds = outcome.rounds;
    return ran;
}

// An empty string, or what went wrong.
std::string wrong_with(const Case& c) {
    const Ran ran = run(c, any_input, add);
    if (!ran.error.empty()) return ran.error + " -- " + text(c);
    const std::vector<Element> expected = expected_vector(c);
    for (int rank = 0; rank < c.ranks(); ++rank)
        if (!is_right(c, rank, ran.memories[static_cast<size_t>(rank)].output, expected))
            return "rank " + std::to_string(rank) + ": wrong result -- " + text(c);
    return {};
}

// ---- cases drawn by chance

NodeLayout any_layout(int ranks, Random& random) {
    std::vector<int> nodes(static_cast<size_t>(ranks));
    const int n = 1 + static_cast<int>(random.below(static_cast<uint64_t>(ranks)));
    const int per_node = 1 + (ranks - 1) / n;
    const auto kind = random.below(6);
    if (kind == 0) return NodeLayout(ranks);
    for (int r = 0; r < ranks; ++r) {
        int& node = nodes[static_cast<size_t>(r)];
        if (kind <= 2) node = r / per_node;  // by rank; the last node may have fewer
        if (kind == 3) node = r % n;         // round robin
        if (kind == 4) node = r == 0 ? 0 : nodes[static_cast<size_t>(r - 1)] + random.coin();
        if (kind == 5) node = static_cast<int>(random.below(static_cast<uint64_t>(n)));
    }
    return NodeLayout(nodes);
}

// Sizes: equal, from 0 to 4, or all in one. Places: one behind the other; where the collective
// allows it, too, in another order and with gaps.
Blocks any_blocks(Collective collective, int ranks, int64_t count, Random& random) {
    const auto p = static_cast<size_t>(ranks);
    Blocks blocks = equal_blocks({0, count}, ranks);
    const auto sizes = random.below(4);
    const size_t heavy = random.below(p);
    for (size_t i = 0; i < p; ++i) {
        if (sizes == 1) blocks[i].count = static_cast<int64_t>(random.below(5));
        if (sizes == 2) blocks[i].count = i == heavy ? count : 0;
    }
    std::vector<size_t> order(p);
    std::iota(order.begin(), order.end(), size_t{0});
    const bool scattered = collective == Collective::allgather && random.coin();
    if (scattered)
        for (size_t i = p - 1; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
    int64_t next = scattered ? 1 : 0;
    for (size_t i : order) {
        blocks[i].first = next;
        next += blocks[i].count + (scattered ? static_cast<int64_t>(random.below(2)) : 0);
    }
    return blocks;
}

int64_t end_of(const Blocks& blocks) {
    int64_t end = 0;
    for (const Segment& block : blocks) end = std::max(end, block.first + block.count);
    return end;
}

int64_t any_count(int ranks, Random& random) {
    const int64_t p = ranks;
    const int64_t counts[] = {0, 1, p - 1, p, p + 1, 2 * p + 1, 5, 37};
    return counts[random.below(std::size(counts))];
}

// Of alltoall each rank has a block for each: memory grows with the square of the ranks. A barrier
// has no elements.
int64_t whole_blocks(const Row& row, int ranks, int64_t count) {
    constexpr int64_t most = 40;
    if (row.collective == Collective::barrier) return 0;
    return has_equal_blocks(row.collective) ? ranks * std::min(count, most) : count;
}

Case any_case(const Row& row, int ranks, Random& random) {
    Case c{row, 0, 0, {}, 1, 2, false, any_layout(ranks, random), {}};
    c.root = static_cast<int>(random.below(static_cast<uint64_t>(ranks)));
    c.count = whole_blocks(row, ranks, any_count(ranks, random));
    if (works_on_blocks(row.collective)) {
        c.blocks = any_blocks(row.collective, ranks, c.count, random);
        c.count = end_of(c.blocks);
    }
    c.segments = std::array{1u, 2u, 3u, 7u}[random.below(4)];
    c.lanes = std::array{1u, 2u, 4u}[random.below(3)];
    c.in_place = row.collective == Collective::bcast || random.coin();
    c.order.sends = static_cast<fake::Order::Sends>(random.below(3));
    c.order.limit = std::array{1u, 2u, 4u, UINT32_MAX}[random.below(4)];
    c.order.more_receives = static_cast<uint32_t>(random.below(2));
    c.order.seed = random.below(UINT64_MAX);
    return c;
}

uint64_t first_seed() {
    const uint64_t seed = Catch::rngSeed();
    UNSCOPED_INFO("--rng-seed " << seed);
    return seed;
}

}  // namespace

TEST_CASE("schedules: all algorithms, few ranks, all segments, lanes, counts and roots",
          "[pipeline][schedules]") {
    Random random(first_seed());
    for (const Row& row : all_rows())
        for (int ranks = 1; ranks <= 9; ++ranks)
            for (unsigned segments : {1u, 2u, 3u, 7u})
                for (unsigned lanes : {1u, 2u, 4u})
                    for (int64_t count : {0, 1, ranks - 1, ranks, ranks + 1, 4 * ranks + 3}) {
                        Case c = any_case(row, ranks, random);
                        c.segments = segments;
                        c.lanes = lanes;
                        if (!works_on_blocks(row.collective))
                            c.count = whole_blocks(row, ranks, count);
                        const int roots = has_root(row.collective) ? ranks : 1;
                        for (c.root = 0; c.root < roots; ++c.root)
                            if (const std::string wrong = wrong_with(c); !wrong.empty())
                                FAIL_CHECK(wrong);
                    }
    SUCCEED();
}

TEST_CASE("schedules: all algorithms, 1 to 64 ranks, cases by chance",
          "[pipeline][schedules][long]") {
    Random random(first_seed() + 1);
    for (const Row& row : all_rows())
        for (int ranks = 1; ranks <= 64; ++ranks) {
            const int cases = is_linear(row, true) && ranks > 24 ? 3 : 12;
            for (int i = 0; i < cases; ++i)
                if (const std::string wrong = wrong_with(any_case(row, ranks, random));
                    !wrong.empty())
                    FAIL_CHECK(wrong);
        }
    SUCCEED();
}

TEST_CASE("schedules: all algorithms, many ranks", "[pipeline][schedules][long]") {
    Random random(first_seed() + 2);
    for (const Row& row : all_rows())
        for (int ranks : {127, 256, 509, 1027, 4096}) {
            Case c = any_case(row, ranks, random);
            if (ranks > (is_linear(row, c.layout.uniform()) ? 256 : 4096) &&
                (ranks > 512 || row.collective != Collective::allreduce))
                continue;
            c.segments = ranks > 300 ? 1 : 2;
            if (ranks > 300) {  // memory grows with the square
                c.in_place = true;
                c.count = whole_blocks(row, 1, has_equal_blocks(row.collective) ? ranks : 301);
                if (works_on_blocks(row.collective)) c.blocks = equal_blocks({0, c.count}, ranks);
            }
            if (const std::string wrong = wrong_with(c); !wrong.empty()) FAIL_CHECK(wrong);
        }
    SUCCEED();
}

namespace {

// Before: the i-th rank of each node has the node's sum of slice i. After: everybody's.
std::string wrong_with_slices(const Case& c) {
    const int slices = c.layout.least_ranks_on_a_node();
    const std::vector<Element> expected = sums(c);
    std::vector<Schedule> schedules;
    std::vector<fake::RankMemory> memories;
    for (int rank = 0; rank < c.ranks(); ++rank) {
        ScheduleRequest request;
        request.algorithm = CollectivePath::hierarchical;
        request.rank = rank;
        request.count = c.count;
        request.segments = c.segments;
        request.lanes = c.lanes;
        request.layout = &c.layout;
        request.slices = slices;
        schedules.push_back(build_schedule(request));
        std::vector<Element> output(static_cast<size_t>(c.count), fake::uninitialised);
        const int place = c.layout.place_on_node(rank), node = c.layout.node_of(rank);
        for (unsigned s = 0; s < c.segments && place < slices; ++s) {
            const Blocks part = equal_blocks(segment(c.count, c.segments, s), slices);
            const Segment& own = part[static_cast<size_t>(place)];
            for (int64_t i = own.first; i < own.first + own.count; ++i) {
                Element& sum = output[static_cast<size_t>(i)] = 0;
                for (int n = 0; n < c.layout.ranks_on(node); ++n)
                    sum += any_input(c.layout.rank_on(node, n), i);
            }
        }
        memories.push_back({{}, std::move(output)});
    }
    const fake::Outcome outcome = fake::run_in_memory(schedules, memories, add, c.order);
    if (!outcome.error.empty()) return outcome.error + " -- slices, " + text(c);
    for (int rank = 0; rank < c.ranks(); ++rank) {
        const int place = c.layout.place_on_node(rank);
        if (place >= slices && !schedules[static_cast<size_t>(rank)].steps.empty())
            return "rank " + std::to_string(rank) + " has nothing to do -- slices, " + text(c);
        for (unsigned s = 0; s < c.segments && place < slices; ++s) {
            const Blocks part = equal_blocks(segment(c.count, c.segments, s), slices);
            const Segment& own = part[static_cast<size_t>(place)];
            const auto& output = memories[static_cast<size_t>(rank)].output;
            if (!std::equal(output.begin() + own.first, output.begin() + own.first + own.count,
                            expected.begin() + own.first))
                return "rank " + std::to_string(rank) + ": wrong slice -- " + text(c);
        }
    }
    return {};
}

}  // namespace

TEST_CASE("schedules: slices over the nodes, whose memory does the rest", "[pipeline][schedules]") {
    Random random(first_seed() + 4);
    for (int ranks = 1; ranks <= 40; ++ranks)
        for (int i = 0; i < 10; ++i) {
            const Row row{Collective::allreduce, CollectivePath::hierarchical};
            if (const std::string wrong = wrong_with_slices(any_case(row, ranks, random));
                !wrong.empty())
                FAIL_CHECK(wrong);
        }
    SUCCEED();
}

TEST_CASE("schedules: what meets in memory waits", "[pipeline][schedules]") {
    Random random(first_seed() + 3);
    for (const Row& row : all_rows())
        for (int i = 0; i < 150; ++i) {
            const Case c = any_case(row, 1 + i % 18, random);
            for (const Schedule& schedule : schedules_of(c)) {
                if (schedule.steps.size() > 800) continue;
                if (const std::string race = fake::find_race(schedule); !race.empty())
                    FAIL_CHECK(race << " -- " << text(c));
            }
        }
    SUCCEED();
}

// ---- bits

namespace {

// Neither associative nor commutative: two results are equal only if they were put together from
// the same in the same way.
Element tree(Element left, Element right) { return fake::mixed(3 * left + fake::mixed(right)); }

Element badly_scaled(int rank, int64_t element) {
    const uint64_t hash = any_input(rank, element);
    const double exponent = static_cast<double>(hash % 90) - 45;
    const double fraction = 1 + static_cast<double>(hash >> 12) / static_cast<double>(1ULL << 52);
    return std::bit_cast<Element>((hash & 1024 ? 1 : -1) * std::ldexp(fraction, int(exponent)));
}
Element add_doubles(Element left, Element right) {
    return std::bit_cast<Element>(std::bit_cast<double>(left) + std::bit_cast<double>(right));
}

std::vector<Element> same_on_all_ranks(const Case& c, Input input, fake::Operation operation) {
    const Ran ran = run(c, input, operation);
    INFO(text(c));
    CHECK(ran.error.empty());
    for (const fake::RankMemory& memory : ran.memories)
        if (memory.output != ran.memories[0].output) FAIL_CHECK("other bits on another rank");
    return ran.memories[0].output;
}

std::vector<Element> outputs_of_all_ranks(const Case& c) {
    const Ran ran = run(c, any_input, tree);
    INFO(text(c));
    CHECK(ran.error.empty());
    std::vector<Element> result;
    for (int rank = 0; rank < c.ranks(); ++rank) {
        const auto& output = ran.memories[static_cast<size_t>(rank)].output;
        result.insert(result.end(), output.begin(), output.begin() + c.block(rank).count);
    }
    return result;
}

}  // namespace

TEST_CASE("schedules: allreduce gives all ranks the same bits, with any number of lanes",
          "[pipeline][schedules]") {
    Random random(first_seed() + 4);
    for (const Row& row : all_rows()) {
        if (row.collective != Collective::allreduce) continue;
        for (int ranks = 1; ranks <= 40; ++ranks) {
            Case c = any_case(row, ranks, random);
            c.count += ranks;
            same_on_all_ranks(c, badly_scaled, add_doubles);
            c.lanes = 1;
            const std::vector<Element> bits = same_on_all_ranks(c, any_input, tree);
            c.lanes = 4;
            c.in_place = !c.in_place;
            CHECK(same_on_all_ranks(c, any_input, tree) == bits);
        }
    }
}

TEST_CASE(
    "schedules: recursive doubling and halving give the same bits for any segments and at "
    "any place in the vector",
    "[pipeline][schedules]") {
    Random random(first_seed() + 5);
    for (int ranks = 1; ranks <= 70; ++ranks) {
        const Row doubling{Collective::allreduce, CollectivePath::recursive_doubling};
        Case c = any_case(doubling, ranks, random);
        c.count += ranks + 1;
        const std::vector<Element> bits = same_on_all_ranks(c, input_of_rank, tree);
        CHECK(std::count(bits.begin(), bits.end(), bits[0]) == c.count);
        const std::vector<Element> mixed_bits = same_on_all_ranks(c, any_input, tree);
        const std::vector<Element> sums_of_doubles =
            same_on_all_ranks(c, badly_scaled, add_doubles);
        c.row.algorithm = CollectivePath::recursive_halving;
        c.segments = 1 + c.segments % 5;
        CHECK(same_on_all_ranks(c, input_of_rank, tree) == bits);
        CHECK(same_on_all_ranks(c, any_input, tree) == mixed_bits);
        CHECK(same_on_all_ranks(c, badly_scaled, add_doubles) == sums_of_doubles);
    }
}

TEST_CASE("schedules: the bits of reduce_scatter do not depend on segments",
          "[pipeline][schedules]") {
    Random random(first_seed() + 6);
    for (const Row& row : all_rows()) {
        if (row.collective != Collective::reduce_scatter) continue;
        for (int ranks = 1; ranks <= 33; ++ranks) {
            Case c = any_case(row, ranks, random);
            c.segments = 1;
            const std::vector<Element> bits = outputs_of_all_ranks(c);
            for (c.segments = 2; c.segments <= 5; ++c.segments)
                CHECK(outputs_of_all_ranks(c) == bits);
        }
    }
}

// ---- costs

namespace {

struct Traffic {
    int64_t sent = 0, received = 0;
};

Traffic traffic(const Schedule& schedule) {
    Traffic result;
    for (const ScheduleStep& step : schedule.steps) {
        if (step.kind == ScheduleStep::Kind::send) result.sent += step.count;
        if (step.kind == ScheduleStep::Kind::receive) result.received += step.count;
    }
    return result;
}

// Of gather and scatter: a rank's blocks pass as many ranks as the bits of its place in the tree.
int64_t blocks_moved_in_tree(int ranks) {
    int64_t moved = 0;
    for (int place = 1; place < ranks; ++place)
        moved += std::popcount(static_cast<unsigned>(place));
    return moved;
}

int log2_rounded_up(int ranks) { return std::bit_width(static_cast<unsigned>(ranks - 1)); }

Case whole(const Row& row, int ranks, int64_t count) {
    if (row.collective == Collective::barrier) count = 0;
    Case c{row, 0, count, equal_blocks({0, count}, ranks), 1, 2, false, NodeLayout(ranks), {}};
    c.in_place = row.collective == Collective::bcast;
    c.order.sends = fake::Order::Sends::synchronous;
    return c;
}

// Elements that each rank sends, and receives, of n; -1: not the same for all ranks.
int64_t elements_in_theory(const Row& row, int p, int64_t n) {
    const int64_t once = n * (p - 1) / p;
    if (row.collective == Collective::alltoall) {
        if (row.algorithm != CollectivePath::bruck) return once;
        int64_t ways = 0;  // of block i as many as i has bits
        for (int i = 1; i < p; ++i) ways += std::popcount(static_cast<unsigned>(i));
        return ways * (n / p);
    }
    if (works_on_blocks(row.collective)) return once;
    if (row.collective == Collective::barrier) return 0;
    if (row.collective != Collective::allreduce) return -1;
    const bool power_of_two = std::has_single_bit(static_cast<unsigned>(p));
    if (row.algorithm == CollectivePath::recursive_doubling)
        return power_of_two ? n * log2_rounded_up(p) : -1;
    if (row.algorithm == CollectivePath::recursive_halving && !power_of_two) return -1;
    return 2 * once;
}

// Messages one behind the other.
int rounds_in_theory(const Row& row, int p) {
    const int log = log2_rounded_up(p);
    const int fold = std::has_single_bit(static_cast<unsigned>(p)) ? 0 : 2;
    const int core_log = std::bit_width(static_cast<unsigned>(p)) - 1;
    const bool there_and_back = row.collective == Collective::allreduce;
    if (row.collective == Collective::alltoall && row.algorithm != CollectivePath::bruck)
        return p > 1;  // none waits for another
    switch (row.algorithm) {
        case CollectivePath::ring:
            return (there_and_back ? 2 : 1) * (p - 1);
        case CollectivePath::chain:
            return p - 1;
        case CollectivePath::recursive_doubling:
            return core_log + fold;
        case CollectivePath::recursive_halving:
            return there_and_back ? 2 * core_log + fold : log;
        case CollectivePath::rabenseifner:
            return there_and_back ? 2 * log : log + (p > 1);
        case CollectivePath::hierarchical:
            return 2 * log;  // one rank a node
        case CollectivePath::binomial:
        case CollectivePath::bruck:
        case CollectivePath::circulant:
        case CollectivePath::dissemination:
            return log;
        default:
            return p == 1 ? 0 : p;  // scatter_allgather: one message, then the ring
    }
}

}  // namespace

TEST_CASE("schedules: elements sent and received are those of the theory",
          "[pipeline][schedules]") {
    for (const Row& row : all_rows())
        for (int ranks = 1; ranks <= 33; ++ranks)
            for (unsigned segments : {1u, 3u}) {
                Case c = whole(row, ranks, int64_t{96} * ranks);
                c.segments = segments;
                const int64_t each = elements_in_theory(row, ranks, c.count);
                int64_t all = 0;
                INFO(text(c));
                for (const Schedule& schedule : schedules_of(c)) {
                    const Traffic t = traffic(schedule);
                    all += t.received;
                    if (each < 0) continue;
                    CHECK(t.sent == each);
                    CHECK(t.received == each);
                }
                if (row.collective == Collective::gather || row.collective == Collective::scatter)
                    CHECK(all == blocks_moved_in_tree(ranks) * c.count / ranks);
                // Rooted: everybody but the root sends, or receives, the vector once. What goes
                // to the root in pieces, or comes from it so, goes there and round.
                if (row.collective == Collective::reduce || row.collective == Collective::bcast) {
                    const bool in_pieces = row.algorithm == CollectivePath::rabenseifner;
                    CHECK(all ==
                          (ranks - 1) * c.count + (in_pieces ? c.count * (ranks - 1) / ranks : 0));
                }
            }
}

TEST_CASE("schedules: messages one behind the other are those of the theory",
          "[pipeline][schedules]") {
    for (const Row& row : all_rows())
        for (int ranks = 1; ranks <= 33; ++ranks) {
            const Case c = whole(row, ranks, int64_t{2} * ranks);
            const Ran ran = run(c, any_input, add);
            INFO(text(c));
            CHECK(ran.error.empty());
            const int rounds = rounds_in_theory(row, ranks);
            CHECK(ran.rounds <= rounds);
            // Sends of one rank may run side by side: what it has from the beginning goes at once.
            const bool neighbours =
                row.algorithm == CollectivePath::ring || row.algorithm == CollectivePath::chain;
            const bool pairs = row.algorithm != CollectivePath::binomial &&
                               row.algorithm != CollectivePath::scatter_allgather &&
                               std::has_single_bit(static_cast<unsigned>(ranks));
            if (neighbours || pairs) CHECK(ran.rounds == rounds);
        }
}

namespace {
int64_t largest_segment(const Case& c) {
    if (!has_equal_blocks(c.row.collective)) return segment(c.count, c.segments, 0).count;
    return c.ranks() * segment(c.count / c.ranks(), c.segments, 0).count;
}
}  // namespace

TEST_CASE("schedules: scratch memory is at most the vector's part of each lane",
          "[pipeline][schedules]") {
    Random random(first_seed() + 7);
    for (const Row& row : all_rows())
        for (int i = 0; i < 300; ++i) {
            const Case c = any_case(row, 1 + i % 40, random);
            const bool reduce_scatter = row.collective == Collective::reduce_scatter;
            const int64_t segment_elements = reduce_scatter ? c.count : largest_segment(c);
            for (const Schedule& schedule : schedules_of(c))
                if (schedule.scratch_elements > 3 * segment_elements * c.lanes)
                    FAIL_CHECK(schedule.scratch_elements << " elements -- " << text(c));
        }
    SUCCEED();
}

TEST_CASE("schedules: only what belongs to a rank is written", "[pipeline][schedules]") {
    for (const Row& row : all_rows()) {
        Case c = whole(row, 7, 70);
        c.root = 3;
        c.segments = 2;
        const std::vector<Schedule> schedules = schedules_of(c);
        INFO(text(c));
        for (const ScheduleStep& step :
             schedules[3].steps)  // a program may read what it broadcasts
            CHECK((row.collective != Collective::bcast || step.kind == ScheduleStep::Kind::send));
        for (const Schedule& schedule : schedules)
            for (const ScheduleStep& step : schedule.steps)
                CHECK((step.kind == ScheduleStep::Kind::send || step.to.memory != Memory::input));
    }
}

TEST_CASE("schedules: a ring by nodes leaves each node once", "[pipeline][schedules]") {
    std::vector<int> round_robin;
    for (int r = 0; r < 12; ++r) round_robin.push_back(r % 3);
    for (const Row& row : all_rows()) {
        if (row.algorithm != CollectivePath::ring && row.algorithm != CollectivePath::chain)
            continue;
        Case c = whole(row, 12, 120);
        c.layout = NodeLayout(round_robin);
        c.root = 5;
        INFO(text(c));
        std::vector<std::vector<int>> leave(3);  // each node: ranks that send to other nodes
        const std::vector<Schedule> schedules = schedules_of(c);
        for (int rank = 0; rank < 12; ++rank)
            for (const ScheduleStep& step : schedules[static_cast<size_t>(rank)].steps)
                if (step.kind == ScheduleStep::Kind::send && step.peer % 3 != rank % 3)
                    leave[static_cast<size_t>(rank % 3)].push_back(rank);
        for (const std::vector<int>& senders : leave)
            CHECK(std::count(senders.begin(), senders.end(), senders.empty() ? 0 : senders[0]) ==
                  static_cast<int64_t>(senders.size()));
    }
}

namespace {

// The schedules of all ranks, each step in a round of its own where a rank sends one message at a
// time and receives one.
class OnePorted {
  public:
    explicit OnePorted(const std::vector<Schedule>& schedules) : schedules_(schedules) {
        for (const Schedule& schedule : schedules) {
            rounds_.emplace_back(schedule.steps.size(), -1);
            ports_.push_back({next(schedule, 0, Kind::send), next(schedule, 0, Kind::receive)});
        }
    }
    // Until the last message has come; -1: some never does.
    int rounds() {
        while (pass_a_message()) {
        }
        int last = -1;
        for (const std::vector<int>& of_rank : rounds_)
            for (int round : of_rank) {
                if (round < 0) return -1;
                last = std::max(last, round);
            }
        return last + 1;
    }

  private:
    using Kind = ScheduleStep::Kind;
    struct Ports {
        size_t send, receive;          // steps that come next
        int sent = -1, received = -1;  // in which rounds the last ones did
    };
    static size_t next(const Schedule& schedule, size_t step, Kind kind) {
        while (step < schedule.steps.size() && schedule.steps[step].kind != kind) ++step;
        return step;
    }
    // The first round in which a step may go: behind all that it waits for.
    int earliest(size_t rank, size_t step) const {
        int round = 0;
        const Schedule& s = schedules_[rank];
        for (size_t i = 0; i < step; ++i)
            for (uint32_t d = s.first_dependent[i]; d < s.first_dependent[i + 1]; ++d) {
                if (s.dependents[d] != step) continue;
                if (rounds_[rank][i] < 0) return -1;
                round = std::max(round, rounds_[rank][i] + 1);
            }
        return round;
    }
    bool pass_a_message() {
        for (size_t from = 0; from < schedules_.size(); ++from) {
            Ports& sender = ports_[from];
            if (sender.send == schedules_[from].steps.size()) continue;
            const auto to = static_cast<size_t>(schedules_[from].steps[sender.send].peer);
            Ports& receiver = ports_[to];
            const std::vector<ScheduleStep>& theirs = schedules_[to].steps;
            if (receiver.receive == theirs.size() ||
                theirs[receiver.receive].peer != static_cast<int>(from))
                continue;
            const int may = earliest(from, sender.send), can = earliest(to, receiver.receive);
            if (may < 0 || can < 0) continue;
            const int round = std::max({may, can, sender.sent + 1, receiver.received + 1});
            rounds_[from][sender.send] = rounds_[to][receiver.receive] = round;
            sender.sent = receiver.received = round;
            sender.send = next(schedules_[from], sender.send + 1, Kind::send);
            receiver.receive = next(schedules_[to], receiver.receive + 1, Kind::receive);
            return true;
        }
        return false;
    }

    const std::vector<Schedule>& schedules_;
    std::vector<std::vector<int>> rounds_;  // of each rank's steps
    std::vector<Ports> ports_;
};

}  // namespace

// No broadcast of n pieces takes fewer rounds.
TEST_CASE("schedules: a circulant Bcast of n pieces takes n - 1 + ceil(log2 p) rounds",
          "[pipeline][schedules]") {
    for (int ranks = 2; ranks <= 64; ++ranks)
        for (unsigned pieces : {1u, 2u, 3u, 4u, 5u, 7u, 8u, 16u, 33u}) {
            if (ranks > 20 && pieces > 8) continue;
            Case c = whole({Collective::bcast, CollectivePath::circulant}, ranks, 2 * pieces);
            c.root = ranks / 3;
            c.segments = pieces;
            const std::vector<Schedule> schedules = schedules_of(c);
            INFO(text(c));
            CHECK(OnePorted(schedules).rounds() ==
                  static_cast<int>(pieces) - 1 + log2_rounded_up(ranks));
            for (int rank = 0; rank < ranks; ++rank) {
                const Schedule& schedule = schedules[static_cast<size_t>(rank)];
                CHECK(schedule.receives == (rank == c.root ? 0 : pieces));
                CHECK(schedule.sends <= pieces - 1 + unsigned(log2_rounded_up(ranks)));
            }
        }
}

namespace {

// Which ranks have come before each step of a schedule is complete, bit by bit.
using Known = std::vector<std::vector<uint64_t>>;

// One more message's way. True where somebody got to know more.
bool spread(const std::vector<Schedule>& schedules, Known& known) {
    bool is_new = false;
    const auto learn = [&](uint64_t& knows, uint64_t more) {
        is_new |= (knows | more) != knows;
        knows |= more;
    };
    for (size_t rank = 0; rank < schedules.size(); ++rank) {
        const Schedule& s = schedules[rank];
        for (uint32_t i = 0; i < s.steps.size(); ++i) {
            for (uint32_t d = s.first_dependent[i]; d < s.first_dependent[i + 1]; ++d)
                learn(known[rank][s.dependents[d]], known[rank][i]);
            if (s.steps[i].kind != ScheduleStep::Kind::send) continue;
            const auto peer = static_cast<size_t>(s.steps[i].peer);
            const std::vector<ScheduleStep>& theirs = schedules[peer].steps;
            for (size_t j = 0; j < theirs.size(); ++j)
                if (theirs[j].kind == ScheduleStep::Kind::receive &&
                    theirs[j].peer == static_cast<int>(rank) &&
                    theirs[j].message == s.steps[i].message)
                    learn(known[peer][j], known[rank][i]);
        }
    }
    return is_new;
}

}  // namespace

TEST_CASE("schedules: nobody leaves a barrier before all have come", "[pipeline][schedules]") {
    for (int ranks = 1; ranks <= 64; ++ranks) {
        const Case c = whole({Collective::barrier, CollectivePath::dissemination}, ranks, 0);
        const std::vector<Schedule> schedules = schedules_of(c);
        Known known;
        for (int rank = 0; rank < ranks; ++rank)
            known.emplace_back(schedules[static_cast<size_t>(rank)].steps.size(),
                               uint64_t{1} << rank);
        while (spread(schedules, known)) {
        }
        const uint64_t all = ranks == 64 ? UINT64_MAX : (uint64_t{1} << ranks) - 1;
        INFO(text(c));
        for (int rank = 0; rank < ranks; ++rank) {
            const Schedule& schedule = schedules[static_cast<size_t>(rank)];
            uint64_t knows = uint64_t{1} << rank;
            for (uint64_t before : known[static_cast<size_t>(rank)]) knows |= before;
            CHECK(knows == all);
            CHECK(schedule.largest_message == 0);
            CHECK(schedule.sends == unsigned(log2_rounded_up(ranks)));
        }
    }
}
