// SPDX-License-Identifier: BSD-3-Clause
// pack: MPI_Pack and MPI_Unpack over the table of layouts, one rank, with memcpy of as many bytes
// and memcpy of as many cache lines measured beside each. Makes sure that what is unpacked packs to
// the same bytes, and that unpacking writes the layout's number of bytes; no more is tested.
#include <mpi.h>

#include <cstdint>
#include <cstring>
#include <optional>

#include "bench.hpp"
#include "cache_lines.hpp"
#include "typed_buffers.hpp"

namespace vecmpi::bench {
namespace {

constexpr long least_samples = 5;
constexpr double share_of_memcpy = 0.2;

template <typename Call>
Samples sample(const Call& call, double seconds, long warming) {
    const double warm_until = now_ns() + most_warming_ns;
    for (long i = warming; i > 0 && now_ns() < warm_until; i--) call();
    return sample_batches(call, seconds, least_samples);
}

std::size_t place_on_line(const Memory& memory) {
    return reinterpret_cast<std::uintptr_t>(memory.bytes.get()) % line_bytes;
}

// A real call, whatever the compiler knows of the sizes.
void* (*volatile copy)(void*, const void*, std::size_t) = std::memcpy;

Samples sample_memcpy(char* to, const char* from, std::size_t bytes, double seconds, long warming) {
    return sample([&] { copy(to, from, bytes); }, share_of_memcpy * seconds, warming);
}

// The bytes of the lines that the layout's data and the packed bytes touch. Marks the data by
// unpacking into zeros; nothing, where that has written more or less than the data.
std::optional<std::size_t> touched_lines(const Cell& cell, const Buffer& buffer, Memory& memory,
                                         Memory& packed) {
    std::memset(memory.bytes.get(), 0, memory.size);
    std::memset(packed.bytes.get(), 1, packed.size);
    int position = 0;
    MPI_Unpack(packed.bytes.get(), static_cast<int>(cell.bytes), &position, memory.bytes.get(),
               buffer.count, buffer.type, MPI_COMM_WORLD);
    const Marked data = marked(memory.bytes.get(), memory.size, place_on_line(memory));
    memory.fill();
    packed.fill();
    if (data.bytes != cell.bytes) return std::nullopt;
    return data.line_bytes + bytes_of_lines(place_on_line(packed), cell.bytes);
}

// The least time, so of the fastest copies, between whole lines that are half a page apart: REP
// MOVSB of AMD's Zen 3 takes ten times as long where they are nearly at the same place of a page.
LineLimit line_limit(std::size_t touched, double seconds) {
    constexpr std::size_t page = 4096;
    constexpr long warming = 10;
    constexpr double fastest = 0.1;
    const std::size_t bytes = copied_alike(touched);
    const std::size_t distance = (bytes + page - 1) / page * page + page / 2;
    Memory memory(line_bytes + distance + bytes);
    char* const from = memory.bytes.get() + line_bytes - place_on_line(memory);
    return {touched,
            sample_memcpy(from + distance, from, bytes, seconds, warming).quantile(fastest)};
}

void measure_buffer(const Cell& cell, const Buffer& buffer, const Options& options) {
    Memory memory(cell.span), packed(cell.bytes), again(cell.bytes);
    const auto touched = touched_lines(cell, buffer, memory, packed);
    if (!touched) return print_problem(cell, "wrong", "unpacking writes other bytes than its data");
    const LineLimit limit = line_limit(*touched, options.seconds);
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
    const double memcpy_ns =
        sample_memcpy(again.bytes.get(), packed.bytes.get(), cell.bytes, options.seconds, 40)
            .quantile(0.5);
    const long warming = warming_calls(buffer.type, cell.bytes);
    print_cell(cell, "pack", sample([&] { pack(packed.bytes.get()); }, options.seconds, warming),
               "memcpy", memcpy_ns, limit);
    print_cell(cell, "unpack", sample(unpack, options.seconds, warming), "memcpy", memcpy_ns,
               limit);
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
