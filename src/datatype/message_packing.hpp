// SPDX-License-Identifier: BSD-3-Clause
// What UCX calls for a message of a datatype that is known to MessageTypes: the context is its
// MessageType. Inside src/datatype only.
#pragma once

#include "library/api.hpp"

namespace vecmpi::datatype {

extern const library::UcxOps packing_ops;

}  // namespace vecmpi::datatype
