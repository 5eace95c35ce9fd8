// SPDX-License-Identifier: BSD-3-Clause
// The plans of the program's datatypes, by handle, and the calls that they serve.
//
// A handle is worth no more than the reference that the program holds. So a plan goes before the
// program gives a handle back, and again after the library gave one out. A program that uses a
// handle it does not hold (inside a type that it was given away with) can find no other type's plan
// either: every new type passes MPI_Type_commit or MPI_Type_dup.
#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "plan_steps.hpp"
#include "vecmpi/offload.hpp"

namespace vecmpi {

namespace {

using PlanPointer = std::shared_ptr<const PackPlan>;

// A plan costs some microseconds, more than a few calls gain by it.
constexpr uint64_t calls_before_plan = 16, bytes_before_plan = 16 << 10;

// How often a datatype was packed, a word each: handle (32 bits), decided (1), calls (8), units of
// bytes (23). Relaxed: a word that another type takes over, or an update that is lost, costs
// nothing but time. So a type that is made, used and freed takes no lock.
class Tally {
  public:
    bool is_decided(MPI_Datatype type) const noexcept {
        const uint64_t word = slot(type).load(std::memory_order_relaxed);
        return is_of(word, type) && (word & decided_bit) != 0;
    }
    void set_decided(MPI_Datatype type) noexcept {
        slot(type).store(key(type) | decided_bit, std::memory_order_relaxed);
    }
    // True once the type is worth a plan, or has been.
    bool add(MPI_Datatype type, uint64_t bytes) noexcept {
        std::atomic<uint64_t>& place = slot(type);
        uint64_t word = place.load(std::memory_order_relaxed);
        if (!is_of(word, type)) word = key(type);
        const uint64_t calls = std::min((word >> 23 & most_calls) + 1, most_calls);
        const uint64_t units = std::min((word & most_units) + bytes / unit, most_units);
        place.store(key(type) | (word & decided_bit) | calls << 23 | units,
                    std::memory_order_relaxed);
        return calls > 1 && (units >= bytes_before_plan / unit || calls >= calls_before_plan);
    }
    void forget(MPI_Datatype type) noexcept {
        std::atomic<uint64_t>& place = slot(type);
        if (is_of(place.load(std::memory_order_relaxed), type))
            place.store(0, std::memory_order_relaxed);
    }

