// SPDX-License-Identifier: BSD-3-Clause
// Which instruction sets this CPU can run, and which may be chosen under a cap.
#pragma once

#include <cstdint>

#include "kernels/api.hpp"

namespace vecmpi::kernels {

// Only the features that the targets of the kernels' sources enable: those that the CPU has and the
// system saves.
struct CpuFeatures {
    bool ssse3 = false, sse41 = false, sse42 = false;
    bool avx = false, avx2 = false, f16c = false;  // only where the system saves 256-bit registers
    bool avx512f = false, avx512vl = false, avx512dq = false, avx512bw = false;  // and 512-bit ones
    bool avx512vbmi = false;   // no set of its own: asked for where bytes are permuted
    bool fast_gather = false;  // gathers were measured to be faster than single loads on this model
    bool rep_movsb_stalls = false;  // at some distances of source and target: are_unlucky()
    bool asimd = false, sve = false;
};

// Registers of CPUID, as far as CpuFeatures is made of them.
struct CpuidWords {
    uint32_t leaf1_ecx = 0;
    uint32_t leaf7_ebx = 0;
    uint64_t xcr0 = 0;  // 0 where there is no XGETBV
    uint32_t leaf7_ecx = 0;
    uint32_t leaf0_ebx = 0;  // the first letters of the vendor
    uint32_t leaf1_eax = 0;  // family, model and stepping
};

// Pure.
CpuFeatures features_of(const CpuidWords& words) noexcept;

// Pure: the widest set whose parts are all there.
Isa usable_isa(const CpuFeatures& features) noexcept;

// Pure: the widest set of `best`'s architecture up to the cap. A cap of another architecture caps
// nothing.
Isa capped_isa(Isa best, Isa cap) noexcept;

// Pure: the next narrower set of the same architecture; scalar below the narrowest.
Isa next_narrower(Isa isa) noexcept;

// Asks the CPU, once: that takes some thousand cycles under a hypervisor.
CpuFeatures this_cpu() noexcept;

// Of this CPU, asked once.
bool has_vbmi() noexcept;
bool has_fast_gather() noexcept;
bool has_stalling_movsb() noexcept;

}  // namespace vecmpi::kernels
