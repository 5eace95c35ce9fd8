// SPDX-License-Identifier: BSD-3-Clause
// What this CPU can run. Highway's test lies in a shared library, and __builtin_cpu_supports brings
// a constructor into every process that preloads us: so neither is used.
#include "cpu.hpp"

#include <atomic>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace vecmpi::kernels {
namespace {

bool is_of_x86(Isa isa) noexcept {
    return isa == Isa::sse4 || isa == Isa::avx2 || isa == Isa::avx512;
}

bool bit(uint64_t word, int number) noexcept { return (word >> number & 1) != 0; }

// Intel's Sapphire Rapids, the only model on which gathers were measured to win. On Zen 4 and 5 a
// gather is microcode, and slower than single loads.
bool was_measured_to_gather(const CpuidWords& words) noexcept {
    constexpr uint32_t intel = 0x756e6547;  // "Genu"
    constexpr uint32_t extended_family = 0xff00000, family_and_model = 0xf0ff0;
    constexpr uint32_t sapphire_rapids = 0x806f0;  // family 6, model 0x8f
    return words.leaf0_ebx == intel && (words.leaf1_eax & extended_family) == 0 &&
           (words.leaf1_eax & family_and_model) == sapphire_rapids;
}

// AMD's from Zen 3 on.
bool has_rep_movsb_of_amd(const CpuidWords& words) noexcept {
    constexpr uint32_t amd = 0x68747541;  // "Auth"
    constexpr int enhanced_rep_movsb = 9;
    return words.leaf0_ebx == amd && bit(words.leaf7_ebx, enhanced_rep_movsb);
}

}  // namespace

CpuFeatures features_of(const CpuidWords& words) noexcept {
    constexpr uint64_t ymm_state = 0x6;   // SSE and upper halves of YMM
    constexpr uint64_t zmm_state = 0xe6;  // and mask registers, upper halves, registers 16 to 31
    bool has_ymm = (words.xcr0 & ymm_state) == ymm_state;
    bool has_zmm = (words.xcr0 & zmm_state) == zmm_state;
    CpuFeatures found;
    found.ssse3 = bit(words.leaf1_ecx, 9);
    found.sse41 = bit(words.leaf1_ecx, 19);
    found.sse42 = bit(words.leaf1_ecx, 20);
    found.avx = has_ymm && bit(words.leaf1_ecx, 28);
    found.f16c = has_ymm && bit(words.leaf1_ecx, 29);
    found.avx2 = has_ymm && bit(words.leaf7_ebx, 5);
    found.avx512f = has_zmm && bit(words.leaf7_ebx, 16);
    found.avx512dq = has_zmm && bit(words.leaf7_ebx, 17);
    found.avx512bw = has_zmm && bit(words.leaf7_ebx, 30);
    found.avx512vl = has_zmm && bit(words.leaf7_ebx, 31);
    found.avx512vbmi = has_zmm && bit(words.leaf7_ecx, 1);
    found.fast_gather = found.avx512f && was_measured_to_gather(words);
    found.rep_movsb_stalls = has_rep_movsb_of_amd(words);
    return found;
}

Isa usable_isa(const CpuFeatures& cpu) noexcept {
    if (cpu.sve) return Isa::sve;
    if (cpu.asimd) return Isa::neon;
    // Each target enables all of the one below, so the chain must have no hole: Xeon Phi has
    // AVX-512F without BW, VL and DQ, and some virtual machines hide single features.
    if (!(cpu.ssse3 && cpu.sse41 && cpu.sse42)) return Isa::scalar;
    if (!(cpu.avx && cpu.avx2 && cpu.f16c)) return Isa::sse4;
    if (!(cpu.avx512f && cpu.avx512vl && cpu.avx512dq && cpu.avx512bw)) return Isa::avx2;
    return Isa::avx512;
}

Isa capped_isa(Isa best, Isa cap) noexcept {
    if (cap != Isa::scalar && is_of_x86(cap) != is_of_x86(best)) return best;
    return cap < best ? cap : best;
}

Isa next_narrower(Isa isa) noexcept {
    switch (isa) {
        case Isa::avx512:
            return Isa::avx2;
        case Isa::avx2:
            return Isa::sse4;
        case Isa::sve:
            return Isa::neon;
        default:
            return Isa::scalar;
    }
}

#if defined(__x86_64__)

CpuFeatures this_cpu() noexcept {
    constexpr unsigned osxsave = 1U << 27;
    CpuidWords words;
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (__get_cpuid(0, &eax, &ebx, &ecx, &edx) == 0) return {};
    words.leaf0_ebx = ebx;
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return {};
    words.leaf1_eax = eax;
    words.leaf1_ecx = ecx;
    if ((ecx & osxsave) != 0) {
        uint32_t low = 0, high = 0;
        asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        words.xcr0 = uint64_t{high} << 32 | low;
    }
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) {
        words.leaf7_ebx = ebx;
        words.leaf7_ecx = ecx;
    }
    return features_of(words);
}

#elif defined(__aarch64__)

CpuFeatures this_cpu() noexcept {
    CpuFeatures found;
    unsigned long capabilities = getauxval(AT_HWCAP);
    found.asimd = (capabilities & HWCAP_ASIMD) != 0;
    found.sve = (capabilities & HWCAP_SVE) != 0;
    return found;
}

#else

CpuFeatures this_cpu() noexcept { return {}; }

#endif

namespace {

// The features that copiers ask for, a bit each.
constexpr uint8_t vbmi = 1, fast_gather = 2, stalling_movsb = 4;

uint8_t found_once() noexcept {
    // Threads that come here at once find the same, so no order is needed.
    constexpr uint8_t unknown = UINT8_MAX;
    static std::atomic<uint8_t> known{unknown};
    uint8_t found = known.load(std::memory_order_relaxed);
    if (found == unknown) {
        const CpuFeatures cpu = this_cpu();
        found =
            static_cast<uint8_t>((cpu.avx512vbmi ? vbmi : 0) | (cpu.fast_gather ? fast_gather : 0) |
                                 (cpu.rep_movsb_stalls ? stalling_movsb : 0));
        known.store(found, std::memory_order_relaxed);
    }
    return found;
}

}  // namespace

bool has_vbmi() noexcept { return (found_once() & vbmi) != 0; }
bool has_fast_gather() noexcept { return (found_once() & fast_gather) != 0; }
bool has_stalling_movsb() noexcept { return (found_once() & stalling_movsb) != 0; }

}  // namespace vecmpi::kernels
