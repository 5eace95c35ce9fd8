// SPDX-License-Identifier: BSD-3-Clause
// Whether copies of a type map share bytes. Pure. It may say so of copies that share none, and
// never the reverse.
#include <algorithm>
#include <cstdlib>

#include "type_map.hpp"

namespace vecmpi::datatype {

namespace {

struct Row {
    int64_t distance, count;
};

bool are_apart(std::vector<Bounds> spans) {
    const auto is_lower = [](const Bounds& left, const Bounds& right) {
        return left.low < right.low;
    };
    if (!std::is_sorted(spans.begin(), spans.end(), is_lower))
        std::sort(spans.begin(), spans.end(), is_lower);
    for (size_t i = 1; i < spans.size(); ++i)
        if (spans[i].low < spans[i - 1].high) return false;
    return true;
}

// A type map that is not strided: do its parts surely share no byte?
bool is_disjoint(const TypeMap& map) {
    std::vector<Bounds> spans;
    if (map.kind == TypeMap::Kind::places) {
        if (disjoint_copies(map.parts[0], 0) == 0) return false;
        const Bounds inner = bounds_of(map.parts[0]);
        for (const int64_t offset : map.offsets)
            spans.push_back({inner.low + offset, inner.high + offset});
    }
    for (const kernels::Block& block : map.blocks)
        spans.push_back({block.offset, block.offset + block.bytes});
    if (map.kind == TypeMap::Kind::sequence)
        for (const TypeMap& part : map.parts) {
            if (disjoint_copies(part, 0) == 0) return false;
            spans.push_back(bounds_of(part));
        }
    return are_apart(std::move(spans));
}

}  // namespace

// Rows may lie within each other in any order. Sorted by distance, the neighbours in each must be
// at least as far apart as all that the rows before it cover. The copies are one more row, and its
// length is the answer.
int64_t disjoint_copies(const TypeMap& map, int64_t extent) {
    if (map.kind == TypeMap::Kind::empty) return INT64_MAX;
    std::vector<Row> rows;
    const TypeMap* leaf = &map;
    for (; leaf->kind == TypeMap::Kind::strided; leaf = &leaf->parts[0])
        rows.push_back({std::abs(leaf->stride), leaf->count});
    if (!is_disjoint(*leaf)) return 0;
    std::sort(rows.begin(), rows.end(),
              [](const Row& left, const Row& right) { return left.distance < right.distance; });
    const int64_t step = std::abs(extent);
    const Bounds bounds = bounds_of(*leaf);
    int64_t covered = bounds.high - bounds.low;  // by one copy's rows so far
    int64_t copies = INT64_MAX;
    bool fits = false;
    for (const Row& row : rows) {
        if (row.distance < covered) return 0;
        if (row.distance > step) {  // all copies lie between two of this row
            fits = copies == INT64_MAX ? step >= covered : fits;
            const int64_t room = fits ? (row.distance - covered) / step + 1 : 1;
            copies = std::min(copies, room);
        }
        covered += (row.count - 1) * row.distance;
    }
    if (copies != INT64_MAX) return copies;
    return step >= covered ? INT64_MAX : 1;
}

}  // namespace vecmpi::datatype
