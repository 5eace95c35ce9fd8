// SPDX-License-Identifier: BSD-3-Clause
// The buckets behind gradient_exchange.hpp. Knows nothing of networks.
#include "gradient_exchange.hpp"

#include <utility>

namespace example {

std::size_t bytes_of(Wire wire) {
    return wire == Wire::halves ? sizeof(std::uint16_t) : sizeof(float);
}

std::vector<Bucket> plan_buckets(std::span<const std::size_t> block_counts, std::size_t most_bytes,
                                 Wire wire) {
    std::vector<Bucket> buckets;
    std::size_t first = 0;
    for (std::size_t block = 0; block < block_counts.size(); ++block) {
        const std::size_t count = block_counts[block];
        const bool fits =
            !buckets.empty() && (buckets.back().count + count) * bytes_of(wire) <= most_bytes;
        if (!fits) buckets.push_back({first, 0, block});
        buckets.back().count += count;
        buckets.back().last_block = block;
        first += count;
    }
    return buckets;
}

GradientExchange::GradientExchange(MPI_Comm comm, Exchange exchange, Wire wire,
                                   std::span<float> gradients, std::vector<Bucket> buckets)
    : comm_(comm), exchange_(exchange), gradients_(gradients), buckets_(std::move(buckets)) {
    requests_.reserve(buckets_.size());
    if (wire == Wire::floats) return;
    half_sum_.emplace();
    halves_.resize(gradients.size());
}

void GradientExchange::send(const Bucket& bucket) {
    const std::span<float> floats = gradients_.subspan(bucket.first, bucket.count);
    const int count = static_cast<int>(bucket.count);
    if (!half_sum_) return reduce(floats.data(), count, MPI_FLOAT, MPI_SUM);
    to_halves(floats, &halves_[bucket.first]);
    reduce(&halves_[bucket.first], count, half_sum_->type(), half_sum_->op());
}

void GradientExchange::reduce(void* sums, int count, MPI_Datatype type, MPI_Op op) {
    const double start = MPI_Wtime();
    if (exchange_ == Exchange::blocking) {
        MPI_Allreduce(MPI_IN_PLACE, sums, count, type, op, comm_);
        time_.waiting += MPI_Wtime() - start;
    } else {
        requests_.push_back(MPI_REQUEST_NULL);
        MPI_Iallreduce(MPI_IN_PLACE, sums, count, type, op, comm_, &requests_.back());
        time_.posting += MPI_Wtime() - start;
    }
}

void GradientExchange::block_ready(std::size_t block) {
    if (next_ < buckets_.size() && buckets_[next_].last_block == block) send(buckets_[next_++]);
}

CommunicationTime GradientExchange::finish() {
    if (exchange_ == Exchange::overlap) {
        const double start = MPI_Wtime();
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
        time_.waiting += MPI_Wtime() - start;
        requests_.clear();
    }
    if (half_sum_) to_floats(halves_.data(), gradients_);
    next_ = 0;
    return std::exchange(time_, {});
}

}  // namespace example
