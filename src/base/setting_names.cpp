// SPDX-License-Identifier: BSD-3-Clause
// Which setting a misspelled name most likely means. Pure; for warnings only, never to accept the
// name.
#include <algorithm>
#include <cstdint>

#include "setting_values.hpp"

namespace vecmpi::base {
namespace {

constexpr std::string_view prefix = "VECMPI_";

// Insertions, deletions, replacements and swaps of neighbours that lead from one word to the other.
size_t edit_distance(std::string_view left, std::string_view right) {
    std::vector<size_t> before(right.size() + 1), last(right.size() + 1), row(right.size() + 1);
    for (size_t j = 0; j <= right.size(); ++j) last[j] = j;
    for (size_t i = 1; i <= left.size(); ++i) {
        row[0] = i;
        for (size_t j = 1; j <= right.size(); ++j) {
            bool same = left[i - 1] == right[j - 1];
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
            bool swapped =
                i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
            if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
        }
        before.swap(last);
        last.swap(row);
    }
    return last.back();
}

}  // namespace

const char* nearest_setting(std::string_view name) {
    std::string_view word = name.substr(std::min(prefix.size(), name.size()));
    const char* nearest = nullptr;
    size_t least = SIZE_MAX;
    for (const SettingText& setting : setting_texts()) {
        std::string_view known = setting.name;
        if (known.size() <= prefix.size()) continue;  // VECMPI itself: nothing follows to compare
        size_t distance = edit_distance(word, known.substr(prefix.size()));
        if (distance >= least) continue;
        least = distance;
        nearest = setting.name;
    }
    // More than half of the letters wrong: a guess would mislead.
    return least * 2 <= word.size() ? nearest : nullptr;
}

bool is_tool_variable(std::string_view name) noexcept {
    static constexpr std::string_view names[] = {"VECMPI_CACHE", "VECMPI_LIBRARY"};
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace vecmpi::base
