// SPDX-License-Identifier: BSD-3-Clause
// Tracks become a schedule: merged, and with what waits for what.
#include "schedule.hpp"

#include <algorithm>
#include <array>

namespace vecmpi::pipeline {

namespace {

constexpr uint32_t nobody = UINT32_MAX;

// Which steps last wrote and read each element of one memory. Neighbouring elements with the same
// history are one run. A sorted vector: a map's nodes cost more than moving some KiB up.
class History {
  public:
    // Adds to `needed` what a step that reads or writes [first, first + count) must wait for, and
    // notes it.
    void read(int64_t first, int64_t count, uint32_t step, std::vector<uint32_t>& needed) {
        each_run(first, count, [&](Run& run) {
            if (run.writer != nobody) needed.push_back(run.writer);
            readers_.push_back({step, run.readers});
            run.readers = static_cast<uint32_t>(readers_.size() - 1);
        });
    }
    void write(int64_t first, int64_t count, uint32_t step, std::vector<uint32_t>& needed) {
        each_run(first, count, [&](Run& run) {
            // Readers wait for the writer themselves.
            if (run.readers == nobody && run.writer != nobody) needed.push_back(run.writer);
            for (uint32_t r = run.readers; r != nobody; r = readers_[r].next)
                needed.push_back(readers_[r].step);
            run.readers = nobody;
            run.writer = step;
        });
    }

  private:
    struct Run {
        int64_t first, end;
        uint32_t writer = nobody;
        uint32_t readers = nobody;  // the last one, in readers_
    };
    struct Reader {
        uint32_t step;
        uint32_t next;  // that read before; never changes, so that parts of a run share the list
    };

    size_t first_run_behind(int64_t first) const noexcept {
        const auto behind = [](int64_t at, const Run& run) { return at < run.first; };
        return static_cast<size_t>(std::upper_bound(runs_.begin(), runs_.end(), first, behind) -
                                   runs_.begin());
    }
    void insert(size_t i, const Run& run) {
        runs_.insert(runs_.begin() + static_cast<std::ptrdiff_t>(i), run);
    }

    // Index of the first run that does not begin before `first`; none holds it in its middle.
    size_t cut_at(int64_t first) {
        const size_t next = first_run_behind(first);
        if (next == 0) return next;
        Run rest = runs_[next - 1];
        if (rest.first == first) return next - 1;
        if (rest.end <= first) return next;
        runs_[next - 1].end = rest.first = first;
        insert(next, rest);
        return next;
    }

    template <class Visit>
    void each_run(int64_t first, int64_t count, Visit visit) {
        const int64_t end = first + count;
        cut_at(end);
        size_t i = cut_at(first);
        for (int64_t at = first; at < end; ++i) {
            const int64_t gap_end = i == runs_.size() ? end : std::min(end, runs_[i].first);
            if (at < gap_end) insert(i, Run{at, gap_end});
            visit(runs_[i]);
            at = runs_[i].end;
        }
    }

    std::vector<Run> runs_;
    std::vector<Reader> readers_;
};

// Appends steps one by one and finds what each waits for.
class Linker {
  public:
    Linker(InPlace in_place, size_t steps) : in_place_(in_place) {
        schedule_.steps.reserve(steps);
        schedule_.waits.reserve(steps);
        schedule_.ordinals.reserve(steps);
        edges_.reserve(2 * steps);
    }

