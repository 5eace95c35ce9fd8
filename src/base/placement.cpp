// SPDX-License-Identifier: BSD-3-Clause
// Does a rank get an offload thread, and where does it run? Pure: pins nothing.
#include <algorithm>
#include <numeric>

#include "base/api.hpp"
#include "host_parts.hpp"

namespace vecmpi::base {

int listed_cpu(const CpuChoice& choice, int local_rank) noexcept {
    return choice.cpus[static_cast<size_t>(local_rank) % choice.cpus.size()];
}

bool is_in_mask(const HostView& host, int cpu) noexcept {
    return std::find(host.cpus.begin(), host.cpus.end(), cpu) != host.cpus.end();
}

namespace {

// How ranks share the CPUs of one affinity mask.
struct Share {
    int cpus = 1;           // worth of time: a quota may make it less than the mask's size
    int ranks = 1;          // ranks of this node with the same mask, estimated
    int64_t threads = 1;    // program threads of those ranks
    bool known = false;     // the launcher said how many ranks there are
    bool has_room = false;  // a CPU for the offload thread of each of them
};

// Assumes that the ranks of a node are spread evenly: each mask has as many of them as its part of
// the node's CPUs.
Share share_of(const HostView& host) noexcept {
    Share share;
    int64_t mask = std::max<int64_t>(static_cast<int64_t>(host.cpus.size()), 1);
    int64_t node = std::max(host.cpus_of_node, 1);
    share.cpus = static_cast<int>(std::min(mask, node));
    share.known = host.local_ranks > 0;
    if (share.known) {
        int64_t ranks = (host.local_ranks * mask + node - 1) / node;
        share.ranks = static_cast<int>(std::clamp<int64_t>(ranks, 1, host.local_ranks));
    }
    share.threads = static_cast<int64_t>(share.ranks) * std::max(host.threads_per_rank, 1);
    share.has_room = share.known && mask > 1 && share.cpus >= share.threads + share.ranks;
    return share;
}

std::string usage(const Share& share, const HostView& host) {
    if (host.cpus.size() == 1)
        return "this rank may use CPU " + std::to_string(host.cpus[0]) + " only";
    if (!share.known) return "the launcher does not say how many ranks share this node";
    bool one = share.ranks == 1;
    std::string who = std::to_string(share.ranks) + (one ? " rank" : " ranks");
    bool single = one && host.threads_per_rank <= 1;
    if (!single) who += one ? " and its threads" : " and their threads";
    int64_t left = share.cpus - share.threads;
    std::string of_all = std::to_string(share.cpus) + " CPUs";
    if (share.cpus == 1) return who + (single ? " has" : " have") + " CPU time for one thread";
    if (left <= 0) return who + (single ? " uses" : " use") + " all " + of_all;
    return who + (single ? " leaves " : " leave ") + std::to_string(left) + " of " + of_all +
           ", not one for each";
}

// CPUs of the mask on the NUMA node of its first one, or all where those are too few for the
// threads.
std::vector<int> near_cpus(const HostView& host, int threads) {
    if (host.numa_node.size() != host.cpus.size()) return host.cpus;
    std::vector<int> cpus;
    for (size_t i = 0; i < host.cpus.size(); ++i)
        if (host.numa_node[i] == host.numa_node[0]) cpus.push_back(host.cpus[i]);
    return static_cast<int>(cpus.size()) > threads ? cpus : host.cpus;
}

// The place of this rank among those that share its mask, another one for each. Launchers deal
// ranks to masks in blocks (0 and 1 share) or round robin (0 and 2 share). rank % sharing separates
// a block; the second term moves on whenever round robin would come back to a place already taken.
int place_in_mask(const HostView& host, int sharing) noexcept {
    int masks = std::max((host.local_ranks + sharing - 1) / sharing, 1);
    return (host.local_rank % sharing + host.local_rank / std::lcm(masks, sharing)) % sharing;
}

int last_free_cpu(const HostView& host, int sharing) {
    std::vector<int> cpus = near_cpus(host, sharing);
    size_t from_end = static_cast<size_t>(place_in_mask(host, sharing));
    return cpus[cpus.size() - 1 - std::min(from_end, cpus.size() - 1)];
}

// Does the list give the same CPU to another local rank?
bool is_listed_twice(const CpuChoice& choice, const HostView& host, int cpu) noexcept {
    int ranks = 0;
    for (int rank = 0; rank < host.local_ranks; ++rank)
        ranks += listed_cpu(choice, rank) == cpu ? 1 : 0;
    return ranks > 1;
}

// A CPU outside the mask was set aside for the thread by the user. One inside is free if the mask
// has room.
OffloadPlan plan_on_listed_cpu(const Settings& settings, const HostView& host, bool has_room) {
    OffloadPlan plan;
    plan.cpu = listed_cpu(settings.cpu, host.local_rank);
    bool set_aside = !is_in_mask(host, plan.cpu);
    plan.own_thread = has_room || set_aside || settings.offload == OffloadMode::on;
    plan.own_cpu = (has_room || set_aside) && !is_listed_twice(settings.cpu, host, plan.cpu);
    plan.reason = "on: CPU " + std::to_string(plan.cpu) + ", by VECMPI_CPU";
    return plan;
}

OffloadPlan plan_off(std::string reason) {
    OffloadPlan plan;
    plan.reason = "off: " + std::move(reason);
    return plan;
}

OffloadPlan plan_without_mask(const Settings& settings, const HostView& host) {
    if (settings.offload == OffloadMode::off) return plan_off("VECMPI_OFFLOAD=off");
    Share share = share_of(host);
    const bool is_listed = settings.cpu.kind == CpuChoice::Kind::list && !settings.cpu.cpus.empty();
    if (is_listed && host.refused_cpu < 0) {
        OffloadPlan plan = plan_on_listed_cpu(settings, host, share.has_room);
        return plan.own_thread ? plan : plan_off(usage(share, host));
    }
    if (!share.has_room && settings.offload == OffloadMode::automatic)
        return plan_off(usage(share, host));
    OffloadPlan plan;
    plan.own_thread = true;
    plan.own_cpu = share.has_room;
    if (!share.has_room) {
        plan.reason = "on: VECMPI_OFFLOAD=on, though " + usage(share, host);
    } else if (is_listed) {
        plan.reason = "on: a CPU is free, left to the scheduler: CPU " +
                      std::to_string(host.refused_cpu) + " of VECMPI_CPU cannot be had";
    } else if (settings.cpu.kind == CpuChoice::Kind::none) {
        plan.reason = "on: a CPU is free, left to the scheduler by VECMPI_CPU=none";
    } else {
        plan.cpu = last_free_cpu(host, share.ranks);
        plan.reason = "on: CPU " + std::to_string(plan.cpu) + " is free";
    }
    return plan;
}

}  // namespace

OffloadPlan plan_offload(const Settings& settings, const HostView& host) {
    OffloadPlan plan = plan_without_mask(settings, host);
    plan.mask = host.cpus;
    return plan;
}

int cpus_of_rank(const HostView& host) noexcept {
    const Share share = share_of(host);
    return std::max(share.cpus / share.ranks, 1);
}

Crowd crowd_of(const HostView& host, const OffloadPlan& plan) noexcept {
    Share share = share_of(host);
    if (!share.known) return host.cpus.size() == 1 ? Crowd::of_ranks : Crowd::none;
    if (share.ranks > share.cpus) return Crowd::of_ranks;
    // A thread without a CPU of its own polls now and then and yields: it does not want to run all
    // the time. One on a CPU outside the mask takes none of it.
    bool takes_one =
        plan.own_thread && plan.own_cpu && (plan.cpu < 0 || is_in_mask(host, plan.cpu));
    const bool are_too_many = share.threads + (takes_one ? share.ranks : 0) > share.cpus;
    return are_too_many ? Crowd::of_threads : Crowd::none;
}

}  // namespace vecmpi::base
