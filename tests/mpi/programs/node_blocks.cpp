// SPDX-License-Identifier: BSD-3-Clause
// Gather, Scatter, Allgather, Alltoall and their v and w forms in long streams on several
// communicators, as ranks of one node may do them through memory. All that is received is known.
//   random  a mix of calls, sizes, layouts, roots and communicators, in place too; ranks lag
//   ahead   small calls, in which ranks that only give may run ahead of ranks that lag
//   empty   nobody has anything to give, or few have
//   refused calls that the library refuses on one rank
//   later   nonblocking calls under way beside blocking ones, completed in any order; types
//           and communicators are freed meanwhile
//   persistent requests that each rank starts in an order of its own
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "collective.hpp"
#include "streams.hpp"

using namespace battery;

namespace {

enum class Kind {
    gather,
    gatherv,
    scatter,
    scatterv,
    allgather,
    allgatherv,
    alltoall,
    alltoallv,
    alltoallw
};
constexpr int kinds = 9;
constexpr const char* names[kinds] = {"Gather",   "Gatherv",   "Scatter",
                                      "Scatterv", "Allgather", "Allgatherv",
                                      "Alltoall", "Alltoallv", "Alltoallw"};

bool is_rooted(Kind kind) { return kind <= Kind::scatterv; }
bool is_even(Kind kind) {
    return kind == Kind::gather || kind == Kind::scatter || kind == Kind::allgather ||
           kind == Kind::alltoall;
}
bool gathers(Kind kind) {
    return kind == Kind::gather || kind == Kind::gatherv || kind == Kind::allgather ||
           kind == Kind::allgatherv;
}

// Equal on all ranks of the communicator.
struct Plan {
    Kind kind;
    int root;
    bool in_place;
    int largest;  // ints of a block
    int empty;    // percent of the blocks
    uint64_t id;

    int count(int from, int to) const {
        if (is_even(kind)) return largest;
        if (gathers(kind)) to = 0;
        if (in_place && kind >= Kind::alltoall && from > to) std::swap(from, to);
        Random random(id + static_cast<uint64_t>(from * 64 + to));
        return random.chance(empty) ? 0 : random.below(largest + 1);
    }
    // MPICH 4.0.2's Allgatherv of 80 KiB goes round a ring in pieces of so many of each rank's own
    // elements.
    bool may_have_gaps() const { return kind != Kind::allgatherv || largest < 2000; }
    int value(int from, int to, int i) const {
        if (gathers(kind)) to = 0;
        return static_cast<int>(mix(id + (static_cast<uint64_t>(from) << 40) +
                                    (static_cast<uint64_t>(to) << 50) + static_cast<uint64_t>(i)));
    }
};

// Blocks of ints of a type of this rank's choice, which may have gaps, as may lie between blocks.
struct Side {
    std::vector<int> counts, displs, byte_displs, data, expected;
    std::vector<MPI_Datatype> types;
    MPI_Datatype type = MPI_INT;
    int stride = 1;

    Side(std::vector<int> ints, const Plan& plan, Random& own) : counts(std::move(ints)) {
        if (own.chance(30) && plan.may_have_gaps()) {
            stride = own.between(1, 3);
            MPI_Type_create_resized(MPI_INT, 0, 4 * stride, &type);
            MPI_Type_commit(&type);
        }
        int end = 0;
        for (const int count : counts) {
            if (!is_even(plan.kind)) end += own.below(4);
            displs.push_back(end);
            byte_displs.push_back(4 * stride * end);
            types.push_back(type);
            end += count;
        }
        data.assign(static_cast<size_t>(end * stride) + 4, -7);
        expected = data;
    }
    ~Side() { free_type(); }
    void free_type() {
        if (type != MPI_INT && type != MPI_DATATYPE_NULL) MPI_Type_free(&type);
    }
    // Behind a nonblocking call. The array was a copy, as MPICH's mpi_f08 bindings pass it.
    void forget_types() {
        std::fill(types.begin(), types.end(), MPI_DATATYPE_NULL);
        free_type();
    }
    Side(const Side&) = delete;
    Side& operator=(const Side&) = delete;

