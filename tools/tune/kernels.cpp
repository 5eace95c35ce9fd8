// SPDX-License-Identifier: BSD-3-Clause
// vecmpi-tune-kernels: what vecmpi-tune measures without MPI, as JSON lines. It times kernels by
// turns and decides nothing.
//
//   cell   one kernel and the others that could do its work, on one layout or vector
//   round  a sample of each of them, one after the other
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/api/profile.hpp"
#include "kernels/api.hpp"
#include "pipeline/schedules/cost.hpp"
#include "samples.hpp"

namespace vecmpi::tune {
namespace {

struct Effort {
    int rounds;
    double sample_ns;  // at least; shorter ones drown in the clock and in interrupts
};
constexpr Effort usual{31, 200e3}, quick{5, 10e3};
Effort effort = usual;

double now_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

double ns_of(const std::function<void()>& call, long calls) {
    const double begun = now_ns();
    for (long i = 0; i < calls; ++i) call();
    return (now_ns() - begun) / static_cast<double>(calls);
}

long calls_of_sample(const std::function<void()>& call) {
    long calls = 1;
    while (ns_of(call, calls) * static_cast<double>(calls) < effort.sample_ns) calls *= 2;
    return calls;
}

struct Candidate {
    std::string name;
    std::function<void()> call;
};

// The order of the candidates turns from round to round.
void print_cell(const std::string& key, const std::string& what, const std::string& built_in,
                const std::vector<Candidate>& candidates) {
    std::vector<std::vector<double>> times(candidates.size());
    std::vector<long> calls;
    for (const Candidate& one : candidates) calls.push_back(calls_of_sample(one.call));
    for (size_t round = 0; round < static_cast<size_t>(effort.rounds); ++round)
        for (size_t i = 0; i < candidates.size(); ++i) {
            const size_t turn = (i + round) % candidates.size();
            times[turn].push_back(ns_of(candidates[turn].call, calls[turn]));
        }
    std::printf("{\"cell\": %s, \"what\": %s, \"built_in\": %s, \"ns\": {", quote_json(key).c_str(),
                quote_json(what).c_str(), quote_json(built_in).c_str());
    for (size_t i = 0; i < candidates.size(); ++i) {
        std::printf("%s%s: [", i == 0 ? "" : ", ", quote_json(candidates[i].name).c_str());
        for (size_t round = 0; round < times[i].size(); ++round)
            std::printf("%s%.6g", round == 0 ? "" : ", ", times[i][round]);
        std::printf("]");
    }
    std::printf("}}\n");
    std::fflush(stdout);
}

// Zeros, aligned to a register.
class Memory {
  public:
    explicit Memory(size_t bytes) : memory_(new char[bytes + 64]()) {}
    char* data() const {
        const auto address = reinterpret_cast<uintptr_t>(memory_.get());
        return memory_.get() + (64 - address % 64) % 64;
    }

