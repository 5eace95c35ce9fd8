// SPDX-License-Identifier: BSD-3-Clause
// Gather, Scatter, Allgather, Alltoall and their v and w forms with known blocks of ints. No
// reductions here.
#include <vector>

#include "collective.hpp"

namespace battery {
namespace {

enum class Kind {
    gather,
    gatherv,
    scatter,
    scatterv,
    allgather,
    allgatherv,
    alltoall,
    alltoallv,
    alltoallw
};

// Blocks of ints, one for each partner, with gaps between them in the v and w forms.
struct Blocks {
    std::vector<int> counts;
    std::vector<int> displacements;
    std::vector<int> byte_displacements;
    std::vector<MPI_Datatype> types;
    std::vector<int> data;

    void layout(Random& own, bool gaps) {
        int end = 0;
        for (const int count : counts) {
            if (gaps) end += own.below(4);
            displacements.push_back(end);
            byte_displacements.push_back(end * static_cast<int>(sizeof(int)));
            end += count;
        }
        types.assign(counts.size(), MPI_INT);
        data.assign(static_cast<size_t>(end) + 1, -1);
    }
    int* block(size_t i) { return data.data() + displacements[i]; }
};

class Movement : public Collective {
  public:
    Movement(Random& shared, Random& own, const Group& group, Form form)
        : Collective(group, form, shared.next()),
          kind_(static_cast<Kind>(shared.below(9))),
          root_(shared.below(group.size)),
          in_place_(shared.chance(25)),
          largest_(shared.chance(25) ? 4000 : 40),
          uniform_(shared.below(largest_)) {
        // Persistent, they copy their data only once, in MPI_X_init of MPICH 4.0.2.
        if (form == Form::persistent && !is_vector() && !is_alltoall())
            kind_ = static_cast<Kind>(static_cast<int>(kind_) + 1);
        for (int partner = 0; partner < group.size; ++partner) {
            out_.counts.push_back(sends_to(partner) ? count(group.rank, partner) : 0);
            in_.counts.push_back(receives_from(partner) ? count(partner, group.rank) : 0);
        }
        // MPI_Allgatherv of MPICH 4.0.2 ignores the displacement where there is one rank.
        const bool gaps = is_vector() && !(kind_ == Kind::allgatherv && group.size == 1);
        out_.layout(own, gaps);
        in_.layout(own, gaps);
    }

    void fill() override {
        for (size_t partner = 0; partner < out_.counts.size(); ++partner)
            write(out_.block(partner), out_.counts[partner], group_.rank,
                  static_cast<int>(partner));
        for (int& value : in_.data) value = -1;
        if (in_place_) fill_in_place();
    }

    void issue() override {
        switch (kind_) {
            case Kind::gather:
                return gather();
            case Kind::gatherv:
                return gatherv();
            case Kind::scatter:
                return scatter();
            case Kind::scatterv:
                return scatterv();
            case Kind::allgather:
                return allgather();
            case Kind::allgatherv:
                return allgatherv();
            case Kind::alltoall:
                return alltoall();
            case Kind::alltoallv:
                return alltoallv();
            case Kind::alltoallw:
                return alltoallw();
        }
    }

    void judge(Digest& digest) override {
        for (size_t partner = 0; partner < in_.counts.size(); ++partner) {
            const int from = static_cast<int>(partner);
            if (in_place_ && kind_ >= Kind::scatter && kind_ <= Kind::scatterv && is_root())
                continue;  // nothing is received
            for (int i = 0; i < in_.counts[partner]; ++i)
                check_equal(in_.block(partner)[i], value(from, group_.rank, i), "moved element");
            digest.add_bytes(in_.block(partner),
                             static_cast<size_t>(in_.counts[partner]) * sizeof(int));
        }
        check_equal(in_.data.back(), -1, "element behind the receive buffer");
    }

  private:
    bool is_vector() const {
        return kind_ == Kind::gatherv || kind_ == Kind::scatterv || kind_ == Kind::allgatherv ||
               kind_ == Kind::alltoallv || kind_ == Kind::alltoallw;
    }
    bool is_gather() const { return kind_ <= Kind::gatherv; }
    bool is_scatter() const { return kind_ == Kind::scatter || kind_ == Kind::scatterv; }
    bool is_alltoall() const { return kind_ >= Kind::alltoall; }
    bool is_root() const { return group_.rank == root_; }

    // The partner that a block is sent to; what all get alike has partner 0.
    bool sends_to(int partner) const {
        if (is_gather()) return partner == root_;
        if (is_scatter()) return is_root();
        return is_alltoall() || partner == 0;
    }
    bool receives_from(int partner) const {
        if (is_gather()) return is_root();
        if (is_scatter()) return partner == root_;
        return true;
    }

