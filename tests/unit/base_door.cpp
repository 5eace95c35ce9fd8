// SPDX-License-Identifier: BSD-3-Clause
// Doors: rung by another process, deaf where they cannot be, and never somebody else's descriptor.
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <new>

#include "base/api.hpp"

using namespace vecmpi;
using namespace vecmpi::base;

namespace {

// A door in memory that a forked child sees as well.
struct SharedDoor {
    SharedDoor()
        : door(new (mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                   Door{}) {
        REQUIRE(open_door(door));
    }
    ~SharedDoor() {
        close_door();
        munmap(door, 4096);
    }
    SharedDoor(const SharedDoor&) = delete;
    SharedDoor& operator=(const SharedDoor&) = delete;
    Door* door;
};

bool rings(int bell, int timeout_ms) {
    pollfd one{bell, POLLIN, 0};
    return poll(&one, 1, timeout_ms) == 1 && (one.revents & POLLIN) != 0;
}

template <class Work>
void in_child(Work work) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        work();
        _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(status == 0);
}

}  // namespace

TEST_CASE("another process rings who sleeps, once", "[base][door]") {
    const SharedDoor own;
    REQUIRE(has_door());
    in_child([&] { ring_if_asleep(*own.door); });
    const int bell = lie_down_at_door();
    REQUIRE(bell >= 0);
    CHECK_FALSE(rings(bell, 0));  // nobody was asleep then
    in_child([&] {
        ring_if_asleep(*own.door);
        ring_if_asleep(*own.door);  // it is rung already
    });
    CHECK(rings(bell, 1000));
    CHECK(own.door->asleep == 0);
    get_up_from_door();
    // Old rings wake nobody.
    REQUIRE(lie_down_at_door() == bell);
    CHECK_FALSE(rings(bell, 0));
    CHECK(own.door->asleep == 1);
    get_up_from_door();
    CHECK(own.door->asleep == 0);
    CHECK(own.door->is_deaf == 0);
}

TEST_CASE("of several sleepers the last one to get up leaves the door", "[base][door]") {
    const SharedDoor own;
    REQUIRE(lie_down_at_door() >= 0);
    REQUIRE(lie_down_at_door() >= 0);
    get_up_from_door();
    CHECK(own.door->asleep == 1);
    get_up_from_door();
    CHECK(own.door->asleep == 0);
    get_up_from_door();  // nobody lies there: nothing
    CHECK(own.door->asleep == 0);
}

TEST_CASE("more rings than the bell keeps are still one", "[base][door]") {
    const SharedDoor own;
    in_child([&] {
        for (int i = 0; i < 1000; ++i) test_bell(*own.door);
    });
    CHECK(own.door->is_deaf == 0);
    REQUIRE(lie_down_at_door() >= 0);
    get_up_from_door();
}

TEST_CASE("at a door whose bell cannot be rung nobody sleeps", "[base][door]") {
    const SharedDoor own;
    Door other{};
    other.name = 1;  // nobody's
    test_bell(other);
    CHECK(other.is_deaf == 1);
    own.door->is_deaf = 1;  // a peer said so
    CHECK_FALSE(has_door());
    CHECK(lie_down_at_door() == -1);
}

TEST_CASE("a descriptor that the program has closed and used again is its own", "[base][door]") {
    const SharedDoor own;
    const int bell = lie_down_at_door();
    REQUIRE(bell >= 0);
    get_up_from_door();
    int pipe_ends[2];
    REQUIRE(pipe(pipe_ends) == 0);
    REQUIRE(write(pipe_ends[1], "mine", 4) == 4);
    REQUIRE(dup2(pipe_ends[0], bell) == bell);
    CHECK(lie_down_at_door() == -1);
    CHECK_FALSE(has_door());
    char text[5] = {};
    REQUIRE(read(bell, text, 4) == 4);
    CHECK(std::strcmp(text, "mine") == 0);
    close_door();
    CHECK(write(bell, "", 0) == -1);  // still open, for reading
    CHECK(rings(bell, 0) == false);
    for (const int end : {pipe_ends[0], pipe_ends[1], bell}) close(end);
}

TEST_CASE("there is no door before it is opened, nor after", "[base][door]") {
    CHECK_FALSE(has_door());
    CHECK(lie_down_at_door() == -1);
    get_up_from_door();
    { const SharedDoor own; }
    CHECK_FALSE(has_door());
}
