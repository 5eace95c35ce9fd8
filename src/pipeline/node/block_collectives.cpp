// SPDX-License-Identifier: BSD-3-Clause
// Gather, Scatter and Alltoall on one node: blocks of as many bytes on all ranks (MPI 4.0, 6.5, 6.6
// and 6.8). What lies otherwise in memory is packed.
#include <cstdint>

#include "call_rules.hpp"
#include "datatype/api.hpp"
#include "pipeline/block_side.hpp"

namespace vecmpi::pipeline::node {

namespace {

using datatype::PackedBuffer;

// Nothing to move is the library's as well: it waits for nobody then.
bool is_fine(const BlockSide& side, MPI_Comm comm) noexcept {
    MPI_Count all = 0;
    return side.blocks == 0 ||
           (side.count > 0 && !__builtin_mul_overflow(side.count, side.blocks, &all) &&
            library::is_type_handle(side.type) && !side.is_refused_buffer() &&
            offload::is_committed(side.type, comm));
}

struct BlockCall {
    Collective collective;
    BlockMovement movement;
    BlockSide given, taken;
    bool in_place = false;  // all of it: what is given lies where the rest is taken to

    size_t block_bytes() const noexcept {
        return static_cast<size_t>((given.blocks != 0 ? given : taken).block_bytes());
    }
};

class BlockExchange final : public StagedWork {
  public:
    BlockExchange(const BlockCall& what, MPI_Comm comm) noexcept
        : what_(what),
          given_in_use_(what.given.type),
          taken_in_use_(what.taken.type),
          given_(what.given.buffer, what.given.elements(), what.given.type, comm),
          taken_(what.taken.buffer, what.taken.elements(), what.taken.type, comm) {}
    bool has_data() const noexcept {
        return (!gives() || given_.bytes() != 0) && (!takes() || taken_.bytes() != 0);
    }
    int run(NodeComm& node, Transport by) noexcept override {
        int error = pack();
        const unsigned char* const from =
            error == MPI_SUCCESS && gives() ? given_.place() : nullptr;
        if (error == MPI_SUCCESS && !is_even()) error = MPI_ERR_TRUNCATE;
        unsigned char* const to = error == MPI_SUCCESS && takes() ? taken_.place() : nullptr;
        node.staged()->move_equal_blocks(what_.movement, what_.in_place ? to : from, to,
                                         what_.block_bytes(), by);
        return to != nullptr ? taken_.unpack() : error;
    }

  private:
    bool gives() const noexcept { return what_.given.blocks != 0; }
    bool takes() const noexcept { return what_.taken.blocks != 0; }
    // Both sides of this rank have as many bytes. Else the program errs, and the others, who cannot
    // know, must not wait for ever: this rank gives, takes nothing, and reports.
    bool is_even() const noexcept {
        return !gives() || !takes() || what_.given.block_bytes() == what_.taken.block_bytes();
    }
    // A null buffer where one is needed: this rank has failed, and takes part without.
    int pack() noexcept {
        if ((gives() && given_.place() == nullptr) || (takes() && taken_.place() == nullptr))
            return MPI_ERR_NO_MEM;
        return what_.in_place ? taken_.pack() : gives() ? given_.pack() : MPI_SUCCESS;
    }

    BlockCall what_;
    datatype::TypeInUse given_in_use_, taken_in_use_;
    PackedBuffer given_, taken_;
};

std::optional<int> move_blocks(const CollectiveForm& form, const BlockCall& what,
                               const NodeSite& site, MPI_Comm comm) noexcept {
    if (!is_fine(what.given, comm) || !is_fine(what.taken, comm)) return std::nullopt;
    const size_t bytes = what.block_bytes(), all = bytes * static_cast<size_t>(site.ranks);
    if (has_setting(what.collective) && !is_ours(what.collective, bytes)) return std::nullopt;
    BlockExchange work(what, comm_to_pack_for(form, comm));
    if (!work.has_data()) return std::nullopt;
    const size_t moved = what.movement.flow == Flow::pairs ? all : bytes;
    return serve(form, site, comm, {what.collective, all, moved}, std::move(work));
}

}  // namespace

std::optional<int> gather(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                          MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                          MPI_Datatype recvtype, int root, MPI_Comm comm) noexcept {
    const NodeSite site = node_site(form, comm);
    if (site.declined() || !site.has(root)) return std::nullopt;
    const bool is_root = site.rank == root;
    BlockCall what{Collective::gather, {Flow::to_root, root}, {}, {}};
    what.given = {sendbuf, sendcount, sendtype, 1};
    if (is_root) what.taken = {recvbuf, recvcount, recvtype, site.ranks, true};
    if (sendbuf == MPI_IN_PLACE) {
        if (!is_root || !is_fine(what.taken, comm)) return std::nullopt;
        const MPI_Count before = root * recvcount * offload::shape_of(recvtype).extent;
        what.given = {advanced(recvbuf, before), recvcount, recvtype, 1};
    } else if (is_root && is_aliased(what.given, what.taken, root)) {
        return std::nullopt;
    }
    return move_blocks(form, what, site, comm);
}

std::optional<int> scatter(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                           MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                           MPI_Datatype recvtype, int root, MPI_Comm comm) noexcept {
    const NodeSite site = node_site(form, comm);
    if (site.declined() || !site.has(root)) return std::nullopt;
    const bool is_root = site.rank == root;
    BlockCall what{Collective::scatter, {Flow::from_root, root}, {}, {}};
    if (is_root) what.given = {sendbuf, sendcount, sendtype, site.ranks};
    if (!is_root || recvbuf != MPI_IN_PLACE) what.taken = {recvbuf, recvcount, recvtype, 1, true};
    if (is_root && (sendbuf == MPI_IN_PLACE ||
                    (what.taken.blocks != 0 && is_aliased(what.taken, what.given, root))))
        return std::nullopt;
    return move_blocks(form, what, site, comm);
}

std::optional<int> alltoall(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                            MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                            MPI_Datatype recvtype, MPI_Comm comm) noexcept {
    const NodeSite site = node_site(form, comm);
    if (site.declined()) return std::nullopt;
    BlockCall what{Collective::alltoall, {Flow::pairs}, {}, {}};
    what.taken = {recvbuf, recvcount, recvtype, site.ranks, true};
    what.in_place = sendbuf == MPI_IN_PLACE;
    if (!what.in_place) {
        what.given = {sendbuf, sendcount, sendtype, site.ranks};
        if (is_aliased(what.given, what.taken, 0)) return std::nullopt;
    }
    return move_blocks(form, what, site, comm);
}

}  // namespace vecmpi::pipeline::node
