// SPDX-License-Identifier: BSD-3-Clause
// What can be said of a call's arguments, and packing by the library, MPI_BOTTOM included. Moves no
// data but what it packs.
#include "vecmpi/offload.hpp"

namespace vecmpi {

MPI_Count size_of(MPI_Datatype type) noexcept {
    if (is_builtin_type(type)) return static_cast<MPI_Count>(builtin_type_bytes(type));
    MPI_Count bytes = 0;
    real.Type_size_x(type, &bytes);
    return bytes;
}

TypeShape shape_of(MPI_Datatype type) noexcept {
    TypeShape shape;
    MPI_Count lower_bound = 0;
    shape.bytes = size_of(type);
    real.Type_get_extent_x(type, &lower_bound, &shape.extent);
    shape.builtin = is_builtin_type(type);
    return shape;
}

bool is_committed(MPI_Datatype type, MPI_Comm comm) noexcept {
    if (is_builtin_type(type)) return true;
    char nothing = 0;
    int position = 0;
    const QuietErrors question;
    return real.Pack(&nothing, 0, type, &nothing, 0, &position, comm) == MPI_SUCCESS;
}

bool is_refused(const void* buffer, MPI_Count count, MPI_Datatype type) noexcept {
    if (buffer != nullptr || count == 0) return false;
    if (is_builtin_type(type)) return true;
    MPI_Count lower_bound = 0, extent = 0;
    real.Type_get_true_extent_x(type, &lower_bound, &extent);
    return lower_bound == 0;
}

bool is_refused_output(const void* buffer, MPI_Count count, MPI_Datatype type) noexcept {
    return (buffer == MPI_IN_PLACE && count != 0) || is_refused(buffer, count, type);
}

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
