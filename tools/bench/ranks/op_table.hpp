// SPDX-License-Identifier: BSD-3-Clause
// The one table of predefined ops and predefined types that `reduce` and `reductions` choose from.
// A pair is worth asking the library for when the op takes the type's kind; whether the library
// takes it, only the library knows. Not a list of what the MPI standard allows.
#pragma once

#include <mpi.h>
#include <strings.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace vecmpi::bench {

using FortranInteger = int;  // MPI_Fint, which the standard ABI does not name

// One bit each, so that an op names the kinds that it takes.
enum Kind : unsigned {
    signed_kind = 1,
    unsigned_kind = 2,
    byte_kind = 4,
    floating_kind = 8,
    complex_kind = 16,
    logical_kind = 32,
    pair_kind = 64
};
constexpr unsigned integer_kinds = signed_kind | unsigned_kind;

inline const char* kind_name(Kind kind) {
    switch (kind) {
        case signed_kind:
            return "signed";
        case unsigned_kind:
            return "unsigned";
        case byte_kind:
            return "byte";
        case floating_kind:
            return "floating";
        case complex_kind:
            return "complex";
        case logical_kind:
            return "logical";
        case pair_kind:
            return "pair";
    }
    return "";
}

// `neutral` is the number (0, 1 or 2) that leaves an operand of 1 as it is: with it in the other
// buffer a call in place can be repeated for ever and no number grows, overflows or becomes
// denormal, and every branch in a scalar loop goes the way that it went before. `decides`: a scalar
// loop may have such a branch, because the op chooses by its operands; random numbers cannot grow.
struct OpRow {
    const char* name;
    MPI_Op handle;
    unsigned kinds;
    int neutral;
    bool decides = false;
};

// MPICH 4.0.2 accepts floating types for all three logical ops; then LAND and LOR end the process
// with an assertion (src/mpi/coll/op/opland.c, oplor.c), LXOR computes. So LXOR alone takes them.
inline const std::vector<OpRow>& op_table() {
    static const std::vector<OpRow> table{
        {"MAX", MPI_MAX, integer_kinds | floating_kind, 0, true},
        {"MIN", MPI_MIN, integer_kinds | floating_kind, 2, true},
        {"SUM", MPI_SUM, integer_kinds | floating_kind | complex_kind, 0},
        {"PROD", MPI_PROD, integer_kinds | floating_kind | complex_kind, 1},
        {"LAND", MPI_LAND, integer_kinds | logical_kind, 1, true},
        {"BAND", MPI_BAND, integer_kinds | byte_kind, 1},
        {"LOR", MPI_LOR, integer_kinds | logical_kind, 0, true},
        {"BOR", MPI_BOR, integer_kinds | byte_kind, 0},
        {"LXOR", MPI_LXOR, integer_kinds | logical_kind | floating_kind, 0, true},
        {"BXOR", MPI_BXOR, integer_kinds | byte_kind, 0},
        {"MINLOC", MPI_MINLOC, pair_kind, 2, true},
        {"MAXLOC", MPI_MAXLOC, pair_kind, 0, true},
    };
    return table;
}

// IEEE binary16, because not every compiler has _Float16.
struct Half {
    std::uint16_t bits = 0;
    Half() = default;
    explicit Half(int number) : bits(number == 0 ? 0 : number == 1 ? 0x3c00 : 0x4000) {}
};

// A value with the index 7. No padding is written, so that equal elements are equal bytes.
template <typename Value, typename Index>
struct Pair {
    Value value;
    Index index;
};

// Writes one element that holds a small number.
using Store = void (*)(void* element, int number);

template <typename T>
void store(void* element, int number) {
    const T value = static_cast<T>(number);
    std::memcpy(element, &value, sizeof value);
}

template <>
inline void store<long double>(void* element, int number) {
    constexpr bool x87 = std::numeric_limits<long double>::digits == 64;  // 10 bytes of 16 hold it
    const long double value = number;
    std::memset(element, 0, sizeof value);
    std::memcpy(element, &value, x87 ? 10 : sizeof value);
}

template <typename T>
void store_complex(void* element, int number) {
    store<T>(element, number);
    store<T>(static_cast<char*>(element) + sizeof(T), 0);
}

