// SPDX-License-Identifier: BSD-3-Clause
// Which is faster, the library or a plan: a trial on the program's own calls. Knows no MPI. Inside
// src/datatype and its tests only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/api/trial.hpp"
#include "base/api/waiting.hpp"

namespace vecmpi::datatype {

using base::Trial;

enum class Packer : uint8_t { library, plan };  // the candidates

inline bool has_won(const Trial& trial, Packer who) noexcept {
    return trial.winner() == static_cast<unsigned>(who);
}
inline void award(Trial& trial, Packer who) noexcept { trial.award(static_cast<unsigned>(who)); }
inline Packer whose_turn(Trial& trial) noexcept { return static_cast<Packer>(trial.next()); }

// That one took `ns` for `bytes` of the stream.
inline void note_turn(Trial& trial, Packer who, uint64_t ns, int64_t bytes,
                      Trial::Memory memory = Trial::Memory::warm) noexcept {
    constexpr uint64_t ps_in_ns = 1000;
    if (bytes <= 0) return;
    const uint64_t ps = ns * ps_in_ns / static_cast<uint64_t>(bytes);
    if (trial.note(static_cast<unsigned>(who), ps, memory)) trial.judge(trial.least());
}

// How a message goes that we pack, and what that takes beside the plan: finding it, and of a
// nonblocking message a request of ours. MPI_Pack of a short one takes more than packing it, too.
enum class PackedAs : uint16_t { call = 100, request = 600 };  // ns

// A message that we pack is copied once more than one that the library packs straight into what it
// sends. That pays where the plan gains more than the copy takes: 79 GB/s for 2 KiB, 28 for 32 and
// 512 KiB, 10 for 4 MiB (docs/datatypes.md). Times are ps for a byte. Who was not timed was not
// asked: the winner was known.
constexpr bool pays_packed(PackedAs as, const Trial::Times& times, int64_t bytes) noexcept {
    constexpr int64_t near = int64_t{4} << 10, cached = int64_t{1} << 20;
    constexpr uint64_t ps_in_ns = 1000;
    const uint64_t copy_ps = bytes <= near ? 13 : bytes <= cached ? 36 : 100;
    const uint64_t call_ps = static_cast<uint64_t>(as) * ps_in_ns / static_cast<uint64_t>(bytes);
    const uint64_t by_library = times[static_cast<size_t>(Packer::library)];
    const uint64_t by_plan = times[static_cast<size_t>(Packer::plan)];
    if (by_library == Trial::untried || by_plan == Trial::untried) return true;
    return by_plan + copy_ps + call_ps < by_library;
}

// What the library takes where it packs a message in pieces: for each block at least 8 ns, whatever
// it takes for the same bytes as a whole (docs/datatypes.md).
constexpr Trial::Times in_pieces_of(Trial::Times times, int64_t mean_block_bytes) noexcept {
    constexpr uint64_t block_ps = 8'000;
    uint64_t& by_library = times[static_cast<size_t>(Packer::library)];
    if (by_library != Trial::untried)
        by_library = std::max(by_library, block_ps / static_cast<uint64_t>(mean_block_bytes));
    return times;
}

// A call of MPI-IO is timed as a whole, with what the disk and other ranks take. So the packed one
// must be faster by an eighth, not only by what a trial asks for. That is its time as it counts.
constexpr uint64_t counted_in_file(Packer who, uint64_t ns) noexcept {
    return who == Packer::plan ? ns + ns / 8 : ns;
}

// A short message saves UCX's six calls where it goes as bytes, some 200 ns a side: half of that is
// what its plan may take longer than the library. (What takes 100 ns itself, a trial of four turns
// may judge wrongly.)
constexpr bool pays_as_bytes(const Trial::Times& times, int64_t bytes) noexcept {
    constexpr uint64_t saved_ps = 100'000;
    const uint64_t by_library = times[static_cast<size_t>(Packer::library)];
    const uint64_t by_plan = times[static_cast<size_t>(Packer::plan)];
    if (by_library == Trial::untried || by_plan == Trial::untried) return by_plan < by_library;
    return by_plan <= by_library + saved_ps / static_cast<uint64_t>(bytes);
}

// Streams of one length class share a trial: what is faster in a cache may not be beyond it.
constexpr unsigned length_classes = 6;
constexpr unsigned length_class(int64_t bytes) noexcept {
    unsigned of = 0;
    for (int64_t most = int64_t{4} << 10; bytes > most && of + 1 < length_classes; most *= 4) ++of;
    return of;  // up to 4, 16, 64, 256 KiB, 1 MiB, and above
}

}  // namespace vecmpi::datatype
