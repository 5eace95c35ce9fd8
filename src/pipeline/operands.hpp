// SPDX-License-Identifier: BSD-3-Clause
// What one rank gives to a collective that works on elements, and where its result goes. Knows no
// communicator, and moves nothing.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "offload/api/arguments.hpp"

namespace vecmpi::pipeline {

// The address `bytes` further on. MPI_BOTTOM is null, and moves like any other buffer; MPI_IN_PLACE
// stays what it is.
inline void* advanced(const void* buffer, MPI_Count bytes) noexcept {
    if (buffer == MPI_IN_PLACE) return MPI_IN_PLACE;
    return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(buffer) +
                                   static_cast<uintptr_t>(bytes));
}

// A vector of dense elements: `extent` bytes each, without gaps.
struct Operands {
    const void* input = nullptr;
    void* output = nullptr;  // may be the input; null where this rank gets no result
    MPI_Count count = 0;     // elements
    MPI_Datatype type = MPI_BYTE;
    MPI_Op op = MPI_OP_NULL;  // of a reduction
    MPI_Count extent = 1;

    size_t bytes_of(int64_t elements) const noexcept {
        return static_cast<size_t>(elements * extent);
    }
    size_t bytes() const noexcept { return bytes_of(count); }
    // Where element i lies.
    const unsigned char* input_at(int64_t i) const noexcept {
        return static_cast<const unsigned char*>(advanced(input, i * extent));
    }
    unsigned char* output_at(int64_t i) const noexcept {
        return static_cast<unsigned char*>(advanced(output, i * extent));
    }
    // Elements [first, first + number) of it.
    Operands part(int64_t first, int64_t number) const noexcept {
        return {advanced(input, first * extent),
                advanced(output, first * extent),
                number,
                type,
                op,
                extent};
    }
};

inline bool is_alias(const void* sendbuf, const void* recvbuf) noexcept {
    return sendbuf == recvbuf && offload::aliases_are_refused();
}
// One buffer for both sides that is not refused: in place.
inline const void* input_of(const void* sendbuf, const void* recvbuf) noexcept {
    return sendbuf == recvbuf ? MPI_IN_PLACE : sendbuf;
}
// Is a reduction's buffer the library's to refuse, on this rank alone perhaps? own: elements that
// this rank receives.
inline bool are_refused(const void* sendbuf, MPI_Count count, const void* recvbuf, MPI_Count own,
                        MPI_Datatype type) noexcept {
    return is_alias(sendbuf, recvbuf) || offload::is_refused(sendbuf, count, type) ||
           offload::is_refused_output(recvbuf, own, type);
}
// The same of a Reduce, whose receive buffer means something on the root only.
inline bool are_refused_in_reduce(const void* sendbuf, const void* recvbuf, MPI_Count count,
                                  MPI_Datatype type, bool is_root) noexcept {
    return is_root ? are_refused(sendbuf, count, recvbuf, count, type)
                   : sendbuf == MPI_IN_PLACE || offload::is_refused(sendbuf, count, type);
}

}  // namespace vecmpi::pipeline
