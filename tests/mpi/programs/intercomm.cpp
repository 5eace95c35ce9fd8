// SPDX-License-Identifier: BSD-3-Clause
// Messages and collectives on an inter-communicator of the even and the odd ranks. Needs two ranks.
#include <vector>

#include "collective.hpp"
#include "completion.hpp"

using namespace battery;

namespace {

struct Sides {
    MPI_Comm local;
    MPI_Comm comm;  // the inter-communicator
    int rank;
    int local_size;
    int remote_size;
    bool even;
    int remote_world(int i) const { return 2 * i + (even ? 1 : 0); }
};

Sides make_sides() {
    Sides sides;
    sides.even = world.rank % 2 == 0;
    MPI_Comm_split(MPI_COMM_WORLD, world.rank % 2, world.rank, &sides.local);
    MPI_Intercomm_create(sides.local, 0, MPI_COMM_WORLD, sides.even ? 1 : 0, 5, &sides.comm);
    MPI_Comm_rank(sides.comm, &sides.rank);
    MPI_Comm_size(sides.comm, &sides.local_size);
    MPI_Comm_remote_size(sides.comm, &sides.remote_size);
    return sides;
}

// Everybody sends to every remote rank.
void exchange(const Sides& sides, Random& own) {
    std::vector<int> in(static_cast<size_t>(sides.remote_size), -1);
    std::vector<MPI_Request> requests;
    for (int i = 0; i < sides.remote_size; ++i)
        MPI_Irecv(&in[static_cast<size_t>(i)], 1, MPI_INT, i, 3, sides.comm,
                  &requests.emplace_back());
    for (int i = 0; i < sides.remote_size; ++i) MPI_Send(&world.rank, 1, MPI_INT, i, 3, sides.comm);
    const std::vector<MPI_Status> statuses = complete(own, requests);
    for (int i = 0; i < sides.remote_size; ++i) {
        const auto at = static_cast<size_t>(i);
        check_equal(in[at], sides.remote_world(i), "message from the other side");
        topic("messages").add_status(statuses[at], MPI_INT);
    }
}

int64_t remote_sum(const Sides& sides) {
    int64_t sum = 0;
    for (int i = 0; i < sides.remote_size; ++i) sum += sides.remote_world(i) + 1;
    return sum;
}

// Each call of this side gets what the other side gives.
class Round {
  public:
    Round(const Sides& sides, Form form, int elements)
        : s_(sides),
          form_(form),
          n_(elements),
          length_(static_cast<size_t>(elements)),
          in_(length_, world.rank + 1),
          sum_(length_, -1),
          all_(length_ * static_cast<size_t>(s_.remote_size), -1),
          out_(length_ * static_cast<size_t>(s_.remote_size), world.rank + 1),
          exchanged_(all_),
          word_(length_, s_.even && s_.rank == 0 ? 77 : -1),
          total_(length_, -1) {}

    void issue() {
        const MPI_Datatype type = MPI_INT64_T;
        MPI_Request* next = requests_;
        call<MPI_Allreduce, MPI_Iallreduce, MPI_Allreduce_init>(
            form_, next++, in_.data(), sum_.data(), n_, type, MPI_SUM, s_.comm);
        call<MPI_Allgather, MPI_Iallgather, MPI_Allgather_init>(form_, next++, in_.data(), n_, type,
                                                                all_.data(), n_, type, s_.comm);
        call<MPI_Alltoall, MPI_Ialltoall, MPI_Alltoall_init>(form_, next++, out_.data(), n_, type,
                                                             exchanged_.data(), n_, type, s_.comm);
        // From even rank 0 to all odd ones, and back as a sum.
        const int root = s_.even ? (s_.rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0;
        call<MPI_Bcast, MPI_Ibcast, MPI_Bcast_init>(form_, next++, word_.data(), n_, type, root,
                                                    s_.comm);
        call<MPI_Reduce, MPI_Ireduce, MPI_Reduce_init>(form_, next++, in_.data(), total_.data(), n_,
                                                       type, MPI_SUM, root, s_.comm);
        call<MPI_Barrier, MPI_Ibarrier, MPI_Barrier_init>(form_, next++, s_.comm);
    }

    void finish(Random& own) {
        std::vector<MPI_Request> requests(requests_, requests_ + 6);
        if (form_ == Form::nonblocking) complete(own, requests);
        const int64_t sum = remote_sum(s_);
        for (const int64_t value : sum_) check_equal(value, sum, "sum of the other side");
        for (size_t i = 0; i < all_.size(); ++i) {
            const int64_t remote = s_.remote_world(static_cast<int>(i / length_)) + 1;
            check_equal(all_[i], remote, "gathered from the other side");
            check_equal(exchanged_[i], remote, "exchanged with the other side");
        }
        for (const int64_t value : word_)
            if (!s_.even || s_.rank == 0) check_equal(value, 77, "word of the even root");
        for (const int64_t value : total_)
            check_equal(value, s_.even && s_.rank == 0 ? sum : -1, "sum at the even root");
        topic("sums").add_bytes(sum_.data(), length_ * sizeof(int64_t));
        topic("gathered").add_bytes(all_.data(), all_.size() * sizeof(int64_t));
    }

  private:
    const Sides& s_;
    Form form_;
    int n_;
    size_t length_;
    std::vector<int64_t> in_, sum_, all_, out_, exchanged_, word_, total_;
    MPI_Request requests_[6] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL,
                                MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

void run_merged(const Sides& sides) {
    MPI_Comm merged;
    int64_t sum = 0;
    const int64_t mine = world.rank;
    MPI_Intercomm_merge(sides.comm, !sides.even, &merged);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, merged);
    check_equal(sum, world.size * (world.size - 1) / 2, "sum on the merged communicator");
    MPI_Comm_free(&merged);
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    Random own = own_random(9);
    Sides sides = make_sides();
    exchange(sides, own);
    for (const int elements : {1, 40, 5000}) {
        for (const Form form : {Form::blocking, Form::nonblocking}) {
            Round round(sides, form, elements);
            round.issue();
            round.finish(own);
        }
        exchange(sides, own);
    }
    run_merged(sides);
    MPI_Comm_disconnect(&sides.comm);
    MPI_Comm_free(&sides.local);
    return end();
}
