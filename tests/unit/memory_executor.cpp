// SPDX-License-Identifier: BSD-3-Clause
// Runs the schedules of all ranks of a collective in memory.
#include "memory_executor.hpp"

#include <algorithm>
#include <compare>

namespace fake {

using vecmpi::pipeline::Memory;
using vecmpi::pipeline::Place;
using vecmpi::pipeline::Schedule;
using vecmpi::pipeline::ScheduleStep;
using Kind = ScheduleStep::Kind;

namespace {

// What a message is matched by.
struct Envelope {
    int sender, receiver;
    uint16_t segment, message;
    auto operator<=>(const Envelope&) const = default;
};

std::string text(const Envelope& e) {
    return std::to_string(e.sender) + " -> " + std::to_string(e.receiver) + " segment " +
           std::to_string(e.segment) + " message " + std::to_string(e.message);
}

// 1. Every message has its two sides. 2. Steps without anything to wait for may begin. 3. Of all
// that may happen next, one thing does, until nothing is left.
class Run {
  public:
    Run(const std::vector<Schedule>& schedules, std::vector<RankMemory>& memories,
        Operation operation, const Order& order)
        : schedules_(schedules),
          memories_(memories),
          operation_(operation),
          order_(order),
          random_(order.seed) {
        for (size_t rank = 0; rank < schedules.size(); ++rank) {
            first_.push_back(static_cast<uint32_t>(states_.size()));
            scratch_.emplace_back(static_cast<size_t>(schedules[rank].scratch_elements),
                                  uninitialised);
            for (size_t i = 0; i < schedules[rank].steps.size(); ++i) {
                State state;
                state.rank = static_cast<int>(rank);
                state.waits = schedules[rank].waits[i];
                states_.push_back(state);
            }
        }
    }

    Outcome run() {
        pair_messages();
        limit_what_is_under_way();
        for (uint32_t id = 0; id < states_.size(); ++id)
            if (states_[id].waits == 0) next_.push_back({id, false});
        size_t happened = 0;
        for (; !next_.empty() && error_.empty(); ++happened) {
            const size_t i = random_.below(next_.size());
            const Event event = next_[i];
            next_[i] = next_.back();
            next_.pop_back();
            if (event.ends)
                end(event.id);
            else
                begin(event.id);
        }
        if (error_.empty() && happened != 2 * states_.size()) describe_deadlock();
        return {error_, rounds_};
    }

  private:
    struct State {
        int rank = 0;
        uint32_t waits = 0;
        uint32_t mate = UINT32_MAX;  // send, receive: the other side's step
        int earliest = 0;            // rounds before it may begin
        bool begun = false, ended = false, ending = false;
        bool undefined = false;     // what it writes, since its begin
        std::vector<Element> data;  // read at the begin
    };
    struct Event {
        uint32_t id;
        bool ends;
    };
    struct Queue {  // the sends of a rank, or its receives
        std::vector<uint32_t> ids;
        size_t admitted;
    };

    const ScheduleStep& step(uint32_t id) const {
        const auto rank = static_cast<size_t>(states_[id].rank);
        return schedules_[rank].steps[id - first_[rank]];
    }

    void fail(uint32_t id, const std::string& what) {
        if (!error_.empty()) return;
        error_ = "rank " + std::to_string(states_[id].rank) + " step " +
                 std::to_string(id - first_[static_cast<size_t>(states_[id].rank)]) + ": " + what;
    }

    // ---- before

    std::vector<std::pair<Envelope, uint32_t>> envelopes_of(Kind kind) const {
        std::vector<std::pair<Envelope, uint32_t>> result;
        for (uint32_t id = 0; id < states_.size(); ++id) {
            const ScheduleStep& s = step(id);
            if (s.kind != kind) continue;
            Envelope e{states_[id].rank, s.peer, s.segment, s.message};
            if (kind == Kind::receive) std::swap(e.sender, e.receiver);
            result.push_back({e, id});
        }
        std::sort(result.begin(), result.end());
        return result;
    }

    void pair_messages() {
        const auto sends = envelopes_of(Kind::send), receives = envelopes_of(Kind::receive);
        for (size_t i = 0; i < std::max(sends.size(), receives.size()); ++i) {
            if (i >= sends.size() || (i < receives.size() && receives[i].first < sends[i].first))
                return fail(receives[i].second, "nobody sends " + text(receives[i].first));
            const auto& [envelope, id] = sends[i];
            if (i >= receives.size() || envelope < receives[i].first)
                return fail(id, "nobody receives " + text(envelope));
            if (i > 0 && envelope == sends[i - 1].first)
                return fail(id, "twice the same message " + text(envelope));
            if (envelope.sender == envelope.receiver) return fail(id, "a message to itself");
            const uint32_t receive = receives[i].second;
            if (step(id).count != step(receive).count)
                return fail(id, "other size than received: " + text(envelope));
            states_[id].mate = receive;
            states_[receive].mate = id;
        }
    }

