// SPDX-License-Identifier: BSD-3-Clause
// Element types and operators of the reductions, each with its scalar twin. Must not depend on
// MPI's own results.
#pragma once

#include <functional>
#include <vector>

#include "battery.hpp"

namespace battery {

// 2 by 2 matrix modulo 2^32: its product is associative and not commutative.
struct Matrix {
    uint32_t a[4];
    bool operator==(const Matrix&) const = default;
};

// MPI_DOUBLE_INT
struct Located {
    double value;
    int index;
    int padding;  // never looked at by MPI; kept 0 so that bytes can be compared
    bool operator==(const Located& other) const {
        return value == other.value && index == other.index;
    }
};

template <class T>
struct Operator {
    MPI_Op op;  // MPI_OP_NULL: made from `user`
    T (*apply)(T, T);
    MPI_User_function* user = nullptr;
    int commutative = 1;
};

MPI_Datatype matrix_type();  // committed on first use, freed by free_operator_types()
void free_operator_types();

template <class T>
MPI_Datatype type_of();
template <>
inline MPI_Datatype type_of<int>() {
    return MPI_INT;
}
template <>
inline MPI_Datatype type_of<int64_t>() {
    return MPI_INT64_T;
}
template <>
inline MPI_Datatype type_of<uint8_t>() {
    return MPI_UINT8_T;
}
template <>
inline MPI_Datatype type_of<float>() {
    return MPI_FLOAT;
}
template <>
inline MPI_Datatype type_of<double>() {
    return MPI_DOUBLE;
}
template <>
inline MPI_Datatype type_of<Matrix>() {
    return matrix_type();
}
template <>
inline MPI_Datatype type_of<Located>() {
    return MPI_DOUBLE_INT;
}

// Small integers: sums and products of a few ranks stay exact in every type.
template <class T>
T make_value(uint64_t hash) {
    return static_cast<T>(hash % 4);
}
template <>
inline Matrix make_value<Matrix>(uint64_t hash) {
    return {{static_cast<uint32_t>(hash), 1, static_cast<uint32_t>(hash >> 32), 3}};
}
template <>
inline Located make_value<Located>(uint64_t hash) {
    return {static_cast<double>(hash % 4), static_cast<int>(hash >> 40), 0};
}

template <class T>
const std::vector<Operator<T>>& operators();

}  // namespace battery
