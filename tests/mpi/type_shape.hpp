// SPDX-License-Identifier: BSD-3-Clause
// What all ranks agree on of a random datatype: a tree of counts, lengths and predefined types,
// which each rank lays out in its own way (type_builder.hpp). Pure: no types are made here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "battery.hpp"

namespace battery {

// Values of a predefined type, in memory and, one behind the other, packed.
struct Part {
    int offset, bytes;
    int defined;  // bytes of the value; what is behind them (of a long double) may be anything
};
struct Basic {
    const char* name;
    MPI_Datatype type;
    int parts;
    Part part[2];
    int size() const { return part[0].bytes + (parts == 2 ? part[1].bytes : 0); }
    int span() const { return part[parts - 1].offset + part[parts - 1].bytes; }
    bool has_padding() const { return part[0].defined < part[0].bytes; }
};

inline const std::vector<Basic>& basic_types() {
#define ROW(type, ...) \
    { #type, type, __VA_ARGS__ }
    static const std::vector<Basic> all = {
        ROW(MPI_INT, 1, {{0, 4, 4}}),
        ROW(MPI_DOUBLE, 1, {{0, 8, 8}}),
        ROW(MPI_CHAR, 1, {{0, 1, 1}}),
        ROW(MPI_SHORT, 1, {{0, 2, 2}}),
        ROW(MPI_FLOAT, 1, {{0, 4, 4}}),
        ROW(MPI_LONG, 1, {{0, 8, 8}}),
        ROW(MPI_BYTE, 1, {{0, 1, 1}}),
        ROW(MPI_SIGNED_CHAR, 1, {{0, 1, 1}}),
        ROW(MPI_UNSIGNED_CHAR, 1, {{0, 1, 1}}),
        ROW(MPI_UNSIGNED_SHORT, 1, {{0, 2, 2}}),
        ROW(MPI_UNSIGNED, 1, {{0, 4, 4}}),
        ROW(MPI_UNSIGNED_LONG, 1, {{0, 8, 8}}),
        ROW(MPI_LONG_LONG, 1, {{0, 8, 8}}),
        ROW(MPI_WCHAR, 1, {{0, 4, 4}}),
        ROW(MPI_INT8_T, 1, {{0, 1, 1}}),
        ROW(MPI_UINT16_T, 1, {{0, 2, 2}}),
        ROW(MPI_INT32_T, 1, {{0, 4, 4}}),
        ROW(MPI_UINT64_T, 1, {{0, 8, 8}}),
        ROW(MPI_AINT, 1, {{0, 8, 8}}),
        ROW(MPI_OFFSET, 1, {{0, 8, 8}}),
        ROW(MPI_COUNT, 1, {{0, 8, 8}}),
        ROW(MPI_C_BOOL, 1, {{0, 1, 1}}),
        ROW(MPI_C_FLOAT_COMPLEX, 1, {{0, 8, 8}}),
        ROW(MPI_C_DOUBLE_COMPLEX, 1, {{0, 16, 16}}),
        ROW(MPI_LONG_DOUBLE, 1, {{0, 16, 10}}),
        ROW(MPI_C_LONG_DOUBLE_COMPLEX, 2, {{0, 16, 10}, {16, 16, 10}}),
        ROW(MPI_2INT, 2, {{0, 4, 4}, {4, 4, 4}}),
        ROW(MPI_FLOAT_INT, 2, {{0, 4, 4}, {4, 4, 4}}),
        ROW(MPI_DOUBLE_INT, 2, {{0, 8, 8}, {8, 4, 4}}),
        ROW(MPI_LONG_INT, 2, {{0, 8, 8}, {8, 4, 4}}),
        ROW(MPI_SHORT_INT, 2, {{0, 2, 2}, {4, 4, 4}}),
        ROW(MPI_LONG_DOUBLE_INT, 2, {{0, 16, 10}, {16, 4, 4}}),
    };
#undef ROW
    return all;
}
constexpr int plain_numbers = 6;  // the first of them: what programs use most

// Of MPI_Type_create_darray.
struct Dealt {
    int dimensions = 0;
    int sizes[3], ways[3], blocks[3], places[3];
    int rank = 0, processes = 1, order = MPI_ORDER_C;

    // Which indices of a dimension the process has (MPI 4.0, 5.1.4).
    std::vector<int> indices(int d) const {
        int place = rank;
        for (int i = dimensions - 1; i > d; --i) place /= places[i];
        place %= places[d];
        int block = blocks[d];
        if (ways[d] == MPI_DISTRIBUTE_NONE)
            block = sizes[d];
        else if (block == MPI_DISTRIBUTE_DFLT_DARG)
            block = ways[d] == MPI_DISTRIBUTE_BLOCK ? (sizes[d] + places[d] - 1) / places[d] : 1;
        std::vector<int> found;
        for (int i = 0; i < sizes[d]; ++i)
            if (i / block % places[d] == place) found.push_back(i);
        return found;
    }
};

struct Shape {
    enum class Kind {
        leaf,
        rows,     // `count` blocks of `lengths[0]` copies of the child
        lists,    // blocks of `lengths` copies of the child
        members,  // `lengths[i]` copies of child i
        box,      // a part of an array
        dealt,    // a distributed array
    };
    Kind kind = Kind::leaf;
    int basic = 0;
    int count = 0;
    std::vector<int> lengths;
    std::vector<int> parts;  // of a box, from the outermost dimension
    Dealt dealt;
    std::vector<Shape> children;

    // Calls each(basic), in any order.
    template <class Each>
    void for_each_basic(const Each& each) const {
        if (kind == Kind::leaf) each(basic_types()[static_cast<size_t>(basic)]);
        for (const Shape& child : children) child.for_each_basic(each);
    }
    // How many there are of predefined types.
    int64_t values() const {
        if (kind == Kind::leaf) return 1;
        int64_t copies = kind == Kind::rows ? int64_t{count} * lengths[0] : 1, sum = 0;
        if (kind == Kind::lists) copies = std::accumulate(lengths.begin(), lengths.end(), 0);
        for (const int part : parts) copies *= part;
        for (int d = 0; kind == Kind::dealt && d < dealt.dimensions; ++d)
            copies *= static_cast<int64_t>(dealt.indices(d).size());
        for (size_t i = 0; i < children.size(); ++i)
            sum += children[i].values() * (kind == Kind::members ? lengths[i] : copies);
        return sum;
    }
    bool has_padding() const {
        bool found = false;
        for_each_basic([&](const Basic& b) { found |= b.has_padding(); });
        return found;
    }
    bool has_pairs() const {
        bool found = false;
        for_each_basic([&](const Basic& b) { found |= b.parts == 2; });
        return found;
    }
    bool has_empty_parts() const {
        if (kind == Kind::rows && count * lengths[0] == 0) return true;
        if (kind == Kind::lists || kind == Kind::members) {
            if (lengths.empty()) return true;
            if (std::find(lengths.begin(), lengths.end(), 0) != lengths.end()) return true;
        }
        for (int d = 0; kind == Kind::dealt && d < dealt.dimensions; ++d)
            if (dealt.indices(d).empty()) return true;
        return std::any_of(children.begin(), children.end(),
                           [](const Shape& child) { return child.has_empty_parts(); });
    }
    // Rows and lists of one predefined type, and nothing else.
    bool is_of_one_simple_type() const {
        if (kind == Kind::leaf) return basic_types()[static_cast<size_t>(basic)].parts == 1;
        return (kind == Kind::rows || kind == Kind::lists) && children[0].is_of_one_simple_type();
    }
    // The bytes of each value, where all of them have as many and a fragment holds whole ones; else
    // 0.
    int value_bytes() const {
        int common = -1;
        for_each_basic([&](const Basic& b) {
            const int bytes = b.parts == 1 && b.size() <= 8 ? b.size() : 0;
            common = common == -1 || common == bytes ? bytes : 0;
        });
        return common;
    }
};

class ShapeMaker {
  public:
    // At most so many values and inner types.
    ShapeMaker(Random& common, int nodes) : random_(common), nodes_(nodes) {
        favourite_ = random_.below(random_.chance(60) ? plain_numbers
                                                      : static_cast<int>(basic_types().size()));
        is_mixed_ = random_.chance(40);
    }

    Shape make(int values, int depth) {
        --nodes_;
        if (depth == 0 || nodes_ <= 0) return leaf();
        using Way = Shape (ShapeMaker::*)(int, int);
        constexpr Way ways[] = {&ShapeMaker::rows,    &ShapeMaker::rows,    &ShapeMaker::rows,
                                &ShapeMaker::lists,   &ShapeMaker::lists,   &ShapeMaker::members,
                                &ShapeMaker::members, &ShapeMaker::members, &ShapeMaker::box,
                                &ShapeMaker::dealt};
        return (this->*ways[random_.below(10)])(values, depth - 1);
    }

  private:
    // Only a whole type is without data: within another one MPICH 4.0.2 divides by its size.
    Shape inner(int values, int depth) {
        Shape shape = make(values, depth);
        return shape.values() == 0 ? leaf() : shape;
    }

    Shape leaf() {
        Shape shape;
        shape.basic = is_mixed_ && random_.chance(70)
                          ? random_.below(static_cast<int>(basic_types().size()))
                          : favourite_;
        return shape;
    }

    // Between 1 and `most`, often small, and all of it where the child is a leaf.
    int number(int most, int depth) {
        if (most <= 1) return 1;
        if (depth == 0 && random_.chance(50)) return random_.between(most / 2, most);
        return random_.between(1, random_.chance(50) ? std::min(most, 8) : most);
    }

    Shape rows(int values, int depth) {
        Shape shape;
        shape.kind = Shape::Kind::rows;
        shape.count = number(values, depth);
        shape.lengths = {number(std::min(values / shape.count, 1 << random_.below(9)), 1)};
        if (random_.chance(2)) shape.count = 0;
        if (random_.chance(2)) shape.lengths[0] = 0;
        shape.children.push_back(
            inner(values / std::max(1, shape.count * shape.lengths[0]), depth));
        return shape;
    }

    Shape lists(int values, int depth) {
        Shape shape;
        shape.kind = Shape::Kind::lists;
        const int blocks = random_.chance(3) ? 0 : number(values, depth);
        const int longest = random_.chance(50) ? 3 : 9;
        int copies = 0;
        for (int i = 0; i < blocks && copies < values; ++i) {
            shape.lengths.push_back(random_.chance(10) ? 0 : random_.between(1, longest));
            copies += shape.lengths.back();
        }
        shape.children.push_back(inner(values / std::max(1, copies), depth));
        return shape;
    }

    Shape members(int values, int depth) {
        Shape shape;
        shape.kind = Shape::Kind::members;
        const int number_of_members = random_.chance(2) ? 0 : random_.between(1, 4);
        for (int i = 0; i < number_of_members; ++i) {
            shape.lengths.push_back(random_.chance(10) ? 0 : random_.between(1, 4));
            const int each = values / number_of_members / std::max(1, shape.lengths.back());
            shape.children.push_back(inner(each, random_.chance(50) ? 0 : depth));
        }
        return shape;
    }

    Shape box(int values, int depth) {
        Shape shape;
        shape.kind = Shape::Kind::box;
        int left = std::max(values, 1);
        for (int d = random_.between(1, 3); d > 0; --d) {
            shape.parts.push_back(number(std::min(left, 100), 1));
            left /= shape.parts.back();
        }
        shape.children.push_back(inner(left, depth));
        return shape;
    }

    Shape dealt(int values, int depth) {
        Shape shape;
        shape.kind = Shape::Kind::dealt;
        Dealt& to = shape.dealt;
        to.dimensions = random_.between(1, 3);
        int left = std::max(values, 1);
        for (int d = 0; d < to.dimensions; ++d) {
            constexpr int all_ways[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC,
                                        MPI_DISTRIBUTE_NONE};
            to.ways[d] = all_ways[random_.below(3)];
            to.places[d] = to.ways[d] == MPI_DISTRIBUTE_NONE ? 1 : random_.between(1, 3);
            to.sizes[d] = number(std::min(left * to.places[d], 60), 1);
            to.blocks[d] = MPI_DISTRIBUTE_DFLT_DARG;
            if (to.ways[d] == MPI_DISTRIBUTE_CYCLIC && random_.chance(60))
                to.blocks[d] = random_.between(1, 4);
            if (to.ways[d] == MPI_DISTRIBUTE_BLOCK && random_.chance(30))
                to.blocks[d] = (to.sizes[d] + to.places[d] - 1) / to.places[d] + random_.below(2);
            to.processes *= to.places[d];
            left = std::max(1, left * to.places[d] / to.sizes[d]);
        }
        to.rank = random_.below(to.processes);
        to.order = random_.chance(50) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
        shape.children.push_back(inner(left, depth));
        return shape;
    }

    Random& random_;
    int nodes_;
    int favourite_;
    bool is_mixed_;
};

}  // namespace battery
