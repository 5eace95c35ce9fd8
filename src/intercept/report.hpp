// SPDX-License-Identifier: BSD-3-Clause
// The report at MPI_Finalize: gathers what the ranks counted and prints it from one. Counting is in
// base.
#pragma once

namespace vecmpi {

// Collective over MPI_COMM_WORLD where VECMPI_REPORT is set (it is the same on all ranks), else
// nothing.
void print_report() noexcept;

}  // namespace vecmpi
