// SPDX-License-Identifier: BSD-3-Clause
// From the text of a setting to its value, by a reader for each kind of settings.def, and back to
// one text for equal values. Pure; inside src/base and its tests only.
#pragma once

#include <string>
#include <string_view>

#include "base/api.hpp"
#include "words.hpp"

namespace vecmpi::base {

// read_KIND, for each kind of settings.def: true, or false and the value left as it was. text is
// trimmed and not empty.
#define VECMPI_SETTING(field, name, kind, default_value, accepted, agree, text) \
    bool read_##kind(std::string_view text_of_value, decltype(Settings::field)& value);
#include "base/api/settings.def"
#undef VECMPI_SETTING

// One text for values that mean the same, however the user wrote them: "1M" and "1048576".
std::string canonical(uint64_t value);
std::string canonical(IntranodeMode value);
std::string canonical(TrialMode value);
std::string canonical(const PathRanges& value);
std::string canonical(const NetworkSetting& value);
std::string canonical(const ReportTarget& value);

// FNV-1a, 64 bits: equal on all machines.
constexpr uint64_t hash_of_nothing = 0xcbf29ce484222325ULL;
void add_to_hash(uint64_t& hash, std::string_view text) noexcept;

// A value fit for one line of an error message.
std::string printable(std::string_view value);

// The name of settings.def that a user most likely meant, or null when none is near.
const char* nearest_setting(std::string_view name);
// Names beginning with VECMPI_ that our scripts and test tools read, and the library does not.
bool is_tool_variable(std::string_view name) noexcept;

}  // namespace vecmpi::base
