// SPDX-License-Identifier: BSD-3-Clause
// Every kernel as a plain loop in baseline code. What the vector kernels must equal bit for bit.
#include <type_traits>

#include "c99_product.hpp"
#include "families.hpp"
#include "scalar_elements.hpp"

namespace vecmpi::kernels {
namespace {

// ---- loops -------------------------------------------------------------------------------------

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

template <class Op, class Element>
constexpr ReduceKernel kernel() {
    return {into<Op, Element>, to<Op, Element>, Isa::scalar};
}

// ---- operations: (inout, in) -> the new inout ----------------------------------------------------

struct Max {
    template <class T>
    T operator()(T a, T b) const noexcept {
        return a > b ? a : b;
    }
};

struct Min {
    template <class T>
    T operator()(T a, T b) const noexcept {
        return a < b ? a : b;
    }
};

// One instruction with `a` as its first operand, which is the one that survives of two NaNs; see
// ordered-inl.hpp. The 80-bit unit takes the larger of two NaNs in whatever order.
#if defined(__x86_64__)
float add(float a, float b) noexcept { asm("addss %1, %0" : "+x"(a) : "x"(b)); return a; }
double add(double a, double b) noexcept { asm("addsd %1, %0" : "+x"(a) : "x"(b)); return a; }
float subtract(float a, float b) noexcept { asm("subss %1, %0" : "+x"(a) : "x"(b)); return a; }
double subtract(double a, double b) noexcept { asm("subsd %1, %0" : "+x"(a) : "x"(b)); return a; }
float multiply(float a, float b) noexcept { asm("mulss %1, %0" : "+x"(a) : "x"(b)); return a; }
double multiply(double a, double b) noexcept { asm("mulsd %1, %0" : "+x"(a) : "x"(b)); return a; }
#elif defined(__aarch64__)
float add(float a, float b) noexcept { asm("fadd %s0, %s0, %s1" : "+w"(a) : "w"(b)); return a; }
double add(double a, double b) noexcept { asm("fadd %d0, %d0, %d1" : "+w"(a) : "w"(b)); return a; }
float subtract(float a, float b) noexcept { asm("fsub %s0, %s0, %s1" : "+w"(a) : "w"(b)); return a; }
double subtract(double a, double b) noexcept { asm("fsub %d0, %d0, %d1" : "+w"(a) : "w"(b)); return a; }
float multiply(float a, float b) noexcept { asm("fmul %s0, %s0, %s1" : "+w"(a) : "w"(b)); return a; }
double multiply(double a, double b) noexcept { asm("fmul %d0, %d0, %d1" : "+w"(a) : "w"(b)); return a; }
#else
float add(float a, float b) noexcept { return a + b; }
double add(double a, double b) noexcept { return a + b; }
float subtract(float a, float b) noexcept { return a - b; }
double subtract(double a, double b) noexcept { return a - b; }
float multiply(float a, float b) noexcept { return a * b; }
double multiply(double a, double b) noexcept { return a * b; }
#endif
long double add(long double a, long double b) noexcept { return a + b; }
long double subtract(long double a, long double b) noexcept { return a - b; }
long double multiply(long double a, long double b) noexcept { return a * b; }

// Integers wrap: unsigned arithmetic, in at least 32 bits since narrower types become int.
template <class T>
using Wrapping = std::common_type_t<std::make_unsigned_t<T>, unsigned>;

struct Sum {
    template <class T>
    T operator()(T a, T b) const noexcept {
        if constexpr (std::is_integral_v<T>)
            return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
        else
            return add(a, b);
    }
};

struct Prod {
    template <class T>
    T operator()(T a, T b) const noexcept {
        if constexpr (std::is_integral_v<T>)
            return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
        else
            return multiply(a, b);
    }
};

struct LogicalAnd {
    template <class T>
    T operator()(T a, T b) const noexcept {
        return a != 0 && b != 0;
    }
};
struct LogicalOr {
    template <class T>
    T operator()(T a, T b) const noexcept {
        return a != 0 || b != 0;
    }
};
struct LogicalXor {
    template <class T>
    T operator()(T a, T b) const noexcept {
        return (a != 0) != (b != 0);
    }
};
struct BitAnd {
    template <class T>
    T operator()(T a, T b) const noexcept {
        return a & b;
    }
};
struct BitOr {
    template <class T>
    T operator()(T a, T b) const noexcept {
        return a | b;
    }
};
struct BitXor {
    template <class T>
    T operator()(T a, T b) const noexcept {
        return a ^ b;
    }
};

// Floats that are compared as such but returned as bits: no NaN is quieted, no subnormal flushed.
template <class Format>
struct SelectMax {
    template <class Word>
    Word operator()(Word a, Word b) const noexcept {
        return Format::widen(a) > Format::widen(b) ? a : b;
    }
};
template <class Format>
struct SelectMin {
    template <class Word>
    Word operator()(Word a, Word b) const noexcept {
        return Format::widen(a) < Format::widen(b) ? a : b;
    }
};

// MPI_DOUBLE's: see arithmetic.cpp.
struct InstructionMax {
    double operator()(double a, double b) const noexcept {
#if defined(__x86_64__)
        asm("maxsd %1, %0" : "+x"(a) : "x"(b));
        return a;
#else
        return a > b ? a : b;
#endif
    }
};
struct InstructionMin {
    double operator()(double a, double b) const noexcept {
#if defined(__x86_64__)
        asm("minsd %1, %0" : "+x"(a) : "x"(b));
        return a;
#else
        return a < b ? a : b;
#endif
    }
};

// `in` is the first operand: see half.cpp.
template <class Format, class Op>
struct OfHalf {
    uint16_t operator()(uint16_t a, uint16_t b) const noexcept {
        return Format::narrow(Op()(Format::widen(b), Format::widen(a)));
    }
};

// The order of operands is explained in complex.cpp.
struct ComplexSum {
    template <class T>
    ReIm<T> operator()(ReIm<T> a, ReIm<T> b) const noexcept {
        return {add(b.re, a.re), add(b.im, a.im)};
    }
};

struct ComplexSumC99 {
    template <class T>
    ReIm<T> operator()(ReIm<T> a, ReIm<T> b) const noexcept {
        return {add(a.re, b.re), add(a.im, b.im)};
    }
};

struct ComplexProd {
    template <class T>
    ReIm<T> operator()(ReIm<T> a, ReIm<T> b) const noexcept {
        return {subtract(multiply(b.re, a.re), multiply(a.im, b.im)),
                add(multiply(a.im, b.re), multiply(a.re, b.im))};
    }
};

// C's product. What g++ makes of it is what gcc does: the naive one, then __mulsc3 on a NaN.
__complex__ float c_product(__complex__ float a, __complex__ float b) noexcept { return a * b; }
__complex__ double c_product(__complex__ double a, __complex__ double b) noexcept { return a * b; }
__complex__ long double c_product(__complex__ long double a, __complex__ long double b) noexcept {
    return a * b;
}

template <class T, class C>
ReIm<T> multiply_as(ReIm<T> a, ReIm<T> b) noexcept {
    C first, second;
    __real__ first = a.re;
    __imag__ first = a.im;
    __real__ second = b.re;
    __imag__ second = b.im;
    C product = c_product(first, second);
    return {__real__ product, __imag__ product};
}

struct ComplexProdC99 {
    ReIm<float> operator()(ReIm<float> a, ReIm<float> b) const noexcept {
        return multiply_as<float, __complex__ float>(a, b);
    }
    ReIm<double> operator()(ReIm<double> a, ReIm<double> b) const noexcept {
        return multiply_as<double, __complex__ double>(a, b);
    }
    ReIm<long double> operator()(ReIm<long double> a, ReIm<long double> b) const noexcept {
        return multiply_as<long double, __complex__ long double>(a, b);
    }
};

struct MinLoc {
    template <class P>
    P operator()(P a, P b) const noexcept {
        if (a.value > b.value) return b;
        if (a.value >= b.value) a.index = a.index < b.index ? a.index : b.index;
        return a;
    }
};
struct MaxLoc {
    template <class P>
    P operator()(P a, P b) const noexcept {
        if (a.value < b.value) return b;
        if (a.value <= b.value) a.index = a.index < b.index ? a.index : b.index;
        return a;
    }
};

// ---- which types an op takes ---------------------------------------------------------------------

template <class Op>
ReduceKernel of_integer(ElementType type) noexcept {
    switch (type) {
        case ElementType::i8: return kernel<Op, Plain<int8_t>>();
        case ElementType::u8: return kernel<Op, Plain<uint8_t>>();
        case ElementType::i16: return kernel<Op, Plain<int16_t>>();
        case ElementType::u16: return kernel<Op, Plain<uint16_t>>();
        case ElementType::i32: return kernel<Op, Plain<int32_t>>();
        case ElementType::u32: return kernel<Op, Plain<uint32_t>>();
        case ElementType::i64: return kernel<Op, Plain<int64_t>>();
        case ElementType::u64: return kernel<Op, Plain<uint64_t>>();
        default: return {};
    }
}

template <class Op, template <class> class Select, class Instruction>
ReduceKernel extremum(ElementType type) noexcept {
    switch (type) {
        case ElementType::f16: return kernel<Select<ScalarFloat16>, Plain<uint16_t>>();
        case ElementType::bf16: return kernel<Select<ScalarBFloat16>, Plain<uint16_t>>();
        case ElementType::f32: return kernel<Select<ScalarFloat32>, Plain<uint32_t>>();
        case ElementType::f64: return kernel<Instruction, Plain<double>>();
        case ElementType::f64_fortran: return kernel<Select<ScalarFloat64>, Plain<uint64_t>>();
        case ElementType::f80: return kernel<Op, LongDouble>();
        default: return of_integer<Op>(type);
    }
}

template <class Op>
ReduceKernel of_number(ElementType type) noexcept {
    switch (type) {
        case ElementType::f16: return kernel<OfHalf<ScalarFloat16, Op>, Plain<uint16_t>>();
        case ElementType::bf16: return kernel<OfHalf<ScalarBFloat16, Op>, Plain<uint16_t>>();
        case ElementType::f32: return kernel<Op, Plain<float>>();
        case ElementType::f64:
        case ElementType::f64_fortran: return kernel<Op, Plain<double>>();
        case ElementType::f80: return kernel<Op, LongDouble>();
        default: return of_integer<Op>(type);
    }
}

ReduceKernel sum(ElementType type) noexcept {
    switch (type) {
        case ElementType::c32: return kernel<ComplexSum, Complex<Plain<float>>>();
        case ElementType::c64: return kernel<ComplexSum, Complex<Plain<double>>>();
        case ElementType::c80: return kernel<ComplexSum, Complex<LongDouble>>();
        case ElementType::c32_c99: return kernel<ComplexSumC99, Complex<Plain<float>>>();
        case ElementType::c64_c99: return kernel<ComplexSumC99, Complex<Plain<double>>>();
        case ElementType::c80_c99: return kernel<ComplexSumC99, Complex<LongDouble>>();
        default: return of_number<Sum>(type);
    }
}

ReduceKernel prod(ElementType type) noexcept {
    switch (type) {
        case ElementType::c32: return kernel<ComplexProd, Complex<Plain<float>>>();
        case ElementType::c64: return kernel<ComplexProd, Complex<Plain<double>>>();
        case ElementType::c80: return kernel<ComplexProd, Complex<LongDouble>>();
        case ElementType::c32_c99: return kernel<ComplexProdC99, Complex<Plain<float>>>();
        case ElementType::c64_c99: return kernel<ComplexProdC99, Complex<Plain<double>>>();
        case ElementType::c80_c99: return kernel<ComplexProdC99, Complex<LongDouble>>();
        default: return of_number<Prod>(type);
    }
}

template <class Op>
ReduceKernel of_pair(ElementType type) noexcept {
    using I32 = Plain<int32_t>;
    switch (type) {
        case ElementType::i32_i32: return kernel<Op, PairOf<I32, I32>>();
        case ElementType::f32_i32: return kernel<Op, PairOf<Plain<float>, I32>>();
        case ElementType::i64_i32: return kernel<Op, PairOf<Plain<int64_t>, I32>>();
        case ElementType::f64_i32: return kernel<Op, PairOf<Plain<double>, I32>>();
        case ElementType::i16_i32: return kernel<Op, PairOf<Plain<int16_t>, I32>>();
        case ElementType::f80_i32: return kernel<Op, PairOf<LongDouble, I32>>();
        case ElementType::f32_f32: return kernel<Op, PairOf<Plain<float>, Plain<float>>>();
        case ElementType::f64_f64: return kernel<Op, PairOf<Plain<double>, Plain<double>>>();
        default: return {};
    }
}

template <class T>
void multiply_parts(const T* in, T* inout, size_t count) noexcept {
    for (size_t i = 0; i != 2 * count; i += 2) {
        ReIm<T> product = ComplexProdC99()(ReIm<T>{inout[i], inout[i + 1]}, ReIm<T>{in[i], in[i + 1]});
        inout[i] = product.re;
        inout[i + 1] = product.im;
    }
}

}  // namespace

void multiply_c99(const float* in, float* inout, size_t count) noexcept {
    multiply_parts(in, inout, count);
}
void multiply_c99(const double* in, double* inout, size_t count) noexcept {
    multiply_parts(in, inout, count);
}

ReduceKernel scalar_kernel(ReduceOp op, ElementType type) noexcept {
    switch (op) {
        case ReduceOp::max: return extremum<Max, SelectMax, InstructionMax>(type);
        case ReduceOp::min: return extremum<Min, SelectMin, InstructionMin>(type);
        case ReduceOp::sum: return sum(type);
        case ReduceOp::prod: return prod(type);
        case ReduceOp::land: return of_integer<LogicalAnd>(type);
        case ReduceOp::lor: return of_integer<LogicalOr>(type);
        case ReduceOp::lxor: return of_integer<LogicalXor>(type);
        case ReduceOp::band: return of_integer<BitAnd>(type);
        case ReduceOp::bor: return of_integer<BitOr>(type);
        case ReduceOp::bxor: return of_integer<BitXor>(type);
        case ReduceOp::minloc: return of_pair<MinLoc>(type);
        case ReduceOp::maxloc: return of_pair<MaxLoc>(type);
    }
    return {};
}

}  // namespace vecmpi::kernels
