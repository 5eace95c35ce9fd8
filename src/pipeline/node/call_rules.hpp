// SPDX-License-Identifier: BSD-3-Clause
// What the collectives that one node serves have in common. Each: 1. How many bytes, and are they
// ours? 2. Can there be a NodeComm, and would the library not refuse the call? 3. Who serves it,
// the library or we? 4. What fits into a line goes through the NodeComm; the rest goes through its
// staging buffers.
#pragma once

#include "node_site.hpp"
#include "pipeline/node/api.hpp"

namespace vecmpi::pipeline::node {

// Where the user named a path or segments, those run. A line is never cut.
inline bool is_automatic(Collective collective, size_t bytes) noexcept {
    return bytes != 0 && settings().paths_of(collective).at(bytes) == CollectivePath::automatic;
}
inline bool is_ours(Collective collective, size_t bytes) noexcept {
    return is_automatic(collective, bytes) && settings().segments == 0 &&
           settings().segment_bytes == 0;
}
inline bool is_ours_or_line(Collective collective, size_t bytes) noexcept {
    return fits_line(bytes) ? is_automatic(collective, bytes) : is_ours(collective, bytes);
}

// Without a node: not by us.
inline NodeCall node_call(const NodeSite& site, Call call, MPI_Comm comm, Collective collective,
                          size_t bytes) noexcept {
    NodeComm* const node = node_comm_for(site, call, comm, bytes);
    if (node == nullptr) return {};
    return node->begin_call(call, comm, collective, bytes);
}

// The communicator's error handler hears of an error.
inline int served(Call call, size_t bytes, MPI_Comm comm, int error = MPI_SUCCESS) noexcept {
    count_call(static_cast<size_t>(call), Path::on_node, bytes);
    if (error != MPI_SUCCESS) real.Comm_call_errhandler(comm, error);
    return error;
}

}  // namespace vecmpi::pipeline::node
