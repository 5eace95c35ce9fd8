// SPDX-License-Identifier: BSD-3-Clause
// Finds the MPI library that the program loaded, and its functions. Loads nothing, and calls
// nothing of it.
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <bitset>
#include <mutex>
#include <new>
#include <string_view>

#include "large_counts.hpp"
#include "library/api.hpp"

namespace vecmpi::library {

constinit RealFunctions real{};

namespace {

using Pointers = std::array<void*, number_of_calls>;

// Null until a library was found. Stored with release after `real` is filled; never freed, so that
// calls at exit still find it.
constinit std::atomic<const BoundLibrary*> published{nullptr};

// Held while `real` is copied, and never during a call of the loader: a constructor that runs under
// the loader's lock may come here too.
constinit std::mutex publishing;

// Written together with `real`.
constinit std::bitset<number_of_calls> in_library;

const link_map* object_of(const void* address) noexcept {
    Dl_info info;
    link_map* object = nullptr;
    if (dladdr1(address, &info, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) == 0)
        return nullptr;
    return object;
}

// What each build of vecmpi exports.
constexpr const char* own_symbol = "vecmpi_library_traits";

// The library itself, and not one that it depends on.
bool defines(const LoadedLibrary& library, void* handle, const char* symbol) noexcept {
    const void* address = dlsym(handle, symbol);
    const link_map* owner = address != nullptr ? object_of(address) : nullptr;
    return owner != nullptr && library.path == owner->l_name;
}

// A profiler defines only MPI_Init, or PMPI_Init as well (Darshan), but not PMPI_Get_version. Both
// builds of vecmpi may be preloaded.
bool is_mpi_library(const LoadedLibrary& library, void* handle) noexcept {
    return defines(library, handle, "PMPI_Init") && defines(library, handle, "PMPI_Get_version") &&
           !defines(library, handle, own_symbol);
}

BoundLibrary find_mpi_library() {
    for (const LoadedLibrary& library : loaded_libraries()) {
        void* handle = handle_of_loaded(library);
        if (handle == nullptr) continue;
        // The handle stays open: the library must stay while entries lead into it.
        if (is_mpi_library(library, handle))
            return {true, abi_of(library.soname) == own_abi, library.soname, handle};
        dlclose(handle);
    }
    return {};
}

Pointers find_functions(void* handle) {
    Pointers pointers;
    for (size_t i = 0; i < number_of_calls; ++i) {
        const std::string name = call_name(static_cast<Call>(i));
        pointers[i] = dlsym(handle, ("P" + name).c_str());
        if (pointers[i] == nullptr) pointers[i] = dlsym(handle, name.c_str());
    }
    return pointers;
}

const BoundLibrary* publish(const BoundLibrary& library, const Pointers& pointers) {
    const std::lock_guard lock(publishing);
    const BoundLibrary* first = published.load(std::memory_order_relaxed);
    if (first != nullptr) return first;  // another thread found it meanwhile
    real = std::bit_cast<RealFunctions>(pointers);
    for (size_t i = 0; i < number_of_calls; ++i) in_library[i] = pointers[i] != nullptr;
    complete_with_large_counts(real);
    const auto* bound = new BoundLibrary(library);
    published.store(bound,
                    std::memory_order_release);  // pairs with the load in bind_real_functions()
    return bound;
}

const BoundLibrary* find_and_publish() noexcept {
    try {
        const BoundLibrary library = find_mpi_library();
        return library.found ? publish(library, find_functions(library.handle)) : nullptr;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

}  // namespace

const BoundLibrary& bind_real_functions() noexcept {
    static const BoundLibrary& none = *new (std::nothrow) BoundLibrary;
    const BoundLibrary* bound = published.load(std::memory_order_acquire);
    if (bound == nullptr) bound = find_and_publish();
    return bound != nullptr ? *bound : none;
}

bool library_has(Call call) noexcept { return in_library[static_cast<size_t>(call)]; }

const char* build_for_other_abi(std::string_view soname) noexcept {
    return abi_of(soname) == other_abi ? other_build : "";
}

bool other_build_is_preloaded() noexcept {
    return !in_one_object(dlsym(RTLD_DEFAULT, own_symbol), &real) ||
           dlsym(RTLD_NEXT, own_symbol) != nullptr;
}

std::string library_version() {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int length = 0;
    real.Get_library_version(text, &length);
    std::string line(text);
    line.resize(std::min(line.find('\n'), line.size()));
    std::replace(line.begin(), line.end(), '\t', ' ');
    return line;
}

}  // namespace vecmpi::library