  private:
    std::unique_ptr<char[]> memory_;
};

std::string size_text(size_t bytes) { return std::to_string(bytes >> 10) + " KiB"; }

// ---- reductions
// ------------------------------------------------------------------------------------

struct Reduction {
    const char* family;
    const char* name;
    kernels::ReduceOp op;
    kernels::ElementType type;
};
constexpr Reduction reductions[] = {
    {"arithmetic", "SUM float", kernels::ReduceOp::sum, kernels::ElementType::f32},
    {"arithmetic", "SUM double", kernels::ReduceOp::sum, kernels::ElementType::f64},
    {"arithmetic", "MAX int", kernels::ReduceOp::max, kernels::ElementType::i32},
    {"half", "SUM bfloat16", kernels::ReduceOp::sum, kernels::ElementType::bf16},
    {"half", "MAX float16", kernels::ReduceOp::max, kernels::ElementType::f16},
    {"logical", "BAND int", kernels::ReduceOp::band, kernels::ElementType::i32},
    {"logical", "LOR char", kernels::ReduceOp::lor, kernels::ElementType::i8},
    {"complex", "SUM double complex", kernels::ReduceOp::sum, kernels::ElementType::c64},
    {"complex", "PROD float complex", kernels::ReduceOp::prod, kernels::ElementType::c32},
    {"pairs", "MAXLOC double int", kernels::ReduceOp::maxloc, kernels::ElementType::f64_i32},
    {"pairs", "MINLOC float int", kernels::ReduceOp::minloc, kernels::ElementType::f32_i32},
};
constexpr size_t vector_bytes[] = {size_t{16} << 10, size_t{256} << 10};

void measure_reductions() {
    const Memory in(vector_bytes[1]), inout(vector_bytes[1]);
    for (const Reduction& one : reductions)
        for (const size_t bytes : vector_bytes) {
            std::vector<Candidate> candidates;
            for (const kernels::Isa isa :
                 {kernels::Isa::avx512, kernels::Isa::avx2, kernels::Isa::sse4, kernels::Isa::sve,
                  kernels::Isa::neon}) {
                const kernels::ReduceKernel kernel = kernels::reduce_kernel(one.op, one.type, isa);
                if (kernel.isa != isa || kernel.into == nullptr) continue;  // not on this CPU
                const size_t count = bytes / kernels::element_bytes(one.type);
                candidates.push_back({kernels::isa_name(isa), [&in, &inout, kernel, count] {
                                          kernel.into(in.data(), inout.data(), count);
                                      }});
            }
            const char* const built_in = kernels::isa_name(
                kernels::reduce_kernel(one.op, one.type, kernels::best_isa()).isa);
            if (candidates.size() > 1)
                print_cell(std::string("reduce.") + one.family,
                           one.name + (", " + size_text(bytes)), built_in, candidates);
        }
}

// ---- scattered blocks
// --------------------------------------------------------------------------------

constexpr size_t stream_bytes[] = {size_t{8} << 10, size_t{64} << 10};
constexpr const char* yes_and_no[] = {"no", "yes"};

struct BlockClass {
    const char* word;
    int64_t bytes;
};
constexpr BlockClass lengths[] = {{"1", 1},   {"2", 2},   {"4", 4},    {"8", 8},
                                  {"16", 16}, {"32", 32}, {"long", 96}};
constexpr const char* distance_words[] = {"dense", "open", "sparse", "far"};

std::string key_of(const char* kernel, const BlockClass& length, Distance distance) {
    return std::string(kernel) + "." + length.word + "." +
           distance_words[static_cast<size_t>(distance)];
}

kernels::PackLimits only(kernels::PackWay way) {
    kernels::PackLimits limits{kernels::best_isa(), false, way, {}};
    return limits;
}
kernels::PackLimits as_built_in() {
    return {kernels::best_isa(), true, kernels::PackWay::block, {}};
}

constexpr const char* permutes[] = {"pack.permute", "unpack.permute"};  // by direction
constexpr const char* gathers[] = {"pack.gather", "unpack.gather"};

// One block a record, or three whose mean length and distance are the same.
std::vector<std::vector<kernels::Block>> shapes(int64_t bytes, int64_t distance) {
    std::vector<std::vector<kernels::Block>> all{{{0, bytes}}};
    if (bytes > 1)
        all.push_back(
            {{0, bytes / 2}, {distance, bytes}, {2 * distance, bytes + bytes - bytes / 2}});
    return all;
}

void measure_records(const BlockClass& length, Distance distance_class) {
    const int64_t distance = distance_of(distance_class, length.bytes);
    for (const std::vector<kernels::Block>& blocks : shapes(length.bytes, distance)) {
        const int64_t stride = distance * static_cast<int64_t>(blocks.size());
        const kernels::RecordCopier by_blocks(blocks, stride, only(kernels::PackWay::block));
        const kernels::RecordCopier by_permutes(blocks, stride, only(kernels::PackWay::permute));
        const kernels::RecordCopier built_in(blocks, stride, as_built_in());
        for (const kernels::Direction direction :
             {kernels::Direction::pack, kernels::Direction::unpack}) {
            if (by_permutes.way(direction) != kernels::PackWay::permute) continue;
            for (const size_t bytes : stream_bytes) {
                const size_t records = std::max<size_t>(bytes / by_blocks.packed_bytes(), 1);
                const Memory memory(records * static_cast<size_t>(stride)), packed(bytes);
                const auto by = [&](const kernels::RecordCopier& copier) {
                    return [&, direction, records] {
                        copier.copy(direction, packed.data(), memory.data(), records);
                    };
                };
                print_cell(key_of(permutes[static_cast<size_t>(direction)], length, distance_class),
                           std::to_string(blocks.size()) + " blocks a record, " + size_text(bytes),
                           yes_and_no[built_in.way(direction) == kernels::PackWay::permute],
                           {{"no", by(by_blocks)}, {"yes", by(by_permutes)}});
            }
        }
    }
}

void measure_table(const BlockClass& length, Distance distance_class) {
    const int64_t distance = distance_of(distance_class, length.bytes);
    const auto block_bytes = static_cast<size_t>(length.bytes);
    for (const bool rising : {true, false})
        for (const size_t stream : stream_bytes) {
            const auto offsets = offsets_of(length.bytes, distance, stream, rising);
            const kernels::TableCopier by_blocks(offsets, block_bytes,
                                                 only(kernels::PackWay::block));
            const kernels::TableCopier by_gathers(offsets, block_bytes,
                                                  only(kernels::PackWay::gather));
            const kernels::TableCopier built_in(offsets, block_bytes, as_built_in());
            if (by_gathers.way(kernels::Direction::pack) != kernels::PackWay::gather) return;
            const int64_t last = *std::max_element(offsets.begin(), offsets.end());
            const size_t bytes = by_blocks.packed_bytes();
            const Memory memory(static_cast<size_t>(last + length.bytes)), packed(bytes);
            for (const kernels::Direction direction :
                 {kernels::Direction::pack, kernels::Direction::unpack}) {
                const auto by = [&](const kernels::TableCopier& copier) {
                    return [&, direction] {
                        copier.copy(direction, packed.data(), memory.data(), 0, bytes);
                    };
                };
                print_cell(key_of(gathers[static_cast<size_t>(direction)], length, distance_class),
                           (rising ? "rising, " : "shuffled, ") + size_text(stream),
                           yes_and_no[built_in.way(direction) == kernels::PackWay::gather],
                           {{"no", by(by_blocks)}, {"yes", by(by_gathers)}});
            }
        }
}

// Packed and unpacked: one answer holds for both.
template <class Copier>
std::function<void()> both_ways(const Copier& copy) {
    return [copy] {
        copy(kernels::Direction::pack);
        copy(kernels::Direction::unpack);
    };
}

void measure_masked(const BlockClass& length, Distance distance_class) {
    if (kernels::best_isa() != kernels::Isa::avx512 || length.bytes < 2 || length.bytes > 32)
        return;
    const int64_t distance = distance_of(distance_class, length.bytes);
    for (const size_t stream : stream_bytes) {
        const std::vector<kernels::Block> blocks = blocks_of(length.bytes, distance, stream);
        const kernels::TableCopier plain(blocks, only(kernels::PackWay::block)),
            masked(blocks, as_built_in());
        const size_t bytes = plain.packed_bytes();
        const Memory memory(static_cast<size_t>(blocks.back().offset + 2 * length.bytes));
        const Memory packed(bytes);
        const auto by = [&](const kernels::TableCopier& copier) {
            return both_ways([&](kernels::Direction direction) {
                copier.copy(direction, packed.data(), memory.data(), 0, bytes);
            });
        };
        print_cell(key_of("move.masked", length, distance_class), size_text(stream), "yes",
                   {{"no", by(plain)}, {"yes", by(masked)}});
    }
}

// Square parts of a matrix: columns beside each other, or every second one.
void measure_columns(const BlockClass& length, Distance distance_class) {
    if (length.bytes > 16 || distance_class == Distance::dense || distance_class == Distance::open)
        return;
    for (const int64_t apart : {1, 2})
        for (const size_t stream : stream_bytes) {
            size_t side = 16;
            while (4 * side * side * static_cast<size_t>(length.bytes) <= stream) side *= 2;
            const int64_t row = static_cast<int64_t>(side) * apart * length.bytes;
            const kernels::Grid grid{side, side, apart * length.bytes,
                                     distance_class == Distance::far ? 4096 + 64 + row : row,
                                     static_cast<size_t>(length.bytes)};
            const bool fits =
                vecmpi::distance_class(length.bytes, grid.row_stride) == distance_class;
            if (!fits || (length.bytes < 4 && (row < 64 || !kernels::is_transposed_in_registers(
                                                               grid, kernels::best_isa()))))
                continue;
            const kernels::RecordCopier column({{0, length.bytes}}, grid.row_stride, as_built_in());
            const Memory memory(static_cast<size_t>(grid.row_stride) * side);
            const Memory packed(side * side * grid.bytes);
            const auto by_grid = both_ways([&](kernels::Direction direction) {
                kernels::copy_grid(direction, packed.data(), memory.data(), grid,
                                   kernels::best_isa());
            });
            const auto by_columns = both_ways([&](kernels::Direction direction) {
                for (size_t i = 0; i < side; ++i)
                    column.copy(direction, packed.data() + i * side * grid.bytes,
                                memory.data() + static_cast<int64_t>(i) * grid.column_stride, side);
            });
            print_cell(key_of("move.columns", length, distance_class),
                       std::to_string(side) + " columns " + (apart == 1 ? "beside" : "apart"),
                       "yes", {{"no", by_columns}, {"yes", by_grid}});
        }
}

void measure_pack() {
    for (const BlockClass& length : lengths)
        for (const Distance distance :
             {Distance::dense, Distance::open, Distance::sparse, Distance::far}) {
            measure_records(length, distance);
            measure_table(length, distance);
            measure_masked(length, distance);
            measure_columns(length, distance);
        }
}

// ---- what the tool asks
// ----------------------------------------------------------------------------------

void print_host() {
    const std::string cpu = host_model();
    std::string places;
    for (const std::string& place :
         profile_places(std::getenv("XDG_CONFIG_HOME"), std::getenv("HOME"), profile_name(cpu)))
        places += (places.empty() ? "" : ", ") + quote_json(place);
    const pipeline::NetworkConstants network = pipeline::network_constants({});
    std::printf(
        "{\"cpu\": %s, \"isa\": \"%s\", \"places\": [%s], \"network\": {\"latency\": %.9g, "
        "\"bandwidth\": %.9g, \"overhead\": %.9g}}\n",
        quote_json(cpu).c_str(), kernels::isa_name(kernels::best_isa()), places.c_str(),
        1e3 * network.latency_us, 8 * network.bytes_per_us, 1e3 * network.overhead_us);
}

// As the library would read it; 1 and the library's line where it would not use it.
int check(const char* file) {
    const LoadedProfile read =
        read_profile(file, host_model(), kernels::isa_name(kernels::best_isa()), nullptr);
    if (!read.problem.empty()) std::printf("%s\n", read.problem.c_str());
    return read.problem.empty() ? 0 : 1;
}

int run(std::vector<std::string_view> words) {
    if (words.size() == 2 && words[0] == "check") return check(words[1].data());
    if (words.size() == 2 && words[1] == "--quick") {
        effort = quick;
        words.pop_back();
    }
    const std::string_view part = words.size() == 1 ? words[0] : "";
    if (part == "host")
        print_host();
    else if (part == "kernels")
        measure_reductions();
    else if (part == "pack")
        measure_pack();
    else
        std::fprintf(stderr,
                     "vecmpi-tune-kernels: accepted are host, kernels [--quick], pack "
                     "[--quick], check FILE (this program is started by vecmpi-tune)\n");
    return part == "host" || part == "kernels" || part == "pack" ? 0 : 2;
}

}  // namespace
}  // namespace vecmpi::tune

int main(int argc, char** argv) { return vecmpi::tune::run({argv + 1, argv + argc}); }
