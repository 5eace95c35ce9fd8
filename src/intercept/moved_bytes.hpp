// SPDX-License-Identifier: BSD-3-Clause
// How many bytes a call moves, for the report: told from the names of its parameters. Never asks
// handles that the call may change. Not a door: src/intercept only.
#pragma once

#include <type_traits>

#include "handler_classes.hpp"
#include "timed_call.hpp"

namespace vecmpi::intercept {

// `count` elements: of one block, or an array with one count for each rank.
template <class Class, class P, class Count>
[[gnu::always_inline]] inline void add_counted(TimedCall& timing, const P& p, const Count& count,
                                               MPI_Datatype type) noexcept {
    if constexpr (std::is_pointer_v<Count>) {
        if constexpr (requires { p.sendcount; })  // a gather in place
            timing.moves_own(count, type, p.comm);
        else
            timing.moves_all(count, type, p.comm);
    } else if constexpr (Class::data_shape == DataShape::block_for_each) {
        timing.moves_for_each(count, type, p.comm);
    } else if constexpr (requires { p.root; }) {
        // Between two groups the arguments of the rank that is MPI_ROOT, and of those that are
        // MPI_PROC_NULL, may mean nothing.
        timing.moves(p.root >= 0 ? count : 0, type);
    } else {
        timing.moves(count, type);
    }
}

template <class Class, class P>
[[gnu::always_inline]] inline void add_send_side(TimedCall& timing, const P& p) noexcept {
    if constexpr (requires { p.sendcount; })
        add_counted<Class>(timing, p, p.sendcount, p.sendtype);
    else
        add_counted<Class>(timing, p, p.sendcounts, p.sendtype);
}

template <class Class, class P>
[[gnu::always_inline]] inline void add_receive_side(TimedCall& timing, const P& p) noexcept {
    if constexpr (requires { p.recvcount; })
        add_counted<Class>(timing, p, p.recvcount, p.recvtype);
    else
        add_counted<Class>(timing, p, p.recvcounts, p.recvtype);
}

// The other side counts where this one is MPI_IN_PLACE.
template <class Class, class P>
[[gnu::always_inline]] inline void add_of_two_sides(TimedCall& timing, const P& p) noexcept {
    constexpr bool has_send_count = requires { p.sendcount; };
    if constexpr (Class::data_shape == DataShape::to_neighbors) {
        if constexpr (has_send_count) add_send_side<Class>(timing, p);
    } else if constexpr (Class::data_shape == DataShape::from_root) {
        if (p.recvbuf != MPI_IN_PLACE)
            add_receive_side<Class>(timing, p);
        else if constexpr (has_send_count)  // of a Scatterv, the root's own part does not move
            add_send_side<Class>(timing, p);
    } else {
        if (p.sendbuf != MPI_IN_PLACE)
            add_send_side<Class>(timing, p);
        else
            add_receive_side<Class>(timing, p);
    }
}

template <class Class, class P>
[[gnu::always_inline]] inline void add_of_one_side(TimedCall& timing, const P& p) noexcept {
    if constexpr (requires { p.incount; })
        add_counted<Class>(timing, p, p.incount, p.datatype);
    else if constexpr (requires { p.outcount; })
        add_counted<Class>(timing, p, p.outcount, p.datatype);
    else if constexpr (requires { p.recvcounts; })
        add_counted<Class>(timing, p, p.recvcounts, p.datatype);
    else if constexpr (requires { p.recvcount; })
        add_counted<Class>(timing, p, p.recvcount, p.datatype);
    else if constexpr (requires { p.count; })
        add_counted<Class>(timing, p, p.count, p.datatype);
}

template <class P>
concept HasTwoSides = requires(P p) {
    p.sendbuf;
    p.sendtype;
    p.recvbuf;
    p.recvtype;
};

// Nothing where the call moves nothing or does not tell.
template <class Class, class... A>
[[gnu::always_inline]] inline void add_moved_bytes(TimedCall& timing, const A&... a) noexcept {
    if constexpr (requires { requires Named<typename Class::Data>; }) {
        const auto p = Parameters<typename Class::Data>::of(a...);
        if constexpr (HasTwoSides<decltype(p)>)
            add_of_two_sides<Class>(timing, p);
        else if constexpr (requires { p.origin_count; })
            add_counted<Class>(timing, p, p.origin_count, p.origin_datatype);
        else if constexpr (requires { p.datatype; })
            add_of_one_side<Class>(timing, p);
    }
}

}  // namespace vecmpi::intercept
