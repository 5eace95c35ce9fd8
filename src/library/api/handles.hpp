// SPDX-License-Identifier: BSD-3-Clause
// What handles say by their bits: the one place that takes a handle for a number. One file for each
// ABI that vecmpi is built for, with the same names in both.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#if defined(VECMPI_STANDARD_ABI)
#include "handles_standard.hpp"
#else
#include "handles_mpich.hpp"
#endif

namespace vecmpi::library {

template <class Handle>
constexpr HandleNumber number_of_handle(Handle handle) noexcept {
    return static_cast<HandleNumber>(handle);
}

// For a line to the user.
template <class Handle>
constexpr unsigned long long shown_bits(Handle handle) noexcept {
    return static_cast<std::make_unsigned_t<HandleNumber>>(number_of_handle(handle));
}

// Numbers that a virtual request has in Fortran (MPI_Request_toint): no library gives them out.
constexpr uint32_t unused_fortran_requests = 0x2c000000u;
inline int fortran_number_of(MPI_Request virtual_request) noexcept {
    return static_cast<int>(unused_fortran_requests + number_of_request(virtual_request));
}
constexpr bool is_unused_fortran_request(int request) noexcept {
    return static_cast<uint32_t>(request) - unused_fortran_requests - 1 < unused_requests;
}
inline MPI_Request request_of_fortran(int unused_request_number) noexcept {
    return unused_request(static_cast<uint32_t>(unused_request_number) - unused_fortran_requests);
}

// The ops on which MPI defines reductions (MPI 4.0, 6.9.2), by a small number: MPI_MAX is 1,
// MPI_MAXLOC is 12. So has MPICH them in its table, and src/kernels its enum class.
constexpr size_t first_op = 1, last_op = 12;
constexpr MPI_Op predefined_op(size_t index) noexcept { return predefined_ops[index - first_op]; }

}  // namespace vecmpi::library
