// SPDX-License-Identifier: BSD-3-Clause
// src/library: who rests where, on a small library that polls with its lock held.
#include "library/api.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <catch2/catch.hpp>
#include <chrono>

namespace {

pthread_mutex_t lock_of_library = PTHREAD_MUTEX_INITIALIZER;

// What UCX has: nothing came.
unsigned poll_in_vain(void*) { return 0; }

using Poll = void (*)(pthread_mutex_t*);

Poll load_library() {
    void* library = dlopen(VECMPI_TEST_LIBRARIES "/libpolls.so", RTLD_LAZY | RTLD_LOCAL);
    INFO((library ? "loaded" : dlerror()));
    REQUIRE(library != nullptr);
    return reinterpret_cast<Poll>(dlsym(library, "vecmpi_test_poll"));
}

}  // namespace

// In place of elsewhere.cpp: the library is a page or two.
void* vecmpi::library::defined_elsewhere(const char*) noexcept { return nullptr; }
bool vecmpi::library::in_one_object(const void*, const void*) noexcept { return true; }
vecmpi::library::CallersChoice vecmpi::library::definition_for(uintptr_t caller,
                                                               const char*) noexcept {
    Dl_info object;
    dladdr(reinterpret_cast<const void*>(caller), &object);
    return {reinterpret_cast<void*>(poll_in_vain), reinterpret_cast<uintptr_t>(object.dli_fbase),
            caller + 64};
}

TEST_CASE("a library that polled before it was to rest does so at its unlock", "[library]") {
    using namespace std::chrono;
    const Poll poll = load_library();
    REQUIRE(poll != nullptr);
    const auto own_test = vecmpi::real.Test;  // this library is the MPI library
    vecmpi::real.Test = reinterpret_cast<decltype(vecmpi::real.Test)>(poll);
    vecmpi::library::watch_locks_of_library(true);  // finds them
    vecmpi::library::watch_locks_of_library(false);
    poll(&lock_of_library);  // in a session: nothing rests yet
    CHECK_FALSE(vecmpi::library::library_polls_seen());
    vecmpi::library::rest_in_library({.sleep_us = 20000, .max_sleep_us = 20000});
    const auto begin = steady_clock::now();
    poll(&lock_of_library);
    CHECK(vecmpi::library::library_polls_seen());
    CHECK(steady_clock::now() - begin >= milliseconds(20));
    CHECK_FALSE(vecmpi::library::library_shows_polls(true));  // its locks were not watched
    vecmpi::library::rest_in_library({.spins = 1000, .yields = UINT32_MAX});
    vecmpi::library::watch_locks_of_library(true);
    vecmpi::library::forget_global_lock();
    poll(&lock_of_library);
    CHECK(vecmpi::library::library_shows_polls(true));
    vecmpi::library::watch_locks_of_library(false);
    vecmpi::library::forget_global_lock();
    poll(&lock_of_library);
    CHECK_FALSE(vecmpi::library::library_shows_polls(true));
    vecmpi::library::stop_resting_in_library();
    vecmpi::real.Test = own_test;
}