    // A step behind the limit waits for one more thing: to be admitted.
    void limit_what_is_under_way() {
        const size_t limit = order_.limit;
        queues_[true].assign(schedules_.size(), {{}, limit});
        queues_[false].assign(schedules_.size(), {{}, limit + order_.more_receives});
        for (uint32_t id = 0; id < states_.size(); ++id) {
            if (Queue* queue = queue_of(id)) {
                if (queue->ids.size() >= queue->admitted) ++states_[id].waits;
                queue->ids.push_back(id);
            }
        }
    }

    Queue* queue_of(uint32_t id) {
        const Kind kind = step(id).kind;
        if (kind != Kind::send && kind != Kind::receive) return nullptr;
        return &queues_[kind == Kind::send][static_cast<size_t>(states_[id].rank)];
    }

    // ---- memory

    Element* at(uint32_t id, Place place, int64_t count) {
        if (count == 0) return nullptr;  // a signal
        const auto rank = static_cast<size_t>(states_[id].rank);
        std::vector<Element>& memory = place.memory == Memory::input    ? memories_[rank].input
                                       : place.memory == Memory::output ? memories_[rank].output
                                                                        : scratch_[rank];
        if (place.first >= 0 && count > 0 &&
            place.first + count <= static_cast<int64_t>(memory.size()))
            return memory.data() + place.first;
        fail(id, "outside of memory " + std::to_string(static_cast<int>(place.memory)) + ": " +
                     std::to_string(count) + " at " + std::to_string(place.first) + " of " +
                     std::to_string(memory.size()));
        return nullptr;
    }

    std::vector<Element> read(uint32_t id, Place place) {
        const int64_t count = step(id).count;
        const Element* begin = at(id, place, count);
        if (begin == nullptr) return {};
        if (std::find(begin, begin + count, uninitialised) != begin + count)
            fail(id, "reads what is not defined, memory " +
                         std::to_string(static_cast<int>(place.memory)) + " at " +
                         std::to_string(place.first));
        return {begin, begin + count};
    }

    void write(uint32_t id, const std::vector<Element>& data) {
        Element* to = at(id, step(id).to, step(id).count);
        if (to == nullptr || !error_.empty()) return;
        if (states_[id].undefined && std::find_if(to, to + data.size(), [](Element element) {
                                         return element != uninitialised;
                                     }) != to + data.size())
            fail(id, "somebody else writes there, too");
        std::copy(data.begin(), data.end(), to);
    }

    // Until the step ends, nobody may read what it writes.
    void undefine(uint32_t id) {
        const ScheduleStep& s = step(id);
        if (s.to.memory == Memory::input) fail(id, "writes the input");
        if (Element* to = at(id, s.to, s.count)) std::fill(to, to + s.count, uninitialised);
        states_[id].undefined = true;
    }

    std::vector<Element> computed(uint32_t id) {
        const ScheduleStep& s = step(id);
        std::vector<Element> result = read(id, s.from);
        if (s.kind != Kind::reduce) return result;
        for (Place operand : {s.from, s.right})
            if (operand.memory == s.to.memory && operand != s.to &&
                operand.first < s.to.first + s.count && s.to.first < operand.first + s.count)
                fail(id, "the result lies across an operand");
        const std::vector<Element> right = read(id, s.right);
        for (size_t i = 0; error_.empty() && i < result.size(); ++i)
            result[i] = operation_(result[i], right[i]);
        return result;
    }

    // ---- steps

    bool is_eager() {
        if (order_.sends == Order::Sends::mixed) return random_.coin();
        return order_.sends == Order::Sends::eager;
    }

    void may_end(uint32_t id) {
        if (states_[id].ending) return;
        states_[id].ending = true;
        next_.push_back({id, true});
    }

    void begin(uint32_t id) {
        State& state = states_[id];
        const Kind kind = step(id).kind;
        state.begun = true;
        if (kind == Kind::receive) {
            undefine(id);
        } else if (random_.coin()) {
            state.data = computed(id);
            if (kind != Kind::send) undefine(id);
        }
        if (kind != Kind::send && kind != Kind::receive) return may_end(id);
        if (states_[state.mate].begun) {
            may_end(id);
            may_end(state.mate);
        } else if (kind == Kind::send && is_eager()) {
            may_end(id);
        }
    }

