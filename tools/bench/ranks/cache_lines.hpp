// SPDX-License-Identifier: BSD-3-Clause
// Which cache lines a layout's data touch, and how long moving them takes at least. Pure: no MPI,
// nothing measured.
#pragma once

#include <algorithm>
#include <cstddef>

namespace vecmpi::bench {

constexpr std::size_t line_bytes = 64;

// Bytes of the lines that contiguous data touch, which begin so far behind the beginning of a line.
constexpr std::size_t bytes_of_lines(std::size_t begins_at, std::size_t bytes) {
    if (bytes == 0) return 0;
    const std::size_t end = begins_at % line_bytes + bytes;
    return (end + line_bytes - 1) / line_bytes * line_bytes;
}

struct Marked {
    std::size_t bytes = 0;       // that are not 0
    std::size_t line_bytes = 0;  // of the lines that they are on
};

// Of a layout whose bytes are marked in memory that is 0 elsewhere.
inline Marked marked(const char* memory, std::size_t size, std::size_t begins_at) {
    Marked found;
    std::size_t at = 0;
    for (std::size_t end = line_bytes - begins_at % line_bytes; at < size; end += line_bytes) {
        std::size_t on_line = 0;
        for (const std::size_t stop = std::min(end, size); at < stop; at++)
            on_line += memory[at] != 0 ? 1 : 0;
        found.bytes += on_line;
        if (on_line != 0) found.line_bytes += line_bytes;
    }
    return found;
}

// Packing reads the lines of the layout and writes those of the packed bytes, unpacking the other
// way round. A memcpy of so many bytes reads and writes as many lines together, and allocates lines
// for what it writes as the memory system does for either.
constexpr std::size_t copied_alike(std::size_t bytes_of_both) { return bytes_of_both / 2; }

}  // namespace vecmpi::bench
