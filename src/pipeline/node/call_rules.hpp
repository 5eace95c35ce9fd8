// SPDX-License-Identifier: BSD-3-Clause
// What the collectives that one node serves have in common. Each: 1. How many bytes, and are they
// ours? 2. Can there be a NodeComm, and would the library not refuse the call? 3. Who serves it,
// the library or we? 4. What fits into a line goes through the NodeComm; the rest goes through its
// staging buffers, as a StagedWork.
#pragma once

#include <new>
#include <utility>

#include "node_site.hpp"
#include "pipeline/node/api.hpp"
#include "staged_work.hpp"

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

// Names a communicator to pack for. A nonblocking call's own may be freed before it ends.
inline MPI_Comm comm_to_pack_for(const CollectiveForm& form, MPI_Comm comm) noexcept {
    return form.is_blocking() ? comm : MPI_COMM_SELF;
}

struct CallSize {
    Collective collective;
    size_t bytes;  // equal on all ranks; 0 where they are not
    size_t moved;  // for the report
};

// A nonblocking or persistent form, by a queue.
struct LaterCall {
    std::shared_ptr<NodeQueue> queue;
    Transport by;
};
// Nothing where the call is not served, on all ranks.
std::optional<LaterCall> later_call(const CollectiveForm& form, const NodeSite& site, MPI_Comm comm,
                                    const CallSize& size) noexcept;
std::optional<int> keep_for_starts(const CollectiveForm& form, MPI_Comm comm, LaterCall later,
                                   std::unique_ptr<StagedWork> work) noexcept;

// False without memory.
bool keep_types(StagedWork& work) noexcept;

// The others do not go back: without memory the call returns when it is done.
template <class Work>
int post_work(const CollectiveForm& form, MPI_Comm comm, const LaterCall& later,
              Work&& work) noexcept {
    using Job = OwningJob<Work>;
    void* const place = keep_types(work) ? ::operator new(sizeof(Job), std::nothrow) : nullptr;
    if (place != nullptr) {
        std::unique_ptr<offload::Job> job(new (place)
                                              Job(later.queue, std::forward<Work>(work), later.by));
        return offload::post_job(form.call, std::move(job), comm, form.request);
    }
    *form.request = MPI_REQUEST_NULL;
    Job now(later.queue, std::forward<Work>(work), later.by);
    return offload::run_job(now, comm);
}

// The communicator's error handler hears of an error.
inline int served(Call call, size_t bytes, MPI_Comm comm, int error = MPI_SUCCESS) noexcept {
    offload::note_return_from_memory();
    count_call(static_cast<size_t>(call), Path::on_node, bytes);
    if (error != MPI_SUCCESS) real.Comm_call_errhandler(comm, error);
    return error;
}

// in_line(NodeComm) -> error: serves a blocking call whose data fit into a line.
template <class Work, class InLine>
std::optional<int> serve(const CollectiveForm& form, const NodeSite& site, MPI_Comm comm,
                         const CallSize& size, Work&& work, const InLine& in_line) noexcept {
    if (form.is_blocking()) {
        NodeComm* const node = node_comm_for(site, form.call, comm, size.bytes);
        if (node == nullptr) return std::nullopt;
        const NodeCall use = node->begin_call(form.call, comm, size.collective, size.bytes);
        if (use.node == nullptr) return std::nullopt;
        return served(
            form.call, size.moved, comm,
            use.staged == nullptr ? in_line(*use.node) : work.run(*use.node, use.transport));
    }
    std::optional<LaterCall> later = later_call(form, site, comm, size);
    if (!later) return std::nullopt;
    count_call(static_cast<size_t>(form.call), Path::on_node, size.moved);
    if (form.kind == CollectiveForm::Kind::nonblocking)
        return post_work(form, comm, *later, std::forward<Work>(work));
    std::unique_ptr<StagedWork> kept(new (std::nothrow) Work(std::forward<Work>(work)));
    return keep_for_starts(form, comm, std::move(*later), std::move(kept));
}
// The same where nothing goes in lines.
template <class Work>
std::optional<int> serve(const CollectiveForm& form, const NodeSite& site, MPI_Comm comm,
                         const CallSize& size, Work&& work) noexcept {
    return serve(form, site, comm, size, std::forward<Work>(work),
                 [](NodeComm&) noexcept { return MPI_ERR_INTERN; });
}

}  // namespace vecmpi::pipeline::node
