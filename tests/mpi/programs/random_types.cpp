// SPDX-License-Identifier: BSD-3-Clause
// Random datatypes in packs, messages and collectives. Nothing is expected here: whatever memory
// and statuses hold afterwards goes into digests, to be compared with those of a run without
// vecmpi. The argument is a number of types.
//   --from I       begins with type I: each depends on the seed and its number alone
//   --each N       types of a line of output (100)
//   --explain 1    prints how types are made and a digest of each operation (find_type.py)
//
// Known faults of MPICH 4.0.2 are avoided, each where a comment says so. Legal is also: a receive
// never overlaps itself; what is undefined afterwards (the bytes behind the value of a long double)
// is no part of a digest.
#define XXH_INLINE_ALL
#include <sys/mman.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "type_builder.hpp"

using namespace battery;

namespace {

bool explains = false;
MPI_Comm quiet = MPI_COMM_NULL;  // returns errors

constexpr MPI_Aint most_span = 256 << 10;  // of all elements of a message in memory
constexpr size_t most_items = 20000;       // values of a message
constexpr int slots = 3;                   // messages at once
// Below a fragment of UCX; see is_short().
constexpr MPI_Aint short_bytes = 6000;

// ---- memory ------------------------------------------------------------------------------------

// Memory between pages that nobody may touch.
class Arena {
  public:
    explicit Arena(size_t bytes) : bytes_(bytes) {
        void* const base =
            mmap(nullptr, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        check(base != MAP_FAILED, "mmap");
        begin_ = static_cast<char*>(base) + page;
        check(mprotect(begin_, bytes, PROT_READ | PROT_WRITE) == 0, "mprotect");
    }
    Arena(const Arena&) = delete;
    // `bytes` at the beginning or `slack` bytes before the end of it, with guard bytes on the other
    // side.
    char* place(MPI_Aint bytes, bool at_end, MPI_Aint slack) {
        check(bytes + guard <= static_cast<MPI_Aint>(bytes_), "the arena is large enough");
        char* const from = at_end ? begin_ + bytes_ - bytes - slack : begin_;
        used_begin_ = at_end ? from - guard + slack : from;
        used_bytes_ = static_cast<size_t>(bytes + guard);
        return from;
    }
    void fill(uint64_t id) {
        uint64_t word = mix(id);
        size_t i = 0;
        for (; i + 8 <= used_bytes_; i += 8) {
            word += 0x9e3779b97f4a7c15u;
            const uint64_t value = (word ^ (word >> 29)) * 0xbf58476d1ce4e5b9u;
            std::memcpy(used_begin_ + i, &value, 8);
        }
        std::memset(used_begin_ + i, static_cast<int>(word >> 56), used_bytes_ - i);
    }
    uint64_t digest() const { return XXH3_64bits(used_begin_, used_bytes_); }

  private:
    static constexpr size_t page = 4096;
    static constexpr MPI_Aint guard = 72;
    size_t bytes_;
    char* begin_;
    char* used_begin_ = nullptr;
    size_t used_bytes_ = 0;
};

// Values that may be sent: truth values are 0 or 1, long doubles numbers.
void make_legal(char* memory, const Built& type, MPI_Aint count) {
    for (MPI_Aint copy = 0; copy < count; ++copy)
        for (const Item& item : type.map) {
            const Basic& basic = item.type();
            char* const at = memory + item.offset + copy * type.extent;
            if (basic.type == MPI_C_BOOL) *at &= 1;
            for (int p = 0; p < basic.parts; ++p) {
                if (basic.part[p].defined == basic.part[p].bytes) continue;
                char* const value = at + basic.part[p].offset;
                value[7] = static_cast<char>(value[7] | 0x80);  // the integer bit
                value[9] = 0x3f;                                // a finite number
            }
        }
}

// Blanks what is behind the values of long doubles.
void blank_padding(char* memory, const Built& type, MPI_Aint count) {
    for (MPI_Aint copy = 0; copy < count; ++copy)
        for (const Item& item : type.map)
            for (int p = 0; p < item.type().parts; ++p) {
                const Part& part = item.type().part[p];
                char* const at = memory + item.offset + copy * type.extent + part.offset;
                if (part.defined < part.bytes)
                    std::memset(at + part.defined, 0,
                                static_cast<size_t>(part.bytes - part.defined));
            }
}
void blank_packed_padding(char* packed, const Built& type, MPI_Aint count) {
    for (MPI_Aint copy = 0; copy < count; ++copy)
        for (const Item& item : type.map)
            for (int p = 0; p < item.type().parts; ++p) {
                const Part& part = item.type().part[p];
                if (part.defined < part.bytes)
                    std::memset(packed + part.defined, 0,
                                static_cast<size_t>(part.bytes - part.defined));
                packed += part.bytes;
            }
}

// ---- the two types of a message ----------------------------------------------------------------

// Is the type as its map says, and its memory not too large?
bool is_usable(const Built& type, MPI_Aint count) {
    MPI_Count size = 0, low = 0, extent = 0;
    MPI_Type_size_x(type.handle, &size);
    MPI_Type_get_true_extent_x(type.handle, &low, &extent);
    const bool is_ours =
        size == type.size() && (size == 0 || (low == type.low && low + extent == type.high));
    if (!is_ours && explains)
        std::printf(
            "rank %d: left out: size %ld, true bounds %ld to %ld, expected %ld, %ld to %ld\n",
            world.rank, static_cast<long>(size), static_cast<long>(low),
            static_cast<long>(low + extent), static_cast<long>(type.size()),
            static_cast<long>(type.low), static_cast<long>(type.high));
    return is_ours && range_of(type, count).bytes <= most_span && std::abs(type.low) < (1 << 24);
}

// How a rank lays one shape out; build() makes the same type again and again.
class Layout {
  public:
    // Of so many elements in one message.
    Layout(const Shape& shape, uint64_t seed, bool receives, bool with_gaps, bool may_be_large,
           int most, MPI_Aint spare)
        : shape_(shape), receives_(receives), may_be_large_(may_be_large) {
        for (int i = 0; i < 4; ++i) {
            seed_ = seed + static_cast<uint64_t>(i);
            Built type = build();
            const bool fits = is_usable(type, most + spare) &&
                              !(with_gaps && is_contiguous(type, most)) &&
                              (!receives || is_disjoint(type, most + spare));
            if (fits) return;
        }
        is_spread_ = true;
    }
    Built build(std::string* text = nullptr) const {
        Builder builder(seed_, receives_, may_be_large_, text);
        Built type = builder.build(shape_);
        if (is_spread_) {
            if (text != nullptr) text->clear();
            Builder other(seed_, receives_, may_be_large_, text);
            type = other.spread(type.map);
        }
        // A predefined type needs no commit, and a dup of one has none of its own.
        if (type.is_owned) MPI_Type_commit(&type.handle);
        return type;
    }
    // One element, with an extent of its span: as blocks of collectives.
    Built build_block() const {
        Builder builder(seed_, true);
        Built type = build();
        Built block = builder.resize(type, type.low, std::max<MPI_Aint>(type.span(), 1));
        MPI_Type_commit(&block.handle);
        return block;
    }

