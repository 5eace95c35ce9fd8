// SPDX-License-Identifier: BSD-3-Clause
// The report of VECMPI_REPORT.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datatype_rows.hpp"

namespace vecmpi::base {

// All that the report counted: 64-bit numbers, times in ns, as many on all ranks, so that these can
// be summed.
std::vector<uint64_t> counter_snapshot();

struct ReportFacts {
    int ranks = 1;
    int nodes = 1;
    int ranks_with_thread = 0;
    int crowded_ranks = 0;    // on nodes with more threads that want to run than CPUs
    bool waits_rest = false;  // ranks that wait on such a node give their CPU away
    bool network_is_known = true, has_profile = false;
    std::string mpi_library;              // first line of MPI_Get_library_version
    std::vector<const char*> call_names;  // index = call
    std::vector<std::string> notes;       // one line each, such as why the thread is on or off
    std::string file;                     // that holds the JSON report; empty: none was written
};
// Over all ranks; of counter_snapshot(), and of read_datatype_rows() in any order.
struct ReportNumbers {
    std::vector<uint64_t> totals;   // sums
    std::vector<uint64_t> largest;  // each number on the rank where it is largest
    std::vector<DatatypeUse> datatypes = {};
};
// Pure. The summary has at most some 60 lines, however many ranks and rows there are.
std::string format_summary(const ReportFacts& facts, const ReportNumbers& numbers);
std::string format_json(const ReportFacts& facts, const ReportNumbers& numbers);

}  // namespace vecmpi::base
