// SPDX-License-Identifier: BSD-3-Clause
// What the user set, VECMPI_X of the environment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

namespace vecmpi::base {

enum class OffloadMode : uint8_t { automatic, on, off };
enum class IntranodeMode : uint8_t { automatic, on, off };
enum class TrialMode : uint8_t { automatic, off, check, shuffle };
constexpr bool is_checked(TrialMode mode) noexcept { return mode >= TrialMode::check; }
enum class WaitMode : uint8_t { automatic, spin, yield, sleep };
enum class IsaChoice : uint8_t { automatic, off, scalar, sse4, avx2, avx512, neon, sve };
enum class PackMode : uint8_t { automatic, off, on, block, permute, gather };
enum class LogLevel : uint8_t { error, warn, info, debug };
// How a collective is done: as the settings name it (src/base/path_ranges.cpp).
enum class CollectivePath : uint8_t {
    automatic,
    mpi,        // the library's own
    segmented,  // segments of the library's nonblocking collective
// From here on: schedules of ours.
#define VECMPI_ALGORITHM(name, collectives) name,
#include "algorithms.def"
#undef VECMPI_ALGORITHM
};

// A path of ours serves some form of each. The first ones have settings of their own.
enum class Collective : uint8_t {
    allreduce,
    reduce,
    reduce_scatter,
    bcast,
    allgather,
    alltoall,
    barrier,
    scan,
    exscan,
    gather,
    scatter,
    allgatherv,
    gatherv,
    scatterv,
    alltoallv,
    alltoallw,
    neighbor_allgather,
    neighbor_allgatherv,
    neighbor_alltoall,
    neighbor_alltoallv,
    neighbor_alltoallw
};
constexpr size_t number_of_collectives = 21, number_of_settable_collectives = 6;
constexpr bool has_setting(Collective collective) noexcept {
    return static_cast<size_t>(collective) < number_of_settable_collectives;
}
constexpr bool reduces(Collective collective) noexcept {
    return collective <= Collective::reduce_scatter || collective == Collective::scan ||
           collective == Collective::exscan;
}

const char* mpi_name_of(Collective collective) noexcept;  // without MPI_

const char* name_of(CollectivePath path) noexcept;
constexpr CollectivePath schedule_paths[] = {
#define VECMPI_ALGORITHM(name, collectives) CollectivePath::name,
#include "algorithms.def"
#undef VECMPI_ALGORITHM
};
constexpr size_t number_of_collective_paths =
    static_cast<size_t>(schedule_paths[0]) + std::size(schedule_paths);

// Which path serves a collective of a given size: the last range that holds the size.
class PathRanges {
  public:
    struct Range {
        size_t from_bytes;  // inclusive
        size_t to_bytes;    // exclusive; SIZE_MAX for "max"
        CollectivePath path;
    };
    CollectivePath at(size_t bytes) const noexcept;
    std::vector<Range> ranges;
};

struct CpuChoice {
    enum class Kind : uint8_t { automatic, none, list } kind = Kind::automatic;
    std::vector<int> cpus;  // by local rank, with kind list
};

// Constants of the network between nodes; below 0: not given. Whole numbers, so that all ranks
// compute with the same.
struct NetworkSetting {
    int64_t latency_ns = -1;
    int64_t bytes_per_s = -1;
    int64_t overhead_ns = -1;  // of a message, on each side
    bool operator==(const NetworkSetting&) const = default;
};

struct ProfileChoice {
    enum class Kind : uint8_t { automatic, off, file, learn } kind = Kind::automatic;
    std::string file;  // with kinds file and learn; empty: the one that automatic finds
};

struct ReportTarget {
    enum class Kind : uint8_t { off, summary, json, summary_and_json } kind = Kind::off;
    std::string file;  // of the JSON

    bool has_summary() const noexcept {
        return kind == Kind::summary || kind == Kind::summary_and_json;
    }
};

struct Settings {
    bool enabled = true;
    OffloadMode offload = OffloadMode::automatic;
    CpuChoice cpu;
    WaitMode wait = WaitMode::automatic;
    IsaChoice isa = IsaChoice::automatic;
    unsigned segments = 0;     // 0: auto
    size_t segment_bytes = 0;  // 0: auto
    size_t pack_memory = 0;    // 0: auto
    IntranodeMode intranode = IntranodeMode::automatic;
    TrialMode trials = TrialMode::automatic;
    size_t single_copy = 0;  // 0: auto; SIZE_MAX: off
    PathRanges allreduce, bcast, reduce, reduce_scatter, allgather, alltoall;
    NetworkSetting network;
    PackMode pack = PackMode::automatic;
    ProfileChoice profile;
    unsigned traits_off = 0;  // a bit for each row of traits.def
    bool reproducible = false;
    ReportTarget report;
    LogLevel log = LogLevel::warn;

    const PathRanges& paths_of(Collective collective) const noexcept {
        static constexpr PathRanges Settings::*fields[] = {
            &Settings::allreduce, &Settings::reduce,    &Settings::reduce_scatter,
            &Settings::bcast,     &Settings::allgather, &Settings::alltoall};
        static_assert(std::size(fields) == number_of_settable_collectives);
        return this->*fields[static_cast<size_t>(collective)];
    }
};

struct SettingsResult {
    Settings settings;
    std::string problem;                // one line: variable, value, what is accepted; empty: fine
    std::vector<std::string> warnings;  // unknown VECMPI_ names, each with the nearest real one
    std::vector<std::string> values;    // in the order of settings.def: as given, else the default
    uint64_t agreement_hash = 0;        // over the values that all ranks must share
};

// Pure: reads only the array given. environment: as `environ`, ended by a null pointer.
SettingsResult parse_settings(const char* const* environment);

// Reads the environment once; later calls return the same object. Never throws.
const SettingsResult& process_settings() noexcept;
inline const Settings& settings() noexcept { return process_settings().settings; }
inline bool report_is_wanted() noexcept {
    return settings().report.kind != ReportTarget::Kind::off;
}

// One row of settings.def as a user sees it.
struct SettingText {
    const char* name;
    const char* default_value;
    const char* accepted;
    const char* text;
    bool must_agree;
    const char* field;  // of struct Settings
};
const std::vector<SettingText>& setting_texts();

}  // namespace vecmpi::base
