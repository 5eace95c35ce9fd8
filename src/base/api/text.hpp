// SPDX-License-Identifier: BSD-3-Clause
// Numbers and strings as people and programs write them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace vecmpi::base {

// "64K", "4M", "1G", "max", plain bytes. False when it is none of these.
bool parse_bytes(std::string_view text, size_t& bytes) noexcept;
std::string format_bytes(uint64_t bytes);
// Three digits and a unit: "1.23 s". The same in every locale.
std::string format_time(uint64_t ns);

// A JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
std::string quote_json(std::string_view text);

}  // namespace vecmpi::base
