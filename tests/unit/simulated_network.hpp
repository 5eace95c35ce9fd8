// SPDX-License-Identifier: BSD-3-Clause
// A discrete-event simulation of schedules: what the closed forms of the cost model are compared
// with. The same constants, but real schedules, each with its own waiting, queues and idle times.
//
// Each rank has one processor, which takes the first of its ready steps, messages before arithmetic
// (who reduces while a message could go keeps the others waiting); each node one link, which
// carries whole messages in the order in which they are ready, and each way by itself. A short
// message leaves whether it is awaited or not; a long one asks first (rendezvous).
#pragma once

#include <algorithm>
#include <cstdint>
#include <queue>
#include <unordered_map>
#include <vector>

#include "pipeline/schedules/algorithms.hpp"
#include "pipeline/schedules/cost.hpp"

namespace vecmpi::test {

class SimulatedNetwork {
  public:
    SimulatedNetwork(const pipeline::NodeLayout& layout,
                     const pipeline::NetworkConstants& constants, double element_bytes)
        : layout_(layout), net_(constants), element_bytes_(element_bytes) {}

    // Microseconds until the last rank is through; below 0 where one never is.
    double run(const std::vector<pipeline::Schedule>& schedules) {
        for (const pipeline::Schedule& schedule : schedules)
            ranks_.push_back({&schedule, schedule.waits, {}, false});
        ports_.assign(schedules.size(), 0);
        out_.assign(static_cast<size_t>(layout_.nodes()), 0);
        in_ = out_;
        for (int r = 0; r < layout_.ranks(); ++r)
            for (uint32_t i = 0; i < schedules[index(r)].waits.size(); ++i)
                if (schedules[index(r)].waits[i] == 0) become_ready(r, i);
        for (; !events_.empty(); events_.pop()) {
            now_ = events_.top().time;
            handle(Event(events_.top()));
        }
        size_t steps = 0;
        for (const pipeline::Schedule& schedule : schedules) steps += schedule.steps.size();
        return completed_ == steps ? now_ : -1;
    }

  private:
    enum class What : uint8_t { processor_free, leaves, first_byte, arrives, sent };
    struct Event {
        double time;
        uint64_t order;  // of events at the same time
        What what;
        int rank;
        uint32_t step;
        uint64_t message;
        bool operator<(const Event& other) const {
            return time != other.time ? time > other.time : order > other.order;
        }
    };
    struct Rank {
        const pipeline::Schedule* schedule;
        std::vector<uint32_t> waits;
        std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> ready;
        bool busy = false;
    };
    struct Message {
        int from = -1, to = -1;
        uint32_t send = 0, receive = 0;
        double bytes = 0, offered = -1, posted = -1;
        bool arrived = false;
    };

    static size_t index(int i) { return static_cast<size_t>(i); }
    const pipeline::ScheduleStep& step_of(int rank, uint32_t step) const {
        return ranks_[index(rank)].schedule->steps[step];
    }
    bool is_on_node(int a, int b) const { return layout_.node_of(a) == layout_.node_of(b); }
    double latency(const Message& m) const {
        return is_on_node(m.from, m.to) ? net_.node_latency_us : net_.latency_us;
    }
    static uint64_t key(int from, int to, const pipeline::ScheduleStep& step) {
        return uint64_t(from) << 48 | uint64_t(to) << 32 | uint64_t(step.segment) << 16 |
               step.message;
    }
    bool is_long(double bytes) const { return bytes > net_.rendezvous_bytes; }

    void at(double time, What what, int rank, uint32_t step, uint64_t message = 0) {
        events_.push({time, order_++, what, rank, step, message});
    }

    double busy_us(int rank, const pipeline::ScheduleStep& step) const {
        const double bytes = static_cast<double>(step.count) * element_bytes_;
        if (step.kind == pipeline::ScheduleStep::Kind::reduce)
            return bytes / net_.reduce_bytes_per_us;
        if (step.kind == pipeline::ScheduleStep::Kind::copy) return bytes / net_.node_bytes_per_us;
        return is_on_node(rank, step.peer) ? net_.node_overhead_us : net_.overhead_us;
    }

    void become_ready(int rank, uint32_t index_of_step) {
        const pipeline::ScheduleStep& step = step_of(rank, index_of_step);
        if (step.kind != pipeline::ScheduleStep::Kind::receive)
            return give_processor(rank, index_of_step);
        const uint64_t k = key(step.peer, rank, step);
        Message& m = messages_[k];
        m.receive = index_of_step;
        m.to = rank;
        m.posted = now_;
        if (m.arrived) give_processor(rank, index_of_step);
        if (m.offered >= 0 && is_long(m.bytes)) ask(k, m);
    }

    // A question there and an answer back, which waits for the receive.
    void ask(uint64_t k, const Message& m) {
        const double there = m.offered + latency(m);
        at(std::max(there, m.posted) + latency(m), What::leaves, m.from, m.send, k);
    }

    void give_processor(int rank, uint32_t step) {
        const bool is_message = step_of(rank, step).peer >= 0;
        ranks_[index(rank)].ready.push(step | uint64_t(!is_message) << 32);
        work(rank);
    }
    void work(int rank) {
        Rank& r = ranks_[index(rank)];
        if (r.busy || r.ready.empty()) return;
        const auto step = static_cast<uint32_t>(r.ready.top());
        r.ready.pop();
        r.busy = true;
        at(now_ + busy_us(rank, step_of(rank, step)), What::processor_free, rank, step);
    }

