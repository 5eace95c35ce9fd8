// SPDX-License-Identifier: BSD-3-Clause
// Collective schedules: what one rank does in a collective, as data. Pure: no MPI, no settings.
//
// Glossary
//   step      send, receive, reduce or copy of a run of elements
//   track     the steps of one rank for one segment, in an order that is the same on all ranks
//   schedule  the tracks of all segments, merged, and which step waits for which
//   signal    a message without data
//   team      the ranks that take part, numbered from 0
//   block     the part of the vector that one rank of a team ends up with, or begins with
//   segment   a part of the vector that goes through the whole algorithm by itself
//   lane      memory for one segment under way; segments of one lane follow each other
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/api.hpp"

namespace vecmpi::pipeline {

// input: what the program gave; output: where the result goes, and with MPI_IN_PLACE the input,
// too.
enum class Memory : uint8_t { input, output, scratch };

struct Place {
    Memory memory = Memory::input;
    int64_t first = 0;  // in elements
    bool operator==(const Place&) const = default;
};
constexpr Place operator+(Place place, int64_t elements) noexcept {
    return {place.memory, place.first + elements};
}

// One message, reduction or copy of a schedule.
struct ScheduleStep {
    enum class Kind : uint8_t { send, receive, reduce, copy } kind = Kind::copy;
    int32_t peer = -1;     // send, receive: rank in the communicator
    uint16_t segment = 0;  // send, receive: with `message`, what the other side matches it by
    uint16_t message = 0;  // how many went from this sender to this receiver before, in the track
    int64_t count = 0;     // elements; 0: a signal
    Place from;            // send, copy; reduce: the left operand
    Place right;           // reduce: to = from op right
    Place to;              // receive, reduce, copy
};

// Steps of one segment. A builder appends every step after those that it needs, and the messages
// between two ranks in the same order on both. A round is the same part of the algorithm in all
// tracks of a rank, even where it has no elements. Tracks are merged by rounds, so that the orders
// of all ranks' messages fit together. Else ranks with a limit on messages under way could wait for
// each other in a circle.
class Track {
  public:
    void send(Place from, int64_t count, int peer);
    void receive(Place to, int64_t count, int peer);
    // A signal is sent once all that were awaited before have come.
    void signal(int peer);
    void await_signal(int peer);
    void reduce(Place left, Place right, Place to, int64_t count);
    void copy(Place from, Place to, int64_t count);
    Place scratch(int64_t count);  // elements of the lane's memory that nothing used yet
    void next_round() { round_ends_.push_back(steps_.size()); }

    size_t rounds() const noexcept { return round_ends_.size() + 1; }
    std::span<const ScheduleStep> steps_of_round(size_t round) const noexcept;
    const std::vector<ScheduleStep>& steps() const noexcept { return steps_; }
    int64_t scratch_elements() const noexcept { return scratch_; }

  private:
    struct Messages {
        int peer;
        uint16_t sent, received;
    };
    Messages& messages_with(int peer);
    void add(const ScheduleStep& step);
    uint16_t number_of_message(ScheduleStep::Kind kind, int peer);
    void add_signal(ScheduleStep::Kind kind, int peer);
    void add_message(ScheduleStep::Kind kind, Place from, Place to, int64_t count, int peer);
    std::vector<ScheduleStep> steps_;
    std::vector<size_t> round_ends_;  // of all rounds but the last
    std::vector<Messages> messages_;
    int64_t scratch_ = 0;
};

// To limit the messages under way, begin a send when fewer than so many sends before it in `steps`
// are incomplete, and a receive likewise. With any limit all ranks come to the end. A limit on
// those that have begun can end in a deadlock.
struct Schedule {
    std::vector<ScheduleStep> steps;
    std::vector<uint32_t> waits;  // of each step: number of steps that must be complete
    std::vector<uint32_t>
        first_dependent;  // step i lets go dependents[first_dependent[i]] to [i+1]
    std::vector<uint32_t> dependents;
    std::vector<uint32_t> ordinals;  // of a send among the sends, of a receive among the receives
    uint32_t sends = 0, receives = 0;
    int64_t largest_message = 0;  // elements
    int64_t scratch_elements = 0;
    // Each message has another partner, and none waits for another one.
    bool changes_partners = false;
};

// Where the input lies in the output, in elements (MPI_IN_PLACE), or nowhere.
struct InPlace {
    bool is = false;
    int64_t offset = 0;
};

// Merges the tracks; track i is segment i. `lanes` of them at a time alternate round by round, so
// that one segment is reduced while another is on the wire. Which step waits for which follows from
// the memory that they read and write. `last` comes behind them all.
Schedule make_schedule(const std::vector<Track>& tracks, const Track& last, unsigned lanes,
                       InPlace in_place);

// ---- teams and blocks

struct Team {
    int size = 1;
    int me = 0;
    const int* ranks = nullptr;  // of the communicator; null: the team is the communicator
    int rank(int i) const noexcept { return ranks ? ranks[i] : i; }
};

using Blocks = std::vector<Segment>;                   // one for each rank of a team
int64_t largest_block(const Blocks& blocks) noexcept;  // its elements

// The vector's elements in `parts` nearly equal blocks.
Blocks equal_blocks(Segment vector, int parts);

// Part s of S of each block: which block an element is in does not depend on the segments.
Blocks part_of_blocks(const Blocks& blocks, unsigned parts, unsigned part);

}  // namespace vecmpi::pipeline
