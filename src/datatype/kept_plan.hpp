// SPDX-License-Identifier: BSD-3-Clause
// A plan and all that is known of it, whatever handles have its type; and where such plans are
// kept, so that a type which codes make anew each step begins with its plan. Inside src/datatype
// and its tests only.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "datatype/api.hpp"
#include "decode.hpp"
#include "pack_trial.hpp"

namespace vecmpi::datatype {

// Where our steps pack: in MPI_Pack and MPI_Unpack, in their external forms, in the functions that
// UCX calls, or around a call of MPI-IO.
enum class PackedIn : uint8_t { call, external_call, message, file, file_of_all };
constexpr size_t number_of_uses = 5;

struct ExternalValue;

struct KeptPlan : std::enable_shared_from_this<KeptPlan> {
    KeptPlan(std::unique_ptr<const PlanSteps> steps, const TypeDigest& digest) noexcept;
    const TypeDigest digest;
    const size_t memory_bytes;
    const PackPlan plan;
    Padding padding;  // of its stream
    // Of all values, or MPI_DATATYPE_NULL: a packed message may be sent as so many of these, in
    // pieces that end wherever the library likes.
    MPI_Datatype value_type = MPI_DATATYPE_NULL;
    MPI_Count value_bytes = 1;
    // Of all values, where "external32" may be a reversal of their bytes; else null.
    const ExternalValue* external_value = nullptr;
    int64_t mean_block_bytes = 1;  // of what is dense in memory
    // ROMIO takes such a type for what it is.
    bool serves_files = false;
    // A piece of a message may end at its multiples; 0: not known. MPICH 4.0.2 ends each piece
    // after a whole value. It fails or hangs where a piece that we packed ends within one.
    int64_t cut_bytes = 0;

    // Whether it gives the library's bytes. The first call or message that can show it does.
    enum class Proof : uint8_t { open, shown, refuted };
    mutable std::atomic<Proof> proof{Proof::open};
    mutable std::atomic<Proof> external_proof{Proof::open};  // with its values reversed
    mutable std::atomic<MPI_Count> compared_bytes{0};
    // Whether the call takes MPI_BOTTOM, by form and direction. MPICH 4.0.2's MPI_Pack and
    // MPI_Unpack refuse it.
    mutable std::atomic<bool> takes_bottom[number_of_data_forms][2]{};

    Trial& trial(PackedIn in, kernels::Direction direction, MPI_Count bytes) const noexcept {
        return trials_[static_cast<size_t>(in)][static_cast<size_t>(direction)]
                      [length_class(bytes)];
    }
    void award_use(PackedIn use, Packer who) const noexcept;
    void award_all(Packer who) const noexcept;
    // A plan's first turns find neither its code nor its tables in the caches.
    Trial::Memory memory_of_turn() const noexcept {
        constexpr unsigned first_turns = 8;
        return turns_.load(std::memory_order_relaxed) < first_turns &&
                       turns_.fetch_add(1, std::memory_order_relaxed) < first_turns
                   ? Trial::Memory::cold
                   : Trial::Memory::warm;
    }

  private:
    mutable Trial trials_[number_of_uses][2][length_classes];  // by PackedIn and direction
    mutable std::atomic<unsigned> turns_{0};
};

// Plans by the digest of their type's description. They take VECMPI_PACK_MEMORY at most; what no
// type has goes first, the longest unused before others.
class PlanStore {
  public:
    PlanStore() = default;
    ~PlanStore() { clear(); }
    PlanStore(const PlanStore&) = delete;
    PlanStore& operator=(const PlanStore&) = delete;

    bool is_empty() const noexcept { return number_.load(std::memory_order_relaxed) == 0; }
    // May there be a plan of a type of this size and extent? Cheap: no description is read.
    bool may_have(MPI_Count size, MPI_Count extent) noexcept;
    PlanReference find(const TypeDigest& digest) noexcept;
    // Null where it would take too much memory, or there is none. Where another thread was first,
    // that one's plan.
    PlanReference keep(std::unique_ptr<const KeptPlan> plan, const TypeTree& tree) noexcept;
    void clear() noexcept;
    size_t bytes() noexcept;  // of all that are kept

  private:
    struct Entry {
        PlanReference plan;
        uint64_t shape;
    };
    void take_out(std::list<Entry>::iterator entry, std::list<Entry>& gone) noexcept;
    bool take_room(size_t bytes, std::list<Entry>& gone) noexcept;

    std::mutex mutex_;
    std::list<Entry> entries_;                                            // the last used first
    std::unordered_map<uint64_t, std::list<Entry>::iterator> by_digest_;  // by its first half
    std::unordered_multiset<uint64_t> shapes_;
    std::atomic<size_t> number_{0};
    size_t bytes_ = 0;
};

inline PlanStore& plan_store() {
    static auto* const store = new PlanStore;  // outlives all callers
    return *store;
}

}  // namespace vecmpi::datatype
