// SPDX-License-Identifier: BSD-3-Clause
// Allreduce with ops of the program: commutative and not, on types with and without gaps, in place
// and not, around the sizes at which another algorithm may take over. The op checks what it is
// given.
#include <cstring>
#include <vector>

#include "battery.hpp"

using namespace battery;

namespace {

MPI_Datatype expected_type = MPI_DATATYPE_NULL;
bool type_was_another = false;

// Pairs of 16-bit numbers that wrap: any order and grouping gives the same bits.
void add_pairs(void* in, void* inout, int* length, MPI_Datatype* type) {
    type_was_another |= *type != expected_type;
    MPI_Aint lower_bound, extent;
    MPI_Type_get_extent(*type, &lower_bound, &extent);
    for (int i = 0; i < *length; ++i)
        for (int j = 0; j < 2; ++j) {
            uint16_t a, b;
            std::memcpy(&a, static_cast<char*>(in) + i * extent + 2 * j, 2);
            std::memcpy(&b, static_cast<char*>(inout) + i * extent + 2 * j, 2);
            b = static_cast<uint16_t>(a + b);
            std::memcpy(static_cast<char*>(inout) + i * extent + 2 * j, &b, 2);
        }
}

// x -> in, then inout: affine maps composed, associative and not commutative.
void compose(void* in, void* inout, int* length, MPI_Datatype* type) {
    type_was_another |= *type != expected_type;
    auto* const a = static_cast<uint16_t*>(in);
    auto* const b = static_cast<uint16_t*>(inout);
    for (int i = 0; i < 2 * *length; i += 2) {
        b[i + 1] = static_cast<uint16_t>(a[i + 1] * b[i] + b[i + 1]);
        b[i] = static_cast<uint16_t>(a[i] * b[i]);
    }
}

MPI_Datatype packed_type() {
    MPI_Datatype type;
    MPI_Type_contiguous(4, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    return type;
}

// 4 bytes of 12.
MPI_Datatype type_with_gap() {
    MPI_Datatype type;
    const MPI_Datatype packed = packed_type();
    MPI_Type_create_resized(packed, 0, 12, &type);
    MPI_Type_commit(&type);
    return type;
}

void reduce(MPI_Comm comm, MPI_Datatype type, MPI_Op op, int count, bool in_place, Digest& digest) {
    MPI_Aint lower_bound, extent;
    MPI_Type_get_extent(type, &lower_bound, &extent);
    std::vector<uint16_t> in(static_cast<size_t>(count * extent) / 2 + 2), out(in.size());
    Random random = own_random(static_cast<uint64_t>(count));
    for (uint16_t& word : in) word = static_cast<uint16_t>(random.next());
    for (uint16_t& word : out) word = static_cast<uint16_t>(random.next());
    if (in_place) out = in;
    expected_type = type;
    MPI_Allreduce(in_place ? MPI_IN_PLACE : in.data(), out.data(), count, type, op, comm);
    digest.add_bytes(out.data(), 2 * out.size());
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    MPI_Op sum, composition;
    MPI_Op_create(add_pairs, 1, &sum);
    MPI_Op_create(compose, 0, &composition);
    MPI_Datatype packed = packed_type(), gap = type_with_gap();
    MPI_Comm reversed;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world.rank, &reversed);
    constexpr int scattered_from = 1 << 18;  // elements of 4 bytes in 1 MiB
    const int counts[] = {0,
                          1,
                          world.size - 1,
                          world.size,
                          scattered_from - 1,
                          scattered_from,
                          scattered_from + world.size + 1};
    for (const int count : counts)
        for (const bool in_place : {false, true})
            for (MPI_Comm comm : {MPI_COMM_WORLD, reversed}) {
                reduce(comm, packed, sum, count, in_place, topic("commutative"));
                reduce(comm, gap, sum, count, in_place, topic("commutative with a gap"));
                reduce(comm, packed, composition, count, in_place, topic("not commutative"));
            }
    check(!type_was_another, "the op was given the type of the call");
    MPI_Op_free(&sum);
    MPI_Op_free(&composition);
    MPI_Type_free(&packed);
    MPI_Type_free(&gap);
    MPI_Comm_free(&reversed);
    return end();
}
