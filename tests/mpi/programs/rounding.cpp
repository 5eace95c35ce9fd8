// SPDX-License-Identifier: BSD-3-Clause
// Arithmetic is done as the calling thread rounds, whoever does it: upward, downward, toward zero,
// and with denormals flushed; also the very first use of an op on a type, and under traps. One
// rank's own sum (to itself) and sums of two equal contributions, so that the order does not
// matter.
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "reductions.hpp"

using namespace battery;

namespace {

constexpr int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};

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

// MAX and MIN pick one of two subnormal numbers, whatever the environment takes them for.
template <class Float>
void extremes(MPI_Datatype type, const char* name) {
    const Float tiny = std::numeric_limits<Float>::denorm_min();
    for (const MPI_Op op : {MPI_MAX, MPI_MIN})
        for (const Float in : {tiny * 7, -tiny * 9, static_cast<Float>(0)}) {
            Float out = 1, local = tiny * 3;
            MPI_Allreduce(&in, &out, 1, type, op, MPI_COMM_WORLD);
            MPI_Reduce_local(&in, &local, 1, type, op);
            char bytes[2 * sizeof(Float)];
            std::memcpy(bytes, &out, sizeof out);
            std::memcpy(bytes + sizeof out, &local, sizeof local);
            topic(name).add_bytes(bytes, sizeof bytes);
        }
}

// A program may ask for a signal at each exception of these: sums and products of such numbers
// raise none, not at the first use either.
void under_traps() {
#if defined(__x86_64__)
    feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
#endif
    long double long_double = 1;
    MPI_Allreduce(MPI_IN_PLACE, &long_double, 1, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    check(long_double == world.size, "sum of long double under traps");
    const double large = 1.304e154;
    double in[] = {large, 0.447e154, large, 0.447e154, large, 0.447e154, large, 0.447e154};
    double inout[] = {large, 0.447e154, large, 0.447e154, large, 0.447e154, large, 0.447e154};
    for (int use = 0; use < 2; ++use) {
        MPI_Reduce_local(in, inout, 4, MPI_DOUBLE_COMPLEX, MPI_PROD);
        for (double& part : inout) part = large;
        for (int i = 1; i < 8; i += 2) inout[i] = 0.447e154;
    }
#if defined(__x86_64__)
    fedisableexcept(FE_ALL_EXCEPT);
#endif
    check(std::fetestexcept(FE_OVERFLOW) == 0, "overflow of a product that has none");
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    under_traps();
    flush_denormals(true);
    extremes<float>(MPI_FLOAT, "extremes of float");
    extremes<float>(MPI_REAL, "extremes of REAL");
    extremes<double>(MPI_DOUBLE, "extremes of double");
    extremes<double>(MPI_DOUBLE_PRECISION, "extremes of DOUBLE_PRECISION");
    flush_denormals(false);
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
