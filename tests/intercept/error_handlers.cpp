// SPDX-License-Identifier: BSD-3-Clause
// Error handler functions wait until the entry has nothing left to do, on a fake library that calls
// them inside its calls.
#include "error_handlers.hpp"

#include <catch2/catch.hpp>
#include <csetjmp>
#include <stdexcept>
#include <string>

#include "fake_engine.hpp"
#include "served.hpp"

using namespace vecmpi;
using test::enter;
using test::fake;

namespace {

constexpr int failure = 17;
constexpr MPI_Comm comm = 0x44000000;

std::string story;
std::jmp_buf back;

void tells(MPI_Comm* object, int* code, ...) {
    story += "handler(" + std::to_string(*object - comm) + "," + std::to_string(*code) + ") ";
    story += fake.open_direct_calls == 0 ? "alone " : "inside ";
}
void changes(MPI_Comm*, int* code, ...) { *code = 18; }
void jumps(MPI_Comm*, int*, ...) { std::longjmp(back, 1); }
void throws(MPI_Comm*, int*, ...) { throw std::runtime_error("from the handler"); }
void of_file(MPI_File* file, int* code, ...) {
    story += *file == reinterpret_cast<MPI_File>(0x123456789abc) ? "file " : "another ";
    story += std::to_string(*code);
}

// The library: its call fails and calls what it was given.
MPI_Comm_errhandler_function* set_handler;
int errors_per_call = 1;
int failing_comm_dup(MPI_Comm on, MPI_Comm*) {
    for (int i = 0; i < errors_per_call; ++i) {
        MPI_Comm object = on + i;
        int code = failure;
        set_handler(&object, &code, 0);
    }
    story += "returns ";
    return failure;
}
int failing_comm_size(MPI_Comm on, int*) { return failing_comm_dup(on, nullptr); }

void begin(MPI_Comm_errhandler_function* function) {
    test::reset();
    real.Comm_dup = failing_comm_dup;
    real.Comm_size = failing_comm_size;
    set_handler = intercept::deferred(function);
    errors_per_call = 1;
    intercept::errors_waiting = 0;
    story.clear();
}

}  // namespace

TEST_CASE("error handlers: called when nothing is held", "[errors]") {
    begin(tells);
    MPI_Comm copy;
    CHECK(enter<calls::Comm_dup>(comm, &copy) == failure);
    CHECK(story == "returns handler(0,17) alone ");
    CHECK(intercept::errors_waiting == 0);
    story.clear();
    int size;
    CHECK(enter<calls::Comm_size>(comm, &size) == failure);  // class pass
    CHECK(story == "returns handler(0,17) alone ");
}

TEST_CASE("error handlers: the library's own calls leave them to the outer call", "[errors]") {
    begin(tells);
    MPI_Comm copy;
    fake.reentrant = fake.called_by_library = true;
    CHECK(enter<calls::Comm_dup>(comm, &copy) == failure);
    CHECK(story == "returns ");
    fake.reentrant = false;
    CHECK(intercept::finish(MPI_SUCCESS) == MPI_SUCCESS);
    CHECK(story == "returns handler(0,17) alone ");
}

TEST_CASE("error handlers: a callback's calls end with its own", "[errors]") {
    begin(throws);
    MPI_Comm copy;
    fake.reentrant = true;
    CHECK_THROWS_AS(enter<calls::Comm_dup>(comm, &copy), std::runtime_error);
    CHECK(intercept::errors_waiting == 0);
}

TEST_CASE("error handlers: what a callback lets pass leaves nothing behind", "[errors]") {
    begin(throws);
    real.Comm_dup = [](MPI_Comm, MPI_Comm*) -> int { throw std::runtime_error("callback"); };
    MPI_Comm copy;
    CHECK_THROWS_AS(enter<calls::Comm_dup>(comm, &copy), std::runtime_error);
    CHECK(fake.open_direct_calls == 0);
}

