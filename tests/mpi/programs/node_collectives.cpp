// SPDX-License-Identifier: BSD-3-Clause
// Blocking collectives of any size in long streams on several communicators, as ranks of one node
// may do them through memory. Sums of floats are rounded, and have the plain library's bits.
//   random  a mix of calls, sizes, types, roots and communicators; ranks lag
//   ahead   roots that run ahead of ranks that lag
//   many    more communicators than have memory for large data, which come and go
//   refused calls that the library refuses on one rank
//   pending Iallreduce under way beside other calls, completed in any order, communicators freed
//   chain   a rank posts its Iallreduce only when the one before it has posted
//   beside  messages that end only where another rank makes progress beside its Iallreduce
//   uneven  Reduce_scatter with blocks of any size, in place too
//   killed  a rank that dies in the middle
#include <signal.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "streams.hpp"

using namespace battery;

namespace {

using Bytes = std::vector<unsigned char>;

struct Reduced {
    MPI_Datatype type;
    size_t bytes;
    std::vector<MPI_Op> ops;
    void (*fill)(unsigned char* to, size_t elements, Random& random);
};

template <class T>
void fill_integers(unsigned char* to, size_t elements, Random& random) {
    for (size_t i = 0; i < elements; ++i) {
        const T value = static_cast<T>(random.next());
        std::memcpy(to + i * sizeof value, &value, sizeof value);
    }
}

// Sums of these are rounded.
template <class T, size_t parts = 1>
void fill_reals(unsigned char* to, size_t elements, Random& random) {
    for (size_t i = 0; i < elements * parts; ++i) {
        const T value =
            static_cast<T>(static_cast<double>(random.next() % 1000000) / 7.0 - 50000.0);
        std::memcpy(to + i * sizeof value, &value, sizeof value);
    }
}

template <class Value>
struct Pair {
    Value value;
    int index;
};

// Anything in their gaps.
template <class Value>
void fill_pairs(unsigned char* to, size_t elements, Random& random) {
    using Pair = Pair<Value>;
    fill_integers<unsigned char>(to, elements * sizeof(Pair), random);
    for (size_t i = 0; i < elements; ++i, to += sizeof(Pair)) {
        const auto value = static_cast<Value>(random.below(5));
        std::memcpy(to, &value, sizeof value);
        std::memcpy(to + offsetof(Pair, index), &world.rank, sizeof world.rank);
    }
}

const std::vector<Reduced>& reduced() {
    static const std::vector<Reduced> table{
        {MPI_INT, 4, {MPI_SUM, MPI_MAX, MPI_BXOR}, fill_integers<int>},
        {MPI_UNSIGNED_CHAR, 1, {MPI_SUM, MPI_BAND, MPI_LAND}, fill_integers<unsigned char>},
        {MPI_SHORT, 2, {MPI_MIN, MPI_PROD}, fill_integers<short>},
        {MPI_LONG, 8, {MPI_SUM, MPI_LXOR}, fill_integers<long>},
        {MPI_FLOAT, 4, {MPI_SUM, MPI_MIN}, fill_reals<float>},
        {MPI_DOUBLE, 8, {MPI_SUM, MPI_MAX}, fill_reals<double>},
        {MPI_C_FLOAT_COMPLEX, 8, {MPI_SUM}, fill_reals<float, 2>},
        {MPI_2INT, 8, {MPI_MAXLOC, MPI_MINLOC}, fill_pairs<int>},
        {MPI_DOUBLE_INT, 16, {MPI_MAXLOC, MPI_MINLOC}, fill_pairs<double>},
        {MPI_SHORT_INT, 8, {MPI_MAXLOC, MPI_MINLOC}, fill_pairs<short>},
    };
    return table;
}

const Reduced& any_reduced(Random& common) {
    return reduced()[static_cast<size_t>(common.below(static_cast<int>(reduced().size())))];
}

// Most are small; the largest take many rounds of any memory that ranks may share.
size_t any_size(Random& common) {
    const int bits = common.chance(4) ? common.between(16, 20) : common.between(3, 16);
    return static_cast<size_t>(common.between(1, 1 << bits));
}

constexpr size_t guard_bytes = 64;
constexpr unsigned char guard = 0xa5;

// The result, and nothing behind it.
void digest_result(const Bytes& result, size_t bytes, Digest& digest) {
    digest.add_bytes(result.data(), bytes);
    for (size_t i = bytes; i < result.size(); ++i)
        check(result[i] == guard, "nothing behind the result");
}

void all_or_one(const Comm& comm, Random& common, Random& own, Digest& digest) {
    const Reduced& row = any_reduced(common);
    const MPI_Op op = row.ops[static_cast<size_t>(common.below(static_cast<int>(row.ops.size())))];
    const size_t elements = any_size(common) / row.bytes, bytes = elements * row.bytes;
    const bool to_all = common.chance(60), in_place = common.chance(40);
    // MPICH 4.0.2 reads its input at MPI_IN_PLACE where the root of a Reduce above 2 KiB is not
    // rank 0.
    const int root = in_place && bytes > 2048 ? 0 : common.below(comm.size);
    const size_t shift = static_cast<size_t>(own.below(3));  // buffers need not be aligned
    Bytes in(bytes + shift), out(bytes + guard_bytes, guard);
    row.fill(in.data() + shift, elements, own);
    const bool here = to_all || comm.rank == root;
    if (in_place && here) std::memcpy(out.data(), in.data() + shift, bytes);
    const void* from = in_place && here ? MPI_IN_PLACE : in.data() + shift;
    const int count = static_cast<int>(elements);
    if (to_all)
        MPI_Allreduce(from, out.data(), count, row.type, op, comm.handle);
    else
        MPI_Reduce(from, here ? out.data() : nullptr, count, row.type, op, root, comm.handle);
    if (here) digest_result(out, bytes, digest);
}

void scanned(const Comm& comm, Random& common, Random& own, Digest& digest, bool exclusive) {
    const Reduced& row = any_reduced(common);
    const MPI_Op op = row.ops[static_cast<size_t>(common.below(static_cast<int>(row.ops.size())))];
    const size_t elements = any_size(common) / row.bytes, bytes = elements * row.bytes;
    const bool in_place = common.chance(40), has_result = !exclusive || comm.rank != 0;
    Bytes in(bytes), out(bytes + guard_bytes, guard);
    row.fill(in.data(), elements, own);
    if (in_place) std::memcpy(out.data(), in.data(), bytes);
    const void* from = in_place ? MPI_IN_PLACE : in.data();
    const int count = static_cast<int>(elements);
    if (exclusive)
        MPI_Exscan(from, out.data(), count, row.type, op, comm.handle);
    else
        MPI_Scan(from, out.data(), count, row.type, op, comm.handle);
    digest_result(out, has_result || in_place ? bytes : 0, digest);
}

// least: bytes of each block.
void scattered(const Comm& comm, Random& common, Random& own, Digest& digest, bool uneven,
               size_t least = 0) {
    const Reduced& row = any_reduced(common);
    const MPI_Op op = row.ops[static_cast<size_t>(common.below(static_cast<int>(row.ops.size())))];
    std::vector<int> counts(static_cast<size_t>(comm.size));
    Random sizes(common.next());  // whatever the size of the communicator, `common` goes on alike
    const int even = static_cast<int>(any_size(sizes) / row.bytes) / comm.size;
    for (int& count : counts)
        count = !uneven            ? even
                : sizes.chance(20) ? 0
                                   : static_cast<int>(any_size(sizes) / row.bytes) / comm.size;
    for (int& count : counts) count += static_cast<int>(least / row.bytes);
    const bool in_place = common.chance(40);
    const auto total = static_cast<size_t>(std::accumulate(counts.begin(), counts.end(), 0));
    const auto mine = static_cast<size_t>(counts[static_cast<size_t>(comm.rank)]) * row.bytes;
    Bytes in(total * row.bytes + 1), out(mine + guard_bytes, guard);
    row.fill(in.data(), total, own);
    const void* from = in_place ? MPI_IN_PLACE : in.data();
    void* to = in_place ? in.data() : out.data();
    if (uneven)
        MPI_Reduce_scatter(from, to, counts.data(), row.type, op, comm.handle);
    else
        MPI_Reduce_scatter_block(from, to, counts.front(), row.type, op, comm.handle);
    if (in_place)
        digest.add_bytes(in.data(),
                         in.size());  // what lies behind the result, MPICH leaves as it is, or not
    else
        digest_result(out, mine, digest);
}

// The same bytes, whatever type a rank describes them by: ints one after the other, or with gaps.
struct Described {
    MPI_Datatype type = MPI_INT;
    int count = 0, stride = 1;
    Described(int ints, int blocks, Random& own) : count(ints * blocks) {
        if (!own.chance(30)) return;
        stride = own.between(1, 3);
        MPI_Datatype with_gap;
        MPI_Type_create_resized(MPI_INT, 0, 4 * stride, &with_gap);
        MPI_Type_contiguous(ints, with_gap, &type);
        MPI_Type_commit(&type);
        MPI_Type_free(&with_gap);
        count = blocks;
    }
    ~Described() {
        if (type != MPI_INT) MPI_Type_free(&type);
    }
    Described(const Described&) = delete;
    Described& operator=(const Described&) = delete;
};

std::vector<int> spread(const std::vector<int>& values, int stride) {
    std::vector<int> result(values.size() * static_cast<size_t>(stride) + 1, -7);
    for (size_t i = 0; i < values.size(); ++i) result[i * static_cast<size_t>(stride)] = values[i];
    return result;
}

std::vector<int> numbers(size_t n, Random random) {
    std::vector<int> values(n);
    for (int& value : values) value = static_cast<int>(random.next());
    return values;
}

void broadcast(const Comm& comm, Random& common, Random& own, Digest& digest) {
    const int ints = 1 + static_cast<int>(any_size(common) / 4), root = common.below(comm.size);
    const Random stream = common;
    const Described as(ints, 1, own);
    std::vector<int> values(static_cast<size_t>(ints), -1);
    if (comm.rank == root) values = numbers(values.size(), stream);
    values = spread(values, as.stride);
    MPI_Bcast(values.data(), as.count, as.type, root, comm.handle);
    const std::vector<int> expected = spread(numbers(static_cast<size_t>(ints), stream), as.stride);
    check(values == expected, "Bcast");
    digest.add(static_cast<uint64_t>(ints));
}

void gathered(const Comm& comm, Random& common, Random& own, Digest& digest) {
    // MPICH waits for nobody where the count is 0, but where the type is empty.
    const int ints = 1 + static_cast<int>(any_size(common) / 4) / comm.size;
    const bool in_place = common.chance(40);
    const uint64_t stream = common.next();
    const auto block = [&](int rank) {
        return numbers(static_cast<size_t>(ints), Random(stream + static_cast<uint64_t>(rank)));
    };
    const Described sent(ints, 1, own), received(ints, comm.size, own);
    std::vector<int> all, expected;
    for (int r = 0; r < comm.size; ++r) {
        const std::vector<int> values = block(r);
        expected.insert(expected.end(), values.begin(), values.end());
        all.insert(all.end(), values.begin(), values.end());
        if (r != comm.rank || !in_place) std::fill(all.end() - ints, all.end(), -1);
    }
    std::vector<int> from = spread(block(comm.rank), sent.stride),
                     to = spread(all, received.stride);
    const int recvcount = received.type == MPI_INT ? ints : 1;
    MPI_Allgather(in_place ? MPI_IN_PLACE : static_cast<const void*>(from.data()), sent.count,
                  sent.type, to.data(), recvcount, received.type, comm.handle);
    check(to == spread(expected, received.stride), "Allgather");
    digest.add(static_cast<uint64_t>(ints));
}

void one_call(const Comm& comm, Random& common, Random& own, Digest& digest) {
    const int which = common.below(100);
    if (which < 35)
        all_or_one(comm, common, own, digest);
    else if (which < 45)
        scanned(comm, common, own, digest, which < 39);
    else if (which < 60)
        scattered(comm, common, own, digest, which < 52);
    else if (which < 75)
        broadcast(comm, common, own, digest);
    else if (which < 95)
        gathered(comm, common, own, digest);
    else
        MPI_Barrier(comm.handle);
}

void random_stream() {
    Random choice = common_random(1), own = own_random(2);
    Digest& digest = topic("results");
    std::vector<Comm> comms{make_comm(0), make_comm(1), make_comm(2), make_comm(3)};
    for (int round = 0; round < 250; ++round) {
        const auto at = static_cast<size_t>(choice.below(static_cast<int>(comms.size())));
        Random common = common_random(1000 + static_cast<uint64_t>(round));
        for (int i = choice.below(6); i >= 0; --i) one_call(comms[at], common, own, digest);
        if (round % 40 == 39) {
            MPI_Comm_free(&comms[at].handle);
            comms[at] = make_comm(choice.below(4));
        }
        lag(own, 3);
    }
    for (Comm& comm : comms) MPI_Comm_free(&comm.handle);
}

// An Iallreduce under way.
struct Pending {
    Bytes in, out;
    size_t bytes;
    MPI_Request request = MPI_REQUEST_NULL;
    Pending(const Comm& comm, Random& common, Random& own) {
        const Reduced& row = any_reduced(common);
        const MPI_Op op =
            row.ops[static_cast<size_t>(common.below(static_cast<int>(row.ops.size())))];
        const size_t elements = common.chance(5) ? 0 : any_size(common) / row.bytes;
        const bool in_place = common.chance(40);
        bytes = elements * row.bytes;
        in.resize(bytes + 1);
        out.assign(bytes + guard_bytes, guard);
        row.fill(in.data(), elements, own);
        if (in_place) std::memcpy(out.data(), in.data(), bytes);
        MPI_Iallreduce(in_place ? MPI_IN_PLACE : in.data(), out.data(), static_cast<int>(elements),
                       row.type, op, comm.handle, &request);
    }
};

void pending_calls() {
    Random choice = common_random(11), own = own_random(12);
    Digest& digest = topic("results");
    std::vector<Comm> comms{make_comm(0), make_comm(1), make_comm(2), make_comm(3)};
    for (int round = 0; round < 60; ++round) {
        std::vector<std::unique_ptr<Pending>> pending;
        std::vector<MPI_Request> requests;
        const auto first = static_cast<size_t>(choice.below(4));
        for (int i = choice.below(15); i >= 0; --i) {
            // Communicators are of different sizes, so only decisions of the whole world come from
            // `choice`.
            const Comm& comm =
                comms[choice.chance(60) ? first : static_cast<size_t>(choice.below(4))];
            Random call(choice.next());
            if (choice.chance(80)) {
                pending.push_back(std::make_unique<Pending>(comm, call, own));
                requests.push_back(pending.back()->request);
            } else {
                one_call(comm, call, own, digest);
            }
            lag(own, 3);
            if (own.chance(30)) complete_some(requests, own);
        }
        if (choice.chance(30)) {
            MPI_Comm_free(&comms[first].handle);
            comms[first] = make_comm(static_cast<int>(first));
        }
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
        for (const auto& one : pending) digest_result(one->out, one->bytes, digest);
    }
    for (Comm& comm : comms) MPI_Comm_free(&comm.handle);
}

// Nonblocking calls wait for nobody, whatever they find out on the way.
void chain_of_posts() {
    Random common = common_random(13);
    for (int round = 0; round < 5; ++round) {
        Comm comm = make_comm(common.below(2));
        for (int i = 0; i < 80; ++i) {
            const int n = common.chance(50) ? common.between(1, 20) : common.between(1, 50000);
            std::vector<int> ones(static_cast<size_t>(n), 1), sums(static_cast<size_t>(n));
            MPI_Request request;
            if (comm.rank > 0)
                MPI_Recv(nullptr, 0, MPI_INT, comm.rank - 1, 0, comm.handle, MPI_STATUS_IGNORE);
            MPI_Iallreduce(ones.data(), sums.data(), n, MPI_INT, MPI_SUM, comm.handle, &request);
            if (comm.rank < comm.size - 1)
                MPI_Send(nullptr, 0, MPI_INT, comm.rank + 1, 0, comm.handle);
            if (i % 3 == 0) MPI_Barrier(comm.handle);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            check(std::all_of(sums.begin(), sums.end(), [&](int sum) { return sum == comm.size; }),
                  "sum of ones");
        }
        MPI_Comm_free(&comm.handle);
    }
}

void compute_us(int us) {
    const double end = MPI_Wtime() + 1e-6 * us;
    while (MPI_Wtime() < end) {
    }
}

// The first rank receives in the background, and its calls, which others always wait for, are all
// it does: they must let the message in. Else the last rank's synchronous send never ends.
void messages_beside() {
    const int first = 0, last = world.size - 1;
    const Comm comm{MPI_COMM_WORLD, world.rank, world.size};
    for (int i = 0; i < 40; ++i) MPI_Barrier(comm.handle);
    for (int round = 0; round < 10; ++round) {
        char byte = 0;
        MPI_Request message = MPI_REQUEST_NULL, request = MPI_REQUEST_NULL;
        if (world.rank == first) MPI_Irecv(&byte, 1, MPI_CHAR, last, 5, comm.handle, &message);
        if (round == 1)
            MPI_Barrier(comm.handle);  // who asked for memory of nonblocking calls has it now
        if (world.rank == last) MPI_Issend(&byte, 1, MPI_CHAR, first, 5, comm.handle, &message);
        for (int sent = 0, sum = 0; sum == 0;) {
            if (world.rank == first) compute_us(50);
            if (world.rank == last) MPI_Test(&message, &sent, MPI_STATUS_IGNORE);
            MPI_Iallreduce(&sent, &sum, 1, MPI_INT, MPI_SUM, comm.handle, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Wait(&message, MPI_STATUS_IGNORE);
    }
    // The same where the first rank tests: each test lets the message in.
    for (int round = 0; round < 5; ++round) {
        char byte = 0;
        int one = 1, sum = 0, flag = 0, tests = 0;
        MPI_Request message = MPI_REQUEST_NULL, request = MPI_REQUEST_NULL;
        if (world.rank == first) MPI_Irecv(&byte, 1, MPI_CHAR, last, 5, comm.handle, &message);
        if (world.rank == last) MPI_Ssend(&byte, 1, MPI_CHAR, first, 5, comm.handle);
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm.handle, &request);
        for (; flag == 0; ++tests) {
            compute_us(500);
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        }
        check_equal(sum, world.size, "sum");
        check(tests < 1000, "a test makes progress");
        MPI_Wait(&message, MPI_STATUS_IGNORE);
    }
}

void ranks_that_lag() {
    Random common = common_random(3), own = own_random(4);
    Digest& digest = topic("results");
    const Comm comm{MPI_COMM_WORLD, world.rank, world.size};
    for (int round = 0; round < 40; ++round) {
        const bool from_root = common.chance(50);
        lag(own, 30);
        for (int calls = common.between(1, 25); calls > 0; --calls) {
            if (from_root)
                broadcast(comm, common, own, digest);
            else
                all_or_one(comm, common, own, digest);
            lag(own, 2);
        }
    }
}

void more_communicators_than_fit() {
    Random common = common_random(7), own = own_random(8);
    Digest& digest = topic("results");
    for (int round = 0; round < 3; ++round) {
        std::vector<Comm> comms;
        for (int i = 0; i < 20; ++i) {
            comms.push_back(make_comm(common.below(3)));
            for (int call = 0; call < 3; ++call) one_call(comms.back(), common, own, digest);
        }
        for (int i = 0; i < 60; ++i)
            one_call(comms[static_cast<size_t>(common.below(20))], common, own, digest);
        for (Comm& comm : comms) MPI_Comm_free(&comm.handle);
    }
}

void check_sum_of_ones(const Comm& comm, size_t elements) {
    std::vector<int> ones(elements, 1), sums(elements);
    MPI_Allreduce(ones.data(), sums.data(), static_cast<int>(elements), MPI_INT, MPI_SUM,
                  comm.handle);
    check(std::all_of(sums.begin(), sums.end(), [&](int sum) { return sum == comm.size; }),
          "sum of ones");
}

// What one rank alone is refused it makes again, and that call meets the others' first one.
void refused_calls() {
    const Comm comm = make_comm(0);
    MPI_Comm_set_errhandler(comm.handle, MPI_ERRORS_RETURN);
    std::vector<int> in(1000, 1), out(1000 * static_cast<size_t>(comm.size));
    for (int round = 0; round < 30; ++round) {
        const int n = round % 2 ? 100 : 1000;
        if (comm.rank == 0) {
            check_class(MPI_Reduce(in.data(), in.data(), n, MPI_INT, MPI_SUM, 0, comm.handle),
                        MPI_ERR_BUFFER, "Reduce");
            check_class(MPI_Allreduce(nullptr, out.data(), n, MPI_INT, MPI_SUM, comm.handle),
                        MPI_ERR_BUFFER, "Allreduce");
            check_class(MPI_Bcast(nullptr, n, MPI_INT, 0, comm.handle), MPI_ERR_BUFFER, "Bcast");
            check_class(MPI_Allgather(in.data(), n, MPI_INT, nullptr, n, MPI_INT, comm.handle),
                        MPI_ERR_BUFFER, "Allgather");
            check_class(MPI_Allgather(out.data(), n, MPI_INT, out.data(), n, MPI_INT, comm.handle),
                        MPI_ERR_BUFFER, "Allgather of its own place");
            check_class(
                MPI_Reduce_scatter_block(out.data(), out.data(), n, MPI_INT, MPI_SUM, comm.handle),
                MPI_ERR_BUFFER, "Reduce_scatter_block");
        }
        check_class(MPI_Reduce(in.data(), comm.rank == 0 ? out.data() : nullptr, n, MPI_INT,
                               MPI_SUM, 0, comm.handle),
                    MPI_SUCCESS, "Reduce, made again");
        check_class(MPI_Bcast(out.data(), n, MPI_INT, 0, comm.handle), MPI_SUCCESS,
                    "Bcast, made again");
        check(std::all_of(out.begin(), out.begin() + n, [&](int sum) { return sum == comm.size; }),
              "both");
        check_class(MPI_Allgather(in.data(), n, MPI_INT, out.data(), n, MPI_INT, comm.handle),
                    MPI_SUCCESS, "Allgather");
        check(std::all_of(out.begin(), out.begin() + n * comm.size,
                          [&](int one) { return one == 1; }),
              "gathered");
        check_sum_of_ones(comm, static_cast<size_t>(n));
    }
    MPI_Comm last = comm.handle;
    MPI_Comm_free(&last);
}

void uneven_blocks() {
    Random common = common_random(9), own = own_random(10);
    Digest& digest = topic("results");
    const Comm comm{MPI_COMM_WORLD, world.rank, world.size};
    for (int i = 0; i < 150; ++i) scattered(comm, common, own, digest, true);
    // Above 512 KiB MPICH has another algorithm, which in place cannot have blocks that differ
    // much.
    for (int i = 0; i < 20; ++i) scattered(comm, common, own, digest, false, 300000);
}

void stream_until_one_dies() {
    const Comm comm{MPI_COMM_WORLD, world.rank, world.size};
    for (int i = 0;; ++i) {
        check_sum_of_ones(comm, 20000);
        if (i == 50 && world.rank == world.size - 1) raise(SIGKILL);
    }
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    if (world.argument == "random") random_stream();
    if (world.argument == "ahead") ranks_that_lag();
    if (world.argument == "many") more_communicators_than_fit();
    if (world.argument == "refused") refused_calls();
    if (world.argument == "pending") pending_calls();
    if (world.argument == "chain") chain_of_posts();
    if (world.argument == "beside") messages_beside();
    if (world.argument == "uneven") uneven_blocks();
    if (world.argument == "killed") stream_until_one_dies();
    return end();
}
