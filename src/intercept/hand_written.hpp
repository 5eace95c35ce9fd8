// SPDX-License-Identifier: BSD-3-Clause
// Types of the hand-written handlers: what they serve, as mpi.h declares it. Not a door:
// src/intercept only.
#pragma once

#include <type_traits>

#include "library/api/call_types.hpp"

namespace vecmpi::intercept {

template <class Signature>
struct WithoutThrow;
template <class Result, class... A>
struct WithoutThrow<Result (*)(A...)> {
    using Type = Result(A...) noexcept;
};

template <class F>
using ByHand = typename WithoutThrow<typename F::Signature>::Type;

// The library calls functions of the program in it, which may throw.
template <class F>
using CallingBack = std::remove_pointer_t<typename F::Signature>;

}  // namespace vecmpi::intercept
