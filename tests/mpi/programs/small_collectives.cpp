// SPDX-License-Identifier: BSD-3-Clause
// Small blocking collectives in long streams: what one rank told must not be lost when it runs
// ahead, whatever the mix of calls, communicators, types, roots and sizes, and when communicators
// come and go. Sums of floats have the plain library's bits, and what lies in the gaps of pairs
// stays.
//   random  a stream on several communicators
//   ahead   ranks that lag, behind roots that wait for nobody
//   free    communicators that are freed while others still have to read
//   many    more communicators than fit
//   refused calls that the library refuses on one rank
//   killed  a rank that dies in the middle
//   last    the last call, from within MPI_Finalize on one rank
//   inside  a call from a callback on one rank, outside of one on the others
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstring>
#include <vector>

#include "streams.hpp"

using namespace battery;

namespace {

constexpr int most_bytes = 160;

struct Reduced {
    MPI_Datatype type;
    std::vector<MPI_Op> ops;
};

const std::vector<Reduced>& reduced() {
    static const std::vector<Reduced> table{
        {MPI_INT, {MPI_SUM, MPI_MAX, MPI_BXOR, MPI_PROD}},
        {MPI_FLOAT, {MPI_SUM, MPI_MIN, MPI_PROD}},
        {MPI_DOUBLE, {MPI_SUM, MPI_MAX}},
        {MPI_UNSIGNED_CHAR, {MPI_SUM, MPI_BAND}},
        {MPI_SHORT, {MPI_MIN, MPI_LAND}},
        {MPI_LONG, {MPI_SUM, MPI_LOR}},
        {MPI_2INT, {MPI_MAXLOC, MPI_MINLOC}},
        {MPI_FLOAT_INT, {MPI_MINLOC}},
        {MPI_DOUBLE_INT, {MPI_MAXLOC, MPI_MINLOC}},
        {MPI_LONG_INT, {MPI_MINLOC}},
        {MPI_SHORT_INT, {MPI_MAXLOC}},
        {MPI_LONG_DOUBLE_INT, {MPI_MINLOC}},
        {MPI_C_FLOAT_COMPLEX, {MPI_SUM, MPI_PROD}},
        {MPI_LONG_DOUBLE, {MPI_SUM}},
    };
    return table;
}

template <class Value>
struct Pair {
    Value value;
    int index;
};

// Numbers for `count` elements of a type that are exact where the sum is not to be rounded.
struct Values {
    alignas(16) unsigned char bytes[4096] = {};
    // What no rank may touch, in the gaps of pairs and behind the last element.
    void fill_gaps(Random& random) {
        for (int i = 0; i < most_bytes + 32; ++i)
            bytes[i] = static_cast<unsigned char>(random.next());
    }
    template <class Value>
    void put(size_t offset, int value) {
        static Value number{};  // static: zeros in the bytes that a long double does not fill
        number = static_cast<Value>(value);
        std::memcpy(bytes + offset, &number, sizeof number);
    }
    template <class Value>
    void put_pair(int i, int value) {
        const size_t offset = static_cast<size_t>(i) * sizeof(Pair<Value>);
        put<Value>(offset, value);
        put<int>(offset + offsetof(Pair<Value>, index), world.rank);
    }
    void fill(MPI_Datatype type, int count, Random& random) {
        const auto small = [&]() { return static_cast<int>(random.next() % 7) - 3; };
        const auto real_number = [&]() {
            return static_cast<double>(random.next() % 100000) / 7.0;
        };
        for (int i = 0; i < count; ++i) {
            if (type == MPI_FLOAT)
                reinterpret_cast<float*>(bytes)[i] = static_cast<float>(real_number());
            else if (type == MPI_C_FLOAT_COMPLEX)
                reinterpret_cast<std::complex<float>*>(bytes)[i] =
                    static_cast<float>(real_number());
            else if (type == MPI_DOUBLE)
                reinterpret_cast<double*>(bytes)[i] = real_number();
            else if (type == MPI_LONG_DOUBLE)
                put<long double>(static_cast<size_t>(i) * sizeof(long double), small());
            else if (type == MPI_2INT)
                put_pair<int>(i, small());
            else if (type == MPI_FLOAT_INT)
                put_pair<float>(i, small());
            else if (type == MPI_DOUBLE_INT)
                put_pair<double>(i, small());
            else if (type == MPI_LONG_INT)
                put_pair<long>(i, small());
            else if (type == MPI_SHORT_INT)
                put_pair<short>(i, small());
            else if (type == MPI_LONG_DOUBLE_INT)
                put_pair<long double>(i, small());
            else if (type == MPI_LONG)
                reinterpret_cast<long*>(bytes)[i] = small();
            else if (type == MPI_INT)
                reinterpret_cast<int*>(bytes)[i] = small();
            else if (type == MPI_SHORT)
                reinterpret_cast<short*>(bytes)[i] = static_cast<short>(small());
            else
                bytes[i] = static_cast<unsigned char>(random.next());
        }
    }
};

void one_reduction(const Comm& comm, Random& common, Random& own, Digest& digest) {
    const Reduced& row =
        reduced()[static_cast<size_t>(common.below(static_cast<int>(reduced().size())))];
    const MPI_Op op = row.ops[static_cast<size_t>(common.below(static_cast<int>(row.ops.size())))];
    MPI_Aint lower = 0, extent = 0;
    MPI_Type_get_extent(row.type, &lower, &extent);
    const int count = common.below(most_bytes / static_cast<int>(extent) + 1);
    const int root = common.below(comm.size);
    const bool to_all = common.chance(60), in_place = common.chance(40);
    const auto bytes = static_cast<size_t>(count) * static_cast<size_t>(extent);
    Values in, out;
    in.fill_gaps(own);
    out.fill_gaps(own);
    in.fill(row.type, count, own);
    if (in_place) out = in;
    const bool here = to_all || comm.rank == root;
    const void* from = in_place && here ? MPI_IN_PLACE : in.bytes;
    if (to_all)
        MPI_Allreduce(from, out.bytes, count, row.type, op, comm.handle);
    else
        MPI_Reduce(from, here ? out.bytes : nullptr, count, row.type, op, root, comm.handle);
    if (here) digest.add_bytes(out.bytes, bytes + 32);  // and nothing behind it or in its gaps
}

// Every rank may describe the same bytes by another type.
void one_bcast(const Comm& comm, Random& common, Random& own, Digest& digest) {
    const int ints = common.below(20), root = common.below(comm.size);
    Values data, seen;
    if (comm.rank == root)
        data.fill(MPI_INT, ints, common);
    else {
        Values unused;
        unused.fill(MPI_INT, ints, common);
    }
    const int way = own.below(4);
    if (way == 0) {
        MPI_Bcast(data.bytes, ints, MPI_INT, root, comm.handle);
        seen = data;
    } else if (way == 1) {
        MPI_Datatype whole;
        MPI_Type_contiguous(ints, MPI_INT, &whole);
        MPI_Type_commit(&whole);
        MPI_Bcast(data.bytes, 1, whole, root, comm.handle);
        MPI_Type_free(&whole);
        seen = data;
    } else {  // every third int, so 2 * ints more lie between
        MPI_Datatype strided;
        MPI_Type_vector(ints, 1, 3, MPI_INT, &strided);
        MPI_Type_commit(&strided);
        Values spread;
        for (int i = 0; i < ints; ++i)
            reinterpret_cast<int*>(spread.bytes)[3 * i] = reinterpret_cast<int*>(data.bytes)[i];
        MPI_Bcast(spread.bytes, 1, strided, root, comm.handle);
        for (int i = 0; i < ints; ++i)
            reinterpret_cast<int*>(seen.bytes)[i] = reinterpret_cast<int*>(spread.bytes)[3 * i];
        MPI_Type_free(&strided);
    }
    digest.add_bytes(seen.bytes, most_bytes);
}

void one_call(const Comm& comm, Random& common, Random& own, Digest& digest) {
    const int which = common.below(10);
    if (which < 5)
        one_reduction(comm, common, own, digest);
    else if (which < 8)
        one_bcast(comm, common, own, digest);
    else
        MPI_Barrier(comm.handle);
}

// Splits by parity call on one side what the other side does not: their common numbers are the same
// all the same, since each stream belongs to a communicator.
void random_stream() {
    Random choice = common_random(1), own = own_random(2);
    Digest& digest = topic("results");
    std::vector<Comm> comms{make_comm(0), make_comm(1), make_comm(2), make_comm(3), make_comm(0)};
    for (int round = 0; round < 600; ++round) {
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

void ranks_that_lag() {
    Random common = common_random(3), own = own_random(4);
    Digest& digest = topic("results");
    for (int round = 0; round < 60; ++round) {
        const int root = common.below(world.size), calls = common.between(1, 40);
        const bool reduce = common.chance(50);
        lag(own, 30);
        for (int i = 0; i < calls; ++i) {
            int64_t value = round * 100 + i + (world.rank == root ? 0 : 7), sum = -1;
            if (reduce)
                MPI_Reduce(&value, &sum, 1, MPI_INT64_T, MPI_SUM, root, MPI_COMM_WORLD);
            else
                MPI_Bcast(&value, 1, MPI_INT64_T, root, MPI_COMM_WORLD);
            digest.add(static_cast<uint64_t>(reduce ? sum : value));
            if (world.rank != root && own.chance(2)) usleep(200);
        }
        if (common.chance(30)) MPI_Barrier(MPI_COMM_WORLD);
    }
}

// The last call on each communicator lets ranks leave before others have come.
void communicators_that_go() {
    Random common = common_random(5), own = own_random(6);
    Digest& digest = topic("results");
    for (int round = 0; round < 150; ++round) {
        Comm comm = make_comm(common.below(3));
        const int calls = common.between(0, 9);
        for (int i = 0; i < calls; ++i) one_call(comm, common, own, digest);
        int last = comm.rank == 0 ? round : -1;
        MPI_Bcast(&last, 1, MPI_INT, 0, comm.handle);
        digest.add(static_cast<uint64_t>(last));
        lag(own, 20);
        MPI_Comm_free(&comm.handle);
    }
}

void more_communicators_than_fit() {
    Random common = common_random(7), own = own_random(8);
    Digest& digest = topic("results");
    std::vector<Comm> comms;
    for (int i = 0; i < 300; ++i) {
        comms.push_back(make_comm(0));
        for (int call = 0; call < 5; ++call) one_call(comms.back(), common, own, digest);
    }
    for (int i = 0; i < 300; ++i)
        one_call(comms[static_cast<size_t>(common.below(300))], common, own, digest);
    for (Comm& comm : comms) MPI_Comm_free(&comm.handle);
    communicators_that_go();
}

void warm_up(MPI_Comm comm) {
    for (int i = 0; i < 30; ++i) MPI_Barrier(comm);
}

void check_sum_of_ones(MPI_Comm comm) {
    int one = 1, sum = 0, size = 0;
    MPI_Comm_size(comm, &size);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    check_equal(sum, size, "ones");
    MPI_Barrier(comm);
}

// The root's call is refused, and the one that it makes then meets the others' first one.
void refused_at_the_root(const Comm& comm) {
    int value = comm.rank, sum = -1;
    if (comm.rank == 0)
        check_class(MPI_Reduce(&value, &value, 1, MPI_INT, MPI_SUM, 0, comm.handle), MPI_ERR_BUFFER,
                    "result in the input");
    check_class(
        MPI_Reduce(&value, comm.rank == 0 ? &sum : nullptr, 1, MPI_INT, MPI_SUM, 0, comm.handle),
        MPI_SUCCESS, "made again");
    if (comm.rank == 0) check_equal(sum, comm.size * (comm.size - 1) / 2, "sum of ranks");
    check_sum_of_ones(comm.handle);
}

void refused_calls() {
    const Comm comm = make_comm(0);
    MPI_Comm_set_errhandler(comm.handle, MPI_ERRORS_RETURN);
    for (int i = 0; i < 30; ++i) refused_at_the_root(comm);
    int code;
    MPI_Datatype two;
    MPI_Type_contiguous(2, MPI_INT, &two);
    if (comm.rank == 0) MPI_Type_commit(&two);
    code = MPI_Bcast(nullptr, 1, comm.rank == 0 ? two : MPI_2INT, 0, comm.handle);
    check_class(code, MPI_ERR_BUFFER, "no buffer");
    check_sum_of_ones(comm.handle);
    int pair[2] = {3, 4};
    code = MPI_Bcast(pair, 1, two, 0, comm.handle);
    check_class(code, comm.rank == 0 ? MPI_SUCCESS : MPI_ERR_TYPE, "type not committed");
    check_sum_of_ones(comm.handle);
    if (comm.rank != 0) MPI_Type_commit(&two);
    MPI_Type_free(&two);
    MPI_Comm last = comm.handle;
    MPI_Comm_free(&last);
}

void stream_until_one_dies() {
    for (int i = 0;; ++i) {
        check_sum_of_ones(MPI_COMM_WORLD);
        if (i == 200 && world.rank == world.size - 1) raise(SIGKILL);
    }
}

int barrier_on_world(MPI_Comm, int, void*, void*) { return MPI_Barrier(MPI_COMM_WORLD); }
int barrier_on_dying(MPI_Comm comm, int, void*, void*) { return MPI_Barrier(comm); }

// The handle comes back with another group: nothing may stay of what the callback did.
void calls_on_a_dying_communicator() {
    int key = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, barrier_on_dying, &key, nullptr);
    for (int round = 0; round < 30; ++round) {
        MPI_Comm part;
        MPI_Comm_split(MPI_COMM_WORLD, world.rank < 2 ? 0 : MPI_UNDEFINED, 0, &part);
        if (part != MPI_COMM_NULL) {
            if (round % 2) warm_up(part);
            const bool calls_back = round % 3 != 0 || world.rank == round % 2;
            if (calls_back) MPI_Comm_set_attr(part, key, nullptr);
            if (!calls_back) MPI_Barrier(part);
            MPI_Comm_free(&part);
        }
        MPI_Comm alone;  // remembered as one that no memory of the node serves
        MPI_Comm_split(MPI_COMM_WORLD, world.rank, 0, &alone);
        MPI_Barrier(alone);
        if (round % 2) MPI_Comm_set_attr(alone, key, nullptr);
        MPI_Comm_free(&alone);
        MPI_Comm whole;
        MPI_Comm_dup(MPI_COMM_WORLD, &whole);
        for (int i = 0; i < 25; ++i) check_sum_of_ones(whole);
        MPI_Comm_free(&whole);
    }
    MPI_Comm_free_keyval(&key);
}

// One rank makes the last call from within MPI_Finalize.
void last_call_in_finalize() {
    int key = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, barrier_on_world, &key, nullptr);
    warm_up(MPI_COMM_WORLD);
    topic("results").add(1);
    print_topics();
    if (world.rank == world.size - 1)
        MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
    else
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_free_keyval(&key);
    MPI_Finalize();
}

void calls_from_callbacks() {
    warm_up(MPI_COMM_WORLD);
    int key = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, barrier_on_world, &key, nullptr);
    for (int round = 0; round < 20; ++round) {
        if (world.rank == round % world.size) {
            MPI_Comm self;
            MPI_Comm_dup(MPI_COMM_SELF, &self);
            MPI_Comm_set_attr(self, key, nullptr);
            MPI_Comm_free(&self);
        } else {
            MPI_Barrier(MPI_COMM_WORLD);
        }
        check_sum_of_ones(MPI_COMM_WORLD);
    }
    MPI_Comm_free_keyval(&key);
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    if (world.argument == "random") random_stream();
    if (world.argument == "ahead") ranks_that_lag();
    if (world.argument == "free") communicators_that_go();
    if (world.argument == "many") more_communicators_than_fit();
    if (world.argument == "refused") refused_calls();
    if (world.argument == "killed") stream_until_one_dies();
    if (world.argument == "inside") {
        calls_from_callbacks();
        calls_on_a_dying_communicator();
    }
    if (world.argument == "last") {
        last_call_in_finalize();
        return 0;
    }
    return end();
}
