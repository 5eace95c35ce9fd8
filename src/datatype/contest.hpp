// SPDX-License-Identifier: BSD-3-Clause
// Who is faster, the library or a plan: the program's own calls say so. They go to both by turns
// and are timed until each has had `turns`; the least time of each decides. Knows no MPI. Inside
// src/datatype and its tests only.
#pragma once

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>

namespace vecmpi::datatype {

enum class Turn : uint8_t { library, plan };

inline uint64_t now_ns() noexcept {
    return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

// Any thread may take turns; where two note at once, one of the times may be lost.
class Contest {
  public:
    static constexpr unsigned turns = 5;  // each: one that is interrupted decides nothing

    enum class Winner : uint8_t { open, library, plan };
    Winner winner() const noexcept { return winner_.load(std::memory_order_relaxed); }
    // Without a contest.
    void award(Winner winner) noexcept { winner_.store(winner, std::memory_order_relaxed); }

    // As many turns for both, and no period that a program could share (Thue and Morse): one that
    // packs for two neighbours by turns gives both of them to both.
    Turn next() noexcept {
        const unsigned before = begun_.fetch_add(1, std::memory_order_relaxed);
        return static_cast<Turn>(std::popcount(before) & 1);
    }
    // A turn took `ns` for `bytes` of the stream. True where this note has ended the contest.
    bool note(Turn turn, uint64_t ns, int64_t bytes) noexcept;

  private:
    struct Side {
        std::atomic<unsigned> noted{0};
        std::atomic<uint64_t> least_ps_a_byte{UINT64_MAX};
    };
    std::atomic<Winner> winner_{Winner::open};
    std::atomic<unsigned> begun_{0};
    Side sides_[2];
};

// Streams of one length class have one contest: what is faster in a cache may not be beyond it.
constexpr unsigned length_classes = 6;
constexpr unsigned length_class(int64_t bytes) noexcept {
    unsigned of = 0;
    for (int64_t most = int64_t{4} << 10; bytes > most && of + 1 < length_classes; most *= 4) ++of;
    return of;  // up to 4, 16, 64, 256 KiB, 1 MiB, and above
}

}  // namespace vecmpi::datatype
