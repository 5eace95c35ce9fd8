// SPDX-License-Identifier: BSD-3-Clause
// Neighbourhood collectives on one node (MPI 4.0, 8.6). Ranks that are not neighbours may pass
// other counts, so nothing is decided by sizes: one trial serves all of a collective.
#include "call_rules.hpp"
#include "neighbour_run.hpp"
#include "neighbourhood.hpp"
#include "rank_blocks.hpp"

namespace vecmpi::pipeline::node {

namespace {

struct NeighbourCall {
    Collective collective;
    RankBlocks given, taken;  // by edge

    bool has_parts() const noexcept { return collective >= Collective::neighbor_alltoall; }
    const std::vector<EdgeSource>& edges_of(const Neighbourhood& hood) const noexcept {
        return collective == Collective::neighbor_alltoall ? hood.of_alltoall : hood.of_vectors;
    }
};

// Nothing where the call is the library's.
std::optional<Degrees> degrees_at(const NodeSite& site, MPI_Comm comm) noexcept {
    if (site.declined()) return std::nullopt;
    const Neighbourhood* const known = site.node == nullptr ? nullptr : site.node->neighbourhood();
    return known == nullptr ? degrees_of(comm) : known->degrees();
}

// What the library tests of a side without arrays, with and without neighbours.
bool is_fine(const RankBlocks& blocks, MPI_Count count, MPI_Comm comm) noexcept {
    RankBlocks one = RankBlocks::of_one(blocks.buffer, count, blocks.type, 0);
    one.is_written = blocks.is_written;
    return count == 0 || (blocks.buffer != MPI_IN_PLACE && one.are_fine(comm));
}

// `blocks` of them, one behind the other. The library does not look at the type of nothing.
RankBlocks blocks_in_a_row(const void* buffer, MPI_Count count, MPI_Datatype type,
                           int blocks) noexcept {
    RankBlocks all;
    all.buffer = buffer;
    all.counts = RankCounts(count);
    all.type = count == 0 ? MPI_BYTE : type;
    all.end = blocks;
    all.stride = count;
    return all;
}

bool is_fine_type(MPI_Datatype type, MPI_Comm comm) noexcept {
    return library::is_type_handle(type) && offload::is_committed(type, comm);
}

// Arrays mean nothing without neighbours.
bool is_fine(const RankBlocks& blocks, MPI_Comm comm) noexcept {
    if (blocks.types == nullptr && !is_fine_type(blocks.type, comm)) return false;
    return blocks.is_empty() || (blocks.buffer != MPI_IN_PLACE && blocks.are_fine(comm));
}

RankBlocks blocks_anywhere(const void* buffer, offload::RankArray counts, offload::RankArray displs,
                           MPI_Datatype type, const MPI_Datatype* types, int blocks) noexcept {
    return {buffer, RankCounts(counts), displs, type, types, 0, blocks};
}

class NeighbourExchange final : public StagedWork {
  public:
    NeighbourExchange(const NeighbourCall& what, MPI_Comm comm) noexcept
        : what_(what), given_in_use_(what.given), taken_in_use_(what.taken), comm_(comm) {}
    // 1. Pack. 2. Exchange. 3. Unpack what came.
    int run(NodeComm& node, Transport) noexcept override {
        Neighbourhood& hood = *node.neighbourhood();
        RankBlocks given_blocks = what_.given, taken_blocks = what_.taken;
        taken_blocks.partners = hood.sources.data();
        if (what_.has_parts()) given_blocks.partners = hood.destinations.data();
        const PackedBlocks taken(taken_blocks, hood.taken.data(), taken_blocks.end);
        const PackedBlocks given(given_blocks, hood.given.data(), given_blocks.end);
        int error = given.pack(comm_);
        const bool is_whole =
            NeighbourRun(*node.staged(), hood, what_.edges_of(hood), what_.has_parts()).run();
        if (const int unpacked = taken.unpack(comm_); error == MPI_SUCCESS) error = unpacked;
        return is_whole ? error : MPI_ERR_TRUNCATE;
    }
    void keep_arrays(int) override {
        what_.given.keep(arrays_);
        what_.taken.keep(arrays_);
    }
    void keep_types() override {
        what_.given.keep_types(arrays_);
        what_.taken.keep_types(arrays_);
    }

