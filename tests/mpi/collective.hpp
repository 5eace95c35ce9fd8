// SPDX-License-Identifier: BSD-3-Clause
// A random collective operation with its buffers and known result, in blocking, nonblocking or
// persistent form.
#pragma once

#include <memory>

#include "groups.hpp"

namespace battery {

enum class Form { blocking, nonblocking, persistent };

// Makes one of the three calls with the same arguments.
template <auto Blocking, auto Nonblocking, auto Persistent, class... Arguments>
void call(Form form, MPI_Request* request, Arguments... arguments) {
    if (form == Form::blocking) Blocking(arguments...);
    if (form == Form::nonblocking) Nonblocking(arguments..., request);
    if (form == Form::persistent) Persistent(arguments..., MPI_INFO_NULL, request);
}

class Collective {
  public:
    Collective(const Group& group, Form form, uint64_t id) : group_(group), form_(form), id_(id) {}
    virtual ~Collective() = default;
    virtual void fill() = 0;   // inputs; before each start
    virtual void issue() = 0;  // the call; a persistent one is still to be started
    virtual void judge(Digest& digest) = 0;

    MPI_Request request = MPI_REQUEST_NULL;

  protected:
    const Group& group_;
    Form form_;
    uint64_t id_;
};

using CollectivePtr = std::unique_ptr<Collective>;

// `shared` has the same state on the group's members, `own` need not.
CollectivePtr random_collective(Random& shared, Random& own, const Group& group, Form form);
// Its three families.
CollectivePtr random_movement(Random& shared, Random& own, const Group& group, Form form);
CollectivePtr random_reduction(Random& shared, Random& own, const Group& group, Form form);
CollectivePtr random_bcast(Random& shared, Random& own, const Group& group, Form form);

}  // namespace battery
