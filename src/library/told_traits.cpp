// SPDX-License-Identifier: BSD-3-Clause
// The table of traits, for who preloaded this library and asks for it by name: vecmpi-info.
#include "library/api.hpp"

// Name, state, promise and what is done without it, by tabs, a line for each trait, as they are at
// the first call. Valid for ever.
extern "C" __attribute__((visibility("default"))) const char* vecmpi_library_traits() noexcept {
    using namespace vecmpi::library;
    static const std::string& lines = *[] {
        auto* text = new std::string;
        for (size_t i = 0; i < static_cast<size_t>(Trait::number_of_traits); ++i) {
            const auto trait = static_cast<Trait>(i);
            const TraitText& row = text_of(trait);
            *text += std::string(row.name) + '\t' + state_of(trait) + '\t' + row.promise + '\t' +
                     row.without + '\n';
        }
        return text;
    }();
    return lines.c_str();
}
