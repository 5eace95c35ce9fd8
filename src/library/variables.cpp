// SPDX-License-Identifier: BSD-3-Clause
// The environment and control variables of a library. All changes are taken back.
#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "library/api.hpp"

namespace vecmpi::library {
namespace {

constexpr const char* rendezvous_threshold = "UCX_RNDV_THRESH";

// MPICH 4.0 lets yaksa reduce instead of its op functions unless this control variable is 0.
constexpr const char* yaksa_reduction = "MPIR_CVAR_ENABLE_YAKSA_REDUCTION";

// Swaps `value` with the value of an integer control variable. False where there is no such
// variable (MPI 4.0, 15.3.6).
bool swap_control_variable(const char* name, int& value) noexcept {
    int provided = 0, index = 0, count = 0, before = 0;
    MPI_T_cvar_handle handle = nullptr;
    // MPICH 4.0 takes the level of the last call for all calls: a lower one would switch off the
    // lock that a tool's threads hold.
    if (real.T_init_thread == nullptr ||
        real.T_init_thread(MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS)
        return false;
    bool swapped = false;
    if (real.T_cvar_get_index(name, &index) == MPI_SUCCESS &&
        real.T_cvar_handle_alloc(index, nullptr, &handle, &count) == MPI_SUCCESS) {
        swapped = count == 1 && real.T_cvar_read(handle, &before) == MPI_SUCCESS &&
                  real.T_cvar_write(handle, &value) == MPI_SUCCESS;
        real.T_cvar_handle_free(&handle);
    }
    // No MPI_T_finalize: MPICH 4.0's tool interface does not come back after the last one.
    if (swapped) value = before;
    return swapped;
}

// Yaksa accumulates into a strided window 13 times as fast (float, 1 in 2). So it comes back while
// there are windows. The target may accumulate at any time, not only in a call of its own.
class Yaksa {
  public:
    void leave_out() noexcept {
        const std::lock_guard lock(mutex_);
        int value = 0;
        left_out_ = swap_control_variable(yaksa_reduction, value);
        if (left_out_) own_value_ = value;
    }
    void take_back() noexcept {
        const std::lock_guard lock(mutex_);
        restore();
        left_out_ = false;
    }
    void add_windows(int more) noexcept {
        const std::lock_guard lock(mutex_);
        const int before = std::exchange(windows_, std::max(windows_ + more, 0));
        if (!left_out_ || (before == 0) == (windows_ == 0)) return;
        if (windows_ != 0) return restore();
        int value = 0;
        swap_control_variable(yaksa_reduction, value);
    }

  private:
    void restore() noexcept {
        int value = own_value_;
        if (left_out_) swap_control_variable(yaksa_reduction, value);
    }
    std::mutex mutex_;
    bool left_out_ = false;  // by us, which windows undo for a time
    int own_value_ = 1;
    int windows_ = 0;
};
constinit Yaksa yaksa;

}  // namespace

void reduce_by_op_functions() noexcept { yaksa.leave_out(); }
void reduce_as_before() noexcept { yaksa.take_back(); }
void note_windows(int more) noexcept { yaksa.add_windows(more); }

// The level of MPICH's MPI_Init: MPI_THREAD_SINGLE unless this variable says otherwise. Nothing for
// a value that the library will refuse.
std::optional<int> default_thread_level() noexcept {
    static constexpr struct {
        const char* name;
        int level;
    } levels[] = {{"MPI_THREAD_SINGLE", MPI_THREAD_SINGLE},
                  {"MPI_THREAD_FUNNELED", MPI_THREAD_FUNNELED},
                  {"MPI_THREAD_SERIALIZED", MPI_THREAD_SERIALIZED},
                  {"MPI_THREAD_MULTIPLE", MPI_THREAD_MULTIPLE}};
    const char* value = std::getenv("MPIR_CVAR_DEFAULT_THREAD_LEVEL");
    if (value == nullptr) return MPI_THREAD_SINGLE;
    for (const auto& [name, level] : levels)
        if (strcasecmp(value, name) == 0) return level;  // as the library compares
    return std::nullopt;
}

// NOLINTBEGIN(concurrency-mt-unsafe): in MPI_Init; UCX reads nothing but the environment
EagerUcx::EagerUcx(bool wanted) noexcept
    : set_(note_trait(Trait::eager_limit, true) && wanted &&
           std::getenv(rendezvous_threshold) == nullptr) {
    if (set_) setenv(rendezvous_threshold, "40K", 0);
}

EagerUcx::~EagerUcx() {
    if (set_) unsetenv(rendezvous_threshold);
}
// NOLINTEND(concurrency-mt-unsafe)

}  // namespace vecmpi::library
