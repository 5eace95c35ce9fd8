// SPDX-License-Identifier: BSD-3-Clause
// The table of communicators that have a NodeComm, or may get one.
#pragma once

#include "node_comm.hpp"
#include "pipeline/api/form.hpp"

namespace vecmpi::pipeline::node {

// What is known of a communicator before a call on it.
struct NodeSite {
    NodeComm* node = nullptr;
    bool undecided = false;  // no NodeComm yet, but perhaps from some call on
    int rank = 0, ranks = 0;
    bool declined() const noexcept { return node == nullptr && !undecided; }
    bool has(int root) const noexcept { return root >= 0 && root < ranks; }
};
NodeSite node_site(MPI_Comm comm) noexcept;
// The same at the begin of a collective, refused or not: all ranks count nonblocking ones alike.
inline NodeSite node_site(const CollectiveForm& form, MPI_Comm comm) noexcept {
    const NodeSite site = node_site(comm);
    if (form.kind == CollectiveForm::Kind::nonblocking && site.node != nullptr &&
        offload::jobs_are_served())
        site.node->note_nonblocking();
    return site;
}
// While it stays the same, no communicator that had an entry was given up.
uint64_t node_sites_epoch() noexcept;
// For a call that can run on the node and that the library would not refuse: all ranks ask for the
// same calls. The first calls_before_sharing() of them only count, one with much data for many. The
// next one makes the NodeComm, collectively. Null: the library's collective, or another of ours, on
// all ranks.
NodeComm* node_comm_for(const NodeSite& site, Call call, MPI_Comm comm, size_t bytes) noexcept;

}  // namespace vecmpi::pipeline::node
