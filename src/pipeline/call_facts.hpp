// SPDX-License-Identifier: BSD-3-Clause
// What the collectives of this folder share: facts of a call's arguments.
#pragma once

#include <optional>

#include "offload/api.hpp"
#include "operands.hpp"
#include "pipeline/node/api.hpp"

namespace vecmpi::pipeline {

// Out of memory after all ranks agreed to cut: this rank cannot leave alone, so the program's error
// handler decides.
int out_of_memory(MPI_Comm comm) noexcept;

bool is_user_op(MPI_Op op) noexcept;  // made by MPI_Op_create
bool is_commutative(MPI_Op op) noexcept;

// Why our paths leave a call to the library. Several may be asked one after the other: one reason
// is counted, and none where a path serves the call.
class Decline {
  public:
    Decline() noexcept : is_counted_(node::take_node_decline()) {}
    // The first reason stays. That a path was not set says little: the path that was may decline
    // for a reason of its own.
    void note(Counter why) noexcept {
        if (why_ == none || why_ == Counter::decline_setting) why_ = why;
    }
    // At the end: gives back what it was given.
    std::optional<int> count_unless(std::optional<int> served) noexcept {
        if (!served && !is_counted_ && why_ != none) count(why_);
        return served;
    }

  private:
    static constexpr Counter none = Counter::number_of_counters;
    Counter why_ = none;
    bool is_counted_;  // by the node's collectives, which were asked before
};

// Facts that every collective of ours needs of its communicator; nothing where it cannot be cut at
// all.
std::optional<offload::CommTraits> traits_to_cut(MPI_Comm comm, MPI_Datatype type, MPI_Count count,
                                                 Decline& decline) noexcept;
// Of a second type of the call: may the library refuse it, and the program see that?
bool may_be_refused(const offload::CommTraits& traits, MPI_Datatype type, MPI_Comm comm) noexcept;

}  // namespace vecmpi::pipeline
