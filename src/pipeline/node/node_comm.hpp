// SPDX-License-Identifier: BSD-3-Clause
// What a communicator of the program has whose ranks share a node: a mailbox of each rank, and
// staging buffers once it has larger data. All ranks call the same blocking collectives in the same
// order, so they count the same sequence numbers.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "arena.hpp"
#include "node_trials.hpp"
#include "offload/api.hpp"
#include "pipeline/api/turn.hpp"
#include "pipeline/node/api.hpp"
#include "pipeline/node/api/butterfly.hpp"
#include "pipeline/operands.hpp"
#include "staged_collectives.hpp"

namespace vecmpi::pipeline::node {

// How one call is served, until it ends. node: null on all ranks where the library serves it.
struct NodeCall {
    class NodeComm* node = nullptr;
    StagedCollectives* staged = nullptr;  // null: the data fit into a line
    Transport transport = Transport::copy_in_copy_out;
    Turn turn{};
};

struct NodeQueue;
struct Neighbourhood;

class NodeComm {
  public:
    NodeComm(int rank, std::vector<MailboxOfRank> mailboxes, Doors doors,
             kernels::LineWidth width) noexcept;
    ~NodeComm();
    NodeComm(const NodeComm&) = delete;
    NodeComm& operator=(const NodeComm&) = delete;

    int rank() const noexcept { return plan_.me; }
    int ranks() const noexcept { return plan_.participants; }

    // Each is one operation, of the next sequence number of its kind. One thread at a time; data as
    // in Line, `bytes` of them.
    // The value of every rank becomes that of all, combined as by run_butterfly().
    template <class Combine>
    void allreduce(kernels::Line& value, size_t bytes, const Combine& combine) noexcept;
    // The values of all ranks combined, on the root; along MPICH's binomial tree, so that sums have
    // its bits.
    template <class Combine>
    void reduce(kernels::Line& value, size_t bytes, int root, const Combine& combine) noexcept;
    // The root's value becomes that of all. Returns how many bytes the root has: as many, unless
    // the program is wrong.
    size_t bcast(kernels::Line& value, size_t bytes, int root) noexcept;

    // Before a call: who serves it? The first one with more data than a line carries makes the
    // staging buffers, collectively, and a call that takes part in a trial begins with a barrier.
    NodeCall begin_call(Call call, MPI_Comm comm, Collective collective, size_t bytes) noexcept;
    // At the end of a call that takes part in a trial.
    void end_turn(const TimedTurn& turn) noexcept;
    void adopt(const FoundOnNode& found) noexcept;

    // Makes the staging buffers, the first time that such slots are wanted; inside a DirectCall.
    // Null on all ranks where one has none.
    StagedCollectives* obtain_staged(MPI_Comm comm, SlotSize wanted) noexcept;
    StagedCollectives* staged() noexcept { return staged_.get(); }  // null before

    // Learns the communicator's topology, the first time: it has one. Null on all ranks where one
    // has too many neighbours.
    Neighbourhood* obtain_neighbourhood(Call call, MPI_Comm comm) noexcept;
    // Null before.
    Neighbourhood* neighbourhood() noexcept { return neighbourhood_.get(); }

    // For nonblocking calls. These may not wait for the others, so the blocking call after a few of
    // them makes the queue. Null until then, or for ever.
    const std::shared_ptr<NodeQueue>& queue() const noexcept { return queue_; }
    void note_nonblocking() noexcept { ++nonblocking_calls_; }
    bool wants_queue() const noexcept {
        return nonblocking_calls_ != 0 && !queue_decided_ &&
               nonblocking_calls_ > calls_before_sharing();
    }
    void obtain_queue(Call call, MPI_Comm comm) noexcept;
    // Who won among blocking calls of the size, or would be tried first.
    Transport likely_transport(Collective collective, size_t bytes) noexcept;

    // A call that finds all flags set would never let the library go on with other messages.
    void poll_now_and_then() noexcept;

