// SPDX-License-Identifier: BSD-3-Clause
// MPI-IO from and into random datatypes: all blocking forms, through views with and without gaps,
// up to the end of the file and beyond it. Files, buffers and statuses go into the digests. The
// argument:
//   (none)  many types, each used a few times
//   often   few and larger ones, used so often that they get plans by default as well
//   errors  what the library refuses, with a type that it has moved often before
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "type_maker.hpp"

using namespace battery;

namespace {

// One name for all ranks of this job, no other job's.
std::string file_name() {
    const char* folder = std::getenv("TMPDIR");
    int id = static_cast<int>(getpid());
    MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return std::string(folder ? folder : "/tmp") + "/mpi-file-types-" + std::to_string(id);
}

// ---- types --------------------------------------------------------------------------------------
// Without empty blocks and negative displacements: ROMIO of MPICH 4.0.2 loops for ever, or takes
// others' memory.

Type base(Unit unit) {
    const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_SHORT, MPI_BYTE};
    Type type;
    if (unit != Unit::record) {
        MPI_Type_dup(types[static_cast<int>(unit)], &type.handle);
        type.map.push_back({0, bytes_of(unit)});
        return type;
    }
    const int lengths[] = {1, 1, 1};
    const MPI_Aint places[] = {0, 10, 14};
    const MPI_Datatype members[] = {MPI_DOUBLE, MPI_SHORT, MPI_BYTE};
    Type record;
    MPI_Type_create_struct(3, lengths, places, members, &record.handle);
    MPI_Type_create_resized(record.handle, 0, 16, &type.handle);
    type.map = {{0, 8}, {10, 2}, {14, 1}};
    return type;
}

int divisor(Random& random, int n) {
    const int d = random.between(1, 8);
    if (n % d != 0) return 1;
    return random.chance(60) ? d : n / d;
}

Type vector(Random& random, const Type& child, int n) {
    const int length = divisor(random, n);
    const int stride = length + random.below(3);
    Type type;
    MPI_Type_vector(n / length, length, stride, child.handle, &type.handle);
    Blocks blocks;
    for (int i = 0; i < n / length; ++i) blocks.push_back({i * stride * child.extent(), length});
    type.place(child, blocks);
    return type;
}

// Blocks of different lengths, or of one length in any order. Not of records, which ROMIO of MPICH
// 4.0.2 takes for others.
Type indexed(Random& random, const Type& child, int n) {
    if (child.map.size() > 1) return vector(random, child, n);
    const bool is_shuffled = random.chance(50);
    std::vector<int> lengths, places;
    for (int left = n, end = random.below(3); left > 0;) {
        const int length = is_shuffled ? 1 : random.between(1, std::min(left, 9));
        places.push_back(end);
        lengths.push_back(length);
        end += length + random.below(3);
        left -= length;
    }
    const auto count = static_cast<int>(places.size());
    if (is_shuffled)
        for (int i = count - 1; i > 0; --i)
            std::swap(places[static_cast<size_t>(i)],
                      places[static_cast<size_t>(random.below(i + 1))]);
    Type type;
    MPI_Type_indexed(count, lengths.data(), places.data(), child.handle, &type.handle);
    Blocks blocks;
    for (size_t i = 0; i < places.size(); ++i)
        blocks.push_back({places[i] * child.extent(), lengths[i]});
    type.place(child, blocks);
    return type;
}

Type structure(Random& random, const Type& child, int n) {
    const int part = random.between(1, n);
    if (part == n) return vector(random, child, n);
    const Type members[] = {vector(random, child, part), indexed(random, child, n - part)};
    const int lengths[] = {1, 1};
    const MPI_Aint places[] = {0, round_up(members[0].extent()) + 8 * random.below(4)};
    const MPI_Datatype handles[] = {members[0].handle, members[1].handle};
    Type type;
    MPI_Type_create_struct(2, lengths, places, handles, &type.handle);
    for (int i = 0; i < 2; ++i) type.place(members[i], {{places[i], 1}});
    return type;
}

