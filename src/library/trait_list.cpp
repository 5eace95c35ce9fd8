// SPDX-License-Identifier: BSD-3-Clause
// The table of traits for vecmpi-info, which preloads this library and finds the function by name.
#include "library/api.hpp"

// A line for each trait, with tabs between name, state, promise, and what is done without it. Made
// at the first call, and valid for ever.
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
