// SPDX-License-Identifier: BSD-3-Clause
// One-sided transfers whose origin is packed or unpacked by a plan, and which are.
//
// A transfer's packed bytes stay until a call of the program has completed it at its origin. They
// belong to its window. Several threads may transfer and complete at once: a call completes what
// was there before it began, so transfers are numbered.
//
// MPI_Win_flush_local is not trusted with packed bytes. MPICH 4.0's ch4:ucx keeps one state for
// each target: a put that is complete at once overwrites that of a get before it, and the local
// flush then waits for neither (MPIDI_NM_rma_target_local_cmpl_hook). The library's own gets into a
// derived datatype do not go that way, those into packed bytes do. So a get makes it a full flush.
// The bytes of puts just stay until the next full one, since that may wait for the target; where it
// does not come the library gets further transfers.
#include "transfers.hpp"

#include <algorithm>
#include <exception>

#include "base/api/needs.hpp"
#include "left_calls.hpp"
#include "offload/api.hpp"
#include "plan_making.hpp"
#include "plans_by_handle.hpp"
#include "type_rows.hpp"

namespace vecmpi::datatype {

constinit std::atomic<size_t> open_transfers{0};

// ---- transfers of a window ----------------------------------------------------------------------

WindowTransfers::~WindowTransfers() {
    for (const auto& [rank, target] : targets_)
        open_transfers.fetch_sub(open(target), std::memory_order_relaxed);
}

TransferTrials::Choice WindowTransfers::choose(int target, uint64_t kind, MPI_Count bytes,
                                               bool is_tried, Trial::Memory memory) {
    const std::lock_guard lock(mutex_);
    TransferTrials::Choice choice{Packer::plan, false};
    if (is_tried) choice = trials_.choose(kind, bytes, memory);
    if (choice.by == Packer::plan || choice.is_timed) targets_.try_emplace(target);
    return choice;
}

void WindowTransfers::take_back() noexcept {
    const std::lock_guard lock(mutex_);
    trials_.spoil_epoch();
}

void WindowTransfers::hold(int target, std::list<HeldTransfer>& transfer, uint64_t ns,
                           MPI_Count bytes, bool is_timed) noexcept {
    const std::lock_guard lock(mutex_);
    Target& held_of = targets_.find(target)->second;
    const uint64_t number = ++number_;
    const size_t before = open(held_of);
    if (is_timed && trials_.has_epoch()) {
        trials_.note_transfer(ns, bytes);
        held_of.last_timed = number;
    }
    if (!transfer.empty()) {
        transfer.front().number = number;
        if (transfer.front().plan) ++held_of.gets;
        held_of.held.splice(held_of.held.end(), transfer);
    }
    open_transfers.fetch_add(open(held_of) - before, std::memory_order_relaxed);
}

bool WindowTransfers::is_full(int target) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = targets_.find(target);
    return found != targets_.end() && found->second.left >= most_left_by_local_flushes;
}

WindowTransfers::Open WindowTransfers::open(int target) noexcept {
    const std::lock_guard lock(mutex_);
    Open open{number_, trials_.has_epoch(), false};
    if (target == all_targets) {
        open.needs_full_flush = std::ranges::any_of(
            targets_, [](const auto& one) noexcept { return one.second.gets != 0; });
    } else if (const auto found = targets_.find(target); found != targets_.end()) {
        open.needs_full_flush = found->second.gets != 0;
    }
    return open;
}

void WindowTransfers::complete_fully(Target& target, uint64_t last,
                                     std::list<HeldTransfer>& gone) noexcept {
    while (!target.held.empty() && target.held.front().number <= last) {
        const HeldTransfer& transfer = target.held.front();
        if (transfer.plan) {
            transfer.plan->plan.copy_all(kernels::Direction::unpack, transfer.packed.place(),
                                         transfer.origin, transfer.count);
            --target.gets;
        }
        gone.splice(gone.end(), target.held, target.held.begin());
    }
    target.left = 0;
}

void WindowTransfers::complete(Target& target, uint64_t last, Completes what,
                               std::list<HeldTransfer>& gone) noexcept {
    const size_t before = open(target);
    if (what == Completes::fully)
        complete_fully(target, last, gone);
    else
        target.left = target.held.size();
    if (target.last_timed <= last) target.last_timed = 0;
    open_transfers.fetch_sub(before - open(target), std::memory_order_release);
}

