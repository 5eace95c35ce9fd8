// SPDX-License-Identifier: BSD-3-Clause
// Collectives in which ranks read large data where they lie in the others' memory. Each: 1. The
// ranks exchange addresses. 2. Everybody reads. 3. Nobody leaves before all have read. Where
// somebody could not read (memory of a device), the data are copied in and out.
#include <algorithm>

#include "kernels/api.hpp"
#include "staged_collectives.hpp"

namespace vecmpi::pipeline::node {

namespace {

// Other messages of this rank may wait for the library.
constexpr size_t bytes_between_polls = size_t{512} << 10;

uint64_t address_of(const void* buffer) noexcept { return reinterpret_cast<uintptr_t>(buffer); }

}  // namespace

void StagedCollectives::exchange_addresses(const ReadableMemory& mine) noexcept {
    allgather_through_slots(reinterpret_cast<const unsigned char*>(&mine),
                            reinterpret_cast<unsigned char*>(readable_.data()), sizeof mine);
}

bool StagedCollectives::all_let_read() const noexcept {
    return std::all_of(readable_.begin(), readable_.end(),
                       [](const ReadableMemory& readable) noexcept { return readable.bytes != 0; });
}

bool StagedCollectives::all_say(bool yes) noexcept {
    const unsigned char mine = yes;
    allgather_through_slots(&mine, verdicts_.data(), sizeof mine);
    return std::find(verdicts_.begin(), verdicts_.end(), 0) == verdicts_.end();
}

// A mapping is readable as a whole or not at all, so its ends are tried.
bool StagedCollectives::may_read_all() const noexcept {
    for (int rank = 0; rank < ranks(); ++rank) {
        const auto peer = static_cast<size_t>(rank);
        const ReadableMemory& readable = readable_[peer];
        const uint64_t last = readable.bytes - 1;
        if (rank != me() && !are_readable(peers_[peer], {readable.input, readable.input + last,
                                                         readable.output, readable.output + last}))
            return false;
    }
    return true;
}

bool StagedCollectives::read_in_parts(int rank, uint64_t from, unsigned char* to,
                                      size_t bytes) noexcept {
    const PeerProcess& peer = peers_[static_cast<size_t>(rank)];
    for (size_t done = 0; done < bytes; done += bytes_between_polls) {
        if (done != 0) rings_[0].make_progress();
        const size_t n = std::min(bytes_between_polls, bytes - done);
        if (!read_memory(peer, from + done, to + done, n)) return false;
    }
    return true;
}

bool StagedCollectives::reduce_own_slice(const Operands& what, const CombiningOrder& order,
                                         unsigned char* to) noexcept {
    const Segment own = slices_[static_cast<size_t>(me())];
    bool fine = true;
    size_t read_bytes = 0;
    combine(what, order, own.count, remote_piece_bytes, to,
            [&](int rank, int64_t first, int64_t n, unsigned char* spare) noexcept {
                if (rank == me()) return what.input_at(own.first + first);
                const size_t at = what.bytes_of(own.first + first), bytes = what.bytes_of(n);
                const auto peer = static_cast<size_t>(rank);
                if ((read_bytes += bytes) >= bytes_between_polls) {
                    read_bytes = 0;
                    rings_[0].make_progress();
                }
                fine = fine && read_memory(peers_[peer], readable_[peer].input + at, spare, bytes);
                return static_cast<const unsigned char*>(spare);
            });
    return fine;
}

// In place the input is gone once the slices are reduced, so all find out before whether they can
// read.
StagedCollectives::Outcome StagedCollectives::allreduce_by_single_copy(
    const Operands& what) noexcept {
    exchange_addresses({address_of(what.input), address_of(what.output), what.bytes()});
    const bool in_place = std::any_of(
        readable_.begin(), readable_.end(),
        [](const ReadableMemory& readable) noexcept { return readable.input == readable.output; });
    if (in_place && !all_say(may_read_all())) return Outcome::not_readable;
    SlotRing& ring = rings_[1];
    const uint64_t round = ring.begin(1);
    const auto place = [&](int rank) noexcept {
        return what.bytes_of(slices_[static_cast<size_t>(rank)].first);
    };
    bool fine = reduce_own_slice(what, doubling_, what.output_at(0) + place(me()));
    ring.publish(Signal::reduced, round);
    for (int i = 1; i < ranks(); ++i) {
        const int rank = (me() + i) % ranks();
        const auto peer = static_cast<size_t>(rank);
        ring.await(Signal::reduced, rank, round);
        fine = fine &&
               read_in_parts(rank, readable_[peer].output + place(rank),
                             what.output_at(0) + place(rank), what.bytes_of(slices_[peer].count));
    }
    ring.publish(Signal::read, round);
    if (all_say(fine)) return Outcome::done;
    return in_place ? Outcome::failed : Outcome::not_readable;
}

// In place the result would lie where others still read the input.
bool StagedCollectives::scatter_by_single_copy(const Operands& what) noexcept {
    exchange_addresses({address_of(what.input), 0, what.input == what.output ? 0 : what.bytes()});
    if (!all_let_read()) return false;
    const bool fine = reduce_own_slice(what, order_of_scatter(what.bytes()), what.output_at(0));
    return all_say(fine);
}

bool StagedCollectives::bcast_by_single_copy(unsigned char* buffer, size_t bytes, int root,
                                             size_t* root_bytes) noexcept {
    ReadableMemory readable{address_of(buffer), 0, buffer == nullptr ? 0 : bytes};
    size_t address_bytes = 0;
    bcast_through_slots(reinterpret_cast<unsigned char*>(&readable), sizeof readable, root,
                        &address_bytes);
    *root_bytes = readable.bytes;
    bool fine = true;
    if (me() != root && readable.bytes == bytes && buffer != nullptr)
        fine = read_in_parts(root, readable.input, buffer, bytes);
    return all_say(fine);
}

}  // namespace vecmpi::pipeline::node
