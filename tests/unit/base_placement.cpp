// SPDX-License-Identifier: BSD-3-Clause
// Placement: which rank gets an offload thread, where it runs, and when a node is oversubscribed.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "base/api.hpp"

using namespace vecmpi;
using namespace vecmpi::base;

namespace {

std::vector<int> cpus_from(int first, int number) {
    std::vector<int> cpus(static_cast<size_t>(number));
    std::iota(cpus.begin(), cpus.end(), first);
    return cpus;
}

HostView host_of(std::vector<int> cpus, int cpus_of_node, int local_ranks, int local_rank = 0,
                 int threads = 1) {
    HostView host;
    host.cpus = std::move(cpus);
    host.cpus_of_node = cpus_of_node;
    host.local_ranks = local_ranks;
    host.local_rank = local_rank;
    host.threads_per_rank = threads;
    return host;
}

Settings with(OffloadMode mode) {
    Settings settings;
    settings.offload = mode;
    return settings;
}

Settings with_cpus(std::vector<int> cpus, OffloadMode mode = OffloadMode::automatic) {
    Settings settings = with(mode);
    settings.cpu.kind = CpuChoice::Kind::list;
    settings.cpu.cpus = std::move(cpus);
    return settings;
}

}  // namespace

TEST_CASE("auto turns the thread on only where a CPU is free", "[base][placement]") {
    struct Case {
        const char* what;
        HostView host;
        bool on;
        int cpu;
        const char* reason;
    };
    std::vector<Case> cases{
        {"1 rank, 2 CPUs", host_of(cpus_from(0, 2), 2, 1), true, 1, "on: CPU 1 is free"},
        {"2 ranks, 2 CPUs", host_of(cpus_from(0, 2), 2, 2), false, -1,
         "off: 2 ranks and their threads use all 2 CPUs"},
        {"4 ranks, 2 CPUs", host_of(cpus_from(0, 2), 2, 4), false, -1,
         "off: 4 ranks and their threads use all 2 CPUs"},
        {"2 ranks, 3 CPUs", host_of(cpus_from(0, 3), 3, 2), false, -1,
         "off: 2 ranks and their threads leave 1 of 3 CPUs, not one for each"},
        {"2 ranks, 4 CPUs", host_of(cpus_from(0, 4), 4, 2, 1), true, 2, "on: CPU 2 is free"},
        {"4 ranks bound to 4 of 16", host_of(cpus_from(8, 4), 16, 4, 2), true, 11,
         "on: CPU 11 is free"},
        {"the same with 3 threads", host_of(cpus_from(8, 4), 16, 4, 2, 3), true, 11,
         "on: CPU 11 is free"},
        {"the same with 4 threads", host_of(cpus_from(8, 4), 16, 4, 2, 4), false, -1,
         "off: 1 rank and its threads use all 4 CPUs"},
        {"one thread on 2 sockets of 8", host_of(cpus_from(8, 8), 16, 4, 2), true, 14,
         "on: CPU 14 is free"},
        {"socket full of threads", host_of(cpus_from(8, 8), 16, 4, 2, 4), false, -1,
         "off: 2 ranks and their threads use all 8 CPUs"},
        {"unknown launcher", host_of(cpus_from(0, 16), 16, 0), false, -1,
         "off: the launcher does not say how many ranks share this node"},
        {"mask of one", host_of({3}, 16, 16, 3), false, -1, "off: this rank may use CPU 3 only"},
        {"mask of one, alone", host_of({3}, 16, 1), false, -1, "off: this rank may use CPU 3 only"},
        {"quota of 1 CPU", host_of(cpus_from(0, 16), 1, 1), false, -1,
         "off: 1 rank has CPU time for one thread"},
        {"quota of 2 CPUs", host_of(cpus_from(0, 16), 2, 1), true, 15, "on: CPU 15 is free"},
        {"quota of 2 CPUs, 2 ranks", host_of(cpus_from(0, 16), 2, 2), false, -1,
         "off: 2 ranks and their threads use all 2 CPUs"},
    };
    for (const Case& test : cases) {
        OffloadPlan plan = plan_offload(Settings(), test.host);
        CAPTURE(test.what);
        CHECK(plan.own_thread == test.on);
        CHECK(plan.own_cpu == test.on);
        CHECK(plan.cpu == test.cpu);
        CHECK(plan.reason == test.reason);
    }
}

