// SPDX-License-Identifier: BSD-3-Clause
// Door of src/base, which knows nothing of MPI calls. Two parts are included by those who need
// them: api/needs.hpp (what brings calls of the program to vecmpi) and api/profile.hpp (what was
// measured on this host).
#pragma once

#include "base/api/bell.hpp"
#include "base/api/cancellation.hpp"
#include "base/api/counters.hpp"
#include "base/api/crowded_cpu.hpp"
#include "base/api/datatype_rows.hpp"
#include "base/api/door.hpp"
#include "base/api/fences.hpp"
#include "base/api/float_environment.hpp"
#include "base/api/libraries.hpp"
#include "base/api/log.hpp"
#include "base/api/memory.hpp"
#include "base/api/placement.hpp"
#include "base/api/report.hpp"
#include "base/api/segment.hpp"
#include "base/api/settings.hpp"
#include "base/api/text.hpp"
#include "base/api/waiting.hpp"

// Its names are used in all folders.
namespace vecmpi {
using namespace base;
}