  private:
    const Shape& shape_;
    bool receives_, may_be_large_;
    uint64_t seed_ = 0;
    bool is_spread_ = false;
};

// A type in use on one side, with types of absolute addresses of it.
class Side {
  public:
    Side(const Shape& shape, Random& own, bool receives, bool with_gaps, bool may_be_large,
         int most, MPI_Aint spare, Arena& arena)
        : arena_(arena),
          layout_(shape, own.next(), receives, with_gaps, may_be_large, most, spare),
          has_padding_(shape.has_padding()),
          // The library may read a pair as the struct that it is, to its extent.
          slack_(shape.has_pairs() ? 16 : 0),
          at_end_(own.chance(50)),
          is_absolute_(own.chance(25)) {
        std::string text;
        type = layout_.build(explains ? &text : nullptr);
        if (explains) tell(receives ? "receives" : "sends", text);
    }

    // How a call names its buffer.
    struct Buffer {
        void* address;
        int count;
        MPI_Datatype type;
    };
    // Places `copies` messages of `count` elements each; slot() and buffer() are of these.
    void place(MPI_Aint count, int copies, uint64_t id) {
        count_ = count;
        const Range range = range_of(type, count);
        step_ = (range.bytes + 8) / 8 * 8 + 8;
        char* const from =
            arena_.place(copies == 1 ? range.bytes : step_ * copies, at_end_, slack_);
        memory_ = from - range.low;
        arena_.fill(id);
        for (int i = 0; i < copies; ++i) make_legal(slot(i), type, count);
    }
    char* slot(int i) const { return memory_ + i * step_; }
    MPI_Aint step() const { return step_; }
    MPI_Aint count() const { return count_; }
    Buffer buffer(int i) {
        if (!is_absolute_ || count_ == 0 || type.map.empty())
            return {slot(i), static_cast<int>(count_), type.handle};
        return {MPI_BOTTOM, 1, absolute(slot(i))};
    }
    // After a receive of `count` elements into slot i.
    void forget_padding(int i, MPI_Aint count) {
        if (has_padding_) blank_padding(slot(i), type, count);
    }
    void forget_packed_padding(char* packed, MPI_Aint count) const {
        if (has_padding_) blank_packed_padding(packed, type, count);
    }
    uint64_t digest() const { return arena_.digest(); }
    void remake() {
        free();
        type = layout_.build();
    }
    void free() {
        absolutes_.clear();
        type.free();
    }
    const Built& block() {
        if (block_.handle == MPI_DATATYPE_NULL) block_ = layout_.build_block();
        return block_;
    }
    Arena& arena() const { return arena_; }
    bool is_at_end() const { return at_end_; }
    MPI_Aint slack() const { return slack_; }