TEST_CASE("on insists, off never", "[base][placement]") {
    for (const HostView& host :
         {host_of(cpus_from(0, 2), 2, 2), host_of({3}, 16, 16), host_of({3}, 1, 1),
          host_of(cpus_from(0, 16), 16, 0), HostView()}) {
        OffloadPlan on = plan_offload(with(OffloadMode::on), host);
        CHECK(on.own_thread);
        CHECK_FALSE(on.own_cpu);
        CHECK(on.cpu == -1);
        CHECK(on.reason.starts_with("on: VECMPI_OFFLOAD=on, though "));
        CHECK_FALSE(plan_offload(Settings(), host).own_thread);
    }
    OffloadPlan off = plan_offload(with(OffloadMode::off), host_of(cpus_from(0, 64), 64, 1));
    CHECK_FALSE(off.own_thread);
    CHECK(off.reason == "off: VECMPI_OFFLOAD=off");
    OffloadPlan on = plan_offload(with(OffloadMode::on), host_of(cpus_from(0, 2), 2, 1));
    CHECK(on.own_cpu);
    CHECK(on.cpu == 1);
}

TEST_CASE("Threads of ranks that share a mask never share a CPU", "[base][placement]") {
    for (int masks : {1, 2, 3, 4, 6, 8})
        for (int sharing : {1, 2, 3, 4, 6}) {
            int ranks = masks * sharing, size = 2 * sharing;
            for (bool in_blocks : {true, false}) {
                std::set<int> taken;
                for (int rank = 0; rank < ranks; ++rank) {
                    int mask = in_blocks ? rank / sharing : rank % masks;
                    HostView host =
                        host_of(cpus_from(mask * size, size), masks * size, ranks, rank);
                    OffloadPlan plan = plan_offload(Settings(), host);
                    REQUIRE(plan.own_cpu);
                    CHECK(std::count(host.cpus.begin(), host.cpus.end(), plan.cpu) == 1);
                    taken.insert(plan.cpu);
                }
                CAPTURE(masks, sharing, in_blocks);
                // A mask of one CPU more than the ranks is the least with room; here it has twice
                // as many.
                CHECK(taken.size() == static_cast<size_t>(ranks));
            }
        }
}

TEST_CASE("The thread stays on the NUMA node of the mask's first CPU", "[base][placement]") {
    HostView host = host_of(cpus_from(0, 8), 8, 2, 1);
    host.numa_node = {0, 0, 0, 0, 1, 1, 1, 1};
    CHECK(plan_offload(Settings(), host).cpu == 2);
    host.numa_node = {1, 0, 0, 0, 0, 0, 0, 0};  // too few near ones: any will do
    CHECK(plan_offload(Settings(), host).cpu == 6);
    host.numa_node.clear();
    CHECK(plan_offload(Settings(), host).cpu == 6);
}

