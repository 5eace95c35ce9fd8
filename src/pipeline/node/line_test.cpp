// SPDX-License-Identifier: BSD-3-Clause
// The test of a line's store, and the width that comes of it.
#include "pipeline/node/api/line_test.hpp"

#include <algorithm>

namespace vecmpi::pipeline::node {
namespace {

constexpr size_t line_words = sizeof(kernels::Line) / sizeof(uint64_t);
constexpr uint32_t fails = 1, passes = 2;

uint64_t* words_of(kernels::Line& line) noexcept { return reinterpret_cast<uint64_t*>(&line); }

uint64_t word(const kernels::Line& line, size_t index, std::memory_order order) noexcept {
    return std::atomic_ref(words_of(const_cast<kernels::Line&>(line))[index]).load(order);
}

bool try_width(LineTestBoard& board, LineTestSide side, uint32_t trial, kernels::LineWidth width,
               const WaitPolicy& waiting) noexcept {
    constexpr uint64_t patience_us = 50000;
    const auto me = static_cast<unsigned>(side);
    const auto wait_for = [&](const std::atomic<uint32_t>& word, uint32_t least) noexcept {
        Ladder ladder(waiting);
        // Acquire: pairs with the other side's release.
        while (word.load(std::memory_order_acquire) < least) ladder.rest();
        return word.load(std::memory_order_relaxed);
    };
    board.begun[me].store(trial + 1, std::memory_order_release);
    wait_for(board.begun[1 - me], trial + 1);
    if (side == LineTestSide::writes) {
        write_test_lines(board.lines[trial], width);
        return wait_for(board.verdicts[trial], fails) == passes;
    }
    const bool proved = line_test_proves(read_test_lines(board.lines[trial], patience_us));
    board.verdicts[trial].store(proved ? passes : fails, std::memory_order_release);
    return proved;
}

}  // namespace

void write_test_lines(kernels::Line& line, kernels::LineWidth width) noexcept {
    const kernels::StoreLine store = kernels::line_store(width, kernels::line_data_bytes);
    kernels::Line next;
    for (uint64_t number = 1; number <= line_test_stores; ++number) {
        std::fill_n(words_of(next), line_words, number);
        store(&line, &next);
    }
}

LineTest read_test_lines(const kernels::Line& line, uint64_t patience_us) noexcept {
    constexpr uint64_t looks_between_clocks = 1024;
    const uint64_t begun_us = monotonic_us();
    LineTest test;
    uint64_t last = 0;
    for (uint64_t look = 1; last != line_test_stores; ++look) {
        // Acquire: pairs with the order of line_store(), which is what is tested.
        const uint64_t flag = word(line, line_words - 1, std::memory_order_acquire);
        if (flag != last) {
            last = flag;
            ++test.seen;
            bool torn = false;
            for (size_t i = 0; i < line_words - 1; ++i)
                torn |= word(line, i, std::memory_order_relaxed) < flag;
            test.torn += torn;
        }
        if (look % looks_between_clocks == 0 && monotonic_us() - begun_us > patience_us) break;
    }
    return test;
}

bool line_test_proves(const LineTest& test) noexcept {
    constexpr uint64_t enough = 2000;
    return test.torn == 0 && test.seen >= enough;
}

kernels::LineWidth test_line_widths(LineTestBoard& board, LineTestSide side,
                                    const WaitPolicy& waiting) noexcept {
    uint32_t trial = 0;
    kernels::LineWidth width = kernels::widest_line_width();
    for (; width > kernels::LineWidth::bytes16 && trial < LineTestBoard::trials; ++trial) {
        if (try_width(board, side, trial, width, waiting)) return width;
        width = static_cast<kernels::LineWidth>(static_cast<unsigned>(width) / 2);
    }
    return kernels::promised_line_width();
}

}  // namespace vecmpi::pipeline::node
