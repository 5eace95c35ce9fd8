// SPDX-License-Identifier: BSD-3-Clause
// Blocks of v and w forms: tested, packed, unpacked.
#include "rank_blocks.hpp"

#include <algorithm>
#include <new>

namespace vecmpi::pipeline::node {

size_t RankBlocks::total_bytes() const noexcept {
    size_t total = 0;
    for (int rank = first; rank < end; ++rank)
        if (moves(rank)) total += bytes_of(rank);
    return total;
}

size_t RankBlocks::largest_bytes() const noexcept {
    size_t largest = 0;
    for (int rank = first; rank < end; ++rank) largest = std::max(largest, bytes_of(rank));
    return largest;
}

// Null with a displacement: the library takes it for an address.
bool RankBlocks::is_refused(int rank, MPI_Datatype one) const noexcept {
    if (buffer == nullptr && !displs.missing() && displs[rank] != 0) return false;
    return is_written ? offload::is_refused_output(buffer, counts[rank], one)
                      : offload::is_refused(buffer, counts[rank], one);
}

// Libraries differ in what they say of the type of an empty block of a w form: it is not looked at.
bool RankBlocks::are_fine(MPI_Comm comm) const noexcept {
    const auto is_type = [comm](MPI_Datatype one) noexcept {
        return library::is_type_handle(one) && offload::is_committed(one, comm);
    };
    if (!is_empty() && types == nullptr && !is_type(type)) return false;
    for (int rank = first; rank < end; ++rank) {
        const MPI_Count count = counts[rank];
        if (count < 0) return false;
        if (count == 0) continue;
        const MPI_Datatype one = type_of(rank);
        if (types != nullptr && !is_type(one)) return false;
        ptrdiff_t bytes = 0;
        if (__builtin_mul_overflow(count, offload::size_of(one), &bytes)) return false;
        if (is_refused(rank, one)) return false;
    }
    return true;
}

TypesInUse::TypesInUse(const RankBlocks& blocks) noexcept {
    const auto note = [this](MPI_Datatype type) {
        if (!library::is_builtin_type(type)) derived_.emplace_back(type);
    };
    try {
        if (blocks.types == nullptr && !blocks.is_empty()) note(blocks.type);
        for (int rank = blocks.first; rank < blocks.end && blocks.types != nullptr; ++rank)
            if (blocks.counts[rank] > 0) note(blocks.types[rank]);
    } catch (const std::bad_alloc&) {  // then the program had better not free it
    }
}

// Null: to be packed.
unsigned char* PackedBlocks::dense_place(int rank) const noexcept {
    const MPI_Datatype type = program_.type_of(rank);
    void* const place = program_.place_of(rank, unit_);
    if (library::is_builtin_type(type)) return static_cast<unsigned char*>(place);
    return datatype::place_of_stream(place, program_.counts[rank], type,
                                     static_cast<MPI_Count>(program_.bytes_of(rank)));
}

bool PackedBlocks::is_packed(int rank) const noexcept {
    const unsigned char* const place = blocks_[rank].place;
    return program_.moves(rank) && place >= memory_.place() &&
           place < memory_.place() + packed_bytes_;
}

PackedBlocks::PackedBlocks(const RankBlocks& program, MovedBlock* blocks, int ranks) noexcept
    : program_(program), blocks_(blocks), unit_(program.unit()) {
    std::fill(blocks, blocks + ranks, MovedBlock{});
    for (int rank = program.first; rank < program.end; ++rank) {
        if (!program.moves(rank)) continue;
        const size_t bytes = program.bytes_of(rank);
        blocks[rank] = {dense_place(rank), bytes};
        if (blocks[rank].place == nullptr) packed_bytes_ += bytes;
    }
    if (packed_bytes_ == 0) return;
    memory_.take_anyhow(packed_bytes_);
    unsigned char* next = memory_.place();
    for (int rank = program.first; rank < program.end && next != nullptr; ++rank)
        if (blocks[rank].place == nullptr) {
            blocks[rank].place = next;
            next += blocks[rank].bytes;
        }
}

// move(buffer, block) -> error. The first error is returned.
template <class Move>
int PackedBlocks::for_each_packed(MPI_Comm comm, const Move& move) const noexcept {
    if (packed_bytes_ == 0) return MPI_SUCCESS;
    if (memory_.place() == nullptr) return MPI_ERR_NO_MEM;
    int error = MPI_SUCCESS;
    for (int rank = program_.first; rank < program_.end; ++rank) {
        if (!is_packed(rank)) continue;
        const datatype::PackedBuffer buffer(program_.place_of(rank, unit_), program_.counts[rank],
                                            program_.type_of(rank), comm);
        const int one = move(buffer, blocks_[rank]);
        if (error == MPI_SUCCESS) error = one;
    }
    return error;
}

int PackedBlocks::pack(MPI_Comm comm) const noexcept {
    return for_each_packed(
        comm, [](const datatype::PackedBuffer& buffer, const MovedBlock& block) noexcept -> int {
            return buffer.bytes() == 0 ? MPI_SUCCESS : buffer.pack_to(block.place);
        });
}

int PackedBlocks::unpack(MPI_Comm comm) const noexcept {
    return for_each_packed(
        comm, [](const datatype::PackedBuffer& buffer, const MovedBlock& block) noexcept -> int {
            if (static_cast<size_t>(buffer.bytes()) != block.bytes) return MPI_ERR_OTHER;
            return block.bytes == 0 ? MPI_SUCCESS : buffer.unpack_from(block.place);
        });
}

}  // namespace vecmpi::pipeline::node
