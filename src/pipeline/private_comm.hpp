// SPDX-License-Identifier: BSD-3-Clause
// Communicators of our own, one for each communicator of the program that schedules run on.
// Messages of schedules never meet the program's.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "choice.hpp"
#include "pipeline/node/api.hpp"
#include "pipeline/schedules/algorithms.hpp"
#include "trials_over_nodes.hpp"

namespace vecmpi::pipeline {

// What a communicator over several nodes has on this one, where ranks share nodes.
class NodeParts {
  public:
    NodeParts(std::unique_ptr<node::NodeTeam> team, MPI_Comm leaders,
              const NodeLayout& layout) noexcept
        : team_(std::move(team)), leaders_(leaders), slices_(slices_of(layout)) {}
    ~NodeParts();
    NodeParts(const NodeParts&) = delete;
    NodeParts& operator=(const NodeParts&) = delete;

    node::NodeTeam& team() const noexcept { return *team_; }
    // Of the first rank on each node; MPI_COMM_NULL on the others.
    MPI_Comm leaders() const noexcept { return leaders_; }
    // Of a vector, that cross the network at once: every node has as many ranks. 0: the nodes are
    // so uneven that a few ranks would reduce for many.
    int slices() const noexcept { return slices_; }

  private:
    friend class PrivateComm;
    static int slices_of(const NodeLayout& layout) noexcept {
        const int least = layout.least_ranks_on_a_node();
        return layout.most_ranks_on_a_node() <= 2 * least ? least : 0;
    }
    const std::unique_ptr<node::NodeTeam> team_;
    const MPI_Comm leaders_;
    const int slices_;
    std::optional<bool> has_staging_buffers_;  // of all ranks; not decided yet
};

// Memory that one schedule works in. Given back it serves the next one, if it is not too large.
struct Scratch {
    Buffer<unsigned char> memory;
    size_t bytes = 0;
};

class PrivateComm {
  public:
    // Owns comm, which MPI_Comm_create made: no attributes of the program's are on it.
    // found: by rank 0, on communicators of the same shape.
    PrivateComm(MPI_Comm comm, int rank, NodeLayout layout, const FoundOverNodes& found)
        : comm_(comm),
          rank_(rank),
          layout_(std::move(layout)),
          trials_(shape_of(layout_), found),
          flat_layout_(settings().reproducible ? layout_.ranks() : 0) {
        alive_.fetch_add(1, std::memory_order_relaxed);
    }
    ~PrivateComm();
    PrivateComm(const PrivateComm&) = delete;
    PrivateComm& operator=(const PrivateComm&) = delete;

    static size_t alive() noexcept { return alive_.load(std::memory_order_relaxed); }

    // Nonblocking and persistent collectives may have requests of ours: equal on all ranks.
    bool serves_requests() const noexcept { return serves_requests_; }
    void serve_requests(bool serves) noexcept { serves_requests_ = serves; }

    MPI_Comm comm() const noexcept { return comm_; }
    int rank() const noexcept { return rank_; }
    const NodeLayout& layout() const noexcept { return layout_; }
    // As if every rank were on a node of its own; for VECMPI_REPRODUCIBLE, and empty without it.
    const NodeLayout& flat_layout() const noexcept { return flat_layout_; }
    static base::CommShape shape_of(const NodeLayout& layout) noexcept {
        return {layout.ranks(), layout.nodes(), layout.most_ranks_on_a_node()};
    }
    TrialsOverNodes& trials() noexcept { return trials_; }

    // Collectives of one communicator begin in the same order on all its ranks, so they have the
    // same sequence numbers everywhere. The tags of so many can be told apart; no more are begun.
    static constexpr uint32_t sequence_numbers_apart = 32;
    uint32_t take_sequence_number() noexcept;
    bool may_begin(uint32_t number) noexcept;
    void end_sequence_number(uint32_t number) noexcept;