    Built type;

  private:
    void tell(const char* what, const std::string& text) const {
        std::printf("rank %d: %s%s\n", world.rank, what,
                    is_absolute_ ? " by absolute addresses" : "");
        for (size_t begin = 0; begin < text.size();) {
            const size_t end = text.find('\n', begin);
            std::printf("rank %d:   %s\n", world.rank, text.substr(begin, end - begin).c_str());
            begin = end + 1;
        }
    }
    // The last one used stays longest: one exchange may use as many as there are slots.
    MPI_Datatype absolute(char* memory) {
        MPI_Aint address = 0;
        MPI_Get_address(memory, &address);
        const auto known = std::find_if(
            absolutes_.begin(), absolutes_.end(),
            [&](const Absolute& one) { return one.address == address && one.count == count_; });
        if (known != absolutes_.end()) {
            std::rotate(known, known + 1, absolutes_.end());
            return absolutes_.back().type.handle;
        }
        if (absolutes_.size() == 4) absolutes_.erase(absolutes_.begin());
        Builder builder(static_cast<uint64_t>(count_), true);
        Built made = builder.at_address(type, static_cast<int>(count_), address);
        MPI_Type_commit(&made.handle);
        absolutes_.push_back({address, count_, std::move(made)});
        return absolutes_.back().type.handle;
    }

    struct Absolute {
        MPI_Aint address, count;
        Built type;
    };
    Arena& arena_;
    const Layout layout_;
    const bool has_padding_;
    const MPI_Aint slack_;
    const bool at_end_, is_absolute_;
    std::vector<Absolute> absolutes_;
    Built block_;
    MPI_Aint count_ = 0, step_ = 0;
    char* memory_ = nullptr;
};

// ---- one type ----------------------------------------------------------------------------------

class Episode {
  public:
    Episode(int number, Digest& digest, Arena& out_arena, Arena& in_arena)
        : number_(number),
          common_(stream(number, 1)),
          own_(stream(number, 100 + static_cast<uint64_t>(world.rank))),
          line_(digest),
          out_arena_(out_arena),
          in_arena_(in_arena) {
        // Some have the description of an earlier one: a plan outlives its handle.
        Random described(stream(number, 2));
        int described_by = number;
        if (described.chance(15)) described_by = std::max(0, number - described.between(1, 40));
        Random shapes(stream(described_by, 3));
        Random layouts(stream(described_by, 200 + static_cast<uint64_t>(world.rank)));
        const int pairs = shapes.chance(75) ? 1 : 2;
        pairs_.reserve(static_cast<size_t>(pairs));
        for (int i = 0; i < pairs; ++i) add_pair(shapes, layouts);
    }
    Episode(const Episode&) = delete;

    void run() {
        const int shape = common_.below(100);
        const int calls = shape < 50   ? common_.between(1, 4)
                          : shape < 99 ? common_.between(4, 40)
                                       : common_.between(40, 300);
        const int favourite = common_.chance(50) ? common_.below(kinds) : -1;
        for (int call = 0; call < calls; ++call) {
            Pair& pair =
                *pairs_[static_cast<size_t>(common_.below(static_cast<int>(pairs_.size())))];
            id_ = common_.next();
            count_ = common_.chance(70) ? pair.most : common_.between(0, pair.most);
            const int kind =
                favourite >= 0 && common_.chance(80) ? favourite : common_.below(kinds);
            begin_operation(call);
            carry_out(kind, pair);
            line_.add(digest_.value());
            if (explains) tell();
        }
    }

