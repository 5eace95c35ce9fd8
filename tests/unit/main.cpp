// SPDX-License-Identifier: BSD-3-Clause
// The main function of the unit tests. Holds no tests.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
