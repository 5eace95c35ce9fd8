// SPDX-License-Identifier: BSD-3-Clause
// What was found out about the inside of the MPI library.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace vecmpi::library {

enum class Trait : uint8_t {
#define VECMPI_TRAIT(name, promise, proof, without) name,
#include "base/api/traits.def"
#undef VECMPI_TRAIT
    number_of_traits
};
struct TraitText {
    const char *name, *promise, *proof, *without;
};
const TraitText& text_of(Trait trait) noexcept;
// Before the proof. False where VECMPI_TRAITS_OFF names it: then nothing of it may be tried.
bool may_have(Trait trait) noexcept;
// The proof's answer, in MPI_Init. Returns whether it holds.
bool note_trait(Trait trait, bool proved) noexcept;
// MPICH of a version that begins so, by its own word. Libraries made from it do not count.
bool library_is_mpich(const char* begin) noexcept;
// Notes the traits that follow from the library's version. In MPI_Init.
void note_traits_of_version() noexcept;
bool has_trait(Trait trait) noexcept;        // false before the proof
const char* state_of(Trait trait) noexcept;  // yes, no, off, not asked
std::string describe_traits();               // one line: those that hold, and those that do not

// The level that MPI_Init asks for: MPI_THREAD_SINGLE unless the environment says otherwise.
// Nothing for a value that the library will refuse.
std::optional<int> default_thread_level() noexcept;

}  // namespace vecmpi::library
