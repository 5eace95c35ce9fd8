// SPDX-License-Identifier: BSD-3-Clause
// Lays a shape out as an MPI datatype, by random constructors and displacements, and keeps its type
// map by our own walk. Must not communicate.
#pragma once

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "type_shape.hpp"

namespace battery {

struct Item {
    MPI_Aint offset;
    int basic;
    const Basic& type() const { return basic_types()[static_cast<size_t>(basic)]; }
};

// A datatype and its type map. Owns the handle unless it is predefined.
struct Built {
    MPI_Datatype handle = MPI_DATATYPE_NULL;
    bool is_owned = false;
    int number = 0;  // in the text
    std::vector<Item> map;
    MPI_Aint extent = 0, low = 0, high = 0;

    Built() = default;
    Built(Built&& other) noexcept { *this = std::move(other); }
    Built& operator=(Built&& other) noexcept {
        std::swap(handle, other.handle);
        std::swap(is_owned, other.is_owned);
        std::swap(number, other.number);
        map.swap(other.map);
        extent = other.extent;
        low = other.low;
        high = other.high;
        return *this;
    }
    ~Built() { free(); }
    void free() {
        if (is_owned) MPI_Type_free(&handle);
        is_owned = false;
        handle = MPI_DATATYPE_NULL;
    }
    MPI_Aint span() const { return high - low; }
    MPI_Aint size() const {
        MPI_Aint bytes = 0;
        for (const Item& item : map) bytes += item.type().size();
        return bytes;
    }
};

// Where `count` copies lie.
struct Range {
    MPI_Aint low = 0, bytes = 0;
};
inline Range range_of(const Built& type, MPI_Aint count) {
    if (count == 0 || type.map.empty()) return {};
    const MPI_Aint last = (count - 1) * type.extent;
    return {type.low + std::min<MPI_Aint>(last, 0), type.span() + std::abs(last)};
}

// Does no byte belong to two values?
inline bool is_disjoint(const Built& type, MPI_Aint count) {
    const Range range = range_of(type, count);
    std::vector<bool> taken(static_cast<size_t>(range.bytes));
    for (MPI_Aint copy = 0; copy < count; ++copy)
        for (const Item& item : type.map)
            for (int p = 0; p < item.type().parts; ++p) {
                const Part& part = item.type().part[p];
                const MPI_Aint at = item.offset + copy * type.extent + part.offset - range.low;
                for (MPI_Aint byte = at; byte < at + part.bytes; ++byte) {
                    if (taken[static_cast<size_t>(byte)]) return false;
                    taken[static_cast<size_t>(byte)] = true;
                }
            }
    return true;
}

// One run of memory, in order?
inline bool is_contiguous(const Built& type, MPI_Aint count) {
    if (type.map.empty() || count == 0) return true;
    MPI_Aint at = type.map[0].offset;
    for (const Item& item : type.map) {
        if (item.offset != at || item.type().span() != item.type().size()) return false;
        at += item.type().size();
    }
    return count == 1 || type.extent == at - type.map[0].offset;
}

class Builder {
  public:
    // disjoint: blocks do not overlap, at least mostly: is_disjoint() says so. text: what is
    // called. may_be_large: by large-count constructors.
    Builder(uint64_t seed, bool disjoint, bool may_be_large = false, std::string* text = nullptr)
        : random_(seed), disjoint_(disjoint), text_(text) {
        is_aligned_ = random_.chance(70);
        is_large_ = may_be_large && random_.chance(50);
        oddness_ = random_.below(3);
    }

    Built build(const Shape& shape) {
        Built built = build_kind(shape);
        if (shape.kind != Shape::Kind::leaf && random_.chance(8)) built = duplicate(built);
        if (random_.chance(5 * oddness_)) built = odd_extent(built);
        return built;
    }

