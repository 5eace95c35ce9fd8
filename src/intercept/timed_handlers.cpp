// SPDX-License-Identifier: BSD-3-Clause
// The handlers for the report: apart, so that the two tables compile side by side.
#include "entries.hpp"
#include "entry.hpp"
#include "intercept/mpi_handlers.hpp"
#include "pipeline/node/api.hpp"

namespace vecmpi::intercept {

#define HANDLER(name, ...) reinterpret_cast<EntryFunction>(timed_function<__VA_ARGS__>),
#define CONVERTER(name, function) nullptr,
#define NO_HANDLER(name) nullptr,

const EntryFunction timed_handlers[library::number_of_calls] = {
#include "intercept/mpi_handlers.def"
};

}  // namespace vecmpi::intercept
