// SPDX-License-Identifier: BSD-3-Clause
// The rewrite rules of type maps, their bounds and their blocks.
#include "type_map.hpp"

#include <algorithm>
#include <cstdlib>

namespace vecmpi::datatype {

namespace {

using Kind = TypeMap::Kind;

// A part costs 30 to 50 ns to go to, about as much as this many blocks of a table. So parts of no
// more blocks and bytes than these are listed block by block.
constexpr size_t most_listed = 64;
constexpr int64_t most_listed_bytes = 2048;
// Blocks in such a table: 1 MiB of a plan.
constexpr size_t most_flat = size_t{1} << 16;
// Blocks of different lengths in a plan: 4 MiB.
constexpr size_t most_in_plan = size_t{1} << 18;

bool is_contiguous(const TypeMap& map) { return map.kind == Kind::dense; }

// False where neighbours have several distances.
bool have_one_distance(const std::vector<int64_t>& offsets, int64_t& distance) {
    distance = offsets[1] - offsets[0];
    for (size_t i = 2; i < offsets.size(); ++i)
        if (offsets[i] - offsets[i - 1] != distance) return false;
    return true;
}

bool is_same_but_moved(const TypeMap& left, const TypeMap& right) {
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
bool append_blocks(std::vector<kernels::Block>& blocks, const TypeMap& map, int64_t at,
                   size_t most) {
    const int64_t here = at + map.offset;
    switch (map.kind) {
        case Kind::empty:
            return true;
        case Kind::dense:
            append_block(blocks, {here, map.bytes});
            return blocks.size() <= most;
        case Kind::strided:
            if (static_cast<size_t>(map.count) > most) return false;
            for (int64_t i = 0; i < map.count; ++i)
                if (!append_blocks(blocks, map.parts[0], here + i * map.stride, most)) return false;
            return true;
        case Kind::places:
            for (const int64_t offset : map.offsets)
                if (!append_blocks(blocks, map.parts[0], here + offset, most)) return false;
            return true;
        case Kind::blocks:
            for (const kernels::Block& block : map.blocks)
                append_block(blocks, {here + block.offset, block.bytes});
            return blocks.size() <= most;
        case Kind::sequence:
            for (const TypeMap& part : map.parts)
                if (!append_blocks(blocks, part, here, most)) return false;
            return true;
    }
    return false;
}

bool is_list(const TypeMap& map) {
    return map.kind == Kind::dense || map.kind == Kind::blocks ||
           (map.kind == Kind::places && is_contiguous(map.parts[0]));
}

// The blocks of all parts, where a list is as good as any other form: all parts are short, or they
// are many and short on average. Else nothing.
std::vector<kernels::Block> listed(const std::vector<TypeMap>& parts) {
    constexpr size_t many = 16, least_places = 32;
    bool are_short = true;
    size_t most = std::min(most_flat, most_listed * parts.size()), places = 0;
    for (const TypeMap& part : parts) {
        places += part.offsets.size();
        if (is_list(part))
            most += std::max(part.blocks.size(), part.offsets.size());
        else
            are_short = are_short && !blocks_of(part, most_listed).empty();
    }
    // Long lists, each of blocks of one length, are faster by themselves.
    if (places > least_places * parts.size()) return {};
    std::vector<kernels::Block> blocks;
    most = std::min(most, most_in_plan);
    if (!are_short && parts.size() < many) return blocks;
    for (const TypeMap& part : parts)
        if (!append_blocks(blocks, part, 0, most)) return {};
    return blocks;
}

// The blocks of copies at `offsets`, where a table of them is faster than a step for each copy.
// Else nothing.
std::vector<kernels::Block> flattened(const TypeMap& map, const std::vector<int64_t>& offsets) {
    std::vector<kernels::Block> all;
    if (map.bytes > most_listed_bytes) return all;
    const std::vector<kernels::Block> blocks = blocks_of(map, most_listed);
    if (blocks.size() * offsets.size() > most_flat) return all;
    all.reserve(blocks.size() * offsets.size());
    for (const int64_t offset : offsets)
        for (const kernels::Block& block : blocks)
            all.push_back({offset + block.offset, block.bytes});
    return all;
}

void append_flat(std::vector<TypeMap>& flat, TypeMap part) {
    if (part.kind == Kind::empty) return;
    if (part.kind == Kind::sequence) {
        for (TypeMap& inner : part.parts) append_flat(flat, moved(std::move(inner), part.offset));
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

bool TypeMap::operator==(const TypeMap& other) const {
    return offset == other.offset && is_same_but_moved(*this, other);
}

TypeMap dense(int64_t bytes) {
    TypeMap map;
    if (bytes == 0) return map;
    map.kind = Kind::dense;
    map.bytes = bytes;
    return map;
}

TypeMap moved(TypeMap map, int64_t by) {
    if (map.kind != Kind::empty) map.offset += by;
    return map;
}

TypeMap repeated(TypeMap map, int64_t count, int64_t stride) {
    if (count == 0 || map.kind == Kind::empty) return {};
    if (count == 1) return map;
    if (is_contiguous(map) && stride == map.bytes) {
        map.bytes *= count;
        return map;
    }
    if (map.kind == Kind::strided && stride == map.count * map.stride) {
        map.count *= count;
        map.bytes *= count;
        return map;
    }
    TypeMap row;
    row.kind = Kind::strided;
    row.offset = map.offset;
    row.bytes = map.bytes * count;
    row.count = count;
    row.stride = stride;
    map.offset = 0;
    row.parts.push_back(std::move(map));
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

TypeMap of_blocks(const std::vector<kernels::Block>& blocks) {
    std::vector<kernels::Block> merged;
    merged.reserve(blocks.size());
    for (const kernels::Block& block : blocks) append_block(merged, block);
    if (merged.empty()) return {};
    if (is_better_unmerged(blocks, merged)) merged = blocks;
    const int64_t origin = merged[0].offset;
    if (merged.size() == 1) return moved(dense(merged[0].bytes), origin);
    TypeMap map;
    map.offset = origin;
    for (kernels::Block& block : merged) {
        block.offset -= origin;
        map.bytes += block.bytes;
    }
    if (!are_equal(merged)) {
        map.kind = Kind::blocks;
        map.blocks = std::move(merged);
        return map;
    }
    map.kind = Kind::places;
    map.parts.push_back(dense(merged[0].bytes));
    for (const kernels::Block& block : merged) map.offsets.push_back(block.offset);
    int64_t distance = 0;
    if (!have_one_distance(map.offsets, distance)) return map;
    return moved(repeated(dense(merged[0].bytes), static_cast<int64_t>(merged.size()), distance),
                 origin);
}

namespace {

bool has_neighbours(const std::vector<int64_t>& offsets, int64_t bytes) {
    bool has = false;
    for (size_t i = 1; i < offsets.size(); ++i) has |= offsets[i] - offsets[i - 1] == bytes;
    return has;
}

// Copies at several offsets that are neither neighbours nor in a row.
TypeMap places_of(TypeMap map, const std::vector<int64_t>& offsets) {
    TypeMap places;
    places.kind = Kind::places;
    places.offset = map.offset + offsets[0];
    places.bytes = map.bytes * static_cast<int64_t>(offsets.size());
    places.offsets.reserve(offsets.size());
    for (const int64_t offset : offsets) places.offsets.push_back(offset - offsets[0]);
    map.offset = 0;
    places.parts.push_back(std::move(map));
    return places;
}

}  // namespace

TypeMap at_places(TypeMap map, const std::vector<int64_t>& offsets) {
    if (map.kind == Kind::empty || offsets.empty()) return {};
    if (offsets.size() == 1) return moved(std::move(map), offsets[0]);
    int64_t distance = 0;
    const bool is_row = have_one_distance(offsets, distance);
    if (is_contiguous(map) && (is_row || has_neighbours(offsets, map.bytes))) {
        std::vector<kernels::Block> blocks;
        blocks.reserve(offsets.size());
        for (const int64_t offset : offsets) blocks.push_back({offset + map.offset, map.bytes});
        return of_blocks(blocks);
    }
    if (is_row)
        return moved(repeated(std::move(map), static_cast<int64_t>(offsets.size()), distance),
                     offsets[0]);
    if (!is_contiguous(map))
        if (const std::vector<kernels::Block> blocks = flattened(map, offsets); !blocks.empty())
            return of_blocks(blocks);
    return places_of(std::move(map), offsets);
}

TypeMap joined(std::vector<TypeMap> parts) {
    std::vector<TypeMap> flat;
    for (TypeMap& part : parts) append_flat(flat, std::move(part));
    if (flat.empty()) return {};
    if (flat.size() == 1) return std::move(flat[0]);
    if (std::all_of(flat.begin(), flat.end(),
                    [&](const TypeMap& part) { return is_same_but_moved(part, flat[0]); })) {
        std::vector<int64_t> offsets;
        offsets.reserve(flat.size());
        for (const TypeMap& part : flat) offsets.push_back(part.offset);
        return at_places(moved(flat[0], -flat[0].offset), offsets);
    }
    if (const std::vector<kernels::Block> blocks = listed(flat); !blocks.empty())
        return of_blocks(blocks);
    TypeMap sequence;
    sequence.kind = Kind::sequence;
    sequence.offset = flat[0].offset;
    for (TypeMap& part : flat) {
        sequence.bytes += part.bytes;
        sequence.parts.push_back(moved(std::move(part), -sequence.offset));
    }
    return sequence;
}

Bounds bounds_of(const TypeMap& map) {
    Bounds bounds{INT64_MAX, INT64_MIN};
    const auto include = [&](Bounds inner, int64_t at) {
        bounds.low = std::min(bounds.low, inner.low + at);
        bounds.high = std::max(bounds.high, inner.high + at);
    };
    switch (map.kind) {
        case Kind::empty:
            return {};
        case Kind::dense:
            include({0, map.bytes}, 0);
            break;
        case Kind::strided: {
            const Bounds inner = bounds_of(map.parts[0]);
            for (const int64_t copy : {int64_t{0}, map.count - 1})
                include(inner, copy * map.stride);
            break;
        }
        case Kind::places: {
            const Bounds inner = bounds_of(map.parts[0]);
            for (const int64_t offset : map.offsets) include(inner, offset);
            break;
        }
        case Kind::blocks:
            for (const kernels::Block& block : map.blocks) include({0, block.bytes}, block.offset);
            break;
        case Kind::sequence:
            for (const TypeMap& part : map.parts) include(bounds_of(part), 0);
            break;
    }
    return {bounds.low + map.offset, bounds.high + map.offset};
}

std::vector<kernels::Block> blocks_of(const TypeMap& map, size_t most) {
    std::vector<kernels::Block> blocks;
    if (!append_blocks(blocks, map, 0, most)) blocks.clear();
    return blocks;
}

size_t memory_bytes(const TypeMap& map) noexcept {
    size_t bytes = sizeof(TypeMap) + map.offsets.size() * sizeof(int64_t) +
                   map.blocks.size() * sizeof(kernels::Block);
    for (const TypeMap& part : map.parts) bytes += memory_bytes(part);
    return bytes;
}

int64_t number_of_blocks(const TypeMap& map) noexcept {
    int64_t of_parts = 0;
    for (const TypeMap& part : map.parts) of_parts += number_of_blocks(part);
    switch (map.kind) {
        case TypeMap::Kind::strided:
            return map.count * of_parts;
        case TypeMap::Kind::places:
            return static_cast<int64_t>(map.offsets.size()) * of_parts;
        case TypeMap::Kind::blocks:
            return static_cast<int64_t>(map.blocks.size());
        case TypeMap::Kind::sequence:
            return of_parts;
        default:
            return 1;
    }
}

}  // namespace vecmpi::datatype
