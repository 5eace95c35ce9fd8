// SPDX-License-Identifier: BSD-3-Clause
// Chooses the kernel for an op and a type. Baseline code only.
#include <array>
#include <atomic>
#include <iterator>

#include "cpu.hpp"
#include "families.hpp"

namespace vecmpi::kernels {
namespace {

// In the order of enum ReduceFamily.
constexpr const FamilyLookup* lookups_of_family[] = {arithmetic_by_isa, half_by_isa, logical_by_isa,
                                                     complex_by_isa, pairs_by_isa};

// Where a wider vector was measured to lose against the next narrower one, with the figures. None
// so far.
struct Loses {
    Family family;
    Isa isa;
};
constexpr std::array<Loses, 0> loses{};

bool is_to_be_used(Family family, Isa isa) noexcept {
    for (const Loses& row : loses)
        if (row.family == family && row.isa == isa) return false;
    return true;
}

}  // namespace

ReduceFamily reduce_family(ReduceOp op, ElementType type) noexcept {
    if (op >= ReduceOp::minloc) return ReduceFamily::pairs;
    if (op >= ReduceOp::land) return ReduceFamily::logical;
    if (type == ElementType::f16 || type == ElementType::bf16 || type == ElementType::bf16_half_up)
        return ReduceFamily::half;
    const bool is_complex = type >= ElementType::c32 && type <= ElementType::c80_c99;
    return is_complex ? ReduceFamily::complex : ReduceFamily::arithmetic;
}

ReduceKernel reduce_kernel(ReduceOp op, ElementType type, Isa cap) noexcept {
    const Family family = reduce_family(op, type);
    const FamilyLookup* lookups = lookups_of_family[static_cast<size_t>(family)];
    for (Isa isa = capped_isa(best_isa(), cap); isa != Isa::scalar; isa = next_narrower(isa)) {
        const FamilyLookup lookup = lookups[static_cast<size_t>(isa)];
        if (lookup == nullptr || !is_to_be_used(family, isa)) continue;
        const ReduceKernel found = lookup(op, type);
        if (found.into != nullptr) return found;
    }
    return scalar_kernel(op, type);
}

Isa best_isa() noexcept {
    // Threads that come here at once find the same, so no order is needed.
    constexpr uint8_t unknown = UINT8_MAX;
    static std::atomic<uint8_t> found{unknown};
    uint8_t isa = found.load(std::memory_order_relaxed);
    if (isa == unknown) {
        isa = static_cast<uint8_t>(usable_isa(this_cpu()));
        found.store(isa, std::memory_order_relaxed);
    }
    return static_cast<Isa>(isa);
}

const char* isa_name(Isa isa) noexcept {
    static constexpr const char* names[number_of_isas] = {"scalar", "sse4", "avx2",
                                                          "avx512", "neon", "sve"};
    return names[static_cast<size_t>(isa)];
}

size_t element_bytes(ElementType type) noexcept {
    static constexpr uint8_t bytes[] = {
        1, 1,  2,  2,  4,  4,  8, 8,   // i8 to u64
        2, 2,  4,  8,  16,             // f16, bf16, f32, f64, f80
        8, 16, 32,                     // c32, c64, c80
        8, 16, 32,                     // of C99
        8, 8,  16, 16, 8,  32, 8, 16,  // i32_i32 to f64_f64
        8, 4,  2                       // f64_fortran, f32_flushed, bf16_half_up
    };
    static_assert(std::size(bytes) == number_of_element_types);
    return bytes[static_cast<size_t>(type)];
}

}  // namespace vecmpi::kernels
