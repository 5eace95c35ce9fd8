// SPDX-License-Identifier: BSD-3-Clause
// src/library/api/handles_standard.hpp and what it keeps, without an MPI library.
#include <atomic>
#include <catch2/catch.hpp>
#include <set>
#include <thread>
#include <vector>

#include "library/api.hpp"
#include "library/handle_keys.hpp"

using namespace vecmpi;
using namespace vecmpi::library;

namespace {

MPI_Datatype made_type() { return static_cast<MPI_Datatype>(0x7f0012345678); }

// A library without MPI_REAL16, whose MPI_INTEGER has 8 bytes (-fdefault-integer-8).
int type_size(MPI_Datatype type, int* bytes) {
    if (type == MPI_REAL16) return MPI_ERR_TYPE;
    *bytes = type == MPI_INTEGER ? 8 : type == MPI_BYTE ? 1 : 4;
    return MPI_SUCCESS;
}
int get_errhandler(MPI_Comm, MPI_Errhandler* handler) {
    *handler = MPI_ERRORS_ARE_FATAL;
    return MPI_SUCCESS;
}
int set_errhandler(MPI_Comm, MPI_Errhandler) { return MPI_SUCCESS; }

void ask_the_library() {
    real.Type_size = type_size;
    real.Comm_get_errhandler = get_errhandler;
    real.Comm_set_errhandler = set_errhandler;
    ask_about_predefined_types();
}

}  // namespace

TEST_CASE("kinds of handles in the standard ABI", "[standard_abi]") {
    CHECK(is_comm_handle(MPI_COMM_WORLD));
    CHECK(is_comm_handle(MPI_COMM_SELF));
    CHECK(is_comm_handle(static_cast<MPI_Comm>(0x7f0000001000)));
    CHECK_FALSE(is_comm_handle(MPI_COMM_NULL));
    CHECK_FALSE(is_comm_handle(MPI_Comm{}));
    CHECK_FALSE(is_op_handle(MPI_OP_NULL));
    CHECK_FALSE(is_op_handle(MPI_Op{}));
    CHECK(is_op_handle(MPI_REPLACE));
    CHECK(is_builtin_op(MPI_NO_OP));
    CHECK_FALSE(is_predefined_op(MPI_REPLACE));
    CHECK(is_user_op(static_cast<MPI_Op>(0x7f0000001000)));
    CHECK_FALSE(is_user_op(MPI_SUM));
}

TEST_CASE("ops of the standard ABI have the indices of MPICH's", "[standard_abi]") {
    CHECK(op_index(MPI_MAX) == first_op);
    CHECK(op_index(MPI_SUM) == 3);
    CHECK(op_index(MPI_MAXLOC) == last_op);
    for (size_t index = first_op; index <= last_op; ++index)
        CHECK(op_index(predefined_op(index)) == index);
}

TEST_CASE("predefined types of the standard ABI", "[standard_abi]") {
    ask_the_library();
    CHECK(is_type_handle(MPI_INT));
    CHECK(builtin_type_bytes(MPI_INT) == 4);
    CHECK(builtin_type_bytes(MPI_BYTE) == 1);
    CHECK(builtin_type_bytes(MPI_INTEGER) == 8);
    CHECK_FALSE(is_type_handle(MPI_DATATYPE_NULL));
    CHECK_FALSE(is_builtin_type(MPI_DATATYPE_NULL));
    CHECK_FALSE(is_type_handle(MPI_Datatype{}));
    CHECK(is_type_handle(made_type()));
    CHECK_FALSE(is_builtin_type(made_type()));
    SECTION("one that the library lacks") { CHECK_FALSE(is_type_handle(MPI_REAL16)); }
    SECTION("pairs with a gap are types, but their bytes in memory are not what is packed") {
        for (const MPI_Datatype pair :
             {MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_SHORT_INT, MPI_LONG_DOUBLE_INT}) {
            CHECK(is_type_handle(pair));
            CHECK_FALSE(is_builtin_type(pair));
        }
        CHECK(is_builtin_type(MPI_2INT));
    }
}

TEST_CASE("virtual requests of the standard ABI", "[standard_abi]") {
    CHECK_FALSE(is_unused_request(MPI_REQUEST_NULL));
    REQUIRE(reserve_requests());
    REQUIRE(reserve_requests());  // once
    CHECK_FALSE(is_unused_request(MPI_REQUEST_NULL));
    CHECK_FALSE(is_unused_request(MPI_Request{}));
    CHECK_FALSE(is_unused_request(unused_request(0)));
    for (const uint32_t number : {1u, 77u, unused_requests}) {
        const MPI_Request request = unused_request(number);
        CHECK(is_unused_request(request));
        CHECK(number_of_request(request) == number);
        const int in_fortran = fortran_number_of(request);
        CHECK(is_unused_fortran_request(in_fortran));
        CHECK(request_of_fortran(in_fortran) == request);
    }
    CHECK_FALSE(is_unused_request(
        static_cast<MPI_Request>(static_cast<uintptr_t>(unused_request(unused_requests)) + 1)));
    for (const int of_library : {0, 1, -1, 0x6c00000b, -1409286144})
        CHECK_FALSE(is_unused_fortran_request(of_library));
}

TEST_CASE("keys of handles that are small, and of addresses", "[standard_abi]") {
    CHECK(key_of_handle(MPI_COMM_WORLD) == 0x101);
    CHECK(key_of_handle(static_cast<MPI_Comm>(0xac000000)) == 0xac000000);
    const uint32_t key = key_of_handle(made_type());
    CHECK(key >= 0x1000);
    CHECK(key < 0x400000);  // below which no program has memory
    CHECK(key_of_handle(made_type()) == key);
}

TEST_CASE("HandleKeys: each address its own", "[standard_abi]") {
    static HandleKeys keys;
    std::set<uint32_t> seen;
    for (uint64_t i = 0; i < HandleKeys::most / 2; ++i) {
        const uint32_t key = keys.key_of(0x7f0000000000 + 64 * i);
        REQUIRE(key != 0);
        REQUIRE(seen.insert(key).second);
    }
    for (uint64_t i = 0; i < HandleKeys::most / 2; i += 97)
        CHECK(seen.contains(keys.key_of(0x7f0000000000 + 64 * i)));
}

TEST_CASE("HandleKeys: none where there is no place", "[standard_abi]") {
    static HandleKeys keys;
    uint64_t address = 0x7f0000000000;
    for (size_t i = 0; i < 2 * HandleKeys::most; ++i) keys.key_of(address += 48);
    size_t without = 0;
    for (size_t i = 0; i < 100; ++i) without += keys.key_of(address += 48) == 0;
    CHECK(without == 100);
    CHECK(keys.key_of(0x7f0000000000 + 48) != 0);  // keeps its own
}

TEST_CASE("HandleKeys: threads that come at once agree", "[standard_abi]") {
    static HandleKeys keys;
    constexpr size_t number = 2000, threads = 4;
    std::vector<std::vector<uint32_t>> found(threads, std::vector<uint32_t>(number));
    std::vector<std::thread> team;
    for (size_t t = 0; t < threads; ++t)
        team.emplace_back([&, t] {
            for (size_t i = 0; i < number; ++i) {
                const size_t one = (i + t * number / threads) % number;
                found[t][one] = keys.key_of(0x550000000000 + 16 * one);
            }
        });
    for (std::thread& thread : team) thread.join();
    for (size_t t = 1; t < threads; ++t) CHECK(found[t] == found[0]);
    CHECK(std::set<uint32_t>(found[0].begin(), found[0].end()).size() == number);
}