    void add(ScheduleStep step) {
        step.from = resolved(step.from);
        step.right = resolved(step.right);
        step.to = resolved(step.to);
        if (step.kind == ScheduleStep::Kind::copy && step.from == step.to) return;
        const auto index = static_cast<uint32_t>(schedule_.steps.size());
        needed_.clear();
        if (step.count == 0) wait_for_signals(step, index);
        if (step.kind != ScheduleStep::Kind::receive) read(step.from, step.count, index);
        if (step.kind == ScheduleStep::Kind::reduce) read(step.right, step.count, index);
        if (step.kind != ScheduleStep::Kind::send)
            history(step.to).write(step.to.first, step.count, index, needed_);
        std::sort(needed_.begin(), needed_.end());
        needed_.erase(std::unique(needed_.begin(), needed_.end()), needed_.end());
        if (!needed_.empty() && needed_.back() == index)
            needed_.pop_back();  // reads what it writes
        schedule_.steps.push_back(step);
        schedule_.ordinals.push_back(ordinal(step));
        schedule_.waits.push_back(static_cast<uint32_t>(needed_.size()));
        for (uint32_t earlier : needed_) edges_.push_back({earlier, index});
    }

    Schedule finish(int64_t scratch_elements) {
        Schedule& s = schedule_;
        s.scratch_elements = scratch_elements;
        s.first_dependent.assign(s.steps.size() + 1, 0);
        for (const Edge& edge : edges_) ++s.first_dependent[edge.earlier + 1];
        for (size_t i = 1; i < s.first_dependent.size(); ++i)
            s.first_dependent[i] += s.first_dependent[i - 1];
        s.dependents.resize(edges_.size());
        std::vector<uint32_t> next(s.first_dependent.begin(), s.first_dependent.end() - 1);
        for (const Edge& edge : edges_) s.dependents[next[edge.earlier]++] = edge.later;
        return std::move(schedule_);
    }

  private:
    struct Edge {
        uint32_t earlier, later;
    };
    void wait_for_signals(const ScheduleStep& step, uint32_t index) {
        if (step.kind == ScheduleStep::Kind::receive)
            awaited_.push_back(index);
        else
            needed_ = awaited_;
    }
    uint32_t ordinal(const ScheduleStep& step) noexcept {
        if (step.kind != ScheduleStep::Kind::send && step.kind != ScheduleStep::Kind::receive)
            return 0;
        schedule_.largest_message = std::max(schedule_.largest_message, step.count);
        return step.kind == ScheduleStep::Kind::send ? schedule_.sends++ : schedule_.receives++;
    }
    Place resolved(Place place) const noexcept {
        if (!in_place_.is || place.memory != Memory::input) return place;
        return {Memory::output, place.first + in_place_.offset};
    }
    // Nobody writes the input: nobody needs to know who read it.
    void read(Place place, int64_t count, uint32_t index) {
        if (place.memory != Memory::input) history(place).read(place.first, count, index, needed_);
    }
    History& history(Place place) noexcept { return histories_[static_cast<size_t>(place.memory)]; }

