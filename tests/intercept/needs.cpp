// SPDX-License-Identifier: BSD-3-Clause
// When a call comes to us, by its row in the function table.
#include <catch2/catch.hpp>

#include "served.hpp"

using namespace vecmpi;
using intercept::When;
using test::ClassOf;

namespace {

template <class F>
constexpr When when = ClassOf<F>::when;
template <class F>
constexpr unsigned needs = intercept::needs_of<ClassOf<F>>;
template <class F>
constexpr bool comes_for_sleepers = (needs<F> & Need::sleepers) != 0;

constexpr unsigned of_message = Need::messages | Need::counting | Need::message_plans |
                                Need::freed_requests | Need::error_handlers;
constexpr unsigned of_post = of_message | Need::queue;
constexpr unsigned of_later_look = Need::queue | Need::later_looks;

}  // namespace

TEST_CASE("needs: a message comes where we wait better or something is to be seen", "[handlers]") {
    STATIC_REQUIRE(when<calls::Isend> == When::needed);
    STATIC_REQUIRE(needs<calls::Ibsend> == of_post);
    STATIC_REQUIRE(needs<calls::Isend> == (of_post | Need::typed_requests));
    STATIC_REQUIRE(needs<calls::Irecv_c> == (of_post | Need::typed_requests));
    constexpr unsigned of_typed = of_message | Need::sleepers | Need::typed_messages;
    STATIC_REQUIRE(needs<calls::Send> == of_typed);
    STATIC_REQUIRE(needs<calls::Recv> == of_typed);
    STATIC_REQUIRE(needs<calls::Sendrecv_c> == of_typed);
    STATIC_REQUIRE(needs<calls::Sendrecv_replace> == of_typed);
    STATIC_REQUIRE(needs<calls::Bsend> == (of_message | Need::sleepers));
    STATIC_REQUIRE(when<calls::Iprobe> == When::needed);
    STATIC_REQUIRE(needs<calls::Iprobe> == ((of_message | Need::looks | of_later_look) &
                                            ~(Need::message_plans | Need::freed_requests)));
}

TEST_CASE("needs: what looks before it polls comes once collectives go through memory",
          "[handlers]") {
    STATIC_REQUIRE(when<calls::Win_test> == When::needed);
    STATIC_REQUIRE(needs<calls::Win_test> ==
                   (of_later_look | Need::counting | Need::error_handlers));
    STATIC_REQUIRE(needs<calls::Parrived> == (of_message | Need::virtual_requests | of_later_look));
    STATIC_REQUIRE((needs<calls::Improbe> & Need::later_looks) != 0);
    STATIC_REQUIRE((needs<calls::Test> & Need::later_looks) == 0);
}

TEST_CASE("needs: a wait comes from the first virtual request on", "[handlers]") {
    STATIC_REQUIRE(needs<calls::Test> == (of_message | Need::virtual_requests | Need::looks));
    STATIC_REQUIRE(needs<calls::Wait> == (of_message | Need::virtual_requests | Need::sleepers));
}

TEST_CASE("needs: what blocks comes where blocked calls sleep", "[handlers]") {
    STATIC_REQUIRE(comes_for_sleepers<calls::Recv>);
    STATIC_REQUIRE(comes_for_sleepers<calls::Mprobe>);
    STATIC_REQUIRE(comes_for_sleepers<calls::Waitall>);
    STATIC_REQUIRE(comes_for_sleepers<calls::Win_flush_all>);
    STATIC_REQUIRE_FALSE(comes_for_sleepers<calls::Irecv>);
    STATIC_REQUIRE_FALSE(comes_for_sleepers<calls::Testall>);
    STATIC_REQUIRE_FALSE(comes_for_sleepers<calls::Put>);
    STATIC_REQUIRE_FALSE(comes_for_sleepers<calls::Win_test>);
}

TEST_CASE("needs: what has a path of ours, or is executed by the library, always comes",
          "[handlers]") {
    STATIC_REQUIRE(when<calls::Bcast> == When::running);
    STATIC_REQUIRE(when<calls::Ibcast_c> == When::running);
    STATIC_REQUIRE(when<calls::Neighbor_alltoallw> == When::running);
    STATIC_REQUIRE(when<calls::Comm_dup> == When::running);
    STATIC_REQUIRE(when<calls::Send_init> == When::running);
    STATIC_REQUIRE(when<calls::Type_free> == When::running);
    STATIC_REQUIRE(needs<calls::Bcast> == 0);
}

TEST_CASE("needs: what has none comes where calls are queued or twins run", "[handlers]") {
    constexpr unsigned seen = Need::counting | Need::error_handlers;
    STATIC_REQUIRE(needs<calls::Rput> == (seen | Need::queue));
    STATIC_REQUIRE(needs<calls::Put> == (seen | Need::queue | Need::typed_transfers));
    STATIC_REQUIRE(needs<calls::Get_c> == needs<calls::Put>);
    STATIC_REQUIRE(needs<calls::Win_flush_all> == (seen | Need::queue | Need::held_transfers |
                                                   Need::sleepers | Need::freed_requests));
    STATIC_REQUIRE(needs<calls::Comm_rank> == Need::error_handlers);
}

TEST_CASE("needs: what begins and ends the engine comes before and after, and is not timed",
          "[handlers]") {
    STATIC_REQUIRE(when<calls::Init> == When::always);
    STATIC_REQUIRE(when<calls::T_pvar_start> == When::always);
    STATIC_REQUIRE(test::timed<calls::Init> == nullptr);
    STATIC_REQUIRE(test::timed<calls::Isend> != nullptr);
}
