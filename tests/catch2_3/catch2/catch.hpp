// SPDX-License-Identifier: BSD-3-Clause
// The header of Catch2 2, made of Catch2 3 where that is installed (Debian 13): names that moved.
// Tests speak version 2.
#pragma once
#include <catch2/catch_all.hpp>

using Catch::Approx;

namespace Catch {
using Matchers::StartsWith;
namespace Matchers {
inline auto Contains(const char* text) { return ContainsSubstring(text); }
}  // namespace Matchers
}  // namespace Catch
