// SPDX-License-Identifier: BSD-3-Clause
// The floating-point environment moves from one thread to another.
#include <cfenv>
#include <cmath>
#include <thread>

#include <catch2/catch.hpp>
#include "base/api.hpp"

using namespace vecmpi;
using namespace vecmpi::base;

TEST_CASE("floating-point environment of another thread", "[base][floats]") {
    const int mode = GENERATE(FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO);
    const int before = std::fegetround();
    std::fesetround(mode);
    volatile double one = 1, three = 3;
    volatile long double wide_one = 1, wide_three = 3;
    const double expected = one / three;
    const long double wide_expected = wide_one / wide_three;
    const FloatEnvironment environment = float_environment();
    std::fesetround(before);
    int found_mode = -1;
    double found = 0;
    long double wide_found = 0;
    std::thread([&] {
        set_float_environment(environment);
        found_mode = std::fegetround();
        found = one / three;
        wide_found = wide_one / wide_three;
    }).join();
    CHECK(found_mode == mode);
    CHECK(found == expected);
    CHECK(wide_found == wide_expected);
    CHECK(std::fegetround() == before);
}

TEST_CASE("raised flags do not count as another environment", "[base][floats]") {
    std::feclearexcept(FE_ALL_EXCEPT);
    const FloatEnvironment clean = float_environment();
    volatile double zero = 0, one = 1;
    volatile double infinite = one / zero;
    CHECK(std::isinf(infinite));
    CHECK(float_environment() == clean);
    set_float_environment(clean);
    CHECK(std::fetestexcept(FE_DIVBYZERO) != 0);
    std::feclearexcept(FE_ALL_EXCEPT);
}
