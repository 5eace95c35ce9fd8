// SPDX-License-Identifier: BSD-3-Clause
// Derived datatypes in the report: a row for each way in which types were made, and who packed
// them. Knows no MPI: a row is a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "counters.hpp"

namespace vecmpi::base {

enum class WhyLibrary : uint8_t {
#define VECMPI_WHY_LIBRARY(name, text) name,
#include "why_library.def"
#undef VECMPI_WHY_LIBRARY
    number_of_reasons
};
constexpr size_t number_of_reasons = static_cast<size_t>(WhyLibrary::number_of_reasons);
struct ReasonText {
    const char* name;
    const char* text;
};
const ReasonText& text_of(WhyLibrary why) noexcept;

// A row of this process, which outlives the handles of its types.
using RowNumber = uint16_t;
constexpr RowNumber no_row = 0;         // nobody asks for the report
constexpr RowNumber row_of_others = 1;  // of all types that have no row of their own
constexpr size_t most_datatype_rows = 256;
constexpr size_t longest_made_as = 60;  // letters; a longer text is cut

// The row with this text. Looks at all texts: for the time at which a type is made.
RowNumber datatype_row(std::string_view made_as) noexcept;

// A message, or a call that packed or unpacked. While the report does not count, or without a row,
// they do nothing.
void count_row_by_plan(RowNumber row, uint64_t bytes) noexcept;
void count_row_by_library(RowNumber row, uint64_t bytes, WhyLibrary why) noexcept;
inline void count_by_plan(RowNumber row, uint64_t bytes) noexcept {
    if (row != no_row) [[unlikely]]
        count_row_by_plan(row, bytes);
}
inline void count_by_library(RowNumber row, uint64_t bytes, WhyLibrary why) noexcept {
    if (row != no_row) [[unlikely]]
        count_row_by_library(row, bytes, why);
}

// What a row has counted.
struct DatatypeUse {
    char made_as[64];  // ends with a null
    uint64_t bytes, by_plan;
    uint64_t by_library[number_of_reasons];
};
static_assert(longest_made_as < sizeof DatatypeUse::made_as);
uint64_t times_by_library(const DatatypeUse& use) noexcept;

// All that were used, as many bytes on all ranks, so that ranks can send it to each other.
struct DatatypeUses {
    uint64_t number = 1;
    DatatypeUse rows[1 + most_datatype_rows]{};  // the first: all others
};
void read_datatype_rows(DatatypeUses& uses) noexcept;
void empty_datatype_rows() noexcept;   // their texts stay
void forget_datatype_rows() noexcept;  // texts too: once no type has a row any more
// Pure. Adds rows of the same text; where there is no room for more, to all others.
void add_datatype_uses(const DatatypeUses& from, DatatypeUses& to) noexcept;

}  // namespace vecmpi::base
