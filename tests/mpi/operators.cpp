// SPDX-License-Identifier: BSD-3-Clause
// Scalar twins of the operators, and user operators that call MPI from inside. Plain loops only.
#include "operators.hpp"

#include <algorithm>

namespace battery {
namespace {

MPI_Datatype matrix = MPI_DATATYPE_NULL;

template <class T>
T add(T a, T b) {
    return static_cast<T>(a + b);
}
template <class T>
T multiply(T a, T b) {
    return static_cast<T>(a * b);
}
template <class T>
T larger(T a, T b) {
    return std::max(a, b);
}
template <class T>
T smaller(T a, T b) {
    return std::min(a, b);
}
template <class T>
T bit_and(T a, T b) {
    return static_cast<T>(a & b);
}
template <class T>
T bit_or(T a, T b) {
    return static_cast<T>(a | b);
}
template <class T>
T bit_xor(T a, T b) {
    return static_cast<T>(a ^ b);
}
template <class T>
T logical_and(T a, T b) {
    return static_cast<T>(a && b);
}
template <class T>
T logical_or(T a, T b) {
    return static_cast<T>(a || b);
}
template <class T>
T logical_xor(T a, T b) {
    return static_cast<T>(!a != !b);
}

template <class T>
T add_modulo(T a, T b) {
    return static_cast<T>((static_cast<int>(a) + static_cast<int>(b)) % 97);
}

Matrix product(Matrix x, Matrix y) {
    return {{x.a[0] * y.a[0] + x.a[1] * y.a[2], x.a[0] * y.a[1] + x.a[1] * y.a[3],
             x.a[2] * y.a[0] + x.a[3] * y.a[2], x.a[2] * y.a[1] + x.a[3] * y.a[3]}};
}

Located least(Located a, Located b) {
    if (a.value == b.value) return a.index < b.index ? a : b;
    return a.value < b.value ? a : b;
}
Located greatest(Located a, Located b) {
    if (a.value == b.value) return a.index < b.index ? a : b;
    return a.value > b.value ? a : b;
}

// User operators may ask for properties of the type (MPI 4.0, 6.9.5).
template <class T, T (*Apply)(T, T)>
void user_operator(void* in, void* inout, int* count, MPI_Datatype* type) {
    int bytes = 0;
    MPI_Type_size(*type, &bytes);
    check_equal(bytes, sizeof(T), "type size in a user operator");
    const T* a = static_cast<const T*>(in);
    T* b = static_cast<T*>(inout);
    for (int i = 0; i < *count; ++i) b[i] = Apply(a[i], b[i]);
}

template <class T>
std::vector<Operator<T>> arithmetic() {
    return {
        {MPI_SUM, add<T>},       {MPI_SUM, add<T>},
        {MPI_PROD, multiply<T>}, {MPI_MAX, larger<T>},
        {MPI_MIN, smaller<T>},   {MPI_OP_NULL, add_modulo<T>, user_operator<T, add_modulo<T>>, 1}};
}

template <class T>
std::vector<Operator<T>> integral() {
    std::vector<Operator<T>> all = arithmetic<T>();
    const std::vector<Operator<T>> bits = {{MPI_BAND, bit_and<T>},   {MPI_BOR, bit_or<T>},
                                           {MPI_BXOR, bit_xor<T>},   {MPI_LAND, logical_and<T>},
                                           {MPI_LOR, logical_or<T>}, {MPI_LXOR, logical_xor<T>}};
    all.insert(all.end(), bits.begin(), bits.end());
    return all;
}

template <class T>
const std::vector<Operator<T>>& kept_integral() {
    static const std::vector<Operator<T>> all = integral<T>();
    return all;
}
template <class T>
const std::vector<Operator<T>>& kept_arithmetic() {
    static const std::vector<Operator<T>> all = arithmetic<T>();
    return all;
}

}  // namespace

MPI_Datatype matrix_type() {
    if (matrix == MPI_DATATYPE_NULL) {
        MPI_Type_contiguous(4, MPI_UINT32_T, &matrix);
        MPI_Type_commit(&matrix);
    }
    return matrix;
}

void free_operator_types() {
    if (matrix != MPI_DATATYPE_NULL) MPI_Type_free(&matrix);
}

template <>
const std::vector<Operator<int>>& operators<int>() {
    return kept_integral<int>();
}
template <>
const std::vector<Operator<int64_t>>& operators<int64_t>() {
    return kept_integral<int64_t>();
}
template <>
const std::vector<Operator<uint8_t>>& operators<uint8_t>() {
    return kept_integral<uint8_t>();
}
template <>
const std::vector<Operator<float>>& operators<float>() {
    return kept_arithmetic<float>();
}
template <>
const std::vector<Operator<double>>& operators<double>() {
    return kept_arithmetic<double>();
}
template <>
const std::vector<Operator<Matrix>>& operators<Matrix>() {
    static const std::vector<Operator<Matrix>> all = {
        {MPI_OP_NULL, product, user_operator<Matrix, product>, 0}};
    return all;
}
template <>
const std::vector<Operator<Located>>& operators<Located>() {
    static const std::vector<Operator<Located>> all = {{MPI_MINLOC, least}, {MPI_MAXLOC, greatest}};
    return all;
}

}  // namespace battery
