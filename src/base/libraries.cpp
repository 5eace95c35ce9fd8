// SPDX-License-Identifier: BSD-3-Clause
// What the loader has loaded. Looks only: nothing here loads a library or runs its constructors.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include "base/api.hpp"

namespace vecmpi::base {
namespace {

const ElfW(Dyn) * dynamic_section(const dl_phdr_info& info) noexcept {
    for (int i = 0; i < info.dlpi_phnum; ++i)
        if (info.dlpi_phdr[i].p_type == PT_DYNAMIC)
            return reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
    return nullptr;
}

std::string soname_of(const dl_phdr_info& info) {
    const ElfW(Dyn)* entry = dynamic_section(info);
    ElfW(Addr) strings = 0;
    ElfW(Addr) offset = 0;
    bool named = false;
    for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
        if (entry->d_tag == DT_STRTAB) strings = entry->d_un.d_ptr;
        if (entry->d_tag != DT_SONAME) continue;
        offset = entry->d_un.d_val;
        named = true;
    }
    if (!named || strings == 0) return {};
    // glibc relocates DT_STRTAB in place on most architectures, other loaders do not.
    if (strings < info.dlpi_addr) strings += info.dlpi_addr;
    return reinterpret_cast<const char*>(strings + offset);
}

// Runs under the loader's lock and C frames: must not throw.
int add_library(dl_phdr_info* info, size_t, void* list) noexcept {
    std::string_view path = info->dlpi_name != nullptr ? info->dlpi_name : "";
    if (path.find('/') == std::string_view::npos)
        return 0;  // the program itself and the kernel's vdso
    try {
        static_cast<std::vector<LoadedLibrary>*>(list)->push_back(
            {std::string(path), soname_of(*info)});
    } catch (...) {
        return 1;  // out of memory: the rest stays unseen
    }
    return 0;
}

// Every object has the number for all, so the first is enough.
int read_number_of_loads(dl_phdr_info* info, size_t, void* number) noexcept {
    *static_cast<uint64_t*>(number) = info->dlpi_adds;
    return 1;
}

}  // namespace

uint64_t libraries_ever_loaded() noexcept {
    uint64_t number = 0;
    dl_iterate_phdr(read_number_of_loads, &number);
    return number;
}

std::vector<LoadedLibrary> loaded_libraries() {
    std::vector<LoadedLibrary> libraries;
    dl_iterate_phdr(add_library, &libraries);
    return libraries;
}

void* handle_of_loaded(const LoadedLibrary& library) noexcept {
    constexpr int flags = RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD;
    void* handle = library.path.empty() ? nullptr : dlopen(library.path.c_str(), flags);
    if (handle == nullptr && !library.soname.empty())
        handle = dlopen(library.soname.c_str(), flags);
    return handle;
}

// The sonames of the MPICH ABI Initiative, and Cray's with the name of the compiler:
// libmpi_gnu_91.so.12, libmpi_cray.so.12. MPICH 4.3.0 called a draft of the standard ABI
// libmpi_abi.so.12; other drafts are libmpi_abi.so.0.
MpiAbi abi_of(std::string_view soname) noexcept {
    if (soname == "libmpi_abi.so.1") return MpiAbi::standard;
    constexpr std::string_view version = ".so.12";
    if (!soname.ends_with(version)) return MpiAbi::other;
    soname.remove_suffix(version.size());
    const bool is_of_family = soname == "libmpi" || soname == "libmpich" ||
                              (soname.starts_with("libmpi_") && soname != "libmpi_abi");
    return is_of_family ? MpiAbi::mpich : MpiAbi::other;
}

}  // namespace vecmpi::base
