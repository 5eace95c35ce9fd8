// SPDX-License-Identifier: BSD-3-Clause
// Finds out how wide a store this CPU makes visible at once (Mohamed El Maarouf et al., CCPE 35,
// 2023, table I). Two sides, threads or processes, work on one line: one stores, one looks.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/api.hpp"
#include "kernels/api.hpp"

namespace vecmpi::pipeline::node {

// Stores lines whose words are all equal, one more each time, until line_test_stores.
constexpr uint64_t line_test_stores = 50000;  // 2 to 8 ms between two cores
void write_test_lines(kernels::Line& line, kernels::LineWidth width) noexcept;

struct LineTest {
    uint64_t seen = 0;  // different lines
    uint64_t torn = 0;  // lines whose flag came before some of their data
};
// Looks until the last line has come, or patience_us have passed.
LineTest read_test_lines(const kernels::Line& line, uint64_t patience_us) noexcept;

// Pure: too few lines seen say nothing of a store (both sides on one CPU).
bool line_test_proves(const LineTest& test) noexcept;

// Shared by the two sides; all zeros at first.
struct LineTestBoard {
    static constexpr unsigned trials = 2;  // 64 and 32 bytes; less is promised where there is AVX
    kernels::Line lines[trials];
    std::atomic<uint32_t> begun[2];  // trials that each side has begun; released to the other
    std::atomic<uint32_t> verdicts[trials];  // of the side that looks: 1 fails, 2 passes; released
};
enum class LineTestSide : unsigned { writes, reads };

// The widest width that a test proves, else the one promised; the same on both sides. Some
// milliseconds. Both sides call it; one that waits for the other climbs the ladder.
kernels::LineWidth test_line_widths(LineTestBoard& board, LineTestSide side,
                                    const WaitPolicy& waiting) noexcept;

}  // namespace vecmpi::pipeline::node
