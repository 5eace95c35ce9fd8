// SPDX-License-Identifier: BSD-3-Clause
// Which instruction set is chosen for which CPU, and what a cap does to it.
#include <catch2/catch.hpp>
#include <vector>

#include "kernels/cpu.hpp"

using namespace vecmpi;
using namespace vecmpi::kernels;
using namespace vecmpi::kernels;

namespace {

constexpr uint32_t ssse3 = 1U << 9, sse41 = 1U << 19, sse42 = 1U << 20, avx = 1U << 28,
                   f16c = 1U << 29;
constexpr uint32_t avx2 = 1U << 5, avx512f = 1U << 16, avx512dq = 1U << 17, avx512bw = 1U << 30,
                   avx512vl = 1U << 31;
constexpr uint64_t x87 = 1, sse = 2, ymm = 4, zmm = 0xE0;

constexpr uint32_t westmere = ssse3 | sse41 | sse42;
constexpr uint32_t haswell = westmere | avx | f16c;
constexpr uint32_t skylake = avx2 | avx512f | avx512dq | avx512bw | avx512vl;

Isa chosen(CpuidWords words) { return usable_isa(features_of(words)); }

}  // namespace

TEST_CASE("The instruction set follows from CPUID and from what the system saves", "[kernels]") {
    struct Case {
        const char* what;
        CpuidWords words;
        Isa isa;
    };
    const uint64_t all = x87 | sse | ymm | zmm;
    for (const Case& c : std::vector<Case>{
             {"nothing", {0, 0, 0}, Isa::scalar},
             {"Core 2: no SSE4.2", {ssse3 | sse41, 0, 0}, Isa::scalar},
             {"SSE4.2 without SSSE3", {sse41 | sse42, 0, 0}, Isa::scalar},
             {"Nehalem", {westmere, 0, 0}, Isa::sse4},
             {"Sandy Bridge: AVX alone", {westmere | avx, 0, all}, Isa::sse4},
             {"Haswell", {haswell, avx2, x87 | sse | ymm}, Isa::avx2},
             {"AVX2 hidden F16C", {westmere | avx, avx2, all}, Isa::sse4},
             {"AVX2 without AVX", {westmere | f16c, avx2, all}, Isa::sse4},
             {"AVX2, system without XSAVE", {haswell, avx2, 0}, Isa::sse4},
             {"AVX2, system saves SSE only", {haswell, avx2, x87 | sse}, Isa::sse4},
             {"Skylake-X", {haswell, skylake, all}, Isa::avx512},
             {"Skylake-X, no 512-bit state", {haswell, skylake, x87 | sse | ymm}, Isa::avx2},
             {"half of the 512-bit state", {haswell, skylake, x87 | sse | ymm | 0x60}, Isa::avx2},
             {"Xeon Phi: F alone", {haswell, avx2 | avx512f, all}, Isa::avx2},
             {"no BW", {haswell, skylake & ~avx512bw, all}, Isa::avx2},
             {"no VL", {haswell, skylake & ~avx512vl, all}, Isa::avx2},
             {"no DQ", {haswell, skylake & ~avx512dq, all}, Isa::avx2},
             {"no F", {haswell, skylake & ~avx512f, all}, Isa::avx2},
             {"AVX-512 without AVX2", {haswell, skylake & ~avx2, all}, Isa::sse4}}) {
        CAPTURE(c.what);
        CHECK(isa_name(chosen(c.words)) == std::string(isa_name(c.isa)));
    }
}

TEST_CASE("Gathers are chosen on the CPUs on which they were measured", "[kernels]") {
    struct Case {
        const char* what;
        uint32_t vendor, signature;
        bool gathers;
    };
    constexpr uint32_t intel = 0x756e6547, amd = 0x68747541;
    for (const Case& c :
         std::vector<Case>{{"Sapphire Rapids", intel, 0x806f8, true},
                           {"Sapphire Rapids, an early stepping", intel, 0x806f3, true},
                           {"Emerald Rapids: not measured", intel, 0xc06f2, false},
                           {"Ice Lake", intel, 0x606a6, false},
                           {"Skylake-X", intel, 0x50654, false},
                           {"Zen 4", amd, 0xa10f11, false},
                           {"another vendor's of that number", amd, 0x806f8, false},
                           {"another family", intel, 0x1806f8, false},
                           {"unknown", 0, 0, false}}) {
        CAPTURE(c.what);
        CpuidWords words{haswell, skylake, x87 | sse | ymm | zmm};
        words.leaf0_ebx = c.vendor;
        words.leaf1_eax = c.signature;
        CHECK(features_of(words).fast_gather == c.gathers);
        words.leaf7_ebx = avx2;  // hidden by a hypervisor
        CHECK_FALSE(features_of(words).fast_gather);
    }
}

TEST_CASE("rep movsb is avoided on AMD's CPUs that have a fast one", "[kernels]") {
    constexpr uint32_t intel = 0x756e6547, amd = 0x68747541, enhanced_rep_movsb = 1U << 9;
    const auto stalls = [](uint32_t vendor, uint32_t leaf7_ebx) {
        CpuidWords words{haswell, leaf7_ebx, x87 | sse | ymm | zmm};
        words.leaf0_ebx = vendor;
        return features_of(words).rep_movsb_stalls;
    };
    CHECK(stalls(amd, skylake | enhanced_rep_movsb));
    CHECK(stalls(amd, enhanced_rep_movsb));
    CHECK_FALSE(stalls(amd, skylake));
    CHECK_FALSE(stalls(intel, skylake | enhanced_rep_movsb));
    CHECK_FALSE(stalls(0, 0));
}

TEST_CASE("On Arm SVE is better than NEON", "[kernels]") {
    CpuFeatures features;
    features.asimd = true;
    CHECK(usable_isa(features) == Isa::neon);
    features.sve = true;
    CHECK(usable_isa(features) == Isa::sve);
}

TEST_CASE("A cap lowers within its architecture and does nothing in another", "[kernels]") {
    struct Case {
        Isa best, cap, isa;
    };
    using enum Isa;
    for (const Case& c : std::vector<Case>{{avx512, avx512, avx512},
                                           {avx512, avx2, avx2},
                                           {avx512, sse4, sse4},
                                           {avx512, scalar, scalar},
                                           {avx512, sve, avx512},
                                           {avx512, neon, avx512},
                                           {avx2, avx512, avx2},
                                           {sse4, avx2, sse4},
                                           {scalar, avx512, scalar},
                                           {scalar, sve, scalar},
                                           {sve, sve, sve},
                                           {sve, neon, neon},
                                           {sve, avx2, sve},
                                           {sve, scalar, scalar},
                                           {neon, sve, neon},
                                           {neon, sse4, neon}}) {
        CAPTURE(isa_name(c.best), isa_name(c.cap));
        CHECK(isa_name(capped_isa(c.best, c.cap)) == std::string(isa_name(c.isa)));
    }
}

TEST_CASE("Each instruction set has a next narrower one", "[kernels]") {
    using enum Isa;
    CHECK(next_narrower(avx512) == avx2);
    CHECK(next_narrower(avx2) == sse4);
    CHECK(next_narrower(sse4) == scalar);
    CHECK(next_narrower(sve) == neon);
    CHECK(next_narrower(neon) == scalar);
    CHECK(next_narrower(scalar) == scalar);
}
