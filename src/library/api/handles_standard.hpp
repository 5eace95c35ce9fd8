// SPDX-License-Identifier: BSD-3-Clause
// Handles of the standard ABI (MPI 5.0, chapter 20): addresses, or small numbers where they are
// predefined. Included by handles.hpp.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "base/api/libraries.hpp"

namespace vecmpi::library {

constexpr const char* abi_name = "the standard ABI of MPI 5 (libmpi_abi.so.1)";
constexpr base::MpiAbi own_abi = base::MpiAbi::standard, other_abi = base::MpiAbi::mpich;
constexpr const char* other_build = "libvecmpi.so";

using HandleNumber = uintptr_t;
constexpr uintptr_t no_handle = ~uintptr_t{0};  // and not a null handle

// Predefined ones lie in the first page, where no object can be.
constexpr uintptr_t behind_predefined = 0x1000;
template <class Handle>
constexpr bool is_made(Handle handle) noexcept {  // by a call of the program
    return static_cast<uintptr_t>(handle) >= behind_predefined;
}

// 32 bits that no other handle of its kind has; 0 where there are none left for it. MPICH's
// handles fit as they are.
uint32_t key_of_address(uintptr_t handle) noexcept;
template <class Handle>
uint32_t key_of_handle(Handle handle) noexcept {
    const auto number = static_cast<uintptr_t>(handle);
    return number >> 32 == 0 ? static_cast<uint32_t>(number) : key_of_address(number);
}

inline bool is_comm_handle(MPI_Comm comm) noexcept {
    return comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF || is_made(comm);
}

// ---- datatypes ----------------------------------------------------------------------------------

constexpr size_t type_indices = 0x100;  // MPI_DATATYPE_NULL is 0x200, all others lie behind it
constexpr size_t type_index(MPI_Datatype type) noexcept {
    return static_cast<uintptr_t>(type) % type_indices;
}
constexpr bool is_predefined_type(MPI_Datatype type) noexcept {
    return type != MPI_DATATYPE_NULL &&
           static_cast<uintptr_t>(type) / type_indices ==
               static_cast<uintptr_t>(MPI_DATATYPE_NULL) / type_indices;
}
constexpr bool is_pair_with_gap(MPI_Datatype type) noexcept {
    return type == MPI_FLOAT_INT || type == MPI_DOUBLE_INT || type == MPI_LONG_INT ||
           type == MPI_SHORT_INT || type == MPI_LONG_DOUBLE_INT;
}

// By type_index(). What the library answered in MPI_Init; 0 where it lacks the type.
extern unsigned char bytes_of_predefined[type_indices];
void ask_about_predefined_types() noexcept;

// Predefined, and its bytes in memory are its packed bytes.
constexpr bool is_builtin_type(MPI_Datatype type) noexcept {
    return is_predefined_type(type) && !is_pair_with_gap(type);
}
inline size_t builtin_type_bytes(MPI_Datatype type) noexcept {
    return bytes_of_predefined[type_index(type)];
}
inline bool is_type_handle(MPI_Datatype type) noexcept {
    return is_made(type) ||
           (is_predefined_type(type) && bytes_of_predefined[type_index(type)] != 0);
}

// The ABI has no name for MPICH's types of 16 bits.
constexpr MPI_Datatype float16 = MPI_DATATYPE_NULL;
constexpr MPI_Datatype bfloat16 = MPI_DATATYPE_NULL;

// ---- ops ----------------------------------------------------------------------------------------

constexpr MPI_Op predefined_ops[] = {MPI_MAX, MPI_MIN, MPI_SUM,  MPI_PROD, MPI_LAND,   MPI_BAND,
                                     MPI_LOR, MPI_BOR, MPI_LXOR, MPI_BXOR, MPI_MINLOC, MPI_MAXLOC};
// 0 where it is not one of these.
constexpr size_t op_index(MPI_Op op) noexcept {
    constexpr uintptr_t lowest = static_cast<uintptr_t>(MPI_OP_NULL), number_of_ops = 32;
    struct Table {
        unsigned char index[number_of_ops];
    };
    constexpr Table by_number = [] {
        Table table{};
        unsigned char index = 0;
        for (const MPI_Op known : predefined_ops)
            table.index[static_cast<uintptr_t>(known) - lowest] = ++index;
        return table;
    }();
    const uintptr_t number = static_cast<uintptr_t>(op) - lowest;
    return number < number_of_ops ? by_number.index[number] : 0;
}
constexpr bool is_predefined_op(MPI_Op op) noexcept { return op_index(op) != 0; }
constexpr bool is_builtin_op(MPI_Op op) noexcept {
    return is_predefined_op(op) || op == MPI_REPLACE || op == MPI_NO_OP;
}
constexpr bool is_user_op(MPI_Op op) noexcept { return is_made(op); }
constexpr bool is_op_handle(MPI_Op op) noexcept { return is_builtin_op(op) || is_user_op(op); }

// ---- virtual requests ---------------------------------------------------------------------------
// Addresses in a range that is reserved and never touched, so that nothing else can lie there.

constexpr uint32_t unused_requests = 0x03ffffffu;
extern uintptr_t unused_requests_begin;
bool reserve_requests() noexcept;  // false: the system refused it

inline bool is_unused_request(MPI_Request request) noexcept {
    return static_cast<uintptr_t>(request) - unused_requests_begin - 1 < unused_requests;
}
inline MPI_Request unused_request(uint32_t number) noexcept {
    return static_cast<MPI_Request>(unused_requests_begin + number);
}
inline uint32_t number_of_request(MPI_Request request) noexcept {
    return static_cast<uint32_t>(static_cast<uintptr_t>(request) - unused_requests_begin);
}

}  // namespace vecmpi::library
