// SPDX-License-Identifier: BSD-3-Clause
// Constants of the network, as the user writes them: "latency=1.5us; bandwidth=10gbit". Pure.
#include <cstdint>

#include "setting_values.hpp"

namespace vecmpi::base {
namespace {

// "1.5us" with units {"us", 1000, 1} is 1500. False where the unit is none of these. False too
// where the number is no plain decimal number, or has more than 9 digits before or 3 behind the
// point.
struct Unit {
    const char* text;
    int64_t times, over;
};
template <size_t number_of_units>
bool read_quantity(std::string_view text, const Unit (&units)[number_of_units], int64_t& value) {
    constexpr size_t most_digits = 9, most_decimals = 3;
    const size_t end = text.find_first_not_of("0123456789.");
    if (end == std::string_view::npos) return false;
    const std::string_view number = text.substr(0, end), unit = trim(text.substr(end));
    const size_t point = number.find('.');
    const std::string_view whole = number.substr(0, point);
    std::string decimals(point == std::string_view::npos ? "0" : number.substr(point + 1));
    if (whole.size() > most_digits || decimals.size() > most_decimals) return false;
    decimals.resize(most_decimals, '0');
    int64_t units_of_number = 0, thousandths = 0;
    if (!read_number(whole, units_of_number)) return false;
    if (point != std::string_view::npos && point + 1 == number.size()) return false;
    if (!read_number(std::string_view(decimals), thousandths)) return false;
    for (const Unit& known : units) {
        if (!same_word(unit, known.text)) continue;
        int64_t product;
        const int64_t number_of_thousandths = units_of_number * 1000 + thousandths;
        if (__builtin_mul_overflow(number_of_thousandths, known.times, &product)) return false;
        value = product / known.over / 1000;
        return true;
    }
    return false;
}

// "name=quantity"; at most a second, and a rate that is not 0.
bool read_constant(std::string_view item, NetworkSetting& network) {
    static constexpr Unit times[] = {{"ns", 1, 1}, {"us", 1000, 1}, {"ms", 1000000, 1}};
    static constexpr Unit rates[] = {{"mbit", 1000000, 8},      {"mbit/s", 1000000, 8},
                                     {"gbit", 1000000000, 8},   {"mb", 1000000, 1},
                                     {"gbit/s", 1000000000, 8}, {"mb/s", 1000000, 1},
                                     {"gb", 1000000000, 1},     {"gb/s", 1000000000, 1}};
    constexpr int64_t most_ns = 1000000000, most_bytes_per_s = 1000000000000000;
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view name = trim(item.substr(0, equals)),
                           text = trim(item.substr(equals + 1));
    const bool is_latency = same_word(name, "latency");
    if (is_latency || same_word(name, "overhead")) {
        int64_t& ns = is_latency ? network.latency_ns : network.overhead_ns;
        return read_quantity(text, times, ns) && ns <= most_ns;
    }
    return same_word(name, "bandwidth") && text.size() <= 16 &&
           read_quantity(text, rates, network.bytes_per_s) && network.bytes_per_s > 0 &&
           network.bytes_per_s <= most_bytes_per_s;
}

}  // namespace

bool read_network(std::string_view text, NetworkSetting& value) {
    NetworkSetting network;
    const auto read = [&](std::string_view item) { return read_constant(item, network); };
    if (!same_word(text, "auto") && !take_items(text, ";,", read)) return false;
    value = network;
    return true;
}

std::string canonical(const NetworkSetting& value) {
    return std::to_string(value.latency_ns) + "," + std::to_string(value.bytes_per_s) + "," +
           std::to_string(value.overhead_ns);
}

}  // namespace vecmpi::base
