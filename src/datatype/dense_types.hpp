// SPDX-License-Identifier: BSD-3-Clause
// Types whose stream lies in memory as it is. Inside src/datatype and its tests only.
#pragma once

#include <optional>

#include "type_map.hpp"

namespace vecmpi::datatype {

struct DenseStream {
    int64_t low = 0;              // from the buffer's address to its first byte
    bool is_of_elements = false;  // one behind the other; else one element alone is dense
};

// Pure. Nothing: the stream of an element has gaps, or another order than memory.
std::optional<DenseStream> dense_stream(const TypeMap& map, int64_t extent) noexcept;

}  // namespace vecmpi::datatype
