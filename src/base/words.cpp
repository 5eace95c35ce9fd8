// SPDX-License-Identifier: BSD-3-Clause
#include "words.hpp"

#include <algorithm>

namespace vecmpi::base {

bool same_word(std::string_view text, std::string_view word) noexcept {
    auto lower = [](char letter) {
        return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
    };
    return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                      [&](char left, char right) { return lower(left) == right; });
}

std::string_view trim(std::string_view text) noexcept {
    size_t first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

const char* find_variable(const char* const* environment, std::string_view name) noexcept {
    for (; environment != nullptr && *environment != nullptr; ++environment) {
        std::string_view entry = *environment;
        if (entry.size() > name.size() && entry[name.size()] == '=' &&
            entry.substr(0, name.size()) == name)
            return *environment + name.size() + 1;
    }
    return nullptr;
}

}  // namespace vecmpi::base
