// SPDX-License-Identifier: BSD-3-Clause
// Our variables among those of the MPI tool information interface: indices that keep their meaning,
// texts, and what a handle has counted.
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "intercept/tool_variables.hpp"

using namespace vecmpi;
using namespace vecmpi::intercept;

TEST_CASE("Indices keep their meaning while the library's number grows", "[intercept][tools]") {
    const ToolIndices indices{5, 3};
    for (int library : {5, 6, 40}) {
        std::set<int> shown;
        for (int i = 0; i < library; ++i) {
            const int index = indices.of_library(i);
            CHECK(shown.insert(index).second);
            CHECK_FALSE(indices.is_ours(index));
            CHECK(indices.library_index(index) == i);
        }
        for (int number = 0; number < indices.ours; ++number) {
            const int index = indices.of_ours(number);
            CHECK(shown.insert(index).second);
            CHECK(indices.is_ours(index));
            CHECK(indices.our_number(index) == number);
        }
        CHECK(*shown.begin() == 0);  // and without a gap, as MPI wants
        CHECK(*shown.rbegin() == library + indices.ours - 1);
    }
    // What is no index is none of the library's either.
    CHECK(indices.library_index(-1) == -1);
    CHECK(indices.library_index(5 + 3 + 1) == 6);
}

TEST_CASE("The first number is settled once", "[intercept][tools]") {
    FirstNumber first;
    CHECK(first.settle(7) == 7);
    CHECK(first.settle(9) == 7);
    CHECK(first.settle(6) == 6);  // a library that loses variables
    CHECK(first.settle(7) == 6);

    FirstNumber shared;
    std::vector<int> settled(8);
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([&, i] { settled[static_cast<size_t>(i)] = shared.settle(20); });
    for (std::thread& thread : threads) thread.join();
    CHECK(settled == std::vector<int>(8, 20));
}

TEST_CASE("Texts as the interface gives them", "[intercept][tools]") {
    char buffer[8] = "??????";
    int length = 4;
    give_text("vecmpi", buffer, &length);
    CHECK(std::string(buffer) == "vec");
    CHECK(buffer[4] == '?');
    CHECK(length == 7);
    give_text("vecmpi", buffer, &length);
    CHECK(std::string(buffer) == "vecmpi");
    length = 0;
    buffer[0] = '?';
    give_text("x", buffer, &length);
    CHECK((buffer[0] == '?' && length == 2));
    length = 5;
    give_text("x", nullptr, &length);
    CHECK(length == 2);
    give_text("x", buffer, nullptr);
    CHECK(buffer[0] == '?');
}

TEST_CASE("A handle counts from start to stop", "[intercept][tools]") {
    CounterView view;
    CHECK(view.read(100) == 0);
    view.start(100);
    CHECK(view.read(103) == 3);
    view.start(104);  // runs already
    CHECK(view.read(105) == 5);
    view.stop(106);
    CHECK((view.read(200) == 6 && !view.runs()));
    view.stop(300);
    CHECK(view.read(300) == 6);
    view.start(300);
    CHECK(view.read(301) == 7);
    view.write(0, 302);
    CHECK((view.read(302) == 0 && view.runs()));
    view.write(50, 303);
    CHECK(view.read(305) == 52);
}
