// SPDX-License-Identifier: BSD-3-Clause
#include "left_calls.hpp"

#include "plans_by_handle.hpp"
#include "type_rows.hpp"

namespace vecmpi::datatype {

namespace {

struct Left {
    TypedCall call{};
    uint64_t gone_before = 0;
};
constexpr unsigned places = 16;
constinit thread_local Left left_calls[places] __attribute__((tls_model("initial-exec"))){};

Left& place_of(const TypedCall& call) noexcept {
    constexpr unsigned spread = 5;
    return left_calls[(library::key_of_handle(call.type) +
                       spread * static_cast<unsigned>(call.way)) %
                      places];
}

}  // namespace

bool is_left(const TypedCall& call) noexcept {
    const Left& left = place_of(call);
    return left.call == call && left.gone_before == handles_gone.load(std::memory_order_relaxed);
}

// A report counts each of them.
void leave(const TypedCall& call, uint64_t gone_before) noexcept {
    if (!types_are_reported.load(std::memory_order_relaxed)) place_of(call) = {call, gone_before};
}

}  // namespace vecmpi::datatype
