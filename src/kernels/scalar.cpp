// SPDX-License-Identifier: BSD-3-Clause
// Every kernel as a plain loop in baseline code. The vector kernels must equal these bit for bit.
#include <cstring>

#include "families.hpp"
#include "scalar_elements.hpp"
#include "scalar_extended.hpp"
#include "scalar_ops.hpp"

namespace vecmpi::kernels {
namespace {

using namespace scalar;

// ---- loops ------------------------------------------------------------

template <class Op, class Element>
void to(const void* in, const void* inout, void* out, size_t count) noexcept {
    const auto* in_bytes = static_cast<const unsigned char*>(in);
    const auto* inout_bytes = static_cast<const unsigned char*>(inout);
    auto* out_bytes = static_cast<unsigned char*>(out);
    const bool copies_padding = Element::has_padding && out != inout;
    for (size_t at = 0; at != count * Element::bytes; at += Element::bytes) {
        auto b = Element::load(in_bytes + at);
        auto a = Element::load(inout_bytes + at);
        Element::store(Op()(a, b), out_bytes + at);
        if (copies_padding) Element::copy_padding(inout_bytes + at, out_bytes + at);
    }
}

template <class Op, class Element>
void into(const void* in, void* inout, size_t count) noexcept {
    to<Op, Element>(in, inout, inout, count);
}

// Pairs of long double and int. Their values are slow to store, so only those that change are
// written. Written each time, they run at 0.6 of MPICH's rate.
template <class Op>
void into_where_changed(const void* in, void* inout, size_t count) noexcept {
    using Index = Plain<int32_t>;
    using Pair = PairOf<LongDouble, Index>;
    const auto* from = static_cast<const unsigned char*>(in);
    auto* pair = static_cast<unsigned char*>(inout);
    for (size_t i = 0; i != count; ++i, from += Pair::bytes, pair += Pair::bytes) {
        const long double a = LongDouble::load(pair), b = LongDouble::load(from);
        unsigned char* const index = pair + Pair::index_at;
        if (Op::is_better(a, b)) {
            ComparedLongDouble::store(ComparedLongDouble::load(from), pair);
            Index::store(Index::load(from + Pair::index_at), index);
        } else if (Op::is_as_good(a, b)) {
            Index::store(smaller(Index::load(index), Index::load(from + Pair::index_at)), index);
        }
    }
}

template <class Op, class Element>
constexpr ReduceKernel kernel() {
    return {into<Op, Element>, to<Op, Element>, Isa::scalar};
}

// ---- which types an op takes --------------------------------------------------

template <class Op>
ReduceKernel of_integer(ElementType type) noexcept {
    switch (type) {
        case ElementType::i8:
            return kernel<Op, Plain<int8_t>>();
        case ElementType::u8:
            return kernel<Op, Plain<uint8_t>>();
        case ElementType::i16:
            return kernel<Op, Plain<int16_t>>();
        case ElementType::u16:
            return kernel<Op, Plain<uint16_t>>();
        case ElementType::i32:
            return kernel<Op, Plain<int32_t>>();
        case ElementType::u32:
            return kernel<Op, Plain<uint32_t>>();
        case ElementType::i64:
            return kernel<Op, Plain<int64_t>>();
        case ElementType::u64:
            return kernel<Op, Plain<uint64_t>>();
        default:
            return {};
    }
}

template <class Op, template <class> class Select, class Instruction>
ReduceKernel extremum(ElementType type) noexcept {
    switch (type) {
        case ElementType::f16:
            return kernel<Select<ScalarFloat16>, Plain<uint16_t>>();
        case ElementType::bf16:
        case ElementType::bf16_half_up:
            return kernel<Select<ScalarBFloat16>, Plain<uint16_t>>();
        case ElementType::f32:
            return kernel<Select<ScalarFloat32>, Plain<uint32_t>>();
        case ElementType::f32_flushed:
            return kernel<Instruction, Plain<float>>();
        case ElementType::f64:
            return kernel<Instruction, Plain<double>>();
        case ElementType::f64_fortran:
            return kernel<Select<ScalarFloat64>, Plain<uint64_t>>();
        case ElementType::f80:
            return kernel<Op, ComparedLongDouble>();
        default:
            return of_integer<Op>(type);
    }
}

template <class Op>
ReduceKernel of_number(ElementType type) noexcept {
    switch (type) {
        case ElementType::f16:
            return kernel<OfHalf<ScalarFloat16, Op>, Plain<uint16_t>>();
        case ElementType::bf16:
            return kernel<OfHalf<ScalarBFloat16, Op>, Plain<uint16_t>>();
        case ElementType::bf16_half_up:
            return kernel<OfHalf<ScalarBFloat16HalfUp, Op>, Plain<uint16_t>>();
        case ElementType::f32:
        case ElementType::f32_flushed:
            return kernel<Op, Plain<float>>();
        case ElementType::f64:
        case ElementType::f64_fortran:
            return kernel<Op, Plain<double>>();
        case ElementType::f80:
            return kernel<Op, LongDouble>();
        default:
            return of_integer<Op>(type);
    }
}

template <class Op, class OfComplex, class OfComplexC99>
ReduceKernel of_any_number(ElementType type) noexcept {
    switch (type) {
        case ElementType::c32:
            return kernel<OfComplex, Complex<Plain<float>>>();
        case ElementType::c64:
            return kernel<OfComplex, Complex<Plain<double>>>();
        case ElementType::c80:
            return kernel<OfComplex, Complex<LongDouble>>();
        case ElementType::c32_c99:
            return kernel<OfComplexC99, Complex<Plain<float>>>();
        case ElementType::c64_c99:
            return kernel<OfComplexC99, Complex<Plain<double>>>();
        case ElementType::c80_c99:
            return kernel<OfComplexC99, Complex<LongDouble>>();
        default:
            return of_number<Op>(type);
    }
}

// MPICH allows LXOR of C's floats, though the standard does not.
ReduceKernel exclusive_or(ElementType type) noexcept {
    switch (type) {
        case ElementType::f32:
            return kernel<LogicalXor, Plain<float>>();
        case ElementType::f64:
            return kernel<LogicalXor, Plain<double>>();
        case ElementType::f80:
#if LDBL_MANT_DIG == 64
            return kernel<ExtendedXor, LongDoubleBits>();
#else
            return kernel<LogicalXor, LongDouble>();
#endif
        default:
            return of_integer<LogicalXor>(type);
    }
}

template <class Op>
ReduceKernel of_pair(ElementType type) noexcept {
    using I32 = Plain<int32_t>;
    switch (type) {
        case ElementType::i32_i32:
            return kernel<Op, PairOf<I32, I32>>();
        case ElementType::f32_i32:
            return kernel<Op, PairOf<Plain<float>, I32>>();
        case ElementType::i64_i32:
            return kernel<Op, PairOf<Plain<int64_t>, I32>>();
        case ElementType::f64_i32:
            return kernel<Op, PairOf<Plain<double>, I32>>();
        case ElementType::i16_i32:
            return kernel<Op, PairOf<Plain<int16_t>, I32>>();
        case ElementType::f80_i32:
            return {into_where_changed<Op>, to<Op, PairOf<LongDouble, I32>>, Isa::scalar};
        case ElementType::f32_f32:
            return kernel<Op, PairOf<Plain<float>, Plain<float>>>();
        case ElementType::f64_f64:
            return kernel<Op, PairOf<Plain<double>, Plain<double>>>();
        default:
            return {};
    }
}

}  // namespace

ReduceKernel scalar_kernel(ReduceOp op, ElementType type) noexcept {
    switch (op) {
        case ReduceOp::max:
            return extremum<Max, SelectMax, InstructionMax>(type);
        case ReduceOp::min:
            return extremum<Min, SelectMin, InstructionMin>(type);
        case ReduceOp::sum:
            return of_any_number<Sum, ComplexSum, ComplexSumC99>(type);
        case ReduceOp::prod:
            return of_any_number<Prod, ComplexProd, ComplexProdC99>(type);
        case ReduceOp::land:
            return of_integer<LogicalAnd>(type);
        case ReduceOp::lor:
            return of_integer<LogicalOr>(type);
        case ReduceOp::lxor:
            return exclusive_or(type);
        case ReduceOp::band:
            return of_integer<BitAnd>(type);
        case ReduceOp::bor:
            return of_integer<BitOr>(type);
        case ReduceOp::bxor:
            return of_integer<BitXor>(type);
        case ReduceOp::minloc:
            return of_pair<MinLoc>(type);
        case ReduceOp::maxloc:
            return of_pair<MaxLoc>(type);
    }
    return {};
}

}  // namespace vecmpi::kernels
