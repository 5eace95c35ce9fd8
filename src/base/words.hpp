// SPDX-License-Identifier: BSD-3-Clause
// Words, numbers and lists in texts, and variables of an environment. Pure. Inside src/base and its
// tests only.
#pragma once

#include <charconv>
#include <string_view>

namespace vecmpi::base {

// Equal but for the case of ASCII letters; `word` in lower case.
bool same_word(std::string_view text, std::string_view word) noexcept;
std::string_view trim(std::string_view text) noexcept;

// False where the text is more or less than a decimal number.
template <class Number>
bool read_number(std::string_view text, Number& value) noexcept {
    Number number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || rest != end) return false;
    value = number;
    return true;
}

// Calls take(item) for each item of a list, trimmed, until one returns false: then that is false.
template <class Take>
bool take_items(std::string_view list, const char* separators, const Take& take) {
    for (;;) {
        const size_t end = list.find_first_of(separators);
        if (!take(trim(list.substr(0, end)))) return false;
        if (end == std::string_view::npos) return true;
        list.remove_prefix(end + 1);
    }
}

// The value of the first such variable, as getenv finds it; null: there is none. `environment` ends
// with null, and may be null.
const char* find_variable(const char* const* environment, std::string_view name) noexcept;

}  // namespace vecmpi::base
