// SPDX-License-Identifier: BSD-3-Clause
// By which transport large data move, by the times that were measured.
#include <catch2/catch.hpp>

#include <limits>

#include "pipeline/node/peer_memory.hpp"
#include "pipeline/node/transport_trial.hpp"

using namespace vecmpi;
using namespace vecmpi::pipeline::node;

TEST_CASE("the fastest transport is taken, the library's only where it clearly is", "[node]") {
    constexpr double never = std::numeric_limits<double>::infinity();
    struct Row {
        double two_copies, single_copy, library;
        Transport expected;
    };
    const Row rows[] = {
        {10, never, never, Transport::copy_in_copy_out},
        {10, 9, never, Transport::single_copy},
        {10, 9.8, never, Transport::copy_in_copy_out},
        {10, 12, 9.5, Transport::copy_in_copy_out},
        {10, 12, 8, Transport::library},
        {10, 7, 8, Transport::single_copy},
        {10, 7, 6.5, Transport::single_copy},
        {10, 7, 6, Transport::library},
        {10, never, 20, Transport::copy_in_copy_out},
    };
    for (const Row& row : rows)
        CHECK(fastest({row.two_copies, row.single_copy, row.library}) == row.expected);
}

TEST_CASE("a size that was tried stands for those up to the next", "[node]") {
    const TransportsBySize choice{Transport::single_copy, Transport::library,
                                  Transport::copy_in_copy_out};
    CHECK(transport_of(choice, 100) == Transport::copy_in_copy_out);
    CHECK(transport_of(choice, tried_bytes[0] - 1) == Transport::copy_in_copy_out);
    CHECK(transport_of(choice, tried_bytes[0]) == Transport::single_copy);
    CHECK(transport_of(choice, tried_bytes[1] - 1) == Transport::single_copy);
    CHECK(transport_of(choice, tried_bytes[1]) == Transport::library);
    CHECK(transport_of(choice, tried_bytes[2]) == Transport::copy_in_copy_out);
    CHECK(transport_of(choice, SIZE_MAX) == Transport::copy_in_copy_out);
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
