// SPDX-License-Identifier: BSD-3-Clause
// Collectives of random derived types, each a few times with the same types, so that they get plans
// and keep them: with blocks of different lengths, in place, on inter-communicators. Each rank lays
// the same data out in its own way, some in none. The argument is a family:
//   rooted      Scatter and Gather
//   all         Allgather and Alltoall
//   neighbours  those of a topology
#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "collective.hpp"
#include "completion.hpp"
#include "topology.hpp"
#include "typed_blocks.hpp"

using namespace battery;

namespace {

enum class Kind {
    scatter,
    scatterv,
    gather,
    gatherv,
    allgather,
    allgatherv,
    alltoall,
    alltoallv,
    alltoallw,
    neighbor_allgather,
    neighbor_allgatherv,
    neighbor_alltoall,
    neighbor_alltoallv,
    neighbor_alltoallw,
};
enum class Flow { from_root, to_root, to_all, pairs };

struct Row {
    Flow flow;
    Placing placing;  // of the blocks, where there are several
};
constexpr Row rows[] = {
    {Flow::from_root, Placing::even},   {Flow::from_root, Placing::by_extent},
    {Flow::to_root, Placing::even},     {Flow::to_root, Placing::by_extent},
    {Flow::to_all, Placing::even},      {Flow::to_all, Placing::by_extent},
    {Flow::pairs, Placing::even},       {Flow::pairs, Placing::by_extent},
    {Flow::pairs, Placing::by_bytes},   {Flow::to_all, Placing::even},
    {Flow::to_all, Placing::by_extent}, {Flow::pairs, Placing::even},
    {Flow::pairs, Placing::by_extent},  {Flow::pairs, Placing::by_bytes},
};

// Whom this rank sends to and receives from, by their ranks in the world.
struct Partners {
    MPI_Comm comm = MPI_COMM_NULL;
    bool is_inter = false;
    std::vector<int> sources, destinations;
};

Partners everybody() {
    Partners partners;
    MPI_Comm_dup(MPI_COMM_WORLD, &partners.comm);
    for (int r = 0; r < world.size; ++r) partners.sources.push_back(r);
    partners.destinations = partners.sources;
    return partners;
}

// The even and the odd ranks.
Partners other_side() {
    Partners partners;
    MPI_Comm local = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, world.rank % 2, world.rank, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - world.rank % 2, 5, &partners.comm);
    MPI_Comm_free(&local);
    for (int r = 1 - world.rank % 2; r < world.size; r += 2) partners.sources.push_back(r);
    partners.destinations = partners.sources;
    partners.is_inter = true;
    return partners;
}

Partners neighbours(Random& common) {
    const Topology topology = common.chance(50) ? make_cart(common) : make_graph(common);
    return {topology.comm, false, topology.sources, topology.destinations};
}

// Equal on all ranks.
struct Plan {
    uint64_t id;
    Kind kind;
    Unit unit;
    Form form;
    int root;
    int most;  // steps of units in a block
    bool in_place;
    const Row& row() const { return rows[static_cast<int>(kind)]; }
};

constexpr int step = 48;

Kind random_kind(Random& common) {
    const Kind first = world.argument == "rooted" ? Kind::scatter
                       : world.argument == "all"  ? Kind::allgather
                                                  : Kind::neighbor_allgather;
    const int number = world.argument == "rooted" ? 4 : 5;
    return static_cast<Kind>(static_cast<int>(first) + common.below(number));
}

