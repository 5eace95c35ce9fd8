// SPDX-License-Identifier: BSD-3-Clause
// Readers of the kinds of settings, and the path ranges. Pure; knows no variable by name.
#include "setting_values.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <utility>

namespace vecmpi::base {
namespace {

template <typename Value>
struct Word {
    const char* text;
    Value value;
};

template <typename Value, size_t number_of_words>
bool read_word(std::string_view text, const Word<Value> (&words)[number_of_words], Value& value) {
    for (const Word<Value>& word : words) {
        if (!same_word(text, word.text)) continue;
        value = word.value;
        return true;
    }
    return false;
}

template <typename Number>
bool read_number(std::string_view text, Number& value) {
    Number number = 0;
    const char* end = text.data() + text.size();
    auto [rest, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || rest != end) return false;
    value = number;
    return true;
}

// Cuts off what stands before the first of `separators`; false when nothing is left.
bool next_item(std::string_view& rest, const char* separators, std::string_view& item, bool& more) {
    if (!more) return false;
    size_t end = rest.find_first_of(separators);
    more = end != std::string_view::npos;
    item = trim(rest.substr(0, end));
    if (more) rest.remove_prefix(end + 1);
    return true;
}

// Which collectives know a path by this name; in the order of enum CollectivePath.
enum : unsigned { of_allreduce = 1, of_reduce = 2, of_reduce_scatter = 4, of_bcast = 8 };
constexpr unsigned of_allgather = 16, of_all = 31;

struct PathWord {
    const char* text;
    CollectivePath path;
    unsigned collectives;
};
constexpr PathWord path_words[] = {
    {"auto", CollectivePath::automatic, of_all},
    {"mpi", CollectivePath::mpi, of_all},
    {"segmented", CollectivePath::segmented, of_all},
    {"ring", CollectivePath::ring, of_allreduce | of_reduce_scatter | of_allgather},
    {"rabenseifner", CollectivePath::rabenseifner, of_allreduce | of_reduce},
    {"recursive_doubling", CollectivePath::recursive_doubling, of_allreduce},
    {"recursive_halving", CollectivePath::recursive_halving, of_allreduce | of_reduce_scatter},
    {"hierarchical", CollectivePath::hierarchical, of_allreduce},
    {"chain", CollectivePath::chain, of_reduce | of_bcast},
    {"binomial", CollectivePath::binomial, of_reduce | of_bcast},
    {"scatter_allgather", CollectivePath::scatter_allgather, of_bcast},
    {"bruck", CollectivePath::bruck, of_allgather},
};

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
    std::string_view item;
    for (bool more = true; next_item(text, ";,", item, more);) {
        PathRanges::Range range{};
        if (!read_range(item, collective, range)) return false;
        ranges.ranges.push_back(range);
    }
    value = std::move(ranges);
    return true;
}

// "1.5us" with units {"us", 1000, 1} is 1500. False where the unit is none of these, or the number
// is no plain decimal number, has more than 9 digits before or 3 behind the point.
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

bool read_on_off(std::string_view text, bool& value) {
    static constexpr Word<bool> words[] = {{"on", true}, {"off", false}};
    return read_word(text, words, value);
}

namespace {
template <class Mode>
bool read_auto_on_off(std::string_view text, Mode& value) {
    static constexpr Word<Mode> words[] = {
        {"auto", Mode::automatic}, {"on", Mode::on}, {"off", Mode::off}};
    return read_word(text, words, value);
}
}  // namespace

bool read_offload(std::string_view text, OffloadMode& value) {
    return read_auto_on_off(text, value);
}
bool read_intranode(std::string_view text, IntranodeMode& value) {
    return read_auto_on_off(text, value);
}

bool read_cpus(std::string_view text, CpuChoice& value) {
    static constexpr Word<CpuChoice::Kind> words[] = {{"auto", CpuChoice::Kind::automatic},
                                                      {"none", CpuChoice::Kind::none}};
    CpuChoice choice;
    if (!read_word(text, words, choice.kind)) {
        choice.kind = CpuChoice::Kind::list;
        std::string_view item;
        for (bool more = true; next_item(text, ",", item, more);) {
            unsigned cpu = 0;
            constexpr unsigned most_cpus =
                1 << 20;  // so that a typing error cannot ask for much memory
            if (!read_number(item, cpu) || cpu >= most_cpus) return false;
            choice.cpus.push_back(static_cast<int>(cpu));
        }
    }
    value = std::move(choice);
    return true;
}

bool read_wait(std::string_view text, WaitMode& value) {
    static constexpr Word<WaitMode> words[] = {{"auto", WaitMode::automatic},
                                               {"spin", WaitMode::spin},
                                               {"yield", WaitMode::yield},
                                               {"sleep", WaitMode::sleep}};
    return read_word(text, words, value);
}

bool read_isa(std::string_view text, IsaChoice& value) {
    static constexpr Word<IsaChoice> words[] = {
        {"auto", IsaChoice::automatic}, {"off", IsaChoice::off},   {"scalar", IsaChoice::scalar},
        {"sse4", IsaChoice::sse4},      {"avx2", IsaChoice::avx2}, {"avx512", IsaChoice::avx512},
        {"neon", IsaChoice::neon},      {"sve", IsaChoice::sve}};
    return read_word(text, words, value);
}

bool read_pack(std::string_view text, PackMode& value) {
    static constexpr Word<PackMode> words[] = {
        {"auto", PackMode::automatic},  {"off", PackMode::off},
        {"on", PackMode::on},           {"block", PackMode::block},
        {"permute", PackMode::permute}, {"gather", PackMode::gather}};
    return read_word(text, words, value);
}

bool read_count(std::string_view text, unsigned& value) {
    static constexpr Word<unsigned> words[] = {{"auto", 0}};
    if (read_word(text, words, value)) return true;
    unsigned number = 0;
    if (!read_number(text, number) || number < 1 || number > 64) return false;
    value = number;
    return true;
}

bool read_bytes(std::string_view text, size_t& value) {
    static constexpr Word<size_t> words[] = {{"auto", 0}};
    if (read_word(text, words, value)) return true;
    size_t bytes = 0;
    if (!parse_bytes(text, bytes) || bytes < 1024 || bytes == SIZE_MAX) return false;
    value = bytes;
    return true;
}

bool read_single_copy(std::string_view text, size_t& value) {
    static constexpr Word<size_t> words[] = {{"off", SIZE_MAX}};
    return read_word(text, words, value) || read_bytes(text, value);
}

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

bool read_network(std::string_view text, NetworkSetting& value) {
    NetworkSetting network;
    if (!same_word(text, "auto")) {
        std::string_view item;
        for (bool more = true; next_item(text, ";,", item, more);)
            if (!read_constant(item, network)) return false;
    }
    value = network;
    return true;
}

bool read_profile_choice(std::string_view text, ProfileChoice& value) {
    static constexpr Word<ProfileChoice::Kind> words[] = {{"auto", ProfileChoice::Kind::automatic},
                                                          {"off", ProfileChoice::Kind::off}};
    ProfileChoice choice;
    if (!read_word(text, words, choice.kind)) {
        choice.kind = ProfileChoice::Kind::file;
        choice.file = text;
    }
    value = std::move(choice);
    return true;
}

bool read_report(std::string_view text, ReportTarget& value) {
    static constexpr Word<ReportTarget::Kind> words[] = {{"off", ReportTarget::Kind::off},
                                                         {"summary", ReportTarget::Kind::summary}};
    ReportTarget target;
    if (!read_word(text, words, target.kind)) {
        constexpr std::string_view json = "json:";
        if (!same_word(text.substr(0, json.size()), json)) return false;
        target.kind = ReportTarget::Kind::json;
        target.file = trim(text.substr(json.size()));
        if (target.file.empty()) return false;
    }
    value = std::move(target);
    return true;
}

bool read_level(std::string_view text, LogLevel& value) {
    static constexpr Word<LogLevel> words[] = {{"error", LogLevel::error},
                                               {"warn", LogLevel::warn},
                                               {"info", LogLevel::info},
                                               {"debug", LogLevel::debug}};
    return read_word(text, words, value);
}

bool read_traits(std::string_view text, unsigned& value) {
    static constexpr const char* names[] = {
#define VECMPI_TRAIT(name, promise, proof, without) #name,
#include "base/api/traits.def"
#undef VECMPI_TRAIT
    };
    constexpr unsigned all = (1u << std::size(names)) - 1;
    unsigned traits = 0;
    std::string_view item;
    if (!same_word(text, "none") && !same_word(text, "all"))
        for (bool more = true; next_item(text, ",;", item, more);) {
            const auto* const found =
                std::find_if(std::begin(names), std::end(names),
                             [&](auto* name) { return same_word(item, name); });
            if (found == std::end(names)) return false;
            traits |= 1u << (found - std::begin(names));
        }
    value = same_word(text, "all") ? all : traits;
    return true;
}

CollectivePath PathRanges::at(size_t bytes) const noexcept {
    for (size_t i = ranges.size(); i > 0; --i) {
        const Range& range = ranges[i - 1];
        bool below_end = bytes < range.to_bytes || range.to_bytes == SIZE_MAX;
        if (bytes >= range.from_bytes && below_end) return range.path;
    }
    return CollectivePath::automatic;
}

const char* name_of(CollectivePath path) noexcept {
    return path_words[static_cast<size_t>(path)].text;
}

std::string canonical(uint64_t value) { return std::to_string(value); }

std::string canonical(IntranodeMode value) { return canonical(static_cast<uint64_t>(value)); }

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

std::string canonical(const NetworkSetting& value) {
    return std::to_string(value.latency_ns) + "," + std::to_string(value.bytes_per_s) + "," +
           std::to_string(value.overhead_ns);
}

std::string canonical(const ReportTarget& value) {
    return std::to_string(static_cast<int>(value.kind)) + value.file;
}

void add_to_hash(uint64_t& hash, std::string_view text) noexcept {
    for (unsigned char letter : text) hash = (hash ^ letter) * 0x100000001b3ULL;
}

std::string printable(std::string_view value) {
    constexpr size_t longest = 80;
    std::string text(value.substr(0, longest));
    std::replace_if(
        text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 127; }, '?');
    return value.size() > longest ? text + "..." : text;
}

}  // namespace vecmpi::base
