// SPDX-License-Identifier: BSD-3-Clause
// Tries the ways on data that the ranks have just written, as programs do.
#include "way_choice.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <new>

#include "base/api/profile.hpp"

namespace vecmpi::pipeline::node {

namespace {

constexpr int trials = 3;
// What differs less is noise, and ours give the CPU away while they wait.
constexpr double one_copy_wins_by = 0.95, library_wins_by = 0.9;

// What an earlier communicator found, two bits a size; not_known at first. Relaxed: each is a value
// of its own.
constexpr uint32_t not_known = UINT32_MAX;
std::atomic<uint32_t> known[number_of_large_kinds] = {not_known, not_known, not_known, not_known,
                                                      not_known};

// How many ranks it was found on: more of them share the memory, and what they wait for.
constexpr int ranks_shift = 8;

uint32_t packed(const LargeChoice& choice, int ranks) noexcept {
    uint32_t bits = static_cast<uint32_t>(ranks) << ranks_shift;
    for (size_t i = 0; i < choice.at.size(); ++i)
        bits |= static_cast<uint32_t>(choice.at[i]) << (2 * i);
    return bits;
}

LargeChoice unpacked(uint32_t bits) noexcept {
    LargeChoice choice;
    for (size_t i = 0; i < choice.at.size(); ++i)
        choice.at[i] = static_cast<Candidate>(bits >> (2 * i) & 3u);
    return choice;
}

Reduction sum_of(const void* from, void* to, MPI_Count elements) noexcept {
    Reduction sum;
    sum.input = static_cast<const unsigned char*>(from);
    sum.output = static_cast<unsigned char*>(to);
    sum.elements = elements;
    sum.type = MPI_FLOAT;
    sum.element_bytes = sizeof(float);
    return sum;
}

// The sum over the ranks of 0 or 1, small enough for a slot; also a barrier.
int number_of(Bays& bays, bool one) noexcept {
    float mine = one ? 1 : 0, all = 0;
    bays.allreduce(sum_of(&mine, &all, 1), Way::in_rounds);
    return static_cast<int>(all);
}

class Trial {
  public:
    // memory: twice the largest size.
    Trial(Bays& bays, MPI_Comm comm, LargeKind kind, unsigned char* memory) noexcept
        : bays_(bays), comm_(comm), kind_(kind), from_(memory), to_(memory + tried_bytes.back()) {}

    LargeChoice run(bool library) noexcept {
        const bool may_try[number_of_candidates] = {
            true, bays_.allows_single_copy() && kind_ != LargeKind::reduce, library};
        LargeChoice choice;
        for (size_t i = 0; i < tried_bytes.size(); ++i) {
            TriedTimes times;
            times.fill(std::numeric_limits<double>::infinity());
            for (int trial = i == 0 ? -8 : -1; trial < trials; ++trial)
                for (size_t c = 0; c < number_of_candidates; ++c) {
                    if (!may_try[c]) continue;
                    const double seconds = seconds_of(static_cast<Candidate>(c), tried_bytes[i]);
                    if (trial >= 0) times[c] = std::min(times[c], seconds);  // the first are cold
                }
            choice.at[i] = fastest(times);
            show(tried_bytes[i], times, choice.at[i]);
        }
        return choice;
    }

