// SPDX-License-Identifier: BSD-3-Clause
// Blocking messages of derived datatypes that go as bytes, and which do.
#include <algorithm>

#include "base/api.hpp"
#include "datatype/api.hpp"
#include "left_calls.hpp"
#include "message_rules.hpp"
#include "offload/api.hpp"
#include "plans_by_handle.hpp"
#include "type_rows.hpp"

namespace vecmpi::datatype {

// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): near_ is written before it is read
MessageAsBytes::MessageAsBytes(kernels::Direction direction, const void* memory, MPI_Count count,
                               MPI_Datatype type, MPI_Comm comm, MPI_Count most_bytes) noexcept
    : direction_(direction),
      memory_(const_cast<void*>(memory)),
      count_(count),
      type_(type),
      comm_(comm),
      ucx_packs_(ucx_packs(comm)),
      gone_before_(handles_gone.load(std::memory_order_relaxed)),
      used_(type) {
    const KeptPlan* const kept = used_.get();
    if (kept == nullptr && (ucx_packs_ || !is_counted_and_committed(type))) {
        leave_if_settled();
        if (!ucx_packs_ && row_of(type) != no_row) in_use_.emplace(type);  // count_by_type()
        return;
    }
    if (count <= 0 || offload::is_reentrant() || settings().pack == PackMode::off) return;
    const MPI_Count size = kept != nullptr ? kept->plan.bytes() : offload::size_of(type);
    if (__builtin_mul_overflow(size, count, &bytes_) || bytes_ > most_bytes) bytes_ = 0;
    if (bytes_ <= 0) return;
    const bool chosen = is_chosen();
    if (!ucx_packs_ && !is_decided_) in_use_.emplace(type);
    if (!chosen) {
        leave_if_settled();
        return;
    }
    if (is_refused(memory, type, kept) || !take_place() || direction == kernels::Direction::unpack)
        return;
    if (kept != nullptr && kept->value_type != MPI_DATATYPE_NULL) {
        sent_type_ = kept->value_type;
        sent_type_bytes_ = kept->value_bytes;
    }
    if (is_decided_) {
        kept->plan.copy_all(direction, place_, memory_, count);
        vecmpi::count(Counter::plan_messages);
        count_by_plan(row_of(type), static_cast<uint64_t>(bytes_));
    } else if (PackedBuffer(memory, count, type, comm).pack_to(place_) != MPI_SUCCESS) {
        place_ = nullptr;
    }
}

MessageAsBytes::~MessageAsBytes() = default;

bool MessageAsBytes::is_chosen() noexcept {
    return ucx_packs_ ? is_chosen_with_ucx() : is_chosen_without_ucx();
}

// UCX's messages get a plan without a word to the handle.
void MessageAsBytes::leave_if_settled() const noexcept {
    const KeptPlan* const kept = used_.get();
    if (kept == nullptr && ucx_packs_) return;
    const auto way = ucx_packs_ ? PackedIn::message : PackedIn::call;
    if (is_settled(kept, way, direction_, bytes_, type_))
        leave({.way = direction_ == kernels::Direction::pack ? TypedCall::Way::send
                                                             : TypedCall::Way::receive,
               .type = type_,
               .object = library::number_of_handle(comm_),
               .count = count_},
              gone_before_);
}

bool MessageAsBytes::can_unpack(const KeptPlan& kept) const noexcept {
    return count_ <= kept.plan.most_to_unpack() &&
           kept.proof.load(std::memory_order_acquire) == KeptPlan::Proof::shown;
}

// There is a plan. The trial of UCX's messages must have ended. That six calls a message take
// longer than a copy in the first-level cache holds for short ones.
bool MessageAsBytes::is_chosen_with_ucx() noexcept {
    const KeptPlan& kept = *used_.get();
    const bool packs = direction_ == kernels::Direction::pack;
    if (bytes_ > (packs ? most_sent_as_bytes(comm_) : near_bytes)) return false;
    if (packs ? kept.proof.load(std::memory_order_acquire) != KeptPlan::Proof::shown
              : !can_unpack(kept))
        return false;
    const Trial& trial = kept.trial(PackedIn::message, direction_, bytes_);
    if (trial.winner() == Trial::open) return false;
    is_decided_ = true;
    return has_won(trial, Packer::plan) || pays_as_bytes(trial.least(), bytes_);
}

// The library packs a message as MPI_Pack does, and sends that. So the trial of such calls decides;
// until then their turns are taken in messages. A receive needs a plan, since only a plan can
// unpack a message that ends within an element.
bool MessageAsBytes::is_chosen_without_ucx() noexcept {
    const KeptPlan* const kept = used_.get();
    const bool packs = direction_ == kernels::Direction::pack;
    const bool has_one_value_type = kept != nullptr && kept->value_type != MPI_DATATYPE_NULL;
    if (packs && !has_one_value_type && bytes_ > most_sent_as_bytes(comm_)) return false;
    if (kept == nullptr) return packs;
    if (!packs && !can_unpack(*kept)) return false;
    const Trial& trial = kept->trial(PackedIn::call, direction_, bytes_);
    if (trial.winner() == Trial::open) return true;
    is_decided_ = has_won(trial, Packer::plan) &&
                  kept->proof.load(std::memory_order_acquire) == KeptPlan::Proof::shown;
    const auto times = times_of_plan_that_wins(*kept, direction_, bytes_, comm_);
    return times && pays_packed(PackedAs::call, *times, bytes_);
}

// Where UCX packs, it was counted there.
void MessageAsBytes::count_by_type() const noexcept {
    if (count_ <= 0 || ucx_packs_ || settings().pack == PackMode::off) return;
    if (row_of(type_) == no_row) return;
    count_left(used_.get(), direction_, count_ * offload::size_of(type_), type_);
}

bool MessageAsBytes::take_place() noexcept {
    if (bytes_ <= near_bytes) {
        place_ = near_;
        return true;
    }
    if (!far_.take(static_cast<size_t>(bytes_))) return false;
    place_ = far_.place();
    return true;
}

void MessageAsBytes::unpack(MPI_Count received) noexcept {
    count(Counter::plan_messages);
    if (received == bytes_ && !is_decided_) {
        PackedBuffer(memory_, count_, type_, comm_).unpack_from(place_);
        return;
    }
    const PackPlan& plan = used_.get()->plan;
    if (received == bytes_)
        plan.copy_all(direction_, place_, memory_, count_);
    else
        plan.copy(direction_, place_, memory_, count_, 0, std::min(received, bytes_));
    count_by_plan(row_of(type_), static_cast<uint64_t>(bytes_));
}

void MessageAsBytes::note_moved_by_library() noexcept {
    if (bytes_ == 0 || used_.get() != nullptr || ucx_packs_ || !is_counted_and_committed(type_) ||
        !take_place())
        return count_by_type();
    PackedBuffer(memory_, count_, type_, comm_).pack_to(place_);
}

// Without UCX the first calls show what the library's packing takes; with it the messages that such
// a call receives do. Neither knows a type that is not committed.
PackedCopy::PackedCopy(const void* memory, MPI_Count count, MPI_Datatype type, MPI_Comm comm,
                       MPI_Count most_bytes) noexcept {
    if (library::is_builtin_type(type) || settings().pack == PackMode::off ||
        offload::is_reentrant())
        return;
    const PlanInUse used(type);
    const KeptPlan* const kept = used.get();
    if ((kept == nullptr && !is_counted_and_committed(type)) || is_refused(memory, type, kept))
        return;
    const PackedBuffer buffer(memory, count, type, comm);
    bytes_ = buffer.bytes();
    if (bytes_ == 0 || bytes_ > most_bytes || !memory_.take(static_cast<size_t>(bytes_))) return;
    is_packed_ = buffer.pack_to(memory_.place()) == MPI_SUCCESS;
}

}  // namespace vecmpi::datatype
