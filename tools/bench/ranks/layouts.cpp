// SPDX-License-Identifier: BSD-3-Clause
// The table of layouts. Random ones are the same in every run.
#include "layouts.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace vecmpi::bench {
namespace {

int size_of(MPI_Datatype type) {
    int bytes = 0;
    MPI_Type_size(type, &bytes);
    return bytes;
}

Buffer committed(MPI_Datatype type, int count) {
    MPI_Type_commit(&type);
    return {type, count};
}

// How many of the row's blocks make up that many bytes, at least one.
std::size_t blocks_in(const LayoutRow& row, std::size_t bytes) {
    return std::max<std::size_t>(
        1, bytes / static_cast<std::size_t>(row.block * size_of(row.element)));
}

// Every `stride`-th element.
std::vector<int> regular_displacements(const LayoutRow& row, std::size_t blocks) {
    std::vector<int> displacements;
    for (std::size_t i = 0; i < blocks; i++)
        displacements.push_back(static_cast<int>(i) * row.stride);
    return displacements;
}

Buffer blocks_at(const LayoutRow& row, const std::vector<int>& displacements) {
    MPI_Datatype type;
    MPI_Type_create_indexed_block(static_cast<int>(displacements.size()), row.block,
                                  displacements.data(), row.element, &type);
    return committed(type, 1);
}

// One element of a type that has `block` of every `stride`.
Buffer vector(const LayoutRow& row, std::size_t bytes) {
    MPI_Datatype type;
    MPI_Type_vector(static_cast<int>(blocks_in(row, bytes)), row.block, row.stride, row.element,
                    &type);
    return committed(type, 1);
}

// Blocks in rising order, on average one of every `stride`.
Buffer indexed_block(const LayoutRow& row, std::size_t bytes) {
    std::minstd_rand random(7);
    const std::size_t blocks = blocks_in(row, bytes);
    std::vector<int> displacements;
    int at = 0;
    for (std::size_t i = 0; i < blocks; i++) {
        displacements.push_back(at);
        at += row.block + static_cast<int>(random() % static_cast<unsigned>(2 * row.stride));
    }
    return blocks_at(row, displacements);
}

// The same, in an order drawn at random.
Buffer shuffled_block(const LayoutRow& row, std::size_t bytes) {
    std::vector<int> displacements = regular_displacements(row, blocks_in(row, bytes));
    std::shuffle(displacements.begin(), displacements.end(), std::minstd_rand(7));
    return blocks_at(row, displacements);
}

// Every `stride`-th, said block by block.
Buffer regular_indexed(const LayoutRow& row, std::size_t bytes) {
    const std::size_t blocks = blocks_in(row, bytes);
    const std::vector<int> displacements = regular_displacements(row, blocks),
                           lengths(blocks, row.block);
    MPI_Datatype type;
    MPI_Type_indexed(static_cast<int>(blocks), lengths.data(), displacements.data(), row.element,
                     &type);
    return committed(type, 1);
}

// Blocks of 1 to `block` elements, gaps of 1 to `stride`.
Buffer random_indexed(const LayoutRow& row, std::size_t bytes) {
    std::minstd_rand random(7);
    const auto elements = bytes / static_cast<std::size_t>(size_of(row.element));
    std::vector<int> displacements, lengths;
    int at = 0;
    for (std::size_t done = 0; done < elements; done += static_cast<std::size_t>(lengths.back())) {
        const auto left = static_cast<int>(elements - done);
        lengths.push_back(
            std::min(left, 1 + static_cast<int>(random() % static_cast<unsigned>(row.block))));
        displacements.push_back(at);
        at += lengths.back() + 1 + static_cast<int>(random() % static_cast<unsigned>(row.stride));
    }
    MPI_Datatype type;
    MPI_Type_indexed(static_cast<int>(lengths.size()), lengths.data(), displacements.data(),
                     row.element, &type);
    return committed(type, 1);
}

Buffer records(const std::vector<MPI_Datatype>& types, const std::vector<int>& lengths,
               const std::vector<MPI_Aint>& displacements, MPI_Aint extent, std::size_t bytes) {
    MPI_Datatype record, resized;
    MPI_Type_create_struct(static_cast<int>(types.size()), lengths.data(), displacements.data(),
                           types.data(), &record);
    MPI_Type_create_resized(record, 0, extent, &resized);
    MPI_Type_free(&record);
    const int count = std::max(1, static_cast<int>(bytes) / size_of(resized));
    return committed(resized, count);
}

Buffer int_gap_double(const LayoutRow&, std::size_t bytes) {
    return records({MPI_INT, MPI_DOUBLE}, {1, 1}, {0, 8}, 16, bytes);
}
Buffer double_int(const LayoutRow&, std::size_t bytes) {
    MPI_Datatype type;
    MPI_Type_dup(MPI_DOUBLE_INT, &type);
    return committed(type, std::max(1, static_cast<int>(bytes) / 12));
}
Buffer char_short_int(const LayoutRow&, std::size_t bytes) {
    return records({MPI_CHAR, MPI_SHORT, MPI_INT}, {1, 1, 1}, {0, 2, 8}, 16, bytes);
}
Buffer particle(const LayoutRow&, std::size_t bytes) {  // 3 doubles, an int, 3 floats of 64 bytes
    return records({MPI_DOUBLE, MPI_INT, MPI_FLOAT}, {3, 1, 3}, {0, 32, 44}, 64, bytes);
}

// A face of a cube of doubles, normal to its `block`-th dimension: 0 is the slowest one.
Buffer face(const LayoutRow& row, std::size_t bytes) {
    const int side = std::max(2, static_cast<int>(std::sqrt(static_cast<double>(bytes) / 8)));
    const int other = std::min(side, 64);
    int sizes[3] = {side, side, side}, parts[3] = {side, side, side}, starts[3] = {0, 0, 0};
    sizes[row.block] = other;
    parts[row.block] = 1;
    starts[row.block] = 1;
    MPI_Datatype type;
    MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
    return committed(type, 1);
}

// Columns of a square matrix, one after the other.
Buffer transpose(const LayoutRow& row, std::size_t bytes) {
    const int element = size_of(row.element);
    const int side = std::max(4, static_cast<int>(std::sqrt(static_cast<double>(bytes) / element)));
    MPI_Datatype column, narrow;
    MPI_Type_vector(side, 1, side, row.element, &column);
    MPI_Type_create_resized(column, 0, element, &narrow);
    MPI_Type_free(&column);
    return committed(narrow, side);
}

// Rows of every second block of `block` elements, of every `stride`-th line.
Buffer nested(const LayoutRow& row, std::size_t bytes) {
    const int element = size_of(row.element), inner = 32;
    const int rows = std::max(1, static_cast<int>(bytes) / (inner * row.block * element));
    MPI_Datatype line, type;
    MPI_Type_vector(inner, row.block, 2 * row.block, row.element, &line);
    MPI_Type_create_hvector(rows, 1, MPI_Aint{2} * inner * row.block * element * row.stride, line,
                            &type);
    MPI_Type_free(&line);
    return committed(type, 1);
}

// Copies of `inner` at places that have no one distance; frees it.
Buffer at_places(MPI_Datatype inner, int distance, std::size_t bytes) {
    const int number = std::max(1, static_cast<int>(bytes) / size_of(inner));
    std::vector<MPI_Aint> displacements;
    for (MPI_Aint i = 0, at = 0; i < number; at += distance + 8 * (i++ % 3))
        displacements.push_back(at);
    MPI_Datatype type;
    MPI_Type_create_hindexed_block(number, 1, displacements.data(), inner, &type);
    MPI_Type_free(&inner);
    return committed(type, 1);
}

Buffer pairs_at_places(const LayoutRow&, std::size_t bytes) {
    MPI_Datatype pair;
    MPI_Type_vector(2, 1, 7, MPI_DOUBLE, &pair);
    return at_places(pair, 128, bytes);
}
Buffer rows_at_places(const LayoutRow&, std::size_t bytes) {
    MPI_Datatype rows;
    MPI_Type_vector(5, 2, 9, MPI_DOUBLE, &rows);
    return at_places(rows, 700, bytes);
}
// Nodes whose three variables stand in arrays of their own.
Buffer structure_of_arrays(const LayoutRow&, std::size_t bytes) {
    MPI_Datatype node;
    MPI_Type_create_hvector(3, 1, static_cast<MPI_Aint>(2 * bytes / 8 * 8 + 8), MPI_DOUBLE, &node);
    return at_places(node, 8, bytes);
}

// Rows of 1 to `block` elements, or of 4 and at last one of `block`; of every second element.
Buffer rows_of_lengths(const LayoutRow& row, std::size_t bytes) {
    const bool rise = row.stride == 1;
    const int element = size_of(row.element);
    std::vector<int> lengths;
    std::vector<MPI_Aint> displacements;
    MPI_Aint at = 0;
    int left = std::max(row.block + 1, static_cast<int>(bytes) / element);
    for (int i = 0; left > 0; i++, left -= lengths.back()) {
        const int length = rise ? 1 + i % row.block : left <= row.block ? left : 4;
        lengths.push_back(std::min(length, left));
        displacements.push_back(at);
        at += 2 * element * lengths.back() + 24;
    }
    MPI_Datatype second, type;
    MPI_Type_create_resized(row.element, 0, MPI_Aint{2} * element, &second);
    MPI_Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(), displacements.data(),
                             second, &type);
    MPI_Type_free(&second);
    return committed(type, 1);
}

