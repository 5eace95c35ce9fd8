// SPDX-License-Identifier: BSD-3-Clause
// The three kinds of things that the MPI tool information interface numbers, ours among the
// library's, and how a call finds out whose an index or a name is. Not a door: src/intercept only.
#pragma once

#include <atomic>

#include "offload/api.hpp"
#include "tool_variables.hpp"

namespace vecmpi::intercept {

// How often the program has initialised the interface. The library cannot say: it stays initialised
// for ourselves (offload/arithmetic.cpp).
extern std::atomic<int> tools_initialised;

struct ToolKind {
    int (*library::RealFunctions::*get_num)(int*);
    int ours;
    FirstNumber first;
};
extern ToolKind tool_cvars, tool_pvars, tool_categories;

// Refuses where the interface is not initialised.
inline int find_indices(ToolKind& kind, ToolIndices* indices) noexcept {
    if (tools_initialised.load(std::memory_order_relaxed) == 0) return MPI_T_ERR_NOT_INITIALIZED;
    int now = 0;
    const int rc = (real.*kind.get_num)(&now);
    if (rc == MPI_SUCCESS) *indices = {kind.first.settle(now), kind.ours};
    return rc;
}

inline int get_number(ToolKind& kind, int* number) noexcept {
    ToolIndices indices{};
    int rc = find_indices(kind, &indices);
    if (rc != MPI_SUCCESS) return rc;
    rc = (real.*kind.get_num)(number);
    if (rc == MPI_SUCCESS) *number += kind.ours;
    return rc;
}

// ours(number) or library(index), whose index it is.
template <class Ours, class Library>
int by_index(ToolKind& kind, int index, Ours ours, Library library) noexcept {
    ToolIndices indices{};
    const int rc = find_indices(kind, &indices);
    if (rc != MPI_SUCCESS) return rc;
    return indices.is_ours(index) ? ours(indices.our_number(index))
                                  : library(indices.library_index(index));
}

// number_of(name): below 0 where it is none of ours.
template <class NumberOf, class Library>
int index_of(ToolKind& kind, const char* name, int* index, NumberOf number_of,
             Library library) noexcept {
    ToolIndices indices{};
    int rc = find_indices(kind, &indices);
    if (rc != MPI_SUCCESS) return rc;
    if (name == nullptr || index == nullptr) return library();
    const int number = number_of(name);
    if (number >= 0) {
        *index = indices.of_ours(number);
        return MPI_SUCCESS;
    }
    rc = library();
    if (rc == MPI_SUCCESS) *index = indices.of_library(*index);
    return rc;
}

}  // namespace vecmpi::intercept