    // The same values one behind the other, with gaps, in one struct: legal wherever a buffer is.
    Built spread(const std::vector<Item>& map) {
        std::vector<MPI_Aint> lengths, bytes;
        std::vector<const Built*> children;
        std::vector<Built> leaves(basic_types().size());
        Built built;
        MPI_Aint at = 0;
        for (size_t i = 0; i < map.size();) {
            const int basic = map[i].basic;
            Built& leaf = leaves[static_cast<size_t>(basic)];
            if (leaf.handle == MPI_DATATYPE_NULL) leaf = named(basic);
            size_t end = i + 1;
            while (end < map.size() && map[end].basic == basic && !random_.chance(5) &&
                   end < i + 50)
                ++end;
            at += 8 * random_.between(lengths.size() == 1 ? 1 : 0, 2);
            lengths.push_back(static_cast<MPI_Aint>(end - i));
            bytes.push_back(at);
            children.push_back(&leaf);
            for (; i < end; ++i, at += leaf.extent) built.map.push_back({at, basic});
        }
        structure(built, lengths, bytes, children);
        const Built whole = std::move(built);
        return resize(whole, 0, (at + 15) / 8 * 8);
    }

    // A type that is one absolute address of `count` copies.
    Built at_address(const Built& child, int count, MPI_Aint address) {
        Built built;
        const MPI_Aint length = count;
        const int way = random_.below(3);
        if (way == 0) {
            MPI_Type_create_hindexed(1, &count, &address, child.handle, &built.handle);
        } else if (way == 1) {
            MPI_Type_create_hindexed_block(1, count, &address, child.handle, &built.handle);
        } else {
            MPI_Datatype type = child.handle;
            MPI_Type_create_struct(1, &count, &address, &type, &built.handle);
        }
        finish(built, "absolute, %s of %ld t%d",
               way == 0   ? "hindexed"
               : way == 1 ? "hindexed_block"
                          : "struct",
               length, child.number);
        return built;
    }

    Built resize(const Built& child, MPI_Aint lower, MPI_Aint extent) {
        Built built;
        if (is_large_)
            MPI_Type_create_resized_c(child.handle, lower, extent, &built.handle);
        else
            MPI_Type_create_resized(child.handle, lower, extent, &built.handle);
        built.map = child.map;
        finish(built, "resized%s(t%d, %ld, %ld)", c(), child.number, lower, extent);
        return built;
    }

  private:
    using Longs = std::vector<MPI_Aint>;
    const char* c() const { return is_large_ ? "_c" : ""; }

    __attribute__((format(printf, 2, 3))) void say(const char* format, ...) {
        if (text_ == nullptr) return;
        char line[400];
        va_list arguments;
        va_start(arguments, format);
        std::vsnprintf(line, sizeof line, format, arguments);
        va_end(arguments);
        *text_ += line;
    }
    void say_list(const Longs& list) {
        constexpr size_t most = 60;
        say("{");
        for (size_t i = 0; i < std::min(list.size(), most); ++i)
            say("%s%ld", i == 0 ? "" : ",", list[i]);
        say("%s}", list.size() > most ? ",..." : "");
    }

    template <class... Arguments>
    void finish(Built& built, const char* format, Arguments... arguments) {
        MPI_Aint lower = 0;
        MPI_Type_get_extent(built.handle, &lower, &built.extent);
        built.is_owned = true;
        built.number = ++number_;
        bound(built);
        if (text_ == nullptr) return;
        say("t%d = ", built.number);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-security"
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        say(format, arguments...);
#pragma GCC diagnostic pop
        say(" [lower %ld, extent %ld]\n", lower, built.extent);
    }
    static void bound(Built& built) {
        built.low = built.high = 0;
        if (built.map.empty()) return;
        built.low = built.high = built.map[0].offset;
        for (const Item& item : built.map) {
            built.low = std::min(built.low, item.offset);
            built.high = std::max(built.high, item.offset + item.type().span());
        }
    }

    static void place(Built& built, const Built& child, MPI_Aint at, MPI_Aint copies) {
        for (MPI_Aint copy = 0; copy < copies; ++copy)
            for (const Item& item : child.map)
                built.map.push_back({item.offset + at + copy * child.extent, item.basic});
    }