  private:
    struct Pair {
        Shape shape;
        int most = 1;         // elements of a message
        int value_bytes = 0;  // see Shape
        MPI_Aint bytes = 0;   // of an element
        bool has_empty_parts = false, may_be_large = true;
        std::unique_ptr<Side> out, in;
        bool is_simple() const {
            return shape.is_of_one_simple_type() && !has_empty_parts && !may_be_large;
        }
    };
    static constexpr int kinds = 15;
    static constexpr MPI_Aint spare = 3;  // a receive may have room for more elements

    static uint64_t stream(int number, uint64_t which) {
        return mix(mix(world.seed) + static_cast<uint64_t>(number) * 1009 + which);
    }

    // ---- making ----

    void add_pair(Random& shapes, Random& layouts) {
        const int size = shapes.below(1000);
        int values = size < 600   ? shapes.between(1, 60)
                     : size < 930 ? shapes.between(1, 600)
                     : size < 995 ? shapes.between(1, 6000)
                                  : shapes.between(1, 40000);
        pairs_.push_back(std::make_unique<Pair>());
        Pair& pair = *pairs_.back();
        Built sample;
        for (bool is_small = false; !is_small; values /= 4) {
            ShapeMaker maker(shapes, 7);
            pair.shape = maker.make(values, shapes.below(5));
            Builder builder(1, true);
            sample = builder.build(pair.shape);
            is_small = sample.map.size() <= most_items;
        }
        pair.value_bytes = pair.shape.value_bytes();
        pair.may_be_large = shapes.chance(60);
        pair.bytes = sample.size();
        pair.has_empty_parts = pair.shape.has_empty_parts();
        const auto items = static_cast<MPI_Aint>(sample.map.size());
        const int large = shapes.below(100);
        const MPI_Aint room = large < 85 ? 4 << 10 : large < 97 ? 64 << 10 : 200 << 10;
        const MPI_Aint most = std::min(room / std::max<MPI_Aint>(pair.bytes, 8),
                                       MPI_Aint{most_items} / std::max<MPI_Aint>(items, 1));
        pair.most =
            shapes.chance(50) ? 1 : 1 + shapes.below(static_cast<int>(std::max<MPI_Aint>(most, 1)));
        // A receive of MPICH 4.0.2 reports truncation, or hangs, where a piece of a message ends
        // within a value of its type, and a sender without gaps ends them anywhere.
        const bool with_gaps = !is_short(pair, pair.most);
        pair.out = std::make_unique<Side>(pair.shape, layouts, false, with_gaps, pair.may_be_large,
                                          pair.most, 0, out_arena_);
        pair.in = std::make_unique<Side>(pair.shape, layouts, true, with_gaps, pair.may_be_large,
                                         pair.most, spare, in_arena_);
    }
    // May its bytes end a fragment anywhere?
    static bool is_short(const Pair& pair, MPI_Aint elements) {
        return pair.value_bytes != 0 || pair.bytes * elements <= short_bytes;
    }

    // ---- noting ----

    void begin_operation(int call) {
        call_ = call;
        digest_ = Digest("call " + std::to_string(call) + " of type " + std::to_string(number_));
        what_ = "";
    }
    void tell() const {
        std::printf("rank %d: type %d call %d %s, %d elements: %016lx\n", world.rank, number_,
                    call_, what_, count_, digest_.value());
        std::fflush(stdout);
    }
    void note(const MPI_Status& status, MPI_Datatype type, const Pair& pair) {
        int elements = 0;
        MPI_Count many = 0;
        digest_.add_status(status, type);
        // Where MPI_Get_elements of MPICH 4.0.2 takes a type apart it knows neither arrays nor
        // large-count constructors, and divides by the size of what has none.
        if (type != MPI_PACKED && !pair.is_simple()) return;
        MPI_Get_elements(&status, type, &elements);
        MPI_Get_elements_x(&status, type, &many);
        digest_.add(static_cast<uint64_t>(elements));
        digest_.add(static_cast<uint64_t>(many));
    }
    void note(int code) { digest_.add(static_cast<uint64_t>(error_class(code))); }

    // ---- operations ----
    //
    // Nothing is unpacked of a type without data, in collectives neither: MPICH 4.0.2 divides by
    // its size.

    void carry_out(int kind, Pair& pair) {
        switch (kind) {
            case 0:
            case 1:
                return pack(pair);
            case 2:
                return pack_external(pair);
            case 3:
            case 4:
            case 5:
            case 6:
                return exchange(pair);
            case 7:
                return sendrecv(pair, (world.rank + 1) % world.size,
                                (world.rank + world.size - 1) % world.size);
            case 8:
                return sendrecv(pair, world.rank, world.rank);
            case 9:
                return persistent(pair);
            case 10:
                return bcast(pair);
            case 11:
                return alltoallw(pair);
            case 12:
                return sendrecv_replace(pair);
            case 13:
                return gather(pair, false);
            default:
                return gather(pair, true);
        }
    }

