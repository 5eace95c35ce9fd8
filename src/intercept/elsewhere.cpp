// SPDX-License-Identifier: BSD-3-Clause
// Looks for a symbol in the libraries that the process has loaded. Must not load one.
#include "elsewhere.hpp"

#include <dlfcn.h>

#include "entries.hpp"
#include "vecmpi/base.hpp"

namespace vecmpi {
namespace {

bool is_ours(void* address) noexcept {
    Dl_info theirs;
    Dl_info ours;
    return dladdr(address, &theirs) != 0 && dladdr(vecmpi_first_calls, &ours) != 0 &&
           theirs.dli_fbase == ours.dli_fbase;
}

}  // namespace

void* defined_elsewhere(const char* symbol) noexcept {
    if (void* next = dlsym(RTLD_NEXT, symbol)) return next;
    for (const LoadedLibrary& library : loaded_libraries()) {
        void* handle = handle_of_loaded(library);
        void* found = handle != nullptr ? dlsym(handle, symbol) : nullptr;
        if (found != nullptr && !is_ours(found))
            return found;  // keeps the handle: the library stays loaded
        if (handle != nullptr) dlclose(handle);
    }
    return nullptr;
}

}  // namespace vecmpi
