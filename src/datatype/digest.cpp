// SPDX-License-Identifier: BSD-3-Clause
// The digest of a datatype's description: XXH3 of xxHash, 128 bits. The same for words in pieces
// and at once.
#include "digest.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace vecmpi::datatype {

namespace {

void add(XXH3_state_t& state, const void* bytes, size_t number) noexcept {
    XXH3_128bits_update(&state, bytes, number);
}

void add_tree(XXH3_state_t& state, const TypeTree& tree) noexcept {
    const DigestHead head{.combiner = tree.combiner,
                          .named = static_cast<int64_t>(tree.named),
                          .size = tree.size,
                          .extent = tree.extent,
                          .integers = static_cast<int64_t>(tree.integers.size()),
                          .addresses = static_cast<int64_t>(tree.addresses.size()),
                          .counts = static_cast<int64_t>(tree.counts.size()),
                          .types = static_cast<int64_t>(tree.types.size())};
    add(state, &head, sizeof head);
    for (const auto* values : {&tree.integers, &tree.addresses, &tree.counts})
        if (!values->empty()) add(state, values->data(), values->size() * sizeof(int64_t));
    for (const TypeTree& type : tree.types) add_tree(state, type);
}

TypeDigest as_digest(const XXH128_hash_t& hash) noexcept { return {hash.low64, hash.high64}; }

}  // namespace

TypeDigest digest_of(const TypeTree& tree) noexcept {
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    add_tree(state, tree);
    return as_digest(XXH3_128bits_digest(&state));
}

TypeDigest digest_of_words(std::span<const int64_t> words) noexcept {
    return as_digest(XXH3_128bits(words.data(), words.size_bytes()));
}

}  // namespace vecmpi::datatype
