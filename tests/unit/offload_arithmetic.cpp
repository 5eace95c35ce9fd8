// SPDX-License-Identifier: BSD-3-Clause
// Finding the library's table of op functions by its shape, and what the predefined types hold.
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include <catch2/catch.hpp>
#include "offload/arithmetic.hpp"

using namespace vecmpi;
using namespace vecmpi::offload;

namespace {

const std::vector<library::CodeRange> code = {{1000, 2000}, {5000, 6000}};

// last_op different addresses of code.
std::vector<uintptr_t> functions(uintptr_t first = 1000) {
    std::vector<uintptr_t> words;
    for (size_t i = 0; i < library::last_op; ++i) words.push_back(first + 16 * i);
    return words;
}

std::vector<size_t> candidates(const std::vector<uintptr_t>& words) {
    return library::op_table_candidates(words.data(), words.size(), code);
}

std::vector<uintptr_t> joined(std::initializer_list<std::vector<uintptr_t>> parts) {
    std::vector<uintptr_t> all;
    for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
}

}  // namespace

TEST_CASE("op table: a null before different addresses of code", "[offload][arithmetic]") {
    const std::vector<uintptr_t> null = {0}, junk = {7, 123456}, more = {1999, 5001};
    CHECK(candidates({}).empty());
    CHECK(candidates(functions()).empty());
    CHECK(candidates(joined({null, functions()})) == std::vector<size_t>{0});
    CHECK(candidates(joined({junk, null, functions(), more, junk})) == std::vector<size_t>{2});
    CHECK(candidates(joined({null, functions(), null, functions(5000)})) ==
          std::vector<size_t>{0, library::last_op + 1});
    CHECK(candidates(joined({junk, functions()})).empty());
    std::vector<uintptr_t> twice = joined({null, functions()});
    twice[5] = twice[6];
    CHECK(candidates(twice).empty());
    std::vector<uintptr_t> with_data = joined({null, functions()});
    with_data[library::last_op] = 3000;
    CHECK(candidates(with_data).empty());
}

TEST_CASE("predefined types lead to what they hold", "[offload][arithmetic]") {
    const std::map<MPI_Datatype, kernels::ElementType> expected = {
        {MPI_INT, kernels::ElementType::i32},
        {MPI_UNSIGNED, kernels::ElementType::u32},
        {MPI_LONG, kernels::ElementType::i64},
        {MPI_BYTE, kernels::ElementType::u8},
        {MPI_AINT, kernels::ElementType::i64},
        {MPI_COUNT, kernels::ElementType::i64},
        {MPI_INTEGER2, kernels::ElementType::i16},
        {library::float16, kernels::ElementType::f16},
        {library::bfloat16, kernels::ElementType::bf16_half_up},
        {MPI_REAL8, kernels::ElementType::f64_fortran},
        {MPI_COMPLEX, kernels::ElementType::c32},
        {MPI_C_FLOAT_COMPLEX, kernels::ElementType::c32_c99},
        {MPI_SHORT_INT, kernels::ElementType::i16_i32},
        {MPI_2DOUBLE_PRECISION, kernels::ElementType::f64_f64}};
    for (const auto& [type, element] : expected) {
        REQUIRE(reducible_types.type[library::type_index(type)] == type);
        CHECK(reducible_types.element[library::type_index(type)] == element);
    }
    for (const MPI_Datatype none : {MPI_PACKED, MPI_WCHAR, MPI_REAL16, MPI_DATATYPE_NULL})
        CHECK(
            (none == MPI_DATATYPE_NULL || reducible_types.type[library::type_index(none)] != none));
    const auto derived =
        static_cast<MPI_Datatype>(0x8c000009u);  // would share MPI_DOUBLE_INT's place
    CHECK(reducible_types.type[library::type_index(derived)] != derived);
}

TEST_CASE("probes hold what kernels get wrong", "[offload][arithmetic]") {
    std::vector<float> values(1024);
    fill_with_probes(values.data(), sizeof(float) * values.size(), MPI_FLOAT, 1);
    int nans = 0, infinities = 0, zeros = 0, denormals = 0, normals = 0;
    for (const float value : values) {
        nans += std::isnan(value);
        infinities += std::isinf(value);
        zeros += value == 0;
        denormals += value != 0 && std::fpclassify(value) == FP_SUBNORMAL;
        normals += std::isnormal(value);
    }
    CHECK(nans > 20);
    CHECK(infinities > 20);
    CHECK(zeros > 20);
    CHECK(denormals > 20);
    CHECK(normals > 200);
    std::vector<uint16_t> first(1024), second(1024);
    fill_with_probes(first.data(), 2 * first.size(), library::bfloat16, 1);
    fill_with_probes(second.data(), 2 * second.size(), library::bfloat16, 2);
    int ties = 0;  // of sums, whose rounding differs from library to library
    for (size_t i = 0; i < first.size(); ++i) {
        const float sum = std::bit_cast<float>(uint32_t{first[i]} << 16) +
                          std::bit_cast<float>(uint32_t{second[i]} << 16);
        ties += (std::bit_cast<uint32_t>(sum) & 0x1ffff) == 0x8000;
    }
    CHECK(ties > 5);
    std::vector<unsigned char> booleans(1024, 7);
    fill_with_probes(booleans.data(), booleans.size(), MPI_C_BOOL, 2);
    for (const unsigned char value : booleans) REQUIRE(value <= 1);
}
