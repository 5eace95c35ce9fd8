// SPDX-License-Identifier: BSD-3-Clause
// Datatypes that a collective of ours has still to pack or unpack, while the program may free them.
// Of plans it knows that they go with their handles, and that a reference keeps one.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <vector>

#include "datatype/api.hpp"
#include "offload/api.hpp"
#include "plan_making.hpp"

namespace vecmpi::datatype {

namespace {

struct Use {
    MPI_Datatype type;
    unsigned calls;
    bool is_freed;  // by the program
};

// As many as there are threads in such calls, times two.
std::mutex uses_lock;
constinit std::atomic<size_t> uses_held{0};  // for those who ask without the lock
std::vector<Use>& uses() noexcept {
    static auto& all = *new std::vector<Use>;  // programs call MPI from atexit functions too
    return all;
}
std::vector<Use>::iterator use_of(MPI_Datatype type) noexcept {
    return std::find_if(uses().begin(), uses().end(),
                        [type](const Use& use) { return use.type == type; });
}

// True where the program has freed it meanwhile.
bool end_of_use(MPI_Datatype type) noexcept {
    const std::lock_guard guard(uses_lock);
    const auto use = use_of(type);
    if (--use->calls != 0) return false;
    const bool is_freed = use->is_freed;
    *use = uses().back();
    uses().pop_back();
    uses_held.store(uses().size(), std::memory_order_relaxed);
    return is_freed;
}

}  // namespace

TypeInUse::TypeInUse(MPI_Datatype type) noexcept : type_(type) {
    if (library::is_builtin_type(type)) return;
    const std::lock_guard guard(uses_lock);
    if (const auto use = use_of(type); use != uses().end()) {
        ++use->calls;
        is_noted_ = true;
        return;
    }
    try {
        uses().push_back({type, 1, false});
        uses_held.store(uses().size(), std::memory_order_relaxed);
        is_noted_ = true;
    } catch (const std::bad_alloc&) {  // then the program had better not free it
    }
}

TypeInUse::~TypeInUse() {
    if (!is_noted_ || !end_of_use(type_)) return;
    const offload::DirectCall scope(Call::Type_free);
    forget_plan(type_);
    real.Type_free(&type_);
}

// A program frees a type after its call with it: it sees that call's use.
bool free_after_use(MPI_Datatype type) noexcept {
    if (uses_held.load(std::memory_order_relaxed) == 0) return false;
    const std::lock_guard guard(uses_lock);
    const auto use = use_of(type);
    if (use == uses().end() || use->is_freed) return false;
    use->is_freed = true;
    return true;
}

TypeReference::TypeReference(MPI_Datatype of, Uses uses) noexcept
    : type_(MPI_DATATYPE_NULL), of_(of), plan_(plan_to_keep(of, uses)) {
    if (real.Type_contiguous(1, of, &type_) != MPI_SUCCESS) type_ = MPI_DATATYPE_NULL;
    if (type_ != MPI_DATATYPE_NULL) real.Type_commit(&type_);
}

TypeReference::~TypeReference() {
    if (type_ != MPI_DATATYPE_NULL) real.Type_free(&type_);
}

}  // namespace vecmpi::datatype
