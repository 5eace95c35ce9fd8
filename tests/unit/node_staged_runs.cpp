// SPDX-License-Identifier: BSD-3-Clause
// Collectives through staging buffers that go on look by look, here of all ranks in one thread:
// whoever would wait would never return.
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "pipeline/node/staged_collectives.hpp"

using namespace vecmpi;
using namespace vecmpi::pipeline;
using namespace vecmpi::pipeline::node;

namespace {

int add_ints(const void* in, void* inout, int count, MPI_Datatype, MPI_Op) {
    for (int i = 0; i < count; ++i) {
        int a, b;
        std::memcpy(&a, static_cast<const char*>(in) + 4 * i, 4);
        std::memcpy(&b, static_cast<char*>(inout) + 4 * i, 4);
        b += a;
        std::memcpy(static_cast<char*>(inout) + 4 * i, &b, 4);
    }
    return MPI_SUCCESS;
}

// What one rank has done of a list of calls that all ranks make.
struct Rank {
    std::vector<StagingBuffer> buffer;  // the first one, and memory for its large ring
    std::unique_ptr<StagedCollectives> staged;
    std::vector<std::vector<int>> in, out;
    std::unique_ptr<Fiber> fiber = std::make_unique<Fiber>();
    bool is_running = false;
    size_t done = 0;

    Operands call(bool in_place) {
        auto* const to = reinterpret_cast<unsigned char*>(out[done].data());
        const auto* const from = reinterpret_cast<const unsigned char*>(in[done].data());
        if (in_place) out[done] = in[done];
        return {in_place ? to : from, to, static_cast<MPI_Count>(in[done].size()), MPI_INT, MPI_SUM,
                sizeof(int)};
    }
    bool look() {
        if (!std::exchange(is_running, true))
            fiber->begin(
                [](void* self) noexcept {
                    auto& rank = *static_cast<Rank*>(self);
                    rank.staged->barrier();
                    rank.staged->allreduce(rank.call(rank.done % 2 == 1),
                                           Transport::copy_in_copy_out);
                },
                this);
        if (!fiber->go_on()) return false;
        is_running = false;
        ++done;
        return true;
    }
};

const Doors nobody;

std::vector<Rank> ranks_with_buffers(int p, const RingShape& large) {
    std::vector<Rank> ranks(static_cast<size_t>(p));
    std::vector<StagingBuffer*> all;
    for (Rank& rank : ranks) {
        rank.buffer = std::vector<StagingBuffer>(1 + large.bytes() / sizeof(StagingBuffer) + 1);
        all.push_back(rank.buffer.data());
    }
    for (int r = 0; r < p; ++r) {
        Rank& rank = ranks[static_cast<size_t>(r)];
        rank.staged = std::make_unique<StagedCollectives>(r, all, large, nobody);
        REQUIRE(rank.fiber->make_stack());
        rank.staged->run_in(*rank.fiber);
    }
    return ranks;
}

// One piece, one round, several rounds, more rounds than slots.
constexpr size_t lengths[] = {1, 14, 1000, 1024, 1025, 5000, 12288, 100000, 3, 1200000, 7, 30000};

}  // namespace

TEST_CASE("reductions go on look by look, whichever rank looks") {
    const auto reduce_local = std::exchange(real.Reduce_local, add_ints);
    const int p = GENERATE(2, 3, 4, 5, 9);
    const RingWidth width = GENERATE(RingWidth::wide, RingWidth::narrow);
    const unsigned seed = std::random_device()();
    CAPTURE(p, seed, width);
    std::mt19937 random(seed);
    std::vector<Rank> ranks = ranks_with_buffers(p, large_ring(width, p));
    std::vector<std::vector<int>> sums;
    for (const size_t length : lengths) {
        std::vector<int> sum(length);
        for (Rank& rank : ranks) {
            std::vector<int> values(length);
            for (size_t i = 0; i < length; ++i)
                sum[i] += values[i] = static_cast<int>(random() % 1000);
            rank.in.push_back(std::move(values));
            rank.out.emplace_back(length, -1);
        }
        sums.push_back(std::move(sum));
    }
    size_t looks = 0, ended = 0;
    for (; ended < ranks.size() * sums.size() && looks < 200000; ++looks) {
        Rank& rank = ranks[random() % ranks.size()];
        if (rank.done < sums.size()) ended += rank.look();
    }
    CHECK(looks < 200000);
    for (const Rank& rank : ranks) CHECK(rank.out == sums);
    real.Reduce_local = reduce_local;
}

TEST_CASE("a rank that is alone so far has nothing to do, and says so") {
    const auto reduce_local = std::exchange(real.Reduce_local, add_ints);
    std::vector<Rank> ranks = ranks_with_buffers(3, wide_ring_of_few);
    for (Rank& rank : ranks) {
        rank.in.emplace_back(20000, 1);
        rank.out.emplace_back(20000, -1);
    }
    for (int i = 0; i < 10; ++i) CHECK(!ranks[0].look());
    for (int i = 0; i < 10; ++i) CHECK(!ranks[1].look());
    CHECK(ranks[0].out[0][0] == -1);
    for (int i = 0; i < 1000; ++i)
        for (Rank& rank : ranks)
            if (rank.done == 0) rank.look();
    for (const Rank& rank : ranks) CHECK(rank.out[0] == std::vector<int>(20000, 3));
    real.Reduce_local = reduce_local;
}

TEST_CASE("a fiber has room for what a signal handler of the program may need") {
    Fiber fiber;
    REQUIRE(fiber.make_stack());
    size_t sum = 0;
    fiber.begin(
        [](void* context) noexcept {
            volatile unsigned char memory[size_t{4} << 20];
            for (size_t i = 0; i < sizeof memory; i += 4096) memory[i] = 1;
            for (size_t i = 0; i < sizeof memory; i += 4096)
                *static_cast<size_t*>(context) += memory[i];
        },
        &sum);
    CHECK(fiber.go_on());
    CHECK(sum == 1024);
}
