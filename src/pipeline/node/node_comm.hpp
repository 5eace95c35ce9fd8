// SPDX-License-Identifier: BSD-3-Clause
// What stands beside a communicator of the program's whose ranks share a node: boxes of all of them
// and the turns taken on these; bays, once it has larger data. Every rank takes the same turns,
// since all call the same blocking collectives of a communicator in the same order.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "arena.hpp"
#include "offload/api.hpp"
#include "pipeline/node/api/butterfly.hpp"
#include "pipeline/operands.hpp"
#include "transport_trial.hpp"

namespace vecmpi::pipeline::node {

// For one call. Null on all ranks where the library serves it.
struct BaysToUse {
    Bays* bays = nullptr;
    Transport transport = Transport::copy_in_copy_out;
};

struct JobSite;

class NodeComm {
  public:
    NodeComm(int rank, std::vector<BoxOfRank> boxes, Doors doors,
             kernels::LineWidth width) noexcept;
    ~NodeComm();
    NodeComm(const NodeComm&) = delete;
    NodeComm& operator=(const NodeComm&) = delete;

    int rank() const noexcept { return plan_.me; }
    int ranks() const noexcept { return plan_.participants; }

    // Each takes one turn of its kind. One thread at a time; data as in Line, `bytes` of them.
    // The value of every rank becomes that of all, combined as by run_butterfly().
    template <class Combine>
    void allreduce(kernels::Line& value, size_t bytes, const Combine& combine) noexcept;
    // The values of all ranks combined, on the root; along MPICH's binomial tree, so that sums have
    // its bits.
    template <class Combine>
    void reduce(kernels::Line& value, size_t bytes, int root, const Combine& combine) noexcept;
    // The root's value becomes that of all. Returns how many bytes the root told: as many, unless
    // the program is wrong.
    size_t bcast(kernels::Line& value, size_t bytes, int root) noexcept;

    // Before a call with more data than a line carries; the first one makes the bays, collectively,
    // and the first large one of a collective finds out by which transport it is the fastest.
    BaysToUse bays_for(Call call, MPI_Comm comm, Collective collective, size_t bytes) noexcept;
    // Makes them, the first time; inside a DirectCall. Null on all ranks where one has none.
    Bays* decide_bays(MPI_Comm comm) noexcept;

    // What nonblocking calls use. They may not wait for the others, so the next blocking call makes
    // it: null until then, or for ever.
    std::shared_ptr<JobSite> job_site() noexcept;
    bool wants_job_site() const noexcept { return wants_job_site_; }
    void make_job_site(Call call, MPI_Comm comm) noexcept;

    // A call that finds all flags set would never let the library go on with other messages.
    void poll_now_and_then() noexcept;

  private:
    struct Turns {
        uint64_t last = 0;
        uint64_t all_finished = 0;  // by all ranks, as far as is known
    };
    void make_bays(MPI_Comm comm) noexcept;
    Transport transport_for(Call call, MPI_Comm comm, Collective collective, size_t bytes) noexcept;
    uint64_t begin(OneWay kind) noexcept;
    void end(OneWay kind) noexcept;
    static void await(const kernels::Line& line, uint64_t turn) noexcept;
    Box& box(int rank) const noexcept { return *boxes_[static_cast<size_t>(rank)].box; }
    kernels::Line& line(OneWay kind, uint64_t turn, int rank) const noexcept {
        return box(rank).one_way[static_cast<unsigned>(kind)][turn % Box::one_way_turns];
    }

    const ButterflyPlan plan_;
    std::vector<BoxOfRank> boxes_;  // by rank
    const Doors doors_;
    kernels::StoreLine stores_[kernels::line_data_bytes + 1];
    uint64_t butterflies_ = 0;
    Turns one_way_[number_of_one_way];
    uint32_t calls_ = 0;
    bool bays_decided_ = false;
    uint32_t own_bay_ = no_bay;
    std::unique_ptr<Bays> bays_;
    std::optional<TransportsBySize> transports_[number_of_collectives];
    bool wants_job_site_ = false, job_site_decided_ = false;
    std::shared_ptr<JobSite> job_site_;
};

// Collective over comm, blocking, inside a DirectCall. Null on all ranks where one of them cannot.
std::unique_ptr<NodeComm> make_node_comm(MPI_Comm comm, int ranks) noexcept;

// Combines the vectors that lines carry.
struct CombineInLines {
    const Operands& what;
    size_t bytes;  // of the vector
    void operator()(const kernels::Line& left, const kernels::Line& right,
                    kernels::Line& into) const noexcept {
        offload::reduce_elements(data_of(left, bytes), data_of(right, bytes), data_of(into, bytes),
                                 what.count, what.type, what.extent, what.op);
    }
};
constexpr auto combine_nothing = [](const kernels::Line&, const kernels::Line&,
                                    kernels::Line&) noexcept {};

// Nonblocking calls of a communicator: one after the other, in the order in which all ranks posted
// them; blocking ones pass them. It lives until the last one has ended.
struct JobSite {
    std::unique_ptr<NodeComm> node;
    Bays* bays = nullptr;
    uint64_t posted = 0;             // by the program's thread
    std::atomic<uint64_t> ended{0};  // on this rank; released by the thread that ended one
};

// What is known of a communicator before a call on it.
struct NodeSite {
    NodeComm* node = nullptr;
    bool undecided = false;  // no NodeComm yet, but perhaps from some call on
    int rank = 0, ranks = 0;
    bool declined() const noexcept { return node == nullptr && !undecided; }
};
NodeSite node_site(MPI_Comm comm) noexcept;
// For a call that can run on the node and that the library would not refuse: the same ones on all
// ranks. The first few only count, one with much data for many; the next one makes the NodeComm,
// collectively. Null: the library's collective, or another of ours, on all ranks.
NodeComm* node_comm_for(const NodeSite& site, Call call, MPI_Comm comm, size_t bytes) noexcept;

// ---- one turn

template <class Combine>
void NodeComm::allreduce(kernels::Line& value, size_t bytes, const Combine& combine) noexcept {
    poll_now_and_then();
    const uint64_t turn = ++butterflies_;
    run_butterfly(
        plan_, turn, value, bytes, stores_[bytes],
        [&](int rank, int number) noexcept -> kernels::Line& {
            return box(rank).butterfly[turn % butterfly_depth][number];
        },
        combine, [&](const kernels::Line& awaited) noexcept { await(awaited, turn); },
        [&](int reader) noexcept { doors_.ring(reader); });
}

template <class Combine>
void NodeComm::reduce(kernels::Line& value, size_t bytes, int root,
                      const Combine& combine) noexcept {
    const uint64_t turn = begin(OneWay::reduce);
    const int relative = (rank() - root + ranks()) % ranks();
    kernels::Line heard;
    for (int bit = 1; bit < ranks(); bit <<= 1) {
        if ((relative & bit) != 0) {
            value.flag = turn;
            stores_[bytes](&line(OneWay::reduce, turn, rank()), &value);
            doors_.ring((rank() - bit + ranks()) % ranks());
            break;
        }
        const int source = relative | bit;
        if (source >= ranks()) continue;
        const kernels::Line& from = line(OneWay::reduce, turn, (source + root) % ranks());
        await(from, turn);
        read_data(from, heard, bytes);
        combine(heard, value, value);
    }
    end(OneWay::reduce);
}

}  // namespace vecmpi::pipeline::node
