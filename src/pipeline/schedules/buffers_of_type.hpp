// SPDX-License-Identifier: BSD-3-Clause
// Buffers of one of a call's types, for collectives that move packed data. For the files of this
// folder that prepare a collective.
#pragma once

#include "prepared_collective.hpp"

namespace vecmpi::pipeline {

// A collective that goes on after its call keeps the type. May throw std::bad_alloc.
class BuffersOfType {
  public:
    BuffersOfType(const CollectiveCall& call, const Candidate& by, MPI_Datatype type,
                  PreparedCollective& prepared)
        : prepared_(prepared),
          comm_(by.own->comm()),
          type_(type),
          reference_(prepared.types.size()) {
        const bool is_persistent = call.form.kind == CollectiveForm::Kind::persistent;
        if (!call.form.is_blocking())
            prepared.types.emplace_back(type,
                                        is_persistent ? datatype::Uses::many : datatype::Uses::one);
    }
    datatype::PackedBuffer at(const void* buffer, MPI_Count count) const noexcept {
        if (reference_ < prepared_.types.size())
            return {buffer, count, prepared_.types[reference_], comm_};
        return {buffer, count, type_, comm_};
    }

  private:
    const PreparedCollective& prepared_;
    const MPI_Comm comm_;
    const MPI_Datatype type_;
    const size_t reference_;  // in prepared_.types; behind its end: none
};

}  // namespace vecmpi::pipeline
