// SPDX-License-Identifier: BSD-3-Clause
// Door of src/kernels: arithmetic and copying. No MPI, no threads. How it works: docs/kernels.md
// and docs/datatypes.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/api/profile.hpp"

namespace vecmpi::kernels {

// memcpy but where that may crawl on this CPU: copy.cpp.
void copy_long_bytes(void* to, const void* from, size_t bytes) noexcept;
constexpr size_t longest_short_copy = 2048;

// Copies `bytes` bytes; the buffers must not overlap. Either may be null when bytes is 0.
inline void copy_bytes(void* to, const void* from, size_t bytes) noexcept {
    if (bytes > longest_short_copy)
        copy_long_bytes(to, from, bytes);
    else if (bytes != 0)
        std::memcpy(to, from, bytes);
}

// ---- lines -----------------------------------------------------------------------------------

// A cache line that carries data, and behind them a flag: who sees the flag sees the data (Mohamed
// El Maarouf et al., Combining reduction with synchronization barrier on multi-core processors,
// CCPE 35, 2023). The data stand right before the flag, so that few data and the flag are one small
// store.
constexpr size_t line_data_bytes = 56;
struct alignas(64) Line {
    unsigned char data[line_data_bytes];
    uint64_t flag;
};

// The widest store that other CPUs see as a whole. Wider lines are stored in pieces, the flag's
// last.
enum class LineWidth : uint8_t { bytes8 = 8, bytes16 = 16, bytes32 = 32, bytes64 = 64 };

// Stores the last data bytes and the flag of *from into *to, which other CPUs read.
using StoreLine = void (*)(Line* to, const Line* from) noexcept;
// For `bytes` of data, at most line_data_bytes. A width that this CPU lacks counts as the next
// narrower one.
StoreLine line_store(LineWidth width, size_t bytes) noexcept;
// The width that the architecture promises. A test must show that a wider one holds.
LineWidth promised_line_width() noexcept;
LineWidth widest_line_width() noexcept;

// ---- reductions ------------------------------------------------------------------------------

// Instruction sets, within each architecture from the narrowest to the widest.
enum class Isa : uint8_t { scalar, sse4, avx2, avx512, neon, sve };

// In the order of MPI's op handles: MPI_MAX is handle 1.
enum class ReduceOp : uint8_t {
    max,
    min,
    sum,
    prod,
    land,
    band,
    lor,
    bor,
    lxor,
    bxor,
    minloc,
    maxloc
};
constexpr size_t number_of_reduce_ops = 12;

// As values lie in memory, whatever a language calls them: MPI_INT, MPI_INTEGER and MPI_INT32_T are
// all i32.
enum class ElementType : uint8_t {
    i8,
    u8,
    i16,
    u16,
    i32,
    u32,
    i64,
    u64,
    f16,   // IEEE binary16
    bf16,  // the upper half of a binary32; rounded to nearest even
    f32,
    f64,
    f80,  // long double, whatever that is here: on x86-64 10 bytes and 6 of padding
    // Complex of Fortran and C++: the product is (a.re*b.re - a.im*b.im, a.im*b.re + a.re*b.im).
    c32,
    c64,
    c80,
    // _Complex of C: the product recovers infinities (C11 annex G, __mulsc3).
    c32_c99,
    c64_c99,
    c80_c99,
    // Pairs value_index, as the C structs of MPI_MINLOC with their padding; the last two are
    // Fortran's MPI_2REAL and MPI_2DOUBLE_PRECISION.
    i32_i32,
    f32_i32,
    i64_i32,
    f64_i32,
    i16_i32,
    f80_i32,
    f32_f32,
    f64_f64,
    // As f64, but for MAX and MIN under DAZ. There MPICH's MPI_DOUBLE flushes a subnormal result,
    // and its MPI_DOUBLE_PRECISION and MPI_REAL8 do not.
    f64_fortran,
    // As f32, but for MAX and MIN under DAZ. There MPICH from 4.3 on flushes a subnormal result.
    f32_flushed,
    // As bf16, but a tie rounds away from zero, as in MPICH 5.
    bf16_half_up
};
constexpr size_t number_of_element_types = 30;

// inout = inout op in, element by element, as MPI_Reduce_local. No pointer need be aligned. `in`
// and `inout` may be the same, or must not overlap. The padding of inout keeps its bytes.
using ReduceInto = void (*)(const void* in, void* inout, size_t count) noexcept;
// out = the value that ReduceInto gives, padding as in inout. out may be `in` or `inout`, or must
// not overlap them.
using ReduceTo = void (*)(const void* in, const void* inout, void* out, size_t count) noexcept;

// Pairs of op and type with kernels of one kind.
enum class ReduceFamily : uint8_t { arithmetic, half, logical, complex, pairs };
ReduceFamily reduce_family(ReduceOp op, ElementType type) noexcept;

struct ReduceKernel {
    ReduceInto into = nullptr;  // both are null where the pair is not one that MPI implements
    ReduceTo to = nullptr;
    Isa isa = Isa::scalar;  // what it is written in; may be below the cap
};

// The kernel for this CPU, no wider than `cap`. A cap of another architecture caps nothing.
ReduceKernel reduce_kernel(ReduceOp op, ElementType type, Isa cap) noexcept;

// The widest instruction set that has kernels, and that this CPU and its system allow.
Isa best_isa() noexcept;

// A word that VECMPI_ISA takes: "avx2".
const char* isa_name(Isa isa) noexcept;

// Distance of two elements in memory, padding included.
size_t element_bytes(ElementType type) noexcept;

// ---- byte order ------------------------------------------------------------------------------

// Reverses the bytes of each value of `width` bytes: 2, 4, 8 or 16, of which `bytes` is a multiple.
// No pointer need be aligned. `to` may be `from`, or must not overlap it.
void reverse_bytes(void* to, const void* from, size_t bytes, size_t width, Isa cap) noexcept;

// ---- scattered blocks ------------------------------------------------------------------------
// Blocks of bytes that lie apart in memory, and a packed stream in which they follow each other.
// Stream and memory must not overlap. Making a copier may throw std::bad_alloc; copying never
// throws.
//
// Bytes between blocks are never written. They are read only between the first and the last block
// of a call, and never in a gap of a page or more.

enum class Direction : uint8_t { pack, unpack };

// How blocks are moved; the words that VECMPI_PACK takes.
enum class PackWay : uint8_t {
    block,    // each by loads and stores of its length
    permute,  // several at once, by a byte permutation of the registers that hold them
    gather    // several at once, by gather and scatter instructions
};
constexpr size_t number_of_pack_ways = 3;
const char* pack_way_name(PackWay way) noexcept;

struct Block {
    int64_t offset;
    int64_t bytes;
    bool operator==(const Block&) const = default;
};

// The instruction sets and ways that may be used.
struct PackLimits {
    Isa isa = Isa::scalar;
    bool any_way = true;  // false: by `only` where that can do it, else by blocks
    PackWay only = PackWay::block;
    PackTable table{};  // this host's profile, for any_way
};

// Pure. Is this kernel used for blocks that it can move? The user's word comes first, then this
// host's table, then what is built in for this CPU.
bool is_chosen(const PackLimits& limits, PackKernel kernel, int64_t block_bytes, int64_t distance,
               bool built_in) noexcept;

struct Permutation;
struct Shuffle;
struct TablesDeleter {
    void operator()(Permutation* tables) const noexcept;
    void operator()(Shuffle* tables) const noexcept;
};

// Records at a distance of `stride` bytes, which may be negative. Each has the same few blocks, in
// the order of the stream, none of them empty.
class RecordCopier {
  public:
    RecordCopier(std::vector<Block> blocks, int64_t stride, const PackLimits& limits);
    // Records [0, records); record 0 stands at `memory`.
    void copy(Direction direction, char* packed, char* memory, size_t records) const noexcept;