    int count(int from, int to) const {
        if (!is_vector()) return uniform_;
        if (is_gather() || !(is_scatter() || is_alltoall())) to = 0;
        if (is_scatter()) from = 0;
        if (in_place_ && is_alltoall() && from > to) std::swap(from, to);  // must be symmetric
        const uint64_t hash = mix(id_ + static_cast<uint64_t>(from * 64 + to));
        return hash % 4 == 0 ? 0 : static_cast<int>(hash % static_cast<uint64_t>(largest_));
    }

    int value(int from, int to, int i) const {
        if (!is_scatter() && !is_alltoall()) to = 0;
        return static_cast<int>(mix(id_ + static_cast<uint64_t>((from * 64 + to) * 65536 + i)) >>
                                33);
    }

    void write(int* at, int count, int from, int to) const {
        for (int i = 0; i < count; ++i) at[i] = value(from, to, i);
    }

    // In place the rank's own contribution, or for Alltoall all of it, stands in the receive
    // buffer.
    void fill_in_place() {
        for (size_t partner = 0; partner < in_.counts.size(); ++partner) {
            const int to = static_cast<int>(partner);
            if (is_alltoall() || to == group_.rank)
                write(in_.block(partner), in_.counts[partner], group_.rank, to);
        }
    }

    const void* sendbuf(bool place) const {
        return in_place_ && place ? MPI_IN_PLACE : static_cast<const void*>(out_.data.data());
    }
    int* own_block() { return in_.block(static_cast<size_t>(root_)); }
    int out_count() const { return out_.counts[is_gather() ? static_cast<size_t>(root_) : 0]; }

    void gather() {
        call<MPI_Gather, MPI_Igather, MPI_Gather_init>(form_, &request, sendbuf(is_root()),
                                                       uniform_, MPI_INT, in_.data.data(), uniform_,
                                                       MPI_INT, root_, group_.comm);
    }
    void gatherv() {
        const void* from =
            in_place_ && is_root() ? MPI_IN_PLACE : out_.block(static_cast<size_t>(root_));
        call<MPI_Gatherv, MPI_Igatherv, MPI_Gatherv_init>(
            form_, &request, from, out_count(), MPI_INT, in_.data.data(), in_.counts.data(),
            in_.displacements.data(), MPI_INT, root_, group_.comm);
    }
    void scatter() {
        void* to = in_place_ && is_root() ? MPI_IN_PLACE : own_block();
        call<MPI_Scatter, MPI_Iscatter, MPI_Scatter_init>(form_, &request, out_.data.data(),
                                                          uniform_, MPI_INT, to, uniform_, MPI_INT,
                                                          root_, group_.comm);
    }
    void scatterv() {
        void* to = in_place_ && is_root() ? MPI_IN_PLACE : own_block();
        call<MPI_Scatterv, MPI_Iscatterv, MPI_Scatterv_init>(
            form_, &request, out_.data.data(), out_.counts.data(), out_.displacements.data(),
            MPI_INT, to, in_.counts[static_cast<size_t>(root_)], MPI_INT, root_, group_.comm);
    }
    void allgather() {
        call<MPI_Allgather, MPI_Iallgather, MPI_Allgather_init>(form_, &request, sendbuf(true),
                                                                uniform_, MPI_INT, in_.data.data(),
                                                                uniform_, MPI_INT, group_.comm);
    }
    void allgatherv() {
        const void* from = in_place_ ? MPI_IN_PLACE : out_.block(0);
        call<MPI_Allgatherv, MPI_Iallgatherv, MPI_Allgatherv_init>(
            form_, &request, from, out_count(), MPI_INT, in_.data.data(), in_.counts.data(),
            in_.displacements.data(), MPI_INT, group_.comm);
    }
    void alltoall() {
        call<MPI_Alltoall, MPI_Ialltoall, MPI_Alltoall_init>(form_, &request, sendbuf(true),
                                                             uniform_, MPI_INT, in_.data.data(),
                                                             uniform_, MPI_INT, group_.comm);
    }
    void alltoallv() {
        call<MPI_Alltoallv, MPI_Ialltoallv, MPI_Alltoallv_init>(
            form_, &request, sendbuf(true), out_.counts.data(), out_.displacements.data(), MPI_INT,
            in_.data.data(), in_.counts.data(), in_.displacements.data(), MPI_INT, group_.comm);
    }
    void alltoallw() {
        call<MPI_Alltoallw, MPI_Ialltoallw, MPI_Alltoallw_init>(
            form_, &request, sendbuf(true), out_.counts.data(), out_.byte_displacements.data(),
            out_.types.data(), in_.data.data(), in_.counts.data(), in_.byte_displacements.data(),
            in_.types.data(), group_.comm);
    }

    Kind kind_;
    int root_;
    bool in_place_;
    int largest_;
    int uniform_;
    Blocks out_;
    Blocks in_;
};

}  // namespace

CollectivePtr random_movement(Random& shared, Random& own, const Group& group, Form form) {
    return std::make_unique<Movement>(shared, own, group, form);
}

}  // namespace battery
