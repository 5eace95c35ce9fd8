// SPDX-License-Identifier: BSD-3-Clause
// pack: MPI_Pack and MPI_Unpack over the table of layouts, one rank, with memcpy of as many bytes
// measured beside each. Makes sure that what is unpacked packs to the same bytes; no more is
// tested.
#include <mpi.h>

#include <cstring>

#include "bench.hpp"
#include "typed_buffers.hpp"

namespace vecmpi::bench {
namespace {

constexpr long least_samples = 5;
constexpr double share_of_memcpy = 0.2;

template <typename Call>
Samples sample(const Call& call, double seconds, long warming = 40) {
    const double warm_until = now_ns() + most_warming_ns;
    for (long i = warming; i > 0 && now_ns() < warm_until; i--) call();
    return sample_batches(call, seconds, least_samples);
}

void measure_buffer(const Cell& cell, const Buffer& buffer, const Options& options) {
    Memory memory(cell.span), packed(cell.bytes), again(cell.bytes);
    const auto size = static_cast<int>(cell.bytes);
    const auto pack = [&](char* to) {
        int position = 0;
        MPI_Pack(memory.bytes.get(), buffer.count, buffer.type, to, size, &position,
                 MPI_COMM_WORLD);
    };
    const auto unpack = [&] {
        int position = 0;
        MPI_Unpack(packed.bytes.get(), size, &position, memory.bytes.get(), buffer.count,
                   buffer.type, MPI_COMM_WORLD);
    };
    static void* (*volatile copy)(void*, const void*, std::size_t) = std::memcpy;  // a real call
    const double memcpy_ns =
        sample([&] { copy(again.bytes.get(), packed.bytes.get(), cell.bytes); },
               share_of_memcpy * options.seconds)
            .quantile(0.5);
    const long warming = warming_calls(buffer.type, cell.bytes);
    print_cell(cell, "pack", sample([&] { pack(packed.bytes.get()); }, options.seconds, warming),
               "memcpy", memcpy_ns);
    print_cell(cell, "unpack", sample(unpack, options.seconds, warming), "memcpy", memcpy_ns);
    pack(again.bytes.get());
    if (std::memcmp(packed.bytes.get(), again.bytes.get(), cell.bytes) != 0)
        print_problem(cell, "wrong", "what was unpacked packs to other bytes");
}

}  // namespace

void measure_pack(const Options& options) {
    for_each_layout(options.sizes, options.types, [&](const Cell& cell, const Buffer& buffer) {
        measure_buffer(cell, buffer, options);
    });
}

}  // namespace vecmpi::bench