Plan random_plan(Random& common, bool of_neighbours, bool is_inter) {
    Plan plan;
    plan.id = common.next();
    plan.kind = random_kind(common);
    plan.unit = static_cast<Unit>(common.below(5));
    plan.form = static_cast<Form>(common.below(3));
    plan.root = common.below(world.size);
    plan.most = common.chance(60) ? common.below(4) : common.between(20, 300);
    // Bytes on the way, as those that inner ranks of a tree send, must not end a fragment within a
    // record: MPICH 4.0.2 reports truncation then, or hangs. See derived_types.cpp.
    if (plan.unit == Unit::record) plan.most = std::min(plan.most, 700 / step / world.size);
    plan.in_place = !of_neighbours && !is_inter && common.chance(30);
    // Persistent, MPICH 4.0.2 copies what has no counts of its own once, in MPI_X_init. Its Scatter
    // and Gather between groups of several ranks mix up or hang where blocks are short.
    const bool is_rooted_even = plan.kind == Kind::scatter || plan.kind == Kind::gather;
    if ((plan.form == Form::persistent && (is_rooted_even || plan.kind == Kind::allgather)) ||
        (is_inter && is_rooted_even))
        plan.kind = static_cast<Kind>(static_cast<int>(plan.kind) + 1);
    // Its Ialltoallw in place mixes up types of different layouts.
    if (plan.kind == Kind::alltoallw && plan.form != Form::blocking) plan.in_place = false;
    // Its Allgatherv of 80 KiB goes round a ring in pieces of so many of each rank's own elements.
    if (plan.kind == Kind::allgatherv) plan.most = std::min(plan.most, 200 / world.size);
    return plan;
}

class Operation {
  public:
    Operation(const Plan& plan, const Partners& partners, Random& own)
        : plan_(plan), partners_(partners) {
        const Flow flow = plan.row().flow;
        const bool all = flow == Flow::to_all || flow == Flow::pairs;
        const bool is_root = world.rank == plan.root;
        if (all || (flow == Flow::from_root ? is_root : is_leaf())) make_out(own);
        if (all || (flow == Flow::to_root ? is_root : is_leaf())) make_in(own);
        const bool by_all = all || is_root;
        if (!plan.in_place || !by_all) return;
        if (flow == Flow::from_root)
            in_.reset();
        else
            out_.reset();
    }

    // Data of its own for each repetition. In place they are where they are received.
    void fill(int repetition) {
        repetition_ = static_cast<uint64_t>(repetition);
        for (size_t b = 0; out_ && b < out_->size(); ++b)
            if (to_[b] != MPI_PROC_NULL) out_->fill(b, id(world.rank, to_[b]));
        for (size_t b = 0; in_ && b < in_->size(); ++b) {
            if (from_[b] == MPI_PROC_NULL) continue;
            const bool sends_from_here = plan_.in_place && !out_;
            if (sends_from_here && (plan_.row().flow == Flow::pairs || from_[b] == world.rank))
                in_->fill(b, id(world.rank, from_[b]));
            in_->expect(b, id(from_[b], world.rank));
        }
    }

    // A persistent one is not among the requests: MPICH 4.0.2 takes one that has become inactive
    // for an active one in Testall, Waitany and Waitsome.
    void issue(bool is_last, std::vector<MPI_Request>& requests) {
        const bool is_persistent = plan_.form == Form::persistent;
        if (!is_persistent || repetition_ == 0) make_call();
        if (is_persistent)
            MPI_Start(&request_);
        else
            requests.push_back(request_);
        if (is_last && !is_persistent) free_types();
    }

    void wait_for_persistent(Random& order) {
        if (plan_.form != Form::persistent) return;
        if (order.chance(50)) MPI_Wait(&request_, MPI_STATUS_IGNORE);
        int is_done = 0;
        while (!is_done) MPI_Test(&request_, &is_done, MPI_STATUS_IGNORE);
    }

    void judge() {
        if (out_) out_->check_all("changed byte of a send buffer (offset)");
        if (in_) in_->check_all("wrong byte of a receive buffer (offset)");
        if (in_) in_->add_to(topic("received"));
    }

    void end() {
        if (plan_.form == Form::persistent) MPI_Request_free(&request_);
        free_types();
    }

  private:
    bool is_leaf() const { return !partners_.is_inter || world.rank % 2 != plan_.root % 2; }
    void free_types() {
        if (out_) out_->free_types();
        if (in_) in_->free_types();
    }

    // What does not depend on who sends, or who receives, is the same for all of these.
    uint64_t pair(int from, int to) const {
        const Flow flow = plan_.row().flow;
        if (flow == Flow::to_root || flow == Flow::to_all) to = 0;
        return mix(plan_.id + static_cast<uint64_t>(1000 * from + to));
    }
    uint64_t id(int from, int to) const { return mix(pair(from, to) + repetition_); }
    int units(int from, int to) const {
        if (plan_.row().placing == Placing::even) return step * plan_.most;
        if (plan_.in_place && from > to && plan_.row().flow == Flow::pairs) std::swap(from, to);
        return step * Random(pair(from, to)).below(plan_.most + 1);
    }

