// SPDX-License-Identifier: BSD-3-Clause
// Orders of combining against MPICH's algorithms, run by all ranks on values that remember how they
// came about. A value is the tree of its sums, written so that a + b and b + a are the same.
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

#include "pipeline/node/combining.hpp"

using namespace vecmpi;
using namespace vecmpi::pipeline::node;

namespace {

using Value = std::string;

Value leaf(int rank) { return std::to_string(rank); }
Value sum(const Value& a, const Value& b) {
    return "(" + std::min(a, b) + "+" + std::max(a, b) + ")";
}

// The same where it matters which one is on the left.
Value ordered(const Value& left, const Value& right) { return "(" + left + "," + right + ")"; }

Value combined(const CombiningOrder& order, Value (*add)(const Value&, const Value&) = sum) {
    std::vector<Value> taken;
    for (const int16_t step : order.steps) {
        if (step != CombiningOrder::combine) {
            taken.push_back(leaf(step));
            continue;
        }
        const Value right = taken.back();
        taken.pop_back();
        taken.back() = add(taken.back(), right);
    }
    REQUIRE(taken.size() == 1);
    return taken.front();
}

std::vector<Value> leaves(int ranks) {
    std::vector<Value> values;
    for (int r = 0; r < ranks; ++r) values.push_back(leaf(r));
    return values;
}

// MPICH 4, src/mpi/coll: ranks below 2 * rem give their value to a neighbour; who is left is
// numbered anew.
std::vector<Value> folded(int ranks, int core) {
    std::vector<Value> values = leaves(ranks), left;
    const int rem = ranks - core;
    for (int r = 0; r < ranks; ++r)
        if (r >= 2 * rem)
            left.push_back(values[static_cast<size_t>(r)]);
        else if (r % 2 == 1)
            left.push_back(sum(values[static_cast<size_t>(r - 1)], values[static_cast<size_t>(r)]));
    return left;
}

int power_below(int ranks) {
    int core = 1;
    while (2 * core <= ranks) core *= 2;
    return core;
}

// After the exchange with partners at these distances everyone has everything.
std::vector<Value> exchanged(std::vector<Value> values, const std::vector<int>& distances) {
    for (const int distance : distances) {
        std::vector<Value> next;
        for (int r = 0; r < static_cast<int>(values.size()); ++r)
            next.push_back(
                sum(values[static_cast<size_t>(r)], values[static_cast<size_t>(r ^ distance)]));
        values = next;
    }
    return values;
}

std::vector<int> distances(int core, bool half_first) {
    std::vector<int> result;
    for (int distance = 1; distance < core; distance *= 2) result.push_back(distance);
    if (half_first) std::reverse(result.begin(), result.end());
    return result;
}

Value binomial(int ranks, int root) {
    std::vector<Value> values;
    for (int r = 0; r < ranks; ++r) values.push_back(leaf((r + root) % ranks));
    for (int mask = 1; mask < ranks; mask *= 2)
        for (int r = 0; r < ranks; r += 2 * mask)
            if (r + mask < ranks)
                values[static_cast<size_t>(r)] =
                    ordered(values[static_cast<size_t>(r + mask)], values[static_cast<size_t>(r)]);
    return values.front();
}

Value pairwise(int ranks, int rank) {
    Value value = leaf(rank);
    for (int i = 1; i < ranks; ++i) value = sum(value, leaf((rank - i + ranks) % ranks));
    return value;
}

// MPICH 4, scan_intra_recursive_doubling.c: what each rank has at the end. A rank that nothing came
// to has an empty value.
std::vector<Value> scanned(int ranks, bool includes_own) {
    std::vector<Value> partial = leaves(ranks), results = leaves(ranks);
    if (!includes_own) results.assign(results.size(), "");
    for (int mask = 1; mask < ranks; mask <<= 1) {
        const std::vector<Value> sent = partial;
        for (int rank = 0; rank < ranks; ++rank) {
            const int other = rank ^ mask;
            if (other >= ranks) continue;
            const Value& came = sent[static_cast<size_t>(other)];
            Value& result = results[static_cast<size_t>(rank)];
            partial[static_cast<size_t>(rank)] = ordered(came, sent[static_cast<size_t>(rank)]);
            if (rank > other) result = result.empty() ? came : ordered(came, result);
        }
    }
    return results;
}

}  // namespace

TEST_CASE("prefixes are combined in the order of MPICH's Scan and Exscan", "[node]") {
    for (int ranks = 1; ranks <= 40; ++ranks)
        for (const bool includes_own : {true, false}) {
            const std::vector<Value> expected = scanned(ranks, includes_own);
            for (int rank = 0; rank < ranks; ++rank) {
                CAPTURE(ranks, rank, includes_own);
                const CombiningOrder order = order_of_scan(rank, includes_own);
                const Value& of_rank = expected[static_cast<size_t>(rank)];
                REQUIRE(order.steps.empty() == of_rank.empty());
                if (!of_rank.empty()) REQUIRE(combined(order, ordered) == of_rank);
            }
        }
}

TEST_CASE("values are combined in the order of MPICH's algorithms", "[node]") {
    for (const int ranks : {2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17, 33}) {
        INFO("ranks " << ranks);
        const int core = power_below(ranks);
        REQUIRE(combined(order_of_doubling(ranks)) ==
                exchanged(folded(ranks, core), distances(core, false)).back());
        REQUIRE(combined(order_of_halving(ranks)) ==
                exchanged(folded(ranks, core), distances(core, true)).back());
        for (const int root : {0, 1, ranks - 1})
            REQUIRE(combined(order_of_binomial_tree(ranks, root), ordered) ==
                    binomial(ranks, root));
        for (const int rank : {0, ranks / 2, ranks - 1})
            REQUIRE(combined(order_of_pairwise_exchange(ranks, rank)) == pairwise(ranks, rank));
    }
}

TEST_CASE("combining keeps no more values than it says", "[node]") {
    for (int ranks = 2; ranks <= 512; ranks = ranks * 3 / 2 + 1) {
        std::vector<unsigned char> values(static_cast<size_t>(ranks));
        for (int r = 0; r < ranks; ++r)
            values[static_cast<size_t>(r)] = static_cast<unsigned char>(r + 1);
        unsigned expected = 0;
        for (const unsigned char value : values) expected = (expected + value) & 0xffu;
        for (const CombiningOrder& order :
             {order_of_doubling(ranks), order_of_halving(ranks), order_of_binomial_tree(ranks, 1),
              order_of_pairwise_exchange(ranks, 1), order_of_scan(ranks - 1, true)}) {
            std::vector<unsigned char> kept(values_kept_for(ranks));
            unsigned char result = 0;
            combine_values(
                order, kept.data(), 1, &result,
                [&](int rank, unsigned char* spare) -> const unsigned char* {
                    if (rank % 2 == 0) return &values[static_cast<size_t>(rank)];
                    *spare = values[static_cast<size_t>(rank)];
                    return spare;
                },
                [&](const unsigned char* left, const unsigned char* right, unsigned char* into) {
                    REQUIRE((into == &result ||
                             (into >= kept.data() && into < kept.data() + kept.size())));
                    *into = static_cast<unsigned char>(*left + *right);
                });
            REQUIRE(result == expected);
        }
    }
}