    static void write(std::vector<int>& to, const Side& side, size_t b, const Plan& plan, int from,
                      int reader) {
        for (int i = 0; i < side.counts[b]; ++i)
            to[static_cast<size_t>((side.displs[b] + i) * side.stride)] =
                plan.value(from, reader, i);
    }
    void fill(size_t b, const Plan& plan, int from, int to) {
        write(data, *this, b, plan, from, to);
        write(expected, *this, b, plan, from, to);
    }
    void expect(size_t b, const Plan& plan, int from, int to) {
        write(expected, *this, b, plan, from, to);
    }
    int* block(size_t b) { return data.data() + displs[b] * stride; }
};

std::vector<int> counts_of(const Plan& plan, const Comm& comm, bool given, bool one) {
    std::vector<int> counts;
    for (int r = 0; r < (one ? 1 : comm.size); ++r) {
        const int other = one && is_rooted(plan.kind) ? plan.root : r;
        counts.push_back(given ? plan.count(comm.rank, other) : plan.count(other, comm.rank));
    }
    return counts;
}

class Operation {
  public:
    Operation(const Plan& plan, const Comm& comm, Random& own, Form form = Form::blocking)
        : plan_(plan),
          comm_(comm),
          form_(form),
          is_root_(comm.rank == plan.root),
          out_(counts_of(plan, comm, true, gathers(plan.kind)), plan, own),
          in_(counts_of(plan, comm, false, scatters()), plan, own) {
        in_place_ = plan.in_place && (!is_rooted(plan.kind) || is_root_);
        fill();
    }

    MPI_Request request = MPI_REQUEST_NULL;  // of the other forms

    void run() {
        issue();
        judge();
    }
    void issue() {
        switch (plan_.kind) {
            case Kind::gather:
            case Kind::gatherv:
                gather();
                break;
            case Kind::scatter:
            case Kind::scatterv:
                scatter();
                break;
            case Kind::allgather:
            case Kind::allgatherv:
                allgather();
                break;
            default:
                alltoall();
        }
        if (form_ == Form::nonblocking) {
            out_.forget_types();
            in_.forget_types();
        }
    }
    void judge() {
        const std::string name = names[static_cast<int>(plan_.kind)];
        check(out_.data == out_.expected, ("send buffer of " + name).c_str());
        check(in_.data == in_.expected, ("receive buffer of " + name).c_str());
    }

  private:
    bool scatters() const { return plan_.kind == Kind::scatter || plan_.kind == Kind::scatterv; }

    // In place the rank's own block, or for Alltoall all of them, stand where they are received.
    void fill() {
        const int me = comm_.rank;
        const bool takes = !is_rooted(plan_.kind) || (scatters() ? !(in_place_) : is_root_);
        for (size_t b = 0; b < out_.counts.size(); ++b)
            out_.fill(b, plan_, me, static_cast<int>(b));
        for (size_t b = 0; b < in_.counts.size() && takes; ++b) {
            const int from = scatters() ? plan_.root : static_cast<int>(b);
            if (in_place_ && (plan_.kind >= Kind::alltoall || from == me))
                in_.fill(b, plan_, me, from);
            in_.expect(b, plan_, from, me);
        }
    }

    const void* from() { return in_place_ ? MPI_IN_PLACE : out_.data.data(); }
    const void* from_one() { return in_place_ ? MPI_IN_PLACE : out_.block(0); }

