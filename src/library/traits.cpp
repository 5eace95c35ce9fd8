// SPDX-License-Identifier: BSD-3-Clause
// What was found out about the library. Written in MPI_Init, read at any time.
#include <iterator>

#include "library/api.hpp"

namespace vecmpi::library {
namespace {

constexpr TraitText texts[] = {
#define VECMPI_TRAIT(name, promise, proof, without) {#name, promise, proof, without},
#include "base/api/traits.def"
#undef VECMPI_TRAIT
};

enum class Known : uint8_t { nothing, holds, fails };
constinit std::atomic<Known> known[std::size(texts)]{};

unsigned bit_of(Trait trait) noexcept { return 1u << static_cast<unsigned>(trait); }
size_t index_of(Trait trait) noexcept { return static_cast<size_t>(trait); }

}  // namespace

const TraitText& text_of(Trait trait) noexcept { return texts[index_of(trait)]; }

bool may_have(Trait trait) noexcept { return (settings().traits_off & bit_of(trait)) == 0; }

bool note_trait(Trait trait, bool proved) noexcept {
    const bool holds = proved && may_have(trait);
    known[index_of(trait)].store(holds ? Known::holds : Known::fails, std::memory_order_relaxed);
    return holds;
}

bool has_trait(Trait trait) noexcept {
    return known[index_of(trait)].load(std::memory_order_relaxed) == Known::holds;
}

const char* state_of(Trait trait) noexcept {
    if (!may_have(trait)) return "off";
    switch (known[index_of(trait)].load(std::memory_order_relaxed)) {
        case Known::nothing:
            return "not asked";
        case Known::holds:
            return "yes";
        case Known::fails:
            return "no";
    }
    return "";
}

std::string describe_traits() {
    std::string held, lacking;
    for (size_t i = 0; i < std::size(texts); ++i) {
        std::string& list = has_trait(static_cast<Trait>(i)) ? held : lacking;
        list += (list.empty() ? "" : ", ") + std::string(texts[i].name);
    }
    return (held.empty() ? "none" : held) + (lacking.empty() ? "" : "; without " + lacking);
}

}  // namespace vecmpi::library
