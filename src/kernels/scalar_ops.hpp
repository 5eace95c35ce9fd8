// SPDX-License-Identifier: BSD-3-Clause
// What the scalar kernels do with one element: structs that take (inout, in) and return the new
// inout. Only for scalar.cpp and c99_product.cpp, which are baseline code.
#pragma once

#include <cfloat>
#include <cstdint>
#include <type_traits>

#include "scalar_elements.hpp"

#if LDBL_MANT_DIG == 113
extern "C" long double __addtf3(long double a, long double b);
extern "C" long double __multf3(long double a, long double b);
#endif

namespace vecmpi::kernels::scalar {

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

// One instruction with `a` as its first operand, which survives of two NaNs (ordered-inl.hpp). The
// 80-bit unit takes the larger of two NaNs, whatever their order.
#if defined(__x86_64__)
#define VECMPI_ORDERED(name, instruction, sign)          \
    inline float name(float a, float b) noexcept {       \
        asm(instruction "ss %1, %0" : "+x"(a) : "x"(b)); \
        return a;                                        \
    }                                                    \
    inline double name(double a, double b) noexcept {    \
        asm(instruction "sd %1, %0" : "+x"(a) : "x"(b)); \
        return a;                                        \
    }
#elif defined(__aarch64__)
#define VECMPI_ORDERED(name, instruction, sign)                   \
    inline float name(float a, float b) noexcept {                \
        asm("f" instruction " %s0, %s0, %s1" : "+w"(a) : "w"(b)); \
        return a;                                                 \
    }                                                             \
    inline double name(double a, double b) noexcept {             \
        asm("f" instruction " %d0, %d0, %d1" : "+w"(a) : "w"(b)); \
        return a;                                                 \
    }
#else
#define VECMPI_ORDERED(name, instruction, sign)                       \
    inline float name(float a, float b) noexcept { return a sign b; } \
    inline double name(double a, double b) noexcept { return a sign b; }
#endif
VECMPI_ORDERED(add, "add", +)
VECMPI_ORDERED(subtract, "sub", -)
VECMPI_ORDERED(multiply, "mul", *)
#undef VECMPI_ORDERED
#if LDBL_MANT_DIG == 113  // 128 bits: calls into the compiler's library, in this order
inline long double add(long double a, long double b) noexcept { return __addtf3(a, b); }
inline long double multiply(long double a, long double b) noexcept { return __multf3(a, b); }
#else
inline long double add(long double a, long double b) noexcept { return a + b; }
inline long double multiply(long double a, long double b) noexcept { return a * b; }
#endif
inline long double subtract(long double a, long double b) noexcept { return a - b; }

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

// Floats that are compared as such and returned as bits: no NaN is quieted, no subnormal flushed.
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

// (a < b) ? a : b, of indices of pairs, of MPI_DOUBLE and of MPI_FLOAT. pairs.cpp and
// arithmetic.cpp say what is special about the instructions.
inline int32_t smaller(int32_t a, int32_t b) noexcept { return a < b ? a : b; }
#if defined(__x86_64__)
inline float smaller(float a, float b) noexcept {
    asm("minss %1, %0" : "+x"(a) : "x"(b));
    return a;
}
inline double smaller(double a, double b) noexcept {
    asm("minsd %1, %0" : "+x"(a) : "x"(b));
    return a;
}
inline float larger(float a, float b) noexcept {
    asm("maxss %1, %0" : "+x"(a) : "x"(b));
    return a;
}
inline double larger(double a, double b) noexcept {
    asm("maxsd %1, %0" : "+x"(a) : "x"(b));
    return a;
}
#else
inline float smaller(float a, float b) noexcept { return a < b ? a : b; }
inline double smaller(double a, double b) noexcept { return a < b ? a : b; }
inline float larger(float a, float b) noexcept { return a > b ? a : b; }
inline double larger(double a, double b) noexcept { return a > b ? a : b; }
#endif

struct InstructionMax {
    template <class Float>
    Float operator()(Float a, Float b) const noexcept {
        return larger(a, b);
    }
};
struct InstructionMin {
    template <class Float>
    Float operator()(Float a, Float b) const noexcept {
        return smaller(a, b);
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

// C's product. g++ makes the same of it as gcc: the plain product, then __mulsc3 on a NaN.
inline __complex__ float c_product(__complex__ float a, __complex__ float b) noexcept {
    return a * b;
}
inline __complex__ double c_product(__complex__ double a, __complex__ double b) noexcept {
    return a * b;
}
inline __complex__ long double c_product(__complex__ long double a,
                                         __complex__ long double b) noexcept {
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

// b is_better than a, or at least is_as_good: two relations of one comparison.
struct MinLoc {
    template <class V>
    static bool is_better(V a, V b) noexcept {
        return a > b;
    }
    template <class V>
    static bool is_as_good(V a, V b) noexcept {
        return a >= b;
    }
    template <class P>
    P operator()(P a, P b) const noexcept {
        if (is_better(a.value, b.value)) return b;
        if (is_as_good(a.value, b.value)) a.index = smaller(a.index, b.index);
        return a;
    }
};
struct MaxLoc {
    template <class V>
    static bool is_better(V a, V b) noexcept {
        return a < b;
    }
    template <class V>
    static bool is_as_good(V a, V b) noexcept {
        return a <= b;
    }
    template <class P>
    P operator()(P a, P b) const noexcept {
        if (is_better(a.value, b.value)) return b;
        if (is_as_good(a.value, b.value)) a.index = smaller(a.index, b.index);
        return a;
    }
};

}  // namespace vecmpi::kernels::scalar