std::vector<LayoutRow> make_table() {
    std::vector<LayoutRow> table;
    const struct {
        const char* name;
        MPI_Datatype type;
    } elements[] = {{"char", MPI_CHAR},
                    {"short", MPI_SHORT},
                    {"int", MPI_INT},
                    {"double", MPI_DOUBLE},
                    {"complex", MPI_C_DOUBLE_COMPLEX}};
    const struct {
        int block, stride;
    } shapes[] = {{1, 2},  {1, 3},  {2, 3}, {3, 4},    {1, 4},   {1, 16},
                  {1, 64}, {8, 16}, {5, 9}, {64, 128}, {1, 1000}};
    for (const auto& element : elements)
        for (const auto& shape : shapes)
            table.push_back({std::string(element.name) + " " + std::to_string(shape.block) +
                                 " of " + std::to_string(shape.stride),
                             "vector", vector, element.type, shape.block, shape.stride});
    table.push_back({"int indexed 1 of 3", "indexed", regular_indexed, MPI_INT, 1, 3});
    table.push_back({"int indexed_block 1 random", "indexed", indexed_block, MPI_INT, 1, 3});
    table.push_back({"double indexed_block 1 random", "indexed", indexed_block, MPI_DOUBLE, 1, 3});
    table.push_back({"double indexed_block 4 random", "indexed", indexed_block, MPI_DOUBLE, 4, 4});
    table.push_back({"int shuffled", "indexed", shuffled_block, MPI_INT, 1, 2});
    table.push_back({"double shuffled", "indexed", shuffled_block, MPI_DOUBLE, 1, 2});
    table.push_back({"int indexed 1-8 random", "indexed", random_indexed, MPI_INT, 8, 8});
    table.push_back({"double indexed 1-16 random", "indexed", random_indexed, MPI_DOUBLE, 16, 8});
    table.push_back({"int gap double", "struct", int_gap_double});
    table.push_back({"double_int", "struct", double_int});
    table.push_back({"char short int", "struct", char_short_int});
    table.push_back({"particle", "struct", particle});
    table.push_back({"face normal to y", "face", face, MPI_DOUBLE, 1});
    table.push_back({"face normal to x", "face", face, MPI_DOUBLE, 2});
    table.push_back({"columns of float", "transpose", transpose, MPI_FLOAT});
    table.push_back({"columns of double", "transpose", transpose, MPI_DOUBLE});
    table.push_back({"columns of complex", "transpose", transpose, MPI_C_DOUBLE_COMPLEX});
    table.push_back({"columns of short", "transpose", transpose, MPI_SHORT});
    table.push_back({"nested int 1 of 2", "nested", nested, MPI_INT, 1, 2});
    table.push_back({"nested double 2 of 4", "nested", nested, MPI_DOUBLE, 2, 3});
    table.push_back({"2 doubles at places", "nested", pairs_at_places});
    table.push_back({"5 x 2 doubles at places", "nested", rows_at_places});
    table.push_back({"3 arrays of doubles", "nested", structure_of_arrays});
    table.push_back({"rows of 1-100 floats", "nested", rows_of_lengths, MPI_FLOAT, 100, 1});
    table.push_back({"rows of 4 floats and 100", "nested", rows_of_lengths, MPI_FLOAT, 100, 2});
    return table;
}

}  // namespace

const std::vector<LayoutRow>& layout_table() {
    static const std::vector<LayoutRow> table = make_table();
    return table;
}

}  // namespace vecmpi::bench
