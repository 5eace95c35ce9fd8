// SPDX-License-Identifier: BSD-3-Clause
// What one-sided transfers of a window hold until when, and who serves them.
#include "datatype/transfers.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "vector_types.hpp"

using namespace vecmpi;
using namespace vecmpi::datatype;
using namespace vector_types;

namespace {

// Ranks of a window to which nothing is a trial.
void hold(WindowTransfers& window, int target, std::list<HeldTransfer>& transfer) {
    window.choose(target, 0, 16, false, Trial::Memory::warm);
    window.hold(target, transfer, 0, 16, false);
}

uint64_t last_number(WindowTransfers& window) {
    const WindowTransfers::Open open = window.open(all_targets);
    CHECK_FALSE(open.is_timed);
    return open.last;
}

void complete(WindowTransfers& window, int target, uint64_t last) {
    window.complete(target, last, 0, EpochEnd::own, Completes::fully);
}

// A get of every second int; the library has written {1, 2, 3, 4}.
struct Get {
    explicit Get(PlanReference plan) : memory(7, 0) {
        HeldTransfer& held = list.emplace_back();
        REQUIRE(held.packed.take(16));
        std::iota(reinterpret_cast<int*>(held.packed.place()),
                  reinterpret_cast<int*>(held.packed.place()) + 4, 1);
        held.plan = std::move(plan);
        held.origin = memory.data();
        held.count = 1;
    }
    bool has_come() const { return memory == std::vector<int>{1, 0, 2, 0, 3, 0, 4}; }
    std::vector<int> memory;
    std::list<HeldTransfer> list;
};

// Epochs of one transfer of 1000 bytes each, until there is a verdict.
Packer winner(uint64_t ns_by_library, uint64_t ns_by_plan, EpochEnd end) {
    constexpr uint64_t kind = 7;
    TransferTrials trials;
    for (int i = 0; i < 100; ++i) {
        const auto choice = trials.choose(kind, 1000, Trial::Memory::warm);
        if (!choice.is_timed) return choice.by;
        const uint64_t ns = choice.by == Packer::plan ? ns_by_plan : ns_by_library;
        trials.note_transfer(ns / 2, 1000);
        trials.note_completion(ns - ns / 2);
        trials.end_epoch(end);
    }
    FAIL("no verdict");
    return Packer::library;
}

}  // namespace

TEST_CASE("a get is unpacked when a call has completed it, once", "[datatype]") {
    const Library library({{1, {4, 2}}});
    const PlanReference plan = make_plan(handle(1), UINT64_MAX).plan;
    REQUIRE(plan);
    WindowTransfers window(4);
    Get first(plan), second(plan), third(plan);
    CHECK_FALSE(window.open(all_targets).needs_full_flush);
    hold(window, 1, first.list);
    hold(window, 2, second.list);
    const uint64_t last = last_number(window);
    hold(window, 1, third.list);
    CHECK(open_transfers == 3);

    complete(window, 1, last);  // what came after the call had begun is still open
    CHECK(first.has_come());
    CHECK_FALSE(second.has_come());
    CHECK_FALSE(third.has_come());
    complete(window, 3, last_number(window));  // nothing went there
    CHECK(open_transfers == 2);
    CHECK(window.open(all_targets).needs_full_flush);
    CHECK(window.open(2).needs_full_flush);
    CHECK_FALSE(window.open(3).needs_full_flush);

    std::ranges::fill(first.memory, 9);
    complete(window, all_targets, last_number(window));
    CHECK(first.memory == std::vector<int>(7, 9));
    CHECK(second.has_come());
    CHECK(third.has_come());
    CHECK(open_transfers == 0);
    CHECK_FALSE(window.open(all_targets).needs_full_flush);
}

TEST_CASE("local flushes leave puts open, up to a number", "[datatype]") {
    WindowTransfers window(2);
    for (size_t i = 1; i <= most_left_by_local_flushes; ++i) {
        CHECK_FALSE(window.is_full(1));
        std::list<HeldTransfer> put;
        REQUIRE(put.emplace_back().packed.take(16));
        hold(window, 1, put);
        CHECK_FALSE(window.open(1).needs_full_flush);
        window.complete(1, last_number(window), 0, EpochEnd::own, Completes::at_origin);
        CHECK(open_transfers == i);
    }
    CHECK(window.is_full(1));
    CHECK_FALSE(window.is_full(0));
    complete(window, 1, last_number(window));
    CHECK(open_transfers == 0);
    CHECK_FALSE(window.is_full(1));
}

TEST_CASE("a window that goes gives back what is left", "[datatype]") {
    const Library library({{1, {4, 2}}});
    {
        WindowTransfers window(2);
        Get get(make_plan(handle(1), UINT64_MAX).plan);
        hold(window, 0, get.list);
        CHECK(open_transfers == 1);
    }
    CHECK(open_transfers == 0);
}

TEST_CASE("who serves the transfers of a window", "[datatype]") {
    CHECK(winner(1000, 700, EpochEnd::own) == Packer::plan);
    CHECK(winner(1000, 800, EpochEnd::own) == Packer::library);
    CHECK(winner(1000, 1000, EpochEnd::own) == Packer::library);
    CHECK(winner(1000, 5000, EpochEnd::own) == Packer::library);
    CHECK(winner(1000, 700, EpochEnd::with_others) == Packer::library);
    CHECK(winner(1000, 400, EpochEnd::with_others) == Packer::plan);
}

TEST_CASE("epochs that are never alike leave their transfers to the library", "[datatype]") {
    TransferTrials trials;
    unsigned epochs = 0;
    for (; epochs < 100; ++epochs) {
        const auto choice = trials.choose(1, 1000, Trial::Memory::warm);
        if (!choice.is_timed) break;
        trials.note_transfer(choice.by == Packer::plan ? 1 : 1000, 1000);
        if (epochs % 2 == 0) trials.choose(2, 1000, Trial::Memory::warm);
        trials.end_epoch(EpochEnd::own);
    }
    CHECK(epochs < 40);
    CHECK(trials.choose(1, 1000, Trial::Memory::warm).by == Packer::library);
}

TEST_CASE("an epoch that could not be served as chosen is not counted", "[datatype]") {
    TransferTrials trials;
    for (int i = 0; i < 100; ++i) {
        const auto choice = trials.choose(1, 1000, Trial::Memory::warm);
        if (!choice.is_timed) break;
        trials.note_transfer(choice.by == Packer::plan ? 1 : 1000, 1000);
        if (choice.by == Packer::plan) trials.spoil_epoch();
        trials.end_epoch(EpochEnd::own);
    }
    CHECK(trials.choose(1, 1000, Trial::Memory::warm).by == Packer::library);
}
