// SPDX-License-Identifier: BSD-3-Clause
// Part of the door of src/offload: when one-sided calls must come to us at all.
#pragma once

namespace vecmpi::offload {

// What a one-sided transfer of a derived type takes. A process without both never sees us in its
// one-sided calls.
enum class TransferPart : unsigned { window = 1u << 0, derived_type = 1u << 1 };
// Before the first of each is used. Any thread.
void note_transfer_part(TransferPart part) noexcept;

}  // namespace vecmpi::offload
