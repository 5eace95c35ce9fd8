// SPDX-License-Identifier: BSD-3-Clause
// A table of rows by datatype handle: for types under the report only.
#include "type_rows.hpp"

#include <algorithm>
#include <exception>

#include "datatype/api.hpp"
#include "offload/api.hpp"

namespace vecmpi::datatype {

constinit std::atomic<bool> types_are_reported{false};

namespace {

// A word: handle (32 bits), reason (16), row (16). Relaxed: the program hands a handle from thread
// to thread, and what it means with it. 32 KiB of zero pages, untouched without a report.
constexpr size_t number_of_sets = 1024, ways = 4;
constinit std::atomic<uint64_t> table[number_of_sets][ways]{};

constexpr unsigned handle_shift = 32, reason_shift = 16;
uint64_t key_of(MPI_Datatype type) noexcept {
    return uint64_t{library::key_of_handle(type)} << handle_shift;
}
uint64_t bits_of(WhyLibrary why) noexcept { return static_cast<uint64_t>(why) << reason_shift; }
WhyLibrary reason_of(uint64_t word) noexcept {
    return static_cast<WhyLibrary>(word >> reason_shift & UINT16_MAX);
}

std::atomic<uint64_t>* find(MPI_Datatype type) noexcept {
    const uint32_t key = library::key_of_handle(type);
    for (auto& word : table[key % number_of_sets])
        if (word.load(std::memory_order_relaxed) >> handle_shift == key)
            return key != 0 ? &word : nullptr;
    return nullptr;
}

// A fifth type of a set counts among all others, and so does one that has no key.
void enter(MPI_Datatype type, RowNumber row) noexcept {
    if (library::key_of_handle(type) == 0) return;
    const uint64_t entered = key_of(type) | bits_of(WhyLibrary::too_little) | row;
    if (std::atomic<uint64_t>* const there = find(type)) {
        const uint64_t word = there->load(std::memory_order_relaxed);
        if ((word & UINT16_MAX) != row) there->store(entered, std::memory_order_relaxed);
        return;
    }
    for (auto& word : table[library::key_of_handle(type) % number_of_sets]) {
        uint64_t nobody = 0;
        if (word.compare_exchange_strong(nobody, entered, std::memory_order_relaxed)) return;
    }
}

std::string name_of(const TypeTree& tree) {
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = 0;
    if (tree.named != MPI_DATATYPE_NULL && real.Type_get_name)
        real.Type_get_name(tree.named, name, &length);
    std::string text(name);
    std::replace_if(
        text.begin(), text.end(), [](char letter) { return letter < ' '; }, '?');
    return text.empty() ? "a type of " + std::to_string(tree.size) + " bytes" : text;
}

// Reads a description only as far as it is short: its text has 60 letters, and each type within is
// asked for.
RowNumber row_of_description(MPI_Datatype type) {
    constexpr size_t most_numbers = 1024;
    TypeTree tree;
    describe(type, tree, most_numbers);
    return datatype_row(made_as(tree));
}

}  // namespace

RowNumber enter_row(MPI_Datatype type) noexcept {
    if (!types_are_reported.load(std::memory_order_relaxed)) return no_row;
    RowNumber row = row_of_others;
    try {
        row = row_of_description(type);
    } catch (const std::exception&) {  // no memory
    }
    enter(type, row);
    return row;
}

void leave_row(MPI_Datatype type) noexcept {
    if (!types_are_reported.load(std::memory_order_relaxed)) return;
    if (std::atomic<uint64_t>* const word = find(type)) word->store(0, std::memory_order_relaxed);
}

RowNumber row_of_reported(MPI_Datatype type) noexcept {
    const std::atomic<uint64_t>* const word = find(type);
    if (word == nullptr) return row_of_others;
    return static_cast<RowNumber>(word->load(std::memory_order_relaxed) & UINT16_MAX);
}

void note_verdict(MPI_Datatype type, WhyLibrary why) noexcept {
    std::atomic<uint64_t>* const word = find(type);
    if (word == nullptr) return;
    uint64_t before = word->load(std::memory_order_relaxed);
    const uint64_t after = key_of(type) | bits_of(why) | (before & UINT16_MAX);
    if (before >> handle_shift == library::key_of_handle(type))
        word->compare_exchange_strong(before, after, std::memory_order_relaxed);
}

WhyLibrary verdict_of(MPI_Datatype type) noexcept {
    const std::atomic<uint64_t>* const word = find(type);
    if (word == nullptr) return WhyLibrary::not_served;
    return reason_of(word->load(std::memory_order_relaxed));
}

WhyLibrary why_library(Counter decline) noexcept {
    switch (decline) {
        case Counter::decline_slower:  // which make_plan() says of a type without gaps
            return WhyLibrary::dense;
        case Counter::decline_combiner:
            return WhyLibrary::combiner;
        case Counter::decline_table:
            return WhyLibrary::too_large;
        case Counter::decline_plan:
            return WhyLibrary::differs;
        case Counter::decline_gpu:
            return WhyLibrary::gpu;
        default:
            return WhyLibrary::not_served;
    }
}

std::string made_as(const TypeTree& tree) { return made_as(tree, name_of); }

void report_types(bool on) noexcept {
    if (types_are_reported.exchange(on, std::memory_order_relaxed) && !on) {
        for (auto& set : table)
            for (auto& word : set) word.store(0, std::memory_order_relaxed);
        forget_datatype_rows();
    }
}

}  // namespace vecmpi::datatype
