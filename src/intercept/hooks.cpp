// SPDX-License-Identifier: BSD-3-Clause
// Hand-written handlers: calls that change what vecmpi knows (life, communicators, error handlers)
// and blocking calls whose twin is more than one operation. Generated handlers do the rest.
#include <atomic>
#include <optional>

#include "base/api/needs.hpp"
#include "datatype/api.hpp"
#include "error_handlers.hpp"
#include "intercept/api.hpp"
#include "intercept/mpi_handlers.hpp"
#include "offload/api.hpp"
#include "offload/api/mpi_operations.hpp"
#include "pipeline/api.hpp"
#include "pipeline/node/api.hpp"
#include "report.hpp"

namespace vecmpi::intercept {

namespace {

// ---- Init and Finalize (MPI 4.0, 11.2 and 11.6.2) ----------------------------------------------

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
    if (session_first) offload::note_earlier_requests();
    if (poll_functions_came.load()) offload::note_poll_functions();
    expect_report();
    bind_entries(true);
    if (report_is_wanted()) begin_run();
    return MPI_SUCCESS;
}

// ---- Sendrecv: both sides posted, then completed ------------------------------------------------

// Where one side is refused the other must not have taken a message: both are looked at first.
// MPICH 4.0's Irecv from MPI_PROC_NULL leaves an empty status, so that case is the library's.
bool may_exchange(const offload::Operation& receive, const offload::Operation& send) noexcept {
    return receive.facts.peer != MPI_PROC_NULL && offload::library_surely_takes(receive) &&
           offload::library_surely_takes(send);
}

int exchange(const offload::Operation& receive, const offload::Operation& send,
             MPI_Status* status) noexcept {
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int rc = offload::post(receive, &requests[0]);
    if (rc != MPI_SUCCESS) return rc;
    const int send_rc = offload::post(send, &requests[1]);
    if (send_rc != MPI_SUCCESS) {
        offload::cancel(&requests[0]);
        offload::wait_one(&requests[0], MPI_STATUS_IGNORE);
        return send_rc;
    }
    rc = offload::wait_one(&requests[0], status);
    const int wait_rc = offload::wait_one(&requests[1], MPI_STATUS_IGNORE);
    return rc != MPI_SUCCESS ? rc : wait_rc;
}

offload::CallFacts message_facts(const void* buffer, MPI_Comm comm, MPI_Count count,
                                 MPI_Datatype type, int peer, int tag) noexcept {
    offload::CallFacts facts;
    facts.sendbuf = buffer;
    facts.comm = comm;
    facts.count = count;
    facts.type = type;
    facts.peer = peer;
    facts.tag = tag;
    return facts;
}

struct Twin {
    Call call;
    offload::IssueFunction issue;
};

template <class Receive, class Send, class ByLibrary>
int exchange_or(const Twin& receive_twin, const Receive& receive, const Twin& send_twin,
                const Send& send, MPI_Status* status, ByLibrary by_library) noexcept {
    if (!offload::twin_serves(send.comm)) return by_library();
    const offload::Operation posted_receive =
        offload::make_operation(receive_twin.call, receive_twin.issue, receive,
                                message_facts(receive.buf, receive.comm, receive.count,
                                              receive.datatype, receive.source, receive.tag));
    const offload::Operation posted_send = offload::make_operation(
        send_twin.call, send_twin.issue, send,
        message_facts(send.buf, send.comm, send.count, send.datatype, send.dest, send.tag));
    if (!may_exchange(posted_receive, posted_send)) return by_library();
    return exchange(posted_receive, posted_send, status);
}

// ---- Probe: looks until there is a message ------------------------------------------------------

struct ProbeLook {
    int source, tag;
    MPI_Comm comm;
    MPI_Message* message;  // null for MPI_Probe
    MPI_Status* status;
    int rc;
};

bool look_for_message(void* context) noexcept {
    auto& look = *static_cast<ProbeLook*>(context);
    int found = 0;
    look.rc = look.message ? real.Improbe(look.source, look.tag, look.comm, &found, look.message,
                                          look.status)
                           : real.Iprobe(look.source, look.tag, look.comm, &found, look.status);
    return found != 0 || look.rc != MPI_SUCCESS;
}

int probe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) noexcept {
    ProbeLook look{source, tag, comm, message, status, MPI_SUCCESS};
    offload::wait_until(look_for_message, &look);
    return look.rc;
}

// What the program changes of a communicator is forgotten before and after: another thread may ask
// in between. A delete function of the program may throw.
template <class LibraryCall>
int forgetting_traits(LibraryCall library_call) {
    offload::forget_comm_traits();
    const int rc = library_call();
    offload::forget_comm_traits();
    return rc;
}

