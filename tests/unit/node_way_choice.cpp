// SPDX-License-Identifier: BSD-3-Clause
// Which way large data take, by the times that were measured.
#include <catch2/catch.hpp>

#include <limits>

#include "pipeline/node/peer_memory.hpp"
#include "pipeline/node/way_choice.hpp"

using namespace vecmpi;
using namespace vecmpi::pipeline::node;

TEST_CASE("the fastest way is taken, the library's only where it clearly is", "[node]") {
    constexpr double never = std::numeric_limits<double>::infinity();
    struct Row {
        double in_rounds, in_one_copy, library;
        Candidate expected;
    };
    const Row rows[] = {
        {10, never, never, Candidate::in_rounds}, {10, 9, never, Candidate::in_one_copy},
        {10, 9.8, never, Candidate::in_rounds},   {10, 12, 9.5, Candidate::in_rounds},
        {10, 12, 8, Candidate::library},          {10, 7, 8, Candidate::in_one_copy},
        {10, 7, 6.5, Candidate::in_one_copy},     {10, 7, 6, Candidate::library},
        {10, never, 20, Candidate::in_rounds},
    };
    for (const Row& row : rows)
        CHECK(fastest({row.in_rounds, row.in_one_copy, row.library}) == row.expected);
}

TEST_CASE("a size that was tried stands for those up to the next", "[node]") {
    const LargeChoice choice{{Candidate::in_one_copy, Candidate::library, Candidate::in_rounds}};
    CHECK(choice.of(100) == Candidate::in_rounds);
    CHECK(choice.of(tried_bytes[0] - 1) == Candidate::in_rounds);
    CHECK(choice.of(tried_bytes[0]) == Candidate::in_one_copy);
    CHECK(choice.of(tried_bytes[1] - 1) == Candidate::in_one_copy);
    CHECK(choice.of(tried_bytes[1]) == Candidate::library);
    CHECK(choice.of(tried_bytes[2]) == Candidate::in_rounds);
    CHECK(choice.of(SIZE_MAX) == Candidate::in_rounds);
}

TEST_CASE("memory of a process is read whole, or not at all", "[node]") {
    const PeerProcess self = this_process();
    REQUIRE(is_readable(self));
    PeerProcess other = self;
    other.word += 1;  // the number belongs to another process here
    CHECK_FALSE(is_readable(other));
    other = self;
    other.process = -1;
    CHECK_FALSE(is_readable(other));
    const char from[] = "some bytes";
    char to[sizeof from] = {};
    const auto address = reinterpret_cast<uintptr_t>(from);
    CHECK(read_memory(self, address, to, sizeof from));
    CHECK(std::string(to) == from);
    CHECK_FALSE(read_memory(self, 16, to, 1));
    CHECK(are_readable(self, {address, address + 3, address + 4, address}));
    CHECK_FALSE(are_readable(self, {address, address + 3, 16, address}));
}
