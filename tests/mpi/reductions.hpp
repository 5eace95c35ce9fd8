// SPDX-License-Identifier: BSD-3-Clause
// What programs that compare the bits of reductions share.
#pragma once

#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "battery.hpp"

namespace battery {

inline void flush_denormals(bool flush) {
#if defined(__x86_64__)
    constexpr unsigned bits = 0x8040;  // flush to zero, denormals are zero
    _mm_setcsr(flush ? _mm_getcsr() | bits : _mm_getcsr() & ~bits);
#else
    (void)flush;
#endif
}

// What each reducing collective over MPI_COMM_WORLD gives goes into the digest. `in` has room for
// `count` elements of each rank.
template <class Word>
void reduce_in_all_ways(const std::vector<Word>& in, int count, MPI_Datatype type, MPI_Op op,
                        Digest& digest) {
    std::vector<Word> out(in.size());
    const auto note = [&] {
        digest.add_bytes(reinterpret_cast<const char*>(out.data()), sizeof(Word) * out.size());
    };
    MPI_Allreduce(in.data(), out.data(), count, type, op, MPI_COMM_WORLD);
    note();
    out = in;
    MPI_Request request;
    MPI_Iallreduce(MPI_IN_PLACE, out.data(), count, type, op, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    note();
    MPI_Reduce(in.data(), out.data(), count, type, op, world.size - 1, MPI_COMM_WORLD);
    note();
    MPI_Scan(in.data(), out.data(), count, type, op, MPI_COMM_WORLD);
    note();
    MPI_Exscan(in.data(), out.data(), count, type, op, MPI_COMM_WORLD);
    note();
    MPI_Reduce_scatter_block(in.data(), out.data(), count, type, op, MPI_COMM_WORLD);
    note();
}

}  // namespace battery
