// SPDX-License-Identifier: BSD-3-Clause
// The ranks of a communicator over several nodes that share one: its boxes and bays, under another
// face.
#include <algorithm>
#include <cstring>
#include <new>

#include "node_comm.hpp"
#include "vecmpi/intranode.hpp"

namespace vecmpi {

namespace {

Reduction reduction_of(const NodeVector& vector) noexcept {
    // Only read, unless it is the output.
    auto* const input = static_cast<unsigned char*>(const_cast<void*>(vector.input));
    return {input,     static_cast<unsigned char*>(vector.output), vector.elements, vector.type,
            vector.op, static_cast<size_t>(vector.element_bytes)};
}

void copy_input(const NodeVector& vector) noexcept {
    if (vector.output != vector.input && vector.elements != 0)
        std::memcpy(vector.output, vector.input, vector.bytes());
}

}  // namespace

NodeTeam::NodeTeam(std::unique_ptr<NodeComm> node, Bays* bays) noexcept
    : node_(std::move(node)), bays_(bays) {}

NodeTeam::~NodeTeam() = default;

std::unique_ptr<NodeTeam> NodeTeam::make(MPI_Comm node_comm) noexcept {
    int ranks = 0;
    real.Comm_size(node_comm, &ranks);
    std::unique_ptr<NodeComm> node;
    Bays* bays = nullptr;
    if (ranks > 1) {
        node = make_node_comm(node_comm, ranks);
        if (node) bays = node->decide_bays(node_comm);
        if (bays == nullptr) return nullptr;
    }
    return std::unique_ptr<NodeTeam>(new (std::nothrow) NodeTeam(std::move(node), bays));
}

void NodeTeam::reduce_to_first(const NodeVector& vector) noexcept {
    const size_t bytes = vector.bytes();
    if (!node_) return copy_input(vector);
    if (bytes > line_data_bytes) {
        node_->poll_now_and_then();
        return bays_->reduce(reduction_of(vector), 0);
    }
    Line value;
    if (bytes == 0) return node_->reduce(value, 0, 0, combine_nothing);
    std::memcpy(data_of(value, bytes), vector.input, bytes);
    node_->reduce(value, bytes, 0, CombineElements{vector.elements, vector.type, vector.op, bytes});
    if (node_->rank() == 0) std::memcpy(vector.output, data_of(value, bytes), bytes);
}

void NodeTeam::bcast_from_first(void* data, size_t bytes) noexcept {
    if (!node_) return;
    if (bytes > line_data_bytes) {
        size_t told = 0;
        return bays_->bcast(static_cast<unsigned char*>(data), bytes, 0, &told, Way::in_rounds);
    }
    Line value;
    if (bytes != 0) std::memcpy(data_of(value, bytes), data, bytes);
    node_->bcast(value, bytes, 0);
    if (bytes != 0) std::memcpy(data, data_of(value, bytes), bytes);
}

void NodeTeam::reduce_slices(const NodeVector& vector, int slices) noexcept {
    if (!node_) return copy_input(vector);
    node_->poll_now_and_then();
    bays_->reduce_slices(reduction_of(vector), slices);
}

void NodeTeam::gather_slices(const NodeVector& vector, int slices) noexcept {
    if (!node_) return;
    bays_->gather_slices(static_cast<unsigned char*>(vector.output), vector.elements,
                         static_cast<size_t>(vector.element_bytes), slices);
}

}  // namespace vecmpi
