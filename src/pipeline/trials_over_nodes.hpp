// SPDX-License-Identifier: BSD-3-Clause
// Who serves which blocking collective of which size on a communicator over several nodes: a trial
// for each, on the program's own calls. On one node that is pipeline/node/node_trials.hpp.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "base/api/profile.hpp"
#include "base/api/trial.hpp"
#include "offload/api.hpp"
#include "pipeline/api/turn.hpp"
#include "pipeline/schedules/algorithms.hpp"
#include "turn_row.hpp"

namespace vecmpi::pipeline {

// The candidates, in the order of preference.
enum class Server : uint8_t { ours, segments, library };
static_assert(static_cast<unsigned>(Server::library) < base::Trial::most_candidates);
constexpr unsigned bit_of(Server one) noexcept { return 1u << static_cast<unsigned>(one); }

// Those that a schedule may serve.
constexpr size_t collectives_over_nodes = number_of_scheduled_collectives;
// Sizes from a power of two up to the next have a trial in common.
constexpr size_t classes_over_nodes = 40;

// What an earlier communicator leaves to a new one: the winners, or Trial::open.
using FoundOverNodes = std::array<std::array<uint8_t, classes_over_nodes>, collectives_over_nodes>;
static_assert(std::is_trivially_copyable_v<FoundOverNodes>);
FoundOverNodes found_over_nodes(const base::CommShape& shape) noexcept;
// What this process has found beside what its profile says. May throw std::bad_alloc.
void append_learned_over_nodes(std::vector<base::LearnedRow>& rows);

// Equal on all ranks.
struct TriedCall {
    Call call;
    Collective collective;
    uint64_t bytes = 0;  // as its setting counts them
    unsigned candidates = bit_of(Server::ours) | bit_of(Server::library);
    bool is_long = false;   // a slow candidate costs milliseconds: a row is one call
    const char* ours = "";  // for the log
};

// Who serves a call, and the time that is taken of it.
struct ServedBy {
    Server server;
    TimedTurn turn{};
};

// Of one communicator, whose collectives all ranks call in the same order, one at a time.
class TrialsOverNodes {
  public:
    TrialsOverNodes(const base::CommShape& shape, const FoundOverNodes& found) noexcept;

    // Who serves a blocking call. While that is tried it is collective over comm, which is not the
    // program's, and the call is timed.
    ServedBy begin_call(const TriedCall& tried, MPI_Comm comm) noexcept;
    // Who serves a call that cannot be timed: the winner, if there is one.
    Server known(Collective collective, uint64_t bytes, Server otherwise) noexcept;
    // Its call ends at the end of a call that was timed.
    TurnRow& row_under_way() noexcept { return last_.row; }

  private:
    // The calls that were timed last. Their ranks' times are not brought together yet.
    struct TimedRow {
        RowTrial* trial = nullptr;
        TriedCall tried{};
        TurnRow row;
    };
    RowTrial& trial_of(Collective collective, uint64_t bytes) noexcept;
    ServedBy begin_turn() noexcept;
    void bring_times_together(Call call, MPI_Comm comm) noexcept;
    void judge(const TimedRow& timed, const RowTimes& slowest, MPI_Comm comm) noexcept;

    const base::CommShape shape_;
    RowTrial trials_[collectives_over_nodes][classes_over_nodes];
    TimedRow last_;
    unsigned unfinished_ = 0;  // rows of which a call has no time
};

}  // namespace vecmpi::pipeline
