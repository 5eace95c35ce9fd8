// SPDX-License-Identifier: BSD-3-Clause
// Needs: who binds is told of each change, and before anyone goes on who set one.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "base/api/needs.hpp"

using namespace vecmpi;
using namespace vecmpi::base;

namespace {

constinit std::atomic<unsigned> bound{0};
constinit std::atomic<int> times{0};
constinit std::atomic<int> inside{0};
constinit std::atomic<bool> at_once{false};

void bind(unsigned needs) noexcept {
    if (inside.fetch_add(1) != 0) at_once = true;
    std::this_thread::yield();
    bound = needs;
    ++times;
    inside.fetch_sub(1);
}

// Binds as before the test when it ends: other tests start engines.
struct Bound {
    Bound() {
        for (unsigned bit = 1; bit <= Need::message_plans; bit <<= 1) set_need(bit, false);
        bind_by_needs(bind);
        times = 0;
    }
    ~Bound() {
        for (unsigned bit = 1; bit <= Need::message_plans; bit <<= 1) set_need(bit, false);
        bind_by_needs([](unsigned) noexcept {});
    }
};

}  // namespace

TEST_CASE("needs: bound now and at each change", "[base][needs]") {
    set_need(Need::queue, true);
    bind_by_needs(bind);
    CHECK(bound == Need::queue);
    const Bound scope;
    CHECK(bound == 0);
    set_need(Need::messages, true);
    set_need(Need::messages, true);
    CHECK((bound == Need::messages && times == 1));
    set_need(Need::counting, true);
    CHECK(bound == (Need::messages | Need::counting));
    set_need(Need::messages, false);
    set_need(Need::twins, false);
    CHECK((bound == Need::counting && times == 3));
}

TEST_CASE("needs: whoever set one finds it bound", "[base][needs]") {
    const Bound scope;
    std::atomic<int> unbound{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread)
        threads.emplace_back([&, thread] {
            const unsigned own = thread < 2 ? 1u << thread : 0;
            for (int round = 0; round < 2000; ++round) {
                set_need(Need::virtual_requests, true);  // all of them, and nobody takes it back
                if ((bound & Need::virtual_requests) == 0) ++unbound;
                if (own == 0) continue;
                set_need(own, round % 2 == 0);
                if (((bound & own) != 0) != (round % 2 == 0)) ++unbound;
            }
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(unbound == 0);
    CHECK_FALSE(at_once);
}
