// SPDX-License-Identifier: BSD-3-Clause
// Gatherv, in which the root alone knows all lengths. A rank with a short block waits for nobody,
// so it does not learn how much the others give. Hence what is behind the first bytes of longer
// blocks goes in rounds that are numbered for a rank alone: `given` by a giver, `fetched` by a
// root.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernels/api.hpp"
#include "staged_collectives.hpp"

namespace vecmpi::pipeline::node {

namespace {

// In a giver's slot, before the first bytes of its block.
struct GiverSays {
    uint64_t bytes, address;  // of the block
    uint64_t given;           // rounds so far
};
constexpr size_t first_bytes = small_ring.slot_bytes - sizeof(GiverSays);

// In the root's slot, for those who have more to give.
struct RootSays {
    uint64_t fetched;   // rounds so far
    uint64_t has_read;  // all by single copy; from the next one on, before it is undefined
};

size_t behind_first(size_t bytes) noexcept { return bytes - std::min(bytes, first_bytes); }

}  // namespace

bool StagedCollectives::gather_announced_blocks(int root) noexcept {
    SlotRing& ring = rings_[0];
    const uint64_t round = ring.begin(1);
    ring.await_free(round);
    unsigned char* const slot = ring.slot(me(), round);
    if (me() == root) {
        std::memcpy(slot + offsetof(RootSays, fetched), &fetched_, sizeof fetched_);
        ring.publish(Signal::filled, round);
        return fetch_blocks(root, round);
    }
    const MovedBlock& block = given_blocks_[static_cast<size_t>(root)];
    const size_t bytes = block.place == nullptr ? 0 : block.bytes;
    const GiverSays says{bytes, reinterpret_cast<uintptr_t>(block.place), given_};
    std::memcpy(slot, &says, sizeof says);
    kernels::copy_bytes(slot + sizeof says, block.place, std::min(bytes, first_bytes));
    ring.publish(Signal::filled, round);
    if (bytes > first_bytes)
        give_rest(root, round, block);
    else
        ring.publish(Signal::read, round);
    return true;
}

// 1. The root reads by single copy what is worth it. 2. Who has been read leaves. The others, or
// all where that failed, copy theirs in.
void StagedCollectives::give_rest(int root, uint64_t round, const MovedBlock& block) noexcept {
    SlotRing &ring = rings_[0], &large = rings_[1];
    const unsigned char* const slot = ring.slot(root, round);
    uint64_t first = 0, has_read = 0;
    ring.await(Signal::filled, root, round);
    std::memcpy(&first, slot + offsetof(RootSays, fetched), sizeof first);
    ++first;
    if (is_read_at_once(block.bytes)) {
        large.await(Signal::fetched, root, first);
        std::memcpy(&has_read, slot + offsetof(RootSays, has_read), sizeof has_read);
    }
    ring.publish(Signal::read, round);
    if (has_read != 0) return;
    large.await_all_free();
    const size_t bytes = behind_first(block.bytes);
    uint64_t k = 0;
    for (size_t done = 0; done < bytes; done += large.slot_bytes(), ++k) {
        if (k >= large.slots()) large.await(Signal::fetched, root, first + k - large.slots() + 1);
        kernels::copy_bytes(large.slot(me(), given_), block.place + first_bytes + done,
                            std::min(large.slot_bytes(), bytes - done));
        large.publish(Signal::given, ++given_);
        large.make_progress();
    }
    large.await(Signal::fetched, root, first + k);
}

// The first bytes of all blocks.
bool StagedCollectives::fetch_blocks(int root, uint64_t round) noexcept {
    SlotRing& ring = rings_[0];
    bool fits = take_own_block();
    size_t longest = 0;
    for (int giver = after(root); giver != root; giver = after(giver)) {
        ring.await(Signal::filled, giver, round);
        const unsigned char* const slot = ring.slot(giver, round);
        GiverSays says;
        std::memcpy(&says, slot, sizeof says);
        readable_[static_cast<size_t>(giver)] = {says.address, says.given, says.bytes};
        longest = std::max<size_t>(longest, says.bytes);
        MovedBlock& block = taken_blocks_[static_cast<size_t>(giver)];
        fits = fits && says.bytes <= block.bytes;
        block.bytes = std::min<size_t>(block.bytes, says.bytes);
        if (block.place != nullptr)
            kernels::copy_bytes(block.place, slot + sizeof says,
                                std::min(block.bytes, first_bytes));
    }
    if (longest > first_bytes) fetch_rest(root, round, longest);
    ring.publish(Signal::read, round);
    return fits;
}

// 1. and 2. of give_rest().
void StagedCollectives::fetch_rest(int root, uint64_t round, size_t longest) noexcept {
    bool has_read = true;
    for (int giver = after(root); giver != root; giver = after(giver)) {
        const MovedBlock& block = taken_blocks_[static_cast<size_t>(giver)];
        const ReadableMemory& given = readable_[static_cast<size_t>(giver)];
        if (given.bytes > first_bytes && is_read_at_once(given.bytes) && block.place != nullptr)
            has_read =
                has_read && read_in_parts(giver, given.input + first_bytes,
                                          block.place + first_bytes, behind_first(block.bytes));
    }
    const uint64_t says = has_read;
    std::memcpy(rings_[0].slot(root, round) + offsetof(RootSays, has_read), &says, sizeof says);
    SlotRing& large = rings_[1];
    large.publish(Signal::fetched, ++fetched_);
    const size_t bytes = behind_first(longest);
    uint64_t k = 0;
    for (size_t done = 0; done < bytes; done += large.slot_bytes(), ++k) {
        for (int giver = after(root); giver != root; giver = after(giver)) {
            const MovedBlock& block = taken_blocks_[static_cast<size_t>(giver)];
            const ReadableMemory& given = readable_[static_cast<size_t>(giver)];
            if (behind_first(given.bytes) <= done || (has_read && is_read_at_once(given.bytes)))
                continue;
            large.await(Signal::given, giver, given.output + k + 1);
            const size_t here =
                behind_first(block.bytes) - std::min(behind_first(block.bytes), done);
            if (here != 0 && block.place != nullptr)
                kernels::copy_bytes(block.place + first_bytes + done,
                                    large.slot(giver, given.output + k),
                                    std::min(large.slot_bytes(), here));
        }
        large.publish(Signal::fetched, ++fetched_);
        large.make_progress();
    }
}

}  // namespace vecmpi::pipeline::node