template <class LibraryCall>
int changing_communicator(Call call, LibraryCall library_call) {
    offload::DirectCall scope(call);
    return forgetting_traits(library_call);
}

// Ours beside it goes first: another thread may get the handle as soon as it is free. It comes to
// an end when what a callback asked for is forgotten: who gets the handle looks again.
template <class LibraryFree>
int freeing(Call call, MPI_Comm* comm, LibraryFree library_free) {
    if (comm == nullptr) return changing_communicator(call, [&] { return library_free(comm); });
    offload::DirectCall scope(call);
    const MPI_Comm freed = *comm;
    pipeline::PrivateCommDeparture beside(freed);
    pipeline::node::NodeCommDeparture on_node(freed);
    const int rc = forgetting_traits([&] { return library_free(comm); });
    if (rc != MPI_SUCCESS) {
        beside.stay();
        on_node.stay();
    }
    return rc;
}

// make(function): the library's own, with what we give it in place of the program's function. Only
// while the engine runs: else no entry of ours is bound.
template <class Function, class Make>
int making_error_handler(Function* function, Make make) noexcept {
    if (!offload::engine_runs()) return make(function);
    library::answer_cxx_callers(wait_for_entry);
    set_need(Need::error_handlers, true);
    return make(deferred(function));
}

template <class LibraryCall>
int with_other_processes(Call call, LibraryCall library_call) noexcept {
    offload::note_dynamic_processes();
    offload::DirectCall scope(call);
    return library_call();
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

int serve_Sendrecv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                   void* recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag,
                   MPI_Comm comm, MPI_Status* status) noexcept {
    const offload::IrecvArguments receive{recvbuf, recvcount, recvtype, source, recvtag, comm};
    const offload::IsendArguments send{sendbuf, sendcount, sendtype, dest, sendtag, comm};
    return exchange_or(
        {Call::Irecv, offload::issue_Irecv}, receive, {Call::Isend, offload::issue_Isend}, send,
        status, [=]() noexcept {
            const offload::DirectCall scope(Call::Sendrecv, offload::Reentry::program);
            return real.Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount,
                                 recvtype, source, recvtag, comm, status);
        });
}

int serve_Sendrecv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest,
                     int sendtag, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                     int source, int recvtag, MPI_Comm comm, MPI_Status* status) noexcept {
    const offload::Irecv_cArguments receive{recvbuf, recvcount, recvtype, source, recvtag, comm};
    const offload::Isend_cArguments send{sendbuf, sendcount, sendtype, dest, sendtag, comm};
    return exchange_or(
        {Call::Irecv_c, offload::issue_Irecv_c}, receive, {Call::Isend_c, offload::issue_Isend_c},
        send, status, [=]() noexcept {
            const offload::DirectCall scope(Call::Sendrecv_c, offload::Reentry::program);
            return real.Sendrecv_c(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount,
                                   recvtype, source, recvtag, comm, status);
        });
}

int serve_Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) noexcept {
    if (!offload::twin_serves(comm)) {
        offload::DirectCall scope(Call::Probe, offload::Reentry::program);
        return real.Probe(source, tag, comm, status);
    }
    return probe(source, tag, comm, nullptr, status);
}

int serve_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) noexcept {
    offload::DirectCall scope(Call::Iprobe, offload::Reentry::program);
    const int rc = real.Iprobe(source, tag, comm, flag, status);
    if (rc == MPI_SUCCESS && !*flag) offload::rest_after_failing_look();
    return rc;
}

int serve_Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
                  MPI_Status* status) noexcept {
    offload::DirectCall scope(Call::Improbe, offload::Reentry::program);
    const int rc = real.Improbe(source, tag, comm, flag, message, status);
    if (rc == MPI_SUCCESS && !*flag) offload::rest_after_failing_look();
    return rc;
}

int serve_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message,
                 MPI_Status* status) noexcept {
    if (!offload::twin_serves(comm) || !message) {
        offload::DirectCall scope(Call::Mprobe, offload::Reentry::program);
        return real.Mprobe(source, tag, comm, message, status);
    }
    return probe(source, tag, comm, message, status);
}

// ---- generalized requests -----------------------------------------------------------------------
// Those of MPI_File_iread and its sisters among them: ROMIO makes them by these calls too.