    void make_out(Random& own) {
        const Flow flow = plan_.row().flow;
        const bool one = flow == Flow::to_root || flow == Flow::to_all;
        to_ = one ? std::vector<int>{plan_.root} : partners_.destinations;
        std::vector<int> units_to;
        for (const int to : to_) units_to.push_back(units(world.rank, to));
        out_.emplace(own, plan_.unit, units_to, one ? Placing::even : plan_.row().placing);
    }
    void make_in(Random& own) {
        const bool one = plan_.row().flow == Flow::from_root;
        from_ = one ? std::vector<int>{plan_.root} : partners_.sources;
        std::vector<int> units_from;
        for (const int from : from_) units_from.push_back(units(from, world.rank));
        in_.emplace(own, plan_.unit, units_from, one ? Placing::even : plan_.row().placing);
    }

    // The root as this rank has to name it.
    int root() const {
        if (!partners_.is_inter) return plan_.root;
        if (world.rank == plan_.root) return MPI_ROOT;
        return is_leaf() ? plan_.root / 2 : MPI_PROC_NULL;
    }

    // What is significant only elsewhere is null.
    struct Side {
        void* buffer = nullptr;
        int count = 0;
        MPI_Datatype type = MPI_DATATYPE_NULL;
        const int *counts = nullptr, *displacements = nullptr;
        const MPI_Aint* bytes = nullptr;
        const MPI_Datatype* types = nullptr;
    };
    Side side_of(std::optional<TypedBlocks>& blocks) const {
        Side side;
        if (!blocks) {
            if (plan_.in_place) side.buffer = MPI_IN_PLACE;
            return side;
        }
        side.buffer = blocks->address();
        side.count = blocks->count();
        side.type = blocks->type();
        side.counts = blocks->counts();
        side.displacements = blocks->displacements();
        side.bytes = blocks->byte_displacements();
        side.types = blocks->types();
        return side;
    }

    template <auto Blocking, auto Nonblocking, auto Persistent, class... Arguments>
    void make(Arguments... arguments) {
        call<Blocking, Nonblocking, Persistent>(plan_.form, &request_, arguments...);
    }

    void make_call() {
        const bool by_all = plan_.row().flow == Flow::to_all || plan_.row().flow == Flow::pairs;
        Side out = side_of(out_), in = side_of(in_);
        // Only one of the two may be in place, and only the root's where there is one.
        if (!by_all && world.rank != plan_.root) (out_ ? in : out).buffer = nullptr;
        if (plan_.kind < Kind::allgather)
            make_rooted(out, in);
        else if (plan_.kind < Kind::neighbor_allgather)
            make_of_all(out, in);
        else
            make_of_neighbours(out, in);
    }

    void make_rooted(const Side& out, const Side& in) {
        const MPI_Comm comm = partners_.comm;
        switch (plan_.kind) {
            case Kind::scatter:
                return make<MPI_Scatter, MPI_Iscatter, MPI_Scatter_init>(
                    out.buffer, out.count, out.type, in.buffer, in.count, in.type, root(), comm);
            case Kind::scatterv:
                return make<MPI_Scatterv, MPI_Iscatterv, MPI_Scatterv_init>(
                    out.buffer, out.counts, out.displacements, out.type, in.buffer, in.count,
                    in.type, root(), comm);
            case Kind::gather:
                return make<MPI_Gather, MPI_Igather, MPI_Gather_init>(
                    out.buffer, out.count, out.type, in.buffer, in.count, in.type, root(), comm);
            default:
                return make<MPI_Gatherv, MPI_Igatherv, MPI_Gatherv_init>(
                    out.buffer, out.count, out.type, in.buffer, in.counts, in.displacements,
                    in.type, root(), comm);
        }
    }

