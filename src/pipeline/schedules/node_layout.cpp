// SPDX-License-Identifier: BSD-3-Clause
// Which ranks of a communicator share a node.
#include "node_layout.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace vecmpi::pipeline {

NodeLayout::NodeLayout(int ranks) : node_of_(static_cast<size_t>(ranks)) {
    std::iota(node_of_.begin(), node_of_.end(), 0);
    index_nodes();
}

NodeLayout::NodeLayout(const std::vector<int>& node_of_rank) : node_of_(node_of_rank) {
    std::map<int, int> numbers;
    for (int& node : node_of_)
        node = numbers.try_emplace(node, static_cast<int>(numbers.size())).first->second;
    index_nodes();
}

void NodeLayout::index_nodes() {
    const size_t p = node_of_.size();
    const int nodes = p == 0 ? 0 : *std::max_element(node_of_.begin(), node_of_.end()) + 1;
    first_.assign(static_cast<size_t>(nodes) + 1, 0);
    place_.resize(p);
    for (size_t r = 0; r < p; ++r) place_[r] = first_[static_cast<size_t>(node_of_[r]) + 1]++;
    least_ = std::max(1, static_cast<int>(p));
    for (int node = 0; node < nodes; ++node) {
        const auto n = static_cast<size_t>(node);
        most_ = std::max(most_, first_[n + 1]);
        least_ = std::min(least_, first_[n + 1]);
        first_[n + 1] += first_[n];
    }
    order_.resize(p);
    for (size_t r = 0; r < p; ++r)
        order_[static_cast<size_t>(first_[static_cast<size_t>(node_of_[r])] + place_[r])] =
            static_cast<int>(r);
    by_rank_ = std::is_sorted(order_.begin(), order_.end());
}

}  // namespace vecmpi::pipeline
