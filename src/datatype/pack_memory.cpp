// SPDX-License-Identifier: BSD-3-Clause
#include "pack_memory.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>

#include "base/api.hpp"
#include "base/api/memory.hpp"
#include "datatype/api.hpp"

namespace vecmpi::datatype {

namespace {

constinit std::atomic<size_t> taken{0};

size_t most_pack_memory() noexcept {
    constexpr size_t by_default = size_t{64} << 20;
    return settings().pack_memory != 0 ? settings().pack_memory : by_default;
}

bool take_what_is_left(size_t bytes) noexcept {
    const size_t most = most_pack_memory();
    if (bytes > most) return false;
    if (taken.fetch_add(bytes, std::memory_order_relaxed) + bytes <= most) return true;
    taken.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
}

// ---- memory for packed bytes --------------------------------------------------------------------

// Class i has pieces of 256 << i bytes. The first bytes of an unused piece lead to the next. What
// is larger than all classes goes back at once: its new pages take less than packing it.
constexpr size_t least_piece = 256;
constexpr unsigned size_classes = 15;
constexpr size_t piece_bytes(unsigned size_class) noexcept { return least_piece << size_class; }
constexpr size_t largest_piece = piece_bytes(size_classes - 1);  // 4 MiB
constexpr unsigned size_class_of(size_t bytes) noexcept {
    return static_cast<unsigned>(std::bit_width((bytes + least_piece - 1) / least_piece - 1));
}
struct UnusedPiece {
    UnusedPiece* next;
};
constinit std::mutex pieces_lock;
constinit UnusedPiece* unused_pieces[size_classes]{};

UnusedPiece* pop_piece(unsigned size_class) noexcept {
    const std::lock_guard lock(pieces_lock);
    UnusedPiece* const first = unused_pieces[size_class];
    if (first != nullptr) unused_pieces[size_class] = first->next;
    return first;
}

}  // namespace

bool take_pack_memory(size_t bytes) noexcept {
    if (take_what_is_left(bytes)) return true;
    free_unused_pieces();
    return take_what_is_left(bytes);
}

void give_back_pack_memory(size_t bytes) noexcept {
    taken.fetch_sub(bytes, std::memory_order_relaxed);
}

bool PackMemory::take(size_t bytes) noexcept {
    const bool is_kept = bytes <= largest_piece;
    size_class_ = is_kept ? size_class_of(std::max(bytes, least_piece)) : size_classes;
    if (is_kept) {
        if (UnusedPiece* const piece = pop_piece(size_class_)) {
            place_ = reinterpret_cast<unsigned char*>(piece);
            return true;
        }
    }
    const size_t taken_bytes = is_kept ? piece_bytes(size_class_) : bytes;
    if (!take_pack_memory(taken_bytes)) return false;
    place_ = base::allocate<unsigned char>(taken_bytes).release();
    if (place_ == nullptr) give_back_pack_memory(taken_bytes);
    counted_ = is_kept ? 0 : taken_bytes;
    return place_ != nullptr;
}

bool PackMemory::take_anyhow(size_t bytes) noexcept {
    if (take(bytes)) return true;
    size_class_ = size_classes;
    counted_ = 0;
    place_ = base::allocate<unsigned char>(bytes).release();
    return place_ != nullptr;
}

PackMemory::~PackMemory() {
    if (place_ == nullptr) return;
    if (size_class_ == size_classes) {
        std::free(place_);
        give_back_pack_memory(counted_);
        return;
    }
    const std::lock_guard lock(pieces_lock);
    unused_pieces[size_class_] = new (place_) UnusedPiece{unused_pieces[size_class_]};
}

void free_unused_pieces() noexcept {
    for (unsigned i = 0; i < size_classes; ++i)
        while (UnusedPiece* const piece = pop_piece(i)) {
            give_back_pack_memory(piece_bytes(i));
            std::free(piece);
        }
}

}  // namespace vecmpi::datatype
