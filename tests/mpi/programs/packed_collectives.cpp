// SPDX-License-Identifier: BSD-3-Clause
// Bcast, Allgather and Allgatherv of the same few derived types again and again, so that they get
// plans and keep them; then of others under the same handles. Each rank lays the same elements out
// in its own way. Gaps must keep their bytes.
//   threads  a thread frees the type of a collective that another one is in
//   alive    of each of many types that live at once: MPICH 4.0.2's MPI_Pack ends too early for
//   some
#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "battery.hpp"
#include "typed_blocks.hpp"

using namespace battery;

namespace {

constexpr int times = 25;

// `doubles` doubles, of which so many follow each other before a gap of so many. No gap: dense.
struct Layout {
    int doubles, together, gap;
    size_t place(int i) const {
        return static_cast<size_t>(i / together * (together + gap) + i % together);
    }
    size_t span() const { return place(doubles - 1) + 1; }
    MPI_Datatype make() const {
        MPI_Datatype type;
        MPI_Type_vector(doubles / together, together, together + gap, MPI_DOUBLE, &type);
        MPI_Type_commit(&type);
        return type;
    }
};

Layout draw(Random& random, int doubles) {
    const int together = 1 << random.below(3);
    return {doubles, together, random.chance(20) ? 0 : random.between(1, 5)};
}

double element(int round, int owner, int i) { return round * 1e6 + owner * 1e4 + i; }

// Of one rank: blocks of a layout, one after the other, in a buffer that begins with gaps' bytes.
class Memory {
  public:
    Memory(const Layout& layout, int blocks)
        : layout_(layout),
          blocks_(blocks),
          numbers_(layout.span() * static_cast<size_t>(blocks) + 1, gap) {}
    double* block(int b) { return numbers_.data() + layout_.span() * static_cast<size_t>(b); }
    void set(int b, int round, int owner) {
        for (int i = 0; i < layout_.doubles; ++i)
            block(b)[layout_.place(i)] = element(round, owner, i);
    }
    void erase() { std::fill(numbers_.begin(), numbers_.end(), gap); }
    // `owners`: by block; -1: nothing was received.
    void check_blocks(const std::vector<int>& owners, int round, const char* what) {
        std::vector<double> expected(numbers_.size(), gap);
        for (int b = 0; b < blocks_; ++b)
            for (int i = 0; owners[static_cast<size_t>(b)] >= 0 && i < layout_.doubles; ++i)
                expected[layout_.span() * static_cast<size_t>(b) + layout_.place(i)] =
                    element(round, owners[static_cast<size_t>(b)], i);
        check(numbers_ == expected, what);
        topic(what).add_bytes(numbers_.data(), numbers_.size() * sizeof(double));
    }

