// SPDX-License-Identifier: BSD-3-Clause
// Gatherv, Scatterv, Allgatherv, Alltoallv and Alltoallw on one node: blocks of any length (MPI
// 4.0, 6.5 to 6.8). All ranks know those of Allgatherv. Of the others a rank knows only what it
// gives or takes itself, so one trial serves all sizes, and lengths travel with the data.
#include "call_rules.hpp"
#include "rank_blocks.hpp"

namespace vecmpi::pipeline::node {

namespace {

struct VectorCall {
    Collective collective;
    BlockMovement movement;
    RankBlocks given, taken;
    bool in_place = false;  // what is given lies where what is taken goes
};

class VectorExchange final : public StagedWork {
  public:
    explicit VectorExchange(const VectorCall& what, MPI_Comm comm) noexcept
        : what_(what), given_in_use_(what.given), taken_in_use_(what.taken), comm_(comm) {}
    // 1. Pack. 2. Move. 3. Unpack what came.
    int run(NodeComm& node, Transport by) noexcept override {
        StagedCollectives& staged = *node.staged();
        const int ranks = node.ranks();
        const PackedBlocks taken(what_.taken, staged.taken_blocks(), ranks);
        const PackedBlocks given(what_.given, staged.given_blocks(), ranks);
        int error = what_.in_place ? taken.pack(comm_) : given.pack(comm_);
        if (what_.in_place)
            std::copy(staged.taken_blocks(), staged.taken_blocks() + ranks, staged.given_blocks());
        bool is_whole = true;
        if (what_.movement.flow == Flow::to_all)
            staged.move_to_all(what_.taken.largest_bytes(), by);
        else
            is_whole = staged.move_announced_blocks(what_.movement, what_.in_place);
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
    VectorCall what_;
    KeptArrays arrays_;
    TypesInUse given_in_use_, taken_in_use_;
    MPI_Comm comm_;
};

// bytes: equal on all ranks; 0 where they are not.
std::optional<int> serve_vectors(const CollectiveForm& form, const VectorCall& what, size_t bytes,
                                 const NodeSite& site, MPI_Comm comm) noexcept {
    const bool by_taken = what.in_place || what.movement.flow == Flow::from_root;
    const size_t moved = (by_taken ? what.taken : what.given).total_bytes();
    return serve(form, site, comm, {what.collective, bytes, moved},
                 VectorExchange(what, comm_to_pack_for(form, comm)));
}

std::optional<int> serve_vectors(const CollectiveForm& form, const VectorCall& what,
                                 const NodeSite& site, MPI_Comm comm) noexcept {
    if (!what.given.are_fine(comm) || !what.taken.are_fine(comm)) return std::nullopt;
    return serve_vectors(form, what, 0, site, comm);
}

// This rank's block among those that it takes, as what it gives.
RankBlocks own_of(const RankBlocks& taken, int rank, int reader) noexcept {
    return RankBlocks::of_one(taken.place_of(rank, taken.unit()), taken.counts[rank], taken.type,
                              reader);
}

// The library's own test, and its error.
bool is_aliased(const RankBlocks& one, const RankBlocks& all, int rank) noexcept {
    return one.type == all.type && one.counts[rank] != 0 && all.counts[rank] != 0 &&
           is_alias(one.buffer, all.place_of(rank, offload::size_of(all.type)));
}

}  // namespace

std::optional<int> gatherv(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                           MPI_Datatype sendtype, void* recvbuf, offload::RankArray recvcounts,
                           offload::RankArray displs, MPI_Datatype recvtype, int root,
                           MPI_Comm comm) noexcept {
    const NodeSite site = node_site(form, comm);
    if (site.declined() || !site.has(root)) return std::nullopt;
    VectorCall what{Collective::gatherv, {Flow::to_root, root}, {}, {}};
    what.given = RankBlocks::of_one(sendbuf, sendcount, sendtype, root);
    if (site.rank != root) {
        if (sendbuf == MPI_IN_PLACE) return std::nullopt;
        return serve_vectors(form, what, site, comm);
    }
    if (recvcounts.missing() || displs.missing() || !library::is_type_handle(recvtype))
        return std::nullopt;
    what.taken = {recvbuf, RankCounts(recvcounts), displs, recvtype, nullptr, 0, site.ranks, true};
    if (sendbuf == MPI_IN_PLACE)
        what.given = own_of(what.taken, root, root);
    else if (is_aliased(what.given, what.taken, root))
        return std::nullopt;
    return serve_vectors(form, what, site, comm);
}

std::optional<int> scatterv(const CollectiveForm& form, const void* sendbuf,
                            offload::RankArray sendcounts, offload::RankArray displs,
                            MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                            MPI_Datatype recvtype, int root, MPI_Comm comm) noexcept {
    const NodeSite site = node_site(form, comm);
    if (site.declined() || !site.has(root)) return std::nullopt;
    VectorCall what{Collective::scatterv, {Flow::from_root, root}, {}, {}};
    if (site.rank != root || recvbuf != MPI_IN_PLACE) {
        what.taken = RankBlocks::of_one(recvbuf, recvcount, recvtype, root);
        what.taken.is_written = true;
    }
    if (site.rank != root) return serve_vectors(form, what, site, comm);
    if (sendcounts.missing() || displs.missing() || !library::is_type_handle(sendtype) ||
        sendbuf == MPI_IN_PLACE)
        return std::nullopt;
    what.given = {sendbuf, RankCounts(sendcounts), displs, sendtype, nullptr, 0, site.ranks};
    if (!what.taken.is_empty() && is_aliased(what.taken, what.given, root)) return std::nullopt;
    return serve_vectors(form, what, site, comm);
}

std::optional<int> allgatherv(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                              MPI_Datatype sendtype, void* recvbuf, offload::RankArray recvcounts,
                              offload::RankArray displs, MPI_Datatype recvtype,
                              MPI_Comm comm) noexcept {
    const NodeSite site = node_site(form, comm);
    if (site.declined() || recvcounts.missing() || displs.missing()) return std::nullopt;
    const int me = site.rank;
    VectorCall what{Collective::allgatherv, {Flow::to_all}, {}, {}};
    what.taken = {recvbuf, RankCounts(recvcounts), displs, recvtype, nullptr, 0, site.ranks, true};
    if (!what.taken.are_fine(comm)) return std::nullopt;
    const size_t bytes = what.taken.total_bytes();
    if (!is_ours(Collective::allgather, bytes / static_cast<size_t>(site.ranks)))
        return std::nullopt;
    if (sendbuf == MPI_IN_PLACE) {
        what.given = own_of(what.taken, me, me);
    } else {
        what.given = RankBlocks::of_one(sendbuf, sendcount, sendtype, me);
        if (!what.given.are_fine(comm) || what.given.bytes_of(me) != what.taken.bytes_of(me) ||
            is_aliased(what.given, what.taken, me))
            return std::nullopt;
    }
    return serve_vectors(form, what, bytes, site, comm);
}

std::optional<int> alltoallv(const CollectiveForm& form, const void* sendbuf,
                             offload::RankArray sendcounts, offload::RankArray sdispls,
                             MPI_Datatype sendtype, void* recvbuf, offload::RankArray recvcounts,
                             offload::RankArray rdispls, MPI_Datatype recvtype,
                             MPI_Comm comm) noexcept {
    const NodeSite site = node_site(form, comm);
    if (site.declined() || recvcounts.missing() || rdispls.missing()) return std::nullopt;
    VectorCall what{Collective::alltoallv, {Flow::pairs}, {}, {}};
    what.taken = {recvbuf, RankCounts(recvcounts), rdispls, recvtype, nullptr, 0, site.ranks, true};
    what.in_place = sendbuf == MPI_IN_PLACE;
    if (!what.in_place) {
        if (sendcounts.missing() || sdispls.missing()) return std::nullopt;
        if (sendtype == recvtype && sendcounts.is(recvcounts) && is_alias(sendbuf, recvbuf))
            return std::nullopt;  // the library's own error, by its own test
        what.given = {sendbuf, RankCounts(sendcounts), sdispls, sendtype, nullptr, 0, site.ranks};
    }
    return serve_vectors(form, what, site, comm);
}

std::optional<int> alltoallw(const CollectiveForm& form, const void* sendbuf,
                             offload::RankArray sendcounts, offload::RankArray sdispls,
                             const MPI_Datatype* sendtypes, void* recvbuf,
                             offload::RankArray recvcounts, offload::RankArray rdispls,
                             const MPI_Datatype* recvtypes, MPI_Comm comm) noexcept {
    const NodeSite site = node_site(form, comm);
    if (site.declined() || recvcounts.missing() || rdispls.missing() || recvtypes == nullptr)
        return std::nullopt;
    VectorCall what{Collective::alltoallw, {Flow::pairs}, {}, {}};
    what.taken = {recvbuf, RankCounts(recvcounts), rdispls, MPI_BYTE, recvtypes, 0, site.ranks,
                  true};
    what.in_place = sendbuf == MPI_IN_PLACE;
    if (!what.in_place) {
        if (sendcounts.missing() || sdispls.missing() || sendtypes == nullptr) return std::nullopt;
        if (sendtypes == recvtypes && sendcounts.is(recvcounts) && is_alias(sendbuf, recvbuf))
            return std::nullopt;  // the library's own error, by its own test
        what.given = {sendbuf, RankCounts(sendcounts), sdispls, MPI_BYTE, sendtypes, 0, site.ranks};
    }
    return serve_vectors(form, what, site, comm);
}

}  // namespace vecmpi::pipeline::node
