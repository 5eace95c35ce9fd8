// SPDX-License-Identifier: BSD-3-Clause
// A second door of src/base: what vecmpi-tune measured on this host. docs/tuning.md has the format.
//
// Glossary
//   profile           a text file of `key = value` lines, for hosts of one model
//   pack table        its part on scattered blocks: which kernel moves them, by length and distance
//   collective part   its part on collectives, which must be equal on all ranks
//   learned rows      what trials of earlier jobs have found (VECMPI_PROFILE=learn)
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/api.hpp"

namespace vecmpi::base {

// ---- the pack table -----------------------------------------------------------------------------

// Kernels that compete with the one that moves block by block.
enum class PackKernel : uint8_t {
    pack_permute,
    unpack_permute,
    pack_gather,
    unpack_gather,
    masked,  // blocks of different lengths, both ways
    columns  // of a matrix, both ways
};
constexpr size_t number_of_pack_kernels = 6;

// Mean length of the blocks: up to 1, 2, 4, 8, 16, 32 bytes, and longer.
constexpr size_t number_of_block_classes = 7;
constexpr size_t block_class(int64_t bytes) noexcept {
    size_t of = 0;
    for (int64_t most = 1; bytes > most && of + 1 < number_of_block_classes; most *= 2) ++of;
    return of;
}

// Mean distance of neighbouring blocks: up to twice their length, up to four times, up to a page,
// and beyond.
enum class Distance : uint8_t { dense, open, sparse, far };
constexpr size_t number_of_distances = 4;
constexpr Distance distance_class(int64_t block_bytes, int64_t distance) noexcept {
    constexpr int64_t page_bytes = 4096;
    if (distance > page_bytes) return Distance::far;
    if (distance <= 2 * block_bytes) return Distance::dense;
    return distance <= 4 * block_bytes ? Distance::open : Distance::sparse;
}

enum class PackVerdict : uint8_t { built_in, yes, no };

class PackTable {
  public:
    PackVerdict at(PackKernel kernel, int64_t block_bytes, int64_t distance) const noexcept {
        return rows_[static_cast<size_t>(kernel)][block_class(block_bytes)]
                    [static_cast<size_t>(distance_class(block_bytes, distance))];
    }
    PackVerdict& entry(PackKernel kernel, size_t block, Distance distance) noexcept {
        return rows_[static_cast<size_t>(kernel)][block][static_cast<size_t>(distance)];
    }
    bool operator==(const PackTable&) const = default;

  private:
    PackVerdict rows_[number_of_pack_kernels][number_of_block_classes][number_of_distances] = {};
};

// ---- the profile --------------------------------------------------------------------------------

constexpr size_t number_of_reduce_families = 5;  // as ReduceFamily of kernels/api.hpp

// How large data of a collective move on a node: through staging buffers (copy-in copy-out), right
// from the other process's memory (single copy), or by the library.
enum class Transport : uint8_t { copy_in_copy_out, single_copy, library };
constexpr size_t number_of_transports = 3;
// From 64 KiB, from 256 KiB and from 1 MiB on.
constexpr size_t number_of_node_sizes = 3;
using TransportsBySize = std::array<Transport, number_of_node_sizes>;

// The fastest ones for a collective of so many ranks.
struct NodeTransports {
    int ranks = 0;
    Collective collective = Collective::allreduce;
    TransportsBySize at{};
    bool operator==(const NodeTransports&) const = default;
};

// Communicators of one shape find the same, or nearly.
struct CommShape {
    int ranks = 0, nodes = 1;
    int most_ranks_on_a_node = 0;  // with one node: all
    auto operator<=>(const CommShape&) const = default;
};
// The fastest candidate for sizes from a power of two, or 0, up to the next one. On one node: a
// Transport. On several: a schedule, segments, the library.
struct LearnedWinner {
    size_t from_bytes = 0;
    uint8_t candidate = 0;
    auto operator<=>(const LearnedWinner&) const = default;
};
struct LearnedRow {
    CommShape shape;
    Collective collective = Collective::allreduce;
    std::vector<LearnedWinner> winners;  // by size
    bool is_for(const CommShape& of, Collective one) const noexcept {
        return shape == of && collective == one;
    }
    bool operator==(const LearnedRow&) const = default;
};

struct Profile {
    std::string cpu, isa;  // of the host that it was made on
    std::string mpi;       // the library that the collective part was measured with
    // Widest instruction set of each family of reductions; automatic: what is built in.
    std::array<IsaChoice, number_of_reduce_families> reduce{};
    PackTable pack;
    NetworkSetting network;
    std::vector<NodeTransports> transports;
    std::vector<LearnedRow> learned;
    size_t entries = 0;  // measured ones, of all parts

    // Null: not measured.
    const TransportsBySize* transports_of(Collective collective, int ranks) const noexcept;
    const LearnedRow* learned_of(const CommShape& shape, Collective collective) const noexcept;
    bool operator==(const Profile&) const = default;
};

struct ParsedProfile {
    Profile profile;
    size_t line = 0;      // of the problem; 0: of the whole file
    std::string problem;  // what is wrong and what is accepted; empty: nothing is
};
// Pure; knows no locale. A profile with a problem is not to be used at all.
ParsedProfile parse_profile(std::string_view text);

// Pure. The text of a profile with what was learned: rows win over those that are there, size by
// size. old_text: of a profile without a problem, or empty: then one of this host is begun. All
// else in it stays.
std::string add_learned(std::string_view old_text, const Profile& of_this_host,
                        const std::vector<LearnedRow>& rows);

// Pure. Equal where the collective parts are; 0: there is none.
uint64_t hash_of_collective_part(const Profile& profile);

// ---- of this process ----------------------------------------------------------------------------

// "AMD EPYC family 25 model 1", and the file's name that follows from it.
std::string host_model();
std::string profile_name(std::string_view host_model);
// Pure. Where VECMPI_PROFILE=auto looks, in this order; either may be null.
std::vector<std::string> profile_places(const char* config_home, const char* home,
                                        const std::string& name);

struct LoadedProfile {
    Profile profile;
    std::string file;     // that was read; empty: there is none
    std::string problem;  // one line; then the profile, or its collective part, is not used
};
// Reads one file. isa: the host's widest; mpi_library: called where the profile names a library.
LoadedProfile read_profile(const std::string& file, const std::string& cpu, const char* isa,
                           std::string (*mpi_library)());

// Finds and reads the profile, in MPI_Init before anything is decided by it. Never throws; out of
// memory, there is no profile. mpi_library may be null.
void load_profile(const char* isa, std::string (*mpi_library)()) noexcept;
const LoadedProfile& process_profile() noexcept;  // empty until then

// Where learned rows go with VECMPI_PROFILE=learn, and why they cannot, in one line.
struct LearnedProfile {
    std::string file;
    std::string problem;  // then nothing was written
};
// Adds the rows to that file, whole or not at all. May throw std::bad_alloc.
LearnedProfile write_learned(const ProfileChoice& choice, const std::vector<LearnedRow>& rows,
                             const char* isa, std::string (*mpi_library)());

// Sets the constants of the network that the user did not give. Called once all ranks are known to
// have measured the same.
void adopt_network(const NetworkSetting& measured) noexcept;

}  // namespace vecmpi::base

namespace vecmpi {
using namespace base;
}
