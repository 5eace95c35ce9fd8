// SPDX-License-Identifier: BSD-3-Clause
// The lines that vecmpi-bench counts for a layout.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "bench/ranks/cache_lines.hpp"

using namespace vecmpi::bench;

namespace {

struct Block {
    std::size_t at, bytes;
};

Marked marked_blocks(const std::vector<Block>& blocks, std::size_t size, std::size_t begins_at) {
    std::string memory(size, '\0');
    for (const Block& block : blocks) memory.replace(block.at, block.bytes, block.bytes, '\1');
    return marked(memory.data(), memory.size(), begins_at);
}

std::vector<Block> every(std::size_t stride, std::size_t bytes, std::size_t blocks) {
    std::vector<Block> all;
    for (std::size_t i = 0; i < blocks; i++) all.push_back({i * stride, bytes});
    return all;
}

}  // namespace

TEST_CASE("lines of contiguous bytes") {
    CHECK(bytes_of_lines(0, 0) == 0);
    CHECK(bytes_of_lines(0, 1) == 64);
    CHECK(bytes_of_lines(0, 64) == 64);
    CHECK(bytes_of_lines(0, 65) == 128);
    CHECK(bytes_of_lines(63, 1) == 64);
    CHECK(bytes_of_lines(63, 2) == 128);
    CHECK(bytes_of_lines(64 + 16, 2048) == 2048 + 64);
}

TEST_CASE("lines of a layout") {
    struct Row {
        const char* what;
        std::vector<Block> blocks;
        std::size_t size, begins_at, bytes, lines;
    };
    const Row rows[] = {
        {"nothing", {}, 1000, 0, 0, 0},
        {"no memory", {}, 0, 0, 0, 0},
        {"one byte", {{100, 1}}, 101, 0, 1, 1},
        {"a block over the end of a line", {{60, 8}}, 68, 0, 8, 2},
        {"the same, moved off it", {{60, 8}}, 68, 4, 8, 1},
        {"doubles, 1 of 2: each line once", every(16, 8, 256), 255 * 16 + 8, 0, 2048, 64},
        {"the same from within a line", every(16, 8, 256), 255 * 16 + 8, 16, 2048, 65},
        {"doubles, 1 of 8: a line each", every(64, 8, 256), 255 * 64 + 8, 16, 2048, 256},
        {"doubles, 1 of 1000", every(8000, 8, 10), 9 * 8000 + 8, 0, 80, 10},
        {"blocks of 100 in 160", every(160, 100, 4), 3 * 160 + 100, 0, 400, 10},
        {"a last line that is not whole", {{0, 1}, {128, 1}}, 129, 0, 2, 2},
    };
    for (const Row& row : rows) {
        INFO(row.what);
        const Marked found = marked_blocks(row.blocks, row.size, row.begins_at);
        CHECK(found.bytes == row.bytes);
        CHECK(found.line_bytes == row.lines * line_bytes);
    }
}

TEST_CASE("a copy that moves as many lines") {
    CHECK(copied_alike(2048 + 2048) == 2048);  // contiguous: the copy itself
    CHECK(copied_alike(256 * 64 + 2048) == 9216);
}
