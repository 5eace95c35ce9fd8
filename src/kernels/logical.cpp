// SPDX-License-Identifier: BSD-3-Clause
// LAND, LOR, LXOR of integers, LXOR of floats, and BAND, BOR, BXOR, which are the same bytes
// whatever the type.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/logical.cpp"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "loop-inl.hpp"

#if VECMPI_VECTOR_TARGET
HWY_BEFORE_NAMESPACE();
namespace vecmpi::kernels::HWY_NAMESPACE {
namespace {

struct BitAnd {
    template <class D, class V>
    HWY_INLINE V operator()(D, V inout, V in) const {
        return hn::And(inout, in);
    }
};

struct BitOr {
    template <class D, class V>
    HWY_INLINE V operator()(D, V inout, V in) const {
        return hn::Or(inout, in);
    }
};

struct BitXor {
    template <class D, class V>
    HWY_INLINE V operator()(D, V inout, V in) const {
        return hn::Xor(inout, in);
    }
};

// 1 where both are not zero, else 0.
struct LogicalAnd {
    template <class D, class V>
    HWY_INLINE V operator()(D d, V inout, V in) const {
        const auto zero = hn::Zero(d);
        const auto is_false = hn::Or(hn::Eq(inout, zero), hn::Eq(in, zero));
        return hn::IfThenZeroElse(is_false, hn::Set(d, Lane<D>{1}));
    }
};

struct LogicalOr {
    template <class D, class V>
    HWY_INLINE V operator()(D d, V inout, V in) const {
        const auto is_false = hn::Eq(hn::Or(inout, in), hn::Zero(d));
        return hn::IfThenZeroElse(is_false, hn::Set(d, Lane<D>{1}));
    }
};

struct LogicalXor {
    template <class D, class V>
    HWY_INLINE V operator()(D d, V inout, V in) const {
        const auto zero = hn::Zero(d);
        const auto is_true = hn::Xor(hn::Eq(inout, zero), hn::Eq(in, zero));
        return hn::IfThenElseZero(is_true, hn::Set(d, Lane<D>{1}));
    }
};

// MPICH allows LXOR of C's floats, though the standard does not.
ReduceKernel exclusive_or(ElementType type) noexcept {
    switch (type) {
        case ElementType::f32:
            return by_lane<LogicalXor, float>();
        case ElementType::f64:
            return by_lane<LogicalXor, double>();
        default:
            return by_width<LogicalXor>(type);
    }
}

template <class Op>
ReduceKernel by_byte(ElementType type) noexcept {
    switch (type) {
        case ElementType::i8:
        case ElementType::u8:
            return by_lane<Op, uint8_t, 1>();
        case ElementType::i16:
        case ElementType::u16:
            return by_lane<Op, uint8_t, 2>();
        case ElementType::i32:
        case ElementType::u32:
            return by_lane<Op, uint8_t, 4>();
        case ElementType::i64:
        case ElementType::u64:
            return by_lane<Op, uint8_t, 8>();
        default:
            return {};
    }
}

ReduceKernel logical(ReduceOp op, ElementType type) noexcept {
    switch (op) {
        case ReduceOp::land:
            return by_width<LogicalAnd>(type);
        case ReduceOp::lor:
            return by_width<LogicalOr>(type);
        case ReduceOp::lxor:
            return exclusive_or(type);
        case ReduceOp::band:
            return by_byte<BitAnd>(type);
        case ReduceOp::bor:
            return by_byte<BitOr>(type);
        case ReduceOp::bxor:
            return by_byte<BitXor>(type);
        default:
            return {};
    }
}

}  // namespace
}  // namespace vecmpi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // VECMPI_VECTOR_TARGET

#if HWY_ONCE
namespace vecmpi::kernels {
const FamilyLookup logical_by_isa[number_of_isas] = VECMPI_BY_ISA(logical);
}  // namespace vecmpi::kernels
#endif
