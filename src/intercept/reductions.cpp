// SPDX-License-Identifier: BSD-3-Clause
// Handlers of Reduce_local (MPI 4.0, 6.9.7).
#include "intercept/mpi_handlers.hpp"
#include "offload/api.hpp"

namespace vecmpi::intercept {

int serve_Reduce_local(const void* inbuf, void* inoutbuf, int count, MPI_Datatype datatype,
                       MPI_Op op) {
    if (library::is_user_op(op)) return real.Reduce_local(inbuf, inoutbuf, count, datatype, op);
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
    if (library::is_user_op(op)) return real.Reduce_local_c(inbuf, inoutbuf, count, datatype, op);
    if (offload::reduce_by_kernel(inbuf, inoutbuf, count, datatype, op)) {
        count_call(static_cast<size_t>(Call::Reduce_local_c), Path::own_kernel, 0);
        return MPI_SUCCESS;
    }
    const int rc = real.Reduce_local_c(inbuf, inoutbuf, count, datatype, op);
    if (rc == MPI_SUCCESS && count > 0) offload::note_reduced_by_library(op, datatype);
    return rc;
}

}  // namespace vecmpi::intercept
