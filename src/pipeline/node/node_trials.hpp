// SPDX-License-Identifier: BSD-3-Clause
// Which transport serves which collective of which size on this node: a trial for each, on the
// program's own calls.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "base/api/profile.hpp"
#include "base/api/trial.hpp"
#include "kernels/api.hpp"
#include "pipeline/turn_row.hpp"

namespace vecmpi::pipeline::node {

// The candidates of a trial, in the order of preference, are the transports. What a line carries
// counts as copied in and out.
static_assert(number_of_transports == base::Trial::most_candidates);

inline constexpr bool fits_line(size_t bytes) noexcept { return bytes <= kernels::line_data_bytes; }

// Sizes from a power of two up to the next have a trial in common; 0 bytes have one, and 1 GiB and
// more. What a line carries and what it does not are never of one class.
constexpr unsigned size_classes = 32;
constexpr unsigned size_class(size_t bytes) noexcept {
    const size_t rounded = fits_line(bytes) ? bytes : std::max(bytes, kernels::line_data_bytes + 8);
    return std::min(static_cast<unsigned>(std::bit_width(rounded)), size_classes - 1);
}
static_assert(size_class(kernels::line_data_bytes) < size_class(kernels::line_data_bytes + 1));

// A call of so many bytes is long: a slow candidate shows at once, and costs much.
constexpr size_t long_bytes = size_t{1} << 20;

// Staging buffers take 1 to 2 ms to make. A communicator's few long calls must not pay for that, so
// long calls that have moved less than this together are the library's. moved: by those before.
constexpr uint64_t moved_before_staging = uint64_t{32} << 20;
constexpr bool are_few_long_calls(size_t bytes, uint64_t moved) noexcept {
    return bytes >= long_bytes && moved < moved_before_staging;
}

// By collective and class: the winner, or Trial::open.
using FoundTransports = std::array<std::array<uint8_t, size_classes>, number_of_collectives>;
// What earlier communicators leave to a new one.
struct FoundOnNode {
    FoundTransports transports;
    std::array<uint8_t, number_of_collectives> called_off{};  // turns, as of NodeComm
};
static_assert(std::is_trivially_copyable_v<FoundOnNode>);

class NodeTrials {
  public:
    RowTrial& of(Collective collective, size_t bytes) noexcept {
        return trials_[static_cast<size_t>(collective)][size_class(bytes)];
    }
    // Nothing is tried that was found before.
    void adopt(const FoundTransports& found) noexcept;

  private:
    RowTrial trials_[number_of_collectives][size_classes];
};

// What this process has found on communicators of so many ranks of its node, and what the host's
// profile says.
FoundOnNode found_on_node(int ranks) noexcept;
void remember_called_off(int ranks, Collective collective, unsigned turns) noexcept;
void remember_transport(int ranks, Collective collective, size_t bytes, unsigned winner) noexcept;

// For the log.
struct ShownTrial {
    Collective collective;
    size_t bytes;
    base::Trial::Times times;  // ns
    unsigned winner;
};
void show_trial(const ShownTrial& trial) noexcept;

}  // namespace vecmpi::pipeline::node
