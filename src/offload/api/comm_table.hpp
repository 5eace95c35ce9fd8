// SPDX-License-Identifier: BSD-3-Clause
// Part of the door of src/offload: what a layer keeps for communicators of the program. Found by
// their handles, and given up when the program frees them.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>

namespace vecmpi::offload {

template <class Entry>
class CommDeparture;

// One table for each type of entry. Entries can be moved. A thread that frees a communicator finds
// its entry until the end of that call; no other thread does.
template <class Entry>
class CommTable {
  public:
    using Map = std::unordered_map<MPI_Comm, Entry>;

    static inline std::mutex mutex;  // of all below; held for moments

    // Null: nothing is kept for it.
    static Entry* find(MPI_Comm comm) noexcept {
        for (Departing* one = departing_; one != nullptr; one = one->outer)
            if (one->comm == comm) return &one->entry;
        const auto found = entries().find(comm);
        return found == entries().end() ? nullptr : &found->second;
    }
    // The same, or a new one. Throws std::bad_alloc.
    static Entry& obtain(MPI_Comm comm) {
        Entry* const known = find(comm);
        return known ? *known : entries()[comm];
    }
    // Of the communicators that nobody is freeing.
    static Map& entries() {
        static auto* const map = new Map;  // outlives all callers
        return *map;
    }
    static void forget_all() noexcept {
        Map forgotten;
        const std::lock_guard lock(mutex);
        change_epoch();
        std::swap(forgotten, entries());
    }

    // Without the lock. Read it before find(). While it stays the same, no entry was given up
    // (acquire and release).
    static uint64_t epoch() noexcept { return epoch_.load(std::memory_order_acquire); }

  private:
    friend class CommDeparture<Entry>;
    static void change_epoch() noexcept { epoch_.fetch_add(1, std::memory_order_acq_rel); }
    static inline std::atomic<uint64_t> epoch_{1};
    // A communicator that this thread is freeing. Its callbacks may free others.
    struct Departing {
        MPI_Comm comm;
        Entry entry;
        Departing* outer;
        bool stays = false;
    };
    static inline thread_local constinit Departing* departing_
        __attribute__((tls_model("initial-exec"))) = nullptr;
};

// Around the library's call that frees a communicator. The program's delete callbacks run in there,
// and may still make collectives on it: this thread finds its entry. No other thread does, since
// the next communicator may get the handle. The entry is given up at the end, unless it stays. (At
// once where there is no memory.)
template <class Entry>
class CommDeparture {
  public:
    explicit CommDeparture(MPI_Comm comm) noexcept;
    ~CommDeparture();
    CommDeparture(const CommDeparture&) = delete;
    CommDeparture& operator=(const CommDeparture&) = delete;
    void stay() noexcept;  // the library refused

  private:
    using Table = CommTable<Entry>;
    const MPI_Comm comm_;
    typename Table::Departing* departing_;  // null: no memory
};

template <class Entry>
CommDeparture<Entry>::CommDeparture(MPI_Comm comm) noexcept
    : comm_(comm),
      departing_(new (std::nothrow) typename Table::Departing{comm, {}, Table::departing_}) {
    typename Table::Map::node_type known;
    const std::lock_guard lock(Table::mutex);
    Table::change_epoch();
    known = Table::entries().extract(comm);
    if (departing_ == nullptr) return;
    if (known) departing_->entry = std::move(known.mapped());
    Table::departing_ = departing_;
}

template <class Entry>
CommDeparture<Entry>::~CommDeparture() {
    typename Table::Map::node_type made_by_callbacks;
    {
        const std::lock_guard lock(Table::mutex);
        Table::change_epoch();
        if (departing_ == nullptr) {
            made_by_callbacks = Table::entries().extract(comm_);
            return;
        }
        Table::departing_ = departing_->outer;
        try {
            if (departing_->stays) Table::entries()[comm_] = std::move(departing_->entry);
        } catch (const std::bad_alloc&) {
        }
    }
    delete departing_;
}

template <class Entry>
void CommDeparture<Entry>::stay() noexcept {
    if (departing_ != nullptr) departing_->stays = true;
}

}  // namespace vecmpi::offload