    // The same in each of `rows` rows, `row_stride` bytes apart.
    void copy_rows(Direction direction, char* packed, char* memory, size_t records, size_t rows,
                   int64_t row_stride) const noexcept;

    const std::vector<Block>& blocks() const noexcept { return blocks_; }
    int64_t stride() const noexcept { return stride_; }
    size_t packed_bytes() const noexcept { return packed_bytes_; }  // of a record
    size_t memory_bytes() const noexcept;                           // of the copier, tables and all
    PackWay way(Direction direction) const noexcept {
        return ways_[static_cast<size_t>(direction)];
    }

  private:
    void prepare_permutations(const PackLimits& limits);
    void prepare_shuffles(const PackLimits& limits);
    void choose(Direction direction, const PackLimits& limits, bool built_in) noexcept;
    void copy_blocks(Direction direction, char* packed, char* memory,
                     size_t records) const noexcept;
    template <class Tables, class FunctionOf>
    size_t copy_groups(std::span<const Tables> tables, size_t most, char* packed, char* memory,
                       size_t records, FunctionOf function_of) const noexcept;
    void permute(Direction direction, char* packed, char* memory, size_t records) const noexcept;
    void permute_parts(Direction direction, char* packed, char* memory,
                       size_t records) const noexcept;
    void shuffle(char* packed, char* memory, size_t records) const noexcept;
    bool goes_by_blocks(Direction direction, size_t records) const noexcept {
        return way(direction) != PackWay::permute || records < least_shuffled_;
    }
    void copy_rows_of_blocks(Direction direction, char* packed, char* memory, size_t records,
                             size_t rows, int64_t row_stride) const noexcept;
    bool rows_may_be_read_over(size_t records, int64_t row_stride) const noexcept;
    void permute_whole(Direction direction, char* packed, char* memory,
                       size_t records) const noexcept;

