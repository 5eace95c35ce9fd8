// SPDX-License-Identifier: BSD-3-Clause
// Rewrites entries of loaded objects' global offset tables.
#include "library/api.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <mutex>

namespace vecmpi::library {
namespace {

#if defined(__x86_64__)
constexpr unsigned jump_slot = R_X86_64_JUMP_SLOT, global_data = R_X86_64_GLOB_DAT,
                   word = R_X86_64_64;
#elif defined(__aarch64__)
constexpr unsigned jump_slot = R_AARCH64_JUMP_SLOT, global_data = R_AARCH64_GLOB_DAT,
                   word = R_AARCH64_ABS64;
#endif

// The dynamic section of an object, as far as imports need it.
struct Imports {
    const ElfW(Sym) * symbols = nullptr;
    const char* names = nullptr;
    struct Relocations {
        const ElfW(Rela) * first = nullptr;
        size_t bytes = 0;
    } calls, data;  // the latter for objects built with -fno-plt
    uintptr_t base = 0;
};

Imports imports_of(uintptr_t base, const ElfW(Dyn) * dynamic) noexcept {
    Imports found;
    found.base = base;
    for (const ElfW(Dyn)* entry = dynamic; entry->d_tag != DT_NULL; ++entry) {
        // glibc has relocated these, but not in the kernel's object, where the section is
        // read-only.
        const auto address =
            entry->d_un.d_ptr < base ? base + entry->d_un.d_ptr : entry->d_un.d_ptr;
        switch (entry->d_tag) {
            case DT_SYMTAB:
                found.symbols = reinterpret_cast<const ElfW(Sym)*>(address);
                break;
            case DT_STRTAB:
                found.names = reinterpret_cast<const char*>(address);
                break;
            case DT_JMPREL:
                found.calls.first = reinterpret_cast<const ElfW(Rela)*>(address);
                break;
            case DT_PLTRELSZ:
                found.calls.bytes = entry->d_un.d_val;
                break;
            case DT_RELA:
                found.data.first = reinterpret_cast<const ElfW(Rela)*>(address);
                break;
            case DT_RELASZ:
                found.data.bytes = entry->d_un.d_val;
                break;
            default:
                break;
        }
    }
    return found;
}

void** find_entry(const Imports& imports, const Imports::Relocations& relocations, unsigned kind,
                  const char* symbol) noexcept {
    const size_t size = relocations.bytes / sizeof(ElfW(Rela));
    for (size_t i = 0; relocations.first != nullptr && i < size; ++i) {
        const ElfW(Rela)& relocation = relocations.first[i];
        if (ELF64_R_TYPE(relocation.r_info) != kind) continue;
        const ElfW(Sym)& named = imports.symbols[ELF64_R_SYM(relocation.r_info)];
        if (std::strcmp(imports.names + named.st_name, symbol) == 0)
            return reinterpret_cast<void**>(imports.base + relocation.r_offset);
    }
    return nullptr;
}

// The loader protects the whole pages in PT_GNU_RELRO after relocation.
struct ReadOnly {
    uintptr_t address, page_size;
    bool found = false;
};

int find_read_only(dl_phdr_info* info, size_t, void* context) noexcept {
    auto& place = *static_cast<ReadOnly*>(context);
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)& part = info->dlpi_phdr[i];
        if (part.p_type != PT_GNU_RELRO) continue;
        const uintptr_t begin = info->dlpi_addr + part.p_vaddr, end = begin + part.p_memsz;
        if (place.address >= begin && place.address < (end & ~(place.page_size - 1)))
            place.found = true;
    }
    return place.found;
}

uintptr_t page_bytes() noexcept { return static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)); }

bool is_read_only(void** entry) noexcept {
    ReadOnly place{reinterpret_cast<uintptr_t>(entry), page_bytes()};
    dl_iterate_phdr(find_read_only, &place);
    return place.found;
}

// Held while an entry is written: two may share a page. Nothing is called meanwhile.
constinit std::mutex writing;

bool write_entry(void** entry, bool read_only, const void* value) noexcept {
    const uintptr_t page_size = page_bytes();
    void* page = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(entry) & ~(page_size - 1));
    const std::lock_guard lock(writing);
    if (read_only && mprotect(page, page_size, PROT_READ | PROT_WRITE) != 0) return false;
    // Atomic: other threads may be calling through it.
    __atomic_store_n(entry, const_cast<void*>(value), __ATOMIC_RELEASE);
    if (read_only) mprotect(page, page_size, PROT_READ);
    return true;
}

// ---- weak references ----------------------------------------------------------------------------

void clear_in(const Imports& imports, IsMissing is_missing) noexcept {
    const size_t size = imports.data.bytes / sizeof(ElfW(Rela));
    for (size_t i = 0; imports.data.first != nullptr && i < size; ++i) {
        const ElfW(Rela)& relocation = imports.data.first[i];
        const auto type = ELF64_R_TYPE(relocation.r_info);
        if (type != global_data && type != word) continue;
        const ElfW(Sym)& named = imports.symbols[ELF64_R_SYM(relocation.r_info)];
        if (ELF64_ST_BIND(named.st_info) != STB_WEAK || named.st_shndx != SHN_UNDEF) continue;
        auto** entry = reinterpret_cast<void**>(imports.base + relocation.r_offset);
        void* bound = __atomic_load_n(entry, __ATOMIC_RELAXED);
        if (is_missing(bound)) write_entry(entry, is_read_only(entry), nullptr);
    }
}

// Under the loader's lock: must not throw.
int clear_in_object(dl_phdr_info* info, size_t, void* context) noexcept {
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)& part = info->dlpi_phdr[i];
        if (part.p_type != PT_DYNAMIC) continue;
        const Imports imports = imports_of(
            info->dlpi_addr, reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + part.p_vaddr));
        if (imports.symbols != nullptr) clear_in(imports, *static_cast<IsMissing*>(context));
    }
    return 0;
}

}  // namespace

void clear_weak_references(IsMissing is_missing) noexcept {
    dl_iterate_phdr(clear_in_object, &is_missing);
}

Import::Import(const void* inside, const char* symbol) noexcept {
    Dl_info unused;
    link_map* object = nullptr;
    if (dladdr1(inside, &unused, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) == 0 ||
        object == nullptr || object->l_ld == nullptr)
        return;
    const Imports imports = imports_of(object->l_addr, object->l_ld);
    if (imports.symbols == nullptr || imports.names == nullptr) return;
    entry_ = find_entry(imports, imports.calls, jump_slot, symbol);
    if (entry_ == nullptr) entry_ = find_entry(imports, imports.data, global_data, symbol);
    is_read_only_ = entry_ != nullptr && is_read_only(entry_);
}

bool Import::replace(const void* replacement) const noexcept {
    return entry_ != nullptr && write_entry(entry_, is_read_only_, replacement);
}

bool replace_import(const void* inside, const char* symbol, const void* replacement) noexcept {
    return Import(inside, symbol).replace(replacement);
}

}  // namespace vecmpi::library