    void gather() {
        void* const to = is_root_ ? in_.data.data() : nullptr;
        if (plan_.kind == Kind::gather)
            call<MPI_Gather, MPI_Igather, MPI_Gather_init>(
                form_, &request, from_one(), plan_.largest, out_.type, to, plan_.largest, in_.type,
                plan_.root, comm_.handle);
        else
            call<MPI_Gatherv, MPI_Igatherv, MPI_Gatherv_init>(
                form_, &request, from_one(), out_.counts[0], out_.type, to, in_.counts.data(),
                in_.displs.data(), in_.type, plan_.root, comm_.handle);
    }
    void scatter() {
        const void* const given = is_root_ ? out_.data.data() : nullptr;
        void* const to = in_place_ ? MPI_IN_PLACE : in_.block(0);
        if (plan_.kind == Kind::scatter)
            call<MPI_Scatter, MPI_Iscatter, MPI_Scatter_init>(form_, &request, given, plan_.largest,
                                                              out_.type, to, plan_.largest,
                                                              in_.type, plan_.root, comm_.handle);
        else
            call<MPI_Scatterv, MPI_Iscatterv, MPI_Scatterv_init>(
                form_, &request, given, out_.counts.data(), out_.displs.data(), out_.type, to,
                in_.counts[0], in_.type, plan_.root, comm_.handle);
    }
    void allgather() {
        if (plan_.kind == Kind::allgather)
            call<MPI_Allgather, MPI_Iallgather, MPI_Allgather_init>(
                form_, &request, from_one(), plan_.largest, out_.type, in_.data.data(),
                plan_.largest, in_.type, comm_.handle);
        else
            call<MPI_Allgatherv, MPI_Iallgatherv, MPI_Allgatherv_init>(
                form_, &request, from_one(), out_.counts[0], out_.type, in_.data.data(),
                in_.counts.data(), in_.displs.data(), in_.type, comm_.handle);
    }
    void alltoall() {
        if (plan_.kind == Kind::alltoall)
            call<MPI_Alltoall, MPI_Ialltoall, MPI_Alltoall_init>(
                form_, &request, from(), plan_.largest, out_.type, in_.data.data(), plan_.largest,
                in_.type, comm_.handle);
        else if (plan_.kind == Kind::alltoallv)
            call<MPI_Alltoallv, MPI_Ialltoallv, MPI_Alltoallv_init>(
                form_, &request, from(), out_.counts.data(), out_.displs.data(), out_.type,
                in_.data.data(), in_.counts.data(), in_.displs.data(), in_.type, comm_.handle);
        else
            call<MPI_Alltoallw, MPI_Ialltoallw, MPI_Alltoallw_init>(
                form_, &request, from(), out_.counts.data(), out_.byte_displs.data(),
                out_.types.data(), in_.data.data(), in_.counts.data(), in_.byte_displs.data(),
                in_.types.data(), comm_.handle);
    }

