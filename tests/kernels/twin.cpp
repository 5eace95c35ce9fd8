// SPDX-License-Identifier: BSD-3-Clause
// See twin.hpp.
#include "twin.hpp"

#include <cfloat>

#include "twin_numbers.hpp"

using vecmpi::kernels::ElementType;
using vecmpi::kernels::ReduceOp;

// The compiler's library: C's product of complex numbers.
extern "C" {
__complex__ float __mulsc3(float, float, float, float);
__complex__ double __muldc3(double, double, double, double);
#if LDBL_MANT_DIG == 64
__complex__ long double __mulxc3(long double, long double, long double, long double);
#else
__complex__ long double __multc3(long double, long double, long double, long double);
#endif
}

namespace twin {
namespace {

// ---- complex ---------------------------------------------------------------------------

template <class T>
struct Pair {
    T first, second;
};

template <class T>
Pair<T> naive_product(Pair<T> a, Pair<T> b) {
    return {compute(compute(b.first, Sign::times, a.first), Sign::minus,
                    compute(a.second, Sign::times, b.second)),
            compute(compute(a.second, Sign::times, b.first), Sign::plus,
                    compute(a.first, Sign::times, b.second))};
}

__complex__ float product_of_c(Pair<float> a, Pair<float> b) {
    return __mulsc3(a.first, a.second, b.first, b.second);
}
__complex__ double product_of_c(Pair<double> a, Pair<double> b) {
    return __muldc3(a.first, a.second, b.first, b.second);
}
__complex__ long double product_of_c(Pair<long double> a, Pair<long double> b) {
#if LDBL_MANT_DIG == 64
    return __mulxc3(a.first, a.second, b.first, b.second);
#else
    return __multc3(a.first, a.second, b.first, b.second);
#endif
}

template <class T>
Pair<T> reduce_complex(ReduceOp op, bool c99, Pair<T> a, Pair<T> b) {
    if (op == ReduceOp::sum && c99)
        return {compute(a.first, Sign::plus, b.first), compute(a.second, Sign::plus, b.second)};
    if (op == ReduceOp::sum)
        return {compute(b.first, Sign::plus, a.first), compute(b.second, Sign::plus, a.second)};
    const Pair<T> product = naive_product(a, b);
    if (!c99 || (!std::isnan(product.first) && !std::isnan(product.second))) return product;
    const auto recovered = product_of_c(a, b);
    return {__real__ recovered, __imag__ recovered};
}

// ---- pairs -----------------------------------------------------------------------------

int compare(Kind kind, const unsigned char* a, const unsigned char* b) {  // 2: unordered
    const auto ordered = [](auto x, auto y) { return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2; };
    switch (kind) {
        case Kind::f32:
            return ordered(read<float>(a), read<float>(b));
        case Kind::f64:
            return ordered(read<double>(a), read<double>(b));
        case Kind::f80:
            return ordered(read<long double>(a), read<long double>(b));
        default:
            return ordered(read_integer(kind, a), read_integer(kind, b));
    }
}

size_t bytes_of_kind(Kind kind) {
    switch (kind) {
        case Kind::f16:
        case Kind::bf16:
            return 2;
        case Kind::f32:
            return 4;
        case Kind::f64:
            return 8;
        case Kind::f80:
            return long_double_bytes;
        default:
            return bytes_of_integer(kind);
    }
}

void reduce_pair(ReduceOp op, ElementType type, const unsigned char* in, const unsigned char* inout,
                 unsigned char* out) {
    const std::vector<Part> parts = parts_of(type);
    const Part value = parts[0];
    const Part index = parts[1];
    const int order = compare(value.kind, inout, in);
    const int worse = op == ReduceOp::minloc ? 1 : -1;
    if (order == worse) std::memcpy(out, in, bytes_of_kind(value.kind));
    const bool inout_is_earlier = compare(index.kind, inout + index.at, in + index.at) == -1;
    if (order == worse || (order == 0 && !inout_is_earlier))
        std::memcpy(out + index.at, in + index.at, bytes_of_kind(index.kind));
    if (order != 0) return;
    if (index.kind == Kind::f32) write(as_returned(read<float>(out + index.at)), out + index.at);
    if (index.kind == Kind::f64) write(as_returned(read<double>(out + index.at)), out + index.at);
}

template <class T>
void reduce_complex_at(ReduceOp op, bool c99, const unsigned char* in, const unsigned char* inout,
                       unsigned char* out) {
    const Pair<T> a{read<T>(inout), read<T>(inout + sizeof(T))};
    const Pair<T> b{read<T>(in), read<T>(in + sizeof(T))};
    const Pair<T> result = reduce_complex(op, c99, a, b);
    write(result.first, out);
    write(result.second, out + sizeof(T));
}

template <class T>
void reduce_float_at(ReduceOp op, const unsigned char* in, const unsigned char* inout,
                     unsigned char* out) {
    const T a = read<T>(inout);
    const T b = read<T>(in);
    if (op == ReduceOp::sum) return write(compute(a, Sign::plus, b), out);
    if (op == ReduceOp::prod) return write(compute(a, Sign::times, b), out);
    // Chosen as bytes: an assignment may be an instruction that flushes.
    const bool keeps = op == ReduceOp::max ? a > b : a < b;
    if (!keeps) std::memcpy(out, in, sizeof(T) == 16 ? long_double_bytes : sizeof(T));
}

template <class T>
void reduce_flushed_at(ReduceOp op, const unsigned char* in, const unsigned char* inout,
                       unsigned char* out) {
    const bool is_choice = op == ReduceOp::max || op == ReduceOp::min;
    reduce_float_at<T>(op, in, inout, out);
    if (is_choice) write(as_returned(read<T>(out)), out);
}

bool is_c99(ElementType type) {
    return type == ElementType::c32_c99 || type == ElementType::c64_c99 ||
           type == ElementType::c80_c99;
}

bool is_complex(ElementType type) {
    return type >= ElementType::c32 && type <= ElementType::c80_c99;
}

}  // namespace

std::vector<Part> parts_of(ElementType type) {
    switch (type) {
        case ElementType::c32:
        case ElementType::c32_c99:
        case ElementType::f32_f32:
            return {{Kind::f32, 0}, {Kind::f32, 4}};
        case ElementType::c64:
        case ElementType::c64_c99:
        case ElementType::f64_f64:
            return {{Kind::f64, 0}, {Kind::f64, 8}};
        case ElementType::c80:
        case ElementType::c80_c99:
            return {{Kind::f80, 0}, {Kind::f80, 16}};
        case ElementType::i32_i32:
            return {{Kind::i32, 0}, {Kind::i32, 4}};
        case ElementType::f32_i32:
            return {{Kind::f32, 0}, {Kind::i32, 4}};
        case ElementType::i64_i32:
            return {{Kind::i64, 0}, {Kind::i32, 8}};
        case ElementType::f64_i32:
            return {{Kind::f64, 0}, {Kind::i32, 8}};
        case ElementType::i16_i32:
            return {{Kind::i16, 0}, {Kind::i32, 4}};
        case ElementType::f80_i32:
            return {{Kind::f80, 0}, {Kind::i32, 16}};
        case ElementType::f64_fortran:
            return {{Kind::f64, 0}};
        case ElementType::f32_flushed:
            return {{Kind::f32, 0}};
        case ElementType::bf16_half_up:
            return {{Kind::bf16, 0}};
        default:
            return {{static_cast<Kind>(type), 0}};
    }
}

size_t bytes_of(ElementType type) {
    switch (type) {
        case ElementType::f80:
            return 16;
        case ElementType::c80:
        case ElementType::c80_c99:
        case ElementType::f80_i32:
            return 32;
        case ElementType::i64_i32:
        case ElementType::f64_i32:
            return 16;
        default:
            break;
    }
    const Part last = parts_of(type).back();
    return last.at + bytes_of_kind(last.kind);
}

bool is_pair(ElementType type) {
    return type >= ElementType::i32_i32 && type <= ElementType::f64_f64;
}

bool is_legal(ReduceOp op, ElementType type) {
    const bool integer = type <= ElementType::u64;
    const bool real =
        (type >= ElementType::f16 && type <= ElementType::f80) || type >= ElementType::f64_fortran;
    switch (op) {
        case ReduceOp::max:
        case ReduceOp::min:
            return integer || real;
        case ReduceOp::sum:
        case ReduceOp::prod:
            return integer || real || is_complex(type);
        case ReduceOp::minloc:
        case ReduceOp::maxloc:
            return is_pair(type);
        case ReduceOp::lxor:  // MPICH takes C's floats too
            return integer || type == ElementType::f32 || type == ElementType::f64 ||
                   type == ElementType::f80;
        default:
            return integer;
    }
}

template <class Float>
void exclusive_or_at(const unsigned char* in, const unsigned char* inout, unsigned char* out) {
    const bool a = read<Float>(inout) != 0, b = read<Float>(in) != 0;
    write(static_cast<Float>(a != b ? 1 : 0), out);
}

void reduce_element(ReduceOp op, ElementType type, const unsigned char* in,
                    const unsigned char* inout, unsigned char* out) {
    std::memcpy(out, inout, bytes_of(type));
    if (is_pair(type)) return reduce_pair(op, type, in, inout, out);
    switch (type) {
        case ElementType::f16:
            write(reduce_small(op, binary16, read<uint16_t>(inout), read<uint16_t>(in)), out);
            break;
        case ElementType::bf16:
        case ElementType::bf16_half_up:
            write(reduce_small(op, type == ElementType::bf16 ? bfloat16 : bfloat16_half_up,
                               read<uint16_t>(inout), read<uint16_t>(in)),
                  out);
            break;
        case ElementType::f32:
            if (op == ReduceOp::lxor) return exclusive_or_at<float>(in, inout, out);
            reduce_float_at<float>(op, in, inout, out);
            break;
        case ElementType::f32_flushed:
            reduce_flushed_at<float>(op, in, inout, out);
            break;
        case ElementType::f64:
            if (op == ReduceOp::lxor) return exclusive_or_at<double>(in, inout, out);
            reduce_flushed_at<double>(op, in, inout, out);
            break;
        case ElementType::f64_fortran:
            reduce_float_at<double>(op, in, inout, out);
            break;
        case ElementType::f80:
            if (op == ReduceOp::lxor) return exclusive_or_at<long double>(in, inout, out);
            reduce_float_at<long double>(op, in, inout, out);
            break;
        case ElementType::c32:
        case ElementType::c32_c99:
            reduce_complex_at<float>(op, is_c99(type), in, inout, out);
            break;
        case ElementType::c64:
        case ElementType::c64_c99:
            reduce_complex_at<double>(op, is_c99(type), in, inout, out);
            break;
        case ElementType::c80:
        case ElementType::c80_c99:
            reduce_complex_at<long double>(op, is_c99(type), in, inout, out);
            break;
        default:
            reduce_integer(op, static_cast<Kind>(type), in, inout, out);
    }
}

const char* name_of(ReduceOp op) {
    static const char* const names[] = {"max", "min", "sum",  "prod", "land",   "band",
                                        "lor", "bor", "lxor", "bxor", "minloc", "maxloc"};
    return names[static_cast<size_t>(op)];
}

const char* name_of(ElementType type) {
    static const char* const names[] = {
        "i8",      "u8",      "i16",     "u16",         "i32",         "u32",
        "i64",     "u64",     "f16",     "bf16",        "f32",         "f64",
        "f80",     "c32",     "c64",     "c80",         "c32_c99",     "c64_c99",
        "c80_c99", "i32_i32", "f32_i32", "i64_i32",     "f64_i32",     "i16_i32",
        "f80_i32", "f32_f32", "f64_f64", "f64_fortran", "f32_flushed", "bf16_half_up"};
    return names[static_cast<size_t>(type)];
}

}  // namespace twin