// Some rows and columns of an array.
Type subarray(Random& random, const Type& child, int n) {
    const int length = divisor(random, n);
    const int part[] = {n / length, length};
    const int start[] = {random.below(3), random.below(3)};
    const int whole[] = {start[0] + part[0] + random.below(3),
                         start[1] + part[1] + random.below(3)};
    const bool is_fortran = random.chance(50);
    Type type;
    MPI_Type_create_subarray(2, whole, part, start, is_fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C,
                             child.handle, &type.handle);
    const int outer = is_fortran ? 1 : 0, inner = 1 - outer;
    Blocks blocks;
    for (int i = 0; i < part[outer]; ++i)
        blocks.push_back(
            {(MPI_Aint{start[outer] + i} * whole[inner] + start[inner]) * child.extent(),
             part[inner]});
    type.place(child, blocks);
    return type;
}

// Elements further apart.
Type resized(Random& random, const Type& child, int n) {
    const int inner = divisor(random, n);
    const Type part = vector(random, child, n / inner);
    Type wide, type;
    MPI_Type_create_resized(part.handle, 0, round_up(part.extent()) + 8 * random.below(3),
                            &wide.handle);
    wide.map = part.map;
    MPI_Type_contiguous(inner, wide.handle, &type.handle);
    type.place(wide, {{0, inner}});
    return type;
}

Type any(Random& random, const Type& child, int n) {
    using Way = Type (*)(Random&, const Type&, int);
    constexpr Way all[] = {vector, indexed, structure, resized, subarray};
    return all[random.below(5)](random, child, n);
}

// ---- memory -------------------------------------------------------------------------------------

