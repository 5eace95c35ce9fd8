// SPDX-License-Identifier: BSD-3-Clause
// Trials with data that the ranks have just written, as programs do.
#include "transport_trial.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <new>

namespace vecmpi::pipeline::node {

namespace {

constexpr int trials = 3;
// What differs less is noise, and ours give the CPU away while they wait.
constexpr double single_copy_wins_by = 0.95, library_wins_by = 0.9;

// ---- what is known already: the number of ranks, and two bits for each size ---------------------

constexpr uint32_t not_known = UINT32_MAX;
constexpr int ranks_shift = 8;

// By collective, what an earlier communicator found. Relaxed: each is a value of its own.
std::atomic<uint32_t> known[number_of_collectives] = {not_known, not_known, not_known, not_known,
                                                      not_known};

uint32_t packed(const TransportsBySize& choice, int ranks) noexcept {
    uint32_t bits = static_cast<uint32_t>(ranks) << ranks_shift;
    for (size_t i = 0; i < choice.size(); ++i) bits |= static_cast<uint32_t>(choice[i]) << (2 * i);
    return bits;
}

TransportsBySize unpacked(uint32_t bits) noexcept {
    TransportsBySize choice;
    for (size_t i = 0; i < choice.size(); ++i)
        choice[i] = static_cast<Transport>(bits >> (2 * i) & 3u);
    return choice;
}

// More ranks share the memory, and what they wait for.
bool is_of_ranks(uint32_t bits, int ranks) noexcept {
    return bits >> ranks_shift == static_cast<uint32_t>(ranks);
}

// What this host's profile says, if all ranks have the same one.
uint32_t measured_before(Collective collective, int ranks, bool may_be_library) noexcept {
    if (!offload::agreement().profile) return not_known;
    const TransportsBySize* const measured =
        process_profile().profile.transports_of(collective, ranks);
    if (measured == nullptr) return not_known;
    const bool names_library =
        std::find(measured->begin(), measured->end(), Transport::library) != measured->end();
    return names_library && !may_be_library ? not_known : packed(*measured, ranks);
}

// ---- the trial ----------------------------------------------------------------------------------

Operands sum_of(const void* from, void* to, MPI_Count count) noexcept {
    return {from, to, count, MPI_FLOAT, MPI_SUM, sizeof(float)};
}

// The sum over the ranks of 0 or 1, small enough for a slot; also a barrier.
int number_of(StagedCollectives& staged, bool one) noexcept {
    float mine = one ? 1 : 0, all = 0;
    staged.allreduce(sum_of(&mine, &all, 1), Transport::copy_in_copy_out);
    return static_cast<int>(all);
}

// The first rank's, on all.
uint32_t of_first_rank(StagedCollectives& staged, uint32_t bits) noexcept {
    size_t root_bytes = 0;
    staged.bcast(reinterpret_cast<unsigned char*>(&bits), sizeof bits, 0, &root_bytes,
                 Transport::copy_in_copy_out);
    return bits;
}

class Trial {
  public:
    // memory: twice the largest size.
    Trial(StagedCollectives& staged, MPI_Comm comm, Collective collective,
          unsigned char* memory) noexcept
        : staged_(staged),
          comm_(comm),
          collective_(collective),
          from_(memory),
          to_(memory + tried_bytes.back()) {}

    TransportsBySize run(bool may_be_library) noexcept {
        const bool may_try[number_of_transports] = {
            true, staged_.allows_single_copy() && collective_ != Collective::reduce,
            may_be_library};
        TransportsBySize choice;
        for (size_t i = 0; i < tried_bytes.size(); ++i) {
            const int cold = i == 0 ? 8 : 1;
            TriedTimes times;
            times.fill(std::numeric_limits<double>::infinity());
            for (int trial = -cold; trial < trials; ++trial)
                for (size_t t = 0; t < number_of_transports; ++t) {
                    if (!may_try[t]) continue;
                    const double seconds = seconds_of(static_cast<Transport>(t), tried_bytes[i]);
                    if (trial >= 0) times[t] = std::min(times[t], seconds);
                }
            choice[i] = fastest(times);
            show(tried_bytes[i], times, choice[i]);
        }
        return choice;
    }

