// SPDX-License-Identifier: BSD-3-Clause
// Collectives in which ranks read large data where it lies in the others' memory. Each: 1. All tell
// where, and try whether they may read it: memory of a device, say, nobody may. Unless all can, the
// data go through the bays. 2. Everybody reads. 3. Nobody leaves before all have read.
#include <algorithm>

#include "bays.hpp"

namespace vecmpi {

namespace {

// Others of this rank's messages may wait for the library.
constexpr size_t bytes_between_polls = size_t{512} << 10;

uint64_t address_of(const void* buffer) noexcept { return reinterpret_cast<uintptr_t>(buffer); }

int error_unless(bool fine) noexcept { return fine ? MPI_SUCCESS : MPI_ERR_OTHER; }

}  // namespace

// A mapping is readable as a whole or not at all: its ends tell.
bool Bays::may_read(const Card& card, int rank) const noexcept {
    const uint64_t last = card.bytes - 1;
    return are_readable(peers_[static_cast<size_t>(rank)],
                        {card.input, card.input + last, card.output, card.output + last});
}

bool Bays::open_memory(const void* input, const void* output, size_t bytes, bool willing) noexcept {
    const Card mine{address_of(input), address_of(output), bytes};
    allgather_in_rounds(reinterpret_cast<const unsigned char*>(&mine),
                        reinterpret_cast<unsigned char*>(cards_.data()), sizeof mine);
    unsigned char can = willing;
    for (int rank = 0; rank < ranks() && can != 0; ++rank)
        if (rank != me()) can = may_read(cards_[static_cast<size_t>(rank)], rank);
    allgather_in_rounds(&can, verdicts_.data(), sizeof can);
    return std::find(verdicts_.begin(), verdicts_.end(), 0) == verdicts_.end();
}

bool Bays::read_in_parts(int rank, uint64_t from, unsigned char* to, size_t bytes) noexcept {
    const PeerProcess& peer = peers_[static_cast<size_t>(rank)];
    for (size_t done = 0; done < bytes; done += bytes_between_polls) {
        if (done != 0) make_progress();
        const size_t n = std::min(bytes_between_polls, bytes - done);
        if (!read_memory(peer, from + done, to + done, n)) return false;
    }
    return true;
}

bool Bays::reduce_own_slice(const Reduction& what, const CombiningOrder& order,
                            unsigned char* to) noexcept {
    const Slice own = slices_[static_cast<size_t>(me())];
    bool fine = true;
    combine(what, order, own.count, remote_piece_bytes, to,
            [&](int rank, int64_t first, int64_t n, unsigned char* spare) noexcept {
                const size_t at = static_cast<size_t>(own.first + first) * what.element_bytes;
                if (rank == me()) return what.input + at;
                const auto peer = static_cast<size_t>(rank);
                fine = read_memory(peers_[peer], cards_[peer].input + at, spare,
                                   static_cast<size_t>(n) * what.element_bytes) &&
                       fine;
                return static_cast<const unsigned char*>(spare);
            });
    return fine;
}

int Bays::allreduce_in_one_copy(const Reduction& what) noexcept {
    Lane& lane = lanes_[1];
    const uint64_t round = lane.begin(1);
    const auto place = [&](int rank) noexcept {
        return static_cast<size_t>(slices_[static_cast<size_t>(rank)].first) * what.element_bytes;
    };
    bool fine = reduce_own_slice(what, doubling_, what.output + place(me()));
    lane.tell(Signal::reduced, round);
    for (int i = 1; i < ranks(); ++i) {
        const int rank = (me() + i) % ranks();
        const auto peer = static_cast<size_t>(rank);
        lane.await(Signal::reduced, rank, round);
        fine = read_in_parts(rank, cards_[peer].output + place(rank), what.output + place(rank),
                             static_cast<size_t>(slices_[peer].count) * what.element_bytes) &&
               fine;
    }
    lane.tell(Signal::read, round);
    lane.await_all(Signal::read, round);
    return error_unless(fine);
}

int Bays::scatter_in_one_copy(const Reduction& what) noexcept {
    Lane& lane = lanes_[1];
    const uint64_t round = lane.begin(1);
    const bool fine = reduce_own_slice(what, order_of_scatter(what.bytes()), what.output);
    lane.tell(Signal::read, round);
    lane.await_all(Signal::read, round);
    return error_unless(fine);
}

int Bays::bcast_in_one_copy(unsigned char* buffer, size_t bytes, int root, size_t* told) noexcept {
    Lane& lane = lanes_[1];
    const uint64_t round = lane.begin(1);
    const Card& from = cards_[static_cast<size_t>(root)];
    *told = from.bytes;
    bool fine = true;
    if (me() != root && from.bytes == bytes) fine = read_in_parts(root, from.input, buffer, bytes);
    lane.tell(Signal::read, round);
    if (me() == root) lane.await_all(Signal::read, round);
    return error_unless(fine);
}

int Bays::allgather_in_one_copy(unsigned char* all, size_t bytes) noexcept {
    Lane& lane = lanes_[1];
    const uint64_t round = lane.begin(1);
    bool fine = true;
    for (int i = 1; i < ranks(); ++i) {
        const int rank = (me() + i) % ranks();
        fine = read_in_parts(rank, cards_[static_cast<size_t>(rank)].input,
                             all + static_cast<size_t>(rank) * bytes, bytes) &&
               fine;
    }
    lane.tell(Signal::read, round);
    lane.await_all(Signal::read, round);
    return error_unless(fine);
}

}  // namespace vecmpi
