// SPDX-License-Identifier: BSD-3-Clause
// Packing and unpacking by the library, MPI_BOTTOM included.
#include "vecmpi/offload.hpp"

namespace vecmpi {

PackableBuffer::PackableBuffer(const void* buffer, MPI_Count count, MPI_Datatype type) noexcept
    : address_(const_cast<void*>(buffer)), count_(count), type_(type) {
    if (buffer != MPI_BOTTOM || count == 0) return;
    address_ = &anchor_;
    const MPI_Count shift = -static_cast<MPI_Count>(reinterpret_cast<intptr_t>(&anchor_));
    real.Type_create_hindexed_c(1, &count, &shift, type, &type_);
    real.Type_commit(&type_);
    count_ = 1;
    shifted_ = true;
}

PackableBuffer::~PackableBuffer() {
    if (shifted_) real.Type_free(&type_);
}

int PackableBuffer::pack(void* to, MPI_Count bytes, MPI_Comm comm) const noexcept {
    MPI_Count position = 0;
    return real.Pack_c(address_, count_, type_, to, bytes, &position, comm);
}

int PackableBuffer::unpack(const void* from, MPI_Count bytes, MPI_Comm comm) const noexcept {
    MPI_Count position = 0;
    return real.Unpack_c(from, bytes, &position, address_, count_, type_, comm);
}

}  // namespace vecmpi
