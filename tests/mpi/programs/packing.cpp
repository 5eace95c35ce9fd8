// SPDX-License-Identifier: BSD-3-Clause
// MPI_Pack and MPI_Unpack of random nested datatypes: the packed bytes, and all that lies around
// the buffer that was unpacked into, between pages that nobody may touch. Each type is used often,
// since first calls may be served otherwise than later ones. The argument is a number of types, or
// a word:
//   columns  matrices, column by column
//   often    larger types, used so often that they get plans by default as well
//   errors   what the library refuses, with a type that it packed often before
//   handles  types that take the handle of one that is gone, or are committed again
//   fortran  types that the library shares and nobody frees
//   external types of one value each by MPI_Pack_external and MPI_Unpack_external
//   refused  what these two refuse
//   threads  several threads, each with types of its own and some that all have
//   else     VECMPI_PACK for the types
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "type_maker.hpp"

using namespace battery;

namespace {

int calls = 18;
constexpr size_t page = 4096;

// `bytes` bytes with forbidden pages around, against the end of them or the beginning of them.
class Fenced {
  public:
    Fenced(size_t bytes, bool at_end) : room_((bytes / page + 1) * page) {
        void* const base =
            mmap(nullptr, room_ + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        check(base != MAP_FAILED, "mmap");
        room_begin_ = static_cast<unsigned char*>(base) + page;
        check(mprotect(room_begin_, room_, PROT_READ | PROT_WRITE) == 0, "mprotect");
        begin_ = room_begin_ + (at_end ? room_ - bytes : 0);
    }
    ~Fenced() { munmap(room_begin_ - page, room_ + 2 * page); }
    Fenced(const Fenced&) = delete;
    Fenced& operator=(const Fenced&) = delete;
    unsigned char* begin() const { return begin_; }
    unsigned char* room() const { return room_begin_; }  // with what is left of the pages
    size_t room_bytes() const { return room_; }

  private:
    size_t room_;
    unsigned char* room_begin_;
    unsigned char* begin_;
};

void fill(unsigned char* bytes, size_t number, uint64_t id) {
    for (size_t i = 0; i < number; i += 8) {
        const uint64_t word = mix(id + i);
        std::memcpy(bytes + i, &word, std::min<size_t>(8, number - i));
    }
}
void fill(const Fenced& fenced, uint64_t id) { fill(fenced.room(), fenced.room_bytes(), id); }

// Where `count` copies of a type lie.
struct Extent {
    MPI_Aint low = 0;
    MPI_Aint span = 0;
};
Extent extent_of(MPI_Datatype type, int count) {
    MPI_Aint lower = 0, extent = 0, low = 0, size = 0;
    MPI_Type_get_extent(type, &lower, &extent);
    MPI_Type_get_true_extent(type, &low, &size);
    const MPI_Aint last = (count - 1) * extent;
    return {low + std::min<MPI_Aint>(last, 0), size + std::abs(last)};
}

// Packs and unpacks `count` copies so often that the last calls are served as they always will be.
void exercise(Random& random, MPI_Datatype type, int count, Digest& digest) {
    const Extent extent = extent_of(type, count);
    int size = 0, bound = 0;
    MPI_Type_size(type, &size);
    MPI_Pack_size(count, type, MPI_COMM_SELF, &bound);
    digest.add(static_cast<uint64_t>(bound));
    const int start = random.below(9), rest = random.chance(50) ? 0 : random.below(9);
    const int packed_bytes = start + size * count + rest;
    const Fenced storage(static_cast<size_t>(extent.span), random.chance(50));
    const Fenced packed(static_cast<size_t>(packed_bytes), random.chance(50));
    unsigned char* const memory = storage.begin() - extent.low;
    fill(storage, random.next());
    for (int i = 0; i < calls; ++i) {
        if (i + 1 == calls) std::memset(packed.room(), 0xA5, packed.room_bytes());
        int position = start;
        MPI_Pack(memory, count, type, packed.begin(), packed_bytes, &position, MPI_COMM_WORLD);
        digest.add(static_cast<uint64_t>(position));
    }
    digest.add_bytes(packed.room(), packed.room_bytes());
    digest.add_bytes(storage.room(), storage.room_bytes());
    fill(packed, random.next());
    // MPI_Unpack of MPICH 4.0.2 divides by the size of the type.
    for (int i = 0; i < calls && size > 0; ++i) {
        if (i == 0 || i + 1 == calls) fill(storage, random.next());
        int position = start;
        MPI_Unpack(packed.begin(), packed_bytes, &position, memory, count, type, MPI_COMM_SELF);
        digest.add(static_cast<uint64_t>(position));
        if (i == 0) digest.add_bytes(storage.room(), storage.room_bytes());
    }
    digest.add_bytes(packed.room(), packed.room_bytes());
    digest.add_bytes(storage.room(), storage.room_bytes());
}

// The same from an address that is far from the buffer, and from MPI_BOTTOM, which MPICH 4.0.2
// refuses to pack from.
void exercise_addresses(Random& random, MPI_Datatype type, Digest& digest) {
    const Extent extent = extent_of(type, 1);
    int size = 0, length = 1;
    MPI_Type_size(type, &size);
    const Fenced storage(static_cast<size_t>(extent.span), random.chance(50));
    const Fenced packed(static_cast<size_t>(size), true);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (void* const base : {static_cast<void*>(packed.begin()), MPI_BOTTOM}) {
        MPI_Aint origin = 0, address = 0;
        MPI_Datatype placed;
        MPI_Get_address(base, &origin);
        MPI_Get_address(storage.begin() - extent.low, &address);
        address = MPI_Aint_diff(address, origin);
        MPI_Type_create_hindexed(1, &length, &address, type, &placed);
        MPI_Type_commit(&placed);
        fill(storage, random.next());
        for (int i = 0; i < 4 && size > 0; ++i) {
            int position = 0;
            int rc = MPI_Pack(base, 1, placed, packed.begin(), size, &position, MPI_COMM_SELF);
            digest.add(static_cast<uint64_t>(error_class(rc)));
            digest.add_bytes(packed.room(), packed.room_bytes());
            fill(packed, random.next());
            position = 0;
            rc = MPI_Unpack(packed.begin(), size, &position, base, 1, placed, MPI_COMM_SELF);
            digest.add(static_cast<uint64_t>(error_class(rc)));
            digest.add_bytes(storage.room(), storage.room_bytes());
        }
        MPI_Type_free(&placed);
    }
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

// ---- types that Maker does not make -------------------------------------------------------------

MPI_Datatype distributed(Random& random, MPI_Datatype element) {
    int sizes[3], ways[3], blocks[3], places[3], processes = 1;
    const int dimensions = random.between(1, 3);
    for (int d = 0; d < dimensions; ++d) {
        constexpr int all_ways[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC,
                                    MPI_DISTRIBUTE_NONE};
        sizes[d] = random.between(1, 12);
        ways[d] = all_ways[random.below(3)];
        places[d] = ways[d] == MPI_DISTRIBUTE_NONE ? 1 : random.between(1, 3);
        blocks[d] = MPI_DISTRIBUTE_DFLT_DARG;
        if (ways[d] == MPI_DISTRIBUTE_CYCLIC && random.chance(60)) blocks[d] = random.between(1, 4);
        if (ways[d] == MPI_DISTRIBUTE_BLOCK && random.chance(30))
            blocks[d] = (sizes[d] + places[d] - 1) / places[d] + random.below(2);
        processes *= places[d];
    }
    MPI_Datatype type;
    MPI_Type_create_darray(processes, random.below(processes), dimensions, sizes, ways, blocks,
                           places, random.chance(50) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, element,
                           &type);
    return type;
}

// Members with gaps inside, in any order; lengths of 0 among them. No long doubles by themselves:
// what is packed of the bytes behind their values is undefined (random_types.cpp has them).
MPI_Datatype mixed(Random& random) {
    const MPI_Datatype members[] = {MPI_DOUBLE_INT, MPI_SHORT_INT, MPI_LONG_DOUBLE_INT,
                                    MPI_FLOAT_INT,  MPI_LONG_INT,  MPI_CHAR,
                                    MPI_SHORT,      MPI_2INT,      MPI_C_DOUBLE_COMPLEX};
    std::vector<int> lengths;
    std::vector<MPI_Aint> displacements;
    std::vector<MPI_Datatype> types;
    MPI_Aint at = random.between(-100, 100);
    const int number = random.between(1, 6);
    for (int i = 0; i < number; ++i) {
        types.push_back(members[random.below(9)]);
        lengths.push_back(random.below(4));
        displacements.push_back(at);
        MPI_Aint lower = 0, extent = 0;
        MPI_Type_get_extent(types.back(), &lower, &extent);
        at += lengths.back() * extent + random.below(20);
    }
    if (random.chance(30)) {
        std::reverse(displacements.begin(), displacements.end());
        std::fill(lengths.begin(), lengths.end(), 1);
    }
    MPI_Datatype type;
    MPI_Type_create_struct(number, lengths.data(), displacements.data(), types.data(), &type);
    return type;
}

// Extents that are negative, or smaller than the span: copies may overlap where they are packed.
MPI_Datatype resized(Random& random, MPI_Datatype type) {
    MPI_Aint low = 0, span = 0;
    MPI_Type_get_true_extent(type, &low, &span);
    const MPI_Aint extents[] = {-span - random.below(40), span + random.below(5000), -8, 16, 0};
    MPI_Datatype result;
    MPI_Type_create_resized(type, random.between(-50, 50), extents[random.below(5)], &result);
    return result;
}

// Small blocks at a stride, in the large-count form as well.
MPI_Datatype strided(Random& random) {
    const MPI_Datatype elements[] = {MPI_CHAR, MPI_SHORT, MPI_INT, MPI_DOUBLE,
                                     MPI_C_DOUBLE_COMPLEX};
    const MPI_Datatype element = elements[random.below(5)];
    const int count = random.between(0, 400), block = random.between(0, 9);
    const int stride = (random.chance(30) ? -1 : 1) * (block + random.below(20));
    MPI_Datatype type;
    if (random.chance(50))
        MPI_Type_vector(count, block, stride, element, &type);
    else
        MPI_Type_vector_c(count, block, stride, element, &type);
    return type;
}

MPI_Datatype large_indexed(Random& random, MPI_Datatype element) {
    std::vector<MPI_Count> lengths, displacements;
    MPI_Count at = random.between(-1000, 1000);
    for (int i = random.below(60); i >= 0; --i) {
        lengths.push_back(random.below(5));
        displacements.push_back(at);
        at += 64 * lengths.back() + random.below(100);
    }
    const auto number = static_cast<MPI_Count>(lengths.size());
    MPI_Datatype type;
    MPI_Type_create_hindexed_c(number, lengths.data(), displacements.data(), element, &type);
    return type;
}

// The ways above around each other.
MPI_Datatype odd_type(Random& random) {
    MPI_Datatype type = random.chance(50) ? mixed(random) : strided(random);
    for (int depth = random.below(3); depth > 0; --depth) {
        MPI_Datatype outer;
        switch (random.below(4)) {
            case 0:
                outer = distributed(random, type);
                break;
            case 1:
                outer = resized(random, type);
                break;
            case 2:
                outer = large_indexed(random, type);
                break;
            default:
                MPI_Type_create_hvector(random.below(5), 1, 8 * random.between(-200, 200), type,
                                        &outer);
        }
        MPI_Type_free(&type);
        type = outer;
    }
    return type;
}

bool is_small(MPI_Datatype type, int count) {
    int size = 0;
    MPI_Type_size(type, &size);
    return extent_of(type, count).span < (1 << 20) && size < (1 << 16);
}

void random_types(int number) {
    Random random = own_random(91);
    Digest& digest = topic("packed");
    for (int i = 0; i < number; ++i) {
        const int count = random.chance(50) ? 1 : random.between(1, 40);
        if (random.chance(50)) {
            Maker maker(random, static_cast<Unit>(random.below(5)));
            Type type = maker.make(random.between(0, 300), 3);
            MPI_Type_commit(&type.handle);
            if (is_small(type.handle, count)) exercise(random, type.handle, count, digest);
        } else {
            MPI_Datatype type = odd_type(random);
            MPI_Type_commit(&type);
            if (is_small(type, count)) exercise(random, type, count, digest);
            if (is_small(type, 1) && random.chance(30)) exercise_addresses(random, type, digest);
            MPI_Type_free(&type);
        }
    }
}

// ---- matrices -----------------------------------------------------------------------------------

// A column whose copies stand side by side.
MPI_Datatype column(int rows, int row_elements, MPI_Datatype element) {
    MPI_Datatype one, placed;
    MPI_Aint lower = 0, extent = 0;
    MPI_Type_get_extent(element, &lower, &extent);
    MPI_Type_vector(rows, 1, row_elements, element, &one);
    MPI_Type_create_resized(one, 0, extent, &placed);
    MPI_Type_free(&one);
    return placed;
}

void columns(int number) {
    const MPI_Datatype elements[] = {MPI_CHAR, MPI_SHORT, MPI_INT, MPI_DOUBLE,
                                     MPI_C_DOUBLE_COMPLEX};
    Random random = own_random(95);
    Digest& digest = topic("columns");
    for (int i = 0; i < number; ++i) {
        const bool is_large = i == 0;  // no second-level cache holds it
        const int rows = is_large ? 620 : random.between(1, 150);
        const int width = is_large ? 530 : random.between(1, 150);
        const int sign = random.chance(25) ? -1 : 1;
        const MPI_Datatype element = is_large ? MPI_DOUBLE : elements[random.below(5)];
        MPI_Datatype type = column(rows, sign * (width + random.below(20)), element);
        int count = width;
        if (random.chance(30)) {  // all of the matrix as one
            MPI_Datatype all;
            MPI_Type_contiguous(width, type, &all);
            MPI_Type_free(&type);
            type = all;
            count = 1;
        }
        MPI_Type_commit(&type);
        exercise(random, type, count, digest);
        MPI_Type_free(&type);
    }
}

// ---- what is worth a plan -----------------------------------------------------------------------

// 30 to 60 KiB: a plan of a vector pays after some 50 calls, and one of an indexed type of 1000
// blocks after some 700.
void often() {
    Random random = own_random(97);
    Digest& digest = topic("often");
    calls = 1200;
    const MPI_Datatype elements[] = {MPI_CHAR, MPI_SHORT, MPI_INT, MPI_DOUBLE};
    for (const MPI_Datatype element : elements) {
        int bytes = 0;
        MPI_Type_size(element, &bytes);
        MPI_Datatype type;
        MPI_Type_vector(32768 / bytes, 1, 2, element, &type);
        MPI_Type_commit(&type);
        exercise(random, type, 1, digest);
        MPI_Type_free(&type);
    }
    std::vector<int> lengths, displacements;
    for (int i = 0, at = 0; i < 1000; ++i, at += 12 + i % 3) {
        lengths.push_back(4 + i % 8);
        displacements.push_back(at);
    }
    MPI_Datatype pair, pairs, rows, matrix_column = column(64, 64, MPI_DOUBLE);
    MPI_Type_vector(2, 2, 5, MPI_DOUBLE, &pair);
    MPI_Type_create_indexed_block(1000, 1, displacements.data(), pair, &pairs);
    MPI_Type_indexed(1000, lengths.data(), displacements.data(), MPI_INT, &rows);
    MPI_Type_free(&pair);
    const struct {
        MPI_Datatype type;
        int count;
    } others[] = {{pairs, 1}, {rows, 1}, {matrix_column, 64}};
    for (auto other : others) {
        MPI_Type_commit(&other.type);
        exercise(random, other.type, other.count, digest);
        MPI_Type_free(&other.type);
    }
}

// ---- what the library refuses -------------------------------------------------------------------

void errors() {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    Digest& digest = topic("refused");
    MPI_Datatype type, uncommitted;
    MPI_Type_vector(100, 1, 2, MPI_INT, &type);
    MPI_Type_vector(100, 1, 3, MPI_INT, &uncommitted);
    MPI_Type_commit(&type);
    Random random = own_random(92);
    std::vector<unsigned char> memory(4000), packed(4000);
    for (int i = 0; i < 5; ++i) {  // MPICH 4.0.2 packs what fits
        int position = 0;
        const int rc =
            MPI_Pack(memory.data(), 3, type, packed.data(), 1000, &position, MPI_COMM_SELF);
        digest.add(static_cast<uint64_t>(error_class(rc)));
        digest.add(static_cast<uint64_t>(position));
    }
    for (int i = 0; i < 3; ++i) exercise(random, type, 3, digest);
    fill(memory.data(), memory.size(), 1);
    MPI_Comm freed;
    MPI_Comm_dup(MPI_COMM_WORLD, &freed);
    const MPI_Comm stale = freed;
    MPI_Comm_free(&freed);
    const struct {
        void* memory;
        int count;
        MPI_Datatype type;
        void* packed;
        int size, position;
        MPI_Comm comm;
    } cases[] = {
        {memory.data(), 3, type, packed.data(), 1199, 0, MPI_COMM_WORLD},
        {memory.data(), 3, type, packed.data(), 1200, 1, MPI_COMM_WORLD},
        {memory.data(), -1, type, packed.data(), 4000, 0, MPI_COMM_WORLD},
        {memory.data(), 0, type, packed.data(), 4000, 5, MPI_COMM_WORLD},
        {memory.data(), 3, uncommitted, packed.data(), 4000, 0, MPI_COMM_WORLD},
        {memory.data(), 3, MPI_DATATYPE_NULL, packed.data(), 4000, 0, MPI_COMM_WORLD},
        {memory.data(), 3, type, packed.data(), 4000, 0, MPI_COMM_NULL},
        {memory.data(), 3, type, packed.data(), 4000, 0, stale},
#if defined(MPICH_NUMVERSION)  // else it may be taken for an address
        {memory.data(), 3, type, packed.data(), 4000, 0, static_cast<MPI_Comm>(12345)},
#endif
        {nullptr, 3, type, packed.data(), 4000, 0, MPI_COMM_WORLD},
        {memory.data(), 3, type, packed.data(), -1, 0, MPI_COMM_WORLD},
        {memory.data(), 3, type, packed.data(), 1000, 1001, MPI_COMM_WORLD},
        {memory.data(), 3, type, packed.data(), 4000, 0, MPI_COMM_SELF}
    };
    for (const auto& c : cases) {
        std::fill(packed.begin(), packed.end(), 0x5A);
        int position = c.position;
        const int rc = MPI_Pack(c.memory, c.count, c.type, c.packed, c.size, &position, c.comm);
        digest.add(static_cast<uint64_t>(error_class(rc)));
        digest.add(static_cast<uint64_t>(position));
        digest.add_bytes(packed.data(), packed.size());
    }
    for (const int size : {1200, 1199, 600, 0, -1}) {
        std::vector<unsigned char> into(4000, 7);
        int position = 0;
        const int rc =
            MPI_Unpack(packed.data(), size, &position, into.data(), 3, type, MPI_COMM_WORLD);
        digest.add(static_cast<uint64_t>(error_class(rc)));
        if (rc == MPI_SUCCESS) digest.add_bytes(into.data(), into.size());
    }
    for (int i = 0; i < 3; ++i) exercise(random, type, 3, digest);  // no worse for it
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Type_free(&type);
    MPI_Type_free(&uncommitted);
}

// ---- handles that come again --------------------------------------------------------------------

MPI_Datatype every(int stride) {
    MPI_Datatype type;
    MPI_Type_vector(50, 1, stride, MPI_INT, &type);
    return type;
}

MPI_Datatype inner_of(MPI_Datatype type) {
    int integers[3];
    MPI_Datatype inner;
    MPI_Type_get_contents(type, 3, 0, 1, integers, nullptr, &inner);
    return inner;
}

int pack_in_callback(MPI_Datatype type, int, void* value, void*) {
    Random random(5);
    for (int i = 0; i < 3; ++i) exercise(random, type, 2, *static_cast<Digest*>(value));
    return MPI_SUCCESS;
}

void handles() {
    Digest& digest = topic("handles");
    Random random = own_random(93);
    int key = MPI_KEYVAL_INVALID;
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, pack_in_callback, &key, nullptr);
    for (int i = 0; i < 200; ++i) {
        MPI_Datatype type = every(2 + i % 7);  // gets the handle of the one before
        MPI_Type_commit(&type);
        exercise(random, type, 3, digest);
        switch (i % 4) {
            case 0:  // packed once more while it goes
                MPI_Type_set_attr(type, key, &digest);
                break;
            case 1: {  // lives on inside another one, and comes out of it
                MPI_Datatype outer;
                MPI_Type_contiguous(2, type, &outer);
                MPI_Type_free(&type);
                type = inner_of(outer);
                exercise(random, type, 3, digest);
                MPI_Type_commit(&outer);
                exercise(random, outer, 2, digest);
                MPI_Type_free(&outer);
                exercise(random, type, 3, digest);
                break;
            }
            case 2: {
                MPI_Datatype twin;
                MPI_Type_dup(type, &twin);
                MPI_Type_free(&type);
                type = twin;
                exercise(random, type, 3, digest);
                break;
            }
            default:  // committed again, between uses
                MPI_Type_commit(&type);
                exercise(random, type, 3, digest);
                break;
        }
        MPI_Type_free(&type);
    }
    MPI_Type_free_keyval(&key);
}

// The library gives out the same handle each time.
void fortran() {
    Digest& digest = topic("fortran");
    Random random = own_random(96);
    for (int i = 0; i < 20; ++i) {
        MPI_Datatype parts[3], mixed_parts, vector;
        MPI_Type_create_f90_real(6 + 9 * (i % 2), 30, &parts[0]);
        MPI_Type_create_f90_complex(6, 30, &parts[1]);
        MPI_Type_create_f90_integer(9, &parts[2]);
        for (const MPI_Datatype part : parts) exercise(random, part, 5, digest);
        const int lengths[3] = {1, 2, 3};
        const MPI_Aint displacements[3] = {0, 24, 64};
        MPI_Type_create_struct(3, lengths, displacements, parts, &mixed_parts);
        MPI_Type_vector(40, 1, 2, parts[i % 3], &vector);
        for (MPI_Datatype* const type : {&mixed_parts, &vector}) {
            MPI_Type_commit(type);
            exercise(random, *type, 7, digest);
            MPI_Type_free(type);
        }
    }
}

// ---- external32 ---------------------------------------------------------------------------------
//
// Left out: MPI_WCHAR, pairs, structs of several types and types of large-count constructors, which
// end the program in MPICH; MPI_LONG, which takes 4 bytes there; MPI_LONG_DOUBLE, which is padded.

const MPI_Datatype external_values[] = {MPI_CHAR,
                                        MPI_SIGNED_CHAR,
                                        MPI_UNSIGNED_CHAR,
                                        MPI_BYTE,
                                        MPI_PACKED,
                                        MPI_INT8_T,
                                        MPI_UINT8_T,
                                        MPI_C_BOOL,
                                        MPI_CXX_BOOL,
                                        MPI_CHARACTER,
                                        MPI_INTEGER1,
                                        MPI_SHORT,
                                        MPI_UNSIGNED_SHORT,
                                        MPI_INT16_T,
                                        MPI_UINT16_T,
                                        MPI_INTEGER2,
                                        MPI_INT,
                                        MPI_UNSIGNED,
                                        MPI_INT32_T,
                                        MPI_UINT32_T,
                                        MPI_INTEGER,
                                        MPI_INTEGER4,
                                        MPI_LOGICAL,
                                        MPI_LONG_LONG,
                                        MPI_UNSIGNED_LONG_LONG,
                                        MPI_INT64_T,
                                        MPI_UINT64_T,
                                        MPI_INTEGER8,
                                        MPI_AINT,
                                        MPI_OFFSET,
                                        MPI_COUNT,
                                        MPI_FLOAT,
                                        MPI_REAL,
                                        MPI_REAL4,
                                        MPI_DOUBLE,
                                        MPI_DOUBLE_PRECISION,
                                        MPI_REAL8,
                                        MPI_C_COMPLEX,
                                        MPI_C_DOUBLE_COMPLEX,
                                        MPI_CXX_FLOAT_COMPLEX,
                                        MPI_CXX_DOUBLE_COMPLEX,
                                        MPI_COMPLEX,
                                        MPI_COMPLEX8,
                                        MPI_DOUBLE_COMPLEX,
                                        MPI_COMPLEX16};

// As exercise(). Both forms of the calls, by turns.
void exercise_external(Random& random, MPI_Datatype type, int count, Digest& digest) {
    const Extent extent = extent_of(type, count);
    MPI_Aint size = 0, position = 0;
    MPI_Count bound = 0, position_c = 0;
    MPI_Pack_external_size("external32", count, type, &size);
    MPI_Pack_external_size_c("external32", count, type, &bound);
    digest.add(static_cast<uint64_t>(size));
    digest.add(static_cast<uint64_t>(bound));
    const int start = random.below(9), rest = random.chance(50) ? 0 : random.below(9);
    const MPI_Aint packed_bytes = start + size + rest;
    const Fenced storage(static_cast<size_t>(extent.span), random.chance(50));
    const Fenced packed(static_cast<size_t>(packed_bytes), random.chance(50));
    unsigned char* const memory = storage.begin() - extent.low;
    fill(storage, random.next());
    for (int i = 0; i < calls; ++i) {
        if (i + 2 >= calls) std::memset(packed.room(), 0xA5, packed.room_bytes());
        position = start;
        position_c = start;
        if (i % 2 == 0)
            MPI_Pack_external("external32", memory, count, type, packed.begin(), packed_bytes,
                              &position);
        else
            MPI_Pack_external_c("external32", memory, count, type, packed.begin(), packed_bytes,
                                &position_c);
        digest.add(static_cast<uint64_t>(i % 2 == 0 ? position : position_c));
        if (i < 3 || i + 2 >= calls) digest.add_bytes(packed.room(), packed.room_bytes());
    }
    digest.add_bytes(storage.room(), storage.room_bytes());
    fill(packed, random.next());
    for (int i = 0; i < calls; ++i) {
        if (i < 3 || i + 2 >= calls) fill(storage, random.next());
        position = start;
        position_c = start;
        if (i % 2 == 0)
            MPI_Unpack_external("external32", packed.begin(), packed_bytes, &position, memory,
                                count, type);
        else
            MPI_Unpack_external_c("external32", packed.begin(), packed_bytes, &position_c, memory,
                                  count, type);
        digest.add(static_cast<uint64_t>(i % 2 == 0 ? position : position_c));
        if (i < 3 || i + 2 >= calls) digest.add_bytes(storage.room(), storage.room_bytes());
    }
    digest.add_bytes(packed.room(), packed.room_bytes());
}

// One way of making a type around another, without large counts and without types of two kinds.
MPI_Datatype around(Random& random, MPI_Datatype inner, int most) {
    MPI_Aint low = 0, extent = 0;
    MPI_Type_get_extent(inner, &low, &extent);
    const int count = random.between(1, most);
    std::vector<int> lengths, displacements;
    std::vector<MPI_Aint> addresses;
    for (int i = 0, at = random.below(5); i < count; ++i) {
        lengths.push_back(random.between(1, 4));
        displacements.push_back(at);
        addresses.push_back(at * extent);
        at += lengths.back() + random.below(4);
    }
    const std::vector<MPI_Datatype> types(lengths.size(), inner);
    MPI_Datatype type;
    switch (random.below(9)) {
        case 0:
            MPI_Type_contiguous(count, inner, &type);
            break;
        case 1:
            MPI_Type_vector(count, random.between(1, 3), random.between(3, 6), inner, &type);
            break;
        case 2:
            MPI_Type_create_hvector(count, 1, (1 + random.below(4)) * extent, inner, &type);
            break;
        case 3:
            MPI_Type_indexed(count, lengths.data(), displacements.data(), inner, &type);
            break;
        case 4:
            MPI_Type_create_indexed_block(count, 1, displacements.data(), inner, &type);
            break;
        case 5:
            MPI_Type_create_hindexed(count, lengths.data(), addresses.data(), inner, &type);
            break;
        case 6:
            MPI_Type_create_struct(count, lengths.data(), addresses.data(), types.data(), &type);
            break;
        case 7: {
            const int sizes[] = {random.between(2, 9), random.between(2, 9)};
            const int parts[] = {random.between(1, sizes[0]), random.between(1, sizes[1])};
            const int starts[] = {random.below(sizes[0] - parts[0] + 1),
                                  random.below(sizes[1] - parts[1] + 1)};
            MPI_Type_create_subarray(2, sizes, parts, starts,
                                     random.chance(50) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, inner,
                                     &type);
            break;
        }
        default:
            MPI_Type_create_resized(inner, 0, extent * random.between(1, 3), &type);
    }
    return type;
}

void external() {
    Random random = own_random(98);
    Digest& digest = topic("external");
    for (const MPI_Datatype value : external_values) {
        if (value == MPI_DATATYPE_NULL) continue;
        int bytes = 0;
        MPI_Type_size(value, &bytes);
        for (const int count : {1, 3, 64, 65, 511, 3000})
            exercise_external(random, value, count, digest);
        MPI_Datatype every_second, whole;
        MPI_Type_vector(70000 / bytes, 1, 2, value, &every_second);
        MPI_Type_contiguous(1000, value, &whole);
        for (MPI_Datatype* const type : {&every_second, &whole}) {
            MPI_Type_commit(type);
            exercise_external(random, *type, 1, digest);
            exercise_external(random, *type, 3, digest);
            MPI_Type_free(type);
        }
        for (int i = 0; i < 8; ++i) {
            MPI_Datatype type;
            MPI_Type_dup(value, &type);
            for (int depth = random.between(1, 3); depth > 0; --depth) {
                MPI_Datatype outer = around(random, type, depth == 1 ? 200 : 6);
                MPI_Type_free(&type);
                type = outer;
            }
            MPI_Type_commit(&type);
            const int count = random.chance(50) ? 1 : random.between(1, 40);
            if (is_small(type, count)) exercise_external(random, type, count, digest);
            if (is_small(type, count)) exercise(random, type, count, digest);
            MPI_Type_free(&type);
        }
    }
}

void refused() {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    Digest& digest = topic("refused");
    Random random = own_random(99);
    MPI_Datatype type, uncommitted;
    MPI_Type_vector(300, 1, 2, MPI_INT, &type);
    MPI_Type_vector(300, 1, 3, MPI_INT, &uncommitted);
    MPI_Type_commit(&type);
    for (int i = 0; i < 3; ++i) exercise_external(random, type, 3, digest);
    exercise_external(random, MPI_INT, 900, digest);
    std::vector<unsigned char> memory(8000), packed(8000);
    fill(memory.data(), memory.size(), 1);
    const struct {
        const char* form;
        void* memory;
        int count;
        MPI_Datatype type;
        void* packed;
        MPI_Aint size, position;
    } cases[] = {{"native", memory.data(), 3, type, packed.data(), 8000, 0},
                 {"internal", memory.data(), 3, type, packed.data(), 8000, 0},
                 {"External32", memory.data(), 3, type, packed.data(), 8000, 0},
                 {"external32 ", memory.data(), 900, MPI_INT, packed.data(), 8000, 0},
                 {"", memory.data(), 900, MPI_INT, packed.data(), 8000, 0},
                 {"external32", memory.data(), -1, type, packed.data(), 8000, 0},
                 {"external32", memory.data(), 0, type, packed.data(), 8000, 5},
                 {"external32", memory.data(), 3, uncommitted, packed.data(), 8000, 0},
                 {"external32", memory.data(), 3, MPI_DATATYPE_NULL, packed.data(), 8000, 0},
                 {"external32", memory.data(), -1, MPI_INT, packed.data(), 8000, 0},
                 {"external32", nullptr, 3, type, packed.data(), 8000, 0},
                 {"external32", nullptr, 900, MPI_INT, packed.data(), 8000, 0},
                 {"external32", memory.data(), 3, type, nullptr, 8000, 0},
                 {"external32", memory.data(), 2, type, packed.data(), 8000, 7}};
    for (const auto& c : cases) {
        MPI_Aint position = c.position;
        std::fill(packed.begin(), packed.end(), 0x5A);
        int rc = MPI_Pack_external(c.form, c.memory, c.count, c.type, c.packed, c.size, &position);
        digest.add(static_cast<uint64_t>(error_class(rc)));
        digest.add(static_cast<uint64_t>(position));
        digest.add_bytes(packed.data(), packed.size());
        position = c.position;
        rc = MPI_Unpack_external(c.form, c.packed, c.size, &position, c.memory, c.count, c.type);
        digest.add(static_cast<uint64_t>(error_class(rc)));
        digest.add(static_cast<uint64_t>(position));
        digest.add_bytes(memory.data(), memory.size());
    }
    // Buffers that are too small, and positions behind their ends.
    for (const MPI_Datatype of : {type, MPI_Datatype{MPI_INT}})
        for (const MPI_Aint bytes : {3599, 3600, 1000, 0})
            for (const MPI_Aint start : {0, 1, 1001}) {
                std::fill(packed.begin(), packed.end(), 0x5A);
                MPI_Aint position = start;
                const int count = of == type ? 3 : 900;
                int rc = MPI_Pack_external("external32", memory.data(), count, of, packed.data(),
                                           bytes, &position);
                digest.add(static_cast<uint64_t>(error_class(rc)));
                digest.add(static_cast<uint64_t>(position));
                digest.add_bytes(packed.data(), packed.size());
                position = start;
                rc = MPI_Unpack_external("external32", packed.data(), bytes, &position,
                                         memory.data(), count, of);
                digest.add(static_cast<uint64_t>(error_class(rc)));
                digest.add(static_cast<uint64_t>(position));
                digest.add_bytes(memory.data(), memory.size());
            }
    MPI_Type_free(&type);
    MPI_Type_free(&uncommitted);
}

// Two types that all threads use: one that stays, and one that each takes out of another one and
// gives back, while others are within it.
void threads() {
    MPI_Datatype common = every(3), inner = every(4), outer;
    MPI_Type_commit(&common);
    MPI_Type_commit(&inner);
    MPI_Type_contiguous(2, inner, &outer);
    MPI_Type_free(&inner);
    std::vector<Digest> digests(4);
    std::vector<std::thread> all;
    for (size_t t = 0; t < digests.size(); ++t)
        all.emplace_back([&, t] {
            Random random = own_random(94 + t);
            for (int i = 0; i < 60; ++i) {
                MPI_Datatype own = every(2 + static_cast<int>(t) + i % 5);
                MPI_Type_commit(&own);
                exercise(random, own, 3, digests[t]);
                exercise(random, common, 5, digests[t]);
                exercise_external(random, common, 5, digests[t]);
                exercise_external(random, MPI_INT, 200, digests[t]);
                MPI_Type_free(&own);
                MPI_Datatype taken = inner_of(outer);
                exercise(random, taken, 2, digests[t]);
                MPI_Type_free(&taken);
            }
        });
    for (std::thread& thread : all) thread.join();
    for (const Digest& digest : digests) topic("threads").add(digest.value());
    MPI_Type_free(&common);
    MPI_Type_free(&outer);
}

}  // namespace

int main(int argc, char** argv) {
    read_arguments(argc, argv);
    const std::string& argument = world.argument;
    const int number = std::atoi(argument.c_str());
    const struct {
        const char* word;
        void (*run)();
    } modes[] = {{"columns", [] { columns(60); }},
                 {"often", often},
                 {"errors", errors},
                 {"handles", handles},
                 {"fortran", fortran},
                 {"external", external},
                 {"refused", refused},
                 {"threads", threads}};
    const auto* const mode = std::find_if(std::begin(modes), std::end(modes),
                                          [&](const auto& m) { return argument == m.word; });
    const bool is_mode = mode != std::end(modes);
    if (!argument.empty() && number == 0 && !is_mode) setenv("VECMPI_PACK", argument.c_str(), 1);
    begin(argc, argv, argument == "threads" ? MPI_THREAD_MULTIPLE : -1);
    if (is_mode)
        mode->run();
    else
        random_types(number > 0 ? number : 300);
    return end();
}