    void end(uint32_t id) {
        State& state = states_[id];
        const Kind kind = step(id).kind;
        if (kind == Kind::receive) {
            State& mate = states_[state.mate];
            if (mate.data.empty()) mate.data = read(state.mate, step(state.mate).from);
            write(id, mate.data);
            mate.data = {};
        } else {
            const bool received = kind == Kind::send && states_[state.mate].ended;
            if (state.data.empty() && !received) state.data = computed(id);
            if (kind != Kind::send) {
                if (step(id).to.memory == Memory::input) fail(id, "writes the input");
                write(id, state.data);
                state.data = {};
            }
        }
        state.ended = true;
        let_others_go(id);
    }

    void let_others_go(uint32_t id) {
        const State& state = states_[id];
        int finished = state.earliest;
        if (Queue* queue = queue_of(id)) {
            finished = std::max(finished, states_[state.mate].earliest) + 1;
            if (queue->admitted < queue->ids.size()) release(queue->ids[queue->admitted++], 0);
        }
        rounds_ = std::max(rounds_, finished);
        const auto rank = static_cast<size_t>(state.rank);
        const Schedule& s = schedules_[rank];
        const uint32_t i = id - first_[rank];
        for (uint32_t d = s.first_dependent[i]; d < s.first_dependent[i + 1]; ++d)
            release(first_[rank] + s.dependents[d], finished);
    }

    void release(uint32_t id, int finished) {
        State& state = states_[id];
        if (state.begun || state.waits == 0) return fail(id, "let go too often");
        state.earliest = std::max(state.earliest, finished);
        if (--state.waits == 0) next_.push_back({id, false});
    }

    void describe_deadlock() {
        for (uint32_t id = 0; id < states_.size(); ++id)
            if (!states_[id].ended)
                return fail(id,
                            states_[id].begun ? "deadlock: never ends" : "deadlock: cannot begin");
    }

    const std::vector<Schedule>& schedules_;
    std::vector<RankMemory>& memories_;
    Operation operation_;
    Order order_;
    Random random_;
    std::vector<uint32_t> first_;  // step of each rank
    std::vector<std::vector<Element>> scratch_;
    std::vector<State> states_;
    std::array<std::vector<Queue>, 2> queues_;  // receives, sends
    std::vector<Event> next_;
    std::string error_;
    int rounds_ = 0;
};

bool meet(Place a, int64_t a_count, Place b, int64_t b_count) noexcept {
    return a.memory == b.memory && a.first < b.first + b_count && b.first < a.first + a_count;
}

bool reads(const ScheduleStep& step, Place place, int64_t count) noexcept {
    return (step.kind != Kind::receive && meet(step.from, step.count, place, count)) ||
           (step.kind == Kind::reduce && meet(step.right, step.count, place, count));
}

bool conflict(const ScheduleStep& a, const ScheduleStep& b) noexcept {
    const bool a_writes = a.kind != Kind::send, b_writes = b.kind != Kind::send;
    return (a_writes && reads(b, a.to, a.count)) || (b_writes && reads(a, b.to, b.count)) ||
           (a_writes && b_writes && meet(a.to, a.count, b.to, b.count));
}

}  // namespace

Outcome run_in_memory(const std::vector<Schedule>& schedules, std::vector<RankMemory>& memories,
                      Operation operation, const Order& order) {
    return Run(schedules, memories, operation, order).run();
}

std::string find_race(const Schedule& schedule) {
    const size_t n = schedule.steps.size(), words = (n + 63) / 64;
    std::vector<uint64_t> before(n * words);  // bit j of row i: step j ends before step i begins
    for (size_t i = 0; i < n; ++i) {
        const uint64_t* mine = &before[i * words];
        for (size_t j = 0; j < i; ++j)
            if ((mine[j / 64] >> (j % 64) & 1) == 0 &&
                conflict(schedule.steps[i], schedule.steps[j]))
                return "steps " + std::to_string(j) + " and " + std::to_string(i) + " of " +
                       std::to_string(n);
        for (uint32_t d = schedule.first_dependent[i]; d < schedule.first_dependent[i + 1]; ++d) {
            const size_t later = schedule.dependents[d];
            if (later <= i) return "step " + std::to_string(later) + " waits for a later one";
            uint64_t* theirs = &before[later * words];
            for (size_t w = 0; w < words; ++w) theirs[w] |= mine[w];
            theirs[i / 64] |= uint64_t{1} << (i % 64);
        }
    }
    return {};
}

}  // namespace fake
