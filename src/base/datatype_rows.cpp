// SPDX-License-Identifier: BSD-3-Clause
// The rows of derived datatypes of this process. Counters are relaxed: they are statistics, and
// order nothing.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "base/api.hpp"

namespace vecmpi::base {

namespace {

constexpr ReasonText reason_texts[] = {
#define VECMPI_WHY_LIBRARY(name, text) {#name, text},
#include "base/api/why_library.def"
#undef VECMPI_WHY_LIBRARY
};
static_assert(std::size(reason_texts) == number_of_reasons);

constexpr const char* others = "all others";

struct Row {
    std::atomic<uint64_t> bytes{0}, by_plan{0};
    std::atomic<uint64_t> by_library[number_of_reasons]{};
};

// 50 KiB of zero pages, untouched until the report is on. Row n stands at n - 1.
constinit Row rows[1 + most_datatype_rows]{};
// Texts are written once, under the lock, before the number that includes them.
constinit char texts[1 + most_datatype_rows][sizeof DatatypeUse::made_as]{};
constinit std::atomic<size_t> number_of_rows{1};
constinit std::mutex making;

void write_text(char (&to)[sizeof DatatypeUse::made_as], std::string_view text) noexcept {
    const size_t length = std::min(text.size(), longest_made_as);
    std::memset(to, 0, sizeof to);
    std::memcpy(to, text.data(), length);
}

bool report_counts() noexcept {
    return (counting.load(std::memory_order_relaxed) & CountedFor::report) != 0;
}

void add(std::atomic<uint64_t>& value, uint64_t number) noexcept {
    value.fetch_add(number, std::memory_order_relaxed);
}

DatatypeUse use_of(size_t index) noexcept {
    DatatypeUse use{};
    write_text(use.made_as, index == 0 ? others : texts[index]);
    const Row& row = rows[index];
    use.bytes = row.bytes.load(std::memory_order_relaxed);
    use.by_plan = row.by_plan.load(std::memory_order_relaxed);
    for (size_t why = 0; why < number_of_reasons; ++why)
        use.by_library[why] = row.by_library[why].load(std::memory_order_relaxed);
    return use;
}

void add_use(const DatatypeUse& from, DatatypeUse& to) noexcept {
    to.bytes += from.bytes;
    to.by_plan += from.by_plan;
    for (size_t why = 0; why < number_of_reasons; ++why) to.by_library[why] += from.by_library[why];
}

}  // namespace

const ReasonText& text_of(WhyLibrary why) noexcept {
    return reason_texts[std::min(static_cast<size_t>(why), number_of_reasons - 1)];
}

RowNumber datatype_row(std::string_view made_as) noexcept {
    const std::string_view text = made_as.substr(0, longest_made_as);
    const std::lock_guard lock(making);
    const size_t number = number_of_rows.load(std::memory_order_relaxed);
    for (size_t i = 1; i < number; ++i)
        if (text == texts[i]) return static_cast<RowNumber>(i + 1);
    if (number > most_datatype_rows) return row_of_others;
    write_text(texts[number], text);
    number_of_rows.store(number + 1, std::memory_order_release);  // read_datatype_rows()
    return static_cast<RowNumber>(number + 1);
}

void count_row_by_plan(RowNumber row, uint64_t bytes) noexcept {
    if (!report_counts()) return;
    add(rows[row - 1].bytes, bytes);
    add(rows[row - 1].by_plan, 1);
}

void count_row_by_library(RowNumber row, uint64_t bytes, WhyLibrary why) noexcept {
    if (!report_counts()) return;
    add(rows[row - 1].bytes, bytes);
    add(rows[row - 1].by_library[static_cast<size_t>(why)], 1);
}

uint64_t times_by_library(const DatatypeUse& use) noexcept {
    uint64_t times = 0;
    for (const uint64_t of_reason : use.by_library) times += of_reason;
    return times;
}

void read_datatype_rows(DatatypeUses& uses) noexcept {
    uses.rows[0] = use_of(0);
    uses.number = 1;
    const size_t number = number_of_rows.load(std::memory_order_acquire);  // datatype_row()
    for (size_t i = 1; i < number; ++i) {
        const DatatypeUse use = use_of(i);
        if (use.by_plan + times_by_library(use) != 0) uses.rows[uses.number++] = use;
    }
}

void empty_datatype_rows() noexcept {
    const size_t number = number_of_rows.load(std::memory_order_relaxed);
    for (size_t i = 0; i < number; ++i) {
        rows[i].bytes.store(0, std::memory_order_relaxed);
        rows[i].by_plan.store(0, std::memory_order_relaxed);
        for (auto& times : rows[i].by_library) times.store(0, std::memory_order_relaxed);
    }
}

void forget_datatype_rows() noexcept {
    empty_datatype_rows();
    const std::lock_guard lock(making);
    number_of_rows.store(1, std::memory_order_relaxed);
}

void add_datatype_uses(const DatatypeUses& from, DatatypeUses& to) noexcept {
    add_use(from.rows[0], to.rows[0]);
    const size_t known = to.number;
    for (size_t i = 1; i < from.number; ++i) {
        const DatatypeUse& use = from.rows[i];
        DatatypeUse* const same = std::find_if(
            to.rows + 1, to.rows + known,
            [&](const DatatypeUse& other) { return std::strcmp(use.made_as, other.made_as) == 0; });
        if (same != to.rows + known)
            add_use(use, *same);
        else if (to.number <= most_datatype_rows)
            to.rows[to.number++] = use;
        else
            add_use(use, to.rows[0]);
    }
}

}  // namespace vecmpi::base
