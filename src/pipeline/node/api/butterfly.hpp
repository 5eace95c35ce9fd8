// SPDX-License-Identifier: BSD-3-Clause
// Extended butterfly: a barrier among any number of participants that carries a reduction in the
// cache lines of its flags (Mohamed El Maarouf et al., Combining reduction with synchronization
// barrier on multi-core processors, CCPE 35, 2023, algorithms 2 to 5). For processes of a node and
// for threads of a team alike.
//
// Glossary
//   sequence  number of the operation, from 1 on, the same for all participants; also the flag of
//             its lines. It takes the place of the paper's sense: a line of an earlier operation
//             never looks like one of this, so nothing is ever reset.
//   board     where the lines of all participants lie. A participant writes its own lines only.
#pragma once

#include <atomic>
#include <cstdint>

#include "kernels/api.hpp"
#include "pipeline/node/api/butterfly_plan.hpp"

namespace vecmpi::pipeline::node {

// A line may be written again two operations later: whoever is at operation n + 2 has seen that all
// began n + 1, hence have read all of n.
constexpr uint64_t butterfly_depth = 2;

// Where the reader cannot know how many bytes the line carries, the flag's upper byte says so.
constexpr int announced_bytes_shift = 56;
constexpr uint64_t flag_of(uint64_t sequence, size_t announced_bytes) noexcept {
    return sequence | static_cast<uint64_t>(announced_bytes) << announced_bytes_shift;
}
inline uint64_t flag_seen(const kernels::Line& line) noexcept {
    // Acquire: pairs with the release of the flag in line_store().
    return std::atomic_ref(const_cast<uint64_t&>(line.flag)).load(std::memory_order_acquire);
}
inline bool shows(const kernels::Line& line, uint64_t sequence) noexcept {
    return (flag_seen(line) ^ sequence) << (64 - announced_bytes_shift) == 0;
}

// Where `bytes` of data begin: they end where the flag begins, in whole words, so that elements
// keep their place.
inline unsigned char* data_of(kernels::Line& line, size_t bytes) noexcept {
    return line.data + kernels::line_data_bytes - (bytes + 7) / 8 * 8;
}
inline const unsigned char* data_of(const kernels::Line& line, size_t bytes) noexcept {
    return data_of(const_cast<kernels::Line&>(line), bytes);
}

// The data of a line whose flag was seen. Relaxed: the flag's acquire orders them.
inline void read_data(const kernels::Line& line, kernels::Line& into, size_t bytes) noexcept {
    auto* const there = reinterpret_cast<uint64_t*>(const_cast<kernels::Line*>(&line));
    auto* const here = reinterpret_cast<uint64_t*>(&into);
    constexpr size_t words = kernels::line_data_bytes / 8;
    for (size_t i = words - (bytes + 7) / 8; i < words; ++i)
        here[i] = std::atomic_ref(there[i]).load(std::memory_order_relaxed);
}

// One operation. value: this participant's data on entry, the result on return, the same bits for
// all.
//   board(participant, line) -> Line&   of this operation's set
//   combine(left, right, into)          Lines; `into` may be either; called with the lower
//                                       participants' part left
//   await(line)                         returns once the line shows the sequence number
//   notify(participant)                 called after a line was written that this one may await
template <class Board, class Combine, class Await, class Notify>
void run_butterfly(const ButterflyPlan& plan, uint64_t sequence, kernels::Line& value, size_t bytes,
                   kernels::StoreLine store, const Board& board, const Combine& combine,
                   const Await& await, const Notify& notify) noexcept {
    value.flag = sequence;
    const auto give = [&](int line, int reader) noexcept {
        store(&board(plan.me, line), &value);
        notify(reader);
    };
    const auto take = [&](int who, int line, kernels::Line& into) noexcept {
        const kernels::Line& from = board(who, line);
        await(from);
        read_data(from, into, bytes);
    };
    const int other = plan.other_of_group();
    // 1. Group: an extra folds its value onto its master and waits for the release.
    if (plan.is_extra()) {
        give(0, other);
        take(other, plan.release_line(), value);
        return;
    }
    kernels::Line taken;
    if (other >= 0) {
        take(other, 0, taken);
        combine(taken, value, value);
    }
    // 2. Butterfly among the masters.
    for (int step = 0; step < plan.steps(); ++step) {
        const int partner = plan.partner(step);
        give(step, partner);
        take(partner, step, taken);
        if (partner > plan.me)
            combine(value, taken, value);
        else
            combine(taken, value, value);
    }
    // 3. Release.
    if (other >= 0) give(plan.release_line(), other);
}

}  // namespace vecmpi::pipeline::node
