// SPDX-License-Identifier: BSD-3-Clause
// Which is faster, the library or a plan: timed on the program's own calls. Each serves some of the
// calls, and the least time of each decides. Knows no MPI. Inside src/datatype and its tests only.
#pragma once

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>

namespace vecmpi::datatype {

enum class Packer : uint8_t { library, plan };

inline uint64_t now_ns() noexcept {
    return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

// For any number of threads. Of two that note at once, one time may be lost.
class PackTrial {
  public:
    static constexpr unsigned calls_each = 5;  // so that an interrupted one decides nothing

    enum class Winner : uint8_t { open, library, plan };
    Winner winner() const noexcept { return winner_.load(std::memory_order_relaxed); }
    // Without a trial.
    void award(Winner winner) noexcept { winner_.store(winner, std::memory_order_relaxed); }

    // Who serves the next call. The order is that of Thue and Morse: as many calls for both, and no
    // period. A program that packs for two neighbours alternately has both of them timed with both.
    Packer next() noexcept {
        const unsigned before = begun_.fetch_add(1, std::memory_order_relaxed);
        return static_cast<Packer>(std::popcount(before) & 1);
    }
    // That one took `ns` for `bytes` of the stream. True where this has ended the trial.
    bool note(Packer who, uint64_t ns, int64_t bytes) noexcept;

  private:
    struct Side {
        std::atomic<unsigned> noted{0};
        std::atomic<uint64_t> least_ps_a_byte{UINT64_MAX};
    };
    std::atomic<Winner> winner_{Winner::open};
    std::atomic<unsigned> begun_{0};
    Side sides_[2];
};

// Streams of one length class share a trial: what is faster in a cache may not be beyond it.
constexpr unsigned length_classes = 6;
constexpr unsigned length_class(int64_t bytes) noexcept {
    unsigned of = 0;
    for (int64_t most = int64_t{4} << 10; bytes > most && of + 1 < length_classes; most *= 4) ++of;
    return of;  // up to 4, 16, 64, 256 KiB, 1 MiB, and above
}

}  // namespace vecmpi::datatype
