// SPDX-License-Identifier: BSD-3-Clause
// Random nested datatypes of a given number of units, with their type maps by our own walk. Must
// not communicate.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "battery.hpp"

namespace battery {

struct Piece {
    MPI_Aint offset;
    size_t bytes;
};
struct Block {
    MPI_Aint displacement;  // bytes
    int length;             // copies of the child
};
using Blocks = std::vector<Block>;

constexpr MPI_Aint round_up(MPI_Aint bytes) { return (bytes + 7) & ~MPI_Aint{7}; }

// A datatype and its type map, in the order in which MPI sends it.
struct Type {
    MPI_Datatype handle = MPI_DATATYPE_NULL;
    std::vector<Piece> map;

    Type() = default;
    Type(Type&& other) noexcept
        : handle(std::exchange(other.handle, MPI_DATATYPE_NULL)), map(std::move(other.map)) {}
    Type& operator=(Type&& other) noexcept {
        std::swap(handle, other.handle);
        map.swap(other.map);
        return *this;
    }
    ~Type() {
        if (handle != MPI_DATATYPE_NULL) MPI_Type_free(&handle);
    }
    MPI_Aint extent() const {
        MPI_Aint lower = 0;
        MPI_Aint extent = 0;
        MPI_Type_get_extent(handle, &lower, &extent);
        return extent;
    }
    void place(const Type& child, const Blocks& blocks) {
        const MPI_Aint extent = child.extent();
        for (const Block& block : blocks)
            for (int copy = 0; copy < block.length; ++copy)
                for (const Piece& piece : child.map)
                    map.push_back({block.displacement + copy * extent + piece.offset, piece.bytes});
    }
    MPI_Aint low() const {  // a multiple of 8, as is high(): children stay aligned
        MPI_Aint low = 0;
        if (!map.empty()) low = map[0].offset;
        for (const Piece& piece : map) low = std::min(low, piece.offset);
        return -round_up(-low);
    }
    MPI_Aint high() const {
        MPI_Aint high = low();
        for (const Piece& piece : map)
            high = std::max(high, piece.offset + static_cast<MPI_Aint>(piece.bytes));
        return round_up(high);
    }
};

// What all ranks agree on: int, double, short, byte, or a record of a double, a short and a byte.
enum class Unit { integer, real, small, byte, record };
constexpr int basics(Unit unit) { return unit == Unit::record ? 3 : 1; }
constexpr size_t bytes_of(Unit unit) {
    constexpr size_t bytes[] = {4, 8, 2, 1, 11};
    return bytes[static_cast<int>(unit)];
}

// Makes types of exactly n units whose copies do not overlap: the extent is never below the span.
class Maker {
  public:
    Maker(Random& random, Unit unit) : random_(random), unit_(unit) {}

    Type make(int n, int depth) {
        if (n == 0) return empty();
        if (depth == 0) return dense(n);
        using Way = Type (Maker::*)(int, int);
        constexpr Way all[] = {&Maker::vector,   &Maker::vector,    &Maker::indexed,
                               &Maker::indexed,  &Maker::structure, &Maker::structure,
                               &Maker::subarray, &Maker::resized,   &Maker::transposed,
                               &Maker::duplicate};
        Type type = (this->*all[random_.below(10)])(n, depth - 1);
        const MPI_Aint span = type.high() - type.low();
        const MPI_Aint extent = type.extent();
        if (std::max(span, extent) > 4096 + MPI_Aint{100} * n) return dense(n);
        return extent < span ? resize(type, type.low(), span) : std::move(type);
    }
    // Not nested, without gaps.
    Type dense(int n) {
        const Type child = base();
        Type type;
        MPI_Type_contiguous(n, child.handle, &type.handle);
        type.place(child, {{0, n}});
        return type;
    }
    // A divisor of n, small or large.
    int divisor(int n) {
        constexpr int candidates[] = {1, 2, 3, 4, 5, 7, 8, 16};
        const int d = candidates[random_.below(8)];
        if (n % d != 0) return 1;
        return random_.chance(60) ? d : n / d;
    }