int serve_Grequest_start(MPI_Grequest_query_function* query_fn, MPI_Grequest_free_function* free_fn,
                         MPI_Grequest_cancel_function* cancel_fn, void* extra_state,
                         MPI_Request* request) noexcept {
    offload::note_generalized_requests();
    return real.Grequest_start(query_fn, free_fn, cancel_fn, extra_state, request);
}

int serve_X_Grequest_start(MPI_Grequest_query_function* query_fn,
                           MPI_Grequest_free_function* free_fn,
                           MPI_Grequest_cancel_function* cancel_fn,
                           MPIX_Grequest_poll_function* poll_fn,
                           MPIX_Grequest_wait_function* wait_fn, void* extra_state,
                           MPI_Request* request) noexcept {
    offload::note_generalized_requests();
    return real.X_Grequest_start(query_fn, free_fn, cancel_fn, poll_fn, wait_fn, extra_state,
                                 request);
}

int serve_X_Grequest_class_allocate(MPIX_Grequest_class greq_class, void* extra_state,
                                    MPI_Request* request) noexcept {
    offload::note_generalized_requests();
    return real.X_Grequest_class_allocate(greq_class, extra_state, request);
}

// ---- error handlers (MPI 4.0, 9.3) --------------------------------------------------------------

int serve_Comm_create_errhandler(MPI_Comm_errhandler_function* comm_errhandler_fn,
                                 MPI_Errhandler* errhandler) noexcept {
    return making_error_handler(comm_errhandler_fn, [=](auto* function) noexcept {
        return real.Comm_create_errhandler(function, errhandler);
    });
}

int serve_Errhandler_create(MPI_Comm_errhandler_function* comm_errhandler_fn,
                            MPI_Errhandler* errhandler) noexcept {
    return making_error_handler(comm_errhandler_fn, [=](auto* function) noexcept {
        return real.Errhandler_create(function, errhandler);
    });
}

int serve_Win_create_errhandler(MPI_Win_errhandler_function* win_errhandler_fn,
                                MPI_Errhandler* errhandler) noexcept {
    return making_error_handler(win_errhandler_fn, [=](auto* function) noexcept {
        return real.Win_create_errhandler(function, errhandler);
    });
}

int serve_File_create_errhandler(MPI_File_errhandler_function* file_errhandler_fn,
                                 MPI_Errhandler* errhandler) noexcept {
    return making_error_handler(file_errhandler_fn, [=](auto* function) noexcept {
        return real.File_create_errhandler(function, errhandler);
    });
}

int serve_Session_create_errhandler(MPI_Session_errhandler_function* session_errhandler_fn,
                                    MPI_Errhandler* errhandler) noexcept {
    return making_error_handler(session_errhandler_fn, [=](auto* function) noexcept {
        return real.Session_create_errhandler(function, errhandler);
    });
}

// ---- communicators ------------------------------------------------------------------------------

int serve_Comm_free(MPI_Comm* comm) { return freeing(Call::Comm_free, comm, real.Comm_free); }

int serve_Comm_disconnect(MPI_Comm* comm) {
    return freeing(Call::Comm_disconnect, comm, real.Comm_disconnect);
}

int serve_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler) noexcept {
    const int rc = changing_communicator(Call::Comm_set_errhandler, [&]() noexcept {
        return real.Comm_set_errhandler(comm, errhandler);
    });
    if (rc == MPI_SUCCESS) offload::note_handler(comm);
    return rc;
}

int serve_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler) noexcept {
    const int rc = changing_communicator(
        Call::Errhandler_set, [&]() noexcept { return real.Errhandler_set(comm, errhandler); });
    if (rc == MPI_SUCCESS) offload::note_handler(comm);
    return rc;
}

int serve_Comm_spawn(const char* command, char* argv[], int maxprocs, MPI_Info info, int root,
                     MPI_Comm comm, MPI_Comm* intercomm, int array_of_errcodes[]) noexcept {
    return with_other_processes(Call::Comm_spawn, [&]() noexcept {
        return real.Comm_spawn(command, argv, maxprocs, info, root, comm, intercomm,
                               array_of_errcodes);
    });
}

int serve_Comm_spawn_multiple(int count, char* array_of_commands[], char** array_of_argv[],
                              const int array_of_maxprocs[], const MPI_Info array_of_info[],
                              int root, MPI_Comm comm, MPI_Comm* intercomm,
                              int array_of_errcodes[]) noexcept {
    return with_other_processes(Call::Comm_spawn_multiple, [&]() noexcept {
        return real.Comm_spawn_multiple(count, array_of_commands, array_of_argv, array_of_maxprocs,
                                        array_of_info, root, comm, intercomm, array_of_errcodes);
    });
}