    Built named(int basic) {
        Built built;
        built.handle = basic_types()[static_cast<size_t>(basic)].type;
        built.number = ++number_;
        built.map.push_back({0, basic});
        MPI_Aint lower = 0;
        MPI_Type_get_extent(built.handle, &lower, &built.extent);
        bound(built);
        say("t%d = %s\n", built.number, built.map[0].type().name);
        return built;
    }

    Built build_kind(const Shape& shape) {
        switch (shape.kind) {
            case Shape::Kind::leaf:
                return named(shape.basic);
            case Shape::Kind::rows:
                return rows(shape);
            case Shape::Kind::lists:
                return lists(shape);
            case Shape::Kind::members:
                return members(shape);
            case Shape::Kind::box:
                return box(shape);
            case Shape::Kind::dealt:
                return dealt(shape);
        }
        return {};
    }

    MPI_Aint gap() {
        if (random_.chance(40)) return 0;
        return is_aligned_ ? 8 * random_.below(4) : random_.below(30);
    }
    MPI_Aint aligned(MPI_Aint bytes) const { return is_aligned_ ? (bytes + 7) / 8 * 8 : bytes; }

    Built duplicate(const Built& child) {
        Built built;
        MPI_Type_dup(child.handle, &built.handle);
        built.map = child.map;
        finish(built, "dup(t%d)", child.number);
        return built;
    }

    // Extents that are larger and smaller than the span, negative, or 0.
    Built odd_extent(const Built& child) {
        const MPI_Aint span = child.span();
        MPI_Aint extent = span + random_.below(64);
        switch (random_.below(disjoint_ ? 4 : 6)) {
            case 0:
                extent = span + random_.below(2000);
                break;
            case 1:
                extent = -span - random_.below(40);
                break;
            case 2:
                extent = 4 << random_.below(3);  // columns may interleave
                break;
            case 4:
                extent = 0;
                break;
            case 5:
                extent = random_.between(-40, 40);
                break;
            default:
                break;
        }
        if (is_aligned_) extent = extent / 4 * 4;
        const MPI_Aint lower = random_.chance(50) ? child.low : random_.between(-50, 50);
        return resize(child, lower, extent);
    }

    // MPICH 4.0.2 moves rows of a child with a negative extent from one element too low.
    Built upwards(Built child) {
        if (child.extent >= 0) return child;
        return resize(child, child.low, aligned(child.span()));
    }

    // Its copies shall not overlap; now and then that is left to chance, so that they may
    // interleave.
    Built apart(Built child) {
        if (!disjoint_ || std::abs(child.extent) >= child.span() || random_.chance(20))
            return child;
        return resize(child, child.low, aligned(child.span()));
    }

    // ---- blocks of one child -------------------------------------------------------------------

    Built rows(const Shape& shape) {
        const Built child = upwards(apart(build(shape.children[0])));
        const MPI_Aint count = shape.count, length = shape.lengths[0];
        if (random_.chance(15)) {
            Built built;
            if (is_large_)
                MPI_Type_contiguous_c(count * length, child.handle, &built.handle);
            else
                MPI_Type_contiguous(static_cast<int>(count * length), child.handle, &built.handle);
            place(built, child, 0, count * length);
            finish(built, "contiguous%s(%ld, t%d)", c(), count * length, child.number);
            return built;
        }
        if (random_.chance(35)) return blocks(child, Longs(static_cast<size_t>(count), length));
        return vector(child, count, length);
    }