    void pack(Pair& pair) {
        what_ = "pack, unpack";
        Side &out = *pair.out, &in = *pair.in;
        const MPI_Aint bytes = pair.bytes * count_;
        out.place(count_, 1, id_);
        in.place(count_, 1, id_ + 1);
        const int start = own_.below(9), rest = own_.below(9);
        std::vector<char> packed(static_cast<size_t>(start + bytes + rest), 0x5a);
        const auto room = static_cast<int>(packed.size());
        int position = start;
        // MPICH 4.0.2 refuses to pack from MPI_BOTTOM.
        Side::Buffer from = out.buffer(0);
        int code =
            MPI_Pack(from.address, from.count, from.type, packed.data(), room, &position, quiet);
        note(code);
        if (code != MPI_SUCCESS) {
            position = start;
            code = MPI_Pack(out.slot(0), count_, out.type.handle, packed.data(), room, &position,
                            quiet);
            note(code);
        }
        digest_.add(static_cast<uint64_t>(position));
        out.forget_packed_padding(packed.data() + start, count_);
        digest_.add(XXH3_64bits(packed.data(), packed.size()));
        if (explains) compare(out, packed.data() + start);
        // MPI_Unpack of MPICH 4.0.2 divides by the size of the type.
        if (pair.bytes == 0) return;
        const Side::Buffer to = in.buffer(0);
        position = start;
        code = MPI_Unpack(packed.data(), room, &position, to.address, to.count, to.type, quiet);
        note(code);
        digest_.add(static_cast<uint64_t>(position));
        in.forget_padding(0, count_);
        digest_.add(in.digest());
        digest_.add(out.digest());
    }

    // Says where packed bytes are not those of our map: who is right, plain or preloaded?
    void compare(const Side& side, const char* packed) const {
        std::vector<char> expected;
        for (MPI_Aint copy = 0; copy < count_; ++copy)
            for (const Item& item : side.type.map)
                for (int p = 0; p < item.type().parts; ++p) {
                    const Part& part = item.type().part[p];
                    const char* const from =
                        side.slot(0) + item.offset + copy * side.type.extent + part.offset;
                    expected.insert(expected.end(), from, from + part.bytes);
                }
        side.forget_packed_padding(expected.data(), count_);
        size_t wrong = 0, first = 0;
        for (size_t i = expected.size(); i-- > 0;)
            if (expected[i] != packed[i]) ++wrong, first = i;
        if (wrong != 0)
            std::printf(
                "rank %d: type %d call %d: %zu of %zu packed bytes are wrong, the first is %zu\n",
                world.rank, number_, call_, wrong, expected.size(), first);
    }

    void pack_external(Pair& pair) {
        what_ = "pack_external";
        if (pair.bytes * count_ == 0) return;
        // MPI_Pack_external and _size of MPICH 4.0.2 crash with types of large-count constructors,
        // structs of several types, and without data.
        if (!pair.is_simple() || !has_external_form(pair.shape)) return;
        Side &out = *pair.out, &in = *pair.in;
        out.place(count_, 1, id_);
        in.place(count_, 1, id_ + 1);
        const MPI_Aint bytes = pair.bytes * count_;
        MPI_Aint position = 0;
        std::vector<char> packed(static_cast<size_t>(bytes + 8), 0x5a);
        MPI_Pack_external("external32", out.slot(0), count_, out.type.handle, packed.data(), bytes,
                          &position);
        digest_.add(static_cast<uint64_t>(position));
        digest_.add(XXH3_64bits(packed.data(), packed.size()));
        position = 0;
        MPI_Unpack_external("external32", packed.data(), bytes, &position, in.slot(0), count_,
                            in.type.handle);
        digest_.add(static_cast<uint64_t>(position));
        digest_.add(in.digest());
    }

    // MPICH 4.0.2 asserts where values have another size in "external32" than in memory, or parts.
    static bool has_external_form(const Shape& shape) {
        const std::array all = {
            MPI_INT,           MPI_DOUBLE,         MPI_CHAR,     MPI_SHORT,
            MPI_FLOAT,         MPI_BYTE,           MPI_UNSIGNED, MPI_SIGNED_CHAR,
            MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT, MPI_LONG_LONG};
        bool has = true;
        shape.for_each_basic([&](const Basic& basic) {
            has &= std::find(all.begin(), all.end(), basic.type) != all.end();
        });
        return has;
    }