  private:
    void show(size_t bytes, const TriedTimes& times, Candidate chosen) const noexcept {
        constexpr const char* kinds[] = {"Allreduce", "Reduce", "Reduce_scatter", "Bcast",
                                         "Allgather"};
        constexpr const char* candidates[] = {"in rounds", "in one copy", "the library"};
        int rank = 0;
        real.Comm_rank(comm_, &rank);
        if (rank != 0) return;
        char text[number_of_candidates][16];
        for (size_t c = 0; c < number_of_candidates; ++c)
            std::snprintf(text[c], sizeof text[c], std::isinf(times[c]) ? "-" : "%.1f us",
                          1e6 * times[c]);
        log_line(LogLevel::info,
                 "on this node MPI_%s of %zu KiB takes in rounds %s, in one copy %s, by the "
                 "library %s: %s",
                 kinds[static_cast<size_t>(kind_)], bytes >> 10, text[0], text[1], text[2],
                 candidates[static_cast<size_t>(chosen)]);
    }
    // `bytes` as the kind counts them: of the vector, or of one rank's part.
    double seconds_of(Candidate candidate, size_t bytes) noexcept {
        using Clock = std::chrono::steady_clock;
        const size_t ranks = static_cast<size_t>(bays_.ranks());
        const size_t part = bytes / sizeof(float) / ranks * sizeof(float);
        std::memset(from_, 0, bytes);
        number_of(bays_, true);
        const auto begun = Clock::now();
        // Data that were just written, and the same again.
        for (int i = 0; i < 2; ++i) {
            if (candidate == Candidate::library)
                run_library(bytes, part);
            else
                run_ours(candidate == Candidate::in_one_copy ? Way::in_one_copy : Way::in_rounds,
                         bytes, part);
        }
        number_of(bays_, true);
        return std::chrono::duration<double>(Clock::now() - begun).count() / 2;
    }
    void run_ours(Way way, size_t bytes, size_t part) noexcept {
        const auto floats = static_cast<MPI_Count>(bytes / sizeof(float));
        size_t told = 0;
        switch (kind_) {
            case LargeKind::allreduce:
                bays_.allreduce(sum_of(from_, to_, floats), way);
                break;
            case LargeKind::reduce:
                bays_.reduce(sum_of(from_, to_, floats), 0);
                break;
            case LargeKind::reduce_scatter: {
                const auto own = static_cast<MPI_Count>(part / sizeof(float));
                bays_.reduce_scatter_block(sum_of(from_, to_, own * bays_.ranks()), own, way);
                break;
            }
            case LargeKind::bcast:
                bays_.bcast(from_, bytes, 0, &told, way);
                break;
            case LargeKind::allgather:
                bays_.allgather(from_, to_, part, way);
                break;
        }
    }
    void run_library(size_t bytes, size_t part) noexcept {
        const int floats = static_cast<int>(bytes / sizeof(float));
        const int own = static_cast<int>(part / sizeof(float));
        switch (kind_) {
            case LargeKind::allreduce:
                real.Allreduce(from_, to_, floats, MPI_FLOAT, MPI_SUM, comm_);
                break;
            case LargeKind::reduce:
                real.Reduce(from_, to_, floats, MPI_FLOAT, MPI_SUM, 0, comm_);
                break;
            case LargeKind::reduce_scatter:
                real.Reduce_scatter_block(from_, to_, own, MPI_FLOAT, MPI_SUM, comm_);
                break;
            case LargeKind::bcast:
                real.Bcast(from_, floats, MPI_FLOAT, 0, comm_);
                break;
            case LargeKind::allgather:
                real.Allgather(from_, own, MPI_FLOAT, to_, own, MPI_FLOAT, comm_);
                break;
        }
    }

    Bays& bays_;
    const MPI_Comm comm_;
    const LargeKind kind_;
    unsigned char *const from_, *const to_;
};

// What this host's profile says, if all ranks have the same one.
uint32_t measured_before(LargeKind kind, int ranks, bool library) noexcept {
    static_assert(tried_bytes.size() == number_of_node_sizes);
    static_assert(number_of_large_kinds == number_of_node_kinds);
    static_assert(number_of_candidates == number_of_node_ways);
    const Profile& profile = process_profile().profile;
    const NodeWays* const row =
        offload::agreement().profile ? profile.ways_of(static_cast<size_t>(kind), ranks) : nullptr;
    if (row == nullptr) return not_known;
    LargeChoice choice;
    for (size_t i = 0; i < choice.at.size(); ++i) {
        choice.at[i] = static_cast<Candidate>(row->at[i]);
        if (choice.at[i] == Candidate::library && !library) return not_known;
    }
    return packed(choice, ranks);
}

// The first rank's, on all.
uint32_t told_by_first(Bays& bays, uint32_t bits) noexcept {
    size_t told = 0;
    bays.bcast(reinterpret_cast<unsigned char*>(&bits), sizeof bits, 0, &told, Way::in_rounds);
    return bits;
}

}  // namespace

Candidate fastest(const TriedTimes& times) noexcept {
    const double rounds = times[static_cast<size_t>(Candidate::in_rounds)];
    const double one_copy = times[static_cast<size_t>(Candidate::in_one_copy)];
    const double library = times[static_cast<size_t>(Candidate::library)];
    if (library < library_wins_by * std::min(rounds, one_copy)) return Candidate::library;
    return one_copy < one_copy_wins_by * rounds ? Candidate::in_one_copy : Candidate::in_rounds;
}

Candidate LargeChoice::of(size_t bytes) const noexcept {
    Candidate found = Candidate::in_rounds;
    for (size_t i = 0; i < tried_bytes.size(); ++i)
        if (bytes >= tried_bytes[i]) found = at[i];
    return found;
}

LargeChoice choose_ways(Bays& bays, MPI_Comm comm, LargeKind kind, bool library) noexcept {
    std::atomic<uint32_t>& process_knows = known[static_cast<size_t>(kind)];
    const auto are_of_so_many = [&](uint32_t bits) {
        return bits >> ranks_shift == static_cast<uint32_t>(bays.ranks());
    };
    uint32_t bits = process_knows.load(std::memory_order_relaxed);
    if (!are_of_so_many(bits)) bits = measured_before(kind, bays.ranks(), library);
    bits = told_by_first(bays, bits);
    if (!are_of_so_many(bits)) {
        const std::unique_ptr<unsigned char[]> memory(
            new (std::nothrow) unsigned char[2 * tried_bytes.back()]);
        if (number_of(bays, memory != nullptr) != bays.ranks()) return {};
        std::memset(memory.get(), 0, 2 * tried_bytes.back());
        bits = told_by_first(
            bays, packed(Trial(bays, comm, kind, memory.get()).run(library), bays.ranks()));
    }
    process_knows.store(bits, std::memory_order_relaxed);
    return unpacked(bits);
}

}  // namespace vecmpi::pipeline::node