  private:
    static constexpr uint64_t unit = 16, decided_bit = uint64_t{1} << 31, most_calls = 255,
                              most_units = (1 << 23) - 1;
    static uint64_t key(MPI_Datatype type) noexcept {
        return uint64_t{static_cast<uint32_t>(type)} << 32;
    }
    static bool is_of(uint64_t word, MPI_Datatype type) noexcept {
        return word >> 32 == static_cast<uint32_t>(type);
    }
    std::atomic<uint64_t>& slot(MPI_Datatype type) noexcept {
        return words_[static_cast<uint32_t>(type) % std::size(words_)];
    }
    const std::atomic<uint64_t>& slot(MPI_Datatype type) const noexcept {
        return words_[static_cast<uint32_t>(type) % std::size(words_)];
    }
    std::atomic<uint64_t> words_[512]{};
};
constinit Tally tally;

// Types that were decided on; a null plan: the library's.
std::mutex mutex;  // of the entries and the retired plans
std::unordered_map<MPI_Datatype, PlanPointer>& entries() {
    static auto* const map = new std::unordered_map<MPI_Datatype, PlanPointer>;  // outlives callers
    return *map;
}
// Of the entries, for who frees a type and need not look. Relaxed: the program has made sure that
// who used the type is done.
constinit std::atomic<size_t> number_of_entries{0};

// Plans whose type is gone, while a thread may be within one that it found before.
std::vector<PlanPointer>& retired() {
    static auto* const plans = new std::vector<PlanPointer>;
    return *plans;
}

// What a thread found last, so that most calls take no lock. `epoch` changes after a plan left the
// entries. A thread says that it is inside before it compares epochs; who retires a plan changes
// the epoch before it asks whether anybody is inside. Both are sequentially consistent, so one of
// the two sees the other.
struct LastFound {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    uint64_t epoch = 0;
    const PackPlan* plan = nullptr;  // null: the library's, for good
};
thread_local constinit LastFound last_found __attribute__((tls_model("initial-exec")));
constinit std::atomic<uint64_t> epoch{1};
constinit std::atomic<uint64_t> threads_inside{0};

class Inside {
  public:
    Inside() noexcept { threads_inside.fetch_add(1); }
    ~Inside() { threads_inside.fetch_sub(1, std::memory_order_release); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
};

// With the lock.
void retire(PlanPointer plan) {
    if (plan) retired().push_back(std::move(plan));
    epoch.fetch_add(1);
    if (threads_inside.load() == 0) retired().clear();
}

enum class Known : uint8_t { not_yet, library, plan };

// Inside. The plan stays while this thread is.
Known look_up(MPI_Datatype type, const PackPlan** plan) noexcept {
    const uint64_t now = epoch.load();
    if (last_found.type != type || last_found.epoch != now) {
        if (!tally.is_decided(type)) return Known::not_yet;
        const std::lock_guard lock(mutex);
        const auto found = entries().find(type);
        if (found == entries().end()) return Known::not_yet;
        last_found = {type, epoch.load(std::memory_order_relaxed), found->second.get()};
    }
    *plan = last_found.plan;
    return *plan != nullptr ? Known::plan : Known::library;
}

bool is_served(MPI_Datatype type) noexcept {
    return !is_builtin_type(type) && settings().pack != PackMode::off;
}

// All that the library may refuse is the library's to refuse.
bool is_in_order(const PackCall& call, MPI_Count bytes) noexcept {
    return call.memory != nullptr && call.memory != MPI_IN_PLACE && call.packed != nullptr &&
           call.position >= 0 && bytes <= call.packed_bytes - call.position &&
           comm_traits(call.comm).size > 0;
}

bool may_overlap(const PackCall& call, const PackPlan& plan) noexcept {
    return call.direction == Direction::unpack && call.count > plan.most_to_unpack();
}

char* stream_of(const PackCall& call) noexcept {
    return static_cast<char*>(call.packed) + call.position;
}

// What the library packed or unpacked, our plan must pack to the same bytes. (After an unpacking
// into blocks that overlap it does not: the last of them is in memory.)
bool gives_same_bytes(const PackPlan& plan, const PackCall& call, MPI_Count bytes) noexcept {
    constexpr MPI_Count part_bytes = 64 << 10;
    const auto compared = static_cast<size_t>(std::min(bytes, part_bytes));
    const Buffer<char> ours = allocate<char>(compared);
    if (!ours) return false;
    for (const MPI_Count first : {MPI_Count{0}, bytes - static_cast<MPI_Count>(compared)}) {
        plan.copy(Direction::pack, ours.get(), call.memory, call.count, first,
                  static_cast<MPI_Count>(compared));
        if (!std::equal(ours.get(), ours.get() + compared, stream_of(call) + first)) return false;
    }
    return true;
}

PlanPointer make_proved_plan(const PackCall& call, MPI_Count bytes) {
    Counter why = Counter::decline_gpu;
    PlanPointer plan = gpu_runtime_is_loaded() ? nullptr : make_plan(call.type, &why);
    if (plan && (plan->bytes() * call.count != bytes || !gives_same_bytes(*plan, call, bytes))) {
        why = may_overlap(call, *plan) ? Counter::decline_overlap : Counter::decline_plan;
        plan.reset();
        log_line(LogLevel::info, "datatype %08x stays with the library: other bytes than ours",
                 static_cast<unsigned>(call.type));
    }
    count(plan ? Counter::plans : why);
    return plan;
}

// True where somebody has decided on the type.
bool has_entry(MPI_Datatype type) {
    const std::lock_guard lock(mutex);
    return entries().contains(type);
}

void decide(MPI_Datatype type, PlanPointer plan) {
    const std::lock_guard lock(mutex);
    entries().try_emplace(type, std::move(plan));
    number_of_entries.store(entries().size(), std::memory_order_relaxed);
}

}  // namespace

bool pack_by_plan(const PackCall& call, MPI_Count* end) noexcept {
    if (!is_served(call.type) || call.count <= 0 || is_reentrant()) return false;
    const Inside inside;
    const PackPlan* plan = nullptr;
    if (look_up(call.type, &plan) != Known::plan) return false;
    MPI_Count bytes = 0;
    if (__builtin_mul_overflow(plan->bytes(), call.count, &bytes) || !is_in_order(call, bytes))
        return false;
    const auto decline = [](Counter why) noexcept {
        count(why);
        return false;
    };
    if (may_overlap(call, *plan)) return decline(Counter::decline_overlap);
    if (bytes > plan->most_bytes()) return decline(Counter::decline_slower);
    plan->copy_all(call.direction, stream_of(call), call.memory, call.count);
    count_call(static_cast<size_t>(call.call), Path::own_pack, static_cast<uint64_t>(bytes));
    *end = call.position + bytes;
    return true;
}

// Not where the library called us: its types come and go without us.
void note_packed_by_library(const PackCall& call, MPI_Count end) noexcept {
    const MPI_Count bytes = end - call.position;
    if (!is_served(call.type) || call.count <= 0 || bytes <= 0 || is_reentrant()) return;
    const bool is_the_librarys = last_found.type == call.type && last_found.plan == nullptr &&
                                 last_found.epoch == epoch.load(std::memory_order_relaxed);
    if (is_the_librarys || !tally.add(call.type, static_cast<uint64_t>(bytes)) ||
        !is_in_order(call, 0))
        return;
    try {
        if (!has_entry(call.type)) decide(call.type, make_proved_plan(call, bytes));
        tally.set_decided(call.type);
    } catch (const std::bad_alloc&) {
        return;
    }
}

PlanPointer plan_of(MPI_Datatype type) noexcept {
    const std::lock_guard lock(mutex);
    const auto found = entries().find(type);
    return found == entries().end() ? nullptr : found->second;
}

void forget_plan(MPI_Datatype type) noexcept {
    if (is_builtin_type(type)) return;
    tally.forget(type);
    if (number_of_entries.load(std::memory_order_relaxed) == 0) return;
    const std::lock_guard lock(mutex);
    const auto found = entries().find(type);
    if (found == entries().end()) return;
    PlanPointer plan = std::move(found->second);
    entries().erase(found);
    number_of_entries.store(entries().size(), std::memory_order_relaxed);
    retire(std::move(plan));
}

void forget_plans() noexcept {
    const std::lock_guard lock(mutex);
    for (auto& [type, plan] : entries()) {
        tally.forget(type);
        retire(std::move(plan));
    }
    entries().clear();
    number_of_entries.store(0, std::memory_order_relaxed);
}

}  // namespace vecmpi