    // To the right neighbour and from the left one, some at once, typed or packed on one side.
    void exchange(Pair& pair) {
        const int messages = common_.between(1, slots);
        const int packed = pair.bytes * count_ == 0 ? 0 : std::max(0, common_.below(6) - 3);
        const bool in_order = common_.chance(15);  // blocking calls on both sides
        // Bytes that end a fragment within a value are not for a typed receive: see add_pair().
        const bool packs = packed == 1 && is_short(pair, count_);
        const bool unpacks = packed == 2;
        what_ = packs ? "packed to typed" : unpacks ? "typed to packed" : "typed to typed";
        const int right = (world.rank + 1) % world.size;
        const int left = (world.rank + world.size - 1) % world.size;
        Side &out = *pair.out, &in = *pair.in;
        const MPI_Aint bytes = pair.bytes * count_;
        const int more = own_.chance(30) ? own_.below(static_cast<int>(spare)) : 0;
        out.place(count_, messages, id_ + static_cast<uint64_t>(world.rank));
        in.place(count_ + more, messages, id_ + 77);
        std::vector<std::vector<char>> streams;
        std::vector<Side::Buffer> from, to;
        for (int i = 0; i < messages; ++i) {
            from.push_back(packs ? packed_of(out, i, bytes, streams) : out.buffer(i));
            if (!unpacks) {
                to.push_back(in.buffer(i));
                continue;
            }
            streams.emplace_back(static_cast<size_t>(bytes + 16), 0x33);
            to.push_back({streams.back().data(), static_cast<int>(bytes) + more, MPI_PACKED});
        }
        MPI_Status statuses[slots];
        const bool was_freed = move(from, to, right, left, in_order, pair, statuses);
        if (was_freed) {  // to count what came; the same descriptions, found by their digests
            out.remake();
            in.remake();
        }
        for (int i = 0; i < messages; ++i)
            note(statuses[i],
                 unpacks     ? MPI_PACKED
                 : was_freed ? in.type.handle
                             : to[static_cast<size_t>(i)].type,
                 pair);
        for (int i = 0; i < messages && !unpacks; ++i) in.forget_padding(i, count_);
        for (std::vector<char>& stream : streams) {
            if (unpacks) in.forget_packed_padding(stream.data(), count_);
            if (unpacks) digest_.add(XXH3_64bits(stream.data(), stream.size()));
        }
        digest_.add(in.digest());
        digest_.add(out.digest());
    }

    static Side::Buffer packed_of(Side& out, int i, MPI_Aint bytes,
                                  std::vector<std::vector<char>>& streams) {
        streams.emplace_back(static_cast<size_t>(bytes), 0);
        int position = 0;
        MPI_Pack(out.slot(i), static_cast<int>(out.count()), out.type.handle, streams.back().data(),
                 static_cast<int>(bytes), &position, quiet);
        return {streams.back().data(), position, MPI_PACKED};
    }

    // True: the types were given back while the messages were under way.
    bool move(const std::vector<Side::Buffer>& from, const std::vector<Side::Buffer>& to, int right,
              int left, bool in_order, Pair& pair, MPI_Status* statuses) {
        const auto n = from.size();
        const MPI_Comm comm = MPI_COMM_WORLD;
        const auto send = [&](size_t i) {
            MPI_Send(from[i].address, from[i].count, from[i].type, right, static_cast<int>(i),
                     comm);
        };
        const auto receive = [&](size_t i) {
            MPI_Recv(to[i].address, to[i].count, to[i].type, left, static_cast<int>(i), comm,
                     &statuses[i]);
        };
        if (in_order && world.size > 1) {
            for (size_t i = 0; i < n; ++i) {
                if (world.rank == 0) send(i);
                receive(i);
                if (world.rank != 0) send(i);
            }
            return false;
        }
        MPI_Request requests[2 * slots];
        MPI_Status all[2 * slots];
        const int way = own_.below(3);
        int pending = 0;
        for (size_t i = 0; i < n && way != 2; ++i)
            MPI_Irecv(to[i].address, to[i].count, to[i].type, left, static_cast<int>(i), comm,
                      &requests[pending++]);
        for (size_t i = 0; i < n; ++i)
            if (way == 1)
                send(i);
            else
                MPI_Isend(from[i].address, from[i].count, from[i].type, right, static_cast<int>(i),
                          comm, &requests[pending++]);
        for (size_t i = 0; i < n && way == 2; ++i) receive(i);
        const bool frees = own_.chance(15);
        if (frees) {
            pair.out->free();
            pair.in->free();
        }
        MPI_Waitall(pending, requests, all);
        for (size_t i = 0; i < n && way != 2; ++i) statuses[i] = all[i];
        return frees;
    }

