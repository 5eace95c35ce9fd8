// SPDX-License-Identifier: BSD-3-Clause
// Handles of the MPICH ABI: numbers of 32 bits, of which some bits say what they stand for.
// Included by handles.hpp.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "base/api/libraries.hpp"

namespace vecmpi::library {

constexpr const char* abi_name = "the MPICH ABI (libmpi.so.12, libmpich.so.12)";
constexpr base::MpiAbi own_abi = base::MpiAbi::mpich, other_abi = base::MpiAbi::standard;
constexpr const char* other_build = "libvecmpi_abi.so";

using HandleNumber = int;
constexpr unsigned no_handle = 0x80000000u;  // and not a null handle

// 32 bits that no other handle of its kind has, never 0.
constexpr uint32_t key_of_handle(HandleNumber handle) noexcept {
    return static_cast<uint32_t>(handle);
}

// Object kind in bits 29-26 of an MPICH handle; kind 0 in bits 31-30 is an invalid handle.
constexpr bool handle_is(int handle, unsigned object) noexcept {
    const auto value = static_cast<unsigned>(handle);
    return (value >> 30) != 0 && ((value >> 26) & 0xfu) == object;
}
constexpr bool is_comm_handle(MPI_Comm comm) noexcept { return handle_is(comm, 1); }
constexpr bool is_type_handle(MPI_Datatype type) noexcept { return handle_is(type, 3); }
constexpr bool is_op_handle(MPI_Op op) noexcept { return handle_is(op, 6); }

// Predefined, and its bytes in memory are its packed bytes.
constexpr bool is_builtin_type(MPI_Datatype type) noexcept {
    return (static_cast<unsigned>(type) >> 26) == 0x13u;
}
constexpr size_t builtin_type_bytes(MPI_Datatype type) noexcept {
    return (static_cast<unsigned>(type) >> 8) & 0xffu;
}
constexpr bool is_builtin_op(MPI_Op op) noexcept {
    return (static_cast<unsigned>(op) >> 26) == 0x16u;
}
// A handle of kind direct or indirect.
constexpr bool is_user_op(MPI_Op op) noexcept {
    return is_op_handle(op) && (static_cast<unsigned>(op) >> 30) >= 2;
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

// The low byte of a predefined op's handle is its index.
constexpr MPI_Op predefined_ops[] = {MPI_MAX, MPI_MIN, MPI_SUM,  MPI_PROD, MPI_LAND,   MPI_BAND,
                                     MPI_LOR, MPI_BOR, MPI_LXOR, MPI_BXOR, MPI_MINLOC, MPI_MAXLOC};
constexpr size_t op_index(MPI_Op op) noexcept { return static_cast<unsigned>(op) & 0xffu; }
constexpr bool is_predefined_op(MPI_Op op) noexcept {
    constexpr unsigned null_op = 0x58000000u;
    return (static_cast<unsigned>(op) & ~0xffu) == null_op && op_index(op) >= 1 &&
           op_index(op) <= 12;
}

// ---- virtual requests ---------------------------------------------------------------------------
// Libraries of the ABI give out no request between MPI_REQUEST_NULL, which is 0x2c000000, and
// 0x2fffffff.

constexpr uint32_t null_request = 0x2c000000u;
constexpr uint32_t unused_requests = 0x03ffffffu;  // behind it
constexpr bool is_unused_request(MPI_Request request) noexcept {
    return static_cast<uint32_t>(request) - null_request - 1 < unused_requests;
}
constexpr MPI_Request unused_request(uint32_t number) noexcept {
    return static_cast<MPI_Request>(null_request + number);
}
constexpr uint32_t number_of_request(MPI_Request request) noexcept {
    return static_cast<uint32_t>(request) - null_request;
}
inline bool reserve_requests() noexcept { return true; }

// There is nothing to ask: handles say it.
inline void ask_about_predefined_types() noexcept {}

}  // namespace vecmpi::library
