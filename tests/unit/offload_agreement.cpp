// SPDX-License-Identifier: BSD-3-Clause
// What follows from the ranks' agreement in MPI_Init.
#include <catch2/catch.hpp>

#include "two_nodes.hpp"

using namespace vecmpi;
using namespace vecmpi::offload;

TEST_CASE(
    "agreement: ranks of two nodes meet in MPI_Finalize, as MPI_COMM_SELF loses its "
    "attributes",
    "[offload][agreement]") {
    const TwoNodes world(GENERATE(Mode::alone, Mode::callers, Mode::thread));
    CHECK_FALSE(fake::has_event(fake::What::issue, fake::barrier));
    CHECK(fake::delete_attribute_of_self());
    CHECK(fake::has_event(fake::What::issue, fake::barrier));
    CHECK_FALSE(fake::is_allocated(fake::barrier));
}

TEST_CASE("agreement: ranks of one node do not wait for each other in MPI_Finalize",
          "[offload][agreement]") {
    const FreshLibrary library;
    const RunningEngine running(Mode::alone);
    REQUIRE(agreement().one_node);
    CHECK_FALSE(fake::delete_attribute_of_self());
}
