// SPDX-License-Identifier: BSD-3-Clause
// Epochs of one-sided transfers, by turns.
#include "transfer_trials.hpp"

namespace vecmpi::datatype {

TransferTrials::Choice TransferTrials::choose(uint64_t kind, int64_t bytes, Trial::Memory memory) {
    auto found = rows_.find(kind);
    if (found == rows_.end()) {
        if (rows_.size() == most_rows) return {Packer::library, false};
        found = rows_.try_emplace(kind).first;
        constexpr int64_t long_bytes = int64_t{1} << 20;
        if (bytes > long_bytes) found->second.trial.admit(0b11, Trial::Calls::are_long);
    }
    Row& row = found->second;
    if (row.verdict != Verdict::open)
        return {row.verdict == Verdict::plan ? Packer::plan : Packer::library, has_epoch()};
    if (epoch_.row == nullptr)
        epoch_ = {.row = &row, .by = whose_turn(row.trial), .memory = memory};
    constexpr uint64_t bits = 64;
    epoch_.kinds |= uint64_t{1} << kind % bits;
    return {epoch_.by, true};
}

void TransferTrials::note_transfer(uint64_t ns, int64_t bytes) noexcept {
    epoch_.ns += ns;
    epoch_.bytes += bytes;
}

void TransferTrials::end_epoch(EpochEnd end) noexcept {
    if (epoch_.row != nullptr) compare(*epoch_.row, epoch_, end);
    epoch_ = {};
}

// Epochs of other kinds say nothing of each other. A program whose epochs never come again keeps
// the library.
void TransferTrials::compare(Row& row, const Epoch& epoch, EpochEnd end) noexcept {
    if (row.verdict != Verdict::open) return;
    if (row.kinds == 0) row.kinds = epoch.kinds, row.end = end;
    if (epoch.is_spoilt || row.kinds != epoch.kinds || row.end != end) {
        if (++row.unlike == most_unlike) row.verdict = Verdict::library;
        row.trial.reopen();
        row.kinds = epoch.kinds;
        row.end = end;
        return;
    }
    const auto memory = epoch.by == Packer::plan ? epoch.memory : Trial::Memory::warm;
    note_turn(row.trial, epoch.by, epoch.ns, epoch.bytes, memory);
    if (row.trial.winner() == Trial::open) return;
    const bool pays = has_won(row.trial, Packer::plan) && pays_as_transfer(row.trial.least(), end);
    row.verdict = pays ? Verdict::plan : Verdict::library;
}

}  // namespace vecmpi::datatype
