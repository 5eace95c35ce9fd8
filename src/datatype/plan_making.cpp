// SPDX-License-Identifier: BSD-3-Clause
#include "plan_making.hpp"

#include <algorithm>
#include <cstring>

#include "base/api/needs.hpp"
#include "envelope.hpp"
#include "external32.hpp"
#include "offload/api.hpp"
#include "type_rows.hpp"

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

std::unique_ptr<PlanSteps> make_steps(const TypeMap& type_map, int64_t extent,
                                      const kernels::PackLimits& limits, Counter* why) {
    *why = Counter::decline_table;
    auto steps = std::make_unique<PlanSteps>();
    PlanRoom room;
    steps->lowest = bounds_of(type_map).low;
    const TypeMap map = moved(type_map, -steps->lowest);
    steps->copies = plan_copies(map, extent, limits, room);
    // A single element of these is moved otherwise than many: a record by itself, a column as a
    // row. All others are moved alike, and their tables are kept once.
    const PackStep::Kind kind = steps->copies.kind;
    if (kind == PackStep::Kind::records || kind == PackStep::Kind::grid)
        steps->one = plan_once(map, limits, room);
    if (room.is_exceeded) return nullptr;
    steps->memory_bytes = sizeof(PlanSteps) + most_plan_bytes - room.bytes;
    steps->bytes = map.bytes;
    steps->disjoint_copies = disjoint_copies(map, extent);
    steps->isa = limits.isa;
    return steps;
}

uint64_t first_worth_ns() noexcept { return is_weighed() ? least_worth_ns : 1; }

size_t worth_describing(uint64_t spent_ns) noexcept {
    const uint64_t affordable_ns = spent_ns / worth_of_plan;
    if (affordable_ns <= plan_ns) return 0;
    return std::min<size_t>((affordable_ns - plan_ns) / entry_ns, most_described);
}

bool agrees_with_library(const TypeMap& map, MPI_Datatype type) noexcept {
    MPI_Count size = 0, low = 0, extent = 0;
    real.Type_size_x(type, &size);
    real.Type_get_true_extent_x(type, &low, &extent);
    const Bounds bounds = bounds_of(map);
    return map.bytes == size && bounds.low == low && bounds.high == low + extent;
}

