// SPDX-License-Identifier: BSD-3-Clause
// Allreduce with a commutative op of the user: reduce-scatter, then allgather, so that each rank
// reduces n(p-1)/p elements and moves 2n(p-1)/p. MPICH 4.0 knows for such ops only recursive
// doubling: n log2(p) of each (Thakur et al., Optimization of collective communication operations
// in MPICH, IJHPCA 19, 2005, section 4.5).
#include "scattered_allreduce.hpp"

#include <climits>

#include "pipeline/call_facts.hpp"
#include "segment_count.hpp"
#include "segmented_collectives.hpp"

namespace vecmpi::pipeline {

namespace {

constexpr int from_ranks = 3;
// Measured, recursive doubling against this, ms: 1 MiB over 3 and 5 hosts at 1 Gbit/s 36 and 29, 71
// and 58; 256 KiB 11 and 8, 24 and 35, for MPICH's Reduce_scatter halves recursively up to 512 KiB.
constexpr uint64_t from_bytes = 1 << 20;

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
    if (facts.ranks < from_ranks) return decline(Counter::decline_layout);
    if (facts.bytes < from_bytes || facts.elements < facts.ranks)
        return decline(Counter::decline_small);
    return true;
}

// 1. Gather the facts and decide. 2. Reduce part r to rank r. 3. Gather the parts.
std::optional<int> scattered_allreduce(const void* sendbuf, void* recvbuf, MPI_Count count,
                                       MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                                       Decline& decline) noexcept {
    if (!is_user_op(op) || count > INT_MAX) return std::nullopt;
    const auto traits = traits_to_cut(comm, datatype, count, decline);
    if (!traits || offload::agreement().twin_collectives) return std::nullopt;
    if (are_refused(sendbuf, count, recvbuf, count, datatype)) return std::nullopt;
    const offload::TypeShape shape = offload::shape_of(datatype);
    const auto bytes = static_cast<uint64_t>(count * shape.bytes);
    Counter why{};
    if (!scatters({bytes, count, traits->size}, settings(), &why)) {
        decline.note(why);
        return std::nullopt;
    }
    if (!is_commutative(op)) return std::nullopt;
    const Parts parts(static_cast<int>(count), traits->size);
    if (!parts.memory) return out_of_memory(comm);
    count_call(static_cast<size_t>(Call::Allreduce), Path::scattered, bytes);
    const offload::DirectCall scope(Call::Allreduce, offload::Reentry::program);
    int rank = 0;
    real.Comm_rank(comm, &rank);
    const bool in_place = sendbuf == MPI_IN_PLACE;
    void* const own = in_place ? recvbuf : advanced(recvbuf, parts.first[rank] * shape.extent);
    int rc = real.Reduce_scatter(sendbuf, own, parts.counts, datatype, op, comm);
    if (rc == MPI_SUCCESS && in_place)
        rc = move_to_own_part(recvbuf, parts, rank, datatype, shape.extent);
    if (rc != MPI_SUCCESS) return rc;
    // MPICH's blocking Allgatherv sends its ring in messages of 32 KiB, each of which waits for the
    // one before: 530 ms instead of 35 for 4 MiB over 3 hosts at 1 Gbit/s.
    MPI_Request gathered = MPI_REQUEST_NULL;
    rc = real.Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, recvbuf, parts.counts, parts.first,
                          datatype, comm, &gathered);
    return rc == MPI_SUCCESS ? offload::wait_one(&gathered, MPI_STATUS_IGNORE) : rc;
}

}  // namespace vecmpi::pipeline
