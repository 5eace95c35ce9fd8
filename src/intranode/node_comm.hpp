// SPDX-License-Identifier: BSD-3-Clause
// What stands beside a communicator of the program's whose ranks share a node: boxes of all of them
// and the turns taken on these. Every rank takes the same turns, since all call the same blocking
// collectives of a communicator in the same order.
#pragma once

#include <memory>
#include <vector>

#include "arena.hpp"
#include "butterfly.hpp"
#include "vecmpi/offload.hpp"

namespace vecmpi {

class NodeComm {
  public:
    NodeComm(int rank, std::vector<BoxOfRank> boxes, LineWidth width) noexcept;
    ~NodeComm();
    NodeComm(const NodeComm&) = delete;
    NodeComm& operator=(const NodeComm&) = delete;

    int rank() const noexcept { return plan_.me; }
    int ranks() const noexcept { return plan_.participants; }

    // Each takes one turn. One thread at a time; data as in Line, `bytes` of them.
    // The value of every rank becomes that of all, combined as by run_butterfly().
    template <class Combine>
    void allreduce(Line& value, size_t bytes, const Combine& combine) noexcept;
    // The values of all ranks combined, on the root; along MPICH's binomial tree, so that sums have
    // its bits.
    template <class Combine>
    void reduce(Line& value, size_t bytes, int root, const Combine& combine) noexcept;
    // The root's value becomes that of all. Returns how many bytes the root told: as many, unless
    // the program is wrong.
    size_t bcast(Line& value, size_t bytes, int root) noexcept;
    // The library refuses this rank's call, and not the others': their turn is to stay the same.
    void skip_turn() noexcept;

  private:
    uint64_t begin_turn() noexcept;
    void end_turn(bool all_began) noexcept;
    void await_finished(uint64_t turn) noexcept;
    static void await(const Line& line, uint64_t turn) noexcept;
    Line& line(uint64_t turn, int rank, int number) const noexcept {
        return boxes_[static_cast<size_t>(rank)]
            .box->lines[turn % Box::line_sets][static_cast<size_t>(number)];
    }
    Box& own() const noexcept { return *boxes_[static_cast<size_t>(plan_.me)].box; }

    const ButterflyPlan plan_;
    std::vector<BoxOfRank> boxes_;  // by rank
    StoreLine stores_[line_data_bytes + 1];
    uint64_t turn_ = 0;
    uint64_t all_finished_ = 0;  // all ranks have finished this turn, as far as is known
};

// Null: the library's collective, or another of ours. The same on all ranks: the first few blocking
// collectives on a communicator only count, the next one makes it, collectively.
NodeComm* node_comm_for(Call call, MPI_Comm comm) noexcept;

// ---- one turn

template <class Combine>
void NodeComm::allreduce(Line& value, size_t bytes, const Combine& combine) noexcept {
    const uint64_t turn = begin_turn();
    run_butterfly(
        plan_, turn, value, bytes, stores_[bytes],
        [&](int rank, int number) noexcept -> Line& { return line(turn, rank, number); }, combine,
        [&](const Line& awaited) noexcept { await(awaited, turn); });
    end_turn(true);
}

template <class Combine>
void NodeComm::reduce(Line& value, size_t bytes, int root, const Combine& combine) noexcept {
    const uint64_t turn = begin_turn();
    const int relative = (rank() - root + ranks()) % ranks();
    Line heard;
    for (int bit = 1; bit < ranks(); bit <<= 1) {
        if ((relative & bit) != 0) {
            value.flag = turn;
            stores_[bytes](&line(turn, rank(), 0), &value);
            break;
        }
        const int source = relative | bit;
        if (source >= ranks()) continue;
        const Line& from = line(turn, (source + root) % ranks(), 0);
        await(from, turn);
        read_data(from, heard, bytes);
        combine(heard, value, value);
    }
    end_turn(false);
}

}  // namespace vecmpi
