// SPDX-License-Identifier: BSD-3-Clause
// Handlers of what changes, frees or makes a communicator in a way of its own.
#include "datatype/api.hpp"
#include "intercept/mpi_handlers.hpp"
#include "offload/api.hpp"
#include "pipeline/api.hpp"
#include "pipeline/node/api.hpp"

namespace vecmpi::intercept {

namespace {

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

}  // namespace

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

int serve_Comm_get_parent(MPI_Comm* parent) noexcept {
    const int rc = real.Comm_get_parent(parent);
    if (rc == MPI_SUCCESS && *parent != MPI_COMM_NULL) offload::note_dynamic_processes();
    return rc;
}

// ---- MPICH's streams and threadcomms: calls of other threads, at any thread level ---------------

namespace {

// What is enqueued on a GPU's stream comes from a thread of its runtime, at any thread level.
void note_stream_comm(MPI_Comm comm) noexcept {
    offload::mark_stream_comm(comm);
    datatype::expect_one_caller(false);
}

}  // namespace

int serve_X_Stream_comm_create(MPI_Comm comm, int stream, MPI_Comm* newcomm) noexcept {
    const offload::DirectCall scope(Call::X_Stream_comm_create);
    const int rc = real.X_Stream_comm_create(comm, stream, newcomm);
    if (rc == MPI_SUCCESS) note_stream_comm(*newcomm);
    return rc;
}

int serve_X_Stream_comm_create_multiplex(MPI_Comm comm, int count, int array_of_streams[],
                                         MPI_Comm* newcomm) noexcept {
    const offload::DirectCall scope(Call::X_Stream_comm_create_multiplex);
    const int rc = real.X_Stream_comm_create_multiplex(comm, count, array_of_streams, newcomm);
    if (rc == MPI_SUCCESS) note_stream_comm(*newcomm);
    return rc;
}

// Its ranks are threads.
int serve_X_Threadcomm_init(MPI_Comm comm, int num_threads, MPI_Comm* newthreadcomm) noexcept {
    const offload::DirectCall scope(Call::X_Threadcomm_init);
    datatype::expect_one_caller(false);
    return real.X_Threadcomm_init(comm, num_threads, newthreadcomm);
}

}  // namespace vecmpi::intercept
