// SPDX-License-Identifier: BSD-3-Clause
// What every program of the MPI battery shares: seed, digests, checks, life. Plain MPI: the
// programs must not know of vecmpi, because they are run with and without it and have to print the
// same.
//
// Glossary
//   topic   a named digest of what one rank received; printed at the end, in rank order
//   check   a known value; a mismatch prints one line and ends the job with status 1
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>

namespace battery {

uint64_t mix(uint64_t value);  // splitmix64's finaliser

class Random {
  public:
    explicit Random(uint64_t seed) : state_(mix(seed)) {}
    uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15u); }
    int below(int bound) { return static_cast<int>(next() % static_cast<uint64_t>(bound)); }
    int between(int low, int high) { return low + below(high - low + 1); }
    bool chance(int percent) { return below(100) < percent; }

  private:
    uint64_t state_;
};

// Order counts in add(), not in add_unordered(). BATTERY_TRACE=1 prints each item to standard
// error.
class Digest {
  public:
    explicit Digest(std::string name = "") : name_(std::move(name)) {}
    void add(uint64_t item);
    void add_bytes(const void* data, size_t bytes);
    void add_unordered(uint64_t item);
    void add_status(const MPI_Status& status, MPI_Datatype type);
    const std::string& name() const { return name_; }
    uint64_t value() const { return mix(ordered_ ^ mix(unordered_)); }
    uint64_t items() const { return items_; }

  private:
    std::string name_;
    uint64_t ordered_ = 0;
    uint64_t unordered_ = 0;
    uint64_t items_ = 0;
};

struct World {
    int rank = 0;
    int size = 1;
    uint64_t seed = 1;     // equal on all ranks
    std::string argument;  // first argument of the program that is not the seed
};
extern World world;

// MPI_Init, or MPI_Init_thread at `level`; reads `--seed N`.
void begin(int argc, char** argv, int level = -1);
// Reads the arguments only, for programs with a life of their own.
void read_arguments(int argc, char** argv);
// Prints the topics of all ranks from rank 0, finalizes; the exit status.
int end();
// The printing part of end().
void print_topics();

Digest& topic(const std::string& name);  // not for concurrent threads

uint64_t hash_of(const MPI_Status& status, MPI_Datatype type);
uint64_t hash_bytes(const void* data, size_t bytes);

void check(bool truth, const char* what,
           std::source_location where = std::source_location::current());
void check_equal(int64_t found, int64_t expected, const char* what,
                 std::source_location where = std::source_location::current());
// The class of the code that a call returned.
void check_class(int code, int expected_class, const char* what,
                 std::source_location where = std::source_location::current());
// The status of a null or inactive request (MPI 4.0, 3.7.3).
void check_empty(const MPI_Status& status,
                 std::source_location where = std::source_location::current());
int error_class(int code);

// Seeds: equal on all ranks, or a rank's own.
inline Random common_random(uint64_t stream) { return Random(world.seed * 1000003 + stream); }
inline Random own_random(uint64_t stream) {
    return Random(mix(world.seed) + stream * 7919 + static_cast<uint64_t>(world.rank) + 1);
}

}  // namespace battery
