// SPDX-License-Identifier: BSD-3-Clause
// Interposes MPII_Errhandler_set_cxx, by which the C++ bindings of MPI 2 in MPICH's family name the
// caller of each error handler that they make. Such a handler's function takes an object, which
// only the bindings can make.
#include <atomic>

#include "library/api.hpp"

namespace vecmpi::library {
namespace {

constinit std::atomic<CxxCaller (*)(CxxCaller) noexcept> answer{nullptr};

}  // namespace

void answer_cxx_callers(CxxCaller (*given)(CxxCaller) noexcept) noexcept {
    answer.store(given, std::memory_order_release);
}

}  // namespace vecmpi::library

extern "C" __attribute__((visibility("default"))) void MPII_Errhandler_set_cxx(
    MPI_Errhandler errhandler, void (*caller)()) noexcept {
    using SetCxx = void (*)(MPI_Errhandler, void (*)());
    using namespace vecmpi::library;
    const auto set = reinterpret_cast<SetCxx>(defined_elsewhere("MPII_Errhandler_set_cxx"));
    if (set == nullptr) return;
    const auto ask = answer.load(std::memory_order_acquire);
    auto chosen = reinterpret_cast<CxxCaller>(caller);
    if (ask != nullptr) chosen = ask(chosen);
    set(errhandler, reinterpret_cast<void (*)()>(chosen));
}
