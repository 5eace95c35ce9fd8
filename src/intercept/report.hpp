// SPDX-License-Identifier: BSD-3-Clause
// The report at MPI_Finalize: gathers what the ranks counted and prints it from one; MPI_Pcontrol.
// Counting is in base.
#pragma once

namespace vecmpi::intercept {

// In MPI_Init: where VECMPI_REPORT is set (it is the same on all ranks) MPI_Finalize will print the
// report, after the program's own callbacks there, which may still communicate with ranks that are
// not in it yet.
void expect_report() noexcept;

// MPI_Pcontrol(level) of the program, where there is a report: 0 stops counting on this rank, 1
// goes on, 2 goes on from zero.
void obey_pcontrol(int level) noexcept;

}  // namespace vecmpi::intercept
