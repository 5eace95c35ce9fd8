// SPDX-License-Identifier: BSD-3-Clause
// The table of collectives. Every call stands here as a program would write it, so that a preloaded
// library meets it where it meets a program's.
#include "collective_calls.hpp"

#include <string_view>
#include <tuple>

#include "bench.hpp"
#include "record.hpp"

namespace vecmpi::bench {
namespace {

using A = const CollectiveArguments&;
constexpr bool has_persistent = MPI_VERSION >= 4;
constexpr int root = 0;

// The arguments that the forms of a call share. Nonblocking ones end with a request, persistent
// ones with an info and a request.
template <typename ArgumentsOf, typename Make, typename Post, typename Prepare>
CollectiveCall row(const char* name, Blocks blocks, InPlace in_place, Ahead ahead, ArgumentsOf,
                   Make, Post, Prepare) {
    CollectiveCall made{name, blocks, in_place, ahead, nullptr, nullptr, nullptr};
    made.make = [](A a) { std::apply(Make{}, ArgumentsOf{}(a)); };
    made.post = [](A a, MPI_Request* request) {
        std::apply(Post{}, std::tuple_cat(ArgumentsOf{}(a), std::tuple{request}));
    };
    if constexpr (has_persistent)
        made.prepare = [](A a, MPI_Request* request) {
            const MPI_Info none = MPI_INFO_NULL;
            std::apply(Prepare{}, std::tuple_cat(ArgumentsOf{}(a), std::tuple{none, request}));
        };
    return made;
}

// ---- arguments that several calls have in common, in the order of the standard ----

constexpr auto whole = [](A a) {
    return std::tuple{a.in, a.out, a.count, MPI_FLOAT, MPI_SUM, a.comm};
};
constexpr auto to_all = [](A a) {
    return std::tuple{a.in, a.block, MPI_FLOAT, a.out, a.block, MPI_FLOAT, a.comm};
};
constexpr auto gathered_v = [](A a) {
    return std::tuple{a.in,     a.block,         MPI_FLOAT, a.out,
                      a.counts, a.displacements, MPI_FLOAT, a.comm};
};
constexpr auto exchanged_v = [](A a) {
    return std::tuple{a.in,     a.counts,        a.displacements, MPI_FLOAT, a.out,
                      a.counts, a.displacements, MPI_FLOAT,       a.comm};
};
constexpr auto to_or_from_root = [](A a) {
    return std::tuple{a.in, a.block, MPI_FLOAT, a.out, a.block, MPI_FLOAT, root, a.comm};
};

using Table = std::vector<CollectiveCall>;

void add_rooted(Table& t) {
    t.push_back(row(
        "bcast", Blocks::none, InPlace::never, Ahead::root,
        [](A a) {
            return std::tuple{a.out, a.count, MPI_FLOAT, root, a.comm};
        },
        [](auto... a) { MPI_Bcast(a...); }, [](auto... a) { MPI_Ibcast(a...); },
        [](auto... a) { MPI_Bcast_init(a...); }));
    t.push_back(row(
        "reduce", Blocks::none, InPlace::send_of_root, Ahead::all_but_root,
        [](A a) { return std::tuple{a.in, a.out, a.count, MPI_FLOAT, MPI_SUM, root, a.comm}; },
        [](auto... a) { MPI_Reduce(a...); }, [](auto... a) { MPI_Ireduce(a...); },
        [](auto... a) { MPI_Reduce_init(a...); }));
    t.push_back(row(
        "gather", Blocks::none, InPlace::send_of_root, Ahead::all_but_root, to_or_from_root,
        [](auto... a) { MPI_Gather(a...); }, [](auto... a) { MPI_Igather(a...); },
        [](auto... a) { MPI_Gather_init(a...); }));
    t.push_back(row(
        "gatherv", Blocks::none, InPlace::send_of_root, Ahead::all_but_root,
        [](A a) {
            return std::tuple{a.in,      a.block, MPI_FLOAT, a.out, a.counts, a.displacements,
                              MPI_FLOAT, root,    a.comm};
        },
        [](auto... a) { MPI_Gatherv(a...); }, [](auto... a) { MPI_Igatherv(a...); },
        [](auto... a) { MPI_Gatherv_init(a...); }));
    t.push_back(row(
        "scatter", Blocks::none, InPlace::receive_of_root, Ahead::root, to_or_from_root,
        [](auto... a) { MPI_Scatter(a...); }, [](auto... a) { MPI_Iscatter(a...); },
        [](auto... a) { MPI_Scatter_init(a...); }));
    t.push_back(row(
        "scatterv", Blocks::none, InPlace::receive_of_root, Ahead::root,
        [](A a) {
            return std::tuple{a.in,      a.counts, a.displacements, MPI_FLOAT, a.out, a.block,
                              MPI_FLOAT, root,     a.comm};
        },
        [](auto... a) { MPI_Scatterv(a...); }, [](auto... a) { MPI_Iscatterv(a...); },
        [](auto... a) { MPI_Scatterv_init(a...); }));
}

void add_reducing(Table& t) {
    t.push_back(row(
        "allreduce", Blocks::none, InPlace::send, Ahead::nobody, whole,
        [](auto... a) { MPI_Allreduce(a...); }, [](auto... a) { MPI_Iallreduce(a...); },
        [](auto... a) { MPI_Allreduce_init(a...); }));
    t.push_back(row(
        "reduce_scatter", Blocks::ranks, InPlace::send, Ahead::nobody,
        [](A a) { return std::tuple{a.in, a.out, a.counts, MPI_FLOAT, MPI_SUM, a.comm}; },
        [](auto... a) { MPI_Reduce_scatter(a...); }, [](auto... a) { MPI_Ireduce_scatter(a...); },
        [](auto... a) { MPI_Reduce_scatter_init(a...); }));
    t.push_back(row(
        "reduce_scatter_block", Blocks::ranks, InPlace::send, Ahead::nobody,
        [](A a) { return std::tuple{a.in, a.out, a.block, MPI_FLOAT, MPI_SUM, a.comm}; },
        [](auto... a) { MPI_Reduce_scatter_block(a...); },
        [](auto... a) { MPI_Ireduce_scatter_block(a...); },
        [](auto... a) { MPI_Reduce_scatter_block_init(a...); }));
    t.push_back(row(
        "scan", Blocks::none, InPlace::send, Ahead::lower_ranks, whole,
        [](auto... a) { MPI_Scan(a...); }, [](auto... a) { MPI_Iscan(a...); },
        [](auto... a) { MPI_Scan_init(a...); }));
    t.push_back(row(
        "exscan", Blocks::none, InPlace::send, Ahead::lower_ranks, whole,
        [](auto... a) { MPI_Exscan(a...); }, [](auto... a) { MPI_Iexscan(a...); },
        [](auto... a) { MPI_Exscan_init(a...); }));
}

void add_exchanging(Table& t) {
    t.push_back(row(
        "barrier", Blocks::none, InPlace::never, Ahead::nobody,
        [](A a) { return std::tuple{a.comm}; }, [](auto... a) { MPI_Barrier(a...); },
        [](auto... a) { MPI_Ibarrier(a...); }, [](auto... a) { MPI_Barrier_init(a...); }));
    t.push_back(row(
        "allgather", Blocks::none, InPlace::send, Ahead::nobody, to_all,
        [](auto... a) { MPI_Allgather(a...); }, [](auto... a) { MPI_Iallgather(a...); },
        [](auto... a) { MPI_Allgather_init(a...); }));
    t.push_back(row(
        "allgatherv", Blocks::none, InPlace::send, Ahead::nobody, gathered_v,
        [](auto... a) { MPI_Allgatherv(a...); }, [](auto... a) { MPI_Iallgatherv(a...); },
        [](auto... a) { MPI_Allgatherv_init(a...); }));
    t.push_back(row(
        "alltoall", Blocks::ranks, InPlace::send, Ahead::nobody, to_all,
        [](auto... a) { MPI_Alltoall(a...); }, [](auto... a) { MPI_Ialltoall(a...); },
        [](auto... a) { MPI_Alltoall_init(a...); }));
    t.push_back(row(
        "alltoallv", Blocks::ranks, InPlace::send, Ahead::nobody, exchanged_v,
        [](auto... a) { MPI_Alltoallv(a...); }, [](auto... a) { MPI_Ialltoallv(a...); },
        [](auto... a) { MPI_Alltoallv_init(a...); }));
    t.push_back(row(
        "alltoallw", Blocks::ranks, InPlace::send, Ahead::nobody,
        [](A a) {
            return std::tuple{a.in,  a.counts, a.byte_displacements, a.types,
                              a.out, a.counts, a.byte_displacements, a.types,
                              a.comm};
        },
        [](auto... a) { MPI_Alltoallw(a...); }, [](auto... a) { MPI_Ialltoallw(a...); },
        [](auto... a) { MPI_Alltoallw_init(a...); }));
}

void add_neighbouring(Table& t) {
    t.push_back(row(
        "neighbor_allgather", Blocks::none, InPlace::never, Ahead::nobody, to_all,
        [](auto... a) { MPI_Neighbor_allgather(a...); },
        [](auto... a) { MPI_Ineighbor_allgather(a...); },
        [](auto... a) { MPI_Neighbor_allgather_init(a...); }));
    t.push_back(row(
        "neighbor_allgatherv", Blocks::none, InPlace::never, Ahead::nobody, gathered_v,
        [](auto... a) { MPI_Neighbor_allgatherv(a...); },
        [](auto... a) { MPI_Ineighbor_allgatherv(a...); },
        [](auto... a) { MPI_Neighbor_allgatherv_init(a...); }));
    t.push_back(row(
        "neighbor_alltoall", Blocks::neighbours, InPlace::never, Ahead::nobody, to_all,
        [](auto... a) { MPI_Neighbor_alltoall(a...); },
        [](auto... a) { MPI_Ineighbor_alltoall(a...); },
        [](auto... a) { MPI_Neighbor_alltoall_init(a...); }));
    t.push_back(row(
        "neighbor_alltoallv", Blocks::neighbours, InPlace::never, Ahead::nobody, exchanged_v,
        [](auto... a) { MPI_Neighbor_alltoallv(a...); },
        [](auto... a) { MPI_Ineighbor_alltoallv(a...); },
        [](auto... a) { MPI_Neighbor_alltoallv_init(a...); }));
    t.push_back(row(
        "neighbor_alltoallw", Blocks::neighbours, InPlace::never, Ahead::nobody,
        [](A a) {
            return std::tuple{a.in,  a.counts, a.long_displacements, a.types,
                              a.out, a.counts, a.long_displacements, a.types,
                              a.comm};
        },
        [](auto... a) { MPI_Neighbor_alltoallw(a...); },
        [](auto... a) { MPI_Ineighbor_alltoallw(a...); },
        [](auto... a) { MPI_Neighbor_alltoallw_init(a...); }));
}

}  // namespace

bool CollectiveCall::has_size() const { return name != std::string_view("barrier"); }

bool CollectiveCall::on_ring() const { return std::string_view(name).starts_with("neighbor_"); }

const Table& collective_calls() {
    static const Table table = [] {
        Table made;
        add_rooted(made);
        add_reducing(made);
        add_exchanging(made);
        add_neighbouring(made);
        return made;
    }();
    return table;
}

void print_collective_calls() {
    for (const CollectiveCall& call : collective_calls()) {
        JsonLine line("collective");
        line.text("name", call.name).number("has_size", call.has_size());
        line.number("in_place", call.in_place != InPlace::never);
        line.number("persistent", call.prepare != nullptr).print();
    }
}

}  // namespace vecmpi::bench
