// SPDX-License-Identifier: BSD-3-Clause
// Who gives and who takes in each flow of blocks.
#include "pipeline/node/movement.hpp"

#include <catch2/catch.hpp>

using namespace vecmpi::pipeline::node;

TEST_CASE("blocks move between a root and the others, or between all") {
    struct Row {
        Flow flow;
        bool has_parts, root_gives, root_takes, other_gives, other_takes;
    };
    const Row row = GENERATE(Row{Flow::to_root, false, false, true, true, false},
                             Row{Flow::from_root, true, true, false, false, true},
                             Row{Flow::to_all, false, true, true, true, true},
                             Row{Flow::pairs, true, true, true, true, true});
    const int root = GENERATE(0, 2);
    CAPTURE(static_cast<int>(row.flow), root);
    const BlockMovement movement{row.flow, root};
    CHECK(movement.has_parts() == row.has_parts);
    CHECK(movement.gives(root) == row.root_gives);
    CHECK(movement.takes(root) == row.root_takes);
    CHECK(movement.gives(root + 1) == row.other_gives);
    CHECK(movement.takes(root + 1) == row.other_takes);
}