    void sendrecv(Pair& pair, int to_rank, int from_rank) {
        what_ = to_rank == world.rank ? "sendrecv to self" : "sendrecv";
        Side &out = *pair.out, &in = *pair.in;
        out.place(count_, 1, id_ + static_cast<uint64_t>(world.rank));
        in.place(count_ + own_.below(static_cast<int>(spare)), 1, id_ + 77);
        const Side::Buffer from = out.buffer(0), to = in.buffer(0);
        MPI_Status status;
        MPI_Sendrecv(from.address, from.count, from.type, to_rank, 5, to.address, to.count, to.type,
                     from_rank, 5, MPI_COMM_WORLD, &status);
        note(status, to.type, pair);
        finish(pair, count_);
    }

    void sendrecv_replace(Pair& pair) {
        what_ = "sendrecv_replace";
        if (pair.bytes == 0) return;
        // What it sends are bytes.
        if (!is_short(pair, count_)) return exchange(pair);
        Side &out = *pair.out, &in = *pair.in;
        out.place(0, 1, id_);
        in.place(count_, 1, id_ + static_cast<uint64_t>(world.rank));
        const Side::Buffer buffer = in.buffer(0);
        MPI_Status status;
        MPI_Sendrecv_replace(
            buffer.address, buffer.count, buffer.type, (world.rank + 1) % world.size, 7,
            (world.rank + world.size - 1) % world.size, 7, MPI_COMM_WORLD, &status);
        note(status, buffer.type, pair);
        finish(pair, count_);
    }

    void finish(Pair& pair, MPI_Aint received) {
        pair.in->forget_padding(0, received);
        digest_.add(pair.in->digest());
        digest_.add(pair.out->digest());
    }

    void persistent(Pair& pair) {
        what_ = "persistent";
        const int starts = common_.between(1, 4);
        Side &out = *pair.out, &in = *pair.in;
        const MPI_Aint room = count_ + own_.below(static_cast<int>(spare));
        out.place(count_, 1, id_);
        in.place(room, 1, id_);
        const Side::Buffer from = out.buffer(0), to = in.buffer(0);
        MPI_Request requests[2];
        MPI_Recv_init(to.address, to.count, to.type, (world.rank + world.size - 1) % world.size, 6,
                      MPI_COMM_WORLD, &requests[0]);
        MPI_Send_init(from.address, from.count, from.type, (world.rank + 1) % world.size, 6,
                      MPI_COMM_WORLD, &requests[1]);
        for (int i = 0; i < starts; ++i) {
            out.place(count_, 1, id_ + static_cast<uint64_t>(10 * i + world.rank));
            in.place(room, 1, id_ + 777);
            MPI_Status statuses[2];
            MPI_Startall(2, requests);
            MPI_Waitall(2, requests, statuses);
            note(statuses[0], to.type, pair);
            finish(pair, count_);
        }
        for (MPI_Request& request : requests) MPI_Request_free(&request);
    }

    void bcast(Pair& pair) {
        what_ = "bcast";
        if (pair.bytes == 0) return;
        const int root = common_.below(world.size);
        Side& side = world.rank == root ? *pair.out : *pair.in;
        side.place(count_, 1, id_ + static_cast<uint64_t>(world.rank == root ? 0 : 5));
        const Side::Buffer buffer = side.buffer(0);
        MPI_Bcast(buffer.address, buffer.count, buffer.type, root, MPI_COMM_WORLD);
        side.forget_padding(0, count_);  // MPICH 4.0.2 unpacks at the root as well
        digest_.add(side.digest());
    }

