// SPDX-License-Identifier: BSD-3-Clause
// src/library against small libraries that import one function in each way.
#include <dlfcn.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "library/api.hpp"

// What tests/unit/refers_weakly.c finds in this program.
extern "C" __attribute__((visibility("default"))) int vecmpi_test_one() { return 1; }
extern "C" __attribute__((visibility("default"))) int vecmpi_test_other() { return 2; }

namespace {

int replaced() { return 42; }

using Calls = int (*)();

void* load_library(const std::string& name) {
    void* library = dlopen((std::string(VECMPI_TEST_LIBRARIES "/lib") + name + ".so").c_str(),
                           RTLD_LAZY | RTLD_LOCAL);
    INFO(name << ": " << (library ? "loaded" : dlerror()));
    REQUIRE(library != nullptr);
    return library;
}

Calls load(const std::string& name) {
    return reinterpret_cast<Calls>(dlsym(load_library(name), "vecmpi_test_page_size"));
}

bool is_one(const void* bound) noexcept {
    return bound == reinterpret_cast<const void*>(vecmpi_test_one);
}

}  // namespace

TEST_CASE("an import is replaced in one object only", "[library]") {
    for (const std::string name : {"imported_lazily", "imported_now", "imported_without_plt"}) {
        DYNAMIC_SECTION(name) {
            const Calls calls = load(name);
            REQUIRE(calls != nullptr);
            const void* inside = reinterpret_cast<const void*>(calls);
            const void* function = reinterpret_cast<const void*>(replaced);
            // Before the loader has bound it where it binds lazily.
            CHECK(vecmpi::library::replace_import(inside, "getpagesize", function));
            CHECK(calls() == 42);
            CHECK(getpagesize() >= 4096);
            const void* own = reinterpret_cast<const void*>(getpagesize);
            CHECK(vecmpi::library::replace_import(inside, "getpagesize", own));
            CHECK(calls() == getpagesize());
        }
    }
}

TEST_CASE("an object without the import stays as it is", "[library]") {
    const Calls calls = load("imported_now");
    const void* inside = reinterpret_cast<const void*>(calls);
    CHECK_FALSE(vecmpi::library::replace_import(inside, "getppid",
                                                reinterpret_cast<const void*>(replaced)));
    CHECK_FALSE(vecmpi::library::replace_import(nullptr, "getpagesize",
                                                reinterpret_cast<const void*>(replaced)));
    CHECK(calls() == getpagesize());
}

TEST_CASE("weak references to what is missing become null, others stay", "[library]") {
    void* const library = load_library("refers_weakly");
    const auto finds = reinterpret_cast<int (*)(int)>(dlsym(library, "vecmpi_test_finds"));
    REQUIRE(finds != nullptr);
    CHECK(finds(0) == 2);  // in code and in data
    CHECK(finds(1) == 2);
    vecmpi::library::clear_weak_references(is_one);
    CHECK(finds(0) == 0);
    CHECK(finds(1) == 2);
}
