// SPDX-License-Identifier: BSD-3-Clause
// The digest of a datatype's description: XXH3 of xxHash, 128 bits.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "decode.hpp"

namespace vecmpi::datatype {

namespace {

void add(XXH3_state_t& state, const void* bytes, size_t number) noexcept {
    XXH3_128bits_update(&state, bytes, number);
}

// Each node says how long its lists are, so that no two trees give the same bytes.
void add_tree(XXH3_state_t& state, const TypeTree& tree) noexcept {
    const int64_t head[] = {tree.combiner,
                            static_cast<int64_t>(tree.named),
                            tree.size,
                            tree.extent,
                            static_cast<int64_t>(tree.integers.size()),
                            static_cast<int64_t>(tree.addresses.size()),
                            static_cast<int64_t>(tree.counts.size()),
                            static_cast<int64_t>(tree.types.size())};
    add(state, head, sizeof head);
    for (const auto* values : {&tree.integers, &tree.addresses, &tree.counts})
        if (!values->empty()) add(state, values->data(), values->size() * sizeof(int64_t));
    for (const TypeTree& type : tree.types) add_tree(state, type);
}

}  // namespace

TypeDigest digest_of(const TypeTree& tree) noexcept {
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    add_tree(state, tree);
    const XXH128_hash_t digest = XXH3_128bits_digest(&state);
    return {digest.low64, digest.high64};
}

}  // namespace vecmpi::datatype
