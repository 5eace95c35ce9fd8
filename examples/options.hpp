// SPDX-License-Identifier: BSD-3-Clause
// The command line of the demo program. No MPI here: every rank parses the same line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace example {

enum class Exchange { overlap, blocking };
enum class Wire { floats, halves };  // what gradients are between ranks

struct Options {
    Exchange exchange = Exchange::overlap;
    Wire wire = Wire::floats;
    std::size_t width = 512;
    std::size_t layers = 5;
    std::size_t batch = 128;
    std::size_t epochs = 10;
    std::size_t bucket_bytes = std::size_t{1} << 20;
    double learning_rate = 0.05;
    std::uint64_t seed = 1;
    std::string data;
    bool help = false;
};

extern const char* const usage;

// Throws std::invalid_argument with one line: the option, its value, what is accepted.
Options parse_options(std::span<const char* const> arguments);

}  // namespace example
