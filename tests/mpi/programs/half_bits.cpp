// SPDX-License-Identifier: BSD-3-Clause
// Reductions of float16 and bfloat16 where the library has them: all 65536 values on either side of
// special and random ones, as the thread rounds, every byte of the result. The argument is an
// instruction set for VECMPI_ISA. On several ranks the collectives reduce too, where no rounding
// depends on the order.
#include <algorithm>
#include <cfenv>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "reductions.hpp"

using namespace battery;

namespace {

// mpi.h may be older than the library.
struct Type {
    MPI_Datatype handle;
    const char* name;
    int fraction_bits;
    uint16_t one;
};
#if defined(MPICH_NUMVERSION)
const Type float16{static_cast<MPI_Datatype>(0x4c000246), "float16", 10, 0x3c00};
const Type bfloat16{static_cast<MPI_Datatype>(0x4c00024c), "bfloat16", 7, 0x3f80};
#else  // the standard ABI lacks them
const Type float16{MPI_DATATYPE_NULL, "float16", 10, 0x3c00};
const Type bfloat16{MPI_DATATYPE_NULL, "bfloat16", 7, 0x3f80};
#endif

struct Op {
    MPI_Op handle;
    const char* name;
};
const Op ops[] = {{MPI_SUM, "SUM"}, {MPI_PROD, "PROD"}, {MPI_MAX, "MAX"}, {MPI_MIN, "MIN"}};

bool library_is_mpich(const char* version) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(text, &length);
    const char* found = std::strstr(text, "MPICH Version:");
    if (found == nullptr) return false;
    found += std::strlen("MPICH Version:");
    found += std::strspn(found, " \t");
    return std::strncmp(found, version, std::strlen(version)) == 0;
}

// MPICH 4.0 ends the process in all of them, and MPICH 5 in all of bfloat16's but the sum.
bool library_has(const Op& op, const Type& type) {
    if (type.handle == MPI_DATATYPE_NULL) return false;
    const bool is_5 = library_is_mpich("5.");
    if (type.handle == bfloat16.handle) return is_5 && op.handle == MPI_SUM;
    return is_5 || library_is_mpich("4.3");
}

using Halves = std::vector<uint16_t>;

void reduce_once(const Op& op, const Type& type, const Halves& in, Halves inout, Digest& digest) {
    MPI_Reduce_local(in.data(), inout.data(), static_cast<int>(in.size()), type.handle, op.handle);
    digest.add_bytes(reinterpret_cast<const char*>(inout.data()), 2 * inout.size());
}

// Zeros, the least and the largest numbers of each kind, infinity, NaNs of both kinds, one.
Halves special_values(const Type& type) {
    const auto least_normal = static_cast<uint16_t>(1 << type.fraction_bits);
    const auto infinity = static_cast<uint16_t>(0x8000 - least_normal);
    const auto quiet = static_cast<uint16_t>(infinity | least_normal >> 1);
    Halves values;
    for (const int bits : {0, 1, least_normal - 1, int{least_normal}, int{type.one}, type.one + 1,
                           infinity - 1, int{infinity}, infinity + 5, quiet + 3, 0x7fff})
        for (const int sign : {0, 0x8000}) values.push_back(static_cast<uint16_t>(bits | sign));
    return values;
}

void reduce_all_values(const Op& op, const Type& type, Digest& digest) {
    Halves all(65536);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
    Halves seconds = special_values(type);
    Random random = own_random(3);
    for (int i = 0; i < 12; ++i) seconds.push_back(static_cast<uint16_t>(random.next()));
    for (const uint16_t second : seconds) {
        reduce_once(op, type, all, Halves(all.size(), second), digest);
        reduce_once(op, type, Halves(all.size(), second), all, digest);
    }
}

void reduce_locally(const Op& op, const Type& type) {
    for (const int mode : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO})
        for (const bool flush : {false, true}) {
            std::fesetround(mode);
            flush_denormals(flush);
            reduce_all_values(op, type,
                              topic(std::string(op.name) + " " + type.name + " in mode " +
                                    std::to_string(mode) + (flush ? ", flushing" : "")));
            flush_denormals(false);
            std::fesetround(FE_TONEAREST);
        }
}

// 1 or 2, or their negatives: sums and products of up to nine are exact.
uint16_t small_number(const Type& type, Random& random) {
    const auto bits = static_cast<uint16_t>(type.one + (random.below(2) << type.fraction_bits));
    return static_cast<uint16_t>(bits | (random.chance(50) ? 0x8000 : 0));
}

void reduce_together(const Op& op, const Type& type, Random& random) {
    Digest& digest = topic(std::string("collectives ") + op.name + " " + type.name);
    for (const int count : {1, 13, 300, 5000, 70000}) {
        Halves in(static_cast<size_t>(count * world.size));
        for (uint16_t& value : in) value = small_number(type, random);
        reduce_in_all_ways(in, count, type.handle, op.handle, digest);
    }
}

}  // namespace

int main(int argc, char** argv) {
    read_arguments(argc, argv);
    if (!world.argument.empty()) setenv("VECMPI_ISA", world.argument.c_str(), 1);
    begin(argc, argv);
    Random random = own_random(1);
    for (const Type& type : {float16, bfloat16})
        for (const Op& op : ops) {
            if (!library_has(op, type)) continue;
            if (world.size == 1)
                reduce_locally(op, type);
            else
                reduce_together(op, type, random);
        }
    return end();
}
