// SPDX-License-Identifier: BSD-3-Clause
// Door of src/intercept: nothing below it may include it; tools and tests read its tables.
#pragma once

namespace vecmpi::intercept {

// Points every entry at the real function (served == false), or at its handler where one of its
// needs exists (base/api/needs.hpp), now and whenever these change. Entries of class `hook` marked
// `always` (Init, Finalize, Session_*) are served in both states.
void bind_entries(bool served) noexcept;

}  // namespace vecmpi::intercept
