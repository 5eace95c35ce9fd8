// SPDX-License-Identifier: BSD-3-Clause
// Allreduce with a commutative op of the user: reduce-scatter, then allgather, so that each rank
// reduces n(p-1)/p elements and moves 2n(p-1)/p. MPICH 4.0 knows for such ops only recursive
// doubling: n log2(p) of each (Thakur et al., Optimization of collective communication operations
// in MPICH, IJHPCA 19, 2005, section 4.5).
#include "scattered_allreduce.hpp"

#include "segment_count.hpp"
#include "segmented_collectives.hpp"

namespace vecmpi::pipeline {

namespace {

// Part r of the vector belongs to rank r.
struct Parts {
    Parts(int elements, int ranks) noexcept
        : memory(allocate<int>(2 * static_cast<size_t>(ranks))),
          counts(memory.get()),
          first(memory.get() + ranks) {
        for (int r = 0; memory && r < ranks; ++r) {
            const Segment part =
                segment(elements, static_cast<unsigned>(ranks), static_cast<unsigned>(r));
            counts[r] = static_cast<int>(part.count);
            first[r] = static_cast<int>(part.first);
        }
    }
    Buffer<int> memory;
    int* counts;
    int* first;
};

// In place the library leaves the result at the start. Larger parts come first, so the two do not
// overlap; a message to oneself copies any layout.
int move_to_own_part(void* recvbuf, const Parts& parts, int rank, MPI_Datatype type,
                     MPI_Count extent) noexcept {
    if (rank == 0) return MPI_SUCCESS;
    const int count = parts.counts[rank];
    return real.Sendrecv(recvbuf, count, type, 0, 0, advanced(recvbuf, parts.first[rank] * extent),
                         count, type, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

}  // namespace

bool scatters(const UserOpFacts& facts, const Settings& settings, Counter* why) noexcept {
    const auto decline = [why](Counter reason) noexcept {
        *why = reason;
        return false;
    };
    if (settings.paths_of(Collective::allreduce).at(facts.bytes) != CollectivePath::automatic)
        return decline(Counter::decline_setting);
    if (settings.reproducible) return decline(Counter::decline_reproducible);
    if (facts.ranks < scattered_from_ranks) return decline(Counter::decline_layout);
    if (facts.bytes < scattered_from_bytes || facts.elements < facts.ranks)
        return decline(Counter::decline_small);
    return true;
}

// 1. Reduce part r to rank r. 2. Gather the parts.
int scattered_allreduce(const CollectiveCall& call, const Operands& what) noexcept {
    const Parts parts(static_cast<int>(what.count), call.ranks());
    if (!parts.memory) return out_of_memory(call.comm);
    count_call(static_cast<size_t>(call.form.call), Path::scattered,
               static_cast<uint64_t>(what.count * offload::size_of(what.type)));
    const offload::DirectCall scope(call.form.call, offload::Reentry::program);
    const bool in_place = what.input == MPI_IN_PLACE;
    void* const own =
        in_place ? what.output : advanced(what.output, parts.first[call.rank] * what.extent);
    int rc = real.Reduce_scatter(what.input, own, parts.counts, what.type, what.op, call.comm);
    if (rc == MPI_SUCCESS && in_place)
        rc = move_to_own_part(what.output, parts, call.rank, what.type, what.extent);
    if (rc != MPI_SUCCESS) return rc;
    // MPICH's blocking Allgatherv sends its ring in messages of 32 KiB, each of which waits for the
    // one before: 530 ms instead of 35 for 4 MiB over 3 hosts at 1 Gbit/s.
    MPI_Request gathered = MPI_REQUEST_NULL;
    rc = real.Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, what.output, parts.counts,
                          parts.first, what.type, call.comm, &gathered);
    return rc == MPI_SUCCESS ? offload::wait_one(&gathered, MPI_STATUS_IGNORE) : rc;
}

}  // namespace vecmpi::pipeline
