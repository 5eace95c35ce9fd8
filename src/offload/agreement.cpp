// SPDX-License-Identifier: BSD-3-Clause
// What the ranks of MPI_COMM_WORLD find out together in MPI_Init, by one small Iallreduce. A
// decision that must be equal on all ranks rests on this and on the arguments of the call, on
// nothing else.
#include "agreement.hpp"

#include <unistd.h>

#include <array>
#include <new>

#include "base/api/profile.hpp"

namespace vecmpi::offload {

namespace {

Agreement agreed;

// A maximum of x and of ~x over all ranks tells whether all had the same x.
enum Field : unsigned {
    settings_hash,
    settings_hash_inverse,
    node_hash,
    node_hash_inverse,
    some_rank_wants_twins,
    some_rank_serves_no_jobs,
    some_node_is_shared,  // by ranks
    no_engine,            // a WorldRank::bid() of each rank that has none
    settings_problem,     // the same where a setting is bad
    profile_hash,         // of its collective part
    profile_hash_inverse,
    profile_problem,  // a bid where the profile does not fit
    number_of_fields
};
using Fields = std::array<uint64_t, number_of_fields>;

bool same_on_all(const Fields& maximum, Field field) noexcept {
    return maximum[field] == ~maximum[field + 1];
}

struct WorldRank {
    int rank = 0, size = 1;
    WorldRank() noexcept {
        real.Comm_rank(MPI_COMM_WORLD, &rank);
        real.Comm_size(MPI_COMM_WORLD, &size);
    }
    // The lowest rank that has a problem speaks for all: it has the highest bid.
    uint64_t bid(bool has_problem) const noexcept {
        return has_problem ? static_cast<uint64_t>(size - rank) : 0;
    }
    bool wins(uint64_t highest_bid) const noexcept { return bid(true) == highest_bid; }
};

// look_failed() after each look in vain.
template <class LookFailed>
void wait_for(MPI_Request* request, const WaitPolicy& policy, LookFailed look_failed) noexcept {
    Ladder ladder(policy);
    for (int done = 0; !done; ladder.rest()) {
        real.Test(request, &done, MPI_STATUS_IGNORE);
        if (!done) look_failed();
    }
}

// A rank without vecmpi never takes part, and this wait would never end. So it says something, from
// a few ranks only, some of which have vecmpi: 0, 1, 2, 4, 8 and so on.
void wait_for_all_ranks(MPI_Request* request, int rank, const WaitPolicy& policy) noexcept {
    constexpr unsigned patience_s = 10;
    const bool speaks = (rank & (rank - 1)) == 0;
    const uint64_t begun_us = monotonic_us();
    bool said = false;
    wait_for(request, policy, [&]() noexcept {
        if (!speaks || said || monotonic_us() - begun_us < patience_s * uint64_t{1000000}) return;
        said = true;
        log_line(LogLevel::error,
                 "rank %d has waited for %u s in MPI_Init for all ranks to agree on vecmpi's "
                 "settings: every rank must be preloaded, with the same VECMPI (VECMPI=off on all "
                 "ranks, or no preload, runs without it)",
                 rank, patience_s);
    });
}

// Not by the blocking Allreduce: the library would spin, for milliseconds where the node is
// oversubscribed.
Fields maximum_over_world(const Fields& mine, const WorldRank& world,
                          const WaitPolicy& policy) noexcept {
    Fields maximum = mine;
    if (world.size == 1) return maximum;
    MPI_Request request = MPI_REQUEST_NULL;
    real.Iallreduce(mine.data(), maximum.data(), number_of_fields, MPI_UINT64_T, MPI_MAX,
                    MPI_COMM_WORLD, &request);
    wait_for_all_ranks(&request, world.rank, policy);
    return maximum;
}

// In MPI_Finalize a rank may wait long for the others. It sleeps, as it would in its launcher's
// barrier.
constexpr WaitPolicy patient{100, 100, 1000, 50, 1000};

[[noreturn]] void stop_job(bool speaks, const char* line) noexcept {
    if (speaks) {
        log_line(LogLevel::error, "%s", line);
        usleep(200000);  // MPICH's launcher drops what it has not yet read when a rank aborts
        real.Abort(MPI_COMM_WORLD, 2);
    }
    for (;;) pause();  // the launcher ends us
}

// Plain MPICH 4.0 over TCP can wait for ever in MPI_Finalize, where it disconnects what one rank
// has disconnected already. After two barriers it need not: all that was sent before the second is
// received, so that its own messages find room and leave at once, and nothing comes after them.
int meet_in_finalize(MPI_Comm, int, void*, void*) {
    bool met = true;
    for (int barrier = 0; barrier < 2; ++barrier) {
        MPI_Request request = MPI_REQUEST_NULL;
        met &= real.Ibarrier(MPI_COMM_WORLD, &request) == MPI_SUCCESS;
        wait_for(&request, patient, []() noexcept {});
    }
    if (met && library::has_trait(library::Trait::last_barrier))
        library::disconnect_endpoints(false);
    return MPI_SUCCESS;
}

// Where the profiles differ, no rank uses the part that all must have alike.
void agree_on_profile(const Fields& maximum, const WorldRank& world) noexcept {
    const LoadedProfile& own = process_profile();
    if (world.wins(maximum[profile_problem])) log_line(LogLevel::warn, "%s", own.problem.c_str());
    agreed.profile = same_on_all(maximum, profile_hash) && maximum[profile_hash] != 0;
    if (agreed.profile) adopt_network(own.profile.network);
    if (world.rank != 0) return;
    if (!same_on_all(maximum, profile_hash))
        log_line(LogLevel::info,
                 "the profiles of the ranks differ: none uses its network and its ways on a node");
    if (!own.file.empty())
        log_line(LogLevel::info, "profile %s: %zu measured entries", own.file.c_str(),
                 own.profile.entries);
}

// Without memory for it: as where there is no collective part.
uint64_t hash_of_own_profile() noexcept {
    try {
        return hash_of_collective_part(process_profile().profile);
    } catch (const std::bad_alloc&) {
        return 0;
    }
}

Fields fields_of_this_rank(const OwnMeans& means, const WorldRank& world) noexcept {
    const SettingsResult& own = process_settings();
    const uint64_t node = hash_of_node_name();
    const uint64_t profile = hash_of_own_profile();
    return {own.agreement_hash,
            ~own.agreement_hash,
            node,
            ~node,
            means.wants_twins,
            !means.serves_jobs,
            !means.is_alone_on_node,
            world.bid(!means.has_engine),
            world.bid(!own.problem.empty()),
            profile,
            ~profile,
            world.bid(!process_profile().problem.empty())};
}

void stop_where_settings_are_bad(const Fields& maximum, const WorldRank& world) noexcept {
    if (maximum[settings_problem] != 0)
        stop_job(world.wins(maximum[settings_problem]), process_settings().problem.c_str());
    if (!same_on_all(maximum, settings_hash))
        stop_job(world.rank == 0,
                 "VECMPI_ settings that all ranks must share differ between ranks");
}

}  // namespace

const Agreement& agreement() noexcept { return agreed; }

// MPI_Finalize deletes the attributes of MPI_COMM_SELF before all else, in the reverse order of
// their setting (MPI 4.0, 11.2.4).
void call_last_in_finalize(MPI_Comm_delete_attr_function* work) noexcept {
    int key = MPI_KEYVAL_INVALID;
    if (real.Comm_create_keyval(MPI_COMM_NULL_COPY_FN, work, &key, nullptr) != MPI_SUCCESS) return;
    real.Comm_set_attr(MPI_COMM_SELF, key, nullptr);
    real.Comm_free_keyval(&key);  // once the attribute is gone
}

void forget_agreement() noexcept { agreed = Agreement{}; }

bool agree_over_world(const OwnMeans& means, const WaitPolicy& policy) noexcept {
    const WorldRank world;
    const Fields maximum = maximum_over_world(fields_of_this_rank(means, world), world, policy);
    stop_where_settings_are_bad(maximum, world);
    set_log_rank(world.rank);
    if (maximum[no_engine] != 0) {
        if (world.wins(maximum[no_engine]))
            log_line(LogLevel::warn,
                     "rank %d has no memory for vecmpi's engine: every call of all ranks stays "
                     "with the MPI library",
                     world.rank);
        return false;
    }
    agreed.twin_collectives = world.size > 1 && maximum[some_rank_wants_twins] != 0;
    agreed.one_node = same_on_all(maximum, node_hash);
    agreed.one_rank = world.size == 1;
    agreed.serves_jobs = maximum[some_rank_serves_no_jobs] == 0;
    agreed.alone_on_nodes = maximum[some_node_is_shared] == 0;
    agreed.valid = true;
    if (!agreed.one_node) call_last_in_finalize(meet_in_finalize);
    agree_on_profile(maximum, world);
    if (world.rank == 0)
        for (const std::string& warning : process_settings().warnings)
            log_line(LogLevel::warn, "%s", warning.c_str());
    return true;
}

}  // namespace vecmpi::offload
