// SPDX-License-Identifier: BSD-3-Clause
// Buffers of MPI-IO that are packed by plans, and which are.
#include <algorithm>
#include <climits>

#include "base/api.hpp"
#include "datatype/api.hpp"
#include "left_calls.hpp"
#include "offload/api.hpp"
#include "plan_making.hpp"
#include "plans_by_handle.hpp"
#include "type_rows.hpp"

namespace vecmpi::datatype {

namespace {

// ROMIO takes a block that begins behind its address for memory with gaps (iscontig.c).
constexpr MPI_Aint shift = 64;

}  // namespace

FileData::FileData(kernels::Direction direction, FileAccess access, const void* memory,
                   MPI_Count count, MPI_Datatype type) noexcept
    : direction_(direction),
      access_(access),
      memory_(const_cast<void*>(memory)),
      count_(count),
      type_(type),
      gone_before_(handles_gone.load(std::memory_order_relaxed)),
      used_(type),
      state_(first_state()) {
    if (state_ == State::left) leave(as_typed(direction, access, count, type), gone_before_);
    if (state_ == State::without_plan ||
        (state_ == State::chosen && trial().winner() == Trial::open))
        timed_since_ns_ = monotonic_ns();
}

FileData::State FileData::first_state() noexcept {
    using Proof = KeptPlan::Proof;
    if (count_ <= 0 || settings().pack == PackMode::off || offload::is_reentrant())
        return State::library;
    const KeptPlan* const kept = used_.get();
    if (kept == nullptr) return is_counted(type_) ? State::without_plan : State::left;
    if (__builtin_mul_overflow(kept->plan.bytes(), count_, &bytes_)) bytes_ = 0;
    const Proof proof = kept->proof.load(std::memory_order_acquire);
    const bool is_short =
        settings().pack == PackMode::automatic && bytes_ > 0 && bytes_ < least_packed_bytes;
    if (!kept->serves_files || proof == Proof::refuted || is_short) return State::left;
    if (!is_in_order()) return State::library;
    if (proof == Proof::open) return State::unproved;
    if (!has_won(trial(), Packer::library)) return State::chosen;
    count(Counter::decline_slower);
    return State::left;
}

// The library serves all that it may refuse. It may have to unpack into blocks that overlap. How
// ROMIO takes blocks before the buffer's address was not shown.
bool FileData::is_in_order() const noexcept {
    const PackPlan& plan = used_.get()->plan;
    const bool unpacks = direction_ == kernels::Direction::unpack;
    return bytes_ > 0 && values() <= INT_MAX && memory_ != MPI_IN_PLACE && plan.lowest() >= 0 &&
           (memory_ != nullptr || plan.lowest() != 0) &&
           (!unpacks || count_ <= plan.most_to_unpack());
}

// Mixed values go as bytes: ROMIO compares the sizes of types alone.
MPI_Datatype FileData::value_type() const noexcept {
    const MPI_Datatype type = used_.get()->value_type;
    return type != MPI_DATATYPE_NULL ? type : MPI_BYTE;
}
MPI_Count FileData::values() const noexcept { return bytes_ / offload::size_of(value_type()); }

Trial& FileData::trial() const noexcept {
    const PackedIn in = access_ == FileAccess::collective ? PackedIn::file_of_all : PackedIn::file;
    return used_.get()->trial(in, direction_, bytes_);
}

bool FileData::begin() noexcept {
    if (timed_since_ns_ != 0 && whose_turn(trial()) == Packer::library) {
        state_ = State::in_turn_of_library;
        return false;
    }
    if (!place_.take(static_cast<size_t>(bytes_)) || !make_packed_type()) {
        state_ = State::library;
        return false;
    }
    // Of a read as well: what lies behind the end of the file keeps its value where ROMIO reads
    // block by block (romio_ds_read=disable), and the status says that all has come.
    used_.get()->plan.copy_all(kernels::Direction::pack, place_.place(), memory_, count_);
    return true;
}

bool FileData::make_packed_type() noexcept {
    const int values_of_block = static_cast<int>(values());
    return real.Type_create_hindexed(1, &values_of_block, &shift, value_type(), &packed_type_) ==
               MPI_SUCCESS &&
           real.Type_commit(&packed_type_) == MPI_SUCCESS;
}

void* FileData::packed() const noexcept { return place_.place() - shift; }

FileData::~FileData() {
    if (packed_type_ != MPI_DATATYPE_NULL) real.Type_free(&packed_type_);
}

void FileData::end(MPI_Count moved) noexcept {
    const KeptPlan& kept = *used_.get();
    if (direction_ == kernels::Direction::unpack) {
        if (moved >= bytes_)
            kept.plan.copy_all(direction_, place_.place(), memory_, count_);
        else if (moved > 0)
            kept.plan.copy(direction_, place_.place(), memory_, count_, 0, moved);
    }
    count(Counter::plan_buffers);
    count_by_plan(row_of(type_), static_cast<uint64_t>(bytes_));
    if (timed_since_ns_ != 0)
        note_turn(trial(), Packer::plan,
                  counted_in_file(Packer::plan, monotonic_ns() - timed_since_ns_), bytes_,
                  kept.memory_of_turn());
}

void FileData::note_moved_by_library() noexcept {
    switch (state_) {
        case State::without_plan:
            tally();
            break;
        case State::unproved:
            compare();
            break;
        case State::in_turn_of_library:
            note_turn(trial(), Packer::library, monotonic_ns() - timed_since_ns_, bytes_);
            break;
        case State::library:
        case State::left:
        case State::chosen:
            break;
    }
    count_by_type();
}

// Copying its blocks takes the library less than 1 ns a byte. What a call takes longer, it waits
// for the disk or for other ranks: no plan saves that.
void FileData::tally() const noexcept {
    MPI_Count bytes = 0;
    if (__builtin_mul_overflow(offload::size_of(type_), count_, &bytes) || bytes <= 0) return;
    const uint64_t most_ns = std::max(static_cast<uint64_t>(bytes), least_call_ns);
    tally_packed_later(type_, std::min(monotonic_ns() - timed_since_ns_, most_ns));
    if (const PlanReference made = plan_to_keep(type_, Uses::one);
        made && made->serves_files && made->proof.load() == KeptPlan::Proof::open)
        compare();
}

// The library packs the buffer once more. As in MPI_Pack, its bytes are compared.
void FileData::compare() const noexcept {
    const PackedBuffer buffer(memory_, count_, type_, MPI_COMM_SELF);
    PackMemory packed;
    if (buffer.bytes() != 0 && packed.take(static_cast<size_t>(buffer.bytes())))
        buffer.pack_to(packed.place());
}

void FileData::count_by_type() const noexcept {
    const RowNumber row = row_of(type_);
    if (row == no_row || count_ <= 0 || settings().pack == PackMode::off) return;
    const MPI_Count bytes = count_ * offload::size_of(type_);
    if (bytes <= 0) return;
    WhyLibrary why = is_counted(type_) ? WhyLibrary::too_little : verdict_of(type_);
    if (used_.get() != nullptr)
        why = state_ == State::in_turn_of_library ? WhyLibrary::trial
              : has_won(trial(), Packer::library) ? WhyLibrary::slower
                                                  : WhyLibrary::not_served;
    count_by_library(row, static_cast<uint64_t>(bytes), why);
}

}  // namespace vecmpi::datatype
