// SPDX-License-Identifier: BSD-3-Clause
// The blocks of one side of a call in its v or w form: of any length, anywhere, of a type each
// perhaps. And the same blocks as bytes, packed where they lie otherwise in memory.
#pragma once

#include <list>

#include "datatype/api.hpp"
#include "movement.hpp"
#include "offload/api.hpp"
#include "pipeline/operands.hpp"
#include "pipeline/rank_counts.hpp"

namespace vecmpi::pipeline::node {

// Arguments of a call. Ranks [first, end) have a block; none: they mean nothing on this rank.
struct RankBlocks {
    const void* buffer = nullptr;
    RankCounts counts{MPI_Count{0}};                              // elements
    offload::RankArray displs{static_cast<const int*>(nullptr)};  // missing: at the buffer
    MPI_Datatype type = MPI_BYTE;
    const MPI_Datatype* types = nullptr;  // of each rank; then displs are bytes, not extents
    int first = 0, end = 0;
    bool is_written = false;
    // Of calls in which a block is an edge's, not a rank's.
    MPI_Count stride = 0;           // elements from block to block, where displs are missing
    const int* partners = nullptr;  // by block; nothing moves to or from MPI_PROC_NULL

    static RankBlocks of_one(const void* buffer, MPI_Count count, MPI_Datatype type,
                             int rank) noexcept {
        RankBlocks one;
        one.buffer = buffer;
        one.counts = RankCounts(count);
        one.type = type;
        one.first = rank;
        one.end = rank + 1;
        return one;
    }
    bool is_empty() const noexcept { return first == end; }
    MPI_Datatype type_of(int rank) const noexcept { return types == nullptr ? type : types[rank]; }
    size_t bytes_of(int rank) const noexcept {
        return static_cast<size_t>(counts[rank] * offload::size_of(type_of(rank)));
    }
    bool moves(int rank) const noexcept {
        return counts[rank] != 0 && (partners == nullptr || partners[rank] != MPI_PROC_NULL);
    }
    // Where the rank's block begins; unit: bytes that displacements count.
    void* place_of(int rank, MPI_Count unit) const noexcept {
        return advanced(buffer, (displs.missing() ? rank * stride : displs[rank]) * unit);
    }
    MPI_Count unit() const noexcept {
        if (types != nullptr || (displs.missing() && stride == 0)) return 1;
        return library::is_builtin_type(type) ? offload::size_of(type)
                                              : offload::shape_of(type).extent;
    }
    void keep(KeptArrays& arrays) {
        counts.keep(arrays, end);
        displs = arrays.copy(displs, end);
        keep_types(arrays);
    }
    void keep_types(KeptArrays& arrays) { types = arrays.copy(types, end); }
    size_t total_bytes() const noexcept;
    size_t largest_bytes() const noexcept;
    // The library would not refuse them.
    bool are_fine(MPI_Comm comm) const noexcept;

  private:
    bool is_refused(int rank, MPI_Datatype one) const noexcept;
};

// While it lives, the program may free their types (datatype::TypeInUse).
class TypesInUse {
  public:
    explicit TypesInUse(const RankBlocks& blocks) noexcept;

  private:
    std::list<datatype::TypeInUse> derived_;
};

// Where the blocks lie as bytes: where the program has them, or packed in memory of this object.
class PackedBlocks {
  public:
    // blocks: by rank, `ranks` of them; they get places and lengths. Places are null where the
    // memory is not to be had.
    PackedBlocks(const RankBlocks& program, MovedBlock* blocks, int ranks) noexcept;
    // Each returns an MPI error code. Before unpack() the blocks may have got shorter: as many
    // bytes came.
    int pack(MPI_Comm comm) const noexcept;
    int unpack(MPI_Comm comm) const noexcept;

  private:
    template <class Move>
    int for_each_packed(MPI_Comm comm, const Move& move) const noexcept;
    unsigned char* dense_place(int rank) const noexcept;
    bool is_packed(int rank) const noexcept;

    const RankBlocks& program_;
    MovedBlock* const blocks_;
    datatype::PackMemory memory_;
    size_t packed_bytes_ = 0;
    MPI_Count unit_;
};

}  // namespace vecmpi::pipeline::node
