// SPDX-License-Identifier: BSD-3-Clause
// Which ranks of a communicator share a node. Pure: the same values in on all ranks, the same out.
#pragma once

#include <cstddef>
#include <vector>

namespace vecmpi::pipeline {

class NodeLayout {
  public:
    // Every rank on a node of its own.
    explicit NodeLayout(int ranks);
    // node_of_rank: any number that ranks of one node have in common and no others.
    explicit NodeLayout(const std::vector<int>& node_of_rank);

    int ranks() const noexcept { return static_cast<int>(order_.size()); }
    int nodes() const noexcept { return static_cast<int>(first_.size()) - 1; }
    int ranks_on(int node) const noexcept {
        return first_[static_cast<size_t>(node) + 1] - first_[static_cast<size_t>(node)];
    }
    int most_ranks_on_a_node() const noexcept { return most_; }
    int least_ranks_on_a_node() const noexcept { return least_; }
    // All nodes have the same number of ranks.
    bool uniform() const noexcept { return most_ * nodes() == ranks(); }
    // Ranks node by node, in rank order on each; nodes in the order of their lowest rank. Whoever
    // passes data on in this order leaves each node once.
    const std::vector<int>& order() const noexcept { return order_; }
    bool order_is_by_rank() const noexcept { return by_rank_; }
    int node_of(int rank) const noexcept { return node_of_[static_cast<size_t>(rank)]; }
    // Position of a rank among those of its node.
    int place_on_node(int rank) const noexcept { return place_[static_cast<size_t>(rank)]; }
    // The i-th rank of a node.
    int rank_on(int node, int i) const noexcept {
        return order_[static_cast<size_t>(first_[static_cast<size_t>(node)] + i)];
    }

  private:
    void index_nodes();
    std::vector<int> node_of_;  // numbered from 0 in the order of the lowest rank
    std::vector<int> place_;
    std::vector<int> order_;
    std::vector<int> first_;  // of each node in order_, and the end
    int most_ = 1, least_ = 1;
    bool by_rank_ = true;
};

}  // namespace vecmpi::pipeline
