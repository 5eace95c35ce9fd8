// SPDX-License-Identifier: BSD-3-Clause
// Small files, read at once. Inside src/base only.
#pragma once

#include <string>

namespace vecmpi::base {

// Reads to the end, or to one byte more than `most`. False, with errno, where a read failed.
bool read_at_most(int file, size_t most, std::string& text);

// A file of /proc or /sys; empty where it cannot be read.
std::string read_file(const std::string& path);

}  // namespace vecmpi::base