// `count` elements of a type, each rank its own layout, with a margin around.
class Buffer {
  public:
    Buffer(Random& random, Unit unit, int units, bool is_simple) : unit_(unit) {
        count_ = is_simple ? 1 : divisor(random, units);
        type_ =
            is_simple ? vector(random, base(unit), units) : any(random, base(unit), units / count_);
        const MPI_Aint extent = type_.extent();
        const MPI_Aint span = (count_ - 1) * extent;
        low_ = type_.low() + std::min<MPI_Aint>(span, 0) - margin;
        memory_.resize(
            static_cast<size_t>(type_.high() + std::max<MPI_Aint>(span, 0) + margin - low_));
        is_at_bottom_ = !is_simple && random.chance(25);
        if (is_at_bottom_)
            handle_ = with_absolute_addresses();
        else
            MPI_Type_dup(type_.handle, &handle_);
        MPI_Type_commit(&handle_);
    }
    ~Buffer() { MPI_Type_free(&handle_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    void* address() { return is_at_bottom_ ? MPI_BOTTOM : memory_.data() - low_; }
    int count() const { return is_at_bottom_ ? 1 : count_; }
    MPI_Datatype type() const { return handle_; }
    void fill(uint64_t id) {
        for (size_t i = 0; i < memory_.size(); ++i)
            memory_[i] = static_cast<unsigned char>(mix(id + i / 8) >> (i % 8 * 8));
    }
    const std::vector<unsigned char>& all() const { return memory_; }
    // Its first `bytes` bytes, packed by our own walk.
    std::vector<unsigned char> packed(size_t bytes) const {
        std::vector<unsigned char> stream;
        const MPI_Aint extent = type_.extent();
        for (int copy = 0; copy < count_; ++copy)
            for (const Piece& piece : type_.map) {
                const unsigned char* const from =
                    memory_.data() + (piece.offset + copy * extent - low_);
                stream.insert(stream.end(), from, from + piece.bytes);
            }
        stream.resize(std::min(bytes, stream.size()));
        return stream;
    }

  private:
    static constexpr MPI_Aint margin = 64;

    MPI_Datatype with_absolute_addresses() const {
        const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_SHORT, MPI_BYTE, MPI_BYTE};
        const MPI_Datatype of = types[static_cast<int>(unit_)];
        int bytes = 0;
        MPI_Type_size(of, &bytes);
        std::vector<MPI_Aint> addresses;
        std::vector<int> lengths;
        const MPI_Aint extent = type_.extent();
        for (int copy = 0; copy < count_; ++copy)
            for (const Piece& piece : type_.map) {
                MPI_Aint address = 0;
                MPI_Get_address(memory_.data() + (piece.offset + copy * extent - low_), &address);
                addresses.push_back(address);
                lengths.push_back(static_cast<int>(piece.bytes) / bytes);
            }
        MPI_Datatype type;
        MPI_Type_create_hindexed(static_cast<int>(addresses.size()), lengths.data(),
                                 addresses.data(), of, &type);
        return type;
    }

    Unit unit_;
    Type type_;
    int count_ = 1;
    MPI_Aint low_ = 0;
    std::vector<unsigned char> memory_;
    bool is_at_bottom_ = false;
    MPI_Datatype handle_ = MPI_DATATYPE_NULL;
};

// ---- files --------------------------------------------------------------------------------------

enum class View { contiguous, strided, external32, internal };

struct File {
    MPI_File handle = MPI_FILE_NULL;
    std::string name;
    View view = View::contiguous;
    MPI_Datatype etype = MPI_INT;
    MPI_Offset etypes_of_rank = 0;  // from one rank's part to the next
    MPI_Offset first() const {      // of this rank's part, in etypes of its view
        return view == View::strided ? 0 : world.rank * etypes_of_rank;
    }
};

File open_file(const std::string& name, View view, Unit unit, MPI_Offset etypes_of_rank) {
    const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_SHORT, MPI_BYTE, MPI_BYTE};
    File file{MPI_FILE_NULL, name, view, types[static_cast<int>(unit)], etypes_of_rank};
    MPI_File_open(MPI_COMM_WORLD, name.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                  &file.handle);
    // What ROMIO writes into gaps behind the end of a file is by chance.
    if (world.rank == 0) {
        const std::vector<char> ground(
            static_cast<size_t>((etypes_of_rank + 64) * 8 * (world.size + 1)), 'g');
        MPI_File_write_at(file.handle, 0, ground.data(), static_cast<int>(ground.size()), MPI_BYTE,
                          MPI_STATUS_IGNORE);
    }
    MPI_File_sync(file.handle);
    MPI_Barrier(MPI_COMM_WORLD);
    int etype_bytes = 0;
    MPI_Type_size(file.etype, &etype_bytes);
    const int row = 7;
    MPI_Datatype rows, tiles;
    MPI_Type_contiguous(row, file.etype, &rows);
    MPI_Type_create_resized(rows, 0, MPI_Aint{row} * etype_bytes * (world.size + 1), &tiles);
    MPI_Type_commit(&tiles);
    const char* const representation = view == View::external32 ? "external32"
                                       : view == View::internal ? "internal"
                                                                : "native";
    const bool is_strided = view == View::strided;
    MPI_File_set_view(file.handle, is_strided ? MPI_Offset{world.rank} * row * etype_bytes : 16,
                      file.etype, is_strided ? tiles : file.etype, representation, MPI_INFO_NULL);
    MPI_Type_free(&tiles);
    MPI_Type_free(&rows);
    return file;
}

