// SPDX-License-Identifier: BSD-3-Clause
// The battery of tests/kernels on every instruction set of this CPU.
#include <catch2/catch.hpp>
#include <random>

#include "battery.hpp"

using namespace vecmpi;
using namespace vecmpi::kernels;

namespace {

battery::Options options() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    constexpr bool quick = true;
#else
    constexpr bool quick = false;
#endif
    static const uint64_t seed = std::random_device()();
    return {seed, quick};
}

void check(const battery::Tally& tally) {
    INFO("seed " << options().seed << "\n" << tally.complaints);
    CHECK(tally.failed == 0);
    CHECK(tally.passed > 0);
}

bool has_kernels(Isa isa) { return reduce_kernel(ReduceOp::band, ElementType::u8, isa).isa == isa; }

}  // namespace

TEST_CASE("Each pair of op and type that MPI has has a kernel", "[kernels]") {
    check(battery::check_table());
}

TEST_CASE("Every kernel equals its scalar twin bit for bit", "[kernels]") {
    for (Isa isa : {Isa::scalar, Isa::sse4, Isa::avx2, Isa::avx512, Isa::neon, Isa::sve}) {
        if (!has_kernels(isa)) continue;
        INFO(isa_name(isa));
        check(battery::check_kernels(isa, options()));
        check(battery::check_huge(isa, options()));
    }
}

TEST_CASE("Kernels follow the caller's rounding mode and flushing of subnormals", "[kernels]") {
    for (Isa isa : {Isa::scalar, Isa::sse4, Isa::avx2, Isa::avx512, Isa::neon, Isa::sve}) {
        if (!has_kernels(isa)) continue;
        INFO(isa_name(isa));
        check(battery::check_environments(isa, options()));
        check(battery::check_halves(isa, options()));
    }
}
