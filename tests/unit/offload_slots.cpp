// SPDX-License-Identifier: BSD-3-Clause
// The slot pool: handles that the library never makes, generations, exhaustion, many threads.
#include "offload/slots.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <set>
#include <thread>
#include <vector>

using namespace vecmpi;
using namespace vecmpi::offload;

TEST_CASE("virtual requests lie where MPICH makes no handle", "[offload][slots]") {
    for (uint32_t generation : {1u, 2u, 77u, generations - 1})
        for (uint32_t index : {0u, 1u, 4711u, slot_count - 1}) {
            const uint32_t number = request_number(index, generation);
            CHECK(index_of_number(number) == index);
            CHECK(generation_of_number(number) == generation);
            const MPI_Request request = library::unused_request(number);
            CHECK(static_cast<uint32_t>(request) > 0x2c000000u);
            CHECK(static_cast<uint32_t>(request) <= 0x2fffffffu);
            CHECK(library::number_of_request(request) == number);
            CHECK(is_virtual(request));
        }
}

TEST_CASE("is_virtual", "[offload][slots]") {
    CHECK_FALSE(is_virtual(MPI_REQUEST_NULL));
    for (uint32_t value : {0u, 0x2bffffffu, 0x30000000u, 0x6c000000u, 0x6c000010u, 0xac000000u,
                           0xec000001u, 0xffffffffu})
        CHECK_FALSE(is_virtual(static_cast<MPI_Request>(value)));
    CHECK(is_virtual(static_cast<MPI_Request>(0x2c000001u)));
    CHECK(is_virtual(static_cast<MPI_Request>(0x2fffffffu)));
}

TEST_CASE("SlotPool: all slots can be taken, each once, and no more", "[offload][slots]") {
    SlotPool pool;
    REQUIRE(pool.usable());
    std::set<Slot*> taken;
    for (unsigned i = 0; i < slot_count; ++i) {
        Slot* slot = pool.take();
        REQUIRE(slot != nullptr);
        REQUIRE(taken.insert(slot).second);
    }
    CHECK(pool.take() == nullptr);
    CHECK(pool.take() == nullptr);
    Slot* given = *taken.begin();
    pool.give(given);
    CHECK(pool.take() == given);
    CHECK(pool.take() == nullptr);
}

TEST_CASE("SlotPool: a handle is stale once its slot was given back", "[offload][slots]") {
    SlotPool pool;
    Slot* slot = pool.take();
    slot->state = SlotState::posted;
    const MPI_Request first = pool.handle(slot);
    CHECK(pool.find(first) == slot);
    pool.give(slot);
    CHECK(pool.find(first) == nullptr);
    REQUIRE(pool.take() == slot);
    slot->state = SlotState::posted;
    const MPI_Request second = pool.handle(slot);
    CHECK(second != first);
    CHECK(pool.find(first) == nullptr);
    CHECK(pool.find(second) == slot);
}

TEST_CASE("SlotPool: handles of slots that were never used are unknown", "[offload][slots]") {
    SlotPool pool;
    for (uint32_t index : {0u, 1u, slot_count - 1})
        for (uint32_t generation : {0u, 1u, 5u}) {
            const auto request = library::unused_request(request_number(index, generation));
            CHECK(pool.find(request) == nullptr);
        }
}

TEST_CASE("SlotPool: generations come round without a null handle", "[offload][slots]") {
    SlotPool pool;
    std::set<MPI_Request> seen;
    for (unsigned round = 0; round < generations - 1; ++round) {
        Slot* slot = pool.take();
        slot->state = SlotState::posted;
        const MPI_Request request = pool.handle(slot);
        REQUIRE(is_virtual(request));
        REQUIRE(pool.find(request) == slot);
        REQUIRE(seen.insert(request).second);
        pool.give(slot);
    }
    Slot* slot = pool.take();
    CHECK(seen.count(pool.handle(slot)) == 1);  // the first one again
}

TEST_CASE("SlotPool: threads never hold the same slot", "[offload][slots]") {
    constexpr int threads = 4, rounds = 20000, held_at_once = 7;
    SlotPool pool;
    const auto holders = std::make_unique<std::atomic<int>[]>(slot_count);
    std::atomic<int> collisions{0};
    auto give_back = [&](int me, std::vector<Slot*>& held) {
        for (Slot* slot : held) {
            if (slot->error != me) ++collisions;
            holders[pool.index(slot)].store(0, std::memory_order_relaxed);
            pool.give(slot);
        }
        held.clear();
    };
    auto work = [&](int me) {
        std::vector<Slot*> held;
        for (int round = 0; round < rounds; ++round) {
            Slot* slot = pool.take();
            if (holders[pool.index(slot)].exchange(me, std::memory_order_relaxed) != 0)
                ++collisions;
            slot->error = me;  // a plain write: the sanitizer sees whether the hand-over orders it
            held.push_back(slot);
            if (held.size() == held_at_once) give_back(me, held);
        }
        give_back(me, held);
    };
    std::vector<std::thread> running;
    for (int me = 1; me <= threads; ++me) running.emplace_back(work, me);
    for (std::thread& thread : running) thread.join();
    CHECK(collisions == 0);
    unsigned left = 0;
    while (pool.take()) ++left;
    CHECK(left == slot_count);
}