void add_whole_file(const std::string& name, MPI_File file) {
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    if (world.rank == 0) {
        std::vector<unsigned char> bytes;
        if (FILE* const stream = std::fopen(name.c_str(), "rb")) {
            struct stat about {};
            stat(name.c_str(), &about);
            bytes.resize(static_cast<size_t>(about.st_size));
            bytes.resize(std::fread(bytes.data(), 1, bytes.size(), stream));
            std::fclose(stream);
        }
        topic("file").add_bytes(bytes.data(), bytes.size());
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// ---- forms --------------------------------------------------------------------------------------

enum Form { at, here, at_all, all, shared, ordered };
constexpr int forms = 6;

int write(const File& file, Form form, MPI_Offset offset, Buffer& buffer, int count,
          MPI_Status* status, bool is_large) {
    MPI_File const f = file.handle;
    void* const from = buffer.address();
    const MPI_Datatype type = buffer.type();
    switch (form) {
        case at:
            return is_large ? MPI_File_write_at_c(f, offset, from, count, type, status)
                            : MPI_File_write_at(f, offset, from, count, type, status);
        case here:
            return is_large ? MPI_File_write_c(f, from, count, type, status)
                            : MPI_File_write(f, from, count, type, status);
        case at_all:
            return is_large ? MPI_File_write_at_all_c(f, offset, from, count, type, status)
                            : MPI_File_write_at_all(f, offset, from, count, type, status);
        case all:
            return is_large ? MPI_File_write_all_c(f, from, count, type, status)
                            : MPI_File_write_all(f, from, count, type, status);
        case shared:
            return is_large ? MPI_File_write_shared_c(f, from, count, type, status)
                            : MPI_File_write_shared(f, from, count, type, status);
        case ordered:
            return is_large ? MPI_File_write_ordered_c(f, from, count, type, status)
                            : MPI_File_write_ordered(f, from, count, type, status);
    }
    return MPI_ERR_OTHER;
}

int read(const File& file, Form form, MPI_Offset offset, Buffer& buffer, int count,
         MPI_Status* status, bool is_large) {
    MPI_File const f = file.handle;
    void* const to = buffer.address();
    const MPI_Datatype type = buffer.type();
    switch (form) {
        case at:
            return is_large ? MPI_File_read_at_c(f, offset, to, count, type, status)
                            : MPI_File_read_at(f, offset, to, count, type, status);
        case here:
            return is_large ? MPI_File_read_c(f, to, count, type, status)
                            : MPI_File_read(f, to, count, type, status);
        case at_all:
            return is_large ? MPI_File_read_at_all_c(f, offset, to, count, type, status)
                            : MPI_File_read_at_all(f, offset, to, count, type, status);
        case all:
            return is_large ? MPI_File_read_all_c(f, to, count, type, status)
                            : MPI_File_read_all(f, to, count, type, status);
        case shared:
            return is_large ? MPI_File_read_shared_c(f, to, count, type, status)
                            : MPI_File_read_shared(f, to, count, type, status);
        case ordered:
            return is_large ? MPI_File_read_ordered_c(f, to, count, type, status)
                            : MPI_File_read_ordered(f, to, count, type, status);
    }
    return MPI_ERR_OTHER;
}

// Ranks that do not wait for each other anyway take turns: the order shows in the file, and four
// that write between each other's gaps lose some of it with MPICH 4.0.2 alone. The status may be
// ignored.
template <class Call>
void make(Call call, const File& file, Form form, MPI_Offset offset, Buffer& buffer, int count,
          Random& common) {
    MPI_Status status;
    std::memset(&status, 0, sizeof status);
    const bool is_large = common.chance(30), is_ignored = common.chance(20);
    MPI_Status* const filled = is_ignored ? MPI_STATUS_IGNORE : &status;
    if (form == here || form == all) MPI_File_seek(file.handle, offset, MPI_SEEK_SET);
    if (form == shared || form == ordered) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_File_seek_shared(file.handle, 0, MPI_SEEK_SET);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    int rc = MPI_SUCCESS;
    const bool in_turn = form == shared || form == at || form == here;
    for (int rank = 0; rank < (in_turn ? world.size : 1); ++rank) {
        if (!in_turn || rank == world.rank)
            rc = call(file, form, offset, buffer, count, filled, is_large);
        if (in_turn) MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Offset position = 0;
    MPI_File_get_position(file.handle, &position);
    Digest& digest = topic("status");
    digest.add(static_cast<uint64_t>(error_class(rc)));
    digest.add(static_cast<uint64_t>(position));
    if (is_ignored) return;
    MPI_Count elements = 0;
    int bytes = 0;
    MPI_Get_elements_x(&status, MPI_BYTE, &elements);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    digest.add(static_cast<uint64_t>(elements));
    digest.add(static_cast<uint64_t>(bytes));
    digest.add_status(status, buffer.type());
}

Form form_of(Random& common, const File& file) {
    // All ranks must have one view at the shared pointer (MPI 4.0, 14.4.4).
    return static_cast<Form>(common.below(file.view == View::strided ? 4 : forms));
}

// What stands in the file from the offset on is less than what is asked for. Beyond it memory holds
// anything.
void read_beyond(const File& file, Buffer& buffer, MPI_Offset etypes, int etype_bytes,
                 Random& common) {
    if (file.view != View::contiguous) return;
    const MPI_Offset etypes_of_all = file.etypes_of_rank * world.size;
    const MPI_Offset size =
        16 + file.etypes_of_rank * etype_bytes + common.below(static_cast<int>(etypes_of_all));
    MPI_File_set_size(file.handle, size);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 6; ++i) {
        const auto form = static_cast<Form>(common.below(4));
        const MPI_Offset there = (size - 16) / etype_bytes;
        const MPI_Offset back = common.below(static_cast<int>(etypes) + 2);
        const MPI_Offset offset = std::max<MPI_Offset>(there - back, 0);
        const auto bytes = static_cast<size_t>(
            std::min(etypes, std::max<MPI_Offset>(there - offset, 0)) * etype_bytes);
        buffer.fill(world.seed + static_cast<uint64_t>(i));
        make(read, file, form, offset, buffer, buffer.count(), common);
        const std::vector<unsigned char> came = buffer.packed(bytes);
        topic("end").add_bytes(came.data(), came.size());
    }
}

// Read block by block, memory keeps what lies behind the end of the file.
void read_what_is_kept(const std::string& name, Random& own) {
    constexpr int there = 1000;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_ds_read", "disable");
    MPI_File file;
    MPI_File_open(MPI_COMM_SELF, (name + std::to_string(world.rank)).c_str(),
                  MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info, &file);
    const std::vector<int> numbers(there, 7);
    MPI_File_write_at(file, 0, numbers.data(), there, MPI_INT, MPI_STATUS_IGNORE);
    MPI_Datatype type;
    MPI_Type_vector(2 * there, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < 60; ++i) {
        std::vector<int> memory(4 * there, own.below(1000));
        MPI_File_read_at(file, 0, memory.data(), 1, type, MPI_STATUS_IGNORE);
        topic("kept").add_bytes(memory.data(), memory.size() * sizeof(int));
    }
    MPI_Type_free(&type);
    MPI_File_close(&file);
    MPI_Info_free(&info);
}

void one_file(const std::string& name, Random& common, Random& own, int most_units, int calls) {
    const auto view = static_cast<View>(common.below(4));
    const bool is_simple = view == View::external32;
    const auto unit = static_cast<Unit>(common.below(is_simple ? 3 : 5));
    const int units = own.between(1, most_units);
    const int per_unit = unit == Unit::record ? static_cast<int>(bytes_of(unit)) : 1;
    const File file = open_file(name, view, unit, MPI_Offset{most_units} * per_unit);
    int etype_bytes = 0;
    MPI_Type_size(file.etype, &etype_bytes);
    Buffer buffer(own, unit, units, is_simple);
    for (int i = 0; i < calls; ++i) {
        buffer.fill(own.next());
        const Form form = form_of(common, file);
        const int count = common.chance(10) ? 0 : buffer.count();
        make(write, file, form, file.first(), buffer, count, common);
        if (i + 1 == calls || i % 8 == 0) add_whole_file(name, file.handle);
    }
    for (int i = 0; i < calls; ++i) {
        buffer.fill(own.next());
        const Form form = form_of(common, file);
        const int count = common.chance(10) ? 0 : buffer.count();
        make(read, file, form, file.first(), buffer, count, common);
        if (form < shared) topic("read").add_bytes(buffer.all().data(), buffer.all().size());
    }
    read_beyond(file, buffer, MPI_Offset{units} * per_unit, etype_bytes, common);
    MPI_File_set_atomicity(file.handle, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    buffer.fill(own.next());
    make(write, file, common.chance(50) ? at : at_all, file.first(), buffer, buffer.count(),
         common);
    add_whole_file(name, file.handle);
    MPI_File handle = file.handle;
    MPI_File_close(&handle);
}

// ---- what the library refuses ------------------------------------------------------------------

void errors(const std::string& name, Random& own) {
    const File file = open_file(name, View::contiguous, Unit::integer, 1000);
    Buffer buffer(own, Unit::integer, 100, true);
    MPI_Status status;
    Digest& digest = topic("errors");
    const auto add = [&](int rc) { digest.add(static_cast<uint64_t>(error_class(rc))); };
    for (int i = 0; i < 200; ++i)
        add(MPI_File_write_at(file.handle, file.first(), buffer.address(), buffer.count(),
                              buffer.type(), &status));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 100; ++i)
        add(MPI_File_read_at(file.handle, file.first(), buffer.address(), buffer.count(),
                             buffer.type(), &status));
    for (const MPI_Offset offset : {MPI_Offset{-1}, MPI_Offset{-2}}) {
        add(MPI_File_write_at(file.handle, offset, buffer.address(), buffer.count(), buffer.type(),
                              &status));
        add(MPI_File_read_at(file.handle, offset, buffer.address(), buffer.count(), buffer.type(),
                             &status));
        add(MPI_File_read_at_all(file.handle, offset, buffer.address(), buffer.count(),
                                 buffer.type(), &status));
    }
    add(MPI_File_write_at(file.handle, 0, buffer.address(), -1, buffer.type(), &status));
    add(MPI_File_write_at(file.handle, 0, buffer.address(), 1, MPI_DATATYPE_NULL, &status));
    add(MPI_File_write_at(MPI_FILE_NULL, 0, buffer.address(), buffer.count(), buffer.type(),
                          &status));
    add(MPI_File_read(MPI_FILE_NULL, buffer.address(), buffer.count(), buffer.type(), &status));
    MPI_Datatype wide;  // an etype of which the buffer is no multiple
    MPI_Type_contiguous(7, MPI_INT, &wide);
    MPI_Type_commit(&wide);
    MPI_File_set_view(file.handle, 0, wide, wide, "native", MPI_INFO_NULL);
    add(MPI_File_write_at(file.handle, 0, buffer.address(), buffer.count(), buffer.type(),
                          &status));
    MPI_Type_free(&wide);
    MPI_File handle = file.handle;
    MPI_File_close(&handle);
    for (const int mode : std::initializer_list<int>{MPI_MODE_RDONLY, MPI_MODE_WRONLY,
                                                     MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL}) {
        MPI_File_open(MPI_COMM_WORLD, name.c_str(), mode, MPI_INFO_NULL, &handle);
        add(MPI_File_write_at(handle, 0, buffer.address(), buffer.count(), buffer.type(), &status));
        add(MPI_File_write(handle, buffer.address(), buffer.count(), buffer.type(), &status));
        add(MPI_File_read_at(handle, 0, buffer.address(), buffer.count(), buffer.type(), &status));
        add(MPI_File_read(handle, buffer.address(), buffer.count(), buffer.type(), &status));
        add(MPI_File_read_all(handle, buffer.address(), buffer.count(), buffer.type(), &status));
        MPI_File_close(&handle);
    }
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    Random common = common_random(31);
    Random own = own_random(32);
    const std::string name = file_name();
    if (world.argument == "errors") {
        errors(name, own);
        read_what_is_kept(name, own);
    } else if (world.argument == "often") {
        for (int i = 0; i < 4; ++i) one_file(name, common, own, 5000, 60);
    } else {
        for (int i = 0; i < 40; ++i) one_file(name, common, own, 300, 10);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (world.rank == 0) MPI_File_delete(name.c_str(), MPI_INFO_NULL);
    return end();
}