template <typename Value, typename Index = int>
void store_pair(void* element, int number) {
    using Layout = Pair<Value, Index>;
    std::memset(element, 0, sizeof(Layout));
    store<Value>(static_cast<char*>(element) + offsetof(Layout, value), number);
    store<Index>(static_cast<char*>(element) + offsetof(Layout, index), 7);
}

enum class Note {
    none,
    alias,   // another row has the same kind and layout
    fragile  // MPICH 4.0.2 accepts it and then ends the process: to be tried in one of its own
};

struct TypeRow {
    const char* name;  // of mpi.h without MPI_ or MPIX_
    MPI_Datatype handle;
    Kind kind;
    int bits;  // of the value: an integer, a real part, a pair's value
    Note note;
    std::size_t extent;
    Store store;
};

template <typename T>
TypeRow number_row(const char* name, MPI_Datatype handle, Kind kind, Note note = Note::none) {
    return {name, handle, kind, 8 * static_cast<int>(sizeof(T)), note, sizeof(T), store<T>};
}

template <typename T>
TypeRow complex_row(const char* name, MPI_Datatype handle, Note note = Note::none) {
    const int bits = 8 * static_cast<int>(sizeof(T));
    return {name, handle, complex_kind, bits, note, 2 * sizeof(T), store_complex<T>};
}

template <typename Value, typename Index = int>
TypeRow pair_row(const char* name, MPI_Datatype handle) {
    const int bits = 8 * static_cast<int>(sizeof(Value));
    return {name,
            handle,
            pair_kind,
            bits,
            Note::none,
            sizeof(Pair<Value, Index>),
            store_pair<Value, Index>};
}

