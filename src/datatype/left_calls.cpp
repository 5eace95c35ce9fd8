// SPDX-License-Identifier: BSD-3-Clause
#include "left_calls.hpp"

#include "plans_by_handle.hpp"
#include "type_rows.hpp"

namespace vecmpi::datatype {

constinit thread_local LeftCall left_calls[left_places]
    __attribute__((tls_model("initial-exec"))){};

// A report counts each of them.
void leave(const TypedCall& call, uint64_t gone_before) noexcept {
    if (!types_are_reported.load(std::memory_order_relaxed)) place_of(call) = {call, gone_before};
}

}  // namespace vecmpi::datatype