bool WindowTransfers::is_complete() const noexcept {
    return std::ranges::all_of(
        targets_, [](const auto& target) noexcept { return target.second.last_timed == 0; });
}

void WindowTransfers::complete(int target, uint64_t last, uint64_t since_ns, EpochEnd end,
                               Completes what) noexcept {
    std::list<HeldTransfer> gone;
    const std::lock_guard lock(mutex_);
    if (target == all_targets) {
        for (auto& [rank, of_rank] : targets_) complete(of_rank, last, what, gone);
    } else if (const auto found = targets_.find(target); found != targets_.end()) {
        complete(found->second, last, what, gone);
    }
    if (since_ns == 0 || !trials_.has_epoch()) return;
    trials_.note_completion(monotonic_ns() - since_ns);
    if (is_complete()) trials_.end_epoch(end);
}

// ---- windows ------------------------------------------------------------------------------------

namespace {

using WindowReference = std::shared_ptr<WindowTransfers>;

struct WindowTable {
    std::mutex mutex;
    std::unordered_map<MPI_Win, WindowReference> windows;
};
WindowTable& window_table() noexcept {
    static auto* const table = new WindowTable;  // outlives all callers
    return *table;
}

WindowReference find_window(MPI_Win win) noexcept {
    WindowTable& table = window_table();
    const std::lock_guard lock(table.mutex);
    const auto found = table.windows.find(win);
    return found != table.windows.end() ? found->second : nullptr;
}

int ranks_of(MPI_Win win) noexcept {
    MPI_Group group = MPI_GROUP_NULL;
    int ranks = 0;
    if (real.Win_get_group(win, &group) != MPI_SUCCESS) return 0;
    real.Group_size(group, &ranks);
    real.Group_free(&group);
    return ranks;
}

// The library has served a transfer of it, so it is a window. From here on we see what completes
// its transfers.
void meet_window(MPI_Win win) noexcept {
    try {
        auto window = std::make_shared<WindowTransfers>(ranks_of(win));
        set_need(Need::held_transfers, true);
        WindowTable& table = window_table();
        const std::lock_guard lock(table.mutex);
        table.windows.try_emplace(win, std::move(window));
    } catch (const std::exception&) {  // no memory: the next transfer meets it
    }
}

uint64_t kind_of(const TransferCall& call, const KeptPlan& kept, MPI_Count bytes) noexcept {
    constexpr uint64_t odd = 0x9e3779b97f4a7c15u;
    const auto variant = static_cast<uint64_t>(call.way) * 2 + (call.has_dense_target ? 1 : 0);
    const uint64_t mixed =
        (kept.digest.low ^ (variant * length_classes + length_class(bytes))) * odd;
    return mixed ^ mixed >> 32;
}

}  // namespace

FreedWindow::FreedWindow(MPI_Win win) noexcept : win_(win) {
    WindowTable& table = window_table();
    const std::lock_guard lock(table.mutex);
    handles_gone.fetch_add(1, std::memory_order_relaxed);
    if (auto node = table.windows.extract(win)) transfers_ = std::move(node.mapped());
}

void FreedWindow::was_refused() noexcept {
    if (!transfers_) return;
    try {
        WindowTable& table = window_table();
        const std::lock_guard lock(table.mutex);
        table.windows.try_emplace(win_, std::move(transfers_));
    } catch (const std::exception&) {  // no memory
    }
}

void forget_transfers() noexcept {
    set_need(Need::typed_transfers, false);
    set_need(Need::held_transfers, false);
    WindowTable& table = window_table();
    const std::lock_guard lock(table.mutex);
    table.windows.clear();
}

// ---- a transfer ---------------------------------------------------------------------------------

namespace {

// The target may have less than the origin, whose rest a get then leaves alone (MPI 4.0, 12.3.2).
bool fills_origin(const TransferCall& call, MPI_Count bytes) noexcept {
    MPI_Count come = 0;
    return library::is_type_handle(call.target_type) &&
           !__builtin_mul_overflow(call.target_count, offload::size_of(call.target_type), &come) &&
           come == bytes;
}

}  // namespace