// Rows of one kind stand together: tables and pictures keep this order. MPI_REAL16 is missing: its
// sums in MPICH 4.0.2 are right neither as long double nor as quadruple precision. MPICH computes
// the C complex types by the compiler's own arithmetic (with its test for NaN in a product) and
// those of Fortran and C++ by re*re-im*im, so they are no aliases of each other.
inline const std::vector<TypeRow>& type_table() {
    constexpr Note alias = Note::alias;
    static const std::vector<TypeRow> table{
        number_row<std::int8_t>("SIGNED_CHAR", MPI_SIGNED_CHAR, signed_kind),
        number_row<short>("SHORT", MPI_SHORT, signed_kind),
        number_row<int>("INT", MPI_INT, signed_kind),
        number_row<long>("LONG", MPI_LONG, signed_kind),
        number_row<char>("CHAR", MPI_CHAR, signed_kind, alias),
        number_row<long long>("LONG_LONG", MPI_LONG_LONG, signed_kind, alias),
        number_row<std::int8_t>("INT8_T", MPI_INT8_T, signed_kind, alias),
        number_row<std::int16_t>("INT16_T", MPI_INT16_T, signed_kind, alias),
        number_row<std::int32_t>("INT32_T", MPI_INT32_T, signed_kind, alias),
        number_row<std::int64_t>("INT64_T", MPI_INT64_T, signed_kind, alias),
        number_row<FortranInteger>("INTEGER", MPI_INTEGER, signed_kind, alias),
        number_row<char>("CHARACTER", MPI_CHARACTER, signed_kind, alias),
        number_row<std::int8_t>("INTEGER1", MPI_INTEGER1, signed_kind, alias),
        number_row<std::int16_t>("INTEGER2", MPI_INTEGER2, signed_kind, alias),
        number_row<std::int32_t>("INTEGER4", MPI_INTEGER4, signed_kind, alias),
        number_row<std::int64_t>("INTEGER8", MPI_INTEGER8, signed_kind, alias),
        number_row<MPI_Aint>("AINT", MPI_AINT, signed_kind, alias),
        number_row<MPI_Offset>("OFFSET", MPI_OFFSET, signed_kind, alias),
        number_row<MPI_Count>("COUNT", MPI_COUNT, signed_kind, alias),

        number_row<unsigned char>("UNSIGNED_CHAR", MPI_UNSIGNED_CHAR, unsigned_kind),
        number_row<unsigned short>("UNSIGNED_SHORT", MPI_UNSIGNED_SHORT, unsigned_kind),
        number_row<unsigned>("UNSIGNED", MPI_UNSIGNED, unsigned_kind),
        number_row<unsigned long>("UNSIGNED_LONG", MPI_UNSIGNED_LONG, unsigned_kind),
        number_row<unsigned long long>("UNSIGNED_LONG_LONG", MPI_UNSIGNED_LONG_LONG, unsigned_kind,
                                       alias),
        number_row<std::uint8_t>("UINT8_T", MPI_UINT8_T, unsigned_kind, alias),
        number_row<std::uint16_t>("UINT16_T", MPI_UINT16_T, unsigned_kind, alias),
        number_row<std::uint32_t>("UINT32_T", MPI_UINT32_T, unsigned_kind, alias),
        number_row<std::uint64_t>("UINT64_T", MPI_UINT64_T, unsigned_kind, alias),

        number_row<unsigned char>("BYTE", MPI_BYTE, byte_kind),

#ifdef MPIX_C_FLOAT16
        number_row<Half>("C_FLOAT16", MPIX_C_FLOAT16, floating_kind, Note::fragile),
#endif
        number_row<float>("FLOAT", MPI_FLOAT, floating_kind),
        number_row<double>("DOUBLE", MPI_DOUBLE, floating_kind),
        number_row<long double>("LONG_DOUBLE", MPI_LONG_DOUBLE, floating_kind),
        number_row<float>("REAL", MPI_REAL, floating_kind, alias),
        number_row<double>("DOUBLE_PRECISION", MPI_DOUBLE_PRECISION, floating_kind, alias),
        number_row<float>("REAL4", MPI_REAL4, floating_kind, alias),
        number_row<double>("REAL8", MPI_REAL8, floating_kind, alias),

        complex_row<float>("C_FLOAT_COMPLEX", MPI_C_FLOAT_COMPLEX),
        complex_row<double>("C_DOUBLE_COMPLEX", MPI_C_DOUBLE_COMPLEX),
        complex_row<long double>("C_LONG_DOUBLE_COMPLEX", MPI_C_LONG_DOUBLE_COMPLEX),
        complex_row<float>("COMPLEX", MPI_COMPLEX),
        complex_row<double>("DOUBLE_COMPLEX", MPI_DOUBLE_COMPLEX),
        complex_row<long double>("CXX_LONG_DOUBLE_COMPLEX", MPI_CXX_LONG_DOUBLE_COMPLEX),
        complex_row<float>("COMPLEX8", MPI_COMPLEX8, alias),
        complex_row<double>("COMPLEX16", MPI_COMPLEX16, alias),
        complex_row<float>("CXX_FLOAT_COMPLEX", MPI_CXX_FLOAT_COMPLEX, alias),
        complex_row<double>("CXX_DOUBLE_COMPLEX", MPI_CXX_DOUBLE_COMPLEX, alias),

        number_row<bool>("C_BOOL", MPI_C_BOOL, logical_kind),
        number_row<FortranInteger>("LOGICAL", MPI_LOGICAL, logical_kind),
        number_row<bool>("CXX_BOOL", MPI_CXX_BOOL, logical_kind, alias),

        pair_row<short>("SHORT_INT", MPI_SHORT_INT),
        pair_row<int>("2INT", MPI_2INT),
        pair_row<long>("LONG_INT", MPI_LONG_INT),
        pair_row<float>("FLOAT_INT", MPI_FLOAT_INT),
        pair_row<double>("DOUBLE_INT", MPI_DOUBLE_INT),
        pair_row<long double>("LONG_DOUBLE_INT", MPI_LONG_DOUBLE_INT),
        pair_row<FortranInteger, FortranInteger>("2INTEGER", MPI_2INTEGER),
        pair_row<float, float>("2REAL", MPI_2REAL),
        pair_row<double, double>("2DOUBLE_PRECISION", MPI_2DOUBLE_PRECISION),
    };
    return table;
}

// The row of that name, whatever the case of its letters; null when there is none.
template <typename Row>
const Row* find_row(const std::vector<Row>& table, const std::string& name) {
    for (const Row& row : table)
        if (strcasecmp(row.name, name.c_str()) == 0) return &row;
    return nullptr;
}

inline bool is_chosen(const std::vector<std::string>& names, const char* name) {
    for (const std::string& chosen : names)
        if (strcasecmp(chosen.c_str(), name) == 0) return true;
    return false;
}

}  // namespace vecmpi::bench
