// SPDX-License-Identifier: BSD-3-Clause
// 1. Is it MPICH 4? Its op functions have the signature that we know. 2. Find what has the table's
// shape in the writable data of the library. 3. Prove it: our probe takes a candidate's place, and
// MPI_Reduce_local must call it with our arguments, for each op.
#include "library/api.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <set>
#include <utility>

namespace vecmpi::library {

namespace {

struct Image {
    ElfW(Addr) base;
    std::vector<CodeRange> code;
    std::vector<CodeRange> data;  // writable, of the file, not made read-only after relocation
};

void add_segment(Image& image, const ElfW(Phdr) & segment) {
    if (segment.p_type != PT_LOAD) return;
    const uintptr_t begin = image.base + segment.p_vaddr;
    if (segment.p_flags & PF_X) image.code.push_back({begin, begin + segment.p_memsz});
    if (segment.p_flags & PF_W) image.data.push_back({begin, begin + segment.p_filesz});
}

// Whole pages become read-only, so the last one only if it is full.
void leave_out_read_only(Image& image, const ElfW(Phdr) & segment) {
    const uintptr_t end = image.base + segment.p_vaddr + segment.p_memsz;
    for (CodeRange& range : image.data)
        if (range.begin < end) range.begin = std::min(end, range.end);
}

int read_segments(dl_phdr_info* info, size_t, void* context) {
    Image& image = *static_cast<Image*>(context);
    if (info->dlpi_addr != image.base) return 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) add_segment(image, info->dlpi_phdr[i]);
    for (int i = 0; i < info->dlpi_phnum; ++i)
        if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO)
            leave_out_read_only(image, info->dlpi_phdr[i]);
    return 1;
}

Image image_of(const BoundLibrary& library) {
    Image image{};
    const link_map* map = nullptr;
    if (dlinfo(library.handle, RTLD_DI_LINKMAP, &map) != 0) return image;
    image.base = map->l_addr;
    dl_iterate_phdr(read_segments, &image);
    return image;
}

// ---- the proof ----------------------------------------------------------------------------------

// What the probe saw; only while find_op_table() runs.
struct Seen {
    unsigned calls;
    bool as_given;
};
Seen seen;
int probe_in[2], probe_inout[2];
MPI_Datatype probe_type;

// The table of functions that check datatypes has the same shape. Called from there, `in` is a
// datatype, the other arguments are missing, and 0 says that the datatype is legal.
int probe(void* in, void* inout, MPI_Aint* length, MPI_Datatype* type) {
    ++seen.calls;
    seen.as_given = in == probe_in && inout == probe_inout && *length == 1 && *type == probe_type;
    return MPI_SUCCESS;
}

const auto probe_function = reinterpret_cast<OpFunction>(reinterpret_cast<void*>(probe));

bool arrives_at_probe(MPI_Op op) noexcept {
    probe_type = op == MPI_MINLOC || op == MPI_MAXLOC ? MPI_2INT : MPI_INT;
    seen = {};
    return real.Reduce_local(probe_in, probe_inout, 1, probe_type, op) == MPI_SUCCESS &&
           seen.calls == 1 && seen.as_given;
}

bool is_op_table(OpFunction* table) noexcept {
    return std::all_of(std::begin(predefined_ops), std::end(predefined_ops), [table](MPI_Op op) {
        const OpFunction own = std::exchange(table[op_index(op)], probe_function);
        const bool arrived = arrives_at_probe(op);
        table[op_index(op)] = own;
        return arrived;
    });
}

OpFunction* search(const BoundLibrary& library) {
    const Image image = image_of(library);
    for (const CodeRange& range : image.data) {
        const uintptr_t begin = (range.begin + sizeof(void*) - 1) & ~(sizeof(void*) - 1);
        if (begin >= range.end) continue;
        auto* const words = reinterpret_cast<uintptr_t*>(begin);
        const size_t count = (range.end - begin) / sizeof(void*);
        for (size_t place : op_table_candidates(words, count, image.code))
            if (auto* table = reinterpret_cast<OpFunction*>(words + place); is_op_table(table))
                return table;
    }
    return nullptr;
}

}  // namespace

bool library_is_mpich(const char* begin) noexcept {
    if (real.Get_library_version == nullptr) return false;
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    real.Get_library_version(text, &length);
    const char* version = std::strstr(text, "MPICH Version:");
    if (version == nullptr) return false;
    version += std::strlen("MPICH Version:");
    version += std::strspn(version, " \t");
    return std::strncmp(version, begin, std::strlen(begin)) == 0;
}

void note_traits_of_version() noexcept {
    const bool is_mpich_4 = library_is_mpich("4.");
    note_trait(Trait::free_operators, is_mpich_4);
    note_trait(Trait::twins, is_mpich_4);
    note_trait(Trait::half_sums, library_is_mpich("5."));
    note_trait(Trait::last_barrier, library_is_mpich("4.0"));
}

std::vector<size_t> op_table_candidates(const uintptr_t words[], size_t count,
                                        const std::vector<CodeRange>& code) {
    std::vector<size_t> places;
    const auto is_code = [&code](uintptr_t word) {
        return std::any_of(code.begin(), code.end(), [word](const CodeRange& range) {
            return word >= range.begin && word < range.end;
        });
    };
    size_t run = 0;  // addresses of code up to here
    for (size_t i = 0; i < count; ++i) {
        run = is_code(words[i]) ? run + 1 : 0;
        if (run != last_op || i < last_op || words[i - last_op] != 0) continue;
        const std::set<uintptr_t> different(words + i - last_op + 1, words + i + 1);
        if (different.size() == last_op) places.push_back(i - last_op);
    }
    return places;
}

OpFunction* find_op_table(const BoundLibrary& library, const char** where) noexcept {
    *where = "in MPI_Reduce_local only: the library is not MPICH 4";
    note_trait(Trait::op_table, false);
    if (!library.found || !library_is_mpich("4.")) return nullptr;
    *where = "in MPI_Reduce_local only: VECMPI_TRAITS_OFF names op_table";
    if (!may_have(Trait::op_table)) return nullptr;
    *where = "in MPI_Reduce_local only: the library's table of op functions was not found";
    try {
        OpFunction* const table = search(library);
        if (note_trait(Trait::op_table, table != nullptr)) *where = "wherever the library reduces";
        return table;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

}  // namespace vecmpi::library
