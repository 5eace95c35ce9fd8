// SPDX-License-Identifier: BSD-3-Clause
// What is kept of handles of the standard ABI. Built into libvecmpi_abi.so only.
#include <sys/mman.h>

#include "handle_keys.hpp"
#include "library/api.hpp"

namespace vecmpi::library {

namespace {

constinit HandleKeys keys;

constexpr MPI_Datatype predefined_types[] = {MPI_AINT,
                                             MPI_COUNT,
                                             MPI_OFFSET,
                                             MPI_PACKED,
                                             MPI_SHORT,
                                             MPI_INT,
                                             MPI_LONG,
                                             MPI_LONG_LONG,
                                             MPI_UNSIGNED_SHORT,
                                             MPI_UNSIGNED,
                                             MPI_UNSIGNED_LONG,
                                             MPI_UNSIGNED_LONG_LONG,
                                             MPI_FLOAT,
                                             MPI_C_FLOAT_COMPLEX,
                                             MPI_CXX_FLOAT_COMPLEX,
                                             MPI_DOUBLE,
                                             MPI_C_DOUBLE_COMPLEX,
                                             MPI_CXX_DOUBLE_COMPLEX,
                                             MPI_LOGICAL,
                                             MPI_INTEGER,
                                             MPI_REAL,
                                             MPI_COMPLEX,
                                             MPI_DOUBLE_PRECISION,
                                             MPI_DOUBLE_COMPLEX,
                                             MPI_CHARACTER,
                                             MPI_LONG_DOUBLE,
                                             MPI_C_LONG_DOUBLE_COMPLEX,
                                             MPI_CXX_LONG_DOUBLE_COMPLEX,
                                             MPI_FLOAT_INT,
                                             MPI_DOUBLE_INT,
                                             MPI_LONG_INT,
                                             MPI_2INT,
                                             MPI_SHORT_INT,
                                             MPI_LONG_DOUBLE_INT,
                                             MPI_2REAL,
                                             MPI_2DOUBLE_PRECISION,
                                             MPI_2INTEGER,
                                             MPI_C_BOOL,
                                             MPI_CXX_BOOL,
                                             MPI_WCHAR,
                                             MPI_INT8_T,
                                             MPI_UINT8_T,
                                             MPI_CHAR,
                                             MPI_SIGNED_CHAR,
                                             MPI_UNSIGNED_CHAR,
                                             MPI_BYTE,
                                             MPI_INT16_T,
                                             MPI_UINT16_T,
                                             MPI_INT32_T,
                                             MPI_UINT32_T,
                                             MPI_INT64_T,
                                             MPI_UINT64_T,
                                             MPI_LOGICAL1,
                                             MPI_INTEGER1,
                                             MPI_LOGICAL2,
                                             MPI_INTEGER2,
                                             MPI_REAL2,
                                             MPI_LOGICAL4,
                                             MPI_INTEGER4,
                                             MPI_REAL4,
                                             MPI_COMPLEX4,
                                             MPI_LOGICAL8,
                                             MPI_INTEGER8,
                                             MPI_REAL8,
                                             MPI_COMPLEX8,
                                             MPI_LOGICAL16,
                                             MPI_INTEGER16,
                                             MPI_REAL16,
                                             MPI_COMPLEX16,
                                             MPI_COMPLEX32};

}  // namespace

uint32_t key_of_address(uintptr_t handle) noexcept { return keys.key_of(handle); }

// Sizes of Fortran's types are the compiler's (MPI_Abi_set_fortran_info), and a library may lack
// types. Those of C are known, but a question costs nothing.
unsigned char bytes_of_predefined[type_indices];

void ask_about_predefined_types() noexcept {
    const QuietErrors question;
    const LoudQuestion where_it_cannot_be;
    for (const MPI_Datatype type : predefined_types) {
        int bytes = 0;
        const bool is_there = real.Type_size(type, &bytes) == MPI_SUCCESS && bytes > 0;
        bytes_of_predefined[type_index(type)] = is_there ? static_cast<unsigned char>(bytes) : 0;
    }
}

// Where no user's address can be, until it is reserved.
uintptr_t unused_requests_begin = uintptr_t{0xffff} << 48;

bool reserve_requests() noexcept {
    static const bool are_reserved = [] {
        void* const begin = mmap(nullptr, size_t{unused_requests} + 1, PROT_NONE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (begin == MAP_FAILED) return false;
        unused_requests_begin = reinterpret_cast<uintptr_t>(begin);
        return true;
    }();
    return are_reserved;
}

}  // namespace vecmpi::library
