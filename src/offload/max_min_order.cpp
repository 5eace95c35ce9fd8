// SPDX-License-Identifier: BSD-3-Clause
// Questions to the library about MPI_MAX and MPI_MIN.
#include "max_min_order.hpp"

#include <iterator>

#include "base/api.hpp"

namespace vecmpi::offload {

namespace {

using kernels::ElementType;

struct Unsigned {
    MPI_Datatype type;
    ElementType as_signed;
};
constexpr Unsigned unsigned_types[] = {{MPI_UNSIGNED_CHAR, ElementType::i8},
                                       {MPI_UNSIGNED_SHORT, ElementType::i16},
                                       {MPI_UNSIGNED, ElementType::i32},
                                       {MPI_UNSIGNED_LONG, ElementType::i64},
                                       {MPI_UNSIGNED_LONG_LONG, ElementType::i64},
                                       {MPI_UINT8_T, ElementType::i8},
                                       {MPI_UINT16_T, ElementType::i16},
                                       {MPI_UINT32_T, ElementType::i32},
                                       {MPI_UINT64_T, ElementType::i64}};

struct Float {
    MPI_Datatype type;
    ElementType elements[2];  // by likelihood
};
constexpr Float float_types[] = {
    {MPI_FLOAT, {ElementType::f32, ElementType::f32_flushed}},
    {MPI_REAL, {ElementType::f32, ElementType::f32_flushed}},
    {MPI_REAL4, {ElementType::f32, ElementType::f32_flushed}},
    {MPI_DOUBLE, {ElementType::f64, ElementType::f64_fortran}},
    {MPI_DOUBLE_PRECISION, {ElementType::f64_fortran, ElementType::f64}},
    {MPI_REAL8, {ElementType::f64_fortran, ElementType::f64}}};

// With flush to zero and DAZ, and no traps.
FloatEnvironment flushing(FloatEnvironment environment) noexcept {
#if defined(__x86_64__)
    environment.vector |= 0x8040u | 0x1f80u;
#else
    environment.vector = (environment.vector | 1u << 24) & ~0x9f00u;
#endif
    return environment;
}

// Every pair of some subnormal numbers and zero, one pair at a time.
template <class Bits>
bool agrees(MPI_Op op, MPI_Datatype type, kernels::ReduceInto kernel) noexcept {
    constexpr Bits minus = Bits{1} << (8 * sizeof(Bits) - 1);
    constexpr Bits numbers[] = {0, 3, 7, minus | 5, minus | 9};
    for (const Bits in : numbers)
        for (const Bits second : numbers) {
            Bits expected = second, inout = second;
            if (real.Reduce_local(&in, &expected, 1, type, op) != MPI_SUCCESS) return true;
            kernel(&in, &inout, 1);
            if (expected != inout) return false;
        }
    return true;
}

// The element whose kernel orders subnormal numbers as the library does.
std::optional<ElementType> find_element(MPI_Op op, const Float& row, kernels::Isa cap) noexcept {
    const bool is_fortran = row.type != MPI_FLOAT && row.type != MPI_DOUBLE;
    // A library may have been built without Fortran, and refuse it.
    if (is_fortran && !library::errors_can_be_quiet()) return row.elements[0];
    const library::QuietErrors question;
    for (const ElementType element : row.elements) {
        const kernels::ReduceInto kernel = kernels::reduce_kernel(kernel_op(op), element, cap).into;
        if (kernels::element_bytes(element) == sizeof(uint32_t)
                ? agrees<uint32_t>(op, row.type, kernel)
                : agrees<uint64_t>(op, row.type, kernel))
            return element;
    }
    return std::nullopt;
}

}  // namespace

MaxMinOrder::MaxMinOrder(kernels::Isa cap) noexcept {
    static_assert(std::size(unsigned_types) + std::size(float_types) == number_of_types);
    ask_for_signed();
    ask_for_subnormals(cap);
}

// MPICH 4.0.2 with yaksa compares unsigned numbers as signed ones: MPI_MAX of 5 and 4000000000
// is 5. A program gets the same from us.
void MaxMinOrder::ask_for_signed() noexcept {
    for (const Unsigned& row : unsigned_types) {
        uint64_t large = ~uint64_t{0}, one = 1;
        if (real.Reduce_local(&large, &one, 1, row.type, MPI_MAX) != MPI_SUCCESS || one != 1)
            continue;
        for (const MPI_Op op : {MPI_MAX, MPI_MIN})
            rows_[size_++] = {op, row.type, row.as_signed, true};
    }
}

// Under DAZ, which a program may ask for at any time, MAX and MIN of two subnormal numbers give one
// of them or zero. Which, depends on the instructions that the library's compiler chose.
void MaxMinOrder::ask_for_subnormals(kernels::Isa cap) noexcept {
    const FloatEnvironment environment = float_environment();
    set_float_environment(flushing(environment));
    for (const Float& row : float_types)
        for (const MPI_Op op : {MPI_MAX, MPI_MIN})
            rows_[size_++] = {op, row.type, find_element(op, row, cap), false};
    set_float_environment(environment);
}

}  // namespace vecmpi::offload
