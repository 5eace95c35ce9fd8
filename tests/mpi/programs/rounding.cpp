// SPDX-License-Identifier: BSD-3-Clause
// Arithmetic is done as the calling thread rounds, whoever does it: upward, downward, toward zero,
// and with denormals flushed. One rank's own sum (to itself) and sums of two equal contributions,
// so that the order does not matter.
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "battery.hpp"

using namespace battery;

namespace {

constexpr int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};

void flush_denormals(bool flush) {
#if defined(__x86_64__)
    constexpr unsigned bits = 0x8040;  // flush to zero, denormals are zero
    _mm_setcsr(flush ? _mm_getcsr() | bits : _mm_getcsr() & ~bits);
#else
    (void)flush;
#endif
}

template <class Float>
std::vector<Float> inexact(size_t count, Random& random) {
    std::vector<Float> values(count);
    for (Float& value : values) {
        value = static_cast<Float>(1) / static_cast<Float>(3 + random.below(1000));
        if (random.chance(10)) value = std::numeric_limits<Float>::denorm_min() * 5;
        if (random.chance(50)) value = -value;
    }
    return values;
}

// Rank 0's values times the number of ranks that contribute them: two ranks at most, the others add
// nothing, so that every order of the sum rounds alike.
template <class Float>
void sums(MPI_Datatype type, const char* name) {
    Random random = common_random(sizeof(Float));
    Digest& digest = topic(name);
    for (const int count : {1, 1000, 50000}) {
        std::vector<Float> a = inexact<Float>(static_cast<size_t>(count), random);
        std::vector<Float> b = inexact<Float>(static_cast<size_t>(count), random);
        std::vector<Float> in(static_cast<size_t>(count), 0), out(in);
        if (world.rank == 0) in = a;
        if (world.rank == 1) in = b;
        MPI_Request request;
        const auto note = [&] {
            for (const Float& value : out) {
                char bytes[sizeof(Float)];
                std::memcpy(bytes, &value, sizeof(Float));
                digest.add_bytes(bytes, sizeof(Float) == 16 ? 10 : sizeof(Float));
            }
        };
        MPI_Iallreduce(in.data(), out.data(), count, type, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        note();
        MPI_Request persistent;
        MPI_Allreduce_init(in.data(), out.data(), count, type, MPI_SUM, MPI_COMM_WORLD,
                           MPI_INFO_NULL, &persistent);
        MPI_Start(&persistent);
        MPI_Wait(&persistent, MPI_STATUS_IGNORE);
        MPI_Request_free(&persistent);
        note();
        MPI_Allreduce(in.data(), out.data(), count, type, MPI_SUM, MPI_COMM_WORLD);
        note();
        out = b;
        MPI_Reduce_local(a.data(), out.data(), count, type, MPI_SUM);
        note();
        out = b;
        MPI_Reduce_local(a.data(), out.data(), count, type, MPI_PROD);
        note();
    }
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    for (const int mode : modes)
        for (const bool flush : {false, true}) {
            std::fesetround(mode);
            flush_denormals(flush);
            sums<float>(MPI_FLOAT, "float");
            sums<double>(MPI_DOUBLE, "double");
            sums<long double>(MPI_LONG_DOUBLE, "long double");
            flush_denormals(false);
            std::fesetround(FE_TONEAREST);
        }
    return end();
}