TEST_CASE("VECMPI_CPU is the user's wish", "[base][placement]") {
    HostView bound = host_of({2}, 16, 4, 2);
    SECTION("a CPU outside the mask was set aside, even from a mask of one") {
        OffloadPlan plan = plan_offload(with_cpus({12, 13, 14, 15}), bound);
        CHECK(plan.own_thread);
        CHECK(plan.own_cpu);
        CHECK(plan.cpu == 14);
        CHECK(plan.reason == "on: CPU 14, by VECMPI_CPU");
        CHECK_FALSE(oversubscribed(bound, plan));
    }
    SECTION("a CPU that the system refuses is as if not listed") {
        bound.refused_cpu = 14;
        const Settings settings = with_cpus({12, 13, 14, 15});
        CHECK_FALSE(plan_offload(settings, bound).own_thread);
        HostView roomy = host_of(cpus_from(0, 4), 4, 1);
        roomy.refused_cpu = 500;
        OffloadPlan plan = plan_offload(with_cpus({500}), roomy);
        CHECK(plan.own_thread);
        CHECK(plan.cpu == -1);
        CHECK(plan.reason ==
              "on: a CPU is free, left to the scheduler: CPU 500 of VECMPI_CPU cannot be had");
    }
    SECTION("a list shorter than the ranks goes round, and nobody owns a shared CPU") {
        OffloadPlan plan = plan_offload(with_cpus({14, 15}), bound);
        CHECK(plan.cpu == 14);
        CHECK(plan.own_thread);
        CHECK_FALSE(plan.own_cpu);
    }
    SECTION("a CPU of a full mask is not free") {
        HostView full = host_of(cpus_from(0, 2), 2, 2, 1);
        CHECK_FALSE(plan_offload(with_cpus({0, 1}), full).own_thread);
        OffloadPlan plan = plan_offload(with_cpus({0, 1}, OffloadMode::on), full);
        CHECK(plan.own_thread);
        CHECK_FALSE(plan.own_cpu);
        CHECK(plan.cpu == 1);
    }
    SECTION("a CPU of a mask with room") {
        OffloadPlan plan = plan_offload(with_cpus({0}), host_of(cpus_from(0, 4), 4, 1));
        CHECK(plan.own_cpu);
        CHECK(plan.cpu == 0);
    }
    SECTION("none leaves it to the scheduler") {
        Settings settings;
        settings.cpu.kind = CpuChoice::Kind::none;
        OffloadPlan plan = plan_offload(settings, host_of(cpus_from(0, 4), 4, 1));
        CHECK(plan.own_thread);
        CHECK(plan.own_cpu);
        CHECK(plan.cpu == -1);
    }
    SECTION("off is off") {
        CHECK_FALSE(plan_offload(with_cpus({15}, OffloadMode::off), bound).own_thread);
    }
}

TEST_CASE("crowd_of counts the ranks, then the threads that want to run", "[base][placement]") {
    struct Case {
        const char* what;
        HostView host;
        OffloadMode mode;
        Crowd expected;
    };
    using enum OffloadMode;
    using enum Crowd;
    std::vector<Case> cases{
        {"2 ranks, 2 CPUs", host_of(cpus_from(0, 2), 2, 2), automatic, none},
        {"a sparse thread does not count", host_of(cpus_from(0, 2), 2, 2), on, none},
        {"3 ranks, 2 CPUs", host_of(cpus_from(0, 2), 2, 3), automatic, of_ranks},
        {"8 ranks, 2 CPUs", host_of(cpus_from(0, 2), 2, 8), off, of_ranks},
        {"1 rank with thread, 2 CPUs", host_of(cpus_from(0, 2), 2, 1), automatic, none},
        {"2 threads each", host_of(cpus_from(0, 2), 2, 2, 0, 2), automatic, of_threads},
        {"16 ranks bound to one CPU each", host_of({5}, 16, 16, 5), automatic, none},
        {"17 ranks on 16 CPUs, bound", host_of({5}, 16, 17, 5), automatic, of_ranks},
        {"4 ranks bound to 4 of 16", host_of(cpus_from(4, 4), 16, 4, 1), automatic, none},
        {"unknown ranks", host_of(cpus_from(0, 16), 16, 0), automatic, none},
        {"unknown ranks, one CPU", host_of({0}, 1, 0), automatic, of_ranks},
        {"quota of 2 for 4 ranks", host_of(cpus_from(0, 64), 2, 4), automatic, of_ranks},
        {"quota of 8 for 4 ranks with threads", host_of(cpus_from(0, 16), 8, 4), automatic, none},
    };
    for (const Case& test : cases) {
        CAPTURE(test.what);
        CHECK(crowd_of(test.host, plan_offload(with(test.mode), test.host)) == test.expected);
    }
}
