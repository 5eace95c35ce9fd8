// SPDX-License-Identifier: BSD-3-Clause
// What `pack`, `messages` and `applications` have in common: memory for a layout, how long to warm
// up, samples of a ping-pong, and the figure of one layout and size.
#pragma once

#include <algorithm>
#include <memory>

#include "layouts.hpp"
#include "timing.hpp"

namespace vecmpi::bench {

struct Memory {
    explicit Memory(std::size_t bytes);
    void fill();
    const std::size_t size;
    std::unique_ptr<char[]> bytes;
};

// Bytes from the lowest to the highest of the buffer's; 0 where a stride makes them too many.
std::size_t span_of(const Buffer& buffer);

// First calls are served otherwise than later ones: a plan is made once the library has spent
// enough on the type, by its own count (docs/datatypes.md), which begins anew for twice as much
// where that was too early; eleven more calls decide whether it is used.
long warming_calls(MPI_Datatype type, std::size_t bytes);
constexpr double most_warming_ns = 3e9;

// half_trips(n): messages there and back n times, and the time of one in ns. Samples of it, once
// `warming` round trips have gone by.
template <typename HalfTrips>
Samples sample_half_trips(const HalfTrips& half_trips, double seconds, long warming) {
    constexpr double batch_ns = 50e3;
    constexpr long most_batch = 1000, least_samples = 5, most_samples = 2000;
    const double begun_ns = now_ns();
    double each_ns = 0;
    for (long done = 0; done < warming && from_rank_0(now_ns() - begun_ns) < most_warming_ns;
         done += 10)
        each_ns = half_trips(10);
    const long batch = repetitions(2 * each_ns, 1e-9 * batch_ns, 1, most_batch);
    const long count =
        repetitions(2 * each_ns * static_cast<double>(batch), seconds, least_samples, most_samples);
    Samples samples;
    for (long i = 0; i < count; i++) samples.add(half_trips(batch));
    return samples;
}

struct Cell {
    const LayoutRow& row;
    std::size_t at;     // what was asked for
    std::size_t bytes;  // packed, what it came to
    std::size_t span;   // in memory, from the buffer's address on
};

// The least time that moving the cache lines of a buffer and of its packed bytes takes.
struct LineLimit {
    std::size_t bytes = 0;  // of the lines; 0: not known
    double ns = 0;
};

// Rates in GB/s. `beside`: what the time of `beside_ns` was for as many bytes.
void print_cell(const Cell& cell, const char* call, const Samples& samples, const char* beside,
                double beside_ns, const LineLimit& limit = {});
void print_problem(const Cell& cell, const char* kind, const char* why);

// measure(cell, buffer) of each layout and size that was asked for.
template <typename Measure>
void for_each_layout(const std::vector<std::size_t>& sizes, const std::vector<std::string>& groups,
                     const Measure& measure) {
    for (const std::size_t bytes : sizes)
        for (const LayoutRow& row : layout_table()) {
            if (!groups.empty() &&
                std::find(groups.begin(), groups.end(), row.group) == groups.end())
                continue;
            Buffer buffer = row.make(row, bytes);
            int packed = 0;
            MPI_Type_size(buffer.type, &packed);
            const std::size_t whole =
                static_cast<std::size_t>(packed) * static_cast<std::size_t>(buffer.count);
            if (const std::size_t span = span_of(buffer); span != 0)
                measure(Cell{row, bytes, whole, span}, buffer);
            MPI_Type_free(&buffer.type);
        }
}

}  // namespace vecmpi::bench
