// SPDX-License-Identifier: BSD-3-Clause
// Looks for a symbol in the libraries that are loaded. Must not load one.
#include "library/api.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>

namespace vecmpi::library {
namespace {

void* handle_of_object_at(const void* address) noexcept {
    Dl_info object;
    if (dladdr(address, &object) == 0 || object.dli_fname == nullptr) return nullptr;
    return dlopen(object.dli_fname, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
}

struct Extent {
    uintptr_t address;
    uintptr_t begin = 0, end = 0;
};

// Under the loader's lock: must not throw.
int find_extent(dl_phdr_info* info, size_t, void* context) noexcept {
    auto& extent = *static_cast<Extent*>(context);
    uintptr_t begin = UINTPTR_MAX, end = 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)& part = info->dlpi_phdr[i];
        if (part.p_type != PT_LOAD) continue;
        begin = std::min<uintptr_t>(begin, info->dlpi_addr + part.p_vaddr);
        end = std::max<uintptr_t>(end, info->dlpi_addr + part.p_vaddr + part.p_memsz);
    }
    if (extent.address < begin || extent.address >= end) return 0;
    extent.begin = begin;
    extent.end = end;
    return 1;
}

}  // namespace

void* defined_elsewhere(const char* symbol) noexcept {
    if (void* next = dlsym(RTLD_NEXT, symbol)) return next;
    for (const LoadedLibrary& library : loaded_libraries()) {
        void* handle = handle_of_loaded(library);
        void* found = handle != nullptr ? dlsym(handle, symbol) : nullptr;
        if (found != nullptr &&
            !in_one_object(found, reinterpret_cast<const void*>(defined_elsewhere)))
            return found;  // keeps the handle, and so the library
        if (handle != nullptr) dlclose(handle);
    }
    return nullptr;
}

// The loader looks in the global scope first, then in the caller's own object and what it needs.
CallersChoice definition_for(uintptr_t caller, const char* symbol) noexcept {
    CallersChoice choice;
    Extent extent{caller};
    dl_iterate_phdr(find_extent, &extent);
    choice.begin = extent.begin;
    choice.end = extent.end;
    choice.address = dlsym(RTLD_NEXT, symbol);
    if (choice.address == nullptr)
        if (void* object = handle_of_object_at(reinterpret_cast<const void*>(caller))) {
            choice.address = dlsym(object, symbol);
            dlclose(object);
        }
    if (choice.address != nullptr) handle_of_object_at(choice.address);  // never given back
    return choice;
}

bool in_one_object(const void* one, const void* other) noexcept {
    Dl_info of_one, of_other;
    return dladdr(one, &of_one) != 0 && dladdr(other, &of_other) != 0 &&
           of_one.dli_fbase == of_other.dli_fbase;
}

}  // namespace vecmpi::library
