// SPDX-License-Identifier: BSD-3-Clause
// What trials have found goes from a job to the next (VECMPI_PROFILE=learn). Classes of sizes are
// those of a trial: number c holds sizes from 2^(c-1) on, and number 0 no bytes.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/api/profile.hpp"
#include "base/api/trial.hpp"

namespace vecmpi::pipeline {

// By collective and class: a candidate, or Trial::open.
template <size_t collectives, size_t classes>
using Winners = std::array<std::array<uint8_t, classes>, collectives>;

// Found by earlier jobs. All ranks have read the same, or one tells the others.
template <size_t collectives, size_t classes>
void adopt_learned(const base::CommShape& shape, Winners<collectives, classes>& found) noexcept {
    for (const base::LearnedRow& row : base::process_profile().profile.learned) {
        const auto c = static_cast<size_t>(row.collective);
        if (row.shape != shape || c >= collectives) continue;
        for (const base::LearnedWinner& winner : row.winners) {
            const auto of = static_cast<size_t>(std::bit_width(winner.from_bytes));
            if (of < classes) found[c][of] = winner.candidate;
        }
    }
}

// What differs from what was known before. May throw std::bad_alloc.
template <size_t collectives, size_t classes>
void append_learned(const base::CommShape& shape, const Winners<collectives, classes>& found,
                    const Winners<collectives, classes>& before,
                    std::vector<base::LearnedRow>& rows) {
    for (size_t c = 0; c < collectives; ++c) {
        base::LearnedRow row{shape, static_cast<Collective>(c), {}};
        for (size_t of = 0; of < classes; ++of)
            if (found[c][of] != before[c][of] && found[c][of] != base::Trial::open)
                row.winners.push_back({of == 0 ? 0 : size_t{1} << (of - 1), found[c][of]});
        if (!row.winners.empty()) rows.push_back(std::move(row));
    }
}

}  // namespace vecmpi::pipeline
