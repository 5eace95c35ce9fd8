// SPDX-License-Identifier: BSD-3-Clause
// When a plan is made, which calls it serves and when it goes, over a library whose only derived
// types are vectors of ints.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <numeric>
#include <thread>

#include "vector_types.hpp"

using namespace vecmpi;
using namespace vecmpi::datatype;
using namespace vector_types;

// ---- memory that runs out ----------------------------------------------------------------------

namespace {
thread_local constinit int allocations_left = -1;  // below 0: any number

void* allocate_or_throw(size_t bytes) {
    if (allocations_left == 0) throw std::bad_alloc();
    if (allocations_left > 0) --allocations_left;
    if (void* const memory = std::malloc(bytes)) return memory;
    throw std::bad_alloc();
}
}  // namespace

void* operator new(size_t bytes) { return allocate_or_throw(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
    try {
        return allocate_or_throw(bytes);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace {

// ---- the program -------------------------------------------------------------------------------

struct Buffers {
    std::vector<int> memory = std::vector<int>(1 << 18), packed = std::vector<int>(1 << 16);
    Buffers() {
        for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<int>(i * 2654435761u);
    }
};

PackCall unpack_call(Buffers& b, int number, MPI_Count count = 1) {
    PackCall call = pack_call(b, number, count);
    call.direction = kernels::Direction::unpack;
    return call;
}

void pack_plainly(const PackCall& call) {
    const Vector v = types.at(call.type);
    char* const packed = static_cast<char*>(call.packed) + call.position;
    for (MPI_Count at = 0; at < call.count * v.count * int_bytes; ++at) {
        char& there = static_cast<char*>(call.memory)[place_of(v, at)];
        if (call.direction == kernels::Direction::pack)
            packed[at] = there;
        else
            there = packed[at];
    }
}

// How the library does while a plan competes with it: faster or slower than any plan.
enum class Library_is { fast, slow };

// As serve_Pack. True: by a plan.
bool run(const PackCall& call, Library_is how = Library_is::slow) {
    MPI_Count end = 0;
    uint64_t timed_since_ns = 0;
    if (pack_by_plan(call, &end, &timed_since_ns)) return true;
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(50);
    if (timed_since_ns == 0 || how == Library_is::slow) pack_plainly(call);
    while (timed_since_ns != 0 && how == Library_is::slow &&
           std::chrono::steady_clock::now() < until) {
    }
    note_packed_by_library(call, call.position + call.count * types.at(call.type).count * int_bytes,
                           timed_since_ns);
    return false;
}

constexpr unsigned first_turns = 8;  // that are not counted
constexpr unsigned most_turns = 2 * Trial::rounds + first_turns;

// How many calls the library served before a plan did, which has won its trial then; `most` if
// none did.
int calls_before_plan(const PackCall& call, int most = 100000) {
    for (int i = 0; i < most; ++i) {
        if (!run(call)) continue;
        for (unsigned calls = 0; calls < most_turns; ++calls) run(call);
        return i;
    }
    return most;
}

}  // namespace

TEST_CASE("a type that is made, used a little and given back makes no plan", "[datatype]") {
    const Library library({{1, {1000, 2}}});
    Buffers b;
    for (int i = 0; i < 1000; ++i) {
        meet_type(handle(1), 0);
        for (const PackCall& call : {pack_call(b, 1), unpack_call(b, 1)}) {
            MPI_Count end = 0;
            uint64_t timed_since_ns = 0;
            CHECK_FALSE(pack_by_plan(call, &end, &timed_since_ns));
            note_packed_by_library(call, 1000 * int_bytes, 0);  // it took no time
        }
        forget_plan(handle(1));
    }
    CHECK(envelopes == 0);
    CHECK(plans_alive() == 0);
}

TEST_CASE("a plan is made once the library has spent four times its cost", "[datatype]") {
    const Library library({{1, {2, 3}}, {2, {1000, 2}}, {3, {30000, 4}}});
    Buffers b;
    constexpr uint64_t call_ns = 1000;
    for (const int number : {1, 2, 3}) {
        const MPI_Count bytes = types.at(handle(number)).count * int_bytes;
        const PackCall call = pack_call(b, number);
        uint64_t calls = 0;
        MPI_Count end = 0;
        uint64_t timed_since_ns = 0;
        for (; !pack_by_plan(call, &end, &timed_since_ns) && calls < 1000; ++calls) {
            pack_plainly(call);
            CHECK((timed_since_ns != 0) == (calls * call_ns < 4 * least_worth_ns));
            note_packed_by_library(call, bytes, monotonic_ns() - call_ns);
            if (plans_alive() != 0) break;
        }
        CAPTURE(number, calls);
        CHECK(calls * call_ns <= least_worth_ns);
        forget_plan(handle(number));
    }
}

TEST_CASE("a type that comes again begins with its plan", "[datatype]") {
    const Library library({{1, {500, 2}}, {2, {500, 2}}, {3, {500, 3}}});
    Buffers b;
    calls_before_plan(pack_call(b, 1));
    forget_plan(handle(1));
    CHECK(plans_alive() == 0);
    meet_type(handle(2), 0);  // the same type under another handle
    CHECK(plans_alive() == 1);
    std::fill(b.packed.begin(), b.packed.end(), 0);
    REQUIRE(run(pack_call(b, 2)));
    Buffers plain;
    pack_plainly(pack_call(plain, 2));
    CHECK(b.packed == plain.packed);
    envelopes = 0;
    meet_type(handle(3), 0);
    CHECK(envelopes == 0);  // none has its size and extent
    CHECK_FALSE(run(pack_call(b, 3)));
}

namespace {
std::unique_ptr<KeptPlan> plan_of(const TypeTree& tree, int64_t blocks = 1 << 17) {
    Counter why{};
    std::vector<int64_t> offsets;
    for (int64_t i = 0; i < blocks; ++i) offsets.push_back(8 * i + i % 2 * 4);
    return std::make_unique<KeptPlan>(
        make_steps(at_places(dense(4), offsets), 1 << 20, kernels::PackLimits{}, &why),
        digest_of(tree));
}
}  // namespace

TEST_CASE("plans that no type has go where memory is short", "[datatype]") {
    PlanStore store;
    const auto tree_of = [](int64_t size) {
        TypeTree tree;
        tree.size = tree.extent = size;
        return tree;
    };
    const TypeTree held_tree = tree_of(1);
    const PlanReference held = store.keep(plan_of(held_tree), held_tree);
    REQUIRE(held != nullptr);
    CHECK(held->memory_bytes > size_t{1} << 20);
    for (int64_t size = 2; size < 100; ++size) {
        const TypeTree tree = tree_of(size);
        CHECK(store.keep(plan_of(tree), tree) != nullptr);
        CHECK(store.find(digest_of(tree)) != nullptr);
        CHECK(store.bytes() <= size_t{64} << 20);
    }
    CHECK(store.find(digest_of(held_tree)) == held);
    CHECK(store.find(digest_of(tree_of(2))) == nullptr);  // the longest unused
    CHECK_FALSE(store.may_have(2, 2));
    CHECK(store.may_have(99, 99));
    std::vector<PlanReference> all;
    for (int64_t size = 100; all.empty() || all.back() != nullptr; ++size) {
        const TypeTree tree = tree_of(size);
        all.push_back(store.keep(plan_of(tree), tree));
        REQUIRE(size < 200);
    }
    CHECK(all.size() > 40);  // all are used: there is no room for one more
    CHECK(store.bytes() <= size_t{64} << 20);
    store.clear();
    for (int64_t size = 1; size < 200; ++size) CHECK_FALSE(store.may_have(size, size));
}

TEST_CASE("a plan that finds no room leaves nothing, though one of its shape has gone for it",
          "[datatype]") {
    PlanStore store;
    const auto tree_of = [](int64_t size, int64_t parameter) {
        TypeTree tree;
        tree.size = tree.extent = size;
        tree.integers = {parameter};
        return tree;
    };
    std::vector<PlanReference> held;
    int64_t size = 100;
    // In the end a plan of many blocks needs more than is left and one of few gives back.
    for (int64_t blocks = 1 << 17; blocks >= 1 << 12; blocks /= 2)
        for (;; ++size) {
            const TypeTree tree = tree_of(size, 0);
            PlanReference kept = store.keep(plan_of(tree, blocks), tree);
            if (kept == nullptr) break;
            held.push_back(std::move(kept));
        }
    const TypeTree few = tree_of(size - 1, 0), many = tree_of(size - 1, 1);
    held.pop_back();  // unused
    REQUIRE(store.find(digest_of(few)) != nullptr);
    CHECK(store.keep(plan_of(many), many) == nullptr);
    CHECK(store.find(digest_of(few)) == nullptr);
    CHECK_FALSE(store.may_have(few.size, few.extent));
    held.clear();
    CHECK(store.keep(plan_of(many), many) != nullptr);
    CHECK(store.may_have(many.size, many.extent));
}

TEST_CASE("what the library has spent says how long a description may be", "[datatype]") {
    CHECK(worth_describing(0) == 0);
    CHECK(worth_describing(worth_of_plan * plan_ns) == 0);
    CHECK(worth_describing(least_worth_ns) >= 16);  // vectors, small structs
    CHECK(worth_describing(100'000'000) > 100'000);
    CHECK(worth_describing(UINT64_MAX) == most_described);
}

TEST_CASE("many types keep their plans side by side", "[datatype]") {
    std::map<int, Vector> vectors;
    for (int i = 0; i < 600; ++i) vectors[i] = {100 + i, 2};
    const Library library(vectors);
    Buffers b;
    for (int i = 0; i < 600; ++i) calls_before_plan(pack_call(b, i));
    CHECK(plans_alive() == 600);
    for (int i = 0; i < 600; ++i) CHECK(run(pack_call(b, i)));
}

TEST_CASE("more types of one set than it has places stay with the library", "[datatype]") {
    std::map<int, Vector> vectors;
    for (int i = 0; i < 6; ++i) vectors[i * 1024] = {100, 2};
    const Library library(vectors);
    Buffers b;
    for (int i = 0; i < 4; ++i) CHECK(calls_before_plan(pack_call(b, i * 1024)) < 10000);
    CHECK(calls_before_plan(pack_call(b, 4 * 1024), 5000) == 5000);
    forget_plan(handle(0));
    CHECK(calls_before_plan(pack_call(b, 4 * 1024)) < 10000);
    CHECK(plans_alive() == 4);
}

TEST_CASE("a plan goes with its handle, and not before", "[datatype]") {
    const Library library({{1, {500, 2}}, {2, {500, 2}}});
    Buffers b;
    calls_before_plan(pack_call(b, 1));
    calls_before_plan(pack_call(b, 2));
    meet_type(handle(1), 0);  // committed again
    CHECK(run(pack_call(b, 1)));
    forget_plan(handle(1));
    CHECK_FALSE(run(pack_call(b, 1)));
    forget_plan(handle(1));
    CHECK(run(pack_call(b, 2)));
    types[handle(2)] = {500, 3};  // another type of that handle, which was never given back
    meet_type(handle(2), 0);
    CHECK(plans_alive() == 0);
    CHECK_FALSE(run(pack_call(b, 2)));
}

TEST_CASE("a tally outlives a second commit", "[datatype]") {
    const Library library({{1, {500, 2}}});
    Buffers b;
    int calls = 0;
    while (!run(pack_call(b, 1)) && ++calls < 10000) meet_type(handle(1), 0);
    CHECK(calls < 10000);
}

TEST_CASE("an odd call decides nothing for the others", "[datatype]") {
    // Two copies of the type lie on each other: after an unpacking, the last one is in memory.
    const Library library({{1, {500, 2, 8}}});
    Buffers b;
    const auto overlapping = unpack_call(b, 1, 2);
    CHECK(calls_before_plan(overlapping, 3000) == 3000);
    CHECK(plans_alive() == 0);
    CHECK(calls_before_plan(pack_call(b, 1)) < 100000);
    CHECK_FALSE(run(overlapping));
    CHECK(calls_before_plan(unpack_call(b, 1)) < 100);
    PackCall refused = pack_call(b, 1);
    refused.packed_bytes = 1999;
    MPI_Count end = 0;
    uint64_t timed_since_ns = 0;
    CHECK_FALSE(pack_by_plan(refused, &end, &timed_since_ns));
    refused = pack_call(b, 1);
    refused.position = -1;
    CHECK_FALSE(pack_by_plan(refused, &end, &timed_since_ns));
    refused = pack_call(b, 1);
    refused.count = MPI_Count{1} << 62;
    CHECK_FALSE(pack_by_plan(refused, &end, &timed_since_ns));
    CHECK(run(pack_call(b, 1)));
}

TEST_CASE("a buffer that is too small decides nothing", "[datatype]") {
    const Library library({{1, {500, 2}}});
    Buffers b;
    for (int i = 0; i < 3000; ++i) {
        PackCall call = pack_call(b, 1);
        call.packed_bytes = 1000;
        MPI_Count end = 0;
        uint64_t timed_since_ns = 0;
        REQUIRE_FALSE(pack_by_plan(call, &end, &timed_since_ns));
        note_packed_by_library(call, 1000, timed_since_ns);  // MPICH 4.0.2: what fits, and no error
    }
    CHECK(plans_alive() == 0);
    CHECK(calls_before_plan(pack_call(b, 1)) < 100000);
}

TEST_CASE("a plan that gives other bytes is not used", "[datatype]") {
    const Library library({{1, {500, 2}}});
    Buffers b;
    for (int i = 0; i < 2000; ++i) {
        PackCall call = pack_call(b, 1);
        MPI_Count end = 0;
        uint64_t timed_since_ns = 0;
        REQUIRE_FALSE(pack_by_plan(call, &end, &timed_since_ns));
        pack_plainly(call);
        b.packed[499] ^= 1;
        note_packed_by_library(call, 2000, timed_since_ns);
    }
    CHECK(plans_alive() == 0);
}

TEST_CASE("library and plan share the calls until one has won", "[datatype]") {
    const Library library({{1, {1000, 2}}});
    Buffers b;
    const PackCall packing = pack_call(b, 1), unpacking = unpack_call(b, 1),
                   longer = pack_call(b, 1, 5);
    const auto plans_of = [](const PackCall& call, Library_is how, unsigned calls) {
        unsigned by_plan = 0;
        for (unsigned i = 0; i < calls; ++i) by_plan += run(call, how) ? 1 : 0;
        return by_plan;
    };
    calls_before_plan(packing);
    CHECK(plans_of(packing, Library_is::slow, 100) == 100);
    const unsigned turns = plans_of(unpacking, Library_is::fast, most_turns);
    CHECK(turns > 0);
    CHECK(turns <= Trial::rounds);
    CHECK(plans_of(unpacking, Library_is::fast, 100) == 0);
    CHECK(plans_of(longer, Library_is::slow, most_turns) < most_turns);
    CHECK(plans_of(longer, Library_is::slow, 100) == 100);
    CHECK(plans_of(packing, Library_is::slow, 100) == 100);
}

TEST_CASE("lengths of streams fall into classes", "[datatype]") {
    CHECK(length_class(1) == 0);
    CHECK(length_class(4096) == 0);
    CHECK(length_class(4097) == 1);
    CHECK(length_class(1 << 20) == 4);
    CHECK(length_class(INT64_MAX) == length_classes - 1);
}

TEST_CASE("where memory runs out the library packs", "[datatype]") {
    const Library library({{1, {500, 2}}});
    Buffers b;
    int failures = 0;
    for (int allowed = 0; plans_alive() == 0 && allowed < 1000; ++allowed) {
        allocations_left = allowed;
        const int calls = calls_before_plan(pack_call(b, 1), 2000);
        allocations_left = -1;
        failures += calls == 2000 ? 1 : 0;
        if (calls == 2000) forget_plan(handle(1));
    }
    CHECK(failures > 5);
    CHECK(plans_alive() == 1);
    CHECK(run(pack_call(b, 1)));
    allocations_left = 0;
    CHECK(run(pack_call(b, 1)));  // a plan needs none
    meet_type(handle(1), 0);      // nor does a short description
    CHECK(run(pack_call(b, 1)));
    allocations_left = -1;
}

TEST_CASE("what is put off waits twice as long", "[datatype]") {
    const Library library({});
    const MPI_Datatype type = handle(7);
    uint64_t expected = 1600;
    for (int i = 0; i < 5; ++i, expected *= 2) {
        uint64_t spent = 0;
        int calls = 0;
        while (spent == 0 && calls < 100000) {
            spent = tally_library_time(type, 160, 1600);
            ++calls;
        }
        CHECK(spent == expected);
        CHECK(static_cast<uint64_t>(calls) * 160 == expected);
        CHECK(tally_library_time(type, 160, 1600) == 0);  // somebody decides
        put_off(type);
    }
    drop_place(type);
    CHECK(tally_library_time(type, 1600, 1600) == 1600);
    settle(type, nullptr);
    CHECK(tally_library_time(type, 1600, 0) == 0);
}

// ---- threads -----------------------------------------------------------------------------------

namespace {

// Of each handle another one: 1000 ints at its distance.
int distance_of(MPI_Datatype type) { return 2 + static_cast<int>(static_cast<unsigned>(type) % 4); }

PlanReference some_plan(MPI_Datatype type) {
    Counter why{};
    const int64_t stride = distance_of(type) * int_bytes;
    return std::make_shared<KeptPlan>(
        make_steps(repeated(dense(4), 1000, stride), 1000 * stride, kernels::PackLimits{}, &why),
        TypeDigest{});
}

void decide_on(MPI_Datatype type) {
    if (tally_library_time(type, 16, 0) != 0) settle(type, some_plan(type));
}

}  // namespace

TEST_CASE("memory is bounded while somebody is always within a plan", "[datatype]") {
    const Library library({});
    decide_on(handle(1));
    const PlanInUse first(handle(1));
    REQUIRE(first.get() != nullptr);
    drop_place(handle(1));
    CHECK(plans_alive() == 1);  // in use
    for (int i = 2; i < 2000; ++i) {
        decide_on(handle(i));
        const PlanInUse used(handle(i));
        REQUIRE(used.get() != nullptr);
        drop_place(handle(i));
        CHECK(plans_alive() <= 3);
    }
    CHECK(first.get()->plan.bytes() == 4000);
}

TEST_CASE("more users at once than readers have slots find no plan", "[datatype]") {
    const Library library({});
    decide_on(handle(1));
    std::vector<std::unique_ptr<PlanInUse>> users;
    for (int i = 0; i < 65; ++i) users.push_back(std::make_unique<PlanInUse>(handle(1)));
    CHECK(users[63]->get() != nullptr);
    CHECK(users[64]->get() == nullptr);
    users.clear();
    CHECK(PlanInUse(handle(1)).get() != nullptr);
}

TEST_CASE("plans come and go under threads that use them", "[datatype]") {
    const Library library({});
    std::atomic<bool> stop{false};
    std::atomic<size_t> found{0}, wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&] {
            std::vector<int> memory(5000), packed(1000);
            std::iota(memory.begin(), memory.end(), 0);
            for (int i = 0; !stop.load(); ++i) {
                const MPI_Datatype type = handle(i % 4);
                const PlanInUse used(type);
                if (used.get() == nullptr) continue;
                used.get()->plan.copy_all(kernels::Direction::pack, packed.data(), memory.data(),
                                          1);
                found.fetch_add(1);
                for (int k = 0; k < 1000; ++k)
                    if (packed[static_cast<size_t>(k)] != k * distance_of(type)) wrong.fetch_add(1);
            }
        });
    size_t most = 0;
    for (int i = 0; i < 20000 || (found.load() < 100 && i < 20000000); ++i) {
        decide_on(handle(i % 4));
        if (i % 3 == 0) drop_place(handle((i / 3) % 4));
        most = std::max(most, plans_alive());
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
    CHECK(found > 0);
    CHECK(most <= 4 + 64);
}

TEST_CASE("a short message goes as bytes where its calls cost more than the plan", "[datatype]") {
    constexpr uint64_t untried = Trial::untried;
    const auto pays = [](uint64_t library, uint64_t plan, int64_t bytes) {
        return pays_as_bytes(Trial::Times{library, plan}, bytes);
    };
    CHECK(pays(100, 50, 4000));
    CHECK(pays(100, 125, 4000));  // ps a byte: 100 ns longer
    CHECK_FALSE(pays(100, 126, 4000));
    CHECK(pays(100, 1000, 100));
    CHECK_FALSE(pays(100, untried, 100));
    CHECK(pays(untried, 100, 100));
    CHECK_FALSE(pays(untried, untried, 100));
}

TEST_CASE("a message is packed where that pays for a copy more, and for what packs it",
          "[datatype]") {
    struct Row {
        PackedAs as;
        uint64_t library_ps, plan_ps;
        int64_t bytes;
        bool pays;
    };
    constexpr uint64_t untried = Trial::untried;
    constexpr auto call = PackedAs::call, request = PackedAs::request;
    for (const Row& row :
         {Row{call, 100, 60, 32 << 10, true}, Row{call, 100, 61, 32 << 10, false},
          Row{call, 200, 99, 4 << 20, true}, Row{call, 200, 101, 4 << 20, false},
          Row{call, 1000, 10, 64, false}, Row{call, 2000, 10, 64, true},
          Row{call, 200, 87, 1000, false}, Row{call, 200, 86, 1000, true},
          Row{call, untried, 500, 64, true}, Row{call, 50, untried, 4 << 20, true},
          Row{request, 1000, 10, 64, false}, Row{request, 20'000, 10, 64, true},
          Row{request, 1013, 400, 1000, false}, Row{request, 1014, 400, 1000, true},
          Row{request, 100, 40, 32 << 10, true}, Row{request, 100, 50, 32 << 10, false},
          Row{request, untried, 500, 64, true}, Row{request, 50, untried, 64, true}}) {
        CAPTURE(row.as, row.library_ps, row.plan_ps, row.bytes);
        CHECK(pays_packed(row.as, {row.library_ps, row.plan_ps, untried}, row.bytes) == row.pays);
    }
}

TEST_CASE("in pieces the library takes a time for each block", "[datatype]") {
    constexpr uint64_t untried = Trial::untried;
    CHECK(in_pieces_of({100, 50, untried}, 8) == Trial::Times{1000, 50, untried});
    CHECK(in_pieces_of({100, 50, untried}, 100) == Trial::Times{100, 50, untried});
    CHECK(in_pieces_of({untried, 50, untried}, 8) == Trial::Times{untried, 50, untried});
}
