// SPDX-License-Identifier: BSD-3-Clause
// Chooses the kernel for an op and a type. Baseline code only.
#include <array>
#include <atomic>

#include "cpu.hpp"
#include "families.hpp"

namespace vecmpi::kernels {
namespace {

const FamilyLookup* lookups_of(Family family) noexcept {
    switch (family) {
        case Family::arithmetic:
            return arithmetic_by_isa;
        case Family::half:
            return half_by_isa;
        case Family::logical:
            return logical_by_isa;
        case Family::complex:
            return complex_by_isa;
        case Family::pairs:
            return pairs_by_isa;
    }
    return nullptr;
}

// Where a wider vector was measured to lose against the next narrower one: a row says so, with the
// figures beside it. None so far.
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
    switch (op) {
        case ReduceOp::land:
        case ReduceOp::lor:
        case ReduceOp::lxor:
        case ReduceOp::band:
        case ReduceOp::bor:
        case ReduceOp::bxor:
            return ReduceFamily::logical;
        case ReduceOp::minloc:
        case ReduceOp::maxloc:
            return ReduceFamily::pairs;
        default:
            break;
    }
    if (type == ElementType::f16 || type == ElementType::bf16) return ReduceFamily::half;
    const bool is_complex = type >= ElementType::c32 && type <= ElementType::c80_c99;
    return is_complex ? ReduceFamily::complex : ReduceFamily::arithmetic;
}

ReduceKernel reduce_kernel(ReduceOp op, ElementType type, Isa cap) noexcept {
    const Family family = reduce_family(op, type);
    const FamilyLookup* lookups = lookups_of(family);
    for (Isa isa = capped_isa(best_isa(), cap); isa != Isa::scalar; isa = next_narrower(isa)) {
        const FamilyLookup lookup = lookups[static_cast<size_t>(isa)];
        if (lookup == nullptr || !is_to_be_used(family, isa)) continue;
        const ReduceKernel found = lookup(op, type);
        if (found.into != nullptr) return found;
    }
    return scalar_kernel(op, type);
}

Isa best_isa() noexcept {
    // Threads that come here at once find the same; no order is needed.
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
    switch (isa) {
        case Isa::scalar:
            return "scalar";
        case Isa::sse4:
            return "sse4";
        case Isa::avx2:
            return "avx2";
        case Isa::avx512:
            return "avx512";
        case Isa::neon:
            return "neon";
        case Isa::sve:
            return "sve";
    }
    return "?";
}

size_t element_bytes(ElementType type) noexcept {
    switch (type) {
        case ElementType::i8:
        case ElementType::u8:
            return 1;
        case ElementType::i16:
        case ElementType::u16:
        case ElementType::f16:
        case ElementType::bf16:
            return 2;
        case ElementType::i32:
        case ElementType::u32:
        case ElementType::f32:
        case ElementType::f32_flushed:
            return 4;
        case ElementType::i64:
        case ElementType::u64:
        case ElementType::f64:
        case ElementType::f64_fortran:
        case ElementType::c32:
        case ElementType::c32_c99:
        case ElementType::i32_i32:
        case ElementType::f32_i32:
        case ElementType::i16_i32:
        case ElementType::f32_f32:
            return 8;
        case ElementType::f80:
        case ElementType::c64:
        case ElementType::c64_c99:
        case ElementType::i64_i32:
        case ElementType::f64_i32:
        case ElementType::f64_f64:
            return 16;
        case ElementType::c80:
        case ElementType::c80_c99:
        case ElementType::f80_i32:
            return 32;
    }
    return 0;
}

}  // namespace vecmpi::kernels
