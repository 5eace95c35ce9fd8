// SPDX-License-Identifier: BSD-3-Clause
// vecmpi/team.h: the extended butterfly for the threads of one process. Knows no MPI.
#include "vecmpi/team.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <memory>
#include <new>
#include <vector>

#include "base/api.hpp"
#include "pipeline/node/api/butterfly.hpp"
#include "pipeline/node/api/line_test.hpp"

namespace {

using namespace vecmpi;
using namespace vecmpi::pipeline::node;

// In the order of vecmpi/team.h.
constexpr kernels::ElementType types[] = {kernels::ElementType::i32, kernels::ElementType::u32,
                                          kernels::ElementType::i64, kernels::ElementType::u64,
                                          kernels::ElementType::f32, kernels::ElementType::f64};
constexpr kernels::ReduceOp ops[] = {kernels::ReduceOp::max,  kernels::ReduceOp::min,
                                     kernels::ReduceOp::sum,  kernels::ReduceOp::prod,
                                     kernels::ReduceOp::band, kernels::ReduceOp::bor,
                                     kernels::ReduceOp::bxor};
constexpr size_t number_of_types = std::size(types), number_of_ops = std::size(ops);
static_assert(number_of_types == VECMPI_TEAM_DOUBLE + 1 && number_of_ops == VECMPI_TEAM_BXOR + 1);

// The kernels of all pairs, by the numbers of vecmpi/team.h.
using Kernels = std::array<std::array<kernels::ReduceKernel, number_of_ops>, number_of_types>;

Kernels look_up_kernels() noexcept {
    Kernels kernels{};
    for (size_t type = 0; type < number_of_types; ++type)
        for (size_t op = 0; op < number_of_ops; ++op)
            kernels[type][op] = kernels::reduce_kernel(ops[op], types[type], kernels::best_isa());
    return kernels;
}

// What one thread alone writes, and what it writes for others, on cache lines of its own.
struct alignas(64) Member {
    uint64_t sequence = 0;   // of the last operation
    void* values = nullptr;  // of a long reduction; between two barriers
    WaitPolicy waiting = wait_policy(WaitMode::yield, Crowd::of_threads);  // until all have met
};

constexpr auto no_data = [](const kernels::Line&, const kernels::Line&, kernels::Line&) noexcept {};

// The CPUs that threads may use.
class CpuUnion {
  public:
    void add(const std::vector<int>& cpus) noexcept {
        for (const int cpu : cpus) {
            const auto at = static_cast<size_t>(cpu);
            if (at / 64 < words_.size())
                words_[at / 64].fetch_or(uint64_t{1} << at % 64, std::memory_order_relaxed);
        }
    }
    int size() const noexcept {
        int count = 0;
        for (const auto& word : words_)
            count += std::popcount(word.load(std::memory_order_relaxed));
        return count;
    }

  private:
    std::array<std::atomic<uint64_t>, 16> words_{};
};

// How wide a store of this process's CPUs is seen at once; 0: not tested yet. Relaxed: who finds 0
// tests again.
std::atomic<uint8_t> tested_width{0};

size_t bytes_of(vecmpi_team_type type) noexcept { return kernels::element_bytes(types[type]); }

}  // namespace

struct vecmpi_team {
    explicit vecmpi_team(int threads)
        : size(threads),
          members(new Member[static_cast<size_t>(threads)]),
          lines(new kernels::Line[static_cast<size_t>(threads) * butterfly_depth *
                                  static_cast<size_t>(plan(0).lines())]{}),
          kernels(look_up_kernels()) {
        stores[0] = kernels::line_store(kernels::LineWidth::bytes8, 0);
    }
    ButterflyPlan plan(int thread) const noexcept { return {size, thread}; }
    Member& member(int thread) noexcept { return members[static_cast<size_t>(thread)]; }

    void barrier(int thread) noexcept;
    void reduce_short(int thread, void* values, size_t count, size_t bytes,
                      const kernels::ReduceKernel& kernel) noexcept;
    void reduce_long(int thread, void* values, size_t count, size_t element,
                     const kernels::ReduceKernel& kernel) noexcept;

    // Called first in each of the program's calls.
    void begin(int thread) noexcept {
        if (member(thread).sequence == 0) [[unlikely]]
            meet(thread);
    }
    void meet(int thread) noexcept;
    template <class Combine>
    void take_part(int thread, kernels::Line& value, size_t bytes,
                   const Combine& combine) noexcept {
        const ButterflyPlan mine = plan(thread);
        const uint64_t sequence = ++member(thread).sequence;
        const auto per_set = static_cast<size_t>(mine.lines());
        kernels::Line* const lines_now = &lines[sequence % butterfly_depth * per_set];
        const auto board = [=](int who, int line) noexcept -> kernels::Line& {
            return lines_now[static_cast<size_t>(who) * butterfly_depth * per_set +
                             static_cast<size_t>(line)];
        };
        run_butterfly(
            mine, sequence, value, bytes, stores[bytes], board, combine,
            [&, waiting = &member(thread).waiting](const kernels::Line& line) noexcept {
                Ladder ladder(*waiting);
                while (!shows(line, sequence)) ladder.rest();
            },
            [](int) noexcept {});
    }