    std::vector<Block> blocks_;
    int64_t stride_;
    int64_t low_ = 0, high_ = 0;  // first byte of a record and the one after its last
    size_t packed_bytes_ = 0;
    PackWay ways_[2] = {PackWay::block, PackWay::block};  // by direction
    Isa isa_;
    std::unique_ptr<Permutation[], TablesDeleter> permutations_;
    size_t number_of_permutations_ = 0;
    std::unique_ptr<Shuffle[], TablesDeleter> shuffles_;  // where there are none
    size_t number_of_shuffles_ = 0;
    size_t least_shuffled_ = 0;  // records; fewer go block by block
};

// Consecutive blocks of a table, sorted by classes of lengths: a loop over one class has no branch
// on the length.
struct LengthTile {
    static constexpr size_t most_blocks = 256, classes = 7;
    uint8_t order[most_blocks];  // blocks of the tile
    uint16_t ends[classes];      // of each class, in `order`
};

// Many blocks at offsets of a table, all of one length or each of its own.
class TableCopier {
  public:
    // Blocks in no order, over more memory than caches and the translation buffer hold, are moved
    // in the order of memory, window by window.
    static constexpr size_t blocks_of_window = 16384;

    TableCopier(const std::vector<int64_t>& offsets, size_t bytes, const PackLimits& limits);
    TableCopier(const std::vector<Block>& blocks, const PackLimits& limits);
    // Bytes [first, first + bytes) of the table's stream; `packed` begins with byte `first`.
    void copy(Direction direction, char* packed, char* memory, size_t first,
              size_t bytes) const noexcept;

    size_t packed_bytes() const noexcept { return packed_bytes_; }
    PackWay way(Direction direction) const noexcept {
        return ways_[static_cast<size_t>(direction)];
    }

  private:
    void make_tiles(const std::vector<Block>& blocks);
    void sort_windows();
    size_t block_at(size_t first) const noexcept;
    void copy_blocks(Direction direction, char* packed, char* memory, size_t block,
                     size_t end) const noexcept;
    void copy_one_by_one(Direction direction, char* packed, char* memory, size_t block,
                         size_t end) const noexcept;
    void copy_by_tiles(Direction direction, char* packed, char* memory, size_t block,
                       size_t end) const noexcept;
    void copy_by_windows(Direction direction, char* packed, char* memory, size_t block,
                         size_t end) const noexcept;
    size_t start_of(size_t block) const noexcept {
        return block_bytes_ != 0 ? block * block_bytes_ : static_cast<size_t>(starts_[block]);
    }

    std::vector<int64_t> offsets_;     // where a block lies
    std::vector<int64_t> starts_;      // where it stands in the stream, and its end; without
    size_t block_bytes_ = 0;           // ... where all are this long
    std::vector<LengthTile> tiles_;    // of blocks of different lengths, unless moved under masks
    std::vector<uint16_t> ascending_;  // of each window, its blocks in the order of memory; or none
    size_t packed_bytes_ = 0;
    PackWay ways_[2] = {PackWay::block, PackWay::block};  // by direction
    Isa isa_;
};

// Columns of a matrix: column i stands at i * column_stride and has `rows` blocks of `bytes` bytes,
// row_stride apart. In the stream column follows column. Several columns are moved at a time, so
// that a line of memory is touched once.
struct Grid {
    size_t columns, rows;
    int64_t column_stride, row_stride;
    size_t bytes;
};
// Are squares of the grid's elements transposed in registers?
bool is_transposed_in_registers(const Grid& grid, Isa cap) noexcept;
void copy_grid(Direction direction, char* packed, char* memory, const Grid& grid, Isa cap) noexcept;

}  // namespace vecmpi::kernels
