// SPDX-License-Identifier: BSD-3-Clause
// Buffers of collectives: packed as the program's own MPI_Pack and MPI_Unpack would do it.
#include <exception>

#include "datatype/api.hpp"
#include "kernels/api.hpp"
#include "offload/api.hpp"
#include "plan_making.hpp"
#include "type_rows.hpp"

namespace vecmpi::datatype {

namespace {

// By the library. MPI_Pack refuses MPI_BOTTOM: its type has absolute addresses, so it is shifted to
// count from an anchor.
int move_by_library(const PackCall& call, MPI_Count* position) noexcept {
    const auto moved = [&](void* memory, MPI_Count count, MPI_Datatype type) noexcept {
        return call.direction == kernels::Direction::pack
                   ? real.Pack_c(memory, count, type, call.packed, call.packed_bytes, position,
                                 call.comm)
                   : real.Unpack_c(call.packed, call.packed_bytes, position, memory, count, type,
                                   call.comm);
    };
    if (call.memory != MPI_BOTTOM || call.count == 0)
        return moved(call.memory, call.count, call.type);
    char anchor = 0;
    const MPI_Count shift = -static_cast<MPI_Count>(reinterpret_cast<intptr_t>(&anchor));
    MPI_Datatype shifted = MPI_DATATYPE_NULL;
    if (const int error = real.Type_create_hindexed_c(1, &call.count, &shift, call.type, &shifted);
        error != MPI_SUCCESS)
        return error;
    real.Type_commit(&shifted);
    const int error = moved(&anchor, 1, shifted);
    real.Type_free(&shifted);
    return error;
}

// Elements without gaps, one behind the other.
void copy_dense(const PackCall& call) noexcept {
    MPI_Count low = 0, extent = 0;
    real.Type_get_true_extent_x(call.type, &low, &extent);
    char* const memory = static_cast<char*>(call.memory) + low;
    const bool packs = call.direction == kernels::Direction::pack;
    kernels::copy_bytes(packs ? call.packed : memory, packs ? memory : call.packed,
                        static_cast<size_t>(call.packed_bytes));
}

// MPI_Pack of MPICH 4.0.2 ends before the end for some types of a program that has more than 150;
// its messages of them are right. So what it should have packed is packed by a plan of this call's
// own.
int pack_whole(const PackCall& call) noexcept {
    try {
        const MadePlan made = make_plan(call.type, UINT64_MAX);
        if (made.plan)
            made.plan->plan.copy_all(call.direction, call.packed, call.memory, call.count);
        else if (made.why == Counter::decline_slower)  // it is dense
            copy_dense(call);
        else
            return MPI_ERR_INTERN;
        count(Counter::plan_buffers);
        count_by_plan(row_of(call.type), static_cast<uint64_t>(call.packed_bytes));
        return MPI_SUCCESS;
    } catch (const std::exception&) {  // no memory
        return MPI_ERR_NO_MEM;
    }
}

}  // namespace

// A call from a callback may be there because the handle goes: no plan is looked for. In a job a
// TypeInUse keeps the handle.
PackedBuffer::PackedBuffer(const void* buffer, MPI_Count count, MPI_Datatype type,
                           MPI_Comm comm) noexcept
    : buffer_(static_cast<unsigned char*>(const_cast<void*>(buffer))),
      count_(count),
      type_(type),
      comm_(comm),
      form_(library::is_builtin_type(type) ? Form::dense : Form::unknown),
      stream_(buffer_),
      may_use_plan_(form_ != Form::dense && (!offload::is_reentrant() || offload::is_in_job())) {
    if (count <= 0 || !library::is_type_handle(type)) return;
    ptrdiff_t bytes = 0;
    if (!__builtin_mul_overflow(count, offload::size_of(type), &bytes) && bytes > 0) bytes_ = bytes;
}

PackedBuffer::PackedBuffer(const void* buffer, MPI_Count count, const TypeReference& type,
                           MPI_Comm comm) noexcept
    : PackedBuffer(buffer, count, type.get(), comm) {
    may_use_plan_ = false;
    plan_ = type.plan();
    tallied_ = type.of();
}

// Asked where the bytes are wanted: the library may serve the call.
void PackedBuffer::find_form() const noexcept {
    stream_ = may_use_plan_ ? place_of_stream(buffer_, count_, type_, bytes_) : nullptr;
    form_ = stream_ != nullptr ? Form::dense : Form::packed;
}

int PackedBuffer::move(kernels::Direction direction, void* packed) const noexcept {
    if (bytes_ == 0) return MPI_SUCCESS;
    const PackCall call{.direction = direction,
                        .memory = buffer_,
                        .count = count_,
                        .type = type_,
                        .packed = packed,
                        .packed_bytes = bytes_,
                        .position = 0,
                        .comm = comm_,
                        .is_ours = true};
    MPI_Count position = 0;
    uint64_t timed_since_ns = 0;
    if (plan_ ? pack_by_plan(call, *plan_, &position, &timed_since_ns)
              : may_use_plan_ && pack_by_plan(call, &position, &timed_since_ns)) {
        count(Counter::plan_buffers);
        return MPI_SUCCESS;
    }
    const uint64_t begun_ns = plan_ || tallied_ == MPI_DATATYPE_NULL ? 0 : monotonic_ns();
    const int error = move_by_library(call, &position);
    if (begun_ns != 0) tally_packed_later(tallied_, monotonic_ns() - begun_ns);
    // An element of more bytes than an int holds: packed by a plan, where MPI_Pack takes an int.
    const bool is_too_large = error == MPI_ERR_COUNT && !library::library_has(Call::Pack_c);
    if (is_too_large || (error == MPI_SUCCESS && position != bytes_)) return pack_whole(call);
    if (error != MPI_SUCCESS) return error;
    if (plan_)
        note_packed_by_library(call, *plan_, position, timed_since_ns);
    else if (may_use_plan_)
        note_packed_by_library(call, position, timed_since_ns);
    return error;
}

}  // namespace vecmpi::datatype
