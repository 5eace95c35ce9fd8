// SPDX-License-Identifier: BSD-3-Clause
// How the text of a setting becomes a value, one reader for each kind of settings.def, and back
// into the one text that equal values share. Pure; inside src/base and its tests only.
#pragma once

#include <string>
#include <string_view>

#include "base/api.hpp"

namespace vecmpi::base {

// Equal but for the case of ASCII letters; `word` in lower case.
bool same_word(std::string_view text, std::string_view word) noexcept;
std::string_view trim(std::string_view text) noexcept;

// Each: true and the value, or false and the value left as it was. text is trimmed and not empty.
bool read_on_off(std::string_view text, bool& value);
bool read_intranode(std::string_view text, IntranodeMode& value);
bool read_offload(std::string_view text, OffloadMode& value);
bool read_cpus(std::string_view text, CpuChoice& value);
bool read_wait(std::string_view text, WaitMode& value);
bool read_isa(std::string_view text, IsaChoice& value);
bool read_count(std::string_view text, unsigned& value);
bool read_bytes(std::string_view text, size_t& value);
bool read_single_copy(std::string_view text, size_t& value);
// Ranges of the paths that this collective knows.
bool read_allreduce(std::string_view text, PathRanges& value);
bool read_reduce(std::string_view text, PathRanges& value);
bool read_reduce_scatter(std::string_view text, PathRanges& value);
bool read_bcast(std::string_view text, PathRanges& value);
bool read_allgather(std::string_view text, PathRanges& value);
bool read_network(std::string_view text, NetworkSetting& value);
bool read_pack(std::string_view text, PackMode& value);
bool read_profile_choice(std::string_view text, ProfileChoice& value);
bool read_traits(std::string_view text, unsigned& value);
bool read_report(std::string_view text, ReportTarget& value);
bool read_level(std::string_view text, LogLevel& value);

// The same text for values that mean the same, however the user wrote them: "1M" and "1048576".
std::string canonical(uint64_t value);
std::string canonical(IntranodeMode value);
std::string canonical(const PathRanges& value);
std::string canonical(const NetworkSetting& value);
std::string canonical(const ReportTarget& value);

// FNV-1a, 64 bits: equal on all machines, and a difference in one letter changes it.
constexpr uint64_t hash_of_nothing = 0xcbf29ce484222325ULL;
void add_to_hash(uint64_t& hash, std::string_view text) noexcept;

// A value fit for one line of an error message.
std::string printable(std::string_view value);

// The name of settings.def that a user most likely meant, or null when none is near.
const char* nearest_setting(std::string_view name);
// Names beginning with VECMPI_ that our scripts and test tools read, and the library does not.
bool is_tool_variable(std::string_view name) noexcept;

}  // namespace vecmpi::base
