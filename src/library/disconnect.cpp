// SPDX-License-Identifier: BSD-3-Clause
// Interposes ucp_disconnect_nb, which MPICH 4.0's ch4:ucx calls in MPI_Finalize for each rank, and
// waits for. UCX's TCP then asks the peer for an answer. A peer that has all of its own answers is
// in the launcher's barrier and makes no progress: the wait never ends. Flushes beforehand do not
// help, since an answer is a message, and after each message UCX asks again. So the library is told
// that its endpoints are disconnected, and ucp_worker_destroy, behind that barrier, ends them.
#include <atomic>

#include "callers_choices.hpp"

namespace vecmpi::library {
namespace {

constinit CallersChoices disconnect_functions("ucp_disconnect_nb");
constinit std::atomic<bool> disconnects{true};

using Disconnect = void* (*)(void* endpoint);

void* disconnect(void* endpoint, uintptr_t caller) noexcept {
    const CallersChoice choice = disconnect_functions.for_caller(caller);
    if (!disconnects.load(std::memory_order_relaxed) && is_of_mpi_library(choice))
        return nullptr;  // UCS_OK: done, and no request
    return reinterpret_cast<Disconnect>(choice.address)(endpoint);
}

}  // namespace

void disconnect_endpoints(bool on) noexcept { disconnects.store(on, std::memory_order_relaxed); }

}  // namespace vecmpi::library

// UCX's prototype: ucs_status_ptr_t ucp_disconnect_nb(ucp_ep_h), both of which are pointers.
// Whoever calls was linked to UCX, so there is a definition.
extern "C" __attribute__((visibility("default"))) void* ucp_disconnect_nb(void* endpoint) noexcept {
    return vecmpi::library::disconnect(endpoint,
                                       reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
}
