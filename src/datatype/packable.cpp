// SPDX-License-Identifier: BSD-3-Clause
// Buffers of collectives: as the program's own MPI_Pack and MPI_Unpack, MPI_BOTTOM included.
#include "datatype/api.hpp"
#include "offload/api.hpp"

namespace vecmpi::datatype {

PackableBuffer::Handle PackableBuffer::handle_of_call() noexcept {
    return offload::is_reentrant() ? Handle::other : Handle::held_by_program;
}

PackableBuffer::PackableBuffer(const void* buffer, MPI_Count count, MPI_Datatype type,
                               Handle handle) noexcept
    : address_(const_cast<void*>(buffer)), count_(count), type_(type), handle_(handle) {
    if (buffer != MPI_BOTTOM || count == 0) return;
    address_ = &anchor_;
    const MPI_Count shift = -static_cast<MPI_Count>(reinterpret_cast<intptr_t>(&anchor_));
    real.Type_create_hindexed_c(1, &count, &shift, type, &type_);
    real.Type_commit(&type_);
    count_ = 1;
    shifted_ = true;
    handle_ = Handle::other;
}

PackableBuffer::~PackableBuffer() {
    if (shifted_) real.Type_free(&type_);
}

int PackableBuffer::move(kernels::Direction direction, void* packed, MPI_Count bytes,
                         MPI_Comm comm) const noexcept {
    const PackCall call{.direction = direction,
                        .memory = address_,
                        .count = count_,
                        .type = type_,
                        .packed = packed,
                        .packed_bytes = bytes,
                        .position = 0,
                        .comm = comm};
    MPI_Count position = 0;
    uint64_t timed_since_ns = 0;
    if (handle_ == Handle::held_by_program && pack_by_plan(call, &position, &timed_since_ns)) {
        count(Counter::plan_buffers);
        return MPI_SUCCESS;
    }
    const int rc = direction == kernels::Direction::pack
                       ? real.Pack_c(address_, count_, type_, packed, bytes, &position, comm)
                       : real.Unpack_c(packed, bytes, &position, address_, count_, type_, comm);
    if (rc == MPI_SUCCESS && handle_ == Handle::held_by_program)
        note_packed_by_library(call, position, timed_since_ns);
    return rc;
}

}  // namespace vecmpi::datatype
