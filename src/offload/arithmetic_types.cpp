// SPDX-License-Identifier: BSD-3-Clause
// What the predefined datatypes hold, and values to compare arithmetic on. Pure; calls nothing.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "arithmetic.hpp"

namespace vecmpi::offload {

namespace {

using kernels::ElementType;

// ---- types --------------------------------------------------------------------------------------

struct TypeRow {
    MPI_Datatype type;
    ElementType element;
};

template <class Integer>
constexpr ElementType integer() noexcept {
    constexpr ElementType by_size[][2] = {{ElementType::u8, ElementType::i8},
                                          {ElementType::u16, ElementType::i16},
                                          {ElementType::u32, ElementType::i32},
                                          {ElementType::u64, ElementType::i64}};
    size_t log2_bytes = 0;
    while (size_t{1} << log2_bytes < sizeof(Integer)) ++log2_bytes;
    return by_size[log2_bytes][std::is_signed_v<Integer>];
}

constexpr TypeRow rows[] = {
    {MPI_CHAR, integer<char>()},
    {MPI_SIGNED_CHAR, ElementType::i8},
    {MPI_UNSIGNED_CHAR, ElementType::u8},
    {MPI_BYTE, ElementType::u8},
    {MPI_SHORT, integer<short>()},
    {MPI_UNSIGNED_SHORT, integer<unsigned short>()},
    {MPI_INT, integer<int>()},
    {MPI_UNSIGNED, integer<unsigned>()},
    {MPI_LONG, integer<long>()},
    {MPI_UNSIGNED_LONG, integer<unsigned long>()},
    {MPI_LONG_LONG_INT, integer<long long>()},
    {MPI_UNSIGNED_LONG_LONG, integer<unsigned long long>()},
    {MPI_INT8_T, ElementType::i8},
    {MPI_INT16_T, ElementType::i16},
    {MPI_INT32_T, ElementType::i32},
    {MPI_INT64_T, ElementType::i64},
    {MPI_UINT8_T, ElementType::u8},
    {MPI_UINT16_T, ElementType::u16},
    {MPI_UINT32_T, ElementType::u32},
    {MPI_UINT64_T, ElementType::u64},
    {MPI_AINT, integer<MPI_Aint>()},
    {MPI_OFFSET, integer<MPI_Offset>()},
    {MPI_COUNT, integer<MPI_Count>()},
    {MPI_C_BOOL, ElementType::u8},
    {MPI_CXX_BOOL, ElementType::u8},
    {MPI_INTEGER, integer<MPI_Fint>()},
    {MPI_LOGICAL, integer<MPI_Fint>()},
    {MPI_CHARACTER, integer<char>()},
    {MPI_INTEGER1, ElementType::i8},
    {MPI_INTEGER2, ElementType::i16},
    {MPI_INTEGER4, ElementType::i32},
    {MPI_INTEGER8, ElementType::i64},
    {library::float16, ElementType::f16},
    {library::bfloat16, ElementType::bf16_half_up},
    {MPI_FLOAT, ElementType::f32},
    {MPI_REAL, ElementType::f32},
    {MPI_REAL4, ElementType::f32},
    {MPI_DOUBLE, ElementType::f64},
    {MPI_DOUBLE_PRECISION, ElementType::f64_fortran},
    {MPI_REAL8, ElementType::f64_fortran},
    {MPI_LONG_DOUBLE, ElementType::f80},
    {MPI_C_FLOAT_COMPLEX, ElementType::c32_c99},
    {MPI_C_DOUBLE_COMPLEX, ElementType::c64_c99},
    {MPI_C_LONG_DOUBLE_COMPLEX, ElementType::c80_c99},
    {MPI_COMPLEX, ElementType::c32},
    {MPI_COMPLEX8, ElementType::c32},
    {MPI_CXX_FLOAT_COMPLEX, ElementType::c32},
    {MPI_DOUBLE_COMPLEX, ElementType::c64},
    {MPI_COMPLEX16, ElementType::c64},
    {MPI_CXX_DOUBLE_COMPLEX, ElementType::c64},
    {MPI_CXX_LONG_DOUBLE_COMPLEX, ElementType::c80},
    {MPI_2INT, ElementType::i32_i32},
    {MPI_2INTEGER, ElementType::i32_i32},
    {MPI_FLOAT_INT, ElementType::f32_i32},
    {MPI_LONG_INT, ElementType::i64_i32},
    {MPI_DOUBLE_INT, ElementType::f64_i32},
    {MPI_SHORT_INT, ElementType::i16_i32},
    {MPI_LONG_DOUBLE_INT, ElementType::f80_i32},
    {MPI_2REAL, ElementType::f32_f32},
    {MPI_2DOUBLE_PRECISION, ElementType::f64_f64},
};

// A type that this mpi.h does not have is MPI_DATATYPE_NULL there.
constexpr TypeTable make_type_table() noexcept {
    TypeTable table{};
    for (MPI_Datatype& type : table.type) type = MPI_DATATYPE_NULL;
    for (const TypeRow& row : rows) {
        if (row.type == MPI_DATATYPE_NULL) continue;
        table.type[library::type_index(row.type)] = row.type;
        table.element[library::type_index(row.type)] = row.element;
    }
    return table;
}

// ---- probes -------------------------------------------------------------------------------------

// Bytes of the lanes whose special values matter: the width of the value, or of a complex number's
// parts. The lanes of a pair's index and padding take such patterns too.
size_t lane_bytes(ElementType element) noexcept {
    switch (element) {
        case ElementType::i8:
        case ElementType::u8:
            return 1;
        case ElementType::i16:
        case ElementType::u16:
        case ElementType::f16:
        case ElementType::bf16:
        case ElementType::bf16_half_up:
        case ElementType::i16_i32:
            return 2;
        case ElementType::i32:
        case ElementType::u32:
        case ElementType::f32:
        case ElementType::c32:
        case ElementType::c32_c99:
        case ElementType::i32_i32:
        case ElementType::f32_i32:
        case ElementType::f32_f32:
            return 4;
        default:
            return 8;
    }
}

bool holds_long_double(ElementType element) noexcept {
    return element == ElementType::f80 || element == ElementType::c80 ||
           element == ElementType::c80_c99 || element == ElementType::f80_i32;
}

struct Random {
    uint64_t state;
    uint64_t next() noexcept {  // xorshift64*: Vigna, An experimental exploration, 2016
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        return state * 0x2545f4914f6cdd1dull;
    }
};

unsigned exponent_bits_of(ElementType element, unsigned lane_bits) noexcept {
    if (element == ElementType::bf16 || element == ElementType::bf16_half_up) return 8;
    return lane_bits == 64 ? 11 : lane_bits == 32 ? 8 : 5;
}

// A lane's bits. exponent_bits: of the float of that width; integers have their extremes among
// these. Of the numbers that are no special ones, half lie from 1 to 256, so that sums are rounded.
uint64_t probe_bits(unsigned lane_bits, unsigned exponent_bits, Random& random) noexcept {
    const unsigned fraction_bits = lane_bits - 1 - std::min(exponent_bits, lane_bits - 2);
    const uint64_t sign = uint64_t{1} << (lane_bits - 1);
    const uint64_t infinity = sign - (uint64_t{1} << fraction_bits);
    const uint64_t one = infinity >> 1 & infinity;
    const uint64_t specials[] = {0,
                                 1,
                                 2,
                                 one,
                                 infinity,
                                 infinity - 1,                                // largest finite
                                 infinity | 5,                                // signalling NaN
                                 infinity | 1ull << (fraction_bits - 1) | 3,  // quiet NaN
                                 sign - 1,
                                 1ull << fraction_bits};  // smallest normal
    const uint64_t choice = random.next();
    if (choice % 3 == 0) {
        const uint64_t bits = random.next();
        const uint64_t exponent = uint64_t{7} << fraction_bits;
        return choice >> 41 & 1 ? bits : (one + (bits & exponent)) | (bits & ~infinity);
    }
    return specials[choice / 3 % std::size(specials)] ^ (choice >> 40 & 1 ? sign : 0);
}

long double probe_long_double(Random& random) noexcept {
    const uint64_t bits = probe_bits(64, 11, random);
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

}  // namespace

constinit const TypeTable reducible_types = make_type_table();

void fill_with_probes(void* buffer, size_t bytes, MPI_Datatype type, uint32_t seed) noexcept {
    Random random{seed + 0x9e3779b97f4a7c15ull};
    const ElementType element = reducible_types.element[library::type_index(type)];
    auto* const out = static_cast<unsigned char*>(buffer);
    std::memset(out, 0, bytes);
    if (holds_long_double(element)) {
        for (size_t i = 0; i + sizeof(long double) <= bytes; i += sizeof(long double)) {
            const long double value = probe_long_double(random);
            std::memcpy(out + i, &value, sizeof value);
        }
        return;
    }
    const size_t lane = lane_bytes(element);
    const auto lane_bits = static_cast<unsigned>(8 * lane);
    const unsigned exponent_bits = exponent_bits_of(element, lane_bits);
    const bool boolean = type == MPI_C_BOOL || type == MPI_CXX_BOOL;  // no other bits are legal
    for (size_t i = 0; i < bytes; i += lane) {
        const uint64_t bits = probe_bits(lane_bits, exponent_bits, random);
        const uint64_t value = boolean ? bits & 1 : bits;
        std::memcpy(out + i, &value, lane);
    }
}

}  // namespace vecmpi::offload
