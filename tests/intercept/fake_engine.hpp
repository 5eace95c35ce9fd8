// SPDX-License-Identifier: BSD-3-Clause
// Stands in for src/offload behind its door, so that the generated handlers can be run without an
// engine or MPI. Records what the handlers ask for; answers as the test says. Not thread-safe.
#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/api/needs.hpp"
#include "datatype/api.hpp"
#include "offload/api.hpp"
#include "pipeline/api.hpp"
#include "pipeline/api/turn.hpp"
#include "pipeline/node/api.hpp"

namespace vecmpi::test {

struct Recorded {
    Call call{};
    offload::IssueFunction issue = nullptr;
    offload::CallFacts facts;
    alignas(16) char arguments[offload::max_argument_bytes] = {};
    MPI_Status* status = nullptr;

    // What the engine does later: issues from its copy, after the caller's arguments are gone.
    int issue_now(MPI_Request* mpi_request) const { return issue(arguments, mpi_request); }
};

struct FakeEngine {
    // answers
    bool reentrant = false;
    bool called_by_library = false;
    bool twins = true;
    bool caller_issues = false;
    bool collective_twins = true;
    bool runs = true;
    bool on_offload_thread = false;
    bool between_groups = false;
    bool quiet = true;
    int ranks = 3;  // of any communicator
    int result = MPI_SUCCESS;
    std::optional<int> intranode;  // what src/pipeline/node returns
    std::vector<Call> asked_on_node;
    std::optional<int> pipeline;        // what the pipeline returns; nothing: it declines
    MPI_Count bytes_of_message = 0;     // packed, of a derived datatype; 0: it goes by its type
    bool has_slot = true;               // for a message whose bytes are kept
    MPI_Count doubles_of_transfer = 0;  // the same of a one-sided transfer

    // records
    std::optional<Recorded> posted;
    std::optional<Recorded> run;
    std::vector<Call> direct_calls;
    int open_direct_calls = 0;
    int waits_for_issue = 0;                  // of what was posted
    int files_noted = 0;                      // note_file_requests()
    std::optional<Collective> ended_turn_of;  // in a trial
    MPI_Count unpacked = -1;                  // bytes of a message
    bool has_ending = false;                  // what was posted
    int looks_after_freed = 0;
    std::optional<datatype::TypedCall::Way> transfer;
    int transfer_error = -1;
    struct Completed {
        int error, target;
        bool waits_for_others;
    };
    std::optional<Completed> completed;  // one-sided transfers
    int received_by_library = 0, sent_by_library = 0;
    std::string request_function;  // the last function of offload.hpp that took requests
    std::vector<std::pair<MPI_Comm, MPI_Request>> adopted;
    int noted_persistent = 0;
    pipeline::CollectiveForm form{};  // that the pipeline was last asked in
};
extern FakeEngine fake;

// Fresh engine, no real functions: a test sets those that it expects to be called.
inline void reset() {
    fake = FakeEngine{};
    real = library::RealFunctions{};
    set_need(Need::messages, true);
}

}  // namespace vecmpi::test