    void make_of_all(const Side& out, const Side& in) {
        const MPI_Comm comm = partners_.comm;
        switch (plan_.kind) {
            case Kind::allgather:
                return make<MPI_Allgather, MPI_Iallgather, MPI_Allgather_init>(
                    out.buffer, out.count, out.type, in.buffer, in.count, in.type, comm);
            case Kind::allgatherv:
                return make<MPI_Allgatherv, MPI_Iallgatherv, MPI_Allgatherv_init>(
                    out.buffer, out.count, out.type, in.buffer, in.counts, in.displacements,
                    in.type, comm);
            case Kind::alltoall:
                return make<MPI_Alltoall, MPI_Ialltoall, MPI_Alltoall_init>(
                    out.buffer, out.count, out.type, in.buffer, in.count, in.type, comm);
            case Kind::alltoallv:
                return make<MPI_Alltoallv, MPI_Ialltoallv, MPI_Alltoallv_init>(
                    out.buffer, out.counts, out.displacements, out.type, in.buffer, in.counts,
                    in.displacements, in.type, comm);
            default:
                return make<MPI_Alltoallw, MPI_Ialltoallw, MPI_Alltoallw_init>(
                    out.buffer, out.counts, out.displacements, out.types, in.buffer, in.counts,
                    in.displacements, in.types, comm);
        }
    }

    void make_of_neighbours(const Side& out, const Side& in) {
        const MPI_Comm comm = partners_.comm;
        switch (plan_.kind) {
            case Kind::neighbor_allgather:
                return make<MPI_Neighbor_allgather, MPI_Ineighbor_allgather,
                            MPI_Neighbor_allgather_init>(out.buffer, out.count, out.type, in.buffer,
                                                         in.count, in.type, comm);
            case Kind::neighbor_allgatherv:
                return make<MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv,
                            MPI_Neighbor_allgatherv_init>(out.buffer, out.count, out.type,
                                                          in.buffer, in.counts, in.displacements,
                                                          in.type, comm);
            case Kind::neighbor_alltoall:
                return make<MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall,
                            MPI_Neighbor_alltoall_init>(out.buffer, out.count, out.type, in.buffer,
                                                        in.count, in.type, comm);
            case Kind::neighbor_alltoallv:
                return make<MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv,
                            MPI_Neighbor_alltoallv_init>(out.buffer, out.counts, out.displacements,
                                                         out.type, in.buffer, in.counts,
                                                         in.displacements, in.type, comm);
            default:
                return make<MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw,
                            MPI_Neighbor_alltoallw_init>(out.buffer, out.counts, out.bytes,
                                                         out.types, in.buffer, in.counts, in.bytes,
                                                         in.types, comm);
        }
    }

    const Plan plan_;
    const Partners& partners_;
    std::vector<int> to_, from_;  // of each block
    std::optional<TypedBlocks> out_, in_;
    MPI_Request request_ = MPI_REQUEST_NULL;
    uint64_t repetition_ = 0;
};

void run_batch(const Partners& partners, bool of_neighbours, Random& common, Random& own,
               Random& order) {
    std::vector<std::unique_ptr<Operation>> operations;
    for (int i = common.between(1, 4); i > 0; --i)
        operations.push_back(std::make_unique<Operation>(
            random_plan(common, of_neighbours, partners.is_inter), partners, own));
    const int repetitions = common.between(1, 6);
    for (int i = 0; i < repetitions; ++i) {
        std::vector<MPI_Request> requests;
        for (const std::unique_ptr<Operation>& operation : operations) {
            operation->fill(i);
            operation->issue(i == repetitions - 1, requests);
        }
        complete(order, requests);
        for (const std::unique_ptr<Operation>& operation : operations)
            operation->wait_for_persistent(order);
        for (const std::unique_ptr<Operation>& operation : operations) operation->judge();
    }
    for (const std::unique_ptr<Operation>& operation : operations) operation->end();
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    Random common = common_random(71), own = own_random(72);
    Random order = own_random(73);  // how often it is asked depends on the time
    const bool of_neighbours = world.argument == "neighbours";
    for (int round = 0; round < 8; ++round) {
        Partners partners = of_neighbours                      ? neighbours(common)
                            : round % 3 == 2 && world.size > 1 ? other_side()
                                                               : everybody();
        for (int i = 0; i < 3; ++i) run_batch(partners, of_neighbours, common, own, order);
        MPI_Comm_free(&partners.comm);
    }
    return end();
}
