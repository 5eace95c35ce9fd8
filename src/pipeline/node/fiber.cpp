// SPDX-License-Identifier: BSD-3-Clause
// Switches between stacks, by Boost.Context.
#include "fiber.hpp"

#include <memory>
#include <new>
#include <utility>

namespace vecmpi::pipeline::node {

namespace {

// As large as a thread's usually is: handlers of the program's signals run there, too. Pages that
// nobody touches take no memory.
boost::context::protected_fixedsize_stack stacks() noexcept {
    constexpr size_t stack_bytes = size_t{8} << 20;
    return boost::context::protected_fixedsize_stack(stack_bytes);
}

// The stack is used again.
struct KeptStack {
    void deallocate(boost::context::stack_context&) noexcept {}
};

}  // namespace

bool Fiber::make_stack() noexcept {
    try {
        stack_ = stacks().allocate();
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

// Boost would unwind it by an exception, through functions that throw none.
Fiber::~Fiber() {
    if (inside_)
        new boost::context::fiber(std::move(inside_));
    else if (stack_)
        stacks().deallocate(*stack_);
}

void Fiber::begin(Function function, void* context) noexcept {
    const boost::context::preallocated place(stack_->sp, stack_->size, *stack_);
    inside_ = boost::context::fiber(std::allocator_arg, place, KeptStack{},
                                    [=, this](boost::context::fiber&& caller) {
                                        outside_ = std::move(caller);
                                        function(context);
                                        return std::move(outside_);
                                    });
}

bool Fiber::go_on() noexcept {
    if (awaited_ && !awaited_->look(awaited_->context)) return false;
    awaited_.reset();
    inside_ = std::move(inside_).resume();
    return !inside_;
}

void Fiber::leave_off() noexcept { outside_ = std::move(outside_).resume(); }

}  // namespace vecmpi::pipeline::node
