// SPDX-License-Identifier: BSD-3-Clause
// A program's buffer of any datatype, as packed bytes.
#pragma once

#include "calls.hpp"

namespace vecmpi {

// A buffer that Pack and Unpack accept. They refuse MPI_BOTTOM: a type with absolute addresses is
// shifted, so that it counts from an anchor.
class PackableBuffer {
  public:
    PackableBuffer(const void* buffer, MPI_Count count, MPI_Datatype type) noexcept
        : address_(const_cast<void*>(buffer)), count_(count), type_(type) {
        if (buffer != MPI_BOTTOM || count == 0) return;
        address_ = &anchor_;
        const MPI_Count shift = -static_cast<MPI_Count>(reinterpret_cast<intptr_t>(&anchor_));
        real.Type_create_hindexed_c(1, &count, &shift, type, &type_);
        real.Type_commit(&type_);
        count_ = 1;
        shifted_ = true;
    }
    ~PackableBuffer() {
        if (shifted_) real.Type_free(&type_);
    }
    PackableBuffer(const PackableBuffer&) = delete;
    PackableBuffer& operator=(const PackableBuffer&) = delete;

    int pack(char* to, MPI_Count bytes, MPI_Comm comm) const noexcept {
        MPI_Count position = 0;
        return real.Pack_c(address_, count_, type_, to, bytes, &position, comm);
    }
    int unpack(const char* from, MPI_Count bytes, MPI_Comm comm) const noexcept {
        MPI_Count position = 0;
        return real.Unpack_c(from, bytes, &position, address_, count_, type_, comm);
    }

  private:
    char anchor_ = 0;
    void* address_;
    MPI_Count count_;
    MPI_Datatype type_;
    bool shifted_ = false;
};

}  // namespace vecmpi
