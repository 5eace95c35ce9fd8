// SPDX-License-Identifier: BSD-3-Clause
// The rewrite rules of layouts, and what can be asked of one.
#include "layout.hpp"

#include <algorithm>
#include <cstdlib>

namespace vecmpi::datatype {

namespace {

using Kind = Layout::Kind;

// To go to a part costs 30 to 50 ns, about what as many blocks of a table cost. So parts of up to
// this many blocks, and not more bytes, are listed block by block.
constexpr size_t most_listed = 64;
constexpr int64_t most_listed_bytes = 2048;
// ... in tables of up to this many: 1 MiB of a plan.
constexpr size_t most_flat = size_t{1} << 16;
// No plan has more of different lengths: 4 MiB.
constexpr size_t most_in_plan = size_t{1} << 18;

bool is_contiguous(const Layout& layout) { return layout.kind == Kind::dense; }

// The distance of all neighbours, where it is one.
bool have_one_distance(const std::vector<int64_t>& offsets, int64_t& distance) {
    distance = offsets[1] - offsets[0];
    for (size_t i = 2; i < offsets.size(); ++i)
        if (offsets[i] - offsets[i - 1] != distance) return false;
    return true;
}

bool is_same_but_moved(const Layout& left, const Layout& right) {
    return left.kind == right.kind && left.bytes == right.bytes && left.count == right.count &&
           left.stride == right.stride && left.offsets == right.offsets &&
           left.blocks == right.blocks && left.parts == right.parts;
}

void append_block(std::vector<kernels::Block>& blocks, const kernels::Block& block) {
    if (block.bytes == 0) return;
    if (!blocks.empty() && blocks.back().offset + blocks.back().bytes == block.offset)
        blocks.back().bytes += block.bytes;
    else
        blocks.push_back(block);
}

// False as soon as there are more than `most`.
bool append_blocks(std::vector<kernels::Block>& blocks, const Layout& layout, int64_t at,
                   size_t most) {
    const int64_t here = at + layout.offset;
    switch (layout.kind) {
        case Kind::empty:
            return true;
        case Kind::dense:
            append_block(blocks, {here, layout.bytes});
            return blocks.size() <= most;
        case Kind::strided:
            if (static_cast<size_t>(layout.count) > most) return false;
            for (int64_t i = 0; i < layout.count; ++i)
                if (!append_blocks(blocks, layout.parts[0], here + i * layout.stride, most))
                    return false;
            return true;
        case Kind::places:
            for (const int64_t offset : layout.offsets)
                if (!append_blocks(blocks, layout.parts[0], here + offset, most)) return false;
            return true;
        case Kind::blocks:
            for (const kernels::Block& block : layout.blocks)
                append_block(blocks, {here + block.offset, block.bytes});
            return blocks.size() <= most;
        case Kind::sequence:
            for (const Layout& part : layout.parts)
                if (!append_blocks(blocks, part, here, most)) return false;
            return true;
    }
    return false;
}

bool is_list(const Layout& layout) {
    return layout.kind == Kind::dense || layout.kind == Kind::blocks ||
           (layout.kind == Kind::places && is_contiguous(layout.parts[0]));
}

// The blocks of all parts, where a list holds them as well as any other form does: all are short,
// or many and short on average. Else nothing.
std::vector<kernels::Block> listed(const std::vector<Layout>& parts) {
    constexpr size_t many = 16;
    bool are_short = true;
    size_t most = std::min(most_flat, most_listed * parts.size());
    for (const Layout& part : parts) {
        if (is_list(part))
            most += std::max(part.blocks.size(), part.offsets.size());
        else
            are_short = are_short && !blocks_of(part, most_listed).empty();
    }
    std::vector<kernels::Block> blocks;
    most = std::min(most, most_in_plan);
    if (!are_short && parts.size() < many) return blocks;
    for (const Layout& part : parts)
        if (!append_blocks(blocks, part, 0, most)) return {};
    return blocks;
}

// The blocks of copies at `offsets`, where a table of them is faster than copy by copy; else
// nothing.
std::vector<kernels::Block> flattened(const Layout& layout, const std::vector<int64_t>& offsets) {
    std::vector<kernels::Block> all;
    if (layout.bytes > most_listed_bytes) return all;
    const std::vector<kernels::Block> blocks = blocks_of(layout, most_listed);
    if (blocks.size() * offsets.size() > most_flat) return all;
    all.reserve(blocks.size() * offsets.size());
    for (const int64_t offset : offsets)
        for (const kernels::Block& block : blocks)
            all.push_back({offset + block.offset, block.bytes});
    return all;
}

void append_flat(std::vector<Layout>& flat, Layout part) {
    if (part.kind == Kind::empty) return;
    if (part.kind == Kind::sequence) {
        for (Layout& inner : part.parts) append_flat(flat, moved(std::move(inner), part.offset));
        return;
    }
    const bool continues = !flat.empty() && is_contiguous(flat.back()) && is_contiguous(part) &&
                           flat.back().offset + flat.back().bytes == part.offset;
    if (continues)
        flat.back().bytes += part.bytes;
    else
        flat.push_back(std::move(part));
}

}  // namespace

bool Layout::operator==(const Layout& other) const {
    return offset == other.offset && is_same_but_moved(*this, other);
}

Layout dense(int64_t bytes) {
    Layout layout;
    if (bytes == 0) return layout;
    layout.kind = Kind::dense;
    layout.bytes = bytes;
    return layout;
}

Layout moved(Layout layout, int64_t by) {
    if (layout.kind != Kind::empty) layout.offset += by;
    return layout;
}

Layout repeated(Layout layout, int64_t count, int64_t stride) {
    if (count == 0 || layout.kind == Kind::empty) return {};
    if (count == 1) return layout;
    if (is_contiguous(layout) && stride == layout.bytes) {
        layout.bytes *= count;
        return layout;
    }
    if (layout.kind == Kind::strided && stride == layout.count * layout.stride) {
        layout.count *= count;
        layout.bytes *= count;
        return layout;
    }
    Layout row;
    row.kind = Kind::strided;
    row.offset = layout.offset;
    row.bytes = layout.bytes * count;
    row.count = count;
    row.stride = stride;
    layout.offset = 0;
    row.parts.push_back(std::move(layout));
    return row;
}

namespace {

bool are_equal(const std::vector<kernels::Block>& blocks) {
    return std::all_of(blocks.begin(), blocks.end(),
                       [&](const kernels::Block& block) { return block.bytes == blocks[0].bytes; });
}

// Blocks of one length are found faster than fewer ones of several.
bool is_better_unmerged(const std::vector<kernels::Block>& blocks,
                        const std::vector<kernels::Block>& merged) {
    constexpr size_t worth_it = 4;  // this many times fewer
    constexpr size_t many = 16;
    return merged.size() > many && blocks.size() < worth_it * merged.size() && !are_equal(merged) &&
           are_equal(blocks);
}

}  // namespace

Layout of_blocks(const std::vector<kernels::Block>& blocks) {
    std::vector<kernels::Block> merged;
    for (const kernels::Block& block : blocks) append_block(merged, block);
    if (merged.empty()) return {};
    if (is_better_unmerged(blocks, merged)) merged = blocks;
    const int64_t origin = merged[0].offset;
    if (merged.size() == 1) return moved(dense(merged[0].bytes), origin);
    Layout layout;
    layout.offset = origin;
    for (kernels::Block& block : merged) {
        block.offset -= origin;
        layout.bytes += block.bytes;
    }
    if (!are_equal(merged)) {
        layout.kind = Kind::blocks;
        layout.blocks = std::move(merged);
        return layout;
    }
    layout.kind = Kind::places;
    layout.parts.push_back(dense(merged[0].bytes));
    for (const kernels::Block& block : merged) layout.offsets.push_back(block.offset);
    int64_t distance = 0;
    if (!have_one_distance(layout.offsets, distance)) return layout;
    return moved(repeated(dense(merged[0].bytes), static_cast<int64_t>(merged.size()), distance),
                 origin);
}

Layout at_places(Layout layout, const std::vector<int64_t>& offsets) {
    if (layout.kind == Kind::empty || offsets.empty()) return {};
    if (offsets.size() == 1) return moved(std::move(layout), offsets[0]);
    if (is_contiguous(layout)) {
        std::vector<kernels::Block> blocks;
        blocks.reserve(offsets.size());
        for (const int64_t offset : offsets)
            blocks.push_back({offset + layout.offset, layout.bytes});
        return of_blocks(blocks);
    }
    int64_t distance = 0;
    if (have_one_distance(offsets, distance))
        return moved(repeated(std::move(layout), static_cast<int64_t>(offsets.size()), distance),
                     offsets[0]);
    if (const std::vector<kernels::Block> blocks = flattened(layout, offsets); !blocks.empty())
        return of_blocks(blocks);
    Layout places;
    places.kind = Kind::places;
    places.offset = layout.offset + offsets[0];
    places.bytes = layout.bytes * static_cast<int64_t>(offsets.size());
    for (const int64_t offset : offsets) places.offsets.push_back(offset - offsets[0]);
    layout.offset = 0;
    places.parts.push_back(std::move(layout));
    return places;
}

Layout joined(std::vector<Layout> parts) {
    std::vector<Layout> flat;
    for (Layout& part : parts) append_flat(flat, std::move(part));
    if (flat.empty()) return {};
    if (flat.size() == 1) return std::move(flat[0]);
    if (std::all_of(flat.begin(), flat.end(),
                    [&](const Layout& part) { return is_same_but_moved(part, flat[0]); })) {
        std::vector<int64_t> offsets;
        offsets.reserve(flat.size());
        for (const Layout& part : flat) offsets.push_back(part.offset);
        return at_places(moved(flat[0], -flat[0].offset), offsets);
    }
    if (const std::vector<kernels::Block> blocks = listed(flat); !blocks.empty())
        return of_blocks(blocks);
    Layout sequence;
    sequence.kind = Kind::sequence;
    sequence.offset = flat[0].offset;
    for (Layout& part : flat) {
        sequence.bytes += part.bytes;
        sequence.parts.push_back(moved(std::move(part), -sequence.offset));
    }
    return sequence;
}

Bounds bounds_of(const Layout& layout) {
    Bounds bounds{INT64_MAX, INT64_MIN};
    const auto include = [&](Bounds inner, int64_t at) {
        bounds.low = std::min(bounds.low, inner.low + at);
        bounds.high = std::max(bounds.high, inner.high + at);
    };
    switch (layout.kind) {
        case Kind::empty:
            return {};
        case Kind::dense:
            include({0, layout.bytes}, 0);
            break;
        case Kind::strided: {
            const Bounds inner = bounds_of(layout.parts[0]);
            for (const int64_t copy : {int64_t{0}, layout.count - 1})
                include(inner, copy * layout.stride);
            break;
        }
        case Kind::places: {
            const Bounds inner = bounds_of(layout.parts[0]);
            for (const int64_t offset : layout.offsets) include(inner, offset);
            break;
        }
        case Kind::blocks:
            for (const kernels::Block& block : layout.blocks)
                include({0, block.bytes}, block.offset);
            break;
        case Kind::sequence:
            for (const Layout& part : layout.parts) include(bounds_of(part), 0);
            break;
    }
    return {bounds.low + layout.offset, bounds.high + layout.offset};
}

std::vector<kernels::Block> blocks_of(const Layout& layout, size_t most) {
    std::vector<kernels::Block> blocks;
    if (!append_blocks(blocks, layout, 0, most)) blocks.clear();
    return blocks;
}

size_t layout_bytes(const Layout& layout) noexcept {
    size_t bytes = sizeof(Layout) + layout.offsets.size() * sizeof(int64_t) +
                   layout.blocks.size() * sizeof(kernels::Block);
    for (const Layout& part : layout.parts) bytes += layout_bytes(part);
    return bytes;
}

// ---- overlaps ----------------------------------------------------------------------------------

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

// A layout that is no row: surely without overlaps?
bool is_disjoint(const Layout& layout) {
    std::vector<Bounds> spans;
    if (layout.kind == Kind::places) {
        if (disjoint_copies(layout.parts[0], 0) == 0) return false;
        const Bounds inner = bounds_of(layout.parts[0]);
        for (const int64_t offset : layout.offsets)
            spans.push_back({inner.low + offset, inner.high + offset});
    }
    for (const kernels::Block& block : layout.blocks)
        spans.push_back({block.offset, block.offset + block.bytes});
    if (layout.kind == Kind::sequence)
        for (const Layout& part : layout.parts) {
            if (disjoint_copies(part, 0) == 0) return false;
            spans.push_back(bounds_of(part));
        }
    return are_apart(std::move(spans));
}

}  // namespace

// Rows within rows, in whatever order: sorted by distance, each must reach past all that the
// smaller ones cover. The copies are a row as well, of a length to be found out.
int64_t disjoint_copies(const Layout& layout, int64_t extent) {
    if (layout.kind == Kind::empty) return INT64_MAX;
    std::vector<Row> rows;
    const Layout* leaf = &layout;
    for (; leaf->kind == Kind::strided; leaf = &leaf->parts[0])
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