    InPlace in_place_;
    Schedule schedule_;
    std::array<History, 3> histories_;
    std::vector<uint32_t> needed_;
    std::vector<uint32_t> awaited_;  // receives of signals so far
    std::vector<Edge> edges_;
};

Place in_lane(Place place, int64_t lane_begins) noexcept {
    return place.memory == Memory::scratch ? place + lane_begins : place;
}

ScheduleStep in_lane(ScheduleStep step, size_t segment, int64_t lane_begins) noexcept {
    step.segment = static_cast<uint16_t>(segment);
    step.from = in_lane(step.from, lane_begins);
    step.right = in_lane(step.right, lane_begins);
    step.to = in_lane(step.to, lane_begins);
    return step;
}

}  // namespace

Track::Messages& Track::messages_with(int peer) {
    for (Messages& messages : messages_)
        if (messages.peer == peer) return messages;
    return messages_.emplace_back(Messages{peer, 0, 0});
}

void Track::add(const ScheduleStep& step) {
    if (step.count != 0) steps_.push_back(step);
}

uint16_t Track::number_of_message(ScheduleStep::Kind kind, int peer) {
    Messages& messages = messages_with(peer);
    return kind == ScheduleStep::Kind::send ? messages.sent++ : messages.received++;
}

void Track::add_message(ScheduleStep::Kind kind, Place from, Place to, int64_t count, int peer) {
    if (count == 0) return;
    add({.kind = kind,
         .peer = peer,
         .message = number_of_message(kind, peer),
         .count = count,
         .from = from,
         .right = {},
         .to = to});
}

void Track::send(Place from, int64_t count, int peer) {
    add_message(ScheduleStep::Kind::send, from, {}, count, peer);
}

void Track::receive(Place to, int64_t count, int peer) {
    add_message(ScheduleStep::Kind::receive, {}, to, count, peer);
}

void Track::add_signal(ScheduleStep::Kind kind, int peer) {
    steps_.push_back({.kind = kind,
                      .peer = peer,
                      .message = number_of_message(kind, peer),
                      .from = {},
                      .right = {},
                      .to = {Memory::output, 0}});
}

void Track::signal(int peer) { add_signal(ScheduleStep::Kind::send, peer); }

void Track::await_signal(int peer) { add_signal(ScheduleStep::Kind::receive, peer); }

void Track::reduce(Place left, Place right, Place to, int64_t count) {
    add({.kind = ScheduleStep::Kind::reduce,
         .count = count,
         .from = left,
         .right = right,
         .to = to});
}

void Track::copy(Place from, Place to, int64_t count) {
    add({.kind = ScheduleStep::Kind::copy, .count = count, .from = from, .right = {}, .to = to});
}

Place Track::scratch(int64_t count) {
    const Place place{Memory::scratch, scratch_};
    scratch_ += count;
    return place;
}

std::span<const ScheduleStep> Track::steps_of_round(size_t round) const noexcept {
    if (round >= rounds()) return {};
    const size_t begins = round == 0 ? 0 : round_ends_[round - 1];
    const size_t ends = round == round_ends_.size() ? steps_.size() : round_ends_[round];
    return {steps_.data() + begins, ends - begins};
}

// 1. Lanes: as much scratch memory as the largest track needs. 2. Tracks in groups of `lanes`,
// round by round. 3. What comes last.
Schedule make_schedule(const std::vector<Track>& tracks, const Track& last, unsigned lanes,
                       InPlace in_place) {
    int64_t lane_elements = 0;
    size_t number_of_steps = last.steps().size(), rounds = 0;
    for (const Track& track : tracks) {
        lane_elements = std::max(lane_elements, track.scratch_elements());
        number_of_steps += track.steps().size();
        rounds = std::max(rounds, track.rounds());
    }
    Linker linker(in_place, number_of_steps);
    for (size_t group = 0; group < tracks.size(); group += lanes) {
        const size_t group_end = std::min<size_t>(tracks.size(), group + lanes);
        for (size_t round = 0; round < rounds; ++round)
            for (size_t t = group; t < group_end; ++t)
                for (const ScheduleStep& step : tracks[t].steps_of_round(round))
                    linker.add(in_lane(step, t, static_cast<int64_t>(t - group) * lane_elements));
    }
    for (const ScheduleStep& step : last.steps()) linker.add(step);
    const auto used_lanes = static_cast<int64_t>(std::min<size_t>(lanes, tracks.size()));
    return linker.finish(used_lanes * lane_elements);
}

int64_t largest_block(const Blocks& blocks) noexcept {
    int64_t most = 0;
    for (const Segment& block : blocks) most = std::max(most, block.count);
    return most;
}

Blocks equal_blocks(Segment vector, int parts) {
    Blocks blocks(static_cast<size_t>(parts));
    for (int i = 0; i < parts; ++i) {
        blocks[static_cast<size_t>(i)] =
            segment(vector.count, static_cast<unsigned>(parts), static_cast<unsigned>(i));
        blocks[static_cast<size_t>(i)].first += vector.first;
    }
    return blocks;
}

Blocks part_of_blocks(const Blocks& blocks, unsigned parts, unsigned part) {
    Blocks result(blocks.size());
    for (size_t i = 0; i < blocks.size(); ++i) {
        const Segment cut = segment(blocks[i].count, parts, part);
        result[i] = {blocks[i].first + cut.first, cut.count};
    }
    return result;
}

}  // namespace vecmpi::pipeline
