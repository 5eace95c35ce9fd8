// SPDX-License-Identifier: BSD-3-Clause
// How a wait in the engine sleeps.
#include "sleeping_wait.hpp"

#include "base/api.hpp"

namespace vecmpi::offload {

void SleepingWait::prepare(bool at_door) noexcept {
    if (at_door) door_ = lie_down_at_door();
    if (library::library_wakes()) library::arm_next_polls();
}

void SleepingWait::leave_door() noexcept {
    if (std::exchange(door_, -1) >= 0) get_up_from_door();
}

bool SleepingWait::sleep() noexcept {
    const bool slept = library::sleep_if_armed(library::longest_sleep_us, door_);
    leave_door();
    refusals_ = slept ? 0 : refusals_ + 1;
    return slept;
}

}  // namespace vecmpi::offload