    Built vector(const Built& child, MPI_Aint count, MPI_Aint length) {
        const MPI_Aint sign = random_.chance(25) ? -1 : 1;
        const bool by_bytes = child.extent == 0 || random_.chance(50);
        MPI_Aint stride = length + random_.below(5);
        MPI_Aint unit = child.extent;
        if (by_bytes) {
            const Range range = range_of(child, length);
            stride = aligned(range.bytes + gap());
            unit = 1;
        }
        stride *= sign;
        if (!disjoint_ && random_.chance(30)) stride = random_.between(-9, 9);
        Built built;
        MPI_Datatype* const to = &built.handle;
        const auto n = static_cast<int>(count), m = static_cast<int>(length);
        if (by_bytes && is_large_)
            MPI_Type_create_hvector_c(count, length, stride, child.handle, to);
        if (by_bytes && !is_large_) MPI_Type_create_hvector(n, m, stride, child.handle, to);
        if (!by_bytes && is_large_) MPI_Type_vector_c(count, length, stride, child.handle, to);
        if (!by_bytes && !is_large_)
            MPI_Type_vector(n, m, static_cast<int>(stride), child.handle, to);
        for (MPI_Aint i = 0; i < count; ++i) place(built, child, i * stride * unit, length);
        finish(built, "%s%s(%ld, %ld, %ld, t%d)", by_bytes ? "hvector" : "vector", c(), count,
               length, stride, child.number);
        return built;
    }

    Built lists(const Shape& shape) {
        Built child = apart(build(shape.children[0]));
        if (std::any_of(shape.lengths.begin(), shape.lengths.end(), [](int n) { return n > 1; }))
            child = upwards(std::move(child));
        return blocks(child, Longs(shape.lengths.begin(), shape.lengths.end()));
    }

    // Where the blocks begin, in extents of the child or in bytes; some in another order.
    Longs displacements(const Built& child, const Longs& lengths, bool by_bytes) {
        std::vector<size_t> order(lengths.size());
        std::iota(order.begin(), order.end(), size_t{0});
        const int way = random_.below(5);
        if (way == 0) std::reverse(order.begin(), order.end());
        for (size_t i = order.size(); way == 1 && i > 1; --i)
            std::swap(order[i - 1], order[static_cast<size_t>(random_.below(static_cast<int>(i)))]);
        const bool is_even = random_.chance(30);
        const MPI_Aint fixed = by_bytes ? gap() : random_.below(3);
        Longs at(lengths.size());
        MPI_Aint end =
            is_aligned_ && by_bytes ? 8 * random_.between(-5, 5) : random_.between(-20, 9);
        for (const size_t i : order) {
            end += is_even ? fixed : by_bytes ? gap() : random_.below(3);
            if (by_bytes) {
                const Range range = range_of(child, lengths[i]);
                at[i] = end - range.low;
                end += aligned(range.bytes);
            } else {
                at[i] = end;
                end += lengths[i];
            }
            if (!disjoint_ && random_.chance(5)) end -= random_.below(20);
        }
        return at;
    }

    Built blocks(const Built& child, const Longs& lengths) {
        const bool are_equal = std::adjacent_find(lengths.begin(), lengths.end(),
                                                  std::not_equal_to<>()) == lengths.end();
        const bool by_bytes = child.extent == 0 || random_.chance(50);
        const Longs at = displacements(child, lengths, by_bytes);
        Built built;
        for (size_t i = 0; i < lengths.size(); ++i)
            place(built, child, at[i] * (by_bytes ? 1 : child.extent), lengths[i]);
        if (by_bytes && lengths.size() < 40 && random_.chance(20)) {
            structure(built, lengths, at, std::vector<const Built*>(lengths.size(), &child));
            return built;
        }
        const bool as_blocks = are_equal && random_.chance(60);
        const MPI_Aint length = lengths.empty() ? 3 : lengths[0];
        MPI_Datatype* const to = &built.handle;
        const MPI_Datatype type = child.handle;
        const auto number = static_cast<MPI_Aint>(lengths.size());
        const auto n = static_cast<int>(number), m = static_cast<int>(length);
        const std::vector<MPI_Count> counts(lengths.begin(), lengths.end()),
            places(at.begin(), at.end());
        const std::vector<int> ints(lengths.begin(), lengths.end()),
            places_as_ints(at.begin(), at.end());
        const auto d = places.data();
        if (as_blocks && is_large_) {
            if (by_bytes)
                MPI_Type_create_hindexed_block_c(number, length, d, type, to);
            else
                MPI_Type_create_indexed_block_c(number, length, d, type, to);
        } else if (as_blocks) {
            if (by_bytes)
                MPI_Type_create_hindexed_block(n, m, at.data(), type, to);
            else
                MPI_Type_create_indexed_block(n, m, places_as_ints.data(), type, to);
        } else if (is_large_) {
            if (by_bytes)
                MPI_Type_create_hindexed_c(number, counts.data(), d, type, to);
            else
                MPI_Type_indexed_c(number, counts.data(), d, type, to);
        } else {
            if (by_bytes)
                MPI_Type_create_hindexed(n, ints.data(), at.data(), type, to);
            else
                MPI_Type_indexed(n, ints.data(), places_as_ints.data(), type, to);
        }
        say_blocks(lengths, at);
        finish(built, "%s%s%s(%ld, lengths, places, t%d)", by_bytes ? "hindexed" : "indexed",
               as_blocks ? "_block" : "", c(), number, child.number);
        return built;
    }

