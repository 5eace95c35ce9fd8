// SPDX-License-Identifier: BSD-3-Clause
// Strings of JSON. Writes only; nothing here reads JSON.
#include <cstdio>

#include "base/api.hpp"

namespace vecmpi::base {
namespace {

// Length of the UTF-8 sequence at the front of text; 0 where it is none, which JSON does not allow.
size_t utf8_length(std::string_view text) noexcept {
    unsigned char first = text[0];
    size_t length = first < 0x80   ? 1
                    : first < 0xc2 ? 0
                    : first < 0xe0 ? 2
                    : first < 0xf0 ? 3
                    : first < 0xf5 ? 4
                                   : 0;
    if (length > text.size()) return 0;
    for (size_t i = 1; i < length; ++i)
        if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
    if (length < 3) return length;
    unsigned char second = text[1];
    bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
    bool outside = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
    return overlong || outside ? 0 : length;
}

}  // namespace

std::string quote_json(std::string_view text) {
    std::string quoted = "\"";
    while (!text.empty()) {
        unsigned char first = text[0];
        size_t length = utf8_length(text);
        if (first == '"' || first == '\\') {
            quoted += {'\\', static_cast<char>(first)};
        } else if (first < ' ') {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", first);
            quoted += escape;
        } else {
            quoted += length == 0 ? std::string_view("\\ufffd") : text.substr(0, length);
        }
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return quoted + "\"";
}

}  // namespace vecmpi::base
