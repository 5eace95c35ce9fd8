// SPDX-License-Identifier: BSD-3-Clause
// A function that leaves off where it would wait, and goes on when somebody looks at it again, in
// whatever thread then. It runs on a stack of its own. Must not be used for functions that touch
// thread-local variables on both sides of a wait: a compiler keeps their addresses.
#pragma once

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <optional>

namespace vecmpi::pipeline::node {

class Fiber {
  public:
    Fiber() = default;
    // One whose function has not returned keeps its stack for ever.
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    // Before the first function. False: out of memory.
    bool make_stack() noexcept;
    // function(context) runs in go_on(), by one thread at a time, and the next function when this
    // one has returned.
    using Function = void (*)(void* context) noexcept;
    void begin(Function function, void* context) noexcept;
    // True: it has returned.
    bool go_on() noexcept;

    // In the function: returns when look() is true.
    template <class Look>
    void await(const Look& look) noexcept {
        if (look()) return;
        awaited_ = {
            [](const void* context) noexcept { return (*static_cast<const Look*>(context))(); },
            &look};
        leave_off();
    }

  private:
    void leave_off() noexcept;

    struct Awaited {
        bool (*look)(const void* context) noexcept;
        const void* context;
    };
    std::optional<boost::context::stack_context> stack_;
    boost::context::fiber inside_, outside_;
    std::optional<Awaited> awaited_;
};

}  // namespace vecmpi::pipeline::node
