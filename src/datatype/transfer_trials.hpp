// SPDX-License-Identifier: BSD-3-Clause
// Which is faster for the one-sided transfers of a window, the library or a plan: a trial on the
// program's own transfers. Knows no MPI and reads no clock. Inside src/datatype and its tests only.
//
// Glossary
//   kind    transfers of one type, one direction and one class of lengths
//   epoch   from a transfer to the call after which none is left open. The library may move the
//           data in either of the two, so only the whole is timed, and one candidate serves it
#pragma once

#include <unordered_map>

#include "pack_trial.hpp"

namespace vecmpi::datatype {

// What ends an epoch. A fence waits for other ranks as well.
enum class EpochEnd : uint8_t { own, with_others };

// Times of whole epochs, ps for a byte. A plan must gain a quarter, since an epoch's time varies,
// and a third where it holds the waiting for others.
constexpr bool pays_as_transfer(const Trial::Times& times, EpochEnd end) noexcept {
    const uint64_t by_library = times[static_cast<size_t>(Packer::library)];
    const uint64_t by_plan = times[static_cast<size_t>(Packer::plan)];
    if (by_library == Trial::untried || by_plan == Trial::untried) return false;
    return end == EpochEnd::own ? by_plan < by_library / 4 * 3 : by_plan < by_library / 3 * 2;
}

// Of one window. One thread at a time.
class TransferTrials {
  public:
    struct Choice {
        Packer by;
        bool is_timed;  // note_transfer() is to follow
    };
    // Who serves a transfer of `bytes`. `kind` is a hash; `memory` says whether the plan was used
    // before.
    Choice choose(uint64_t kind, int64_t bytes, Trial::Memory memory);
    // That one took `ns` within its call.
    void note_transfer(uint64_t ns, int64_t bytes) noexcept;
    // What was chosen could not be done.
    void spoil_epoch() noexcept { epoch_.is_spoilt = true; }
    bool has_epoch() const noexcept { return epoch_.row != nullptr; }
    void note_completion(uint64_t ns) noexcept { epoch_.ns += ns; }
    void end_epoch(EpochEnd end) noexcept;

  private:
    enum class Verdict : uint8_t { open, library, plan };
    // Of the kind that began the epoch.
    struct Row {
        Trial trial;
        Verdict verdict = Verdict::open;
        uint64_t kinds = 0;  // of its epochs, as bits of their hashes: they are to be alike
        EpochEnd end = EpochEnd::own;
        unsigned unlike = 0;  // epochs that were not
    };
    struct Epoch {
        Row* row = nullptr;
        Packer by = Packer::library;
        Trial::Memory memory = Trial::Memory::warm;
        bool is_spoilt = false;
        uint64_t kinds = 0, ns = 0;
        int64_t bytes = 0;
    };
    static constexpr size_t most_rows = 64;
    static constexpr unsigned most_unlike = 16;

    static void compare(Row& row, const Epoch& epoch, EpochEnd end) noexcept;

    std::unordered_map<uint64_t, Row> rows_;
    Epoch epoch_;
};

}  // namespace vecmpi::datatype