  private:
    static constexpr double gap = -1;
    const Layout layout_;
    const int blocks_;
    std::vector<double> numbers_;
};

void broadcasts(Random& common, Random& own, int doubles) {
    const Layout layout = draw(own, doubles);
    MPI_Datatype type = layout.make();
    Memory memory(layout, 1);
    for (int i = 0; i < times; ++i) {
        const int root = common.below(world.size);
        memory.erase();
        if (world.rank == root) memory.set(0, i, root);
        if (i % 7 == 6) {  // absolute addresses
            MPI_Aint address;
            MPI_Get_address(memory.block(0), &address);
            const int one = 1;
            MPI_Datatype absolute;
            MPI_Type_create_hindexed(1, &one, &address, type, &absolute);
            MPI_Type_commit(&absolute);
            MPI_Bcast(MPI_BOTTOM, 1, absolute, root, MPI_COMM_WORLD);
            MPI_Type_free(&absolute);
        } else {
            MPI_Bcast(memory.block(0), 1, type, root, MPI_COMM_WORLD);
        }
        memory.check_blocks({root}, i, "bcast");
    }
    // Nonblocking, and the type is gone before it has ended.
    MPI_Request request;
    memory.erase();
    if (world.rank == 0) memory.set(0, 1, 0);
    MPI_Ibcast(memory.block(0), 1, type, 0, MPI_COMM_WORLD, &request);
    MPI_Type_free(&type);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    memory.check_blocks({0}, 1, "ibcast");
}

// What a rank contributes and what it receives are laid out differently.
void gathers(Random& own, int doubles) {
    const Layout sent = draw(own, doubles), received = draw(own, doubles);
    MPI_Datatype send_type = sent.make(), vector = received.make(), type;
    MPI_Type_create_resized(vector, 0, static_cast<MPI_Aint>(received.span() * sizeof(double)),
                            &type);
    MPI_Type_commit(&type);
    Memory from(sent, 1), to(received, world.size);
    std::vector<int> owners, counts, displacements;
    for (int r = 0; r < world.size; ++r) {
        owners.push_back(r);
        counts.push_back(r % 3 == 1 ? 0 : 1);
        displacements.push_back(r);
    }
    for (int i = 0; i < times; ++i) {
        to.erase();
        from.set(0, i, world.rank);
        if (i % 5 == 4) {
            to.set(world.rank, i, world.rank);
            MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, to.block(0), 1, type, MPI_COMM_WORLD);
        } else {
            MPI_Allgather(from.block(0), 1, send_type, to.block(0), 1, type, MPI_COMM_WORLD);
        }
        to.check_blocks(owners, i, "allgather");
    }
    for (int r = 0; r < world.size; ++r)
        if (counts[static_cast<size_t>(r)] == 0) owners[static_cast<size_t>(r)] = -1;
    for (int i = 0; i < times; ++i) {
        to.erase();
        from.set(0, i, world.rank);
        MPI_Allgatherv(from.block(0), counts[static_cast<size_t>(world.rank)], send_type,
                       to.block(0), counts.data(), displacements.data(), type, MPI_COMM_WORLD);
        to.check_blocks(owners, i, "allgatherv");
    }
    for (int i = 0; i < times; ++i) {
        to.erase();
        from.set(0, i, world.rank);
        MPI_Request request;
        MPI_Iallgatherv(from.block(0), counts[static_cast<size_t>(world.rank)], send_type,
                        to.block(0), counts.data(), displacements.data(), type, MPI_COMM_WORLD,
                        &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        to.check_blocks(owners, i, "iallgatherv");
    }
    MPI_Type_free(&send_type);
    MPI_Type_free(&vector);
    MPI_Type_free(&type);
}

// The communicator and the type are given back while the collective is under way, and the library
// may give their handles to the next ones, of other ranks.
void communicators_that_come_back(Random& own, int doubles) {
    const Layout layout = draw(own, doubles);
    Memory memory(layout, 1);
    for (int i = 0; i < times; ++i) {
        MPI_Comm comm, part;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Datatype type = layout.make();
        MPI_Request request;
        memory.erase();
        if (world.rank == 0) memory.set(0, i, 0);
        MPI_Ibcast(memory.block(0), 1, type, 0, comm, &request);
        MPI_Comm_free(&comm);
        MPI_Type_free(&type);
        int done = 0;
        for (int looks = own.below(20); looks > 0; --looks)
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        MPI_Comm_split(MPI_COMM_WORLD, world.rank % 2, 0, &part);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        memory.check_blocks({0}, i, "ibcast on a communicator that goes");
        int ranks = 0, sum = 0;
        const int one = 1;
        MPI_Comm_size(part, &ranks);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, part);
        check_equal(sum, ranks, "ranks of the next communicator");
        const int first = world.rank % 2;
        type = layout.make();
        memory.erase();
        if (world.rank == first) memory.set(0, i, first);
        MPI_Bcast(memory.block(0), 1, type, 0, part);
        memory.check_blocks({first}, i, "bcast on the next communicator");
        MPI_Type_free(&type);
        MPI_Comm_free(&part);
    }
}

