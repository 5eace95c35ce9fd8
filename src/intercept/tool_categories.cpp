// SPDX-License-Identifier: BSD-3-Clause
// Categories of the MPI tool information interface (MPI 4.0, 15.3.9): the library's, and one that
// holds all of ours.
#include "intercept/mpi_handlers.hpp"
#include "tool_kinds.hpp"

namespace vecmpi::intercept {

constinit ToolKind tool_categories{&library::RealFunctions::T_category_get_num, 1, {}};

namespace {

constexpr std::string_view category_name = "vecmpi";
constexpr std::string_view category_text =
    "settings and counters of vecmpi, which is preloaded before the MPI library";

}  // namespace

int serve_T_category_get_num(int* num_cat) noexcept { return get_number(tool_categories, num_cat); }

int serve_T_category_get_info(int cat_index, char* name, int* name_len, char* desc, int* desc_len,
                              int* num_cvars, int* num_pvars, int* num_categories) noexcept {
    return by_index(
        tool_categories, cat_index,
        [=](int) noexcept {
            give_text(category_name, name, name_len);
            give_text(category_text, desc, desc_len);
            give(tool_cvars.ours, num_cvars);
            give(tool_pvars.ours, num_pvars);
            give(0, num_categories);
            return MPI_SUCCESS;
        },
        [=](int index) noexcept {
            return real.T_category_get_info(index, name, name_len, desc, desc_len, num_cvars,
                                            num_pvars, num_categories);
        });
}

int serve_T_category_get_num_events(int cat_index, int* num_events) noexcept {
    return by_index(
        tool_categories, cat_index,
        [=](int) noexcept {
            give(0, num_events);
            return MPI_SUCCESS;
        },
        [=](int index) noexcept { return real.T_category_get_num_events(index, num_events); });
}

int serve_T_category_get_index(const char* name, int* cat_index) noexcept {
    return index_of(
        tool_categories, name, cat_index,
        [](std::string_view wanted) { return wanted == category_name ? 0 : -1; },
        [=]() noexcept { return real.T_category_get_index(name, cat_index); });
}

namespace {

// The library has written the indices of all that it has, as far as they fit.
void show_indices(ToolKind& kind, int written, int len, int indices[]) noexcept {
    ToolIndices shown{};
    if (indices == nullptr || find_indices(kind, &shown) != MPI_SUCCESS) return;
    for (int i = 0; i < std::min(written, len); ++i) indices[i] = shown.of_library(indices[i]);
}

int give_our_indices(ToolKind& kind, int len, int indices[]) noexcept {
    ToolIndices shown{};
    const int rc = find_indices(kind, &shown);
    if (rc != MPI_SUCCESS || indices == nullptr) return rc;
    for (int i = 0; i < std::min(kind.ours, len); ++i) indices[i] = shown.of_ours(i);
    return MPI_SUCCESS;
}

// What one of the library's categories holds: variables, performance variables, categories.
struct Contents {
    int cvars = 0, pvars = 0, categories = 0;
};

Contents contents_of(int library_index) noexcept {
    Contents found;
    int none = 0, also_none = 0;
    real.T_category_get_info(library_index, nullptr, &none, nullptr, &also_none, &found.cvars,
                             &found.pvars, &found.categories);
    return found;
}

// listed: whose indices the call lists.
int list_contents(int cat_index, int len, int indices[], ToolKind& listed, int Contents::*number,
                  int (*library::RealFunctions::*list)(int, int, int*)) noexcept {
    return by_index(
        tool_categories, cat_index,
        [&](int) noexcept {
            return &listed == &tool_categories ? MPI_SUCCESS
                                               : give_our_indices(listed, len, indices);
        },
        [&](int index) noexcept {
            const int rc = (real.*list)(index, len, indices);
            if (rc == MPI_SUCCESS) show_indices(listed, contents_of(index).*number, len, indices);
            return rc;
        });
}

}  // namespace

int serve_T_category_get_cvars(int cat_index, int len, int indices[]) noexcept {
    return list_contents(cat_index, len, indices, tool_cvars, &Contents::cvars,
                         &library::RealFunctions::T_category_get_cvars);
}

int serve_T_category_get_pvars(int cat_index, int len, int indices[]) noexcept {
    return list_contents(cat_index, len, indices, tool_pvars, &Contents::pvars,
                         &library::RealFunctions::T_category_get_pvars);
}

int serve_T_category_get_categories(int cat_index, int len, int indices[]) noexcept {
    return list_contents(cat_index, len, indices, tool_categories, &Contents::categories,
                         &library::RealFunctions::T_category_get_categories);
}

int serve_T_category_get_events(int cat_index, int len, int indices[]) noexcept {
    return by_index(
        tool_categories, cat_index, [](int) noexcept { return MPI_SUCCESS; },
        [=](int index) noexcept { return real.T_category_get_events(index, len, indices); });
}

}  // namespace vecmpi::intercept
