// SPDX-License-Identifier: BSD-3-Clause
// Broadcast of many pieces over the circulant graph: which piece each rank sends and receives in
// which round. The source of all of it is Träff, Round-optimal n-block broadcast schedules in
// logarithmic time, arXiv 2312.11236.
#include <algorithm>

#include "block_runs.hpp"
#include "phases.hpp"

namespace vecmpi::pipeline {

namespace {

// Positions count from the root. In round k of q = ceil(log2 p) each sends to the one at distance
// skips[k], the shortest first. Then the rounds begin again, and all pieces are q higher.
//
// The shortest distance in the greedy sum that leads to a position is its base block: the number of
// the first piece that it gets. In the other rounds it gets pieces of q rounds before. Those below
// 0 do not exist, and nothing is sent.
class ReceivedPieces {
  public:
    ReceivedPieces(const std::vector<int>& skips, int position)
        : skips_(skips), rounds_(skips.size() - 1), target_(position + skips.back()) {
        const size_t base = base_block(skips, position);
        is_taken_.assign(skips.size(), false);
        is_taken_[base] = true;
        search(0, 2 * skips.back(), rounds_);
        for (int& piece : pieces_)
            piece = piece == static_cast<int>(rounds_) ? static_cast<int>(base)
                                                       : piece - static_cast<int>(rounds_);
    }
    // Of each round.
    const std::vector<int>& pieces() const noexcept { return pieces_; }

  private:
    static size_t base_block(const std::vector<int>& skips, int position) noexcept {
        for (size_t k = skips.size() - 1; k-- > 0;) {
            if (skips[k] == position) return k;
            if (skips[k] < position) position -= skips[k];
        }
        return skips.size() - 1;  // the root's
    }

    // Algorithm ALLBLOCKS there. Round k takes the base block of a position that lies at least
    // skips[k] and less than skips[k + 1] before ours; each base block once. The positions are sums
    // of distances, the largest first: from `reached`, and below `limit`, which is found already.
    void search(int reached, int limit, size_t largest) {
        for (size_t k = largest + 1; k-- > 0;) {
            if (is_taken_[k]) continue;
            const int next = reached + skips_[k];
            if (next > target_ - skips_[pieces_.size()] || next >= limit) continue;
            if (next <= target_ - skips_[pieces_.size() + 1]) search(next, limit, k);
            if (is_complete() || reached > target_ - skips_[pieces_.size() + 1]) return;
            limit = next;
            pieces_.push_back(static_cast<int>(k));
            is_taken_[k] = true;
            if (is_complete()) return;
        }
    }
    bool is_complete() const noexcept { return pieces_.size() == rounds_; }

    const std::vector<int>& skips_;
    const size_t rounds_;
    const int target_;  // once around, so that sums of distances lead there from the root
    std::vector<bool> is_taken_;
    std::vector<int> pieces_;
};

}  // namespace

// 1. Who sends me what, and what do those receive that I send to? 2. All rounds, the last one of
// which is round q - 1. Pieces that there are none of count as the last one.
void circulant_bcast(Track& track, const Team& team, int root, Segment vector, unsigned number,
                     Place base) {
    const int p = team.size, me = modulo(team.me - root, p);
    if (p == 1) return;
    std::vector<int> skips = circulant_skips(p);
    std::reverse(skips.begin(), skips.end());
    const int q = static_cast<int>(skips.size()) - 1;
    const std::vector<int> received = ReceivedPieces(skips, me).pieces();
    std::vector<int> sent;
    for (int k = 0; k < q; ++k) {
        const auto round = static_cast<size_t>(k);
        sent.push_back(ReceivedPieces(skips, (me + skips[round]) % p).pieces()[round]);
    }
    const Blocks pieces = equal_blocks(vector, static_cast<int>(number));
    const int last = static_cast<int>(number) - 1, begin = modulo(-(last + q), q);
    for (int i = begin; i < begin + last + q; ++i) {
        track.next_round();
        const auto round = static_cast<size_t>(i % q);
        const int skip = skips[round], passed = i / q * q - begin;
        const int given = std::min(last, sent[round] + passed),
                  taken = std::min(last, received[round] + passed);
        const auto rank_at = [&](int position) { return team.rank((position + root) % p); };
        if (given >= 0 && (me + skip) % p != 0)
            track.send(base + at(pieces, given).first, at(pieces, given).count, rank_at(me + skip));
        if (taken >= 0 && me != 0)
            track.receive(base + at(pieces, taken).first, at(pieces, taken).count,
                          rank_at(modulo(me - skip, p)));
    }
}

}  // namespace vecmpi::pipeline
