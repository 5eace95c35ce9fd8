// SPDX-License-Identifier: BSD-3-Clause
// Which bytes of a datatype's stream are no part of a value. Pure.
#include <algorithm>
#include <cfloat>
#include <cstring>

#include "decode.hpp"

namespace vecmpi::datatype {

namespace {

// Of a long double, whatever that is here.
constexpr int64_t value_of_long_double = LDBL_MANT_DIG == 64 ? 10 : sizeof(long double);
constexpr kernels::Block behind_value{value_of_long_double,
                                      sizeof(long double) - value_of_long_double};

Padding named_padding(const TypeTree& tree) {
    switch (behind_value.bytes != 0 ? tree.named : MPI_DATATYPE_NULL) {
        case MPI_LONG_DOUBLE:
        case MPI_C_LONG_DOUBLE_COMPLEX:
        case MPI_CXX_LONG_DOUBLE_COMPLEX:
            return {sizeof(long double), {behind_value}};
        case MPI_LONG_DOUBLE_INT:
            return {tree.size, {behind_value}};
        default:
            return {};
    }
}

// The stream of a struct is those of its members, one behind the other. Members that are padded
// alike have whole periods, and so has the struct.
std::optional<Padding> struct_padding(const TypeTree& tree) {
    std::vector<Padding> members;
    for (const TypeTree& type : tree.types) {
        std::optional<Padding> member = padding_of(type);
        if (!member) return member;
        members.push_back(std::move(*member));
    }
    const auto is_like_first = [&](const Padding& member) { return member == members.front(); };
    if (members.empty()) return Padding{};
    if (std::all_of(members.begin(), members.end(), is_like_first)) return members.front();
    const auto& integers = tree.counts.empty() ? tree.integers : tree.counts;
    Padding all{std::max<int64_t>(tree.size, 1), {}};
    int64_t at = 0;
    for (size_t i = 0; i < members.size(); ++i) {
        const auto& [period, blocks] = members[i];
        const int64_t end = at + integers[i + 1] * tree.types[i].size;
        for (; !blocks.empty() && at < end; at += period)
            for (const kernels::Block& block : blocks) {
                if (all.blocks.size() == most_padding_blocks) return std::nullopt;
                all.blocks.push_back({at + block.offset, block.bytes});
            }
        at = end;
    }
    return all;
}

}  // namespace

std::optional<Padding> padding_of(const TypeTree& tree) {
    if (tree.combiner == MPI_COMBINER_NAMED) return named_padding(tree);
    if (tree.combiner == MPI_COMBINER_STRUCT || tree.combiner == MPI_COMBINER_STRUCT_INTEGER)
        return struct_padding(tree);
    return tree.types.empty() ? Padding{} : padding_of(tree.types.front());
}

void blank_padding(const Padding& padding, char* part, int64_t first, int64_t bytes) noexcept {
    if (padding.blocks.empty()) return;
    for (int64_t at = -(first % padding.period); at < bytes; at += padding.period)
        for (const kernels::Block& block : padding.blocks) {
            const int64_t begin = std::max<int64_t>(at + block.offset, 0);
            const int64_t end = std::min(at + block.offset + block.bytes, bytes);
            if (begin < end) std::memset(part + begin, 0, static_cast<size_t>(end - begin));
        }
}

}  // namespace vecmpi::datatype
