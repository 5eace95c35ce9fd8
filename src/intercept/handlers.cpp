// SPDX-License-Identifier: BSD-3-Clause
// The handler of each function that has one.
#include "entries.hpp"
#include "entry.hpp"
#include "intercept/mpi_handlers.hpp"
#include "pipeline/node/api.hpp"

namespace vecmpi::intercept {

#define HANDLER(name, ...)                                                            \
    {reinterpret_cast<EntryFunction>(entry_function<__VA_ARGS__>), __VA_ARGS__::when, \
     needs_of<__VA_ARGS__>},
#define CONVERTER(name, function)                             \
    {reinterpret_cast<EntryFunction>(function), When::needed, \
     Need::messages | Need::virtual_requests},
#define NO_HANDLER(name) {nullptr, When::never, 0},

const Handler handlers[library::number_of_calls] = {
#include "intercept/mpi_handlers.def"
};

}  // namespace vecmpi::intercept