    // A block for each rank, some of them empty.
    void alltoallw(Pair& pair) {
        what_ = "alltoallw";
        if (pair.bytes == 0) return;
        Side &out = *pair.out, &in = *pair.in;
        out.place(count_, world.size, id_ + static_cast<uint64_t>(world.rank));
        in.place(count_, world.size, id_ + 77);
        std::vector<int> out_counts, out_places, in_counts, in_places;
        for (int r = 0; r < world.size; ++r) {
            out_counts.push_back(elements_between(world.rank, r));
            in_counts.push_back(elements_between(r, world.rank));
            out_places.push_back(static_cast<int>(r * out.step()));
            in_places.push_back(static_cast<int>(r * in.step()));
        }
        const std::vector<MPI_Datatype> out_types(out_counts.size(), out.type.handle);
        const std::vector<MPI_Datatype> in_types(in_counts.size(), in.type.handle);
        MPI_Alltoallw(out.slot(0), out_counts.data(), out_places.data(), out_types.data(),
                      in.slot(0), in_counts.data(), in_places.data(), in_types.data(),
                      MPI_COMM_WORLD);
        for (int r = 0; r < world.size; ++r)
            in.forget_padding(r, in_counts[static_cast<size_t>(r)]);
        digest_.add(in.digest());
        digest_.add(out.digest());
    }
    int elements_between(int from, int to) const {
        Random random(id_ + static_cast<uint64_t>(100 * from + to));
        return random.chance(60) ? count_ : random.between(0, count_);
    }

    void gather(Pair& pair, bool to_all) {
        // Ranks on the way send bytes: see add_pair().
        if (!is_short(pair, MPI_Aint{count_} * world.size)) return exchange(pair);
        what_ = to_all ? "allgather" : "gather";
        if (pair.bytes == 0) return;
        const int root = common_.below(world.size);
        Side &out = *pair.out, &in = *pair.in;
        const Built& block = in.block();
        const MPI_Aint all = MPI_Aint{count_} * world.size;
        const bool fits = range_of(block, all).bytes <= world.size * most_span;
        const Built spread = fits ? Built() : spread_of(block);
        const Built& type = fits ? block : spread;
        out.place(count_, 1, id_ + static_cast<uint64_t>(world.rank));
        const Range range = range_of(type, all);
        char* const memory = in_arena_.place(range.bytes, in.is_at_end(), in.slack()) - range.low;
        in_arena_.fill(id_ + 55);
        const Side::Buffer from = out.buffer(0);
        if (to_all)
            MPI_Allgather(from.address, from.count, from.type, memory, count_, type.handle,
                          MPI_COMM_WORLD);
        else
            MPI_Gather(from.address, from.count, from.type, memory, count_, type.handle, root,
                       MPI_COMM_WORLD);
        if ((to_all || world.rank == root) && pair.shape.has_padding())
            blank_padding(memory, type, all);
        digest_.add(in_arena_.digest());
        digest_.add(out.digest());
    }
    static Built spread_of(const Built& block) {
        Builder builder(3, true);
        Built made = builder.spread(block.map);
        MPI_Type_commit(&made.handle);
        return made;
    }

    const int number_;
    Random common_, own_;
    Digest& line_;
    Digest digest_;  // of one call
    Arena &out_arena_, &in_arena_;
    std::vector<std::unique_ptr<Pair>> pairs_;
    uint64_t id_ = 0;
    int count_ = 0, call_ = 0;
    const char* what_ = "";
};

// Takes an option and its value out of the arguments; the default where it is not there.
int option(std::vector<char*>& words, const char* name, int by_default) {
    for (size_t i = 1; i + 1 < words.size(); ++i)
        if (std::strcmp(words[i], name) == 0) {
            const int value = std::atoi(words[i + 1]);
            words.erase(words.begin() + static_cast<std::ptrdiff_t>(i),
                        words.begin() + static_cast<std::ptrdiff_t>(i + 2));
            return value;
        }
    return by_default;
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<char*> words(argv, argv + argc);
    const int first = option(words, "--from", 0);
    const int of_a_line = option(words, "--each", 100);
    explains = option(words, "--explain", 0) != 0;
    // MPICH 5.0.2 gives the kernel wrong addresses for some types: process_vm_readv fails.
    setenv("MPIR_CVAR_CH4_CMA_ENABLE", "0", 0);
    begin(static_cast<int>(words.size()), words.data());
    MPI_Comm_dup(MPI_COMM_WORLD, &quiet);
    MPI_Comm_set_errhandler(quiet, MPI_ERRORS_RETURN);
    const int types = world.argument.empty() ? 2000 : std::atoi(world.argument.c_str());
    const size_t room = static_cast<size_t>(std::max(slots, world.size)) * (4 << 20);
    Arena out(room), in(room);
    for (int i = first; i < first + types; ++i) {
        const int line = i / of_a_line * of_a_line;
        const std::string name =
            "seed " + std::to_string(world.seed) + ", types from " + std::to_string(line);
        Episode(i, topic(name), out, in).run();
    }
    MPI_Comm_free(&quiet);
    return end();
}