    const Plan plan_;
    const Comm comm_;
    const Form form_;
    const bool is_root_;
    bool in_place_ = false;
    Side out_, in_;
};

Plan any_plan(const Comm& comm, Random& common, int most_bits) {
    const int bits = common.between(0, common.chance(10) ? most_bits : most_bits / 2);
    Plan plan{};
    plan.kind = static_cast<Kind>(common.below(kinds));
    plan.in_place = common.chance(30);
    plan.largest = common.chance(5) ? 0 : common.between(1, 1 << bits);
    plan.empty = common.chance(20) ? 90 : 20;
    plan.id = common.next();
    plan.root = Random(plan.id).below(comm.size);  // `common` goes on alike on all of them
    // MPICH 4.0.2 has its own rules for v forms of one rank.
    if (comm.size == 1 && !is_even(plan.kind)) plan.kind = Kind::alltoall;
    return plan;
}

void move_blocks(const Comm& comm, Random& common, Random& own, int most_bits) {
    const Plan plan = any_plan(comm, common, most_bits);
    Operation(plan, comm, own).run();
    topic("results").add(plan.id);
}

// What else goes through the same memory.
void something_else(const Comm& comm, Random& common) {
    const int n = common.between(1, 3000), root = Random(common.next()).below(comm.size);
    std::vector<int> in(static_cast<size_t>(n), 1), out(in.size());
    if (common.chance(50))
        MPI_Allreduce(in.data(), out.data(), n, MPI_INT, MPI_SUM, comm.handle);
    else
        MPI_Reduce(in.data(), out.data(), n, MPI_INT, MPI_SUM, root, comm.handle);
    if (comm.rank == root) check_equal(out.back(), comm.size, "sum of ones");
    MPI_Bcast(out.data(), n, MPI_INT, root, comm.handle);
    check_equal(out.front(), comm.size, "the sum of ones, everywhere");
}

void random_stream() {
    Random choice = common_random(1), own = own_random(2);
    std::vector<Comm> comms{make_comm(0), make_comm(1), make_comm(2), make_comm(3)};
    for (int round = 0; round < 150; ++round) {
        const auto at = static_cast<size_t>(choice.below(static_cast<int>(comms.size())));
        Random common = common_random(1000 + static_cast<uint64_t>(round));
        for (int i = choice.below(9); i >= 0; --i)
            if (common.chance(85))
                move_blocks(comms[at], common, own, 16);
            else
                something_else(comms[at], common);
        if (round % 50 == 49) {
            MPI_Comm_free(&comms[at].handle);
            comms[at] = make_comm(choice.below(4));
        }
        lag(own, 3);
    }
    for (Comm& comm : comms) MPI_Comm_free(&comm.handle);
}

// Several under way on several communicators.
void calls_under_way() {
    Random choice = common_random(7), own = own_random(8);
    std::vector<Comm> comms{make_comm(0), make_comm(1), make_comm(2), make_comm(3)};
    for (int round = 0; round < 80; ++round) {
        std::vector<std::unique_ptr<Operation>> under_way;
        std::vector<MPI_Request> requests;
        const auto first = static_cast<size_t>(choice.below(4));
        for (int i = choice.below(12); i >= 0; --i) {
            const Comm& comm =
                comms[choice.chance(60) ? first : static_cast<size_t>(choice.below(4))];
            Random common(choice.next());
            if (choice.chance(20)) {
                move_blocks(comm, common, own, 14);
                continue;
            }
            const Plan plan = any_plan(comm, common, 16);
            under_way.push_back(std::make_unique<Operation>(plan, comm, own, Form::nonblocking));
            under_way.back()->issue();
            requests.push_back(under_way.back()->request);
            topic("results").add(plan.id);
            lag(own, 3);
            if (own.chance(30)) complete_some(requests, own);
        }
        if (choice.chance(30)) {
            MPI_Comm_free(&comms[first].handle);
            comms[first] = make_comm(static_cast<int>(first));
        }
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
        for (const auto& one : under_way) one->judge();
    }
    for (Comm& comm : comms) MPI_Comm_free(&comm.handle);
}

// Each rank starts its requests in an order of its own.
void persistent_calls() {
    Random choice = common_random(9), own = own_random(10);
    Comm comm = make_comm(0);
    for (int round = 0; round < 12; ++round) {
        std::vector<std::unique_ptr<Operation>> made;
        std::vector<MPI_Request> requests;
        for (int i = choice.below(5); i >= 0; --i) {
            Random common(choice.next());
            made.push_back(std::make_unique<Operation>(any_plan(comm, common, 14), comm, own,
                                                       Form::persistent));
            made.back()->issue();
            requests.push_back(made.back()->request);
        }
        for (size_t left = requests.size(); left > 1; --left)
            std::swap(requests[left - 1],
                      requests[static_cast<size_t>(own.below(static_cast<int>(left)))]);
        for (MPI_Request& request : requests) MPI_Start(&request);
        move_blocks(comm, choice, own, 10);
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
        for (MPI_Request& request : requests) MPI_Request_free(&request);
        for (const auto& one : made) one->judge();
    }
    MPI_Comm_free(&comm.handle);
}

void small_calls_of_ranks_that_lag() {
    Random common = common_random(3), own = own_random(4);
    const Comm comm = make_comm(0);
    for (int i = 0; i < 1500; ++i) {
        move_blocks(comm, common, own, 6);
        lag(own, 2);
    }
    MPI_Comm last = comm.handle;
    MPI_Comm_free(&last);
}

void mostly_empty_blocks() {
    Random common = common_random(5), own = own_random(6);
    const Comm comm = make_comm(0);
    for (int i = 0; i < 400; ++i) {
        Plan plan = any_plan(comm, common, 14);
        plan.empty = common.chance(50) ? 100 : 95;
        if (is_even(plan.kind)) plan.largest = common.below(2);
        Operation(plan, comm, own).run();
    }
    MPI_Comm last = comm.handle;
    MPI_Comm_free(&last);
    topic("results").add(common.next());
}

// Calls that one rank alone is refused, and makes again rightly.
void refused_calls() {
    Random common = common_random(7), own = own_random(8);
    const Comm comm = make_comm(0);
    MPI_Comm_set_errhandler(comm.handle, MPI_ERRORS_RETURN);
    std::vector<int> in(1000 * static_cast<size_t>(comm.size), 1), out(in.size());
    std::vector<int> counts(static_cast<size_t>(comm.size), 100), displs;
    for (int r = 0; r < comm.size; ++r) displs.push_back(100 * r);
    for (int round = 0; round < 60; ++round) {
        const int n = round % 2 ? 100 : 1000;
        if (comm.rank == round % comm.size) {
            const int me = comm.rank;
            check_class(MPI_Gather(nullptr, n, MPI_INT, out.data(), n, MPI_INT, me, comm.handle),
                        MPI_ERR_BUFFER, "Gather");
            check_class(MPI_Gather(out.data() + me * n, n, MPI_INT, out.data(), n, MPI_INT, me,
                                   comm.handle),
                        MPI_ERR_BUFFER, "Gather of its own place");
            check_class(MPI_Scatter(in.data(), n, MPI_INT, nullptr, n, MPI_INT, me, comm.handle),
                        MPI_ERR_BUFFER, "Scatter");
            check_class(
                MPI_Scatter(in.data(), n, MPI_INT, in.data() + me * n, n, MPI_INT, me, comm.handle),
                MPI_ERR_BUFFER, "Scatter to its own place");
            check_class(MPI_Scatter(in.data(), n, MPI_INT, out.data(), n, MPI_INT, -5, comm.handle),
                        MPI_ERR_ROOT, "Scatter");
            check_class(MPI_Alltoall(in.data(), n, MPI_INT, in.data(), n, MPI_INT, comm.handle),
                        MPI_ERR_BUFFER, "Alltoall of its own place");
            check_class(MPI_Alltoall(in.data(), -1, MPI_INT, out.data(), n, MPI_INT, comm.handle),
                        MPI_ERR_COUNT, "Alltoall");
            check_class(MPI_Allgatherv(nullptr, 100, MPI_INT, out.data(), counts.data(),
                                       displs.data(), MPI_INT, comm.handle),
                        MPI_ERR_BUFFER, "Allgatherv");
            check_class(MPI_Gatherv(in.data(), -1, MPI_INT, out.data(), counts.data(),
                                    displs.data(), MPI_INT, me, comm.handle),
                        MPI_ERR_COUNT, "Gatherv");
            check_class(MPI_Scatterv(in.data(), counts.data(), displs.data(), MPI_INT, nullptr, 100,
                                     MPI_INT, me, comm.handle),
                        MPI_ERR_BUFFER, "Scatterv");
            check_class(MPI_Alltoallv(in.data(), counts.data(), displs.data(), MPI_INT, nullptr,
                                      counts.data(), displs.data(), MPI_INT, comm.handle),
                        MPI_ERR_BUFFER, "Alltoallv");
        }
        move_blocks(comm, common, own, 12);
    }
    MPI_Comm last = comm.handle;
    MPI_Comm_free(&last);
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    if (world.argument == "random") random_stream();
    if (world.argument == "ahead") small_calls_of_ranks_that_lag();
    if (world.argument == "empty") mostly_empty_blocks();
    if (world.argument == "refused") refused_calls();
    if (world.argument == "later") calls_under_way();
    if (world.argument == "persistent") persistent_calls();
    return end();
}
