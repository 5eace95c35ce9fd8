// SPDX-License-Identifier: BSD-3-Clause
// One reduction through staging buffers, step by step: at once by a caller that waits in here, or
// look by look by a job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "base/api.hpp"
#include "combining.hpp"
#include "pipeline/operands.hpp"
#include "staging_buffer.hpp"

namespace vecmpi::pipeline::node {

class StagedCollectives;

// For the other ranks: in advance(), or by calling it again.
enum class Waits : uint8_t { here, elsewhere };

// One round; everyone who gets the result reads everything.
class DirectRun {
  public:
    DirectRun(StagedCollectives& staged, const Operands& what, const CombiningOrder& order,
              bool gets_result) noexcept;
    // True when it is done. Not called again then.
    template <Waits waits>
    bool advance() noexcept;

  private:
    StagedCollectives& staged_;
    const Operands what_;
    const CombiningOrder& order_;
    SlotRing& ring_;
    const uint64_t round_;
    const bool gets_result_;
    bool given_ = false;
};

enum class ResultPlace : uint8_t { on_all, on_root, in_slices };

// Each rank reduces its slice of the vector. Round k moves the k-th part of every slice. A rank's
// slot holds what it has of every slice, one behind the other; in the place of its own slice it
// holds the result. The caller has cut the vector into slices before.
class SlicedRun {
  public:
    SlicedRun(StagedCollectives& staged, const Operands& what, const CombiningOrder& order,
              ResultPlace result, int root) noexcept;
    // True when it is done. Not called again then.
    template <Waits waits>
    bool advance() noexcept;

  private:
    uint64_t number(int64_t k) const noexcept { return first_ + static_cast<uint64_t>(k); }
    Segment part(int rank, int64_t k) const noexcept;
    unsigned char* in_slot(int owner, int64_t k, int slice) const noexcept {
        return ring_.slot(owner, number(k)) + static_cast<size_t>(slice) * part_bytes_;
    }
    void give(int64_t k) noexcept;
    void reduce(int64_t k) noexcept;
    void collect(int rank, int64_t k) noexcept;

    StagedCollectives& staged_;
    const Operands what_;
    const CombiningOrder& order_;
    SlotRing& ring_;
    const ResultPlace result_;
    const int me_;
    const bool others_collect_, collects_;
    size_t part_bytes_;
    int64_t in_part_, rounds_;
    uint64_t first_;
    // How far it is.
    int64_t given_ = 0, reduced_ = 0, ended_ = 0;  // rounds
    int collected_ = 0;                            // other ranks' parts of the round
};

using AllreduceRun = std::variant<DirectRun, SlicedRun>;

}  // namespace vecmpi::pipeline::node
