// SPDX-License-Identifier: BSD-3-Clause
// Door of src/library: all that is known of the inside of an MPI library and of UCX. Other folders
// ask here for what they want to know, and name no symbol and no version.
//
// Glossary
//   real function   the MPI library's own PMPI_X, found by bind_real_functions()
//   poll            one call of UCX's progress function by the MPI library
#pragma once

#include "base/api.hpp"
#include "library/api/errors.hpp"
#include "library/api/handles.hpp"
#include "library/api/imports.hpp"
#include "library/api/op_table.hpp"
#include "library/api/polls.hpp"
#include "library/api/real.hpp"
#include "library/api/sleeping.hpp"
#include "library/api/traits.hpp"
#include "library/api/ucx.hpp"
