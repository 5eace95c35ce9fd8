// SPDX-License-Identifier: BSD-3-Clause
// Handlers of blocking messages whose twin is more than one operation, and of generalized requests.
#include "intercept/mpi_handlers.hpp"
#include "offload/api.hpp"
#include "offload/api/call_operations.hpp"
#include "typed_messages.hpp"

namespace vecmpi::intercept {

namespace {

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

// Function: Sendrecv, or its large-count form. Receive and Send: what its sides are posted as.
template <class Function, class Receive, class Send, class... A>
int exchange_or_call(A... a) noexcept {
    if (!has_need(Need::messages | Need::counting)) [[likely]]  // it came for its types alone
        return (real.*Function::real_function)(a...);
    const auto p = offload::Parameters<Function>::of(a...);
    if (offload::twin_serves(p.comm)) {
        const offload::Parameters<Receive> received{p.recvbuf, p.recvcount, p.recvtype,
                                                    p.source,  p.recvtag,   p.comm};
        const offload::Parameters<Send> sent{p.sendbuf, p.sendcount, p.sendtype,
                                             p.dest,    p.sendtag,   p.comm};
        const auto receive = offload::operation_of<Receive>(Receive::call, received);
        const auto send = offload::operation_of<Send>(Send::call, sent);
        if (may_exchange(receive, send)) return exchange(receive, send, p.status);
    }
    const offload::DirectCall scope(Function::call, offload::Reentry::program);
    return (real.*Function::real_function)(a...);
}

// Both sides may go as bytes.
template <class Exchange, class Count>
int with_typed_sides(Exchange exchange_all, const void* sendbuf, Count sendcount,
                     MPI_Datatype sendtype, int dest, int sendtag, void* recvbuf, Count recvcount,
                     MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm,
                     MPI_Status* status) noexcept {
    return send_typed(sendbuf, sendcount, sendtype, dest, comm,
                      [=](const void* from, Count sent, MPI_Datatype sent_type) noexcept {
                          return receive_typed(
                              recvbuf, recvcount, recvtype, source, comm, status,
                              [=](void* to, Count received, MPI_Datatype received_type,
                                  MPI_Status* filled) noexcept {
                                  return exchange_all(from, sent, sent_type, dest, sendtag, to,
                                                      received, received_type, source, recvtag,
                                                      comm, filled);
                              });
                      });
}

// ---- Sendrecv_replace: what it sends is packed before anything comes ----------------------------

// The library packs what it sends, predefined types too, and sends that as MPI_PACKED. So does an
// exchange of a packed copy. Not as Isendrecv_replace: MPICH 4.0 leaves the status of that request
// empty.
template <class Function, class Receive, class Exchange, class Count>
int replace(Exchange exchange_all, void* buf, Count count, MPI_Datatype type, int dest, int sendtag,
            int source, int recvtag, MPI_Comm comm, MPI_Status* status) noexcept {
    const auto operation = [&](int peer, int tag) noexcept {
        return offload::operation_of<Receive>(
            Receive::call, offload::Parameters<Receive>{buf, count, type, peer, tag, comm});
    };
    const bool is_ours = !library::is_builtin_type(type) && dest >= 0 && sendtag >= 0 &&
                         source != MPI_PROC_NULL && offload::engine_runs() &&
                         offload::library_takes_committed(operation(dest, sendtag)) &&
                         offload::library_takes_committed(operation(source, recvtag));
    if (is_ours)
        if (const datatype::PackedCopy sent(buf, count, type, comm, most_of<Count>); sent)
            return receive_typed(
                buf, count, type, source, comm, status,
                [&](void* to, Count received, MPI_Datatype of, MPI_Status* filled) noexcept {
                    return exchange_all(sent.place(), static_cast<Count>(sent.bytes()), MPI_PACKED,
                                        dest, sendtag, to, received, of, source, recvtag, comm,
                                        filled);
                });
    const offload::DirectCall scope(Function::call, offload::Reentry::program);
    return (real.*Function::real_function)(buf, count, type, dest, sendtag, source, recvtag, comm,
                                           status);
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

}  // namespace

int serve_Sendrecv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                   void* recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag,
                   MPI_Comm comm, MPI_Status* status) noexcept {
    return with_typed_sides(
        [](auto... a) noexcept {
            return exchange_or_call<calls::Sendrecv, calls::Irecv, calls::Isend>(a...);
        },
        sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag,
        comm, status);
}

int serve_Sendrecv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest,
                     int sendtag, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                     int source, int recvtag, MPI_Comm comm, MPI_Status* status) noexcept {
    return with_typed_sides(
        [](auto... a) noexcept {
            return exchange_or_call<calls::Sendrecv_c, calls::Irecv_c, calls::Isend_c>(a...);
        },
        sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag,
        comm, status);
}

int serve_Sendrecv_replace(void* buf, int count, MPI_Datatype datatype, int dest, int sendtag,
                           int source, int recvtag, MPI_Comm comm, MPI_Status* status) noexcept {
    return replace<calls::Sendrecv_replace, calls::Irecv>(
        [](auto... a) noexcept {
            return exchange_or_call<calls::Sendrecv, calls::Irecv, calls::Isend>(a...);
        },
        buf, count, datatype, dest, sendtag, source, recvtag, comm, status);
}

int serve_Sendrecv_replace_c(void* buf, MPI_Count count, MPI_Datatype datatype, int dest,
                             int sendtag, int source, int recvtag, MPI_Comm comm,
                             MPI_Status* status) noexcept {
    return replace<calls::Sendrecv_replace_c, calls::Irecv_c>(
        [](auto... a) noexcept {
            return exchange_or_call<calls::Sendrecv_c, calls::Irecv_c, calls::Isend_c>(a...);
        },
        buf, count, datatype, dest, sendtag, source, recvtag, comm, status);
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
    const int rc = offload::look_once(
        flag, [=]() noexcept { return real.Iprobe(source, tag, comm, flag, status); });
    if (rc == MPI_SUCCESS && !*flag) offload::rest_after_failing_look();
    return rc;
}

int serve_Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
                  MPI_Status* status) noexcept {
    offload::DirectCall scope(Call::Improbe, offload::Reentry::program);
    const int rc = offload::look_once(
        flag, [=]() noexcept { return real.Improbe(source, tag, comm, flag, message, status); });
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

// ---- numbers of requests in Fortran (MPI 5.0, 20.4.3)
// --------------------------------------------

int convert_Request_toint(MPI_Request request) noexcept {
    return offload::is_virtual(request) ? library::fortran_number_of(request)
                                        : real.Request_toint(request);
}

MPI_Request convert_Request_fromint(int request) noexcept {
    return library::is_unused_fortran_request(request) ? library::request_of_fortran(request)
                                                       : real.Request_fromint(request);
}

// ---- generalized requests (MPI 4.0, 13.2) -------------------------------------------------------
// Those of MPI_File_iread and its sisters among them: ROMIO makes them by these calls, too, but not
// in every library.

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

}  // namespace vecmpi::intercept
