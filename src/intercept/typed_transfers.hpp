// SPDX-License-Identifier: BSD-3-Clause
// One-sided transfers whose origin is a derived datatype, and calls that complete them. Not a door:
// src/intercept only.
#pragma once

#include <type_traits>

#include "typed_messages.hpp"

namespace vecmpi::intercept {

// Word `typed` of a row of class ordered: MPI_Put, MPI_Get, MPI_Accumulate.
template <class F>
struct Typed<Ordered<F>> : Ordered<F> {
    static constexpr unsigned needs = Ordered<F>::needs | Need::typed_transfers;

    // Rest: the op of MPI_Accumulate, and the window. What goes to no one is the library's.
    template <class Origin, class Count, class... Rest>
    [[gnu::always_inline]] static int serve(Origin* origin, Count count, MPI_Datatype type,
                                            int target, MPI_Aint displacement, Count target_count,
                                            MPI_Datatype target_type, Rest... rest) noexcept {
        const auto by_library = [=](Origin* memory, Count number, MPI_Datatype of) noexcept {
            return Ordered<F>::serve(memory, number, of, target, displacement, target_count,
                                     target_type, rest...);
        };
        if (library::is_builtin_type(type) || target < 0) [[likely]]
            return by_library(origin, count, type);
        const datatype::TransferCall call{.way = way<Origin, Rest...>,
                                          .origin = const_cast<void*>(origin),
                                          .count = count,
                                          .type = type,
                                          .most_count = most_of<Count>,
                                          .target = target,
                                          .has_dense_target = library::is_builtin_type(target_type),
                                          .win = last_argument(rest...),
                                          .target_count = target_count,
                                          .target_type = target_type};
        if (datatype::is_left(call.as_typed())) return by_library(origin, count, type);
        datatype::Transfer transfer(call);
        const int error =
            transfer ? by_library(transfer.place(), static_cast<Count>(transfer.sent_count()),
                                  transfer.sent_type())
                     : by_library(origin, count, type);
        transfer.end(error);
        return error;
    }

  private:
    template <class Origin, class... Rest>
    static constexpr auto way = !std::is_const_v<Origin> ? datatype::TypedCall::Way::get
                                : sizeof...(Rest) == 1   ? datatype::TypedCall::Way::put
                                                         : datatype::TypedCall::Way::accumulate;
};

// What completes the same transfers at their target as well.
template <class Class>
struct Fully : Class {};
template <>
struct Fully<Ordered<library::calls::Win_flush_local>> : Ordered<library::calls::Win_flush> {};
template <>
struct Fully<Ordered<library::calls::Win_flush_local_all>>
    : Ordered<library::calls::Win_flush_all> {};

// Word `completes`.
template <class Class>
struct Completing : Class {
    static constexpr unsigned needs = Class::needs | Need::held_transfers;

    // First: a rank, the assertions of a fence, or nothing.
    template <class... First>
    [[gnu::always_inline]] static int serve_last(MPI_Win win, First... first) noexcept {
        constexpr Call call = Class::Function::call;
        constexpr bool is_fence = call == Call::Win_fence;
        constexpr bool is_local =
            call == Call::Win_flush_local || call == Call::Win_flush_local_all;
        int target = datatype::all_targets;
        if constexpr (sizeof...(First) == 1 && !is_fence) target = last_argument(first...);
        datatype::TransferCompletion completion(win, target);
        const bool fully = !is_local || completion.needs_full_flush();
        const int error = fully ? Fully<Class>::serve(first..., win) : Class::serve(first..., win);
        completion.end(error, is_fence || call == Call::Win_complete,
                       fully ? datatype::Completes::fully : datatype::Completes::at_origin);
        return error;
    }
    [[gnu::always_inline]] static int serve(MPI_Win win) noexcept { return serve_last(win); }
    [[gnu::always_inline]] static int serve(int first, MPI_Win win) noexcept {
        return serve_last(win, first);
    }
};

}  // namespace vecmpi::intercept
