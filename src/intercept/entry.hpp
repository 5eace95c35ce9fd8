// SPDX-License-Identifier: BSD-3-Clause
// Where the program comes in, made of a class of handler_classes.hpp. The templates are static: GCC
// lays the cold parts of a function apart only where it stands in one object file alone. Not a
// door: src/intercept only.
#pragma once

#include <type_traits>

#include "datatype/api.hpp"
#include "error_handlers.hpp"
#include "file_data.hpp"
#include "handler_classes.hpp"
#include "moved_bytes.hpp"
#include "timed_call.hpp"
#include "typed_messages.hpp"
#include "typed_transfers.hpp"

namespace vecmpi::intercept {

struct NoScope {};
template <class Class>
using WaitScope = std::conditional_t<Class::blocks, library::BlockingCall, NoScope>;

// May be left by an exception: of a callback, or of an error handler function. Nothing of ours is
// left on the stack when finish() calls a function of the program.
template <class Class, class... A>
static int enter(A... a) {
    if constexpr (Class::plans) datatype::make_wanted_message_plans();
    int rc;
    {
        [[maybe_unused]] const WaitScope<Class> waits;
        rc = Class::serve(a...);
    }
    if constexpr (Class::plans || Class::blocks) offload::look_after_freed_requests();
    return finish(rc);
}

// The same for the report; cold, so that it lies apart.
template <class Class, class... A>
[[gnu::cold]] static int timed(A... a) {
    int rc;
    {
        TimedCall timing{Class::Function::call, Class::path};
        add_moved_bytes<Class>(timing, a...);
        [[maybe_unused]] const WaitScope<Class> waits;
        if constexpr (Class::plans) datatype::make_wanted_message_plans();
        rc = Class::serve(a...);
        if constexpr (Class::plans || Class::blocks) offload::look_after_freed_requests();
    }
    return finish(rc);
}

template <class Class>
using SignatureOf = typename Class::Function::Signature;

template <class Class>
constexpr SignatureOf<Class> entry_function = enter<Class>;

// Null for what comes before the engine runs, or ends it: not timed.
template <class Class>
constexpr SignatureOf<Class> timed_function = timed<Class>;
template <class Class>
requires(Class::when == When::always) constexpr SignatureOf<Class> timed_function<Class> = nullptr;

// One of these must exist for a call to come to us that comes when needed.
template <class Class>
constexpr unsigned needs_of =
    Class::when != When::needed
        ? 0
        : Class::needs | (Class::plans ? Need::message_plans : 0) |
              (Class::blocks ? Need::sleepers : 0) |
              (Class::plans || Class::blocks ? Need::freed_requests : 0) | Need::error_handlers;

}  // namespace vecmpi::intercept
