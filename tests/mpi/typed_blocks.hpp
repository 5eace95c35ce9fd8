// SPDX-License-Identifier: BSD-3-Clause
// Blocks of random derived types in one buffer, one block for each partner or message, with the
// image that the buffer should have. Must not communicate.
#pragma once

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "type_maker.hpp"

namespace battery {

// The first bytes of a stream are those of any longer one with the same id.
inline std::vector<unsigned char> stream(uint64_t id, size_t bytes) {
    std::vector<unsigned char> result(bytes + 8);
    for (size_t i = 0; i < bytes; i += 8) {
        const uint64_t word = mix(id + i);
        std::memcpy(&result[i], &word, 8);
    }
    result.resize(bytes);
    return result;
}

// How the blocks lie: as calls without displacements want them, at multiples of the extent in any
// order, or at bytes, each with a type of its own.
enum class Placing { even, by_extent, by_bytes };

class TypedBlocks {
  public:
    // units[b]: of block b. The types have a number of units that divides all of them.
    TypedBlocks(Random& own, Unit unit, const std::vector<int>& units, Placing placing)
        : unit_(unit), units_(units) {
        int common = 0;
        for (const int n : units_) common = std::gcd(common, n);
        const size_t types = placing == Placing::by_bytes ? units_.size() : 1;
        for (size_t t = 0; t < types; ++t) add_type(own, common == 0 ? 48 : common);
        if (types == 0) given_.push_back(MPI_INT);  // the vectors must not be empty
        place(own, placing);
        make_storage(own);
    }
    TypedBlocks(const TypedBlocks&) = delete;
    ~TypedBlocks() { free_types(); }

    void* address() { return storage_.data() + origin_; }
    void* block(size_t b) { return storage_.data() + origin_ + bytes_[b]; }
    MPI_Datatype type(size_t b = 0) const { return given_[given_.size() == 1 ? 0 : b]; }
    int count(size_t b = 0) const { return counts_[b]; }
    // As arguments of the v and w forms; not empty.
    const int* counts() const { return counts_.data(); }
    const int* displacements() const { return displacements_.data(); }  // in extents, or bytes
    const MPI_Aint* byte_displacements() const { return bytes_.data(); }
    const MPI_Datatype* types() const { return given_.data(); }
    void free_types() {
        for (MPI_Datatype& copy : duplicates_) MPI_Type_free(&copy);
        duplicates_.clear();
        types_.clear();
    }

    void fill(size_t b, uint64_t id) {
        overlay(storage_, b, id, bytes_in(b));
        overlay(expected_, b, id, bytes_in(b));
    }
    void expect(size_t b, uint64_t id) { overlay(expected_, b, id, bytes_in(b)); }
    void expect(size_t b, uint64_t id, size_t bytes) { overlay(expected_, b, id, bytes); }
    // Whatever an erroneous call may have left in the block.
    void accept(size_t b) {
        for (const Piece& piece : maps_[b])
            std::memcpy(&expected_[index(piece)], &storage_[index(piece)], piece.bytes);
    }
    // Content, gaps and surroundings.
    void check_all(const char* what) const {
        const auto [found, expected] =
            std::mismatch(storage_.begin(), storage_.end(), expected_.begin());
        if (found != storage_.end()) check_equal(found - storage_.begin() - origin_, -1, what);
    }
    void add_to(Digest& digest) const { digest.add_bytes(storage_.data(), storage_.size()); }
    size_t bytes_in(size_t b) const { return static_cast<size_t>(units_[b]) * bytes_of(unit_); }
    size_t size() const { return units_.size(); }

  private:
    static constexpr MPI_Aint guard = 64;

    static int divisor(Random& own, int n) {
        constexpr int candidates[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 48};
        if (own.chance(20)) return n;
        const int d = candidates[own.below(10)];
        return n % d == 0 ? d : 1;
    }

