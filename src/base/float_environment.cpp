// SPDX-License-Identifier: BSD-3-Clause
// The floating-point environment, which a thread takes over when it does another thread's
// arithmetic.
#include "base/api.hpp"

namespace vecmpi::base {

#if defined(__x86_64__)

namespace {
constexpr uint32_t mxcsr_flags = 0x3f;
}

FloatEnvironment float_environment() noexcept {
    FloatEnvironment found{};
    asm volatile("stmxcsr %0" : "=m"(found.vector));
    uint16_t control_word;
    asm volatile("fnstcw %0" : "=m"(control_word));
    found.x87 = control_word;
    found.vector &= ~mxcsr_flags;
    return found;
}

void set_float_environment(const FloatEnvironment& wanted) noexcept {
    if (float_environment() == wanted) return;
    // Exceptions that are pending would trap under the new masks.
    asm volatile("fnclex");
    const auto control_word = static_cast<uint16_t>(wanted.x87);
    asm volatile("fldcw %0" : : "m"(control_word));
    asm volatile("ldmxcsr %0" : : "m"(wanted.vector));
}

#elif defined(__aarch64__)

FloatEnvironment float_environment() noexcept {
    uint64_t fpcr;
    asm volatile("mrs %0, fpcr" : "=r"(fpcr));
    return {static_cast<uint32_t>(fpcr), 0};
}

void set_float_environment(const FloatEnvironment& wanted) noexcept {
    if (float_environment() == wanted) return;
    asm volatile("msr fpcr, %0" : : "r"(uint64_t{wanted.vector}));
}

#else
#error "vecmpi: write float_environment() for this architecture"
#endif

}  // namespace vecmpi::base
