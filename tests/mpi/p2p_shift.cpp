// SPDX-License-Identifier: BSD-3-Clause
// Sendrecv, Sendrecv_replace, Isendrecv and Isendrecv_replace matching each other. Needs no other
// message on its tag.
#include "p2p_shift.hpp"

#include <vector>

namespace battery {
namespace {

constexpr int tag = 9001;

struct Shift {
    int elements;
    int base;
    int left;
    int right;
    MPI_Comm comm;
};

int neighbour(int rank, bool open) {
    if (open && (rank < 0 || rank >= world.size)) return MPI_PROC_NULL;
    return ((rank % world.size) + world.size) % world.size;
}

void exchange(const Shift& s, std::vector<int>& out, std::vector<int>& in, MPI_Request* request,
              MPI_Status* status) {
    if (request == nullptr)
        MPI_Sendrecv(out.data(), s.elements, MPI_INT, s.right, tag, in.data(), s.elements, MPI_INT,
                     s.left, tag, s.comm, status);
    else
        MPI_Isendrecv(out.data(), s.elements, MPI_INT, s.right, tag, in.data(), s.elements, MPI_INT,
                      s.left, tag, s.comm, request);
}

void replace(const Shift& s, std::vector<int>& data, MPI_Request* request, MPI_Status* status) {
    if (request == nullptr)
        MPI_Sendrecv_replace(data.data(), s.elements, MPI_INT, s.right, tag, s.left, tag, s.comm,
                             status);
    else
        MPI_Isendrecv_replace(data.data(), s.elements, MPI_INT, s.right, tag, s.left, tag, s.comm,
                              request);
}

void judge(const Shift& s, const std::vector<int>& arrived) {
    if (s.left == MPI_PROC_NULL) return;
    for (const int value : arrived) check_equal(value, s.left + s.base, "shifted element");
    topic("shift").add_bytes(arrived.data(), arrived.size() * sizeof(int));
}

}  // namespace

void shift(Random& common, Random& own, MPI_Comm comm) {
    const int distance = common.below(world.size + 1);
    const bool open = common.chance(40);  // ends have MPI_PROC_NULL
    Shift s;
    s.elements = common.chance(30) ? 40000 : common.below(100);
    s.base = common.below(1000);
    s.right = neighbour(world.rank + distance, open);
    s.left = neighbour(world.rank - distance, open);
    s.comm = comm;

    const bool in_place = own.chance(50);
    // MPICH 4.0.2 crashes in MPI_Isendrecv from and to MPI_PROC_NULL.
    const bool alone = s.left == MPI_PROC_NULL && s.right == MPI_PROC_NULL;
    const bool nonblocking = own.chance(50) && !alone;
    const auto length = static_cast<size_t>(s.elements);
    std::vector<int> out(length, world.rank + s.base);
    std::vector<int> in(length, -1);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    if (in_place)
        replace(s, out, nonblocking ? &request : nullptr, &status);
    else
        exchange(s, out, in, nonblocking ? &request : nullptr, &status);
    if (nonblocking) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        check_equal(status.MPI_SOURCE, s.left, "source of a shifted message");
        topic("shift").add_status(status, MPI_INT);
    }
    judge(s, in_place ? out : in);
}

}  // namespace battery
