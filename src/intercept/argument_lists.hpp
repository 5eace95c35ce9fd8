// SPDX-License-Identifier: BSD-3-Clause
// Arguments of a call, whatever its signature: some of them handed on. Not a door: src/intercept
// only.
#pragma once

#include <cstddef>

#include "library/api/mpi_parameters.hpp"

namespace vecmpi::intercept {

using library::Parameters;

// Functions of which the table tells names of parameters.
template <class F>
concept Named = requires {
    sizeof(Parameters<F>);
};

// Calls the function with as many of the arguments as it takes.
template <auto function>
struct FirstArguments;
template <class Result, class... P, Result (*function)(P...) noexcept>
struct FirstArguments<function> {
    [[gnu::always_inline]] static Result call(P... first, const auto&...) noexcept {
        return function(first...);
    }
};

template <size_t place, class First, class... Rest>
[[gnu::always_inline]] inline auto argument(First first, const Rest&... rest) noexcept {
    if constexpr (place == 0)
        return first;
    else
        return argument<place - 1>(rest...);
}

template <class T>
[[gnu::always_inline]] inline T value_of(T a) noexcept {
    return a;
}

template <class... A>
[[gnu::always_inline]] inline auto last_argument(const A&... a) noexcept {
    return (value_of(a), ...);
}

}  // namespace vecmpi::intercept
