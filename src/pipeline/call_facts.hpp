// SPDX-License-Identifier: BSD-3-Clause
// What the collectives of this folder share: facts of a call's arguments.
#pragma once

#include <optional>

#include "offload/api.hpp"
#include "operands.hpp"
#include "pipeline/node/api.hpp"

namespace vecmpi::pipeline {

// Out of memory after all ranks have agreed on a path: this rank cannot leave it alone. The
// program's error handler decides.
int out_of_memory(MPI_Comm comm) noexcept;

bool is_user_op(MPI_Op op) noexcept;  // made by MPI_Op_create
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
    // The library's own call won, or it is its turn: no path is asked any more.
    void leave_to_library() noexcept { is_librarys_ = true; }
    bool is_librarys() const noexcept { return is_librarys_; }
    // At the end. Returns `served`.
    std::optional<int> count_unless(std::optional<int> served) noexcept {
        if (!served && !is_counted_ && why_ != none) count(why_);
        return served;
    }

  private:
    static constexpr Counter none = Counter::number_of_counters;
    Counter why_ = none;
    bool is_librarys_ = false;
    bool is_counted_;  // by the node's collectives, which were asked before
};

// What every collective of ours must know of its communicator. Nothing, and mostly a reason: no
// path of ours serves it.
std::optional<offload::CommTraits> traits_to_cut(MPI_Comm comm, MPI_Datatype type, MPI_Count count,
                                                 Decline& decline) noexcept;
// Is it known to span several nodes? Only a communicator as large as the world is, before its ranks
// have asked each other.
bool spans_world(const offload::CommTraits& traits) noexcept;
// May the library refuse a second type of the call, and the program see that?
bool may_be_refused(const offload::CommTraits& traits, MPI_Datatype type, MPI_Comm comm) noexcept;

}  // namespace vecmpi::pipeline
