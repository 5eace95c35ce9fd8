// SPDX-License-Identifier: BSD-3-Clause
// Arguments of a call, whatever its signature: some of them handed on. Not a door: src/intercept
// only.
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>

#include "library/api/mpi_parameters.hpp"

namespace vecmpi::intercept {

using library::Parameters;

// Functions of which the table tells names of parameters.
template <class F>
concept Named = requires {
    sizeof(Parameters<F>);
};

template <auto function, size_t... I, class... A>
[[gnu::always_inline]] inline auto call_with(std::index_sequence<I...>, const A&... a) noexcept {
    return function(std::get<I>(std::tie(a...))...);
}

// Calls the function with the first `count` of the arguments.
template <auto function, size_t count, class... A>
[[gnu::always_inline]] inline auto call_with_first(const A&... a) noexcept {
    return call_with<function>(std::make_index_sequence<count>{}, a...);
}

template <size_t place, class... A>
[[gnu::always_inline]] inline auto argument(const A&... a) noexcept {
    return std::get<place>(std::tie(a...));
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
