// SPDX-License-Identifier: BSD-3-Clause
#include "files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace vecmpi::base {

bool read_at_most(int file, size_t most, std::string& text) {
    char block[4096];
    while (text.size() <= most) {
        const ssize_t length = read(file, block, std::min(sizeof block, most + 1 - text.size()));
        if (length < 0 && errno == EINTR) continue;
        if (length <= 0) return length == 0;
        text.append(block, static_cast<size_t>(length));
    }
    return true;
}

std::string read_file(const std::string& path) {
    constexpr size_t more_than_any = size_t{1} << 30;
    std::string text;
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return text;
    read_at_most(file, more_than_any, text);
    close(file);
    return text;
}

}  // namespace vecmpi::base
