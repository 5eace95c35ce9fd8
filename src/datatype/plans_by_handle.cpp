// SPDX-License-Identifier: BSD-3-Clause
// A table of sets of four places, searched without a lock. Its readers hold hazard pointers
// (Michael, Hazard pointers: safe memory reclamation for lock-free objects, IEEE TPDS 15, 2004), so
// that a plan's memory is freed as soon as nobody uses the plan.
#include "plans_by_handle.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <new>
#include <utility>

#include "offload/api.hpp"

namespace vecmpi::datatype {

namespace {

// ---- readers -----------------------------------------------------------------------------------

// A hazard pointer, taken and given back with each use; null: free. Sequentially consistent: a
// reader writes what it uses, then asks whether that is still in the table. Who takes a plan out of
// the table asks afterwards who uses it. So one of the two sees the other.
struct alignas(64) Reader {
    std::atomic<const HeldPlan*> uses{nullptr};
};
constexpr unsigned number_of_readers = 64;
constinit Reader readers[number_of_readers];

// Where a thread begins to look. Relaxed: where two begin with the same, one goes on to the next.
unsigned first_reader() noexcept {
    static constinit std::atomic<unsigned> threads{0};
    constexpr unsigned none = UINT32_MAX;
    thread_local constinit unsigned mine __attribute__((tls_model("initial-exec"))) = none;
    if (mine == none) mine = threads.fetch_add(1, std::memory_order_relaxed) % number_of_readers;
    return mine;
}

constinit std::atomic<bool> has_one_caller{false};

// Null where all are taken.
std::atomic<const HeldPlan*>* take_reader(const HeldPlan* held) noexcept {
    const unsigned first = first_reader();
    for (unsigned i = 0; i < number_of_readers; ++i) {
        std::atomic<const HeldPlan*>& uses = readers[(first + i) % number_of_readers].uses;
        const HeldPlan* nobody = nullptr;
        if (uses.load(std::memory_order_relaxed) != nullptr) continue;
        if (!may_be_called_at_once()) {
            uses.store(held, std::memory_order_relaxed);
            return &uses;
        }
        if (uses.compare_exchange_strong(nobody, held)) return &uses;
    }
    return nullptr;
}

bool is_used(const HeldPlan* held) noexcept {
    return std::any_of(std::begin(readers), std::end(readers),
                       [&](const Reader& reader) { return reader.uses.load() == held; });
}

// ---- places ------------------------------------------------------------------------------------

// A word: handle (32 bits), settled (1), deciding (1), how often put off (4), units of the
// library's time (26). Counting is relaxed: a lost update only delays a plan.
constexpr uint64_t settled_bit = uint64_t{1} << 31, deciding_bit = uint64_t{1} << 30,
                   decided_bits = settled_bit | deciding_bit;
constexpr unsigned put_off_shift = 26;
constexpr uint64_t most_units = (uint64_t{1} << put_off_shift) - 1, most_put_off = 13;
constexpr uint64_t unit_ns = 16;

constexpr unsigned key_shift = 32;
uint64_t key_of(MPI_Datatype type) noexcept {
    return uint64_t{library::key_of_handle(type)} << key_shift;
}
bool is_of(uint64_t word, MPI_Datatype type) noexcept {
    return word >> key_shift == library::key_of_handle(type);
}
uint64_t put_off_of(uint64_t word) noexcept { return word >> put_off_shift & 15; }

// `plan` is not null only while the word is settled: it is written after the word, and taken out
// before it. Both happen under the lock.
struct Place {
    std::atomic<uint64_t> word{0};
    std::atomic<HeldPlan*> plan{nullptr};
};

// 4096 types. The keys of handles count up, or are places in a hash table, so their lowest bits
// spread them evenly. A type that finds no place is left to the library, and tries again with its
// next call.
constexpr size_t number_of_sets = 1024, ways = 4;
constinit Place table[number_of_sets][ways];

std::mutex mutex;  // for verdicts and for what follows
constinit HeldPlan* retired = nullptr;
constinit size_t number_of_retired = 0, number_in_table = 0;

Place* find(MPI_Datatype type) noexcept {
    const uint32_t key = library::key_of_handle(type);  // 0: never has a place
    for (Place& place : table[key % number_of_sets])
        if (place.word.load(std::memory_order_relaxed) >> key_shift == key)
            return key != 0 ? &place : nullptr;
    return nullptr;
}

// A free place, or else that of the type on which the library has spent least.
Place* claim(MPI_Datatype type) noexcept {
    const uint32_t key = library::key_of_handle(type);
    if (key == 0) return nullptr;
    Place* best = nullptr;
    uint64_t least = 0;
    for (Place& place : table[key % number_of_sets]) {
        const uint64_t word = place.word.load(std::memory_order_relaxed);
        const bool is_counted = (word & decided_bits) == 0;
        if (!is_counted || (best != nullptr && (word & most_units) >= (least & most_units)))
            continue;
        best = &place;
        least = word;
        if (word == 0) break;
    }
    const bool is_mine =
        best != nullptr && best->word.compare_exchange_strong(least, uint64_t{key} << key_shift,
                                                              std::memory_order_relaxed);
    return is_mine ? best : nullptr;
}

// Plans that nobody can reach any more. Declared before the lock, so that they are freed after it:
// one has up to 4 MiB in many pieces.
class Unused {
  public:
    Unused() = default;
    ~Unused() {
        while (first_ != nullptr) delete std::exchange(first_, first_->next);
    }
    Unused(const Unused&) = delete;
    Unused& operator=(const Unused&) = delete;
    void add(HeldPlan* held) noexcept {
        held->next = first_;
        first_ = held;
    }

