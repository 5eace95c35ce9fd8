// SPDX-License-Identifier: BSD-3-Clause
// What handles of the MPICH ABI say by their bits.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

namespace vecmpi::library {

// Object kind in bits 29-26 of an MPICH handle; kind 0 in bits 31-30 is an invalid handle.
constexpr bool handle_is(int handle, unsigned object) noexcept {
    const auto value = static_cast<unsigned>(handle);
    return (value >> 30) != 0 && ((value >> 26) & 0xfu) == object;
}
constexpr bool is_comm_handle(MPI_Comm comm) noexcept { return handle_is(comm, 1); }
constexpr bool is_type_handle(MPI_Datatype type) noexcept { return handle_is(type, 3); }
constexpr bool is_op_handle(MPI_Op op) noexcept { return handle_is(op, 6); }
constexpr bool is_builtin_type(MPI_Datatype type) noexcept {
    return (static_cast<unsigned>(type) >> 26) == 0x13u;
}
constexpr size_t builtin_type_bytes(MPI_Datatype type) noexcept {
    return (static_cast<unsigned>(type) >> 8) & 0xffu;
}
constexpr bool is_builtin_op(MPI_Op op) noexcept {
    return (static_cast<unsigned>(op) >> 26) == 0x16u;
}

// Libraries of the ABI give out no request between MPI_REQUEST_NULL, which this is, and 0x2fffffff.
constexpr uint32_t null_request = 0x2c000000u;
constexpr uint32_t unused_requests = 0x03ffffffu;  // behind it
constexpr bool is_unused_request(MPI_Request request) noexcept {
    return static_cast<uint32_t>(request) - null_request - 1 < unused_requests;
}

// MPIX_C_FLOAT16 of MPICH 4.0 and later, MPIX_BFLOAT16 of MPICH 5.
constexpr auto float16 = static_cast<MPI_Datatype>(0x4c000246);
constexpr auto bfloat16 = static_cast<MPI_Datatype>(0x4c00024c);

// A small number for each predefined type. Their handles are 0x4c00SSII (SS bytes, II below 0x80),
// and for pairs with gaps 0x8c00000N (N below 8).
constexpr size_t type_indices = 0x88;
constexpr size_t type_index(MPI_Datatype type) noexcept {
    const auto value = static_cast<unsigned>(type);
    return value >> 26 == 0x23 ? 0x80 + (value & 0x7u) : value & 0x7fu;
}

}  // namespace vecmpi::library