  private:
    NeighbourCall what_;
    KeptArrays arrays_;
    TypesInUse given_in_use_, taken_in_use_;
    MPI_Comm comm_;
};

// In a blocking call. Null: not by us.
NodeComm* node_with_neighbours(const CollectiveForm& form, const NodeSite& site,
                               MPI_Comm comm) noexcept {
    NodeComm* const node = node_comm_for(site, form.call, comm, 0);
    return node != nullptr && node->obtain_neighbourhood(form.call, comm) != nullptr ? node
                                                                                     : nullptr;
}

std::optional<int> serve_neighbours(const CollectiveForm& form, const NeighbourCall& what,
                                    NodeSite site, MPI_Comm comm) noexcept {
    if (form.is_blocking()) {
        NodeComm* const node = node_with_neighbours(form, site, comm);
        if (node == nullptr) return std::nullopt;
        site.node = node;
    }
    return serve(form, site, comm, {what.collective, 0, what.given.total_bytes()},
                 NeighbourExchange(what, comm_to_pack_for(form, comm)));
}

// A side without arrays.
struct EvenSide {
    const void* buffer;
    MPI_Count count;
    MPI_Datatype type;
};

std::optional<int> serve_even(const CollectiveForm& form, NeighbourCall what, const EvenSide& given,
                              const EvenSide& taken, MPI_Comm comm) noexcept {
    const NodeSite site = node_site(form, comm);
    const std::optional<Degrees> degrees = degrees_at(site, comm);
    if (!degrees) return std::nullopt;
    what.given =
        blocks_in_a_row(given.buffer, given.count, given.type, what.has_parts() ? degrees->out : 1);
    what.taken = blocks_in_a_row(taken.buffer, taken.count, taken.type, degrees->in);
    what.taken.is_written = true;
    if (!is_fine(what.given, given.count, comm) || !is_fine(what.taken, taken.count, comm))
        return std::nullopt;
    return serve_neighbours(form, what, site, comm);
}

}  // namespace

std::optional<int> neighbor_allgather(const CollectiveForm& form, const void* sendbuf,
                                      MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                                      MPI_Count recvcount, MPI_Datatype recvtype,
                                      MPI_Comm comm) noexcept {
    return serve_even(form, {Collective::neighbor_allgather, {}, {}},
                      {sendbuf, sendcount, sendtype}, {recvbuf, recvcount, recvtype}, comm);
}

std::optional<int> neighbor_allgatherv(const CollectiveForm& form, const void* sendbuf,
                                       MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                                       offload::RankArray recvcounts, offload::RankArray displs,
                                       MPI_Datatype recvtype, MPI_Comm comm) noexcept {
    const NodeSite site = node_site(form, comm);
    const std::optional<Degrees> degrees = degrees_at(site, comm);
    if (!degrees || (degrees->in != 0 && (recvcounts.missing() || displs.missing())))
        return std::nullopt;
    NeighbourCall what{Collective::neighbor_allgatherv, {}, {}};
    what.given = blocks_in_a_row(sendbuf, sendcount, sendtype, 1);
    what.taken = blocks_anywhere(recvbuf, recvcounts, displs, recvtype, nullptr, degrees->in);
    what.taken.is_written = true;
    if (!is_fine(what.given, sendcount, comm) || !is_fine(what.taken, comm)) return std::nullopt;
    return serve_neighbours(form, what, site, comm);
}

std::optional<int> neighbor_alltoall(const CollectiveForm& form, const void* sendbuf,
                                     MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                                     MPI_Count recvcount, MPI_Datatype recvtype,
                                     MPI_Comm comm) noexcept {
    return serve_even(form, {Collective::neighbor_alltoall, {}, {}}, {sendbuf, sendcount, sendtype},
                      {recvbuf, recvcount, recvtype}, comm);
}

std::optional<int> neighbor_alltoallv(const CollectiveForm& form, const void* sendbuf,
                                      offload::RankArray sendcounts, offload::RankArray sdispls,
                                      MPI_Datatype sendtype, void* recvbuf,
                                      offload::RankArray recvcounts, offload::RankArray rdispls,
                                      MPI_Datatype recvtype, MPI_Comm comm) noexcept {
    const NodeSite site = node_site(form, comm);
    const std::optional<Degrees> degrees = degrees_at(site, comm);
    if (!degrees || (degrees->out != 0 && (sendcounts.missing() || sdispls.missing())) ||
        (degrees->in != 0 && (recvcounts.missing() || rdispls.missing())))
        return std::nullopt;
    NeighbourCall what{Collective::neighbor_alltoallv, {}, {}};
    what.given = blocks_anywhere(sendbuf, sendcounts, sdispls, sendtype, nullptr, degrees->out);
    what.taken = blocks_anywhere(recvbuf, recvcounts, rdispls, recvtype, nullptr, degrees->in);
    what.taken.is_written = true;
    if (!is_fine(what.given, comm) || !is_fine(what.taken, comm)) return std::nullopt;
    return serve_neighbours(form, what, site, comm);
}

std::optional<int> neighbor_alltoallw(const CollectiveForm& form, const void* sendbuf,
                                      offload::RankArray sendcounts, offload::RankArray sdispls,
                                      const MPI_Datatype* sendtypes, void* recvbuf,
                                      offload::RankArray recvcounts, offload::RankArray rdispls,
                                      const MPI_Datatype* recvtypes, MPI_Comm comm) noexcept {
    const NodeSite site = node_site(form, comm);
    const std::optional<Degrees> degrees = degrees_at(site, comm);
    if (!degrees ||
        (degrees->out != 0 &&
         (sendcounts.missing() || sdispls.missing() || sendtypes == nullptr)) ||
        (degrees->in != 0 && (recvcounts.missing() || rdispls.missing() || recvtypes == nullptr)))
        return std::nullopt;
    NeighbourCall what{Collective::neighbor_alltoallw, {}, {}};
    what.given = blocks_anywhere(sendbuf, sendcounts, sdispls, MPI_BYTE, sendtypes, degrees->out);
    what.taken = blocks_anywhere(recvbuf, recvcounts, rdispls, MPI_BYTE, recvtypes, degrees->in);
    what.taken.is_written = true;
    if (!is_fine(what.given, comm) || !is_fine(what.taken, comm)) return std::nullopt;
    return serve_neighbours(form, what, site, comm);
}

}  // namespace vecmpi::pipeline::node
