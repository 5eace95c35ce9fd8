// SPDX-License-Identifier: BSD-3-Clause
// Door of src/intercept: nothing below it may include it; tools and tests read its tables.
#pragma once

namespace vecmpi {

// Points every entry at the real function (served == false) or at its handler where the engine has
// one. Entries of class `hook` marked `always` (Init, Finalize, Session_*) are served in both
// states.
void bind_entries(bool served) noexcept;

// The engine runs and the program makes its first error handler function: calls of class `pass`,
// which may fail too, get an entry.
void expect_error_handlers() noexcept;

}  // namespace vecmpi