    void say_blocks(const Longs& lengths, const Longs& at) {
        if (text_ == nullptr) return;
        say("  lengths ");
        say_list(lengths);
        say(", places ");
        say_list(at);
        say("\n");
    }

    void structure(Built& built, const Longs& lengths, const Longs& at,
                   const std::vector<const Built*>& children) {
        std::vector<MPI_Datatype> types;
        for (const Built* child : children) types.push_back(child->handle);
        const std::vector<MPI_Count> counts(lengths.begin(), lengths.end()),
            places(at.begin(), at.end());
        const std::vector<int> ints(lengths.begin(), lengths.end());
        if (is_large_)
            MPI_Type_create_struct_c(static_cast<MPI_Count>(types.size()), counts.data(),
                                     places.data(), types.data(), &built.handle);
        else
            MPI_Type_create_struct(static_cast<int>(types.size()), ints.data(), at.data(),
                                   types.data(), &built.handle);
        say_blocks(lengths, at);
        Longs numbers;
        for (const Built* child : children) numbers.push_back(child->number);
        say("  types ");
        say_list(numbers);
        say("\n");
        finish(built, "struct%s(%zu, lengths, places, types)", c(), types.size());
    }

    // ---- others --------------------------------------------------------------------------------

    Built members(const Shape& shape) {
        std::vector<Built> children;
        for (const Shape& child : shape.children) {
            Built built = apart(build(child));
            const bool is_row = shape.lengths[children.size()] > 1;
            children.push_back(is_row ? upwards(std::move(built)) : std::move(built));
        }
        std::vector<size_t> order(children.size());
        std::iota(order.begin(), order.end(), size_t{0});
        if (random_.chance(30)) std::reverse(order.begin(), order.end());
        const Longs lengths(shape.lengths.begin(), shape.lengths.end());
        Longs at(children.size());
        MPI_Aint end = is_aligned_ ? 8 * random_.between(-9, 9) : random_.between(-60, 60);
        for (const size_t i : order) {
            const Range range = range_of(children[i], lengths[i]);
            end += gap();
            at[i] = end - range.low;
            end += aligned(range.bytes);
            if (!disjoint_ && random_.chance(10)) end -= random_.below(20);
        }
        Built built;
        std::vector<const Built*> pointers;
        for (size_t i = 0; i < children.size(); ++i) {
            place(built, children[i], at[i], lengths[i]);
            pointers.push_back(&children[i]);
        }
        structure(built, lengths, at, pointers);
        return built;
    }

    // Arrays are of elements that lie one behind the other.
    Built element(Built child) {
        if (child.extent > 0 && (!disjoint_ || child.extent >= child.span())) return child;
        return resize(child, child.low, aligned(std::max<MPI_Aint>(child.span(), 1)));
    }

