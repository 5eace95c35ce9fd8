// SPDX-License-Identifier: BSD-3-Clause
// Sums gradients over all ranks, in buckets, in the way of Horovod and of PyTorch's data-parallel
// module. Knows MPI and a row of floats; knows nothing of networks.
//
// Glossary. *Block*: the gradients of one layer. *Bucket*: neighbouring blocks that are sent as one
// Allreduce.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "half.hpp"
#include "options.hpp"

namespace example {

struct Bucket {
    std::size_t first;       // float
    std::size_t count;       // floats
    std::size_t last_block;  // complete once this block is ready
};

// Fuses neighbouring blocks while they fit into most_bytes. A block is never split; one that is
// larger has a bucket of its own. `most_bytes` is of a message on the wire.
std::vector<Bucket> plan_buckets(std::span<const std::size_t> block_counts, std::size_t most_bytes,
                                 Wire wire = Wire::floats);

std::size_t bytes_of(Wire wire);  // of one number

// What a step spent inside MPI, in seconds.
struct CommunicationTime {
    double posting = 0;  // calls that start an operation and return
    double waiting = 0;  // calls that return when it is finished

    double sum() const { return posting + waiting; }
};

class GradientExchange {
  public:
    GradientExchange(MPI_Comm comm, Exchange exchange, Wire wire, std::span<float> gradients,
                     std::vector<Bucket> buckets);

    // Called for block 0, 1, 2 …, each once a step: sends the bucket that this block completes.
    void block_ready(std::size_t block);

    // Returns when all gradients of the step hold their sums; says what the step cost.
    CommunicationTime finish();

  private:
    void send(const Bucket& bucket);
    void reduce(void* sums, int count, MPI_Datatype type, MPI_Op op);

    MPI_Comm comm_;
    Exchange exchange_;
    std::span<float> gradients_;
    std::vector<Bucket> buckets_;
    std::optional<HalfSum> half_sum_;    // with Wire::halves
    std::vector<std::uint16_t> halves_;  // as many as gradients, or none
    std::vector<MPI_Request> requests_;
    std::size_t next_ = 0;  // bucket
    CommunicationTime time_;
};

}  // namespace example