  private:
    Type record() {
        const MPI_Aint offsets[2][3] = {{0, 10, 14}, {8, 4, 0}};
        const int order = random_.below(2);
        const int lengths[] = {1, 1, 1};
        const MPI_Datatype types[] = {MPI_DOUBLE, MPI_SHORT, MPI_BYTE};
        Type type;
        MPI_Type_create_struct(3, lengths, offsets[order], types, &type.handle);
        const size_t bytes[] = {8, 2, 1};
        for (int i = 0; i < 3; ++i) type.map.push_back({offsets[order][i], bytes[i]});
        return type;
    }

    Type base() {
        if (unit_ == Unit::record) return record();
        const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_SHORT, MPI_BYTE};
        Type type;
        MPI_Type_dup(types[static_cast<int>(unit_)], &type.handle);
        type.map.push_back({0, bytes_of(unit_)});
        return type;
    }

    Type empty() {
        const Type child = base();
        const int lengths[] = {0, 0};
        const int displacements[] = {5, -3};
        Type type;
        const int way = random_.below(4);
        if (way == 0) MPI_Type_contiguous(0, child.handle, &type.handle);
        if (way == 1) MPI_Type_vector(0, 3, 5, child.handle, &type.handle);
        if (way == 2) MPI_Type_vector(4, 0, -2, child.handle, &type.handle);
        if (way == 3) MPI_Type_indexed(2, lengths, displacements, child.handle, &type.handle);
        return type;
    }

    Type vector(int n, int depth) {
        const int count = divisor(n);
        const int length = divisor(n / count);
        const Type child = make(n / count / length, depth);
        const int sign = random_.chance(40) ? -1 : 1;
        const int stride = sign * (length + random_.below(3));
        MPI_Aint bytes = stride * child.extent();
        Type type;
        if (random_.chance(50)) {
            MPI_Type_vector(count, length, stride, child.handle, &type.handle);
        } else {
            bytes += sign * 8 * random_.below(3);
            MPI_Type_create_hvector(count, length, bytes, child.handle, &type.handle);
        }
        Blocks blocks;
        for (int i = 0; i < count; ++i) blocks.push_back({i * bytes, length});
        type.place(child, blocks);
        return type;
    }

    // Blocks that add up to `copies`, displaced by copies, ascending or descending; some of them
    // are empty.
    Blocks scatter(int copies, int equal_length) {
        Blocks blocks;
        int end = random_.between(-20, 5);
        const bool descending = random_.chance(40);
        while (copies > 0) {
            int length = random_.chance(20) ? 0 : random_.between(1, 1 + (copies - 1) / 3);
            if (equal_length > 0) length = equal_length;
            end += random_.below(3);
            blocks.push_back({descending ? -end - length : end, length});
            end += length;
            copies -= length;
        }
        return blocks;
    }

    Type indexed(int n, int depth) {
        const int copies = divisor(n);
        const Type child = make(n / copies, depth);
        const int way = random_.below(4);  // indexed, hindexed, indexed_block, hindexed_block
        const int equal = way < 2 ? 0 : divisor(copies);
        Blocks blocks = scatter(copies, equal);
        const MPI_Aint shift = way % 2 == 0 ? 0 : 8 * random_.between(-3, 3);
        std::vector<int> lengths;
        std::vector<int> at;
        std::vector<MPI_Aint> bytes;
        for (Block& block : blocks) {
            lengths.push_back(block.length);
            at.push_back(static_cast<int>(block.displacement));
            block.displacement = block.displacement * child.extent() + shift;
            bytes.push_back(block.displacement);
        }
        const auto count = static_cast<int>(blocks.size());
        Type type;
        MPI_Datatype* result = &type.handle;
        if (way == 0) MPI_Type_indexed(count, lengths.data(), at.data(), child.handle, result);
        if (way == 1)
            MPI_Type_create_hindexed(count, lengths.data(), bytes.data(), child.handle, result);
        if (way == 2) MPI_Type_create_indexed_block(count, equal, at.data(), child.handle, result);
        if (way == 3)
            MPI_Type_create_hindexed_block(count, equal, bytes.data(), child.handle, result);
        type.place(child, blocks);
        return type;
    }

