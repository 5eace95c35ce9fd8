// SPDX-License-Identifier: BSD-3-Clause
// messages: a ping-pong of derived datatypes over the table of layouts, the same type on both
// sides, and of as many contiguous bytes beside each. Exactly two ranks take part. Makes sure that
// what came is what was sent; no more is tested.
#include <mpi.h>

#include <cstring>

#include "bench.hpp"
#include "typed_buffers.hpp"

namespace vecmpi::bench {
namespace {

constexpr double share_of_contiguous = 0.2;

struct Message {
    void* memory;
    int count;
    MPI_Datatype type;
};

// Half a round trip of so many, in ns.
double half_trip(const Message& message, int rank, long count) {
    const double start = now_ns();
    for (long i = 0; i < count; i++) {
        if (rank == 0) MPI_Send(message.memory, message.count, message.type, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(message.memory, message.count, message.type, 1 - rank, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(message.memory, message.count, message.type, 0, 0, MPI_COMM_WORLD);
    }
    return (now_ns() - start) / static_cast<double>(2 * count);
}

Samples sample(const Message& message, int rank, double seconds, long warming) {
    const auto half_trips = [&](long count) { return half_trip(message, rank, count); };
    return sample_half_trips(half_trips, seconds, warming);
}

// Rank 0's bytes, packed, have come to rank 1 and back.
bool has_come(const Message& message, std::size_t bytes, int rank) {
    const auto size = static_cast<int>(bytes);
    Memory mine(bytes), rank_0s(bytes);
    int position = 0;
    MPI_Pack(message.memory, message.count, message.type, mine.bytes.get(), size, &position,
             MPI_COMM_WORLD);
    if (rank == 0) std::memcpy(rank_0s.bytes.get(), mine.bytes.get(), bytes);
    MPI_Bcast(rank_0s.bytes.get(), size, MPI_BYTE, 0, MPI_COMM_WORLD);
    return largest(std::memcmp(mine.bytes.get(), rank_0s.bytes.get(), bytes) != 0) == 0;
}

void measure_buffer(const Cell& cell, const Buffer& buffer, int rank, double seconds) {
    constexpr long contiguous_warming = 40;
    Memory memory(cell.span), contiguous(cell.bytes);
    if (rank == 1) std::memset(memory.bytes.get(), 0, cell.span);
    const Message typed{memory.bytes.get(), buffer.count, buffer.type};
    const Message bytes{contiguous.bytes.get(), static_cast<int>(cell.bytes), MPI_BYTE};
    const double contiguous_ns =
        sample(bytes, rank, share_of_contiguous * seconds, contiguous_warming).quantile(0.5);
    const Samples samples = sample(typed, rank, seconds, warming_calls(buffer.type, cell.bytes));
    const bool right = has_come(typed, cell.bytes, rank);
    if (rank != 0) return;
    print_cell(cell, "message", samples, "contiguous", contiguous_ns);
    if (!right) print_problem(cell, "wrong", "other bytes have come than were sent");
}

}  // namespace

void measure_messages(const Options& options) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for_each_layout(options.sizes, options.types, [&](const Cell& cell, const Buffer& buffer) {
        measure_buffer(cell, buffer, rank, options.seconds);
    });
}

}  // namespace vecmpi::bench
