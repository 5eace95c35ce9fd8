// SPDX-License-Identifier: BSD-3-Clause
// Which calls of MPI_Pack and MPI_Unpack a plan serves, and when it is made.
//
// A plan goes before the program gives its handle back: another thread may get the same handle for
// another type at once. A program that packs with a handle which it does not hold may leave a plan
// behind. check_plan() finds that out when the next type of the handle is committed.
#include <algorithm>
#include <exception>
#include <optional>

#include "message_types.hpp"
#include "offload/api.hpp"

namespace vecmpi::datatype {

namespace {

bool is_served(MPI_Datatype type) noexcept {
    return !library::is_builtin_type(type) && settings().pack != PackMode::off;
}

// The library serves all that it may refuse.
bool is_in_order(const PackCall& call, MPI_Count bytes) noexcept {
    return call.memory != nullptr && call.memory != MPI_IN_PLACE && call.packed != nullptr &&
           call.position >= 0 && bytes <= call.packed_bytes - call.position &&
           offload::comm_traits(call.comm).size > 0;
}

bool may_overlap(const PackCall& call, const PackPlan& plan) noexcept {
    return call.direction == kernels::Direction::unpack && call.count > plan.most_to_unpack();
}

char* stream_of(const PackCall& call) noexcept {
    return static_cast<char*>(call.packed) + call.position;
}

// The plan must pack to the bytes that the library packed or unpacked. Three windows are compared:
// the first bytes, the last, and some in between.
bool gives_same_bytes(const PackPlan& plan, const PackCall& call, MPI_Count bytes) noexcept {
    constexpr MPI_Count window = 2 * compared_at_once;
    const MPI_Count rest = std::max<MPI_Count>(bytes - window, 0);
    for (const MPI_Count begin : {MPI_Count{0}, rest / 2, rest})
        if (!packs_to(plan, call.memory, call.count, begin, std::min(window, bytes),
                      stream_of(call) + begin))
            return false;
    return true;
}

// Can the call show whether plan and library agree? Not where it unpacked into blocks that overlap,
// of which memory holds the last. Nor where the buffer was too small: MPICH 4.0.2 packs what fits.
bool is_comparable(const PackPlan& plan, const PackCall& call, MPI_Count bytes) noexcept {
    MPI_Count whole = 0;
    return !may_overlap(call, plan) && !__builtin_mul_overflow(plan.bytes(), call.count, &whole) &&
           whole == bytes;
}

// Nothing: this call could not show it. Null: the library, for good.
using Verdict = std::optional<std::unique_ptr<HeldPlan>>;

Verdict decide(const PackCall& call, MPI_Count bytes, uint64_t spent_ns) {
    MadePlan made = make_plan(call.type, spent_ns);
    auto& [held, why, is_final] = made;
    if (!is_final) return std::nullopt;
    if (held && !is_comparable(held->plan, call, bytes)) return std::nullopt;
    if (held && !gives_same_bytes(held->plan, call, bytes)) {
        why = Counter::decline_plan;
        held.reset();
        log_line(LogLevel::info, "datatype %08x stays with the library: other bytes than ours",
                 static_cast<unsigned>(call.type));
    }
    count(held ? Counter::plans : why);
    return std::move(held);
}

}  // namespace

bool pack_by_plan(const PackCall& call, MPI_Count* end, uint64_t* timed_since_ns) noexcept {
    *timed_since_ns = 0;
    if (!is_served(call.type) || call.count <= 0) return false;
    const PlanInUse used(call.type);
    if (used.get() == nullptr) return false;
    const PackPlan* const plan = &used.get()->plan;
    MPI_Count bytes = 0;
    if (__builtin_mul_overflow(plan->bytes(), call.count, &bytes) || !is_in_order(call, bytes))
        return false;
    const auto decline = [](Counter why) noexcept {
        count(why);
        return false;
    };
    if (may_overlap(call, *plan)) return decline(Counter::decline_overlap);
    Trial& trial = used.get()->trial(call.direction, bytes);
    if (has_won(trial, Packer::library)) return decline(Counter::decline_slower);
    const bool is_timed = trial.winner() == Trial::open;
    if (is_timed) {
        *timed_since_ns = monotonic_ns();
        if (whose_turn(trial) == Packer::library) return false;
    }
    plan->copy_all(call.direction, stream_of(call), call.memory, call.count);
    if (is_timed) note_turn(trial, Packer::plan, monotonic_ns() - *timed_since_ns, bytes);
    *end = call.position + bytes;
    return true;
}

// Without an engine nobody says that a handle goes, so no plan is made.
void note_packed_by_library(const PackCall& call, MPI_Count end, uint64_t timed_since_ns) noexcept {
    constexpr uint64_t at_once_ns = 16;  // less than any call takes
    const MPI_Count bytes = end - call.position;
    if (timed_since_ns != 0 && bytes > 0) {
        const uint64_t ns = monotonic_ns() - timed_since_ns;
        const PlanInUse used(call.type);
        if (used.get() != nullptr)
            note_turn(used.get()->trial(call.direction, bytes), Packer::library, ns, bytes);
        return;
    }
    if (!is_served(call.type) || call.count <= 0 || bytes <= 0 || !offload::engine_runs()) return;
    const uint64_t spent_ns = tally_library_time(call.type, library_ns(bytes),
                                                 is_weighed() ? least_worth_ns : at_once_ns);
    if (spent_ns == 0) return;
    try {
        if (Verdict verdict = is_in_order(call, 0) ? decide(call, bytes, spent_ns) : std::nullopt)
            return settle(call.type, std::move(*verdict));
    } catch (const std::exception&) {  // no memory, or no vector of that length
    }
    put_off(call.type);
}

void forget_plan(MPI_Datatype type) noexcept {
    if (library::is_builtin_type(type)) return;
    drop_place(type);
    message_types().forget_handle(type);
}

void check_plan(MPI_Datatype type) noexcept {
    constexpr size_t quickly_read = 4096;  // entries: 0.1 ms. Longer ones lose their plan
    {
        const PlanInUse used(type);
        if (used.get() == nullptr) return;
        try {
            TypeTree tree;
            if (describe(type, tree, quickly_read) == Described::fully &&
                digest_of(tree) == used.get()->digest)
                return;
        } catch (const std::exception&) {
        }
    }
    drop_place(type);
}

}  // namespace vecmpi::datatype
