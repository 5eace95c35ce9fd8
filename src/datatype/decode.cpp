// SPDX-License-Identifier: BSD-3-Clause
// From the description of a datatype to its type map: a function for each kind of combiner.
#include "decode.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "library/api.hpp"

namespace vecmpi::datatype {

namespace {

using MaybeMap = std::optional<TypeMap>;

// The arguments of the function that made a type, in the standard's order (MPI 4.0, 5.1.13). In the
// description of a large-count function the MPI_Count arguments stand among the counts.
class Arguments {
  public:
    explicit Arguments(const TypeTree& tree) : tree_(tree), is_large_(!tree.counts.empty()) {}
    int64_t integer() { return at(tree_.integers, integers_); }
    int64_t count() { return is_large_ ? at(tree_.counts, counts_) : integer(); }
    int64_t address() {
        return is_large_ ? at(tree_.counts, counts_) : at(tree_.addresses, addresses_);
    }
    std::vector<int64_t> count_list(int64_t length) {
        return list(length, [this] { return count(); });
    }
    std::vector<int64_t> integer_list(int64_t length) {
        return list(length, [this] { return integer(); });
    }
    std::vector<int64_t> address_list(int64_t length) {
        return list(length, [this] { return address(); });
    }

  private:
    static int64_t at(const std::vector<int64_t>& values, size_t& index) {
        return index < values.size() ? values[index++] : 0;
    }
    template <class Next>
    static std::vector<int64_t> list(int64_t length, Next next) {
        std::vector<int64_t> values;
        values.reserve(static_cast<size_t>(length));
        for (int64_t i = 0; i < length; ++i) values.push_back(next());
        return values;
    }
    const TypeTree& tree_;
    bool is_large_;
    size_t integers_ = 0, addresses_ = 0, counts_ = 0;
};

// ---- predefined types --------------------------------------------------------------------------

template <class Value>
struct Pair {
    Value value;
    int index;
};
template <class Value>
TypeMap pair_map() {
    return of_blocks({{0, sizeof(Value)}, {offsetof(Pair<Value>, index), sizeof(int)}});
}

TypeMap named_map(const TypeTree& tree) {
    switch (tree.named) {
        case MPI_FLOAT_INT:
            return pair_map<float>();
        case MPI_DOUBLE_INT:
            return pair_map<double>();
        case MPI_LONG_INT:
            return pair_map<long>();
        case MPI_SHORT_INT:
            return pair_map<short>();
        case MPI_LONG_DOUBLE_INT:
            return pair_map<long double>();
        default:
            return dense(tree.size);
    }
}

// ---- one type repeated -------------------------------------------------------------------------

struct Inner {
    TypeMap map;
    int64_t extent;
};

// `number` copies of a type map: each takes memory of its own.
bool is_too_large(const TypeMap& map, size_t number) {
    return memory_bytes(map) > most_map_bytes / number;
}

TypeMap copies(const Inner& inner, int64_t count) {
    return repeated(inner.map, count, inner.extent);
}

TypeMap vector_map(const TypeTree& tree, const Inner& inner, int64_t unit, bool by_address) {
    Arguments arguments(tree);
    const int64_t count = arguments.count(), length = arguments.count();
    const int64_t stride = by_address ? arguments.address() : arguments.count();
    return count == 0 ? TypeMap{} : repeated(copies(inner, length), count, stride * unit);
}

// lengths[i] copies at offsets[i], in bytes.
MaybeMap indexed_map(const Inner& inner, const std::vector<int64_t>& lengths,
                     const std::vector<int64_t>& offsets, Described& how) {
    bool are_equal = true;
    for (const int64_t length : lengths) are_equal &= length == lengths[0];
    if (lengths.empty()) return TypeMap{};
    if (are_equal) return at_places(copies(inner, lengths[0]), offsets);
    if (copies(inner, 2).kind == TypeMap::Kind::dense) {
        std::vector<kernels::Block> blocks;
        blocks.reserve(lengths.size());
        for (size_t i = 0; i < lengths.size(); ++i)
            blocks.push_back({offsets[i] + inner.map.offset, lengths[i] * inner.map.bytes});
        return of_blocks(blocks);
    }
    if (is_too_large(inner.map, lengths.size())) {
        how = Described::too_large;
        return std::nullopt;
    }
    std::vector<TypeMap> parts;
    parts.reserve(lengths.size());
    for (size_t i = 0; i < lengths.size(); ++i)
        parts.push_back(moved(copies(inner, lengths[i]), offsets[i]));
    return joined(std::move(parts));
}

MaybeMap indexed(const TypeTree& tree, const Inner& inner, bool one_length, bool by_address,
                 Described& how) {
    Arguments arguments(tree);
    const int64_t count = arguments.count();
    std::vector<int64_t> lengths =
        one_length ? std::vector<int64_t>(static_cast<size_t>(count), arguments.count())
                   : arguments.count_list(count);
    std::vector<int64_t> offsets =
        by_address ? arguments.address_list(count) : arguments.count_list(count);
    if (!by_address)
        for (int64_t& offset : offsets) offset *= inner.extent;
    return indexed_map(inner, lengths, offsets, how);
}

// ---- parts of arrays ---------------------------------------------------------------------------

// Calls each(dimension), from the one that is contiguous in memory outwards.
template <class Each>
void from_innermost(int64_t dimensions, int64_t order, Each each) {
    for (int64_t i = 0; i < dimensions; ++i)
        each(static_cast<size_t>(order == MPI_ORDER_FORTRAN ? i : dimensions - 1 - i));
}

TypeMap subarray_map(const TypeTree& tree, const Inner& inner) {
    Arguments arguments(tree);
    const int64_t dimensions = arguments.integer();
    const auto sizes = arguments.count_list(dimensions);
    const auto parts = arguments.count_list(dimensions);
    const auto starts = arguments.count_list(dimensions);
    const int64_t order = arguments.integer();
    TypeMap map = inner.map;
    int64_t unit = inner.extent;
    from_innermost(dimensions, order, [&](size_t d) {
        map = moved(repeated(std::move(map), parts[d], unit), starts[d] * unit);
        unit *= sizes[d];
    });
    return map;
}

// What process `place` of `places` has of a dimension: blocks of `block` elements are dealt out in
// turn (block-cyclic).
TypeMap dealt_out(const TypeMap& map, int64_t unit, int64_t size, int64_t block, int64_t places,
                  int64_t place) {
    const int64_t round = block * places;
    const int64_t first = place * block;
    if (first >= size) return {};
    const int64_t whole = (size - first) / round;       // rounds
    const int64_t rest = size - first - whole * round;  // begins with one more block
    const int64_t last = rest < block ? rest : block;
    const TypeMap row = repeated(map, block, unit);
    return moved(joined({repeated(row, whole, round * unit),
                         moved(repeated(map, last, unit), whole * round * unit)}),
                 first * unit);
}

// MPI 4.0, 5.1.4: processes are in row-major order, whatever the order of the array.
MaybeMap darray_map(const TypeTree& tree, const Inner& inner, Described& how) {
    Arguments arguments(tree);
    arguments.integer();  // the number of processes
    int64_t rank = arguments.integer();
    const int64_t dimensions = arguments.integer();
    const auto sizes = arguments.count_list(dimensions);
    const auto ways = arguments.integer_list(dimensions);
    const auto blocks = arguments.integer_list(dimensions);
    const auto places = arguments.integer_list(dimensions);
    const int64_t order = arguments.integer();
    std::vector<int64_t> place(places.size());
    for (size_t d = places.size(); d-- > 0; rank /= places[d]) place[d] = rank % places[d];
    TypeMap map = inner.map;
    int64_t unit = inner.extent;
    bool is_known = true;
    from_innermost(dimensions, order, [&](size_t d) {
        int64_t block = blocks[d];
        if (ways[d] == MPI_DISTRIBUTE_NONE)
            block = sizes[d];
        else if (block == MPI_DISTRIBUTE_DFLT_DARG)
            block = ways[d] == MPI_DISTRIBUTE_BLOCK ? (sizes[d] + places[d] - 1) / places[d] : 1;
        is_known &= block > 0 && ways[d] >= MPI_DISTRIBUTE_BLOCK && ways[d] <= MPI_DISTRIBUTE_NONE;
        constexpr size_t of_a_dimension = 3;
        if (is_too_large(map, of_a_dimension)) how = Described::too_large;
        is_known &= how == Described::fully;
        if (is_known) map = dealt_out(map, unit, sizes[d], block, places[d], place[d]);
        unit *= sizes[d];
    });
    return is_known ? MaybeMap(std::move(map)) : std::nullopt;
}

// ---- structs -----------------------------------------------------------------------------------

bool is_struct(const TypeTree& tree) noexcept {
    return tree.combiner == MPI_COMBINER_STRUCT || tree.combiner == MPI_COMBINER_STRUCT_INTEGER;
}

MaybeMap decode(const TypeTree& tree, Described& how);

MaybeMap struct_map(const TypeTree& tree, Described& how) {
    Arguments arguments(tree);
    const int64_t count = arguments.count();
    const auto lengths = arguments.count_list(count);
    const auto offsets = arguments.address_list(count);
    std::vector<TypeMap> parts;
    size_t bytes = 0;
    for (size_t i = 0; i < tree.types.size(); ++i) {
        MaybeMap part = decode(tree.types[i], how);
        if (!part) return part;
        bytes += memory_bytes(*part);
        if (bytes > most_map_bytes) {
            how = Described::too_large;
            return std::nullopt;
        }
        parts.push_back(
            moved(repeated(std::move(*part), lengths[i], tree.types[i].extent), offsets[i]));
    }
    return joined(std::move(parts));
}

MaybeMap decode_any(const TypeTree& tree, Described& how) {
    if (tree.combiner == MPI_COMBINER_NAMED) return named_map(tree);
    if (is_struct(tree)) return struct_map(tree, how);
    if (tree.types.size() != 1) return std::nullopt;
    MaybeMap map = decode(tree.types[0], how);
    if (!map) return map;
    const Inner inner{std::move(*map), tree.types[0].extent};
    switch (tree.combiner) {
        case MPI_COMBINER_DUP:
        case MPI_COMBINER_RESIZED:
            return inner.map;
        case MPI_COMBINER_CONTIGUOUS:
            return copies(inner, Arguments(tree).count());
        case MPI_COMBINER_VECTOR:
            return vector_map(tree, inner, inner.extent, false);
        case MPI_COMBINER_HVECTOR:
        case MPI_COMBINER_HVECTOR_INTEGER:
            return vector_map(tree, inner, 1, true);
        case MPI_COMBINER_INDEXED:
            return indexed(tree, inner, false, false, how);
        case MPI_COMBINER_HINDEXED:
        case MPI_COMBINER_HINDEXED_INTEGER:
            return indexed(tree, inner, false, true, how);
        case MPI_COMBINER_INDEXED_BLOCK:
            return indexed(tree, inner, true, false, how);
        case MPI_COMBINER_HINDEXED_BLOCK:
            return indexed(tree, inner, true, true, how);
        case MPI_COMBINER_SUBARRAY:
            return subarray_map(tree, inner);
        case MPI_COMBINER_DARRAY:
            return darray_map(tree, inner, how);
        default:
            return std::nullopt;
    }
}

MaybeMap decode(const TypeTree& tree, Described& how) {
    MaybeMap map = decode_any(tree, how);
    if (!map || !is_too_large(*map, 1)) return map;
    how = Described::too_large;
    return std::nullopt;
}

}  // namespace

int64_t cut_bytes(const TypeTree& tree) noexcept {
    constexpr int64_t much_less_than_a_piece = 512;
    const auto if_short = [](int64_t bytes) noexcept {
        return bytes <= much_less_than_a_piece ? bytes : 0;
    };
    if (tree.combiner == MPI_COMBINER_NAMED || tree.types.empty()) return if_short(tree.size);
    if (!is_struct(tree)) return cut_bytes(tree.types.front());
    Arguments arguments(tree);
    const int64_t members = arguments.count();
    int64_t common = 1, begin = 0;  // begin: of the member's first element in the stream
    for (size_t i = 0; i < static_cast<size_t>(members); ++i) {
        const int64_t bytes = arguments.count() * tree.types[i].size;
        if (bytes == 0) continue;
        const int64_t of_member = cut_bytes(tree.types[i]);
        if (of_member == 0 || begin % of_member != 0) return if_short(tree.size);
        common = std::lcm(common, of_member);
        if (common > much_less_than_a_piece) return if_short(tree.size);
        begin += bytes;
    }
    return begin % common == 0 && if_short(common) != 0 ? common : if_short(tree.size);
}

MPI_Datatype only_value_type(const TypeTree& tree, int64_t most_bytes) noexcept {
    if (tree.combiner == MPI_COMBINER_NAMED) {
        const bool is_plain = tree.size <= most_bytes && tree.extent == tree.size;
        return is_plain && library::is_builtin_type(tree.named) ? tree.named : MPI_DATATYPE_NULL;
    }
    if (tree.types.empty()) return MPI_DATATYPE_NULL;
    const MPI_Datatype first = only_value_type(tree.types.front(), most_bytes);
    for (const TypeTree& type : tree.types)
        if (only_value_type(type, most_bytes) != first) return MPI_DATATYPE_NULL;
    return first;
}

namespace {

bool is_run_of_values(const TypeTree& tree) noexcept {
    switch (tree.combiner) {
        case MPI_COMBINER_NAMED:  // a pair may have a gap
            return tree.extent == tree.size;
        case MPI_COMBINER_DUP:
        case MPI_COMBINER_CONTIGUOUS:
            return tree.counts.empty() && is_run_of_values(tree.types.front());
        default:
            return false;
    }
}

bool is_constructor(int combiner) noexcept {
    switch (combiner) {
        case MPI_COMBINER_CONTIGUOUS:
        case MPI_COMBINER_VECTOR:
        case MPI_COMBINER_HVECTOR:
        case MPI_COMBINER_INDEXED:
        case MPI_COMBINER_HINDEXED:
        case MPI_COMBINER_INDEXED_BLOCK:
        case MPI_COMBINER_HINDEXED_BLOCK:
        case MPI_COMBINER_STRUCT:
        case MPI_COMBINER_SUBARRAY:
            return true;
        default:
            return false;
    }
}

}  // namespace

bool has_one_level(const TypeTree& tree) noexcept {
    const TypeTree* of = &tree;
    while (of->combiner == MPI_COMBINER_DUP) of = &of->types.front();
    if (of->combiner == MPI_COMBINER_RESIZED && of->counts.empty()) {
        const int64_t lower_bound = of->addresses.front(), extent = of->addresses.back();
        if (lower_bound != 0 || extent < 0) return false;
        of = &of->types.front();
        if (is_run_of_values(*of)) return true;
    }
    return of->counts.empty() && is_constructor(of->combiner) &&
           std::all_of(of->types.begin(), of->types.end(), is_run_of_values);
}

MaybeMap decode(const TypeTree& tree, Described* how) {
    Described found = Described::fully;
    MaybeMap map = decode(tree, found);
    if (!map && found == Described::fully) found = Described::unknown;
    if (how != nullptr) *how = found;
    return map;
}

}  // namespace vecmpi::datatype
