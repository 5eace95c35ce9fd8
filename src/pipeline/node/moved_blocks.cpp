// SPDX-License-Identifier: BSD-3-Clause
// Blocks that ranks give each other, as they are: all collectives through staging buffers that
// reduce nothing, but Bcast.
#include <algorithm>
#include <cstring>

#include "kernels/api.hpp"
#include "staged_collectives.hpp"

namespace vecmpi::pipeline::node {

// How blocks lie in the slots of a ring. A slot has a part for each other rank, or one for all.
struct StagedCollectives::Slots {
    SlotRing& ring;
    size_t part_bytes;
    bool has_parts;

    uint64_t rounds_of(size_t bytes) const noexcept {
        return bytes <= part_bytes ? 1 : (bytes + part_bytes - 1) / part_bytes;
    }
    unsigned char* part(int giver, int reader, uint64_t round) const noexcept {
        unsigned char* const slot = ring.slot(giver, round);
        if (!has_parts) return slot;
        const int number = reader - giver - 1;
        return slot + static_cast<size_t>(number < 0 ? number + ring.ranks() : number) * part_bytes;
    }
    // What of a block lies in a part that begins with its byte `first`.
    size_t here(const MovedBlock& block, size_t first) const noexcept {
        if (block.place == nullptr || first >= block.bytes) return 0;
        return std::min(part_bytes, block.bytes - first);
    }
    template <class GivenTo>
    void fill(uint64_t round, size_t first, const BlockMovement& what,
              const GivenTo& given_to) const noexcept {
        const int me = ring.rank(), last = has_parts ? ring.ranks() - 1 : 1;
        for (int i = 1, reader = me; i <= last; ++i) {
            reader = has_parts ? next(reader) : what.has_root() ? what.root : me;
            const MovedBlock block = given_to(reader);
            if (const size_t bytes = here(block, first); bytes != 0)
                kernels::copy_bytes(part(me, reader, round), block.place + first, bytes);
        }
    }
    template <class TakenFrom>
    void empty(uint64_t round, size_t first, const BlockMovement& what,
               const TakenFrom& taken_from) const noexcept {
        const int me = ring.rank();
        for (int giver = next(me); giver != me; giver = next(giver)) {
            if (!what.gives(giver)) continue;
            ring.await(Signal::filled, giver, round);
            const MovedBlock block = taken_from(giver);
            if (const size_t bytes = here(block, first); bytes != 0)
                kernels::copy_bytes(block.place + first, part(giver, me, round), bytes);
        }
    }
    int next(int rank) const noexcept { return rank + 1 == ring.ranks() ? 0 : rank + 1; }
};

StagedCollectives::Slots StagedCollectives::slots_for(const BlockMovement& what,
                                                      size_t bytes) noexcept {
    const bool has_parts = what.has_parts();
    const auto room = [&](size_t ring) noexcept {
        return has_parts ? part_bytes_[ring] : rings_[ring].slot_bytes();
    };
    const size_t at = bytes <= room(0) ? 0 : 1;
    return {rings_[at], room(at), has_parts};
}

void StagedCollectives::copy_own_block(const MovedBlock& given, const MovedBlock& taken) noexcept {
    if (given.place == nullptr || taken.place == nullptr || given.place == taken.place) return;
    kernels::copy_bytes(taken.place, given.place, std::min(given.bytes, taken.bytes));
}

// Blocks are given one round ahead. In place, what is taken in a round lies where what was given in
// it had been.
template <class GivenTo, class TakenFrom>
void StagedCollectives::move_through_slots(const BlockMovement& what, size_t begin, size_t largest,
                                           const GivenTo& given_to,
                                           const TakenFrom& taken_from) noexcept {
    const Slots slots = slots_for(what, largest - begin);
    SlotRing& ring = slots.ring;
    const uint64_t rounds = slots.rounds_of(largest - begin), first = ring.begin(rounds);
    const bool gives = what.gives(me()), takes = what.takes(me());
    const auto give = [&](uint64_t k) noexcept {
        ring.await_free(first + k);
        slots.fill(first + k, begin + k * slots.part_bytes, what, given_to);
        ring.publish(Signal::filled, first + k);
    };
    if (!takes) ring.publish(Signal::read, first + rounds - 1);
    if (gives) give(0);
    if (begin == 0 && (!what.has_root() || me() == what.root))
        copy_own_block(given_to(me()), taken_from(me()));
    for (uint64_t k = 0; k < rounds; ++k) {
        if (gives && k + 1 < rounds) give(k + 1);
        if (takes) {
            slots.empty(first + k, begin + k * slots.part_bytes, what, taken_from);
            ring.publish(Signal::read, first + k);
        }
        if (k + 1 < rounds) ring.make_progress();
    }
}

void StagedCollectives::allgather_through_slots(const unsigned char* own, unsigned char* all,
                                                size_t bytes) noexcept {
    const auto given = [=](int) noexcept {
        return MovedBlock{const_cast<unsigned char*>(own), bytes};
    };
    const auto taken = [=](int rank) noexcept {
        return MovedBlock{all + static_cast<size_t>(rank) * bytes, bytes};
    };
    move_through_slots({}, 0, bytes, given, taken);
}

void StagedCollectives::gather_slices(const Operands& what, int slices) noexcept {
    cut(what.count, slices);
    const auto block_of = [&](int rank) noexcept {
        const Segment& slice = slices_[static_cast<size_t>(rank)];
        return MovedBlock{what.output_at(slice.first), what.bytes_of(slice.count)};
    };
    const auto own = [&](int) noexcept { return block_of(me()); };
    move_through_slots({}, 0, block_of(0).bytes, own, block_of);
}

template <class TakenFrom>
bool StagedCollectives::move_by_single_copy(const BlockMovement& what, const ReadableMemory& given,
                                            size_t stride, const TakenFrom& taken_from) noexcept {
    exchange_addresses(given);
    if (!all_let_read()) return false;
    bool fine = true;
    const bool takes = what.takes(me());
    for (int i = 1; i < ranks() && takes; ++i) {
        const int rank = me() + i < ranks() ? me() + i : me() + i - ranks();
        const MovedBlock block = taken_from(rank);
        if (!what.gives(rank) || block.place == nullptr) continue;
        const uint64_t from = readable_[static_cast<size_t>(rank)].input +
                              (what.has_parts() ? static_cast<size_t>(me()) * stride : 0);
        fine = fine && read_in_parts(rank, from, block.place, block.bytes);
    }
    return all_say(fine);
}

void StagedCollectives::move_equal_blocks(const BlockMovement& what, const unsigned char* given,
                                          unsigned char* taken, size_t bytes,
                                          Transport transport) noexcept {
    const auto given_to = [=](int reader) noexcept {
        const size_t at = what.has_parts() ? static_cast<size_t>(reader) * bytes : 0;
        return MovedBlock{given == nullptr ? nullptr : const_cast<unsigned char*>(given) + at,
                          bytes};
    };
    const auto taken_from = [=](int giver) noexcept {
        const size_t at = what.flow == Flow::from_root ? 0 : static_cast<size_t>(giver) * bytes;
        return MovedBlock{taken == nullptr ? nullptr : taken + at, bytes};
    };
    if (transport == Transport::single_copy) {
        // In place others would still read what this rank overwrites.
        const bool in_place = what.flow == Flow::pairs && given == taken;
        const bool may_read = !what.gives(me()) || (given != nullptr && !in_place);
        const ReadableMemory readable{reinterpret_cast<uintptr_t>(given), 0, may_read ? bytes : 0};
        if (move_by_single_copy(what, readable, bytes, taken_from)) {
            if (!what.has_root() || me() == what.root)
                copy_own_block(given_to(me()), taken_from(me()));
            return;
        }
    }
    move_through_slots(what, 0, bytes, given_to, taken_from);
}

// False: it has no room.
bool StagedCollectives::take_own_block() noexcept {
    const MovedBlock& given = given_blocks_[static_cast<size_t>(me())];
    MovedBlock& taken = taken_blocks_[static_cast<size_t>(me())];
    copy_own_block(given, taken);
    const bool fits = taken.place == nullptr || given.bytes <= taken.bytes;
    taken.bytes = std::min(taken.bytes, given.bytes);
    return fits;
}

// As in NodeComm::candidates_for(), but without a trial: its turns are of all sizes.
bool StagedCollectives::is_read_at_once(size_t bytes) const noexcept {
    const size_t from = settings().single_copy;
    return allows_single_copy() && bytes >= (from == 0 ? worth_a_system_call : from);
}

void StagedCollectives::move_to_all(size_t largest, Transport transport) noexcept {
    const MovedBlock own = given_blocks_[static_cast<size_t>(me())];
    const auto given_to = [=](int) noexcept { return own; };
    const auto taken_from = [this](int giver) noexcept {
        return taken_blocks_[static_cast<size_t>(giver)];
    };
    if (transport == Transport::single_copy) {
        const bool may_read = own.place != nullptr || own.bytes == 0;
        const ReadableMemory readable{reinterpret_cast<uintptr_t>(own.place), 0,
                                      may_read ? std::max<size_t>(own.bytes, 1) : 0};
        if (move_by_single_copy({}, readable, 0, taken_from))
            return copy_own_block(own, taken_from(me()));
    }
    move_through_slots({}, 0, largest, given_to, taken_from);
}

// ---- blocks whose lengths the others do not know ------------------------------------------------

namespace {

// Before the first bytes of a block. largest: of all blocks that the giver gives. bytes, address:
// of this one.
struct Announcement {
    uint64_t largest, bytes, address;
};

size_t largest_of_others(const std::vector<MovedBlock>& blocks, int me) noexcept {
    size_t largest = 0;
    for (size_t rank = 0; rank < blocks.size(); ++rank)
        if (static_cast<int>(rank) != me) largest = std::max(largest, blocks[rank].bytes);
    return largest;
}

}  // namespace

// Parts of many ranks' small slots are too short for an announcement.
StagedCollectives::Slots StagedCollectives::slots_for_announcements() noexcept {
    constexpr size_t least_bytes = 64;
    static_assert(least_bytes > sizeof(Announcement));
    const size_t at = part_bytes_[0] >= least_bytes ? 0 : 1;
    return {rings_[at], part_bytes_[at], true};
}

void StagedCollectives::announce(const Slots& slots, uint64_t round, size_t largest) noexcept {
    for (int reader = after(me()); reader != me(); reader = after(reader)) {
        const MovedBlock& block = given_blocks_[static_cast<size_t>(reader)];
        unsigned char* const part = slots.part(me(), reader, round);
        const Announcement said{largest, block.place == nullptr ? 0 : block.bytes,
                                reinterpret_cast<uintptr_t>(block.place)};
        std::memcpy(part, &said, sizeof said);
        const size_t here = std::min<size_t>(said.bytes, slots.part_bytes - sizeof said);
        kernels::copy_bytes(part + sizeof said, block.place, here);
    }
}

bool StagedCollectives::listen(const Slots& slots, uint64_t round, const BlockMovement& what,
                               size_t* largest) noexcept {
    bool fits = true;
    for (int giver = after(me()); giver != me(); giver = after(giver)) {
        if (!what.gives(giver)) continue;
        slots.ring.await(Signal::filled, giver, round);
        const unsigned char* const part = slots.part(giver, me(), round);
        Announcement said;
        std::memcpy(&said, part, sizeof said);
        *largest = std::max<size_t>(*largest, said.largest);
        readable_[static_cast<size_t>(giver)].input = said.address;
        MovedBlock& block = taken_blocks_[static_cast<size_t>(giver)];
        fits = fits && said.bytes <= block.bytes;
        block.bytes = std::min<size_t>(block.bytes, said.bytes);
        const size_t here = std::min(block.bytes, slots.part_bytes - sizeof said);
        if (block.place != nullptr) kernels::copy_bytes(block.place, part + sizeof said, here);
    }
    return fits;
}

// What is behind the first bytes of each block, where it lies in the others' memory.
bool StagedCollectives::read_rest(const BlockMovement& what, size_t begin) noexcept {
    bool fine = true;
    for (int giver = after(me()); giver != me() && what.takes(me()); giver = after(giver)) {
        const MovedBlock& block = taken_blocks_[static_cast<size_t>(giver)];
        if (!what.gives(giver) || block.place == nullptr || block.bytes <= begin) continue;
        fine = fine && read_in_parts(giver, readable_[static_cast<size_t>(giver)].input + begin,
                                     block.place + begin, block.bytes - begin);
    }
    return all_say(fine);
}

// 1. The first round has room for short blocks, and tells all how many more there will be. 2. The
// rest: by single copy, or by rounds of known number.
bool StagedCollectives::move_announced_blocks(const BlockMovement& what, bool in_place) noexcept {
    if (what.flow == Flow::to_root) return gather_announced_blocks(what.root);
    const Slots slots = slots_for_announcements();
    const uint64_t round = slots.ring.begin(1);
    const size_t in_round = slots.part_bytes - sizeof(Announcement);
    const bool gives = what.gives(me());
    size_t largest = gives ? largest_of_others(given_blocks_, me()) : 0;
    if (gives) {
        slots.ring.await_free(round);
        announce(slots, round, largest);
        slots.ring.publish(Signal::filled, round);
    }
    bool fits = !gives || take_own_block();
    if (what.takes(me())) fits = listen(slots, round, what, &largest) && fits;
    slots.ring.publish(Signal::read, round);
    const bool may_read = !in_place && is_read_at_once(largest);
    if (largest > in_round && !(may_read && read_rest(what, in_round)))
        move_through_slots(
            what, in_round, largest,
            [this](int reader) noexcept { return given_blocks_[static_cast<size_t>(reader)]; },
            [this](int giver) noexcept { return taken_blocks_[static_cast<size_t>(giver)]; });
    return fits;
}

}  // namespace vecmpi::pipeline::node