  private:
    void show(size_t bytes, const TriedTimes& times, Transport chosen) const noexcept {
        constexpr const char* collectives[] = {"Allreduce", "Reduce", "Reduce_scatter", "Bcast",
                                               "Allgather"};
        constexpr const char* transports[] = {"copy-in copy-out", "single copy", "the library"};
        int rank = 0;
        real.Comm_rank(comm_, &rank);
        if (rank != 0) return;
        char text[number_of_transports][16];
        for (size_t t = 0; t < number_of_transports; ++t)
            std::snprintf(text[t], sizeof text[t], std::isinf(times[t]) ? "-" : "%.1f us",
                          1e6 * times[t]);
        log_line(LogLevel::info,
                 "on this node MPI_%s of %zu KiB takes by copy-in copy-out %s, by single copy %s, "
                 "by the library %s: %s",
                 collectives[static_cast<size_t>(collective_)], bytes >> 10, text[0], text[1],
                 text[2], transports[static_cast<size_t>(chosen)]);
    }
    // bytes: of the vector; of Reduce_scatter and Allgather, of all ranks' parts.
    double seconds_of(Transport transport, size_t bytes) noexcept {
        using Clock = std::chrono::steady_clock;
        const int floats = static_cast<int>(bytes / sizeof(float));
        std::memset(from_, 0, bytes);
        number_of(staged_, true);
        const auto begun = Clock::now();
        // Data that were just written, and the same again.
        for (int i = 0; i < 2; ++i) {
            if (transport == Transport::library)
                run_library(floats, floats / staged_.ranks());
            else
                run_ours(transport, floats, floats / staged_.ranks());
        }
        number_of(staged_, true);
        return std::chrono::duration<double>(Clock::now() - begun).count() / 2;
    }
    // part: one rank's.
    void run_ours(Transport transport, int floats, int part) noexcept {
        size_t root_bytes = 0;
        switch (collective_) {
            case Collective::allreduce:
                staged_.allreduce(sum_of(from_, to_, floats), transport);
                break;
            case Collective::reduce:
                staged_.reduce(sum_of(from_, to_, floats), 0);
                break;
            case Collective::reduce_scatter:
                staged_.reduce_scatter(sum_of(from_, to_, MPI_Count{part} * staged_.ranks()),
                                       RankCounts(static_cast<MPI_Count>(part)), transport);
                break;
            case Collective::bcast:
                staged_.bcast(from_, static_cast<size_t>(floats) * sizeof(float), 0, &root_bytes,
                              transport);
                break;
            case Collective::allgather:
                staged_.allgather(from_, to_, static_cast<size_t>(part) * sizeof(float), transport);
                break;
        }
    }
    int run_library(int floats, int part) noexcept {
        switch (collective_) {
            case Collective::allreduce:
                return real.Allreduce(from_, to_, floats, MPI_FLOAT, MPI_SUM, comm_);
            case Collective::reduce:
                return real.Reduce(from_, to_, floats, MPI_FLOAT, MPI_SUM, 0, comm_);
            case Collective::reduce_scatter:
                return real.Reduce_scatter_block(from_, to_, part, MPI_FLOAT, MPI_SUM, comm_);
            case Collective::bcast:
                return real.Bcast(from_, floats, MPI_FLOAT, 0, comm_);
            case Collective::allgather:
                return real.Allgather(from_, part, MPI_FLOAT, to_, part, MPI_FLOAT, comm_);
        }
        return MPI_SUCCESS;
    }

    StagedCollectives& staged_;
    const MPI_Comm comm_;
    const Collective collective_;
    unsigned char *const from_, *const to_;
};

// not_known: not all ranks have memory for it.
uint32_t try_all(StagedCollectives& staged, MPI_Comm comm, Collective collective,
                 bool may_be_library) noexcept {
    constexpr size_t bytes = 2 * tried_bytes.back();
    const Buffer<unsigned char> memory = allocate<unsigned char>(bytes);
    if (number_of(staged, memory != nullptr) != staged.ranks()) return not_known;
    std::memset(memory.get(), 0, bytes);
    Trial trial(staged, comm, collective, memory.get());
    return of_first_rank(staged, packed(trial.run(may_be_library), staged.ranks()));
}

}  // namespace

Transport fastest(const TriedTimes& times) noexcept {
    const double two_copies = times[static_cast<size_t>(Transport::copy_in_copy_out)];
    const double single_copy = times[static_cast<size_t>(Transport::single_copy)];
    const double library = times[static_cast<size_t>(Transport::library)];
    if (library < library_wins_by * std::min(two_copies, single_copy)) return Transport::library;
    return single_copy < single_copy_wins_by * two_copies ? Transport::single_copy
                                                          : Transport::copy_in_copy_out;
}

Transport transport_of(const TransportsBySize& choice, size_t bytes) noexcept {
    Transport found = Transport::copy_in_copy_out;
    for (size_t i = 0; i < tried_bytes.size(); ++i)
        if (bytes >= tried_bytes[i]) found = choice[i];
    return found;
}

TransportsBySize choose_transports(StagedCollectives& staged, MPI_Comm comm, Collective collective,
                                   bool may_be_library) noexcept {
    std::atomic<uint32_t>& process_knows = known[static_cast<size_t>(collective)];
    uint32_t bits = process_knows.load(std::memory_order_relaxed);
    if (!is_of_ranks(bits, staged.ranks()))
        bits = measured_before(collective, staged.ranks(), may_be_library);
    bits = of_first_rank(staged, bits);
    if (!is_of_ranks(bits, staged.ranks()))
        bits = try_all(staged, comm, collective, may_be_library);
    if (bits == not_known) return {};
    process_knows.store(bits, std::memory_order_relaxed);
    return unpacked(bits);
}

}  // namespace vecmpi::pipeline::node
