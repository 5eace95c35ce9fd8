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
    Call call;
    Collective collective;
    RankBlocks given, taken;  // by edge

    bool has_parts() const noexcept { return collective >= Collective::neighbor_alltoall; }
    const std::vector<EdgeSource>& edges_of(const Neighbourhood& hood) const noexcept {
        return collective == Collective::neighbor_alltoall ? hood.of_alltoall : hood.of_vectors;
    }
};

// Nothing where the call is the library's.
std::optional<Degrees> degrees_at(const NodeSite& site, MPI_Comm comm) noexcept {
    if (site.declined() || !real.Pack_c) return std::nullopt;
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
    RankBlocks all{buffer, RankCounts(counts), displs, type, types, 0, blocks};
    all.may_be_absolute = true;
    return all;
}

// 1. Pack. 2. Exchange. 3. Unpack what came.
int exchange(NeighbourCall& what, Neighbourhood& hood, StagedCollectives& staged,
             MPI_Comm comm) noexcept {
    what.taken.partners = hood.sources.data();
    if (what.has_parts()) what.given.partners = hood.destinations.data();
    const PackedBlocks taken(what.taken, hood.taken.data(), what.taken.end);
    const PackedBlocks given(what.given, hood.given.data(), what.given.end);
    int error = given.pack(comm);
    const bool is_whole = NeighbourRun(staged, hood, what.edges_of(hood), what.has_parts()).run();
    if (const int unpacked = taken.unpack(comm); error == MPI_SUCCESS) error = unpacked;
    return is_whole ? error : MPI_ERR_TRUNCATE;
}

std::optional<int> serve_neighbours(NeighbourCall& what, const NodeSite& site,
                                    MPI_Comm comm) noexcept {
    const TypesInUse given_in_use(what.given), taken_in_use(what.taken);
    NodeComm* const node = node_comm_for(site, what.call, comm, 0);
    Neighbourhood* const hood =
        node == nullptr ? nullptr : node->obtain_neighbourhood(what.call, comm);
    if (hood == nullptr) return std::nullopt;
    const NodeCall use = node->begin_call(what.call, comm, what.collective, 0);
    if (use.node == nullptr) return std::nullopt;
    return served(what.call, what.given.total_bytes(), comm,
                  exchange(what, *hood, *use.staged, comm));
}

// A side without arrays.
struct EvenSide {
    const void* buffer;
    MPI_Count count;
    MPI_Datatype type;
};

std::optional<int> serve_even(NeighbourCall what, const EvenSide& given, const EvenSide& taken,
                              MPI_Comm comm) noexcept {
    const NodeSite site = node_site(comm);
    const std::optional<Degrees> degrees = degrees_at(site, comm);
    if (!degrees) return std::nullopt;
    what.given =
        blocks_in_a_row(given.buffer, given.count, given.type, what.has_parts() ? degrees->out : 1);
    what.taken = blocks_in_a_row(taken.buffer, taken.count, taken.type, degrees->in);
    what.taken.is_written = true;
    if (!is_fine(what.given, given.count, comm) || !is_fine(what.taken, taken.count, comm))
        return std::nullopt;
    return serve_neighbours(what, site, comm);
}

}  // namespace

std::optional<int> neighbor_allgather(Call call, const void* sendbuf, MPI_Count sendcount,
                                      MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                                      MPI_Datatype recvtype, MPI_Comm comm) noexcept {
    return serve_even({call, Collective::neighbor_allgather, {}, {}},
                      {sendbuf, sendcount, sendtype}, {recvbuf, recvcount, recvtype}, comm);
}

std::optional<int> neighbor_allgatherv(Call call, const void* sendbuf, MPI_Count sendcount,
                                       MPI_Datatype sendtype, void* recvbuf,
                                       offload::RankArray recvcounts, offload::RankArray displs,
                                       MPI_Datatype recvtype, MPI_Comm comm) noexcept {
    const NodeSite site = node_site(comm);
    const std::optional<Degrees> degrees = degrees_at(site, comm);
    if (!degrees || (degrees->in != 0 && (recvcounts.missing() || displs.missing())))
        return std::nullopt;
    NeighbourCall what{call, Collective::neighbor_allgatherv, {}, {}};
    what.given = blocks_in_a_row(sendbuf, sendcount, sendtype, 1);
    what.taken = blocks_anywhere(recvbuf, recvcounts, displs, recvtype, nullptr, degrees->in);
    what.taken.is_written = true;
    if (!is_fine(what.given, sendcount, comm) || !is_fine(what.taken, comm)) return std::nullopt;
    return serve_neighbours(what, site, comm);
}

std::optional<int> neighbor_alltoall(Call call, const void* sendbuf, MPI_Count sendcount,
                                     MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                                     MPI_Datatype recvtype, MPI_Comm comm) noexcept {
    return serve_even({call, Collective::neighbor_alltoall, {}, {}}, {sendbuf, sendcount, sendtype},
                      {recvbuf, recvcount, recvtype}, comm);
}

std::optional<int> neighbor_alltoallv(Call call, const void* sendbuf, offload::RankArray sendcounts,
                                      offload::RankArray sdispls, MPI_Datatype sendtype,
                                      void* recvbuf, offload::RankArray recvcounts,
                                      offload::RankArray rdispls, MPI_Datatype recvtype,
                                      MPI_Comm comm) noexcept {
    const NodeSite site = node_site(comm);
    const std::optional<Degrees> degrees = degrees_at(site, comm);
    if (!degrees || (degrees->out != 0 && (sendcounts.missing() || sdispls.missing())) ||
        (degrees->in != 0 && (recvcounts.missing() || rdispls.missing())))
        return std::nullopt;
    NeighbourCall what{call, Collective::neighbor_alltoallv, {}, {}};
    what.given = blocks_anywhere(sendbuf, sendcounts, sdispls, sendtype, nullptr, degrees->out);
    what.taken = blocks_anywhere(recvbuf, recvcounts, rdispls, recvtype, nullptr, degrees->in);
    what.taken.is_written = true;
    if (!is_fine(what.given, comm) || !is_fine(what.taken, comm)) return std::nullopt;
    return serve_neighbours(what, site, comm);
}

std::optional<int> neighbor_alltoallw(Call call, const void* sendbuf, offload::RankArray sendcounts,
                                      offload::RankArray sdispls, const MPI_Datatype* sendtypes,
                                      void* recvbuf, offload::RankArray recvcounts,
                                      offload::RankArray rdispls, const MPI_Datatype* recvtypes,
                                      MPI_Comm comm) noexcept {
    const NodeSite site = node_site(comm);
    const std::optional<Degrees> degrees = degrees_at(site, comm);
    if (!degrees ||
        (degrees->out != 0 &&
         (sendcounts.missing() || sdispls.missing() || sendtypes == nullptr)) ||
        (degrees->in != 0 && (recvcounts.missing() || rdispls.missing() || recvtypes == nullptr)))
        return std::nullopt;
    NeighbourCall what{call, Collective::neighbor_alltoallw, {}, {}};
    what.given = blocks_anywhere(sendbuf, sendcounts, sdispls, MPI_BYTE, sendtypes, degrees->out);
    what.taken = blocks_anywhere(recvbuf, recvcounts, rdispls, MPI_BYTE, recvtypes, degrees->in);
    what.taken.is_written = true;
    if (!is_fine(what.given, comm) || !is_fine(what.taken, comm)) return std::nullopt;
    return serve_neighbours(what, site, comm);
}

}  // namespace vecmpi::pipeline::node