    // Up to three members of different types, and one of length 0.
    Type structure(int n, int depth) {
        std::vector<Type> children;
        std::vector<int> lengths;
        std::vector<MPI_Aint> bytes;
        std::vector<MPI_Datatype> handles;
        MPI_Aint end = 8 * random_.between(-9, 3);
        Type type;
        for (int left = n; left > 0;) {
            const int part = children.size() == 2 ? left : random_.between(1, left);
            const int length = divisor(part);
            Type& child = children.emplace_back(make(part / length, depth));
            lengths.push_back(length);
            end += 8 * random_.below(2);
            bytes.push_back(end - child.low());
            end += round_up((length - 1) * child.extent()) + child.high() - child.low();
            handles.push_back(child.handle);
            type.place(child, {{bytes.back(), length}});
            left -= part;
        }
        lengths.push_back(0);
        bytes.push_back(random_.between(-100, 100) * 8);
        handles.push_back(MPI_DOUBLE);
        MPI_Type_create_struct(static_cast<int>(handles.size()), lengths.data(), bytes.data(),
                               handles.data(), &type.handle);
        return type;
    }

    // Rows and columns of a larger array.
    Type subarray(int n, int depth) {
        int part[2];
        part[0] = divisor(n);
        part[1] = divisor(n / part[0]);
        const Type child = make(n / part[0] / part[1], depth);
        int start[2];
        int whole[2];
        for (int i = 0; i < 2; ++i) {
            start[i] = random_.below(2);
            whole[i] = start[i] + part[i] + random_.below(2);
        }
        const bool fortran = random_.chance(50);
        const int outer = fortran ? 1 : 0;
        const int inner = 1 - outer;
        Blocks blocks;
        for (int i = 0; i < part[outer]; ++i) {
            const MPI_Aint at = MPI_Aint{start[outer] + i} * whole[inner] + start[inner];
            blocks.push_back({at * child.extent(), part[inner]});
        }
        Type type;
        MPI_Type_create_subarray(2, whole, part, start, fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C,
                                 child.handle, &type.handle);
        type.place(child, blocks);
        return type;
    }

    static Type resize(const Type& child, MPI_Aint lower, MPI_Aint extent) {
        Type type;
        MPI_Type_create_resized(child.handle, lower, extent, &type.handle);
        type.map = child.map;
        return type;
    }

    Type resized(int n, int depth) {
        const Type child = make(n, depth);
        const MPI_Aint lower = child.low() - 8 * random_.below(3);
        return resize(child, lower, child.high() - lower + 8 * random_.below(4));
    }

    // Columns of a matrix one after the other: an extent below the span, so that they interleave.
    Type transposed(int n, int depth) {
        const int rows = divisor(n);
        const int columns = divisor(n / rows);
        const Type child = make(n / rows / columns, depth);
        const int stride = columns + random_.below(3);
        Type column;
        MPI_Type_vector(rows, 1, stride, child.handle, &column.handle);
        for (int i = 0; i < rows; ++i) column.place(child, {{i * stride * child.extent(), 1}});
        const Type narrow = resize(column, 0, child.extent());
        Type matrix;
        MPI_Type_contiguous(columns, narrow.handle, &matrix.handle);
        matrix.place(narrow, {{0, columns}});
        return matrix;
    }

    Type duplicate(int n, int depth) {
        const Type child = make(n, depth);
        Type type;
        MPI_Type_dup(child.handle, &type.handle);
        type.map = child.map;
        return type;
    }

    Random& random_;
    Unit unit_;
};

}  // namespace battery
