// SPDX-License-Identifier: BSD-3-Clause
// MPI_Reduce_local of every predefined op on every predefined type that MPICH reduces, over special
// and random bits: every byte of the result, the gaps of pairs and the bytes around it included.
// The argument is an instruction set for VECMPI_ISA. On several ranks the collectives reduce too,
// where no rounding depends on the order.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <vector>

#include "reductions.hpp"

using namespace battery;

namespace {

enum Kind { integer, logical, floating, complex_number, byte, pair, long_double };

struct Type {
    MPI_Datatype handle;
    const char* name;
    Kind kind;
    int lane_bytes;  // of what has special values
};

#define ROW(type, kind, bytes) \
    { type, #type, kind, bytes }
const Type types[] = {
    ROW(MPI_CHAR, integer, 1),
    ROW(MPI_SIGNED_CHAR, integer, 1),
    ROW(MPI_UNSIGNED_CHAR, integer, 1),
    ROW(MPI_SHORT, integer, 2),
    ROW(MPI_UNSIGNED_SHORT, integer, 2),
    ROW(MPI_INT, integer, 4),
    ROW(MPI_UNSIGNED, integer, 4),
    ROW(MPI_LONG, integer, 8),
    ROW(MPI_UNSIGNED_LONG, integer, 8),
    ROW(MPI_LONG_LONG, integer, 8),
    ROW(MPI_UNSIGNED_LONG_LONG, integer, 8),
    ROW(MPI_INT8_T, integer, 1),
    ROW(MPI_INT16_T, integer, 2),
    ROW(MPI_INT32_T, integer, 4),
    ROW(MPI_INT64_T, integer, 8),
    ROW(MPI_UINT8_T, integer, 1),
    ROW(MPI_UINT16_T, integer, 2),
    ROW(MPI_UINT32_T, integer, 4),
    ROW(MPI_UINT64_T, integer, 8),
    ROW(MPI_AINT, integer, 8),
    ROW(MPI_OFFSET, integer, 8),
    ROW(MPI_COUNT, integer, 8),
    ROW(MPI_INTEGER, integer, 4),
    ROW(MPI_INTEGER1, integer, 1),
    ROW(MPI_INTEGER2, integer, 2),
    ROW(MPI_INTEGER4, integer, 4),
    ROW(MPI_INTEGER8, integer, 8),
    ROW(MPI_CHARACTER, integer, 1),
    ROW(MPI_BYTE, byte, 1),
    ROW(MPI_C_BOOL, logical, 1),
    ROW(MPI_CXX_BOOL, logical, 1),
    ROW(MPI_LOGICAL, logical, 4),
    ROW(MPI_FLOAT, floating, 4),
    ROW(MPI_REAL, floating, 4),
    ROW(MPI_REAL4, floating, 4),
    ROW(MPI_DOUBLE, floating, 8),
    ROW(MPI_DOUBLE_PRECISION, floating, 8),
    ROW(MPI_REAL8, floating, 8),
    ROW(MPI_LONG_DOUBLE, long_double, 16),
    ROW(MPI_COMPLEX, complex_number, 4),
    ROW(MPI_COMPLEX8, complex_number, 4),
    ROW(MPI_C_FLOAT_COMPLEX, complex_number, 4),
    ROW(MPI_CXX_FLOAT_COMPLEX, complex_number, 4),
    ROW(MPI_DOUBLE_COMPLEX, complex_number, 8),
    ROW(MPI_COMPLEX16, complex_number, 8),
    ROW(MPI_C_DOUBLE_COMPLEX, complex_number, 8),
    ROW(MPI_CXX_DOUBLE_COMPLEX, complex_number, 8),
    ROW(MPI_C_LONG_DOUBLE_COMPLEX, long_double, 16),
    ROW(MPI_CXX_LONG_DOUBLE_COMPLEX, long_double, 16),
    ROW(MPI_2INT, pair, 4),
    ROW(MPI_2INTEGER, pair, 4),
    ROW(MPI_FLOAT_INT, pair, 4),
    ROW(MPI_2REAL, pair, 4),
    ROW(MPI_SHORT_INT, pair, 2),
    ROW(MPI_LONG_INT, pair, 8),
    ROW(MPI_DOUBLE_INT, pair, 8),
    ROW(MPI_2DOUBLE_PRECISION, pair, 8),
    ROW(MPI_LONG_DOUBLE_INT, long_double, 16),
};
#undef ROW

struct Op {
    MPI_Op handle;
    const char* name;
};
const Op ops[] = {{MPI_MAX, "MAX"},   {MPI_MIN, "MIN"},       {MPI_SUM, "SUM"},
                  {MPI_PROD, "PROD"}, {MPI_LAND, "LAND"},     {MPI_BAND, "BAND"},
                  {MPI_LOR, "LOR"},   {MPI_BOR, "BOR"},       {MPI_LXOR, "LXOR"},
                  {MPI_BXOR, "BXOR"}, {MPI_MINLOC, "MINLOC"}, {MPI_MAXLOC, "MAXLOC"}};

bool is_logical_op(MPI_Op op) { return op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR; }

// MPICH 4.0's check lets floats through to the logical ops, which then assert.
bool is_legal(const Op& op, const Type& type) {
    if (type.handle == MPI_DATATYPE_NULL) return false;
    const bool number =
        type.kind == floating || type.kind == complex_number || type.kind == long_double;
    if (is_logical_op(op.handle) && number) return false;
    alignas(32) char in[32] = {}, inout[32] = {};
    return MPI_Reduce_local(in, inout, 1, type.handle, op.handle) == MPI_SUCCESS;
}

size_t element_bytes(MPI_Datatype type) {
    MPI_Aint lower_bound, extent;
    MPI_Type_get_extent(type, &lower_bound, &extent);
    return static_cast<size_t>(extent);
}

// Zeros, ones, infinities, NaN of both kinds, denormals, extremes, and any bits.
uint64_t special_bits(int bytes, Random& random) {
    static const uint64_t of_16[] = {0, 1, 0x3c00, 0x7c00, 0x7bff, 0x7e03, 0x7d05, 0x7fff, 0x0400};
    static const uint64_t of_32[] = {0,          1,          0x3f800000, 0x7f800000, 0x7f7fffff,
                                     0x7fc00003, 0x7fa00005, 0x7fffffff, 0x00800000};
    static const uint64_t of_64[] = {0,
                                     1,
                                     0x3ff0000000000000,
                                     0x7ff0000000000000,
                                     0x7fefffffffffffff,
                                     0x7ff8000000000003,
                                     0x7ff4000000000005,
                                     0x7fffffffffffffff,
                                     0x0010000000000000};
    static const uint64_t of_8[] = {0, 1, 2, 3, 0x7f, 0x7e, 0x40, 0x55, 0x10};
    const uint64_t* table = bytes == 1 ? of_8 : bytes == 2 ? of_16 : bytes == 4 ? of_32 : of_64;
    if (random.chance(40)) return random.next();
    const uint64_t sign = random.chance(50) ? uint64_t{1} << (8 * bytes - 1) : 0;
    return table[random.below(9)] ^ sign;
}

void fill(char* buffer, size_t bytes, const Type& type, Random& random) {
    if (type.kind == long_double) {  // other bits are no numbers
        for (size_t i = 0; i + 16 <= bytes; i += 16) {
            const uint64_t bits = special_bits(8, random);
            double value;
            std::memcpy(&value, &bits, 8);
            const long double wide = value;
            std::memset(buffer + i, 0x5a, 16);
            std::memcpy(buffer + i, &wide, 10);
        }
        if (type.handle == MPI_LONG_DOUBLE_INT)
            for (size_t i = 16; i + 16 <= bytes; i += 32)
                for (size_t j = 0; j < 16; ++j) buffer[i + j] = static_cast<char>(random.next());
        return;
    }
    const bool one_bit = type.handle == MPI_C_BOOL || type.handle == MPI_CXX_BOOL;
    const auto lane = static_cast<size_t>(type.lane_bytes);
    for (size_t i = 0; i < bytes; i += lane) {
        uint64_t bits = special_bits(type.lane_bytes, random);
        if (one_bit) bits &= 1;
        std::memcpy(buffer + i, &bits, lane);
    }
}

void reduce_once(const Op& op, const Type& type, size_t count, Random& random, Digest& digest) {
    const size_t element = element_bytes(type.handle);
    const size_t margin = 64;
    const size_t bytes = count * element;
    std::vector<char> in(bytes + 2 * margin), inout(bytes + 2 * margin);
    char* const from = in.data() + random.below(margin);
    char* const to = inout.data() + random.below(margin);
    for (char& c : inout) c = static_cast<char>(random.next());
    fill(from, bytes, type, random);
    fill(to, bytes, type, random);
    MPI_Reduce_local(from, to, static_cast<int>(count), type.handle, op.handle);
    digest.add_bytes(inout.data(), inout.size());
}

void reduce_locally(const Op& op, const Type& type, Random& random) {
    Digest& digest = topic(std::string(op.name) + " " + type.name);
    for (size_t count = 0; count <= 300; count += count < 80 || count % 64 > 61 ? 1 : 3)
        reduce_once(op, type, count, random, digest);
    for (const size_t count : {1000, 4097, 70001}) reduce_once(op, type, count, random, digest);
}

// The result of these does not depend on the order of the ranks, whatever the algorithm.
bool order_is_free(const Op& op, const Type& type) {
    return type.kind == integer || type.kind == byte ||
           (type.kind == logical && is_logical_op(op.handle));
}

void reduce_together(const Op& op, const Type& type, Random& random) {
    const size_t element = element_bytes(type.handle);
    Digest& digest = topic(std::string("collectives ") + op.name + " " + type.name);
    for (const int count : {1, 13, 300, 5000}) {
        const size_t bytes = static_cast<size_t>(count) * element;
        const size_t all = bytes * static_cast<size_t>(world.size);
        std::vector<char> in(all);
        fill(in.data(), all, type, random);
        reduce_in_all_ways(in, count, type.handle, op.handle, digest);
    }
}

}  // namespace

int main(int argc, char** argv) {
    read_arguments(argc, argv);
    if (!world.argument.empty()) setenv("VECMPI_ISA", world.argument.c_str(), 1);
    begin(argc, argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    Random random = own_random(1);
    for (const Op& op : ops)
        for (const Type& type : types) {
            if (!is_legal(op, type)) continue;
            if (world.size == 1)
                reduce_locally(op, type, random);
            else if (order_is_free(op, type))
                reduce_together(op, type, random);
        }
    return end();
}
