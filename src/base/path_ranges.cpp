// SPDX-License-Identifier: BSD-3-Clause
// Which path a collective takes at which size, as the user writes it. Pure.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "setting_values.hpp"

namespace vecmpi::base {
namespace {

// The collectives that know a path by this name, in the order of enum CollectivePath.
enum : unsigned {
    of_none = 0,
    of_allreduce = 1,
    of_reduce = 2,
    of_reduce_scatter = 4,
    of_bcast = 8
};
constexpr unsigned of_allgather = 16, of_alltoall = 32, of_all = 63;

struct PathWord {
    const char* text;
    CollectivePath path;
    unsigned collectives;
};
constexpr PathWord path_words[] = {
    {"auto", CollectivePath::automatic, of_all},
    {"mpi", CollectivePath::mpi, of_all},
    {"segmented", CollectivePath::segmented, of_all & ~of_alltoall},
#define VECMPI_ALGORITHM(name, collectives) {#name, CollectivePath::name, collectives},
#include "base/api/algorithms.def"
#undef VECMPI_ALGORITHM
};

static_assert(std::size(path_words) == number_of_collective_paths);

bool read_path(std::string_view text, unsigned collective, CollectivePath& path) {
    for (const PathWord& word : path_words) {
        if ((word.collectives & collective) == 0 || !same_word(text, word.text)) continue;
        path = word.path;
        return true;
    }
    return false;
}

// "path" or "path:from-to".
bool read_range(std::string_view item, unsigned collective, PathRanges::Range& range) {
    range.from_bytes = 0;
    range.to_bytes = SIZE_MAX;
    size_t colon = item.find(':');
    if (!read_path(trim(item.substr(0, colon)), collective, range.path)) return false;
    if (colon == std::string_view::npos) return true;
    std::string_view sizes = item.substr(colon + 1);
    size_t dash = sizes.find('-');
    if (dash == std::string_view::npos) return false;
    return parse_bytes(trim(sizes.substr(0, dash)), range.from_bytes) &&
           parse_bytes(trim(sizes.substr(dash + 1)), range.to_bytes) &&
           range.from_bytes < range.to_bytes;
}

bool read_ranges(std::string_view text, unsigned collective, PathRanges& value) {
    PathRanges ranges;
    const bool are_known = take_items(text, ";,", [&](std::string_view item) {
        return read_range(item, collective, ranges.ranges.emplace_back());
    });
    if (are_known) value = std::move(ranges);
    return are_known;
}

}  // namespace

bool read_allreduce(std::string_view text, PathRanges& value) {
    return read_ranges(text, of_allreduce, value);
}
bool read_reduce(std::string_view text, PathRanges& value) {
    return read_ranges(text, of_reduce, value);
}
bool read_reduce_scatter(std::string_view text, PathRanges& value) {
    return read_ranges(text, of_reduce_scatter, value);
}
bool read_bcast(std::string_view text, PathRanges& value) {
    return read_ranges(text, of_bcast, value);
}
bool read_allgather(std::string_view text, PathRanges& value) {
    return read_ranges(text, of_allgather, value);
}
bool read_alltoall(std::string_view text, PathRanges& value) {
    return read_ranges(text, of_alltoall, value);
}

CollectivePath PathRanges::at(size_t bytes) const noexcept {
    for (size_t i = ranges.size(); i > 0; --i) {
        const Range& range = ranges[i - 1];
        bool below_end = bytes < range.to_bytes || range.to_bytes == SIZE_MAX;
        if (bytes >= range.from_bytes && below_end) return range.path;
    }
    return CollectivePath::automatic;
}

const char* mpi_name_of(Collective collective) noexcept {
    // In the order of enum Collective.
    constexpr const char* names[] = {"Allreduce",
                                     "Reduce",
                                     "Reduce_scatter",
                                     "Bcast",
                                     "Allgather",
                                     "Alltoall",
                                     "Barrier",
                                     "Scan",
                                     "Exscan",
                                     "Gather",
                                     "Scatter",
                                     "Allgatherv",
                                     "Gatherv",
                                     "Scatterv",
                                     "Alltoallv",
                                     "Alltoallw",
                                     "Neighbor_allgather",
                                     "Neighbor_allgatherv",
                                     "Neighbor_alltoall",
                                     "Neighbor_alltoallv",
                                     "Neighbor_alltoallw"};
    static_assert(std::size(names) == number_of_collectives);
    return names[static_cast<size_t>(collective)];
}

const char* name_of(CollectivePath path) noexcept {
    return path_words[static_cast<size_t>(path)].text;
}

std::string canonical(const PathRanges& value) {
    std::vector<size_t> borders{0};
    for (const PathRanges::Range& range : value.ranges) {
        borders.push_back(range.from_bytes);
        if (range.to_bytes != SIZE_MAX) borders.push_back(range.to_bytes);
    }
    std::sort(borders.begin(), borders.end());
    std::string text;
    CollectivePath last = CollectivePath::automatic;
    for (size_t border : borders) {
        CollectivePath path = value.at(border);
        if (path == last) continue;
        last = path;
        text += std::to_string(border) + ":" + std::to_string(static_cast<int>(path)) + ";";
    }
    return text;
}

}  // namespace vecmpi::base
