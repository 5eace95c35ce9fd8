// SPDX-License-Identifier: BSD-3-Clause
#include "kept_plan.hpp"

#include <exception>
#include <utility>

#include "pack_memory.hpp"
#include "plan_making.hpp"

namespace vecmpi::datatype {

namespace {

uint64_t shape_of(MPI_Count size, MPI_Count extent) noexcept {
    return static_cast<uint64_t>(size) * 0x9e3779b97f4a7c15u ^ static_cast<uint64_t>(extent);
}

}  // namespace

KeptPlan::KeptPlan(std::unique_ptr<const PlanSteps> steps,
                   const TypeDigest& digest_of_type) noexcept
    : digest(digest_of_type),
      memory_bytes(sizeof(KeptPlan) + steps->memory_bytes),
      plan(std::move(steps)) {
    for (auto& of_use : trials_)
        for (auto& of_direction : of_use)
            of_direction[length_classes - 1].admit(0b11, Trial::Calls::are_long);
}

void KeptPlan::award_use(PackedIn use, Packer who) const noexcept {
    for (auto& of_direction : trials_[static_cast<size_t>(use)])
        for (Trial& trial : of_direction) award(trial, who);
}

void KeptPlan::award_all(Packer who) const noexcept {
    for (size_t use = 0; use < number_of_uses; ++use) award_use(static_cast<PackedIn>(use), who);
}

bool PlanStore::may_have(MPI_Count size, MPI_Count extent) noexcept {
    if (is_empty()) return false;
    const std::lock_guard lock(mutex_);
    return shapes_.contains(shape_of(size, extent));
}

PlanReference PlanStore::find(const TypeDigest& digest) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = by_digest_.find(digest.low);
    if (found == by_digest_.end() || found->second->plan->digest != digest) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->plan;
}

// With the lock. The entry's memory is free for others; it goes to `gone`.
void PlanStore::take_out(std::list<Entry>::iterator entry, std::list<Entry>& gone) noexcept {
    const size_t bytes = entry->plan->memory_bytes;
    bytes_ -= bytes;
    give_back_pack_memory(bytes);
    by_digest_.erase(entry->plan->digest.low);
    shapes_.erase(shapes_.find(entry->shape));
    gone.splice(gone.end(), entries_, entry);
}

// With the lock. Drops plans that no type has until there is room. Nobody gets a reference but by
// find(), so an unused plan stays so.
bool PlanStore::take_room(size_t bytes, std::list<Entry>& gone) noexcept {
    if (take_pack_memory(bytes)) return true;
    for (auto last = entries_.end(); last != entries_.begin();) {
        const auto entry = std::prev(last);
        if (entry->plan.use_count() > 1) {
            last = entry;
            continue;
        }
        take_out(entry, gone);
        if (take_pack_memory(bytes)) return true;
    }
    return false;
}

PlanReference PlanStore::keep(std::unique_ptr<const KeptPlan> plan, const TypeTree& tree) noexcept {
    std::list<Entry> gone;  // freed after the lock is
    try {
        std::list<Entry> made;
        const TypeDigest digest = plan->digest;
        made.push_back({PlanReference(std::move(plan)), shape_of(tree.size, tree.extent)});
        const std::lock_guard lock(mutex_);
        if (const auto found = by_digest_.find(digest.low); found != by_digest_.end()) {
            const PlanReference& there = found->second->plan;
            return there->digest == digest ? there : nullptr;
        }
        const size_t bytes = made.front().plan->memory_bytes;
        const auto shape = shapes_.insert(made.front().shape);
        try {
            by_digest_.emplace(digest.low, made.begin());
        } catch (const std::exception&) {
            shapes_.erase(shape);
            throw;
        }
        if (!take_room(bytes, gone)) {
            by_digest_.erase(digest.low);
            // Not `shape`: a plan of the same shape may have gone with that node.
            shapes_.erase(shapes_.find(made.front().shape));
            number_.store(entries_.size(), std::memory_order_relaxed);
            return nullptr;
        }
        bytes_ += bytes;
        entries_.splice(entries_.begin(), made);
        number_.store(entries_.size(), std::memory_order_relaxed);
        return entries_.front().plan;
    } catch (const std::exception&) {  // no memory
        return nullptr;
    }
}

void PlanStore::clear() noexcept {
    std::list<Entry> gone;
    const std::lock_guard lock(mutex_);
    while (!entries_.empty()) take_out(entries_.begin(), gone);
    number_.store(0, std::memory_order_relaxed);
}

size_t PlanStore::bytes() noexcept {
    const std::lock_guard lock(mutex_);
    return bytes_;
}

}  // namespace vecmpi::datatype
