// SPDX-License-Identifier: BSD-3-Clause
// The ranks of a communicator over several nodes that share one: a NodeComm under another face.
#include <algorithm>
#include <cstring>
#include <new>

#include "kernels/api.hpp"
#include "node_comm.hpp"
#include "pipeline/node/api.hpp"

namespace vecmpi::pipeline::node {

namespace {
void copy_input(const Operands& vector) noexcept {
    if (vector.output != vector.input && vector.count != 0)
        kernels::copy_bytes(vector.output, vector.input, vector.bytes());
}
}  // namespace

static_assert(NodeTeam::most_bytes_in_line == kernels::line_data_bytes);

NodeTeam::NodeTeam(std::unique_ptr<NodeComm> node) noexcept : node_(std::move(node)) {}

NodeTeam::~NodeTeam() = default;

std::unique_ptr<NodeTeam> NodeTeam::make(MPI_Comm node_comm) noexcept {
    int ranks = 0;
    real.Comm_size(node_comm, &ranks);
    std::unique_ptr<NodeComm> node;
    if (ranks > 1) {
        node = make_node_comm(node_comm, ranks);
        if (!node) return nullptr;
    }
    return std::unique_ptr<NodeTeam>(new (std::nothrow) NodeTeam(std::move(node)));
}

bool NodeTeam::make_staged(MPI_Comm node_comm) noexcept {
    if (node_) staged_ = node_->obtain_staged(node_comm, SlotSize::large);
    return !node_ || staged_ != nullptr;
}

void NodeTeam::reduce_to_first(const Operands& vector) noexcept {
    const size_t bytes = vector.bytes();
    if (!node_) return copy_input(vector);
    if (bytes > kernels::line_data_bytes) {
        node_->poll_now_and_then();
        return staged_->reduce(vector, 0);
    }
    kernels::Line value;
    if (bytes == 0) return node_->reduce(value, 0, 0, combine_nothing);
    std::memcpy(data_of(value, bytes), vector.input, bytes);
    node_->reduce(value, bytes, 0, CombineInLines{vector, bytes});
    if (node_->rank() == 0) std::memcpy(vector.output, data_of(value, bytes), bytes);
}

// The first rank says by a wrong number of bytes that the data are not good.
bool NodeTeam::bcast_from_first(void* data, size_t bytes, bool good) noexcept {
    if (!node_) return good;
    const bool is_first = node_->rank() == 0;
    size_t first_bytes = 0;
    if (bytes > kernels::line_data_bytes) {
        staged_->bcast(is_first && !good ? nullptr : static_cast<unsigned char*>(data), bytes, 0,
                       &first_bytes, Transport::copy_in_copy_out);
        return is_first ? good : first_bytes == bytes;
    }
    const size_t other = bytes == 0 ? 1 : 0;
    kernels::Line value;
    if (bytes != 0) std::memcpy(data_of(value, bytes), data, bytes);
    first_bytes = node_->bcast(value, is_first && !good ? other : bytes, 0);
    if (is_first) return good;
    if (bytes != 0) std::memcpy(data, data_of(value, bytes), bytes);
    return first_bytes == bytes;
}

void NodeTeam::reduce_slices(const Operands& vector, int slices) noexcept {
    if (!node_) return copy_input(vector);
    node_->poll_now_and_then();
    staged_->reduce_slices(vector, slices);
}

void NodeTeam::gather_slices(const Operands& vector, int slices) noexcept {
    if (node_) staged_->gather_slices(vector, slices);
}

}  // namespace vecmpi::pipeline::node