    void handle(const Event& event) {
        switch (event.what) {
            case What::processor_free:
                return processor_free(event.rank, event.step);
            case What::leaves:
                return leave(event.message);
            case What::first_byte: {
                const Message& m = messages_[event.message];
                double& link = in_[index(layout_.node_of(m.to))];
                link = std::max(now_, link) + m.bytes / net_.bytes_per_us;
                return at(link, What::arrives, m.to, 0, event.message);
            }
            case What::arrives: {
                Message& m = messages_[event.message];
                m.arrived = true;
                if (m.posted >= 0) give_processor(m.to, m.receive);
                return;
            }
            case What::sent:
                return complete(event.rank, event.step);
        }
    }

    void processor_free(int rank, uint32_t i) {
        const pipeline::ScheduleStep& step = step_of(rank, i);
        ranks_[index(rank)].busy = false;
        if (step.kind == pipeline::ScheduleStep::Kind::send)
            offer(rank, i, step);
        else
            complete(rank, i);
        work(rank);
    }

    void offer(int rank, uint32_t i, const pipeline::ScheduleStep& step) {
        const uint64_t k = key(rank, step.peer, step);
        Message& m = messages_[k];
        m.from = rank;
        m.to = step.peer;
        m.send = i;
        m.bytes = static_cast<double>(step.count) * element_bytes_;
        m.offered = now_;
        if (is_long(m.bytes)) {
            if (m.posted >= 0) ask(k, m);
            return;
        }
        leave(k);
        complete(rank, i);
    }

    void leave(uint64_t k) {
        const Message& m = messages_[k];
        const bool inside = is_on_node(m.from, m.to);
        double& link = inside ? ports_[index(m.from)] : out_[index(layout_.node_of(m.from))];
        const double begins = std::max(now_, link);
        link = begins + m.bytes / (inside ? net_.node_bytes_per_us : net_.bytes_per_us);
        if (is_long(m.bytes)) at(link, What::sent, m.from, m.send);
        if (inside)
            at(link + net_.node_latency_us, What::arrives, m.to, 0, k);
        else
            at(begins + net_.latency_us, What::first_byte, m.to, 0, k);
    }

    void complete(int rank, uint32_t i) {
        ++completed_;
        const pipeline::Schedule& s = *ranks_[index(rank)].schedule;
        for (uint32_t d = s.first_dependent[i]; d < s.first_dependent[i + 1]; ++d)
            if (--ranks_[index(rank)].waits[s.dependents[d]] == 0)
                become_ready(rank, s.dependents[d]);
    }

    const pipeline::NodeLayout& layout_;
    pipeline::NetworkConstants net_;
    double element_bytes_;
    std::vector<Rank> ranks_;
    std::vector<double> out_, in_, ports_;  // when each is free
    std::unordered_map<uint64_t, Message> messages_;
    std::priority_queue<Event> events_;
    double now_ = 0;
    uint64_t order_ = 0;
    size_t completed_ = 0;
};

// Ranks in order on the nodes, as many on each, the last nodes one less where that is not possible.
inline pipeline::NodeLayout layout_of(const pipeline::CostFacts& facts) {
    std::vector<int> node_of_rank;
    for (int node = 0; node < facts.nodes; ++node) {
        const Segment here =
            segment(facts.ranks, static_cast<unsigned>(facts.nodes), static_cast<unsigned>(node));
        node_of_rank.insert(node_of_rank.end(), static_cast<size_t>(here.count), node);
    }
    return pipeline::NodeLayout(node_of_rank);
}

// Of floats. The largest one of uneven blocks is a rank's in the middle of the first node.
inline pipeline::Blocks blocks_of(const pipeline::CostFacts& facts) {
    const auto count = static_cast<int64_t>(facts.bytes / 4);
    if (facts.collective != Collective::allgather)
        return pipeline::equal_blocks({0, count}, facts.ranks);
    const int64_t all = count * facts.ranks;
    if (facts.largest_bytes == 0) return pipeline::equal_blocks({0, all}, facts.ranks);
    const auto largest = static_cast<int64_t>(facts.largest_bytes / 4);
    pipeline::Blocks blocks = pipeline::equal_blocks({0, all - largest}, facts.ranks - 1);
    const auto place = blocks.begin() + facts.most_ranks_on_a_node / 2;
    for (auto block = place; block != blocks.end(); ++block) block->first += largest;
    const int64_t first = place == blocks.end() ? all - largest : place->first - largest;
    blocks.insert(place, {first, largest});
    return blocks;
}

// Floats; the root is rank 0.
inline double simulated_us(CollectivePath algorithm, const pipeline::CostFacts& facts,
                           const pipeline::Pipelining& pipelining,
                           const pipeline::NetworkConstants& network) {
    const pipeline::NodeLayout layout = layout_of(facts);
    const auto count = static_cast<int64_t>(facts.bytes / 4);
    const bool gathers =
        facts.collective == Collective::allgather || facts.collective == Collective::gather;
    const pipeline::Blocks blocks = blocks_of(facts);
    std::vector<pipeline::Schedule> schedules;
    for (int rank = 0; rank < facts.ranks; ++rank) {
        pipeline::ScheduleRequest request;
        request.collective = facts.collective;
        request.algorithm = algorithm;
        request.rank = rank;
        request.count = count;
        request.blocks = &blocks;
        request.segments = pipelining.segments;
        request.lanes = pipelining.lanes;
        request.in_place = facts.collective == Collective::bcast || gathers;
        request.layout = &layout;
        schedules.push_back(pipeline::build_schedule(request));
    }
    return SimulatedNetwork(layout, network, 4).run(schedules);
}

}  // namespace vecmpi::test
