// SPDX-License-Identifier: BSD-3-Clause
// Whether this process has what a one-sided transfer of a derived type takes.
#include <atomic>

#include "base/api/needs.hpp"
#include "offload/api/transfers.hpp"

namespace vecmpi::offload {

void note_transfer_part(TransferPart part) noexcept {
    static constinit std::atomic<unsigned> seen{0};
    constexpr unsigned all = static_cast<unsigned>(TransferPart::window) |
                             static_cast<unsigned>(TransferPart::derived_type);
    const auto bit = static_cast<unsigned>(part);
    unsigned found = seen.load(std::memory_order_acquire);
    // One modification order: of two threads that note at once, the later finds both.
    if ((found & bit) == 0) found = seen.fetch_or(bit, std::memory_order_acq_rel) | bit;
    if (found == all) set_need(Need::typed_transfers, true);
}

}  // namespace vecmpi::offload