    // Persistent collectives start in another order on each rank. Each has a number instead, agreed
    // when it is made. Bit i of the mask: number i is free on this rank.
    static constexpr uint32_t persistent_numbers = 32;
    uint32_t free_numbers() const noexcept {
        return ~taken_numbers_.load(std::memory_order_relaxed);
    }
    void take_number(uint32_t number) noexcept {
        taken_numbers_.fetch_or(1u << number, std::memory_order_relaxed);
    }
    void give_number(uint32_t number) noexcept {
        taken_numbers_.fetch_and(~(1u << number), std::memory_order_relaxed);
    }

    // choose() for this communicator. Kept from call to call: a program repeats its sizes.
    Choice choice_for(const ChoiceFacts& facts) noexcept;
    // Kept likewise. Null: out of memory.
    std::shared_ptr<const Schedule> schedule_for(const ScheduleRequest& request) noexcept;

    // The first call for each kind of memory is collective over comm(). Null on all ranks where one
    // of them cannot, and where no two share a node. Staging buffers carry more than a line.
    enum class NodeMemory : uint8_t { lines, staging_buffers };
    NodeParts* obtain_node_parts(Call call, NodeMemory memory) noexcept;

    Scratch take_scratch(size_t bytes) noexcept;
    void give_back(Scratch scratch) noexcept;

  private:
    std::unique_ptr<NodeParts> make_node_parts() noexcept;
    bool make_staged(node::NodeTeam& team) noexcept;
    struct Known {
        ScheduleRequest request;
        std::shared_ptr<const Schedule> schedule;
    };
    static inline std::atomic<size_t> alive_{0};
    bool serves_requests_ = true;  // written before another thread sees this
    const MPI_Comm comm_;
    const int rank_;
    const NodeLayout layout_;
    TrialsOverNodes trials_;
    const NodeLayout flat_layout_;
    bool node_parts_decided_ = false;
    std::unique_ptr<NodeParts> node_parts_;
    std::atomic<uint32_t> taken_numbers_{0};  // bits; they guard no memory
    std::mutex mutex_;                        // of all below; held for moments
    uint32_t next_sequence_number_ = 0;
    uint32_t all_ended_before_ = 0;
    uint32_t ended_ = 0;  // bit i: number all_ended_before_ + i has ended
    struct Chosen {
        ChoiceFacts facts;
        Choice choice;
    };
    std::array<std::optional<Chosen>, number_of_scheduled_collectives>
        chosen_;  // the last one of each
    std::vector<Known> known_;
    size_t oldest_known_ = 0;
    Scratch spare_;
};
using PrivateCommPointer = std::shared_ptr<PrivateComm>;

// Null where there is none yet, or never will be: the same on all ranks.
PrivateCommPointer find_private_comm(MPI_Comm comm) noexcept;
// The same, or makes one: collective over comm, blocking. Null on all ranks where one of them could
// not, or where `most` are alive already; among these are some whose communicator is gone and whose
// requests are not.
constexpr size_t most_private_comms = 64, most_private_comms_of_small_calls = 32;
PrivateCommPointer obtain_private_comm(MPI_Comm comm, int ranks,
                                       size_t most = most_private_comms) noexcept;
// For a nonblocking collective, which may not wait for the others: the next blocking collective on
// comm makes one.
void want_private_comm(MPI_Comm comm) noexcept;
// Counts blocking collectives of comm that would gain by one. True once there were more than `few`.
bool has_called_often(MPI_Comm comm, uint64_t few) noexcept;
// counting: has_called_often() was asked before. The same on all ranks.
enum class PrivateCommState : uint8_t { nothing, counting, private_comm, refused };
PrivateCommState private_comm_state(MPI_Comm comm) noexcept;
// While it stays the same, none was given up.
uint64_t private_comms_epoch() noexcept;
bool private_comm_is_wanted(MPI_Comm comm) noexcept;

}  // namespace vecmpi::pipeline
