// SPDX-License-Identifier: BSD-3-Clause
// The floating-point environment of a thread.
#pragma once

#include <cstdint>

namespace vecmpi::base {

// Rounding, flush-to-zero, precision and traps of a thread; not the flags that operations raise.
struct FloatEnvironment {
    uint32_t vector;  // MXCSR, or FPCR on aarch64
    uint32_t x87;     // control word; long double on x86-64
    bool operator==(const FloatEnvironment&) const = default;
};
FloatEnvironment float_environment() noexcept;  // of the calling thread
// Clears the flags if it changes anything.
void set_float_environment(const FloatEnvironment& wanted) noexcept;

}  // namespace vecmpi::base
