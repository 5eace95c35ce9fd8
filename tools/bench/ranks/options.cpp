// SPDX-License-Identifier: BSD-3-Clause
// Command line of vecmpi-bench-ranks. Its user is the vecmpi-bench driver, which has checked the
// values: it must not grow help texts or defaults of its own.
#include <charconv>
#include <functional>
#include <map>
#include <string_view>

#include "bench.hpp"

namespace vecmpi::bench {
namespace {

std::vector<std::string> split(std::string_view list) {
    std::vector<std::string> items;
    while (!list.empty()) {
        const std::size_t comma = std::min(list.find(','), list.size());
        items.emplace_back(list.substr(0, comma));
        list.remove_prefix(std::min(comma + 1, list.size()));
    }
    return items;
}

template <typename Number>
bool parse_number(const std::string& text, Number& value) {
    const char* end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, value);
    return result.ec == std::errc{} && result.ptr == end && value >= 0;
}

template <typename Number>
bool parse_numbers(const std::string& text, std::vector<Number>& values) {
    values.clear();
    for (const std::string& item : split(text)) {
        Number value{};
        if (!parse_number(item, value)) return false;
        values.push_back(value);
    }
    return !values.empty();
}

bool parse_pin(const std::string& text, Pin& pin) {
    static const std::map<std::string, Pin> names{
        {"none", Pin::none}, {"process", Pin::process}, {"main", Pin::main}};
    const auto found = names.find(text);
    if (found == names.end()) return false;
    pin = found->second;
    return true;
}

bool take_flag(const std::string& text, bool& flag) {
    flag = text == "1";
    return text == "0" || text == "1";
}

bool take_list(const std::string& text, std::vector<std::string>& items) {
    items = split(text);
    return !items.empty();
}

using Setter = std::function<bool(const std::string&, Options&)>;

const std::map<std::string, Setter>& setters() {
    using Text = const std::string&;
    static const std::map<std::string, Setter> table{
        {"--pin", [](Text v, Options& o) { return parse_pin(v, o.pin); }},
        {"--cpus", [](Text v, Options& o) { return parse_numbers(v, o.cpus); }},
        {"--sizes", [](Text v, Options& o) { return parse_numbers(v, o.sizes); }},
        {"--threads", [](Text v, Options& o) { return parse_numbers(v, o.threads); }},
        {"--seconds", [](Text v, Options& o) { return parse_number(v, o.seconds); }},
        {"--tests", [](Text v, Options& o) { return parse_number(v, o.tests); }},
        {"--gap-us", [](Text v, Options& o) { return parse_number(v, o.gap_us); }},
        {"--limit", [](Text v, Options& o) { return parse_number(v, o.limit_s); }},
        {"--separate-comms", [](Text v, Options& o) { return take_flag(v, o.separate_comms); }},
        {"--multiple", [](Text v, Options& o) { return take_flag(v, o.multiple); }},
        {"--nonblocking", [](Text v, Options& o) { return take_flag(v, o.nonblocking); }},
        {"--drain-bytes", [](Text v, Options& o) { return parse_number(v, o.drain_bytes); }},
        {"--form", [](Text v, Options& o) { return !(o.form = v).empty(); }},
        {"--in-place", [](Text v, Options& o) { return take_flag(v, o.in_place); }},
        {"--random", [](Text v, Options& o) { return take_flag(v, o.random); }},
        {"--ops", [](Text v, Options& o) { return take_list(v, o.ops); }},
        {"--types", [](Text v, Options& o) { return take_list(v, o.types); }},
        {"--calls", [](Text v, Options& o) { return take_list(v, o.calls); }},
        {"--buckets", [](Text v, Options& o) { return parse_number(v, o.buckets); }},
        {"--compute-ms", [](Text v, Options& o) { return parse_number(v, o.compute_ms); }},
        {"--steps", [](Text v, Options& o) { return parse_number(v, o.steps); }},
        {"--count-calls", [](Text v, Options& o) { return parse_number(v, o.count_calls); }},
    };
    return table;
}

}  // namespace

std::string parse_options(int argc, char** argv, Options& options) {
    if (argc < 2) return "which measurement? (this program is started by vecmpi-bench)";
    options.measurement = argv[1];
    for (int i = 2; i < argc; i += 2) {
        const auto setter = setters().find(argv[i]);
        if (setter == setters().end()) return std::string("unknown option ") + argv[i];
        if (i + 1 == argc) return std::string(argv[i]) + " needs a value";
        if (!setter->second(argv[i + 1], options))
            return std::string(argv[i]) + " does not take '" + argv[i + 1] + "'";
    }
    return {};
}

}  // namespace vecmpi::bench
