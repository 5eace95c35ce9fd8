// SPDX-License-Identifier: BSD-3-Clause
// Handlers of Init, Finalize and sessions (MPI 4.0, 11.2 and 11.6.2), and of what may come before.
#include <atomic>
#include <optional>

#include "datatype/api.hpp"
#include "intercept/api.hpp"
#include "intercept/mpi_handlers.hpp"
#include "offload/api.hpp"
#include "pipeline/api.hpp"
#include "pipeline/api/calls_left.hpp"
#include "pipeline/node/api.hpp"
#include "report.hpp"

namespace vecmpi::intercept {

namespace {

// A test of what is not complete makes the library poll: does the poll come through here? (A look
// for a message polls only where other ranks could have sent it.) Again: from the second poll on
// the library's lock is seen taken as well.
offload::LibraryWaits library_waits(int lib_provided) noexcept {
    MPI_Request never = offload::pending_for_ever();
    int flag;
    library::forget_global_lock();
    for (int look = 0; look < 3; ++look) real.Test(&never, &flag, MPI_STATUS_IGNORE);
    offload::end_pending_for_ever();
    library::watch_locks_of_library(false);
    const bool multiple = lib_provided == MPI_THREAD_MULTIPLE;
    const bool rests = library::library_polls_seen();
    const bool shows = library::library_shows_polls(multiple);
    // It would rest with its lock held.
    if (multiple && !shows) library::stop_resting_in_library();
    return {.rest = rests && (shows || !multiple), .serve_jobs = shows};
}

// A session that came first has set the library's thread level for good, and UCX has read its
// environment.
std::atomic<bool> session_came_first{false};

// The library's progress calls functions of the program, maybe from before MPI_Init: a session's.
std::atomic<bool> poll_functions_came{false};

// library_init(level, &provided): the program's own call, or MPI_Init_thread where the offload
// thread needs a higher level than the program asked for. The program is then told its own.
template <class LibraryInit>
int initialise_world(int app_level, int* app_provided, LibraryInit library_init) noexcept {
    int lib_provided = MPI_THREAD_SINGLE;
    int again = 0;
    real.Initialized(&again);
    if (again != 0) return library_init(app_level, app_provided);  // which refuses
    datatype::serve_message_types();
    library::rest_in_library(offload::library_wait_policy());
    library::want_wakeup(offload::blocked_calls_may_sleep());
    library::watch_locks_of_library(true);
    const library::EagerUcx eager(!session_came_first.load() && offload::handshakes_are_slow());
    const int requested = offload::level_to_request(app_level);
    const int rc = library_init(requested, &lib_provided);
    if (rc != MPI_SUCCESS) {
        library::watch_locks_of_library(false);
        return rc;
    }
    const bool session_first = session_came_first.load();
    const bool raised = requested > app_level && !session_first;
    library::keep_questions_quiet();
    library::library_shows_types();
    offload::start_engine(raised ? app_level : lib_provided, lib_provided,
                          library_waits(lib_provided), session_first, app_provided);
    pipeline::note_calls_left();
    datatype::expect_one_caller(lib_provided < MPI_THREAD_MULTIPLE);
    if (session_first) offload::note_earlier_requests();
    if (poll_functions_came.load()) offload::note_poll_functions();
    expect_report();
    bind_entries(true);
    if (report_is_wanted()) begin_run();
    return MPI_SUCCESS;
}

}  // namespace

int serve_Init(int* argc, char*** argv) noexcept {
    if (offload::is_reentrant()) return real.Init(argc, argv);
    const std::optional<int> known_level = library::default_thread_level();
    const int app_level = known_level.value_or(MPI_THREAD_SINGLE);
    int told;
    return initialise_world(app_level, &told, [=](int level, int* provided) noexcept {
        if (known_level && level > app_level) return real.Init_thread(argc, argv, level, provided);
        const int rc = real.Init(argc, argv);
        if (rc == MPI_SUCCESS) real.Query_thread(provided);
        return rc;
    });
}

int serve_Init_thread(int* argc, char*** argv, int required, int* provided) noexcept {
    if (offload::is_reentrant()) return real.Init_thread(argc, argv, required, provided);
    return initialise_world(required, provided, [=](int level, int* lib_provided) noexcept {
        return real.Init_thread(argc, argv, level, lib_provided);
    });
}

// The library runs the program's delete callbacks first, and they may still use requests: the
// engine outlives them.
int serve_Finalize() {
    if (offload::is_reentrant() || !offload::engine_runs()) return real.Finalize();
    offload::quiesce_engine();
    pipeline::keep_what_was_learned();
    const int rc = real.Finalize();
    offload::stop_engine();  // first: what is forgotten after it asks the library for nothing
    pipeline::forget_private_comms();
    pipeline::node::forget_node_comms();
    datatype::forget_plans();
    bind_entries(false);
    library::stop_resting_in_library();
    return rc;
}

// Sessions alone have no MPI_COMM_WORLD whose ranks could agree on anything: until MPI_Init is
// called too, every call goes to the library as it is.
int serve_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) noexcept {
    offload::note_session();
    session_came_first.store(true);
    return real.Session_init(info, errhandler, session);
}

int serve_Query_thread(int* provided) noexcept {
    if (!provided || !offload::engine_runs()) return real.Query_thread(provided);
    *provided = offload::app_thread_level();
    return MPI_SUCCESS;
}

// Functions of the program that MPICH's progress calls.
int serve_X_Async_start(void* poll_fn, void* extra_state, int stream) noexcept {
    poll_functions_came.store(true);
    offload::note_poll_functions();
    return real.X_Async_start(poll_fn, extra_state, stream);
}

}  // namespace vecmpi::intercept
