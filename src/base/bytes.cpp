// SPDX-License-Identifier: BSD-3-Clause
// Sizes and times as users write and read them.
#include <cctype>
#include <charconv>
#include <cstdint>

#include "base/api.hpp"
#include "setting_values.hpp"

namespace vecmpi::base {
namespace {

// Power of two that a unit letter stands for; -1: no unit of ours.
int unit_shift(char letter) noexcept {
    const size_t unit = std::string_view("kmgKMG").find(letter);
    return unit == std::string_view::npos ? -1 : 10 * (static_cast<int>(unit % 3) + 1);
}

}  // namespace

bool parse_bytes(std::string_view text, size_t& bytes) noexcept {
    if (same_word(text, "max")) {
        bytes = SIZE_MAX;
        return true;
    }
    size_t number = 0;
    const char* end = text.data() + text.size();
    auto [rest, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc()) return false;
    int shift = 0;
    if (rest != end) shift = unit_shift(*rest++);
    if (rest != end || shift < 0) return false;
    if (number > SIZE_MAX >> shift) return false;
    bytes = number << shift;
    return true;
}

std::string format_bytes(uint64_t bytes) {
    static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int unit = 0;
    while (unit < 6 && bytes >> (10 * (unit + 1)) != 0) ++unit;
    uint64_t whole = bytes >> (10 * unit);
    // One decimal, cut and not rounded, so that a size never seems to reach the next unit.
    uint64_t rest = unit == 0 ? 0 : (bytes >> (10 * (unit - 1))) & 1023;
    std::string text = std::to_string(whole);
    if (uint64_t tenths = rest * 10 >> 10; tenths != 0) text += '.' + std::to_string(tenths);
    return text + " " + units[unit];
}

std::string format_time(uint64_t ns) {
    static constexpr struct {
        const char* name;
        uint64_t ns;
    } units[] = {{"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}};
    for (const auto& unit : units) {
        if (ns < unit.ns) continue;
        const uint64_t whole = ns / unit.ns, rest = ns % unit.ns;
        std::string text = std::to_string(whole);
        if (whole < 10)
            text += (rest * 100 / unit.ns < 10 ? ".0" : ".") + std::to_string(rest * 100 / unit.ns);
        else if (whole < 100)
            text += '.' + std::to_string(rest * 10 / unit.ns);
        return text + " " + unit.name;
    }
    return std::to_string(ns) + " ns";
}

}  // namespace vecmpi::base
