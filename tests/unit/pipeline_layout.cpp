// SPDX-License-Identifier: BSD-3-Clause
// Which ranks share a node, over tables of placements.
#include "pipeline/schedules/node_layout.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

using namespace vecmpi;
using namespace vecmpi::pipeline;

namespace {

struct Row {
    std::vector<int> node_of_rank;
    std::vector<int> order;
    int nodes;
    int most, least;
    bool uniform, by_rank;
};

}  // namespace

TEST_CASE("layout: ranks node by node", "[pipeline][layout]") {
    const Row row = GENERATE(
        Row{{0}, {0}, 1, 1, 1, true, true}, Row{{7, 7, 7}, {0, 1, 2}, 1, 3, 3, true, true},
        Row{{5, 3, 4}, {0, 1, 2}, 3, 1, 1, true, true},
        Row{{9, 9, 2, 2}, {0, 1, 2, 3}, 2, 2, 2, true, true},
        Row{{1, 0, 1, 0}, {0, 2, 1, 3}, 2, 2, 2, true, false},  // round robin
        Row{{0, 1, 2, 0, 1, 2}, {0, 3, 1, 4, 2, 5}, 3, 2, 2, true, false},
        Row{{4, 4, 4, -1, -1}, {0, 1, 2, 3, 4}, 2, 3, 2, false, true},  // the last has fewer
        Row{{2, 1, 1, 2, 3, 2}, {0, 3, 5, 1, 2, 4}, 3, 3, 1, false, false});
    const NodeLayout layout(row.node_of_rank);
    CHECK(layout.ranks() == static_cast<int>(row.order.size()));
    CHECK(layout.order() == row.order);
    CHECK(layout.nodes() == row.nodes);
    CHECK(layout.most_ranks_on_a_node() == row.most);
    CHECK(layout.least_ranks_on_a_node() == row.least);
    CHECK(layout.uniform() == row.uniform);
    CHECK(layout.order_is_by_rank() == row.by_rank);
}

TEST_CASE("layout: a rank is where its node and its place on it say", "[pipeline][layout]") {
    const std::vector<int> nodes = {30, 10, 30, 20, 10, 30, 20, 5};
    const NodeLayout layout(nodes);
    int ranks = 0;
    for (int node = 0; node < layout.nodes(); ++node) ranks += layout.ranks_on(node);
    CHECK(ranks == 8);
    for (int a = 0; a < 8; ++a) {
        CHECK(layout.rank_on(layout.node_of(a), layout.place_on_node(a)) == a);
        CHECK(layout.place_on_node(a) < layout.ranks_on(layout.node_of(a)));
        for (int b = 0; b < 8; ++b)
            CHECK((layout.node_of(a) == layout.node_of(b)) ==
                  (nodes[static_cast<size_t>(a)] == nodes[static_cast<size_t>(b)]));
    }
}

TEST_CASE("layout: every rank on a node of its own", "[pipeline][layout]") {
    for (int ranks : {1, 2, 5, 64}) {
        const NodeLayout layout(ranks);
        CHECK(layout.nodes() == ranks);
        CHECK(layout.uniform());
        CHECK(layout.order_is_by_rank());
        CHECK(layout.most_ranks_on_a_node() == 1);
        for (int r = 0; r < ranks; ++r) {
            CHECK(layout.node_of(r) == r);
            CHECK(layout.rank_on(r, 0) == r);
        }
    }
}