    const int size;
    const std::unique_ptr<Member[]> members;
    const std::unique_ptr<kernels::Line[]> lines;
    const Kernels kernels;
    // By bytes of data; all but the first from thread 0's first call on.
    std::array<kernels::StoreLine, kernels::line_data_bytes + 1> stores{};
    CpuUnion cpus;
    bool must_test = false;
    LineTestBoard test_board{};
};

void vecmpi_team::barrier(int thread) noexcept {
    kernels::Line nothing;
    take_part(thread, nothing, 0, no_data);
}

// In a thread's first call. The thread that makes the team may be bound to one CPU, as those of
// OpenMP often are: only the threads themselves know where they run. 1. On which CPUs? 2. Two of
// them find out how wide a line is stored. 3. All know.
void vecmpi_team::meet(int thread) noexcept {
    cpus.add(look_at_host().cpus);
    if (thread == 0) must_test = tested_width.load(std::memory_order_relaxed) == 0 && size > 1;
    barrier(thread);
    const bool crowded = size > cpus.size();
    if (must_test && !crowded && thread < 2) {
        const kernels::LineWidth width =
            test_line_widths(test_board, thread == 0 ? LineTestSide::writes : LineTestSide::reads,
                             member(thread).waiting);
        tested_width.store(static_cast<uint8_t>(width), std::memory_order_relaxed);
    }
    if (thread == 0) {
        const uint8_t width = tested_width.load(std::memory_order_relaxed);
        for (size_t bytes = 1; bytes < stores.size(); ++bytes)
            stores[bytes] = kernels::line_store(
                width ? kernels::LineWidth{width} : kernels::promised_line_width(), bytes);
    }
    barrier(thread);
    member(thread).waiting =
        wait_policy(settings().wait, crowded ? Crowd::of_threads : Crowd::none);
}

void vecmpi_team::reduce_short(int thread, void* values, size_t count, size_t bytes,
                               const kernels::ReduceKernel& kernel) noexcept {
    kernels::Line value;
    kernels::copy_bytes(data_of(value, bytes), values, bytes);
    take_part(
        thread, value, bytes,
        [&](const kernels::Line& left, const kernels::Line& right, kernels::Line& into) noexcept {
            kernel.to(data_of(left, bytes), data_of(right, bytes), data_of(into, bytes), count);
        });
    kernels::copy_bytes(values, data_of(value, bytes), bytes);
}

// Each thread reduces a slice of all threads' values, in their order, and puts the result into the
// values of all. 1. Where are they? 2. The slice, in pieces that stay in the cache. 3. All are
// done.
void vecmpi_team::reduce_long(int thread, void* values, size_t count, size_t element,
                              const kernels::ReduceKernel& kernel) noexcept {
    constexpr size_t piece_bytes = 16384;
    const auto threads = static_cast<size_t>(size), me = static_cast<size_t>(thread);
    members[me].values = values;
    barrier(thread);
    const auto of = [&](size_t who, size_t index) noexcept {
        return static_cast<char*>(members[who].values) + index * element;
    };
    const size_t last = count * (me + 1) / threads, step = piece_bytes / element;
    for (size_t first = count * me / threads; first < last; first += step) {
        const size_t length = std::min(step, last - first);
        char* const sum = of(0, first);
        for (size_t who = 1; who < threads; ++who) kernel.to(sum, of(who, first), sum, length);
        for (size_t who = 1; who < threads; ++who)
            kernels::copy_bytes(of(who, first), sum, length * element);
    }
    barrier(thread);
}

vecmpi_team* vecmpi_team_create(int threads) {
    constexpr int most_threads = 65536;
    if (threads < 1 || threads > most_threads) {
        errno = EINVAL;
        return nullptr;
    }
    try {
        return new vecmpi_team(threads);
    } catch (const std::bad_alloc&) {
        errno = ENOMEM;
        return nullptr;
    }
}

void vecmpi_team_free(vecmpi_team* team) { delete team; }

void vecmpi_team_barrier(vecmpi_team* team, int thread) {
    team->begin(thread);
    team->barrier(thread);
}

int vecmpi_team_allreduce(vecmpi_team* team, int thread, void* values, long count,
                          vecmpi_team_type type, vecmpi_team_op op) {
    if (static_cast<size_t>(type) >= number_of_types || static_cast<size_t>(op) >= number_of_ops ||
        count < 0)
        return EINVAL;
    const kernels::ReduceKernel& kernel = team->kernels[type][op];
    if (kernel.to == nullptr) return EINVAL;
    team->begin(thread);
    const auto elements = static_cast<size_t>(count);
    const size_t element = bytes_of(type);
    if (elements <= kernels::line_data_bytes / element)
        team->reduce_short(thread, values, elements, elements * element, kernel);
    else
        team->reduce_long(thread, values, elements, element, kernel);
    return 0;
}
