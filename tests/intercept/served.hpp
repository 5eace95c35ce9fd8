// SPDX-License-Identifier: BSD-3-Clause
// The entries of the function table by the function that they serve, made here: the library makes
// all of them, and with them what needs an engine.
#pragma once

#include "entry.hpp"
#include "intercept/mpi_handlers.hpp"
#include "pipeline/node/api.hpp"

namespace vecmpi::intercept {

template <class F>
struct ClassOf;
#define HANDLER(name, ...)        \
    template <>                   \
    struct ClassOf<calls::name> { \
        using Type = __VA_ARGS__; \
    };
#define CONVERTER(name, function)
#define NO_HANDLER(name)
#include "intercept/mpi_handlers.def"
#undef HANDLER
#undef CONVERTER
#undef NO_HANDLER

}  // namespace vecmpi::intercept

namespace vecmpi::test {

template <class F>
using ClassOf = typename intercept::ClassOf<F>::Type;

template <class F>
constexpr auto enter = intercept::entry_function<ClassOf<F>>;
template <class F>
constexpr auto timed = intercept::timed_function<ClassOf<F>>;

}  // namespace vecmpi::test