namespace {

PlanReference plan_of(MPI_Datatype type, const TypeTree& tree, DataForm form, Counter* why) {
    const TypeDigest digest = digest_of(tree);
    if (PlanReference known = plan_store().find(digest)) return known;
    Described how = Described::fully;
    const std::optional<TypeMap> map = decode(tree, &how);
    *why = how == Described::too_large ? Counter::decline_table : Counter::decline_combiner;
    if (!map) return nullptr;
    *why = Counter::decline_slower;
    const bool is_plain_copy = map->kind == TypeMap::Kind::dense && tree.extent == map->bytes;
    if (map->kind == TypeMap::Kind::empty) return nullptr;
    constexpr int64_t reversed = 16;
    const ExternalValue* const value = external_value(only_value_type(tree, reversed));
    if (is_plain_copy &&
        (form == DataForm::native || value == nullptr || reversed_width(*value) == 0))
        return nullptr;
    *why = Counter::decline_plan;
    if (!agrees_with_library(*map, type)) return nullptr;
    std::optional<Padding> padding = padding_of(tree);
    *why = Counter::decline_table;
    if (!padding) return nullptr;
    const PackTable& table = process_profile().profile.pack;
    auto steps =
        make_steps(*map, tree.extent, pack_limits(settings().pack, settings().isa, table), why);
    if (!steps) return nullptr;
    auto plan = std::make_unique<KeptPlan>(std::move(steps), digest);
    plan->padding = std::move(*padding);
    plan->mean_block_bytes = map->bytes / number_of_blocks(*map);
    plan->cut_bytes = cut_bytes(tree);
    constexpr int64_t in_pieces = 8;  // pieces that the library sends end at multiples of it
    plan->value_type = only_value_type(tree, in_pieces);
    if (plan->value_type != MPI_DATATYPE_NULL)
        plan->value_bytes = offload::size_of(plan->value_type);
    plan->external_value = value;
    plan->serves_files = has_one_level(tree);
    if (!is_weighed()) plan->award_all(Packer::plan);
    if (is_plain_copy)  // but in external32
        for (const PackedIn use :
             {PackedIn::call, PackedIn::message, PackedIn::file, PackedIn::file_of_all})
            plan->award_use(use, Packer::library);
    *why = Counter::decline_table;
    return plan_store().keep(std::move(plan), tree);
}

MadePlan find_or_make_plan(MPI_Datatype type, uint64_t spent_ns, DataForm form, TypeTree& tree) {
    MadePlan made{.plan = nullptr, .why = Counter::decline_gpu};
    if (offload::gpu_runtime_is_loaded()) return made;
    const size_t entries = is_weighed() ? worth_describing(spent_ns) : most_described;
    const Described described = describe(type, tree, entries);
    made.why = Counter::decline_combiner;
    if (described == Described::fully) made.plan = plan_of(type, tree, form, &made.why);
    if (described != Described::too_large) return made;
    made.why = Counter::decline_table;
    made.is_final = entries >= most_described;
    return made;
}

// Where a GPU runtime is loaded nobody has asked what the type is.
void log_made(MPI_Datatype type, const TypeTree& tree, const MadePlan& made, uint64_t spent_ns,
              uint64_t taken_ns) {
    constexpr double us = 1e-3;
    const auto handle = library::shown_bits(type);
    const double spent_us = us * static_cast<double>(spent_ns);
    const std::string how = made_as(tree);
    if (made.plan)
        log_line(
            LogLevel::debug,
            "datatype %08llx, %s, has a plan of %zu bytes, after %.1f us of the library's: made "
            "in %.1f us",
            handle, how.c_str(), made.plan->memory_bytes, spent_us,
            us * static_cast<double>(taken_ns));
    else
        log_line(LogLevel::debug,
                 "datatype %08llx, %s, has no plan%s, after %.1f us of the library's: %s", handle,
                 how.c_str(), made.is_final ? "" : " yet", spent_us,
                 made.is_final ? text_of(made.why).text : "its description is too long for that");
}

}  // namespace

MadePlan make_plan(MPI_Datatype type, uint64_t spent_ns, DataForm form) {
    const uint64_t begun_ns = monotonic_ns();
    TypeTree tree;
    MadePlan made = find_or_make_plan(type, spent_ns, form, tree);
    if (log_wants(LogLevel::debug)) log_made(type, tree, made, spent_ns, monotonic_ns() - begun_ns);
    return made;
}

PlanReference known_plan(MPI_Datatype type) {
    MPI_Count size = 0, extent = 0;
    if (plan_store().is_empty() || !read_size(type, &size, &extent) ||
        !plan_store().may_have(size, extent))
        return nullptr;
    if (const std::optional<TypeDigest> digest = digest_of_short(type))
        return plan_store().find(*digest);
    TypeTree tree;
    return describe(type, tree) == Described::fully ? plan_store().find(digest_of(tree)) : nullptr;
}

void prove(const KeptPlan& kept, bool is_right) noexcept {
    using Proof = KeptPlan::Proof;
    Proof open = Proof::open;
    if (is_right) {
        kept.proof.compare_exchange_strong(open, Proof::shown);
        set_need(Need::typed_messages, true);
    } else if (kept.proof.exchange(Proof::refuted) != Proof::refuted) {
        log_line(LogLevel::info,
                 "a datatype of %lld bytes stays with the library: its bytes are not ours",
                 static_cast<long long>(kept.plan.bytes()));
    }
}

void prove_external(const KeptPlan& kept, bool is_right) noexcept {
    using Proof = KeptPlan::Proof;
    Proof open = Proof::open;
    if (is_right)
        kept.external_proof.compare_exchange_strong(open, Proof::shown);
    else if (kept.external_proof.exchange(Proof::refuted) != Proof::refuted)
        log_line(LogLevel::info,
                 "a datatype of %lld bytes stays with the library in external32: its bytes are not "
                 "ours",
                 static_cast<long long>(kept.plan.bytes()));
}