    Built box(const Shape& shape) {
        const Built child = element(build(shape.children[0]));
        const size_t dimensions = shape.parts.size();
        std::vector<int> sizes, starts, parts(shape.parts);
        for (const int part : shape.parts) {
            starts.push_back(random_.below(3));
            sizes.push_back(starts.back() + part + random_.below(3));
        }
        Built built;
        std::vector<int> at(dimensions, 0);
        for (bool more = true; more;) {
            MPI_Aint index = 0;
            for (size_t d = 0; d < dimensions; ++d) index = index * sizes[d] + starts[d] + at[d];
            place(built, child, index * child.extent, 1);
            more = false;
            for (size_t d = dimensions; d-- > 0 && !more;) {
                more = ++at[d] < parts[d];
                if (!more) at[d] = 0;
            }
        }
        const bool is_fortran = random_.chance(50);
        if (is_fortran)
            for (std::vector<int>* list : {&sizes, &starts, &parts})
                std::reverse(list->begin(), list->end());
        const int order = is_fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C;
        const auto n = static_cast<int>(dimensions);
        if (is_large_) {
            const std::vector<MPI_Count> whole(sizes.begin(), sizes.end()),
                some(parts.begin(), parts.end()), from(starts.begin(), starts.end());
            MPI_Type_create_subarray_c(n, whole.data(), some.data(), from.data(), order,
                                       child.handle, &built.handle);
        } else {
            MPI_Type_create_subarray(n, sizes.data(), parts.data(), starts.data(), order,
                                     child.handle, &built.handle);
        }
        for (const std::vector<int>* list : {&sizes, &parts, &starts}) {
            say("  ");
            say_list(Longs(list->begin(), list->end()));
        }
        say(" sizes, parts, starts\n");
        finish(built, "subarray%s(%d, sizes, parts, starts, %s, t%d)", c(), n,
               is_fortran ? "FORTRAN" : "C", child.number);
        return built;
    }

    // MPICH 4.0.2 places cyclic darrays wrongly whose elements have a lower bound.
    Built dealt(const Shape& shape) {
        Built child = element(build(shape.children[0]));
        MPI_Aint lower = 0, extent = 0;
        MPI_Type_get_extent(child.handle, &lower, &extent);
        const Dealt& to = shape.dealt;
        std::vector<int> mine[3];
        MPI_Aint units[3], unit = 1;
        const bool is_fortran = to.order == MPI_ORDER_FORTRAN;
        for (int i = 0; i < to.dimensions; ++i) {
            const int d = is_fortran ? i : to.dimensions - 1 - i;
            mine[d] = to.indices(d);
            units[d] = unit;
            unit *= to.sizes[d];
        }
        size_t elements = 1;
        for (int d = 0; d < to.dimensions; ++d) elements *= mine[d].size();
        if (lower != 0 || random_.chance(25)) return blocks(child, Longs(elements, 1));
        Built built;
        std::vector<size_t> at(3, 0);
        for (size_t e = 0; e < elements; ++e) {
            MPI_Aint index = 0;
            for (int d = 0; d < to.dimensions; ++d)
                index += mine[d][at[static_cast<size_t>(d)]] * units[d];
            place(built, child, index * child.extent, 1);
            for (int i = 0; i < to.dimensions; ++i) {
                const auto d = static_cast<size_t>(is_fortran ? i : to.dimensions - 1 - i);
                if (++at[d] < mine[d].size()) break;
                at[d] = 0;
            }
        }
        if (is_large_) {
            const std::vector<MPI_Count> sizes(to.sizes, to.sizes + to.dimensions);
            MPI_Type_create_darray_c(to.processes, to.rank, to.dimensions, sizes.data(), to.ways,
                                     to.blocks, to.places, to.order, child.handle, &built.handle);
        } else {
            MPI_Type_create_darray(to.processes, to.rank, to.dimensions, to.sizes, to.ways,
                                   to.blocks, to.places, to.order, child.handle, &built.handle);
        }
        for (const int* list : {to.sizes, to.ways, to.blocks, to.places}) {
            say("  ");
            say_list(Longs(list, list + to.dimensions));
        }
        say(" sizes, ways, blocks, places\n");
        finish(built, "darray%s(%d, %d, %d, ..., %s, t%d)", c(), to.processes, to.rank,
               to.dimensions, is_fortran ? "FORTRAN" : "C", child.number);
        return built;
    }

    Random random_;
    bool disjoint_;
    bool is_aligned_ = true, is_large_ = false;
    int oddness_ = 0;
    int number_ = 0;
    std::string* text_;
};

}  // namespace battery