TEST_CASE("error handlers: MPI_SUCCESS stays what it is", "[errors]") {
    begin(changes);
    MPI_Comm object = comm;
    int code = MPI_SUCCESS;
    set_handler(&object, &code, 0);  // as MPI_Comm_call_errhandler(comm, MPI_SUCCESS) does
    CHECK(intercept::finish(MPI_SUCCESS) == MPI_SUCCESS);
}

TEST_CASE("error handlers: at once where no entry follows", "[errors]") {
    begin(tells);
    MPI_Comm copy;
    SECTION("engine does not run") { fake.runs = false; }
    SECTION("offload thread") { fake.on_offload_thread = true; }
    CHECK(enter<calls::Comm_dup>(comm, &copy) == failure);
    CHECK(story == "handler(0,17) inside returns ");
}

TEST_CASE("error handlers: several in order, too many at once", "[errors]") {
    begin(tells);
    MPI_Comm copy;
    errors_per_call = 9;
    enter<calls::Comm_dup>(comm, &copy);
    CHECK(story.rfind("handler(8,17) inside returns handler(0,17) alone handler(1,17)", 0) == 0);
    CHECK(story.find("handler(7,17) alone ") == story.size() - 20);
}

TEST_CASE("error handlers: the call returns what the function makes of the code", "[errors]") {
    begin(changes);
    MPI_Comm copy;
    CHECK(enter<calls::Comm_dup>(comm, &copy) == 18);
}

TEST_CASE("error handlers: longjmp and exceptions leave nothing behind", "[errors]") {
    MPI_Comm copy;
    begin(jumps);
    if (setjmp(back) == 0) {
        enter<calls::Comm_dup>(comm, &copy);
        FAIL("it did not jump");
    }
    CHECK((fake.open_direct_calls == 0 && intercept::errors_waiting == 0));
    begin(throws);
    CHECK_THROWS_WITH(enter<calls::Comm_dup>(comm, &copy), "from the handler");
    CHECK((fake.open_direct_calls == 0 && intercept::errors_waiting == 0));
}

TEST_CASE("error handlers: one trampoline a function", "[errors]") {
    begin(tells);
    CHECK(intercept::deferred(tells) == set_handler);
    CHECK(intercept::deferred(jumps) != set_handler);
    CHECK(intercept::deferred(static_cast<MPI_Comm_errhandler_function*>(nullptr)) == nullptr);
}

TEST_CASE("error handlers: of files", "[errors]") {
    begin(tells);
    MPI_File file = reinterpret_cast<MPI_File>(0x123456789abc);
    int code = failure;
    intercept::deferred(of_file)(&file, &code, 0);
    CHECK(story.empty());
    CHECK(intercept::finish(failure) == failure);
    CHECK(story == "file 17");
}

TEST_CASE("error handlers: functions of the C++ bindings by their own caller", "[errors]") {
    begin(tells);
    void (*caller)(int, int*, int*, void (*)()) = [](int kind, int* object, int*,
                                                     void (*function)()) {
        story += std::to_string(kind) + "," + std::to_string(*object);
        story += function == reinterpret_cast<void (*)()>(tells) ? " tells" : " another";
    };
    const library::CxxCaller as_library = intercept::wait_for_entry(caller);
    int window = 5, code = failure;
    as_library(2, &window, &code, reinterpret_cast<void (*)()>(set_handler));
    CHECK(story.empty());
    intercept::finish(failure);
    CHECK(story == "2,5 tells");
}

// Last: the pool stays used up.
TEST_CASE("error handlers: more functions than trampolines", "[errors]") {
    begin(tells);
    for (uintptr_t i = 1; i < intercept::most_deferred + 2; ++i)
        intercept::deferred(reinterpret_cast<MPI_Comm_errhandler_function*>(0x10000 + i));
    auto* unknown = reinterpret_cast<MPI_Comm_errhandler_function*>(0x20000);
    CHECK(intercept::deferred(unknown) == unknown);
    CHECK(intercept::deferred(tells) == set_handler);
}