bool packs_to(const KeptPlan& kept, void* memory, MPI_Count count, MPI_Count first, MPI_Count bytes,
              const char* expected, size_t width) noexcept {
    char packed[compared_at_once], values[compared_at_once];
    for (MPI_Count at = 0; at < bytes; at += compared_at_once) {
        const MPI_Count part = std::min(bytes - at, compared_at_once);
        kept.plan.copy(kernels::Direction::pack, packed, memory, count, first + at, part);
        kept.plan.reverse(packed, packed, part, width);
        const char* theirs = expected + at;
        if (!kept.padding.blocks.empty()) {
            std::memcpy(values, theirs, static_cast<size_t>(part));
            blank_padding(kept.padding, packed, first + at, part);
            blank_padding(kept.padding, values, first + at, part);
            theirs = values;
        }
        if (std::memcmp(packed, theirs, static_cast<size_t>(part)) != 0) return false;
    }
    return true;
}

// ---- the plan ----------------------------------------------------------------------------------

namespace {

// `from` may be MPI_BOTTOM, which is no pointer to count from.
char* address_at(void* from, int64_t offset) noexcept {
    return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(from) +
                                   static_cast<uintptr_t>(offset));
}

}  // namespace

PackPlan::PackPlan(std::unique_ptr<const PlanSteps> steps) noexcept
    : steps_(std::move(steps)),
      bytes_(static_cast<MPI_Count>(steps_->bytes)),
      most_to_unpack_(static_cast<MPI_Count>(steps_->disjoint_copies)) {}

PackPlan::~PackPlan() = default;

MPI_Count PackPlan::lowest() const noexcept { return steps_->lowest; }

void PackPlan::copy(kernels::Direction direction, void* part, void* memory, MPI_Count count,
                    MPI_Count first, MPI_Count bytes) const noexcept {
    const PackStep& step = steps_->of(count);
    carry_out(step, {direction, steps_->isa}, static_cast<char*>(part),
              address_at(memory, steps_->lowest), step.rounds * count, first, bytes);
}

void PackPlan::reverse(void* to, const void* from, MPI_Count bytes, size_t width) const noexcept {
    if (width > 1) kernels::reverse_bytes(to, from, static_cast<size_t>(bytes), width, steps_->isa);
}

void PackPlan::copy_all(kernels::Direction direction, void* packed, void* memory,
                        MPI_Count count) const noexcept {
    copy(direction, packed, memory, count, 0, count * bytes_);
    count_moved(direction, count);
}

// Dense values in one pass, others in parts that stay in the caches between two.
void PackPlan::copy_all_reversed(kernels::Direction direction, void* packed, void* memory,
                                 MPI_Count count, size_t width) const noexcept {
    if (width <= 1) return copy_all(direction, packed, memory, count);
    const bool packs = direction == kernels::Direction::pack;
    const MPI_Count all = count * bytes_;
    if (const PackStep& step = steps_->of(count); step.kind == PackStep::Kind::dense) {
        char* const memory_values = address_at(memory, steps_->lowest + step.offset);
        reverse(packs ? packed : memory_values, packs ? memory_values : packed, all, width);
        return count_moved(direction, count);
    }
    constexpr MPI_Count packed_at_once = 64 << 10, unpacked_at_once = 16 << 10;
    const MPI_Count at_once = packs ? packed_at_once : unpacked_at_once;
    alignas(64) char values[unpacked_at_once];
    for (MPI_Count first = 0; first < all; first += at_once) {
        const MPI_Count bytes = std::min(all - first, at_once);
        char* const part = static_cast<char*>(packed) + first;
        if (!packs) reverse(values, part, bytes, width);
        copy(direction, packs ? part : values, memory, count, first, bytes);
        if (packs) reverse(part, part, bytes, width);
    }
    count_moved(direction, count);
}

void PackPlan::count_moved(kernels::Direction direction, MPI_Count count) const noexcept {
    static constexpr Counter counters[] = {Counter::packed_by_blocks, Counter::packed_by_permutes,
                                           Counter::packed_by_gathers,
                                           Counter::packed_by_transposes};
    if (counting.load(std::memory_order_relaxed) != 0) [[unlikely]] {
        vecmpi::count(counters[static_cast<size_t>(moved_by(steps_->of(count), direction))]);
    }
}

}  // namespace vecmpi::datatype
