// SPDX-License-Identifier: BSD-3-Clause
#include "plan_making.hpp"

#include <algorithm>
#include <cstring>

#include "offload/api.hpp"

namespace vecmpi::datatype {

kernels::PackLimits pack_limits(PackMode mode, IsaChoice isa, const PackTable& table) noexcept {
    kernels::PackLimits limits;  // IsaChoice::off: plain loops
    if (isa == IsaChoice::automatic)
        limits.isa = kernels::best_isa();
    else if (isa != IsaChoice::off)  // both enums have the sets in the same order
        limits.isa =
            static_cast<kernels::Isa>(static_cast<int>(isa) - static_cast<int>(IsaChoice::scalar));
    limits.any_way = mode == PackMode::automatic || mode == PackMode::on;
    limits.table = table;
    if (mode == PackMode::permute) limits.only = kernels::PackWay::permute;
    if (mode == PackMode::gather) limits.only = kernels::PackWay::gather;
    return limits;
}

std::unique_ptr<PlanSteps> make_steps(const TypeMap& map, int64_t extent,
                                      const kernels::PackLimits& limits, Counter* why) {
    *why = Counter::decline_table;
    auto steps = std::make_unique<PlanSteps>();
    PlanRoom room;
    steps->copies = plan_copies(map, extent, limits, room);
    // A single element of these is moved otherwise than many: a record by itself, a column as a
    // row. All others are moved alike, and their tables are kept once.
    const PackStep::Kind kind = steps->copies.kind;
    if (kind == PackStep::Kind::records || kind == PackStep::Kind::grid)
        steps->one = plan_once(map, limits, room);
    if (room.is_exceeded) return nullptr;
    steps->bytes = map.bytes;
    steps->disjoint_copies = disjoint_copies(map, extent);
    steps->isa = limits.isa;
    return steps;
}

// 512 KiB of long blocks take the library 20 us, and of small ones up to 2 ms.
uint64_t library_ns(int64_t bytes) noexcept {
    constexpr uint64_t call_ns = 128, bytes_in_ns = 16;
    return call_ns + static_cast<uint64_t>(bytes) / bytes_in_ns;
}

size_t worth_describing(uint64_t spent_ns) noexcept {
    constexpr uint64_t share = 20, plan_ns = 4'000, entry_ns = 32;
    const uint64_t affordable_ns = spent_ns / share;
    if (affordable_ns <= plan_ns) return 0;
    return std::min<size_t>((affordable_ns - plan_ns) / entry_ns, most_described);
}

namespace {

// Size and true bounds must be those that the library gives for the type.
bool agrees_with_library(const TypeMap& map, MPI_Datatype type) noexcept {
    MPI_Count size = 0, low = 0, extent = 0;
    real.Type_size_x(type, &size);
    real.Type_get_true_extent_x(type, &low, &extent);
    const Bounds bounds = bounds_of(map);
    return map.bytes == size && bounds.low == low && bounds.high == low + extent;
}

// MPICH 4.0.2 ends each piece of a message after a whole value. It fails or hangs where a piece
// that we packed ends within one.
int64_t cut_bytes(const TypeTree& tree, int64_t bytes) noexcept {
    constexpr int64_t much_less_than_a_piece = 512;
    const int64_t value = value_bytes(tree);
    return value != 0 ? value : bytes <= much_less_than_a_piece ? bytes : 0;
}

std::unique_ptr<HeldPlan> plan_of(MPI_Datatype type, const TypeTree& tree, Counter* why) {
    Described how = Described::fully;
    const std::optional<TypeMap> map = decode(tree, &how);
    *why = how == Described::too_large ? Counter::decline_table : Counter::decline_combiner;
    if (!map) return nullptr;
    *why = Counter::decline_slower;
    const bool is_plain_copy = map->kind == TypeMap::Kind::dense && tree.extent == map->bytes;
    if (map->kind == TypeMap::Kind::empty || is_plain_copy) return nullptr;
    *why = Counter::decline_plan;
    if (!agrees_with_library(*map, type)) return nullptr;
    const PackTable& table = process_profile().profile.pack;
    auto steps =
        make_steps(*map, tree.extent, pack_limits(settings().pack, settings().isa, table), why);
    if (!steps) return nullptr;
    auto held = std::make_unique<HeldPlan>(type, std::move(steps), digest_of(tree));
    held->cut_bytes = cut_bytes(tree, map->bytes);
    if (!is_weighed())
        for (auto& trials : held->trials)
            for (Trial& trial : trials) award(trial, Packer::plan);
    return held;
}

}  // namespace

MadePlan make_plan(MPI_Datatype type, uint64_t spent_ns) {
    MadePlan made{.held = nullptr, .why = Counter::decline_gpu};
    if (offload::gpu_runtime_is_loaded()) return made;
    const size_t entries = is_weighed() ? worth_describing(spent_ns) : most_described;
    TypeTree tree;
    const Described described = describe(type, tree, entries);
    made.why = Counter::decline_combiner;
    if (described == Described::fully) made.held = plan_of(type, tree, &made.why);
    if (described != Described::too_large) return made;
    made.why = Counter::decline_table;
    made.is_final = entries >= most_described;
    return made;
}

bool packs_to(const PackPlan& plan, void* memory, MPI_Count count, MPI_Count first, MPI_Count bytes,
              const char* expected) noexcept {
    char packed[compared_at_once];
    for (MPI_Count at = 0; at < bytes; at += compared_at_once) {
        const MPI_Count part = std::min(bytes - at, compared_at_once);
        plan.copy(kernels::Direction::pack, packed, memory, count, first + at, part);
        if (std::memcmp(packed, expected + at, static_cast<size_t>(part)) != 0) return false;
    }
    return true;
}

// ---- the plan ----------------------------------------------------------------------------------

PackPlan::PackPlan(std::unique_ptr<const PlanSteps> steps) noexcept
    : steps_(std::move(steps)),
      bytes_(static_cast<MPI_Count>(steps_->bytes)),
      most_to_unpack_(static_cast<MPI_Count>(steps_->disjoint_copies)) {}

PackPlan::~PackPlan() = default;

void PackPlan::copy(kernels::Direction direction, void* part, void* memory, MPI_Count count,
                    MPI_Count first, MPI_Count bytes) const noexcept {
    const PackStep& step = steps_->of(count);
    carry_out(step, {direction, steps_->isa}, static_cast<char*>(part), static_cast<char*>(memory),
              step.rounds * count, first, bytes);
}

void PackPlan::copy_all(kernels::Direction direction, void* packed, void* memory,
                        MPI_Count count) const noexcept {
    static constexpr Counter counters[] = {Counter::packed_by_blocks, Counter::packed_by_permutes,
                                           Counter::packed_by_gathers,
                                           Counter::packed_by_transposes};
    copy(direction, packed, memory, count, 0, count * bytes_);
    if (counting.load(std::memory_order_relaxed) != 0) [[unlikely]] {
        vecmpi::count(counters[static_cast<size_t>(moved_by(steps_->of(count), direction))]);
    }
}

}  // namespace vecmpi::datatype