  private:
    HeldPlan* first_ = nullptr;
};

// With the lock. Moves retired plans that nobody uses.
void sweep(Unused& unused) noexcept {
    number_of_retired = 0;
    for (HeldPlan** link = &retired; *link != nullptr;) {
        HeldPlan* const candidate = *link;
        if (is_used(candidate)) {
            link = &candidate->next;
            ++number_of_retired;
        } else {
            *link = candidate->next;
            unused.add(candidate);
        }
    }
}

// With the lock.
void empty(Place& place, Unused& unused) noexcept {
    HeldPlan* const held = place.plan.exchange(nullptr);
    place.word.store(0, std::memory_order_relaxed);
    if (held == nullptr) return;
    --number_in_table;
    held->next = retired;
    retired = held;
    sweep(unused);
}

}  // namespace

void expect_one_caller(bool one) noexcept { has_one_caller.store(one, std::memory_order_relaxed); }
bool may_be_called_at_once() noexcept {
    return !has_one_caller.load(std::memory_order_relaxed) || offload::session_was_opened();
}

PlanInUse::PlanInUse(MPI_Datatype type) noexcept {
    const Place* const place = find(type);
    if (place == nullptr) return;
    const HeldPlan* const held = place->plan.load(std::memory_order_relaxed);
    if (held == nullptr) return;
    reader_ = take_reader(held);
    if (reader_ == nullptr) return;
    // The place may have changed hands meanwhile.
    if (place->plan.load() == held && held->type == type) kept_ = held->kept.get();
}

bool is_counted(MPI_Datatype type) noexcept {
    const Place* const place = find(type);
    return place == nullptr || (place->word.load(std::memory_order_relaxed) & settled_bit) == 0;
}

void note_committed(MPI_Datatype type) noexcept {
    if (find(type) == nullptr) claim(type);
}

bool is_counted_and_committed(MPI_Datatype type) noexcept {
    return find(type) != nullptr && is_counted(type);
}

uint64_t tally_library_time(MPI_Datatype type, uint64_t ns, uint64_t worth_ns) noexcept {
    Place* place = find(type);
    if (place == nullptr) place = claim(type);
    if (place == nullptr) return 0;
    uint64_t word = place->word.load(std::memory_order_relaxed);
    if (!is_of(word, type) || (word & decided_bits) != 0) return 0;
    const uint64_t units = std::min((word & most_units) + ns / unit_ns, most_units);
    const uint64_t worth = std::min(worth_ns / unit_ns << put_off_of(word), most_units);
    uint64_t next = (word & ~most_units) | units;
    if (units >= worth) next |= deciding_bit;
    const bool is_counted =
        place->word.compare_exchange_strong(word, next, std::memory_order_relaxed);
    return is_counted && units >= worth ? std::max(units * unit_ns, unit_ns) : 0;
}

void put_off(MPI_Datatype type) noexcept {
    Place* const place = find(type);
    if (place == nullptr) return;
    uint64_t word = place->word.load(std::memory_order_relaxed);
    if (!is_of(word, type) || (word & decided_bits) != deciding_bit) return;
    const uint64_t times = std::min(put_off_of(word) + 1, most_put_off);
    place->word.compare_exchange_strong(word, key_of(type) | times << put_off_shift,
                                        std::memory_order_relaxed);
}

namespace {

std::unique_ptr<HeldPlan> hold(MPI_Datatype type, PlanReference plan) noexcept {
    return std::unique_ptr<HeldPlan>(plan ? new (std::nothrow) HeldPlan(type, std::move(plan))
                                          : nullptr);
}

// With the lock. Not where the place has become another's meanwhile, or was decided.
void put(Place* place, MPI_Datatype type, uint64_t expected_bits,
         std::unique_ptr<HeldPlan> held) noexcept {
    if (place == nullptr) return;
    uint64_t word = place->word.load(std::memory_order_relaxed);
    if (!is_of(word, type) || (word & decided_bits) != expected_bits) return;
    if (!place->word.compare_exchange_strong(word, key_of(type) | settled_bit,
                                             std::memory_order_relaxed))
        return;
    number_in_table += held != nullptr ? 1 : 0;
    place->plan.store(held.release());
}

}  // namespace

void settle(MPI_Datatype type, PlanReference plan) noexcept {
    std::unique_ptr<HeldPlan> held = hold(type, std::move(plan));
    const std::lock_guard lock(mutex);
    put(find(type), type, deciding_bit, std::move(held));
}

void give_plan(MPI_Datatype type, PlanReference plan) noexcept {
    std::unique_ptr<HeldPlan> held = hold(type, std::move(plan));
    if (held == nullptr) return;
    const std::lock_guard lock(mutex);
    Place* const place = find(type);
    put(place != nullptr ? place : claim(type), type, 0, std::move(held));
}

// A type that is made, used a little and freed takes no lock. It may have two places, where two
// threads counted it at once.
constinit std::atomic<uint64_t> handles_gone{0};

void drop_place(MPI_Datatype type) noexcept {
    handles_gone.fetch_add(1, std::memory_order_relaxed);
    for (Place& place : table[library::key_of_handle(type) % number_of_sets]) {
        uint64_t word = place.word.load(std::memory_order_relaxed);
        if (!is_of(word, type)) continue;
        if ((word & settled_bit) == 0 &&
            place.word.compare_exchange_strong(word, 0, std::memory_order_relaxed))
            continue;
        Unused unused;
        const std::lock_guard lock(mutex);
        if (is_of(place.word.load(std::memory_order_relaxed), type)) empty(place, unused);
    }
}

void empty_table() noexcept {
    handles_gone.fetch_add(1, std::memory_order_relaxed);
    Unused unused;
    const std::lock_guard lock(mutex);
    for (auto& set : table)
        for (Place& place : set) empty(place, unused);
    sweep(unused);
}

size_t plans_alive() noexcept {
    const std::lock_guard lock(mutex);
    return number_in_table + number_of_retired;
}

}  // namespace vecmpi::datatype
