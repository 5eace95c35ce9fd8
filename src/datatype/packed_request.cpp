// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking messages of derived datatypes that go as bytes, and which do.
#include <algorithm>
#include <new>
#include <utility>

#include "base/api.hpp"
#include "datatype/api.hpp"
#include "left_calls.hpp"
#include "message_rules.hpp"
#include "offload/api.hpp"
#include "plans_by_handle.hpp"
#include "type_rows.hpp"

namespace vecmpi::datatype {

namespace {

// As the library will see it.
offload::CallFacts packed(const offload::CallFacts& message) noexcept {
    offload::CallFacts facts = message;
    facts.type = MPI_BYTE;
    facts.sendbuf = &facts;  // some address
    return facts;
}

// The library packs some messages once more, so that it is known what its packing takes, and that
// the plan gives its bytes. Every fourth one stands for the three before it: so until there is a
// plan, a quarter of the library's packing is done twice. Before the message is posted: memory that
// it receives into may change afterwards.
void sample_packing(const void* memory, MPI_Count count, MPI_Count bytes, MPI_Datatype type,
                    MPI_Comm comm) noexcept {
    constexpr unsigned stands_for = 4;
    static thread_local constinit unsigned messages __attribute__((tls_model("initial-exec"))) = 0;
    PackMemory packed;
    if (++messages % stands_for != 0 || !packed.take(static_cast<size_t>(bytes))) return;
    const uint64_t begun_ns = monotonic_ns();
    if (PackedBuffer(memory, count, type, comm).pack_to(packed.place()) == MPI_SUCCESS)
        tally_packed_later(type, (stands_for - 1) * (monotonic_ns() - begun_ns));
}

// A request of ours takes longer than the library packs so little.
constexpr MPI_Count least_in_request = 256;

// Until one has won, the messages are turns of the trial of MPI_Pack and MPI_Unpack.
bool is_worth_packing(const KeptPlan& kept, kernels::Direction direction, MPI_Count count,
                      MPI_Count bytes, MPI_Comm comm) noexcept {
    if (kept.proof.load(std::memory_order_acquire) != KeptPlan::Proof::shown) return false;
    if (direction == kernels::Direction::unpack) {
        if (count > kept.plan.most_to_unpack()) return false;
    } else if (kept.value_type == MPI_DATATYPE_NULL && bytes > most_sent_as_bytes(comm)) {
        return false;
    }
    if (kept.trial(PackedIn::call, direction, bytes).winner() == Trial::open) return true;
    const auto times = times_of_plan_that_wins(kept, direction, bytes, comm);
    return times && pays_packed(PackedAs::request, *times, bytes);
}

// 0: the library is to look at the message, or there is nothing to pack.
MPI_Count bytes_of(const offload::CallFacts& message, const KeptPlan* kept,
                   MPI_Count most_bytes) noexcept {
    const MPI_Datatype type = message.type;
    if (kept == nullptr && is_counted(type) && !is_counted_and_committed(type)) return 0;
    const MPI_Count size = kept != nullptr ? kept->plan.bytes() : offload::size_of(type);
    MPI_Count bytes = 0;
    if (__builtin_mul_overflow(size, message.count, &bytes) || bytes > most_bytes ||
        is_refused(message.sendbuf, type, kept))
        return 0;
    return bytes;
}

bool may_be_packed(const offload::CallFacts& message) noexcept {
    return message.count > 0 && message.peer != MPI_PROC_NULL && !ucx_packs(message.comm) &&
           settings().pack != PackMode::off && !offload::is_reentrant();
}

}  // namespace

PackedRequest::PackedRequest(kernels::Direction direction, const void* memory, MPI_Count count,
                             MPI_Count bytes, const KeptPlan& kept, RowNumber row) noexcept
    : direction_(direction),
      memory_(const_cast<void*>(memory)),
      count_(count),
      bytes_(bytes),
      row_(row),
      plan_(kept.weak_from_this().lock()) {}

std::unique_ptr<PackedRequest> PackedRequest::of(kernels::Direction direction, Call call,
                                                 const offload::CallFacts& message,
                                                 MPI_Count most_bytes) noexcept {
    const MPI_Datatype type = message.type;
    if (!may_be_packed(message)) return nullptr;
    const uint64_t gone_before = handles_gone.load(std::memory_order_relaxed);
    const PlanInUse used(type);
    const KeptPlan* const kept = used.get();
    const MPI_Count bytes = bytes_of(message, kept, most_bytes);
    if (bytes <= 0) return nullptr;
    const bool may_be_worth = bytes >= least_in_request;
    const bool is_worth = may_be_worth && kept != nullptr &&
                          is_worth_packing(*kept, direction, message.count, bytes, message.comm);
    if (is_worth && offload::may_have_ending(call, packed(message))) {
        std::unique_ptr<PackedRequest> request(new (std::nothrow) PackedRequest(
            direction, message.sendbuf, message.count, bytes, *kept, row_of(type)));
        if (request != nullptr && request->begin(type, message.comm)) return request;
    }
    if (!may_be_worth || (!is_worth && is_settled(kept, PackedIn::call, direction, bytes, type)))
        leave({.way = direction == kernels::Direction::pack ? TypedCall::Way::post_send
                                                            : TypedCall::Way::post_receive,
               .type = type,
               .object = library::number_of_handle(message.comm),
               .count = message.count},
              gone_before);
    else if (kept == nullptr ||
             kept->proof.load(std::memory_order_relaxed) == KeptPlan::Proof::open)
        sample_packing(message.sendbuf, message.count, bytes, type, message.comm);
    count_left(kept, direction, bytes, type);
    return nullptr;
}

// False: memory is short.
bool PackedRequest::begin(MPI_Datatype type, MPI_Comm comm) noexcept {
    if (!packed_.take(static_cast<size_t>(bytes_))) return false;
    if (direction_ == kernels::Direction::unpack) {
        if (plan_->trial(PackedIn::call, direction_, bytes_).winner() == Trial::open)
            tried_.emplace(type, Uses::one);
        return !tried_ || tried_->get() != MPI_DATATYPE_NULL;
    }
    if (plan_->value_type != MPI_DATATYPE_NULL) sent_as_ = {plan_->value_type, plan_->value_bytes};
    return PackedBuffer(memory_, count_, type, comm).pack_to(packed_.place()) == MPI_SUCCESS;
}

// The program may have freed its communicator: another one does as well for MPI_Unpack.
void PackedRequest::complete(const MPI_Status& status, int error) noexcept {
    int is_cancelled = 0;
    real.Test_cancelled(&status, &is_cancelled);
    if (direction_ == kernels::Direction::pack || error != MPI_SUCCESS || is_cancelled != 0) return;
    MPI_Count received = 0;
    real.Get_count_c(&status, MPI_BYTE, &received);
    count(Counter::plan_messages);
    if (tried_ && received == bytes_ &&
        PackedBuffer(memory_, count_, *tried_, MPI_COMM_SELF).unpack_from(packed_.place()) ==
            MPI_SUCCESS)
        return;
    plan_->plan.copy(direction_, packed_.place(), memory_, count_, 0, std::min(received, bytes_));
    count_by_plan(row_, static_cast<uint64_t>(bytes_));
}

}  // namespace vecmpi::datatype