// The library gives out the handle again as soon as it is free, for another type.
void handles_that_come_back(Random& own, int doubles) {
    for (int i = 0; i < 6; ++i) {
        const Layout layout = draw(own, doubles);
        MPI_Datatype type = layout.make();
        Memory memory(layout, 1);
        for (int k = 0; k <= i; ++k) {
            memory.erase();
            if (world.rank == 0) memory.set(0, k, 0);
            MPI_Bcast(memory.block(0), 1, type, 0, MPI_COMM_WORLD);
            memory.check_blocks({0}, k, "bcast of short-lived types");
        }
        MPI_Type_free(&type);
    }
}

// Who has ended an Allgather says so to a second thread of rank 0, where the first is still in it:
// that frees the type (MPI 4.0, 5.1.9) and makes another, which gets its handle. The type of an
// Allgather on two ranks, since other algorithms of MPICH 4.0.2 do not stand it.
void freed_meanwhile(int doubles) {
    MPI_Comm words;
    MPI_Comm_dup(MPI_COMM_WORLD, &words);
    const Layout layout{doubles, 1, 7}, other{doubles, 1, 4};
    std::vector<int> owners;
    for (int r = 0; r < world.size; ++r) owners.push_back(r);
    for (int i = 0; i < times; ++i) {
        MPI_Datatype vector = layout.make(), type, second = MPI_DATATYPE_NULL;
        const auto extent = static_cast<MPI_Aint>(layout.span() * sizeof(double));
        MPI_Type_create_resized(vector, 0, extent, &type);
        MPI_Type_free(&vector);
        MPI_Type_commit(&type);
        const MPI_Datatype used = type;
        const Layout dense{doubles, 1, 0};
        Memory from(dense, 1), to(layout, world.size);
        from.set(0, i, world.rank);
        const auto free_it = [&] {
            int word = 0;
            for (int r = 1; r < world.size; ++r)
                MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 0, words, MPI_STATUS_IGNORE);
            MPI_Type_free(&type);
            second = other.make();
        };
        std::thread second_thread;
        if (world.rank == 0) second_thread = std::thread(free_it);
        MPI_Allgather(from.block(0), doubles, MPI_DOUBLE, to.block(0), 1, used, MPI_COMM_WORLD);
        if (world.rank == 0)
            second_thread.join();
        else
            MPI_Send(&i, 1, MPI_INT, 0, 0, words);
        to.check_blocks(owners, i, "allgather of a type that goes");
        MPI_Type_free(world.rank == 0 ? &second : &type);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Comm_free(&words);
}

// Everyone gives as many bytes, in a type of its own.
void many_alive(Random& common, Random& own) {
    std::vector<std::unique_ptr<TypedBlocks>> alive;
    for (int i = 0; i < 300; ++i) {
        const auto unit = static_cast<Unit>(common.below(4));
        const int units = 12 * common.between(1, 8);
        alive.push_back(
            std::make_unique<TypedBlocks>(own, unit, std::vector<int>{units}, Placing::by_bytes));
        const std::vector<int> of_all(static_cast<size_t>(world.size), units);
        TypedBlocks to(own, unit, of_all, Placing::even);
        TypedBlocks& from = *alive.back();
        from.fill(0, static_cast<uint64_t>(1000 * i + world.rank));
        for (int r = 0; r < world.size; ++r)
            to.expect(static_cast<size_t>(r), static_cast<uint64_t>(1000 * i + r));
        MPI_Allgather(from.block(0), from.count(0), from.type(0), to.address(), to.count(0),
                      to.type(0), MPI_COMM_WORLD);
        to.check_all("allgather of one of many types");
    }
}

}  // namespace

int main(int argc, char** argv) {
    read_arguments(argc, argv);
    const bool has_threads = world.argument == "threads";
    begin(argc, argv, has_threads ? MPI_THREAD_MULTIPLE : -1);
    if (has_threads) {
        for (const int doubles : {10, 50000}) freed_meanwhile(doubles);
        return end();
    }
    Random common = common_random(1), own = own_random(2);
    if (world.argument == "alive") {
        many_alive(common, own);
        return end();
    }
    for (const int doubles : {8, 64, 1000, 12000}) {
        broadcasts(common, own, doubles);
        gathers(own, doubles);
        communicators_that_come_back(own, doubles);
        handles_that_come_back(own, doubles);
    }
    return end();
}