int serve_Comm_accept(const char* port_name, MPI_Info info, int root, MPI_Comm comm,
                      MPI_Comm* newcomm) noexcept {
    return with_other_processes(Call::Comm_accept, [&]() noexcept {
        return real.Comm_accept(port_name, info, root, comm, newcomm);
    });
}

int serve_Comm_connect(const char* port_name, MPI_Info info, int root, MPI_Comm comm,
                       MPI_Comm* newcomm) noexcept {
    return with_other_processes(Call::Comm_connect, [&]() noexcept {
        return real.Comm_connect(port_name, info, root, comm, newcomm);
    });
}

int serve_Comm_join(int fd, MPI_Comm* intercomm) noexcept {
    return with_other_processes(Call::Comm_join,
                                [&]() noexcept { return real.Comm_join(fd, intercomm); });
}

int serve_Comm_get_parent(MPI_Comm* parent) noexcept {
    const int rc = real.Comm_get_parent(parent);
    if (rc == MPI_SUCCESS && *parent != MPI_COMM_NULL) offload::note_dynamic_processes();
    return rc;
}

int serve_Comm_create_from_group(MPI_Group group, const char* stringtag, MPI_Info info,
                                 MPI_Errhandler errhandler, MPI_Comm* newcomm) noexcept {
    return with_other_processes(Call::Comm_create_from_group, [&]() noexcept {
        return real.Comm_create_from_group(group, stringtag, info, errhandler, newcomm);
    });
}

int serve_Intercomm_create_from_groups(MPI_Group local_group, int local_leader,
                                       MPI_Group remote_group, int remote_leader,
                                       const char* stringtag, MPI_Info info,
                                       MPI_Errhandler errhandler, MPI_Comm* newintercomm) noexcept {
    return with_other_processes(Call::Intercomm_create_from_groups, [&]() noexcept {
        return real.Intercomm_create_from_groups(local_group, local_leader, remote_group,
                                                 remote_leader, stringtag, info, errhandler,
                                                 newintercomm);
    });
}

// ---- MPICH's functions of the program that its progress calls
// ------------------------------------

int serve_X_Async_start(void* poll_fn, void* extra_state, int stream) noexcept {
    poll_functions_came.store(true);
    offload::note_poll_functions();
    return real.X_Async_start(poll_fn, extra_state, stream);
}

// ---- MPICH's streams: communicators whose calls the program itself puts in order ----------------

int serve_X_Stream_comm_create(MPI_Comm comm, int stream, MPI_Comm* newcomm) noexcept {
    const offload::DirectCall scope(Call::X_Stream_comm_create);
    const int rc = real.X_Stream_comm_create(comm, stream, newcomm);
    if (rc == MPI_SUCCESS) offload::mark_stream_comm(*newcomm);
    return rc;
}

int serve_X_Stream_comm_create_multiplex(MPI_Comm comm, int count, int array_of_streams[],
                                         MPI_Comm* newcomm) noexcept {
    const offload::DirectCall scope(Call::X_Stream_comm_create_multiplex);
    const int rc = real.X_Stream_comm_create_multiplex(comm, count, array_of_streams, newcomm);
    if (rc == MPI_SUCCESS) offload::mark_stream_comm(*newcomm);
    return rc;
}

// ---- Reduce_local (MPI 4.0, 6.9.7) --------------------------------------------------------------

int serve_Reduce_local(const void* inbuf, void* inoutbuf, int count, MPI_Datatype datatype,
                       MPI_Op op) {
    if (offload::reduce_by_kernel(inbuf, inoutbuf, count, datatype, op)) {
        count_call(static_cast<size_t>(Call::Reduce_local), Path::own_kernel, 0);
        return MPI_SUCCESS;
    }
    const int rc = real.Reduce_local(inbuf, inoutbuf, count, datatype, op);
    if (rc == MPI_SUCCESS && count > 0) offload::note_reduced_by_library(op, datatype);
    return rc;
}

int serve_Reduce_local_c(const void* inbuf, void* inoutbuf, MPI_Count count, MPI_Datatype datatype,
                         MPI_Op op) {
    if (offload::reduce_by_kernel(inbuf, inoutbuf, count, datatype, op)) {
        count_call(static_cast<size_t>(Call::Reduce_local_c), Path::own_kernel, 0);
        return MPI_SUCCESS;
    }
    const int rc = real.Reduce_local_c(inbuf, inoutbuf, count, datatype, op);
    if (rc == MPI_SUCCESS && count > 0) offload::note_reduced_by_library(op, datatype);
    return rc;
}

}  // namespace vecmpi::intercept
