// SPDX-License-Identifier: BSD-3-Clause
// Which calls of MPI_Pack, MPI_Unpack and their external forms a plan serves, and when it is made.
//
// A plan goes before the program gives its handle back: another thread may get the same handle for
// another type at once. A program that packs with a handle which it does not hold may leave a plan
// behind. meet_type() finds that out when the next type of the handle is committed.
#include <algorithm>
#include <exception>
#include <optional>

#include "base/api/needs.hpp"
#include "external32.hpp"
#include "left_calls.hpp"
#include "message_rules.hpp"
#include "message_types.hpp"
#include "offload/api.hpp"
#include "pack_memory.hpp"
#include "plans_by_handle.hpp"
#include "transfers.hpp"

namespace vecmpi::datatype {

namespace {

bool is_served(MPI_Datatype type) noexcept {
    return !library::is_builtin_type(type) && settings().pack != PackMode::off;
}

// The library serves all that it may refuse.
bool is_in_order(const PackCall& call, MPI_Count bytes) noexcept {
    return call.memory != MPI_IN_PLACE && call.packed != nullptr && call.position >= 0 &&
           bytes <= call.packed_bytes - call.position &&
           (call.is_ours || call.form == DataForm::external32 ||
            offload::comm_traits(call.comm).size > 0);
}

PackedIn packed_in(const PackCall& call) noexcept {
    return call.form == DataForm::native ? PackedIn::call : PackedIn::external_call;
}

Trial& trial_of(const KeptPlan& kept, const PackCall& call, MPI_Count bytes) noexcept {
    return kept.trial(packed_in(call), call.direction, bytes);
}

// Whether the plan gives the library's bytes in this form.
KeptPlan::Proof proof_of(const KeptPlan& kept, const PackCall& call) noexcept {
    const auto& proof = call.form == DataForm::native ? kept.proof : kept.external_proof;
    return proof.load(std::memory_order_acquire);
}

// A layout that is not the library's is not so in any form. Types of no one value are the library's
// in external32.
bool is_refuted(const KeptPlan& kept, const PackCall& call) noexcept {
    using Proof = KeptPlan::Proof;
    if (proof_of(kept, call) == Proof::refuted) return true;
    return call.form == DataForm::external32 &&
           (kept.external_value == nullptr || kept.proof.load() == Proof::refuted);
}

bool is_open(const KeptPlan& kept, const PackCall& call) noexcept {
    return !is_refuted(kept, call) && proof_of(kept, call) == KeptPlan::Proof::open;
}

// How many bytes are reversed at a time. 0: what the library does is something else.
size_t width_of(const KeptPlan& kept, const PackCall& call) noexcept {
    return call.form == DataForm::native ? 1 : reversed_width(*kept.external_value);
}

std::atomic<bool>& takes_bottom(const KeptPlan& kept, const PackCall& call) noexcept {
    return kept.takes_bottom[static_cast<size_t>(call.form)][static_cast<size_t>(call.direction)];
}

// A null address is MPI_BOTTOM, or an error that the library is to find.
bool may_begin_there(const KeptPlan& kept, const PackCall& call) noexcept {
    return call.memory != nullptr || call.is_ours ||
           takes_bottom(kept, call).load(std::memory_order_relaxed);
}

bool may_overlap(const PackCall& call, const PackPlan& plan) noexcept {
    return call.direction == kernels::Direction::unpack && call.count > plan.most_to_unpack();
}

char* stream_of(const PackCall& call) noexcept {
    return static_cast<char*>(call.packed) + call.position;
}

// The plan must pack to the bytes that the library packed or unpacked. Three windows are compared:
// the first bytes, the last, and some in between.
bool gives_same_bytes(const KeptPlan& kept, const PackCall& call, MPI_Count bytes) noexcept {
    constexpr MPI_Count window = 2 * compared_at_once, widest = 16;
    const size_t width = width_of(kept, call);
    if (width == 0) return false;
    const MPI_Count rest = std::max<MPI_Count>(bytes - window, 0);
    for (const MPI_Count begin : {MPI_Count{0}, rest / 2 / widest * widest, rest})
        if (!packs_to(kept, call.memory, call.count, begin, std::min(window, bytes),
                      stream_of(call) + begin, width))
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

void compare(const KeptPlan& kept, const PackCall& call, MPI_Count bytes) noexcept {
    const bool is_right = gives_same_bytes(kept, call, bytes);
    if (call.form == DataForm::native)
        prove(kept, is_right);
    else
        prove_external(kept, is_right);
}

// Nothing: this call could not show it. Null: the library, for good.
using Verdict = std::optional<PlanReference>;

PlanReference counted_verdict(MPI_Datatype type, MadePlan made) noexcept {
    if (made.plan && made.plan->proof.load() == KeptPlan::Proof::refuted) {
        made.why = Counter::decline_plan;
        made.plan.reset();
    }
    count(made.plan ? Counter::plans : made.why);
    if (!made.plan) note_verdict(type, why_library(made.why));
    return std::move(made.plan);
}

Verdict decide(const PackCall& call, MPI_Count bytes, uint64_t spent_ns) {
    MadePlan made = make_plan(call.type, spent_ns, call.form);
    if (!made.is_final) return std::nullopt;
    if (const KeptPlan* const kept = made.plan.get(); kept && is_open(*kept, call)) {
        if (!is_comparable(kept->plan, call, bytes)) return std::nullopt;
        compare(*kept, call, bytes);
    }
    return counted_verdict(call.type, std::move(made));
}

// For the report: why the library has served a call.
WhyLibrary why_library_served(const PackCall& call, const KeptPlan* kept,
                              MPI_Count bytes) noexcept {
    if (kept == nullptr)
        return is_counted(call.type) ? WhyLibrary::too_little : verdict_of(call.type);
    if (call.form == DataForm::external32 && kept->external_value == nullptr)
        return WhyLibrary::not_served;
    if (is_refuted(*kept, call)) return why_library(Counter::decline_plan);
    if (!is_in_order(call, bytes) || !may_begin_there(*kept, call)) return WhyLibrary::not_served;
    if (may_overlap(call, kept->plan)) return WhyLibrary::overlap;
    return has_won(trial_of(*kept, call, bytes), Packer::library) ? WhyLibrary::slower
                                                                  : WhyLibrary::trial;
}

void count_served(const PackCall& call, const KeptPlan* kept, MPI_Count bytes) noexcept {
    if (const RowNumber row = row_of(call.type); row != no_row) [[unlikely]]
        count_by_library(row, static_cast<uint64_t>(bytes), why_library_served(call, kept, bytes));
}

void note_turn_of_library(const PackCall& call, const KeptPlan& kept, MPI_Count bytes,
                          uint64_t ns) noexcept {
    if (call.memory == nullptr && !call.is_ours)
        takes_bottom(kept, call).store(true, std::memory_order_relaxed);
    // A plan that messages made, or a type that was there before, may not have been compared yet.
    if (is_open(kept, call)) {
        if (is_in_order(call, bytes) && is_comparable(kept.plan, call, bytes))
            compare(kept, call, bytes);
        return;
    }
    if (ns != 0) note_turn(trial_of(kept, call, bytes), Packer::library, ns, bytes);
}

// The call is in order.
bool is_moved_by(const KeptPlan& kept, const PackCall& call, MPI_Count bytes, MPI_Count* end,
                 uint64_t* timed_since_ns) noexcept {
    const auto decline = [](Counter why) noexcept {
        count(why);
        return false;
    };
    if (may_overlap(call, kept.plan)) return decline(Counter::decline_overlap);
    if (is_refuted(kept, call)) return decline(Counter::decline_plan);
    if (is_open(kept, call)) return false;  // the library's call shows it
    Trial& trial = trial_of(kept, call, bytes);
    if (has_won(trial, Packer::library)) return decline(Counter::decline_slower);
    const bool is_tried = trial.winner() == Trial::open;
    if (is_tried) {
        *timed_since_ns = monotonic_ns();
        if (whose_turn(trial) == Packer::library) return false;
    }
    kept.plan.copy_all_reversed(call.direction, stream_of(call), call.memory, call.count,
                                width_of(kept, call));
    if (is_tried)
        note_turn(trial, Packer::plan, monotonic_ns() - *timed_since_ns, bytes,
                  kept.memory_of_turn());
    *end = call.position + bytes;
    count_by_plan(row_of(call.type), static_cast<uint64_t>(bytes));
    return true;
}

bool has_bytes(const KeptPlan& kept, const PackCall& call, MPI_Count* bytes) noexcept {
    return !__builtin_mul_overflow(kept.plan.bytes(), call.count, bytes);
}

// The library serves what it may refuse.
bool serve(const KeptPlan& kept, const PackCall& call, MPI_Count* end,
           uint64_t* timed_since_ns) noexcept {
    MPI_Count bytes = 0;
    return has_bytes(kept, call, &bytes) && is_in_order(call, bytes) &&
           may_begin_there(kept, call) && is_moved_by(kept, call, bytes, end, timed_since_ns);
}

// Values of a predefined type in external32, which lie without gaps. Null: another call. (A single
// double takes the library 75 ns, and such a plan 45.)
const ExternalValue* value_of(const PackCall& call) noexcept {
    return call.form == DataForm::external32 && settings().pack != PackMode::off
               ? external_value(call.type)
               : nullptr;
}

// For good: calls like this one have nothing else to decide.
bool is_for_library(const PackCall& call, const KeptPlan* kept) noexcept {
    if (kept == nullptr) return !is_served(call.type) || !is_counted(call.type);
    MPI_Count bytes = 0;
    return call.memory != nullptr && has_bytes(*kept, call, &bytes) && !is_open(*kept, call) &&
           (is_refuted(*kept, call) || has_won(trial_of(*kept, call, bytes), Packer::library));
}

uint64_t ns_since(uint64_t timed_since_ns) noexcept {
    return timed_since_ns != 0 ? monotonic_ns() - timed_since_ns : 0;
}

}  // namespace

bool pack_by_plan(const PackCall& call, MPI_Count* end, uint64_t* timed_since_ns) noexcept {
    *timed_since_ns = 0;
    if (const ExternalValue* const value = value_of(call)) {
        const KeptPlan* const kept = plan_of_value(*value);
        return kept != nullptr && call.count > 0 && serve(*kept, call, end, timed_since_ns);
    }
    if (library::is_builtin_type(call.type) || call.count <= 0) return false;
    const uint64_t gone_before = handles_gone.load(std::memory_order_relaxed);
    const PlanInUse used(call.type);
    const KeptPlan* const kept = used.get();
    if (kept != nullptr && serve(*kept, call, end, timed_since_ns)) return true;
    if (is_for_library(call, kept))
        leave(call.as_typed(), gone_before);
    else if (kept == nullptr)
        *timed_since_ns = monotonic_ns();
    return false;
}

bool pack_by_plan(const PackCall& call, const KeptPlan& kept, MPI_Count* end,
                  uint64_t* timed_since_ns) noexcept {
    *timed_since_ns = 0;
    MPI_Count bytes = 0;
    return has_bytes(kept, call, &bytes) && is_moved_by(kept, call, bytes, end, timed_since_ns);
}

void note_packed_by_library(const PackCall& call, const KeptPlan& kept, MPI_Count end,
                            uint64_t timed_since_ns) noexcept {
    note_turn_of_library(call, kept, end - call.position, ns_since(timed_since_ns));
}

// Without an engine nobody says that a handle goes, so no plan is made.
void note_packed_by_library(const PackCall& call, MPI_Count end, uint64_t timed_since_ns) noexcept {
    const MPI_Count bytes = end - call.position;
    if (const ExternalValue* const value = value_of(call)) {
        if (bytes <= 0 || !offload::engine_runs()) return;
        const KeptPlan* const kept = plan_of_value(*value);
        if (kept == nullptr) return make_plan_of_value(*value);
        return note_turn_of_library(call, *kept, bytes, ns_since(timed_since_ns));
    }
    if (!is_served(call.type) || call.count <= 0 || bytes <= 0 || !offload::engine_runs()) return;
    const uint64_t ns = ns_since(timed_since_ns);
    {
        const PlanInUse used(call.type);
        count_served(call, used.get(), bytes);
        if (used.get() != nullptr) return note_turn_of_library(call, *used.get(), bytes, ns);
    }
    const uint64_t spent_ns =
        tally_library_time(call.type, std::max(ns, least_call_ns), first_worth_ns());
    if (spent_ns == 0) return;
    try {
        if (Verdict verdict = is_in_order(call, 0) ? decide(call, bytes, spent_ns) : std::nullopt)
            return settle(call.type, std::move(*verdict));
    } catch (const std::exception&) {  // no memory, or no vector of that length
    }
    put_off(call.type);
}

// The type is freed meanwhile, perhaps: a tally of another one only brings that one's plan forward.
void tally_packed_later(MPI_Datatype type, uint64_t ns) noexcept {
    constexpr uint64_t never_ns = uint64_t{1} << 40;  // the next call of the program decides
    if (is_served(type) && is_counted(type)) tally_library_time(type, ns, never_ns);
}

PlanReference plan_to_keep(MPI_Datatype type, Uses uses) noexcept {
    constexpr uint64_t worth_ns = 1'000'000;  // as if some megabytes had been packed
    if (!is_served(type) || !offload::engine_runs() || offload::is_reentrant()) return nullptr;
    {
        const PlanInUse used(type);
        if (used.get() != nullptr) return used.get()->weak_from_this().lock();
    }
    const uint64_t spent_ns =
        tally_library_time(type, uses == Uses::many ? worth_ns : 0, first_worth_ns());
    if (spent_ns == 0) return nullptr;
    try {
        if (MadePlan made = make_plan(type, spent_ns); made.is_final) {
            PlanReference kept = counted_verdict(type, std::move(made));
            settle(type, kept);
            return kept;
        }
    } catch (const std::exception&) {  // no memory, or no vector of that length
    }
    put_off(type);
    return nullptr;
}

namespace {

// The library packs the buffer, which shows whether it and the plan of the type are alike. A type
// that is not committed is an error, which the program's own call is to raise.
bool is_packed_by_library(const PackCall& call) noexcept {
    MPI_Count end = 0;
    return offload::is_derived_committed(call.type, call.comm) &&
           real.Pack_c(call.memory, call.count, call.type, call.packed, call.packed_bytes, &end,
                       call.comm) == MPI_SUCCESS &&
           end == call.packed_bytes;
}

// To be settled, or put off.
Verdict decide_by_transfer(const void* origin, MPI_Count count, MPI_Datatype type,
                           uint64_t spent_ns) {
    MPI_Count bytes = 0;
    PackMemory packed;
    if (__builtin_mul_overflow(count, offload::size_of(type), &bytes) || bytes <= 0 ||
        !packed.take(static_cast<size_t>(bytes)))
        return std::nullopt;
    const PackCall call{.direction = kernels::Direction::pack,
                        .memory = const_cast<void*>(origin),
                        .count = count,
                        .type = type,
                        .packed = packed.place(),
                        .packed_bytes = bytes,
                        .position = 0,
                        .comm = MPI_COMM_SELF,
                        .is_ours = true};
    if (!is_packed_by_library(call)) return std::nullopt;
    return decide(call, bytes, spent_ns);
}

}  // namespace

PlanReference plan_for_transfer(const void* origin, MPI_Count count, MPI_Datatype type) noexcept {
    {
        const PlanInUse used(type);
        if (const KeptPlan* const kept = used.get()) {
            if (kept->proof.load(std::memory_order_acquire) == KeptPlan::Proof::shown)
                return kept->weak_from_this().lock();
            return nullptr;
        }
    }
    const uint64_t spent_ns = tally_library_time(type, 0, first_worth_ns());
    if (spent_ns == 0) return nullptr;
    try {
        if (Verdict verdict = decide_by_transfer(origin, count, type, spent_ns)) {
            settle(type, *verdict);
            return std::move(*verdict);
        }
    } catch (const std::exception&) {  // no memory, or no vector of that length
    }
    put_off(type);
    return nullptr;
}

void forget_plans() noexcept {
    forget_transfers();
    set_need(Need::typed_messages, false);
    set_need(Need::typed_requests, false);
    empty_table();
    forget_external_values();
    plan_store().clear();
    free_unused_pieces();
    report_types(false);
}

void forget_plan(MPI_Datatype type) noexcept {
    if (library::is_builtin_type(type)) return;
    // First of all: who is making its plan for UCX gives it to the table too.
    message_types().forget_handle(type);
    drop_place(type);
    leave_row(type);
}

void meet_copy(MPI_Datatype type) noexcept {
    forget_plan(type);
    if (is_served(type) && offload::engine_runs()) enter_row(type);
}

void meet_type(MPI_Datatype type, uint64_t ucx_type) noexcept {
    if (library::is_builtin_type(type)) return;
    const bool may_have_plan = is_served(type), is_used = may_have_plan && offload::engine_runs();
    PlanReference known;
    if (is_used) {
        const RowNumber row = enter_row(type);
        if (row != no_row && ucx_type != 0) message_types().give_row(ucx_type, row);
    }
    if (may_have_plan) {
        try {
            known = known_plan(type);
        } catch (const std::exception&) {  // no memory
        }
    }
    // A plan that some handle has is kept: where none is known, this is another type's.
    const auto is_another = [&](const KeptPlan* plan) noexcept {
        return plan != nullptr && plan != known.get();
    };
    if (is_another(PlanInUse(type).get())) drop_place(type);
    if (is_used) {
        offload::note_transfer_part(offload::TransferPart::derived_type);
        if (library_packs_some()) {  // messages show what that takes
            note_committed(type);
            set_need(Need::typed_messages, true);
            set_need(Need::typed_requests, true);
        }
    }
    if (known == nullptr) return;
    if (ucx_type != 0) message_types().give_plan(ucx_type, known);
    give_plan(type, std::move(known));
}

}  // namespace vecmpi::datatype
