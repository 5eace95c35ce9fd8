// SPDX-License-Identifier: BSD-3-Clause
// The words of which a digest is made: each datatype of a description has a head, its integers,
// addresses and counts, and then the types that it is made of. Inside src/datatype only.
#pragma once

#include <span>

#include "decode.hpp"

namespace vecmpi::datatype {

// How long each list is, too, so that no two descriptions have the same words.
struct DigestHead {
    int64_t combiner, named, size, extent;
    int64_t integers = 0, addresses = 0, counts = 0, types = 0;
};

// Pure. Of all words.
TypeDigest digest_of_words(std::span<const int64_t> words) noexcept;

}  // namespace vecmpi::datatype