  private:
    struct SequenceNumbers {
        uint64_t last = 0;
        uint64_t all_finished = 0;  // by all ranks, as far as is known
    };
    void make_staged(MPI_Comm comm) noexcept;
    bool make_large_slots(MPI_Comm comm) noexcept;
    StagedCollectives* staged_with(SlotSize slots) noexcept {
        return staging_[static_cast<size_t>(slots)] == Staging::made ? staged_.get() : nullptr;
    }
    StagedCollectives* obtain_staged_for(Call call, MPI_Comm comm, SlotSize slots,
                                         size_t bytes) noexcept;
    bool leaves_long_call(size_t bytes) noexcept;
    unsigned candidates_for(Collective collective, size_t bytes) const noexcept;
    static bool goes_in_line(Collective collective, size_t bytes) noexcept {
        return fits_line(bytes) &&
               (collective == Collective::allreduce || collective == Collective::reduce ||
                collective == Collective::bcast || collective == Collective::barrier);
    }
    void compare_choice(Collective collective, unsigned winner) noexcept;
    NodeCall begin_turn(StagedCollectives* staged, Collective collective, size_t bytes) noexcept;
    // Trials of one collective. A call that the library refuses on one rank is as if not made, so
    // what follows from calls of other collectives may not matter.
    struct Trials {
        uint64_t turns = 0;
        unsigned called_off = 0;
        unsigned unfinished = 0;  // rows of which a call has no time
        // Both limits are of what a program does again and again.
        static constexpr unsigned most_called_off = 3, most_unfinished = 64;
        // Not empty: its ranks' times are not brought together yet.
        TurnRow row;
        size_t row_bytes = 0;
        // Too often some rank did not come, or left a call by longjmp.
        bool have_ended() const noexcept {
            return called_off >= most_called_off || unfinished >= most_unfinished;
        }
    };
    bool all_take_turn(Collective collective, unsigned what) noexcept;
    NodeCall call_by(unsigned transport, StagedCollectives* staged) noexcept;
    RowTimes slowest_of_all(const RowTimes& own) noexcept;
    void end_row(Collective collective) noexcept;
    bool meet(Collective collective, size_t bytes) noexcept;
    static unsigned default_of(const RowTrial& one, unsigned candidates) noexcept;
    uint64_t begin(OneWay kind) noexcept;
    void end(OneWay kind) noexcept;
    static void await(const kernels::Line& line, uint64_t sequence) noexcept;
    Mailbox& mailbox(int rank) const noexcept {
        return *mailboxes_[static_cast<size_t>(rank)].mailbox;
    }
    kernels::Line& line(OneWay kind, uint64_t sequence, int rank) const noexcept {
        return mailbox(rank)
            .one_way[static_cast<unsigned>(kind)][sequence % Mailbox::one_way_lines];
    }

    const ButterflyPlan plan_;
    std::vector<MailboxOfRank> mailboxes_;  // by rank
    const Doors doors_;
    kernels::StoreLine stores_[kernels::line_data_bytes + 1];
    uint64_t butterflies_ = 0;
    SequenceNumbers one_way_[number_of_one_way];
    uint32_t looks_ = 0;
    uint64_t moved_in_long_calls_ = 0;  // before there were slots for them
    // Slots of each size, the same on all ranks.
    enum class Staging : uint8_t { not_made, made, refused };
    Staging staging_[number_of_rings] = {};
    uint32_t own_buffer_ = no_staging_buffer;
    std::unique_ptr<StagedCollectives> staged_;
    bool neighbourhood_decided_ = false;
    std::unique_ptr<Neighbourhood> neighbourhood_;
    NodeTrials trials_;
    Trials turns_[number_of_collectives];
    uint64_t nonblocking_calls_ = 0;
    bool queue_decided_ = false;
    std::shared_ptr<NodeQueue> queue_;
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

// ---- operations in lines ------------------------------------------------------------------------

template <class Combine>
void NodeComm::allreduce(kernels::Line& value, size_t bytes, const Combine& combine) noexcept {
    poll_now_and_then();
    const uint64_t sequence = ++butterflies_;
    run_butterfly(
        plan_, sequence, value, bytes, stores_[bytes],
        [&](int rank, int number) noexcept -> kernels::Line& {
            return mailbox(rank).butterfly[sequence % butterfly_depth][number];
        },
        combine, [&](const kernels::Line& awaited) noexcept { await(awaited, sequence); },
        [&](int reader) noexcept { doors_.ring(reader); });
}

template <class Combine>
void NodeComm::reduce(kernels::Line& value, size_t bytes, int root,
                      const Combine& combine) noexcept {
    const uint64_t sequence = begin(OneWay::reduce);
    const int relative = (rank() - root + ranks()) % ranks();
    kernels::Line taken;
    for (int bit = 1; bit < ranks(); bit <<= 1) {
        if ((relative & bit) != 0) {
            value.flag = sequence;
            stores_[bytes](&line(OneWay::reduce, sequence, rank()), &value);
            doors_.ring((rank() - bit + ranks()) % ranks());
            break;
        }
        const int source = relative | bit;
        if (source >= ranks()) continue;
        const kernels::Line& from = line(OneWay::reduce, sequence, (source + root) % ranks());
        await(from, sequence);
        read_data(from, taken, bytes);
        combine(taken, value, value);
    }
    end(OneWay::reduce);
}

}  // namespace vecmpi::pipeline::node
