// SPDX-License-Identifier: BSD-3-Clause
// One call of a collective that may be served over several nodes: what all candidates must know of
// it, looked at once.
#pragma once

#include <optional>

#include "block_side.hpp"
#include "offload/api.hpp"
#include "pipeline/api/form.hpp"
#include "pipeline/node/api.hpp"

namespace vecmpi::pipeline {

// Out of memory after all ranks have agreed on a path: this rank cannot leave it alone. The
// program's error handler decides.
int out_of_memory(MPI_Comm comm) noexcept;

bool is_commutative(MPI_Op op) noexcept;

// Why our paths leave a call to the library. Several paths may be asked one after the other. One
// reason is counted, and none where a path serves the call.
class Decline {
  public:
    Decline() noexcept : is_counted_(node::take_node_decline()) {}
    // The first reason stays, unless it is that a path was not set: that says little.
    void note(Counter why) noexcept {
        if (why_ == none || why_ == Counter::decline_setting) why_ = why;
    }
    // At the end. Returns `served`.
    std::optional<int> count_unless(std::optional<int> served) noexcept {
        if (!served && !is_counted_ && why_ != none) count(why_);
        return served;
    }

  private:
    static constexpr Counter none = Counter::number_of_counters;
    Counter why_ = none;
    bool is_counted_;  // by the node's collectives, which were asked before
};

struct CollectiveCall {
    const CollectiveForm& form;
    const Collective collective;  // whose settings, rules and trials hold
    const MPI_Comm comm;
    const int root = 0;
    const MPI_Op op = MPI_OP_NULL;  // of a reduction
    Decline decline{};
    bool is_librarys = false;  // the library's own call won a trial, or it is its turn
    // From look_at() on.
    offload::CommTraits traits{};
    int rank = 0;

    bool is_root() const noexcept { return rank == root; }
    int ranks() const noexcept { return traits.size; }

    // Looks at the communicator. False: the library's call, and mostly a reason is noted. On one
    // node and with nothing set that is without a question to the library. type, count: known to
    // all ranks. A blocking call makes the private communicator that a nonblocking one wanted.
    bool look_at(MPI_Datatype type, MPI_Count count) noexcept;
    // May the library refuse one side of the call, on this rank alone perhaps, and the program see
    // that? One without blocks means nothing.
    bool may_be_refused(const BlockSide& side) const noexcept;
    // Is the communicator known to span several nodes? Only one as large as the world is, before
    // its ranks have asked each other.
    bool spans_world() const noexcept;

    // The end of a call that is the library's.
    std::optional<int> leave() noexcept { return decline.count_unless({}); }

  private:
    bool may_be_refused(MPI_Datatype type) const noexcept;
};

}  // namespace vecmpi::pipeline
