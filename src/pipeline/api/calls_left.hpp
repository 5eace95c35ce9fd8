// SPDX-License-Identifier: BSD-3-Clause
// Part of the door of src/pipeline: calls that no path serves. Asked before all else: each path
// that declines one costs 50 ns and more. Over hosts, blocking calls of few bytes, whatever else
// they are (Allreduce of 8 bytes on two: 6.4 us plain, 7.4 where all were asked). On one node those
// without elements, and reductions by an operator of the program (Allreduce of 4 bytes: 0.42 us
// plain, 0.67). Calls among one rank (MPI_Barrier: 5 ns plain, 47).
#pragma once

#include <mpi.h>

#include <atomic>
#include <optional>

#include "base/api/settings.hpp"
#include "library/api.hpp"
#include "pipeline/api.hpp"

namespace vecmpi::pipeline {

// Written in MPI_Init by what ranks have agreed on, and equal on all of them until the end:
// callbacks of MPI_Finalize on one rank match calls before it on another.
struct CallsLeft {
    uint32_t below_bytes[number_of_collectives]{};  // 0: all are looked at
    bool world_is_over_hosts = false;
    bool ranks_are_alone = false;  // on their nodes
    // Of reductions by operators of the program, where all ranks share a node. An Allreduce of more
    // may be scattered, if there are as many elements as ranks.
    struct UserOps {
        bool are_left = false;
        uint64_t allreduce_below_bytes = 0;
        MPI_Count allreduce_below_count = 0;  // of any datatype
    } user_ops{};
    bool world_is_one_rank = false;
    bool only_node_serves = false;      // blocking calls, but user operators: no path over hosts
    bool nothing_serves_later = false;  // nonblocking calls
};
inline constinit CallsLeft calls_left;
CallsLeft calls_left_of(const offload::Agreement& agreed, const Settings& settings) noexcept;
void note_calls_left() noexcept;

// Blocking collectives make them, also calls that no path serves otherwise.
extern std::atomic<int> private_comms_wanted;
inline bool private_comms_are_wanted() noexcept {
    return private_comms_wanted.load(std::memory_order_relaxed) != 0;
}

// What a path over hosts serves, where small calls of it may skip the path.
template <auto path>
constexpr std::optional<Collective> collective_of = std::nullopt;
template <>
inline constexpr std::optional<Collective> collective_of<allreduce> = Collective::allreduce;
template <>
inline constexpr std::optional<Collective> collective_of<reduce> = Collective::reduce;
template <>
inline constexpr std::optional<Collective> collective_of<bcast> = Collective::bcast;
template <>
inline constexpr std::optional<Collective> collective_of<allgather> = Collective::allgather;
template <>
inline constexpr std::optional<Collective> collective_of<alltoall> = Collective::alltoall;
template <>
inline constexpr std::optional<Collective> collective_of<gather> = Collective::gather;
template <>
inline constexpr std::optional<Collective> collective_of<scatter> = Collective::scatter;

// The same on all ranks. What skips the paths on some of them must not be counted by a path on
// others: those would go on to make a communicator of their own, together with nobody.
inline bool is_surely_over_hosts(MPI_Comm comm) noexcept {
    return calls_left.ranks_are_alone || (calls_left.world_is_over_hosts && comm == MPI_COMM_WORLD);
}

inline bool are_below(uint64_t most, MPI_Count count, MPI_Datatype type) noexcept {
    if (count <= 0 || !library::is_builtin_type(type)) return false;
    const uint64_t value_bytes = library::builtin_type_bytes(type);
    return value_bytes != 0 && static_cast<uint64_t>(count) < most &&
           static_cast<uint64_t>(count) * value_bytes < most;
}

// Asks of the side that counts on each rank: is(count, type).
template <Collective collective, class P, class Is>
[[gnu::always_inline]] inline bool is_side(const P& p, const Is& is) noexcept {
    if constexpr (collective == Collective::gather)
        return p.sendbuf != MPI_IN_PLACE && is(p.sendcount, p.sendtype);
    else if constexpr (requires { p.recvtype; })
        return p.recvbuf != MPI_IN_PLACE && is(p.recvcount, p.recvtype);
    else if constexpr (requires { p.op; })
        return !library::is_user_op(p.op) && is(p.count, p.datatype);
    else
        return is(p.count, p.datatype);
}

// A blocking call: of few bytes over hosts, or of no elements on one node, whose paths count no
// such call. False says nothing.
template <Collective collective, class P>
[[gnu::always_inline]] inline bool is_surely_librarys(const P& p) noexcept {
    const uint32_t most = calls_left.below_bytes[static_cast<size_t>(collective)];
    const auto is_below = [most](MPI_Count count, MPI_Datatype type) noexcept {
        return are_below(most, count, type);
    };
    const auto is_empty = [](MPI_Count count, MPI_Datatype) noexcept { return count == 0; };
    return ((most != 0 && is_side<collective>(p, is_below) && is_surely_over_hosts(p.comm)) ||
            (calls_left.only_node_serves && is_side<collective>(p, is_empty))) &&
           !private_comms_are_wanted();
}

// Processes that come later are served by no path either.
inline bool is_among_one_rank(MPI_Comm comm) noexcept {
    return calls_left.world_is_one_rank || comm == MPI_COMM_SELF;
}

// A reduction. False says nothing.
template <bool is_allreduce, class P>
[[gnu::always_inline]] inline bool is_left_with_user_op(const P& p) noexcept {
    const CallsLeft::UserOps& user_ops = calls_left.user_ops;
    if (!user_ops.are_left || !library::is_user_op(p.op) || private_comms_are_wanted())
        return false;
    if constexpr (is_allreduce)
        return (p.count >= 0 && p.count < user_ops.allreduce_below_count) ||
               are_below(user_ops.allreduce_below_bytes, p.count, p.datatype);
    else
        return true;
}

// A blocking call that the node's paths have declined, on all ranks alike.
template <class P>
[[gnu::always_inline]] inline bool is_left_after_node(const P& p) noexcept {
    if constexpr (requires { p.op; })
        if (library::is_user_op(p.op)) return false;
    return calls_left.only_node_serves && !private_comms_are_wanted();
}

}  // namespace vecmpi::pipeline
