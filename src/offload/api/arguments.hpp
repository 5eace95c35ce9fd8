// SPDX-License-Identifier: BSD-3-Clause
// What arguments of calls are.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <type_traits>

#include "library/api/handles.hpp"

namespace vecmpi::offload {

// An array argument, one entry a rank: of int, or MPI_Count or MPI_Aint in the large-count forms.
class RankArray {
  public:
    template <class Integer>
    RankArray(const Integer* values) noexcept : values_(values), wide_(sizeof(Integer) == 8) {
        static_assert(std::is_integral_v<Integer> &&
                      (sizeof(Integer) == 4 || sizeof(Integer) == 8));
    }
    MPI_Count operator[](int rank) const noexcept {
        if (wide_) return static_cast<MPI_Count>(static_cast<const int64_t*>(values_)[rank]);
        return static_cast<const int32_t*>(values_)[rank];
    }
    bool missing() const noexcept { return values_ == nullptr; }
    bool is(const RankArray& other) const noexcept { return values_ == other.values_; }
    const int* as_ints() const noexcept {  // null where they are wider
        return wide_ ? nullptr : static_cast<const int*>(values_);
    }

  private:
    const void* values_;
    bool wide_;
};

MPI_Count size_of_derived(MPI_Datatype type) noexcept;
inline MPI_Count size_of(MPI_Datatype type) noexcept {
    return library::is_builtin_type(type)
               ? static_cast<MPI_Count>(library::builtin_type_bytes(type))
               : size_of_derived(type);
}
struct TypeShape {
    MPI_Count bytes = 0;
    MPI_Count extent = 0;
    bool builtin = false;  // its bytes in memory are its packed bytes
};
TypeShape shape_of(MPI_Datatype type) noexcept;
// Packs nothing with the type: the library refuses one that is not committed.
bool is_derived_committed(MPI_Datatype type, MPI_Comm comm) noexcept;
inline bool is_committed(MPI_Datatype type, MPI_Comm comm) noexcept {
    return library::is_builtin_type(type) || is_derived_committed(type, comm);
}

// A null buffer that is not MPI_BOTTOM: the library must refuse it. (A part of it would not be
// null.) By the library's own test (MPIR_ERRTEST_USERBUFFER): another would let this rank alone
// leave a collective.
bool is_null_refused(MPI_Datatype type) noexcept;
inline bool is_refused(const void* buffer, MPI_Count count, MPI_Datatype type) noexcept {
    return buffer == nullptr && count != 0 && is_null_refused(type);
}
// The same for a buffer that is written to, which may not be MPI_IN_PLACE.
inline bool is_refused_output(const void* buffer, MPI_Count count, MPI_Datatype type) noexcept {
    return (buffer == MPI_IN_PLACE && count != 0) || is_refused(buffer, count, type);
}

// One buffer for both sides of a collective: does the library refuse it, as MPICH does that was not
// built or told (MPIR_CVAR_COLL_ALIAS_CHECK=0) to look at nothing? Else this rank may not leave a
// collective for it. From MPI_Init on.
bool aliases_are_refused() noexcept;
void ask_about_aliases() noexcept;

}  // namespace vecmpi::offload
