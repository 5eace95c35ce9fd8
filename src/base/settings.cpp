// SPDX-License-Identifier: BSD-3-Clause
// From the environment to struct Settings, driven by settings.def. Prints nothing: the caller
// reports the problem.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>

#include "base/api.hpp"
#include "base/api/profile.hpp"
#include "setting_values.hpp"

namespace vecmpi::base {
namespace {

constexpr bool yes = true, no = false;  // the words of the column `agree`

// Empty where there is none.
std::string_view value_of(const char* const* environment, std::string_view name) {
    const char* const value = find_variable(environment, name);
    return value == nullptr ? std::string_view{} : trim(value);
}

template <typename Value>
void read_setting(const char* const* environment, const char* name, const char* accepted,
                  bool (*read)(std::string_view, Value&), Value& value, SettingsResult& result) {
    std::string_view text = value_of(environment, name);
    if (text.empty() || read(text, value) || !result.problem.empty()) return;
    result.problem = std::string(name) + "=" + printable(text) + ": accepted are " + accepted;
}

std::string_view given_or(std::string_view given, std::string_view otherwise) noexcept {
    return given.empty() ? otherwise : given;
}

template <bool must_agree, typename Value>
void hash_setting(const char* name, const Value& value, uint64_t& hash) {
    if constexpr (must_agree) add_to_hash(hash, std::string(name) + "=" + canonical(value) + "\n");
}

void check_segments(const char* const* environment, SettingsResult& result) {
    const Settings& settings = result.settings;
    if (settings.segments == 0 || settings.segment_bytes == 0 || !result.problem.empty()) return;
    result.problem =
        "VECMPI_SEGMENTS=" + printable(value_of(environment, "VECMPI_SEGMENTS")) +
        " and VECMPI_SEGMENT_BYTES=" + printable(value_of(environment, "VECMPI_SEGMENT_BYTES")) +
        ": accepted is one of them, the other auto or unset";
}

void warn_of_unknown(const char* const* environment, SettingsResult& result) {
    for (; environment != nullptr && *environment != nullptr; ++environment) {
        std::string_view entry = *environment;
        std::string_view name = entry.substr(0, entry.find('='));
        if (!name.starts_with("VECMPI_") || is_tool_variable(name)) continue;
        const auto& known = setting_texts();
        if (std::any_of(known.begin(), known.end(), [&](auto& row) { return name == row.name; }))
            continue;
        const char* nearest = nearest_setting(name);
        std::string hint = nearest != nullptr ? std::string(", did you mean ") + nearest + "?"
                                              : ", vecmpi-info --settings lists the known ones";
        result.warnings.push_back(printable(name) + ": unknown setting" + hint);
    }
}

}  // namespace

const std::vector<SettingText>& setting_texts() {
    // Never destroyed: the library leaves nothing to run at exit.
    static const auto& texts = *new std::vector<SettingText>{
#define VECMPI_SETTING(field, name, kind, default_value, accepted, agree, text) \
    {name, default_value, accepted, text, agree, #field},
#include "base/api/settings.def"
#undef VECMPI_SETTING
    };
    return texts;
}

SettingsResult parse_settings(const char* const* environment) {
    SettingsResult result;
    uint64_t hash = hash_of_nothing;
#define VECMPI_SETTING(field, name, kind, default_value, accepted, agree, text)            \
    read_setting(environment, name, accepted, read_##kind, result.settings.field, result); \
    hash_setting<agree>(name, result.settings.field, hash);                                \
    result.values.emplace_back(given_or(value_of(environment, name), default_value));
#include "base/api/settings.def"
#undef VECMPI_SETTING
    check_segments(environment, result);
    warn_of_unknown(environment, result);
    result.agreement_hash = hash;
    return result;
}

namespace {
SettingsResult& stored() noexcept {
    alignas(SettingsResult) static unsigned char storage[sizeof(SettingsResult)];
    static SettingsResult& result = []() noexcept -> SettingsResult& {
        try {
            return *new (storage) SettingsResult(parse_settings(environ));
        } catch (...) {  // out of memory: the defaults need none
            return *new (storage) SettingsResult();
        }
    }();
    return result;
}
}  // namespace

const SettingsResult& process_settings() noexcept { return stored(); }

void adopt_network(const NetworkSetting& measured) noexcept {
    NetworkSetting& network = stored().settings.network;
    const auto fill = [](int64_t& given, int64_t value) {
        if (given < 0) given = value;
    };
    fill(network.latency_ns, measured.latency_ns);
    fill(network.bytes_per_s, measured.bytes_per_s);
    fill(network.overhead_ns, measured.overhead_ns);
}

}  // namespace vecmpi::base