Transfer::Transfer(const TransferCall& call) noexcept : call_(call) {
    const uint64_t gone_before = handles_gone.load(std::memory_order_relaxed);
    if (call.count <= 0 || call.origin == nullptr || offload::is_reentrant() ||
        settings().pack == PackMode::off || !offload::engine_runs())
        return;
    plan_ = plan_for_transfer(call.origin, call.count, call.type);
    if (!plan_) {
        if (is_counted(call.type))
            since_ns_ = monotonic_ns();
        else
            leave(call_.as_typed(), gone_before);
        return;
    }
    if (!is_served()) {
        leave(call_.as_typed(), gone_before);
        return;
    }
    if (call.way == TypedCall::Way::get && !fills_origin(call, bytes_)) return;
    window_ = find_window(call.win);
    if (!window_ || call.target >= window_->ranks()) return;
    try {
        if (take_turn() == Turn::over) leave(call_.as_typed(), gone_before);
    } catch (const std::exception&) {  // no memory
        transfer_.clear();
    }
}

Transfer::~Transfer() = default;

// Values of one predefined type go as such, which is what a program does that packs by hand. Of
// mixed values the target could get pieces that end within one, and MPICH 4.0.2 hangs there; but
// it may send what it has packed itself to an origin of bytes.
bool Transfer::is_served() noexcept {
    const bool packs = call_.way != TypedCall::Way::get;
    const bool is_tried = settings().pack == PackMode::automatic;
    if (__builtin_mul_overflow(plan_->plan.bytes(), call_.count, &bytes_) || bytes_ <= 0 ||
        (is_tried && bytes_ < least_packed_bytes))
        return false;
    if (plan_->value_type != MPI_DATATYPE_NULL) {
        sent_type_ = plan_->value_type;
        sent_count_ = bytes_ / offload::size_of(sent_type_);
    } else {
        if (packs) return false;
        sent_count_ = bytes_;
    }
    return sent_count_ <= call_.most_count &&
           (packs || call_.count <= plan_->plan.most_to_unpack());
}

Transfer::Turn Transfer::take_turn() {
    const bool is_tried = settings().pack == PackMode::automatic;
    if (window_->is_full(call_.target)) return Turn::tried;
    const auto [by, is_timed] = window_->choose(call_.target, kind_of(call_, *plan_, bytes_),
                                                bytes_, is_tried, plan_->memory_of_turn());
    if (is_timed) since_ns_ = monotonic_ns();
    if (by == Packer::library) return is_timed ? Turn::tried : Turn::over;
    transfer_.emplace_back();
    HeldTransfer& held = transfer_.front();
    if (!held.packed.take(static_cast<size_t>(bytes_))) {
        transfer_.clear();
        if (is_timed) window_->take_back();
        return Turn::tried;
    }
    held.origin = call_.origin;
    held.count = call_.count;
    if (call_.way == TypedCall::Way::get)
        held.plan = plan_;
    else
        plan_->plan.copy_all(kernels::Direction::pack, held.packed.place(), call_.origin,
                             call_.count);
    return Turn::tried;
}

void* Transfer::place() const noexcept { return transfer_.front().packed.place(); }

void Transfer::end(int error) noexcept {
    if (error != MPI_SUCCESS) {
        if (window_ && since_ns_ != 0) window_->take_back();
        transfer_.clear();
        return;
    }
    const uint64_t ns = since_ns_ != 0 ? monotonic_ns() - since_ns_ : 0;
    if (!plan_) {
        if (ns != 0) tally_packed_later(call_.type, ns);
        return;
    }
    if (!window_) {
        if (sent_count_ > 0) meet_window(call_.win);
        return;
    }
    if (!transfer_.empty()) {
        count(Counter::plan_transfers);
        count_by_plan(row_of(call_.type), static_cast<uint64_t>(bytes_));
    }
    if (!transfer_.empty() || since_ns_ != 0)
        window_->hold(call_.target, transfer_, ns, bytes_, since_ns_ != 0);
}

// ---- what completes transfers -------------------------------------------------------------------

TransferCompletion::TransferCompletion(MPI_Win win, int target) noexcept : target_(target) {
    if (open_transfers.load(std::memory_order_acquire) == 0) return;
    window_ = find_window(win);
    if (!window_) return;
    const WindowTransfers::Open open = window_->open(target);
    last_ = open.last;
    needs_full_flush_ = open.needs_full_flush;
    if (open.is_timed) since_ns_ = monotonic_ns();
}

TransferCompletion::~TransferCompletion() = default;

void TransferCompletion::end(int error, bool waits_for_others, Completes what) noexcept {
    if (!window_ || error != MPI_SUCCESS) return;
    window_->complete(target_, last_, since_ns_,
                      waits_for_others ? EpochEnd::with_others : EpochEnd::own, what);
}

}  // namespace vecmpi::datatype