    // Most have a plan after some calls; a predefined type needs none, and a duplicate is declined.
    void add_type(Random& own, int common) {
        Maker maker(own, unit_);
        const int way = own.below(8);
        const bool is_predefined = way == 0 && unit_ != Unit::record;
        const int units = is_predefined ? 1 : divisor(own, common);
        Type& type = types_.emplace_back(way < 2 ? maker.dense(units) : maker.make(units, 3));
        units_of_type_.push_back(units);
        const MPI_Datatype predefined[] = {MPI_INT, MPI_DOUBLE, MPI_SHORT, MPI_BYTE};
        if (is_predefined) {
            given_.push_back(predefined[static_cast<int>(unit_)]);
            return;
        }
        MPI_Type_commit(&type.handle);
        given_.push_back(type.handle);
        if (way != 2) return;
        MPI_Type_dup(type.handle, &given_.back());
        duplicates_.push_back(given_.back());
    }

    const Type& type_of(size_t b) const { return types_[types_.size() == 1 ? 0 : b]; }

    void place(Random& own, Placing placing) {
        std::vector<size_t> order(units_.size());
        std::iota(order.begin(), order.end(), size_t{0});
        for (size_t i = order.size(); i > 1 && placing != Placing::even; --i)
            std::swap(order[i - 1], order[static_cast<size_t>(own.below(static_cast<int>(i)))]);
        counts_.assign(units_.size() + 1, 0);
        displacements_.assign(units_.size() + 1, 0);
        bytes_.assign(units_.size() + 1, 0);
        maps_.resize(units_.size());
        MPI_Aint end = 0;  // in extents, or bytes
        for (const size_t b : order) {
            const Type& type = type_of(b);
            const MPI_Aint extent = type.extent();
            counts_[b] = units_[b] / units_of_type_[types_.size() == 1 ? 0 : b];
            if (placing == Placing::by_bytes) {
                bytes_[b] = end - type.low();
                end += round_up(counts_[b] * extent) + type.high() - type.low();
                end += 8 * own.below(3);
                displacements_[b] = static_cast<int>(bytes_[b]);
            } else {
                bytes_[b] = end * extent;
                displacements_[b] = static_cast<int>(end);
                end += counts_[b] + (placing == Placing::even ? 0 : own.below(3));
            }
            Type whole;
            whole.place(type, {{bytes_[b], counts_[b]}});
            maps_[b] = std::move(whole.map);
        }
        for (const Type& type : types_) low_ = std::min(low_, type.low());
    }

    void make_storage(Random& own) {
        MPI_Aint high = 0;
        for (const std::vector<Piece>& map : maps_)
            for (const Piece& piece : map) {
                low_ = std::min(low_, -round_up(-piece.offset));
                high = std::max(high, piece.offset + static_cast<MPI_Aint>(piece.bytes));
            }
        origin_ = guard - low_;
        storage_ = stream(own.next(), static_cast<size_t>(high - low_ + 2 * guard));
        expected_ = storage_;
    }

    size_t index(const Piece& piece) const { return static_cast<size_t>(origin_ + piece.offset); }

    void overlay(std::vector<unsigned char>& image, size_t b, uint64_t id, size_t bytes) const {
        const std::vector<unsigned char> data = stream(id, bytes);
        size_t at = 0;
        for (size_t i = 0; at < bytes; ++i) {
            const Piece& piece = maps_[b][i];
            const size_t part = std::min(piece.bytes, bytes - at);
            std::memcpy(&image[index(piece)], &data[at], part);
            at += part;
        }
    }

    const Unit unit_;
    const std::vector<int> units_;
    std::vector<Type> types_;
    std::vector<int> units_of_type_;
    std::vector<MPI_Datatype> given_, duplicates_;
    std::vector<int> counts_, displacements_;
    std::vector<MPI_Aint> bytes_;
    std::vector<std::vector<Piece>> maps_;
    std::vector<unsigned char> storage_;
    std::vector<unsigned char> expected_;
    MPI_Aint low_ = 0;
    MPI_Aint origin_ = 0;  // of the datatypes in the storage
};

}  // namespace battery
