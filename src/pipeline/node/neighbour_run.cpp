// SPDX-License-Identifier: BSD-3-Clause
// 1. The first round has room for short blocks, and tells neighbours how long each one is. 2. Of
// longer ones who takes them reads by single copy what is worth it, and says so. 3. The rest is
// copied in rounds. Before it takes round k a rank has given round k + 1, for which it waits only
// until others have taken an earlier one: no ring of ranks waits for itself.
#include "neighbour_run.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/api.hpp"
#include "staged_collectives.hpp"

namespace vecmpi::pipeline::node {

namespace {

template <class Said>
Said said_at(const unsigned char* place) noexcept {
    Said said;
    std::memcpy(&said, place, sizeof said);
    return said;
}

size_t behind(size_t bytes, size_t first) noexcept { return bytes - std::min(bytes, first); }

void copy_to(const MovedBlock& block, size_t at, const unsigned char* from, size_t most) noexcept {
    const size_t here = std::min(most, behind(block.bytes, at));
    if (here != 0 && block.place != nullptr) kernels::copy_bytes(block.place + at, from, here);
}

void copy_from(const MovedBlock& block, size_t at, unsigned char* to, size_t most) noexcept {
    const size_t here = std::min(most, behind(block.bytes, at));
    if (here != 0) kernels::copy_bytes(to, block.place + at, here);
}

uint64_t most_rounds(const std::vector<RestOfEdge>& rests) noexcept {
    uint64_t most = 0;
    for (const RestOfEdge& rest : rests) most = std::max(most, rest.rounds);
    return most;
}

}  // namespace

NeighbourRun::NeighbourRun(StagedCollectives& staged, Neighbourhood& hood,
                           const std::vector<EdgeSource>& edges, bool has_parts) noexcept
    : staged_(staged),
      hood_(hood),
      edges_(edges),
      small_(staged.rings_[0]),
      large_(staged.rings_[1]),
      me_(staged.me()),
      parts_(has_parts ? static_cast<int>(hood.destinations.size()) : 1),
      has_parts_(has_parts),
      round_(small_.begin(1)) {}

// One that is nowhere is empty for all.
MovedBlock NeighbourRun::given(size_t edge) const noexcept {
    const MovedBlock& block = hood_.given[has_parts_ ? edge : 0];
    return block.place == nullptr ? MovedBlock{} : block;
}

bool NeighbourRun::goes_to_another(size_t edge) const noexcept {
    return hood_.destinations[edge] != me_ && hood_.destinations[edge] != MPI_PROC_NULL;
}

void NeighbourRun::announce() noexcept {
    small_.await_free(round_);
    unsigned char* const slot = small_.slot(me_, round_);
    const NeighbourHeader header{staged_.given_, staged_.fetched_, 0};
    std::memcpy(slot, &header, sizeof header);
    for (size_t edge = 0; edge < hood_.destinations.size(); ++edge) {
        RestOfEdge& rest = hood_.rest_given[edge] = {};
        if (!goes_to_another(edge)) continue;
        rest.bytes = behind(given(edge).bytes, first_bytes_of(parts_));
        set_rounds(rest, parts_, true);
    }
    for (size_t number = 0; number < static_cast<size_t>(parts_); ++number) {
        if (has_parts_ && !goes_to_another(number)) continue;
        const MovedBlock block = given(number);
        unsigned char* const part = slot + sizeof header + number * first_part_bytes(parts_);
        const NeighbourAnnouncement said{block.bytes, reinterpret_cast<uintptr_t>(block.place)};
        std::memcpy(part, &said, sizeof said);
        copy_from(block, 0, part + sizeof said, first_bytes_of(parts_));
    }
    small_.publish(Signal::filled, round_);
}

// has_read: what is read at once has been, or will be.
void NeighbourRun::set_rounds(RestOfEdge& rest, int parts, bool has_read) const noexcept {
    const bool is_copied = rest.bytes != 0 && !(has_read && staged_.is_read_at_once(rest.bytes));
    rest.rounds =
        is_copied ? rounds_for(rest.bytes, next_part_bytes(large_.slot_bytes(), parts)) : 0;
}

bool NeighbourRun::take_own(const EdgeSource& edge, MovedBlock& block) noexcept {
    const MovedBlock own = given(part_of(edge));
    const bool fits = own.bytes <= block.bytes;
    block.bytes = std::min(block.bytes, own.bytes);
    if (block.bytes != 0) copy_to(block, 0, own.place, block.bytes);
    return fits;
}

bool NeighbourRun::take_first(const EdgeSource& edge, MovedBlock& block,
                              RestOfEdge& rest) noexcept {
    small_.await(Signal::filled, edge.rank, round_);
    const unsigned char* const slot = small_.slot(edge.rank, round_);
    const auto header = said_at<NeighbourHeader>(slot);
    const int parts = parts_of(edge);
    const unsigned char* const part =
        slot + sizeof header + part_of(edge) * first_part_bytes(parts);
    const auto said = said_at<NeighbourAnnouncement>(part);
    const size_t first = first_bytes_of(parts);
    rest = {said.address + first, behind(said.bytes, first), header.given, 0};
    const bool fits = said.bytes <= block.bytes;
    block.bytes = std::min<size_t>(block.bytes, said.bytes);
    copy_to(block, 0, part + sizeof said, first);
    return fits;
}

bool NeighbourRun::take_first_parts() noexcept {
    bool fits = true;
    for (size_t l = 0; l < edges_.size(); ++l) {
        const EdgeSource& edge = edges_[l];
        hood_.rest_taken[l] = {};
        if (edge.rank == me_)
            fits = take_own(edge, hood_.taken[l]) && fits;
        else if (edge.rank != MPI_PROC_NULL)
            fits = take_first(edge, hood_.taken[l], hood_.rest_taken[l]) && fits;
    }
    return fits;
}

bool NeighbourRun::read(size_t l) noexcept {
    const MovedBlock& block = hood_.taken[l];
    const size_t first = first_bytes_of(parts_of(edges_[l])), bytes = behind(block.bytes, first);
    return bytes == 0 || block.place == nullptr ||
           staged_.read_in_parts(edges_[l].rank, hood_.rest_taken[l].address, block.place + first,
                                 bytes);
}

void NeighbourRun::read_at_once() noexcept {
    bool reads = false, has_read = true;
    for (size_t l = 0; l < edges_.size(); ++l) {
        if (!staged_.is_read_at_once(hood_.rest_taken[l].bytes)) continue;
        reads = true;
        has_read = has_read && read(l);
    }
    for (size_t l = 0; l < edges_.size(); ++l)
        set_rounds(hood_.rest_taken[l], parts_of(edges_[l]), has_read);
    if (!reads) return;  // nobody waits for it
    const uint64_t says = has_read;
    std::memcpy(small_.slot(me_, round_) + offsetof(NeighbourHeader, has_read), &says, sizeof says);
    small_.publish(Signal::fetched, round_);
}

void NeighbourRun::note_readers() noexcept {
    for (size_t edge = 0; edge < hood_.rest_given.size(); ++edge) {
        RestOfEdge& rest = hood_.rest_given[edge];
        if (rest.bytes == 0) continue;
        const int reader = hood_.destinations[edge];
        small_.await(Signal::filled, reader, round_);
        const unsigned char* const slot = small_.slot(reader, round_);
        rest.base = said_at<uint64_t>(slot + offsetof(NeighbourHeader, fetched));
        if (!staged_.is_read_at_once(rest.bytes)) continue;
        small_.await(Signal::fetched, reader, round_);
        set_rounds(rest, parts_,
                   said_at<uint64_t>(slot + offsetof(NeighbourHeader, has_read)) != 0);
    }
}

// Who has taken all of his block is not waited for.
void NeighbourRun::give(uint64_t k) noexcept {
    const uint64_t slots = large_.slots();
    for (size_t edge = 0; edge < hood_.rest_given.size() && k >= slots; ++edge) {
        const RestOfEdge& rest = hood_.rest_given[edge];
        if (rest.rounds != 0)
            large_.await(Signal::fetched, hood_.destinations[edge],
                         rest.base + std::min(k - slots + 1, rest.rounds));
    }
    const size_t part_bytes = next_part_bytes(large_.slot_bytes(), parts_);
    for (size_t number = 0; number < static_cast<size_t>(parts_); ++number)
        if (!has_parts_ || k < hood_.rest_given[number].rounds)
            copy_from(given(number), first_bytes_of(parts_) + k * part_bytes,
                      large_.slot(me_, staged_.given_) + number * part_bytes, part_bytes);
    large_.publish(Signal::given, ++staged_.given_);
}

void NeighbourRun::take(uint64_t k) noexcept {
    for (size_t l = 0; l < edges_.size(); ++l) {
        const EdgeSource& edge = edges_[l];
        const RestOfEdge& rest = hood_.rest_taken[l];
        if (k >= rest.rounds) continue;
        large_.await(Signal::given, edge.rank, rest.base + k + 1);
        const int parts = parts_of(edge);
        const size_t part_bytes = next_part_bytes(large_.slot_bytes(), parts);
        copy_to(hood_.taken[l], first_bytes_of(parts) + k * part_bytes,
                large_.slot(edge.rank, rest.base + k) + part_of(edge) * part_bytes, part_bytes);
    }
    large_.publish(Signal::fetched, ++staged_.fetched_);
}

void NeighbourRun::begin_giving() noexcept {
    large_.await_all_free();
    give(0);
}

// Parts are given one round ahead.
void NeighbourRun::copy_rest(bool has_begun) noexcept {
    const uint64_t gives = most_rounds(hood_.rest_given), takes = most_rounds(hood_.rest_taken);
    if (gives != 0 && !has_begun) begin_giving();
    for (uint64_t k = 0; k < std::max(gives, takes); ++k) {
        if (k + 1 < gives) give(k + 1);
        if (k < takes) take(k);
        if (k + 1 < takes) large_.make_progress();
    }
    for (size_t edge = 0; edge < hood_.rest_given.size(); ++edge) {
        const RestOfEdge& rest = hood_.rest_given[edge];
        if (rest.rounds != 0)
            large_.await(Signal::fetched, hood_.destinations[edge], rest.base + rest.rounds);
    }
}

bool NeighbourRun::run() noexcept {
    announce();
    // Else it shows only later what is to be copied.
    const bool is_known = std::none_of(
        hood_.rest_given.begin(), hood_.rest_given.end(),
        [this](const RestOfEdge& rest) noexcept { return staged_.is_read_at_once(rest.bytes); });
    const bool begins = is_known && most_rounds(hood_.rest_given) != 0;
    if (begins) begin_giving();
    const bool fits = take_first_parts();
    read_at_once();
    note_readers();
    small_.publish(Signal::read, round_);
    copy_rest(begins);
    return fits;
}

}  // namespace vecmpi::pipeline::node
