// SPDX-License-Identifier: BSD-3-Clause
// Datatypes as the library has shown them to UCX, and what becomes of their plans. Inside
// src/datatype and its tests only.
#pragma once

#include <boost/intrusive/unordered_set.hpp>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <optional>
#include <vector>

#include "plan_making.hpp"
#include "type_rows.hpp"

namespace vecmpi::datatype {

enum class Stage : uint8_t {
    counting,  // what the library spends on its messages
    wanted,    // the next call of the program makes the plan
    making,
    has_plan,  // compared with what the library packs, then tried against it
    library,   // for good
};

// What the library takes for messages of a type, in one direction: measured on the first ones. The
// first of all finds no memory in the caches, so the least counts.
class LibraryRate {
  public:
    static constexpr unsigned messages_timed = 2;
    // At most about so many are to be timed.
    bool is_to_be_timed() const noexcept {
        return timed_.load(std::memory_order_relaxed) < messages_timed;
    }
    void note(uint64_t ns, MPI_Count bytes) noexcept;
    uint64_t ns_of(MPI_Count bytes) const noexcept;
    // By what was measured: does the plan take less than half as long, or a quarter of the only
    // message, and does that matter?
    bool is_clearly_beaten_by(uint64_t ns, MPI_Count bytes) const noexcept;

  private:
    std::atomic<unsigned> timed_{0};
    std::atomic<uint64_t> ps_of_byte_{UINT64_MAX};
};

// In a set by one of its members; a type that is in no set has links of nobody.
struct ByUcxType;
struct ByContext;
struct ByHandle;
template <class By>
using LinkBy = boost::intrusive::unordered_set_base_hook<boost::intrusive::tag<By>>;

struct MessageType : LinkBy<ByUcxType>, LinkBy<ByContext>, LinkBy<ByHandle> {
    MessageType(void* of, uint64_t worth) noexcept : context(of), worth_ns(worth) {}
    void* const context;  // the library's
    std::atomic<Stage> stage{Stage::counting};
    std::atomic<uint64_t> spent_ns{0}, worth_ns;
    LibraryRate rates[2];                                 // by direction
    PlanReference plan;                                   // written before the stage that names it
    std::atomic<WhyLibrary> why{WhyLibrary::not_served};  // of stage library: written before it
    RowNumber row = no_row;  // of the report: written before the program knows the type

    // Under the lock of MessageTypes.
    uint64_t ucx_type = 0;
    MPI_Datatype handle = MPI_DATATYPE_NULL;  // null: nobody holds one
    bool is_destroyed = false;                // while its plan was being made
};

// All of them. The lock is held for moments, and never while the library is called: callbacks take
// it too.
class MessageTypes {
  public:
    library::UcxStatus create(library::UcxCreate create, const library::UcxOps& ops, void* context,
                              uint64_t* ucx_type) noexcept;
    void destroy(library::UcxDestroy destroy, uint64_t ucx_type) noexcept;
    void give_handle(uint64_t ucx_type, MPI_Datatype handle) noexcept;
    void give_row(uint64_t ucx_type, RowNumber row) noexcept;
    // Of a type that has had no message yet.
    void give_plan(uint64_t ucx_type, const PlanReference& plan) noexcept;
    // No plan is made of this handle any more; waits for one that is being made.
    void forget_handle(MPI_Datatype handle) noexcept;

    void want_plan(MessageType& type) noexcept;
    // Null: no more are wanted.
    MessageType* begin_making(MPI_Datatype* handle) noexcept;
    void end_making(MessageType* type, std::optional<MadePlan> made) noexcept;

    // The library's own, the same for all its types.
    const library::UcxOps& library() const noexcept { return library_; }

  private:
    template <auto member>
    struct Key {
        using type = std::remove_cvref_t<decltype(std::declval<MessageType>().*member)>;
        const type& operator()(const MessageType& of) const noexcept { return of.*member; }
    };
    // Keys are addresses, and handles that count up.
    struct Hash {
        size_t operator()(uint64_t key) const noexcept {
            constexpr uint64_t golden = 0x9E3779B97F4A7C15;  // 2^64 by the golden ratio
            return static_cast<size_t>(key * golden >> 32);
        }
        size_t operator()(const void* key) const noexcept {
            return (*this)(reinterpret_cast<uintptr_t>(key));
        }
    };
    // Types by one of their members. One is made when a program commits it, and gone when that
    // frees it: nothing here takes memory. Ten thousand live types share a bucket by two or three.
    template <class By, auto member>
    class Index {
      public:
        MessageType* find(auto key) noexcept {
            const auto found = set_.find(key);
            return found == set_.end() ? nullptr : &*found;
        }
        void insert(MessageType& type) noexcept { set_.insert(type); }
        void erase(MessageType& type) noexcept { set_.erase(set_.iterator_to(type)); }
        size_t size() const noexcept { return set_.size(); }

      private:
        using Set =
            boost::intrusive::unordered_set<MessageType, boost::intrusive::base_hook<LinkBy<By>>,
                                            boost::intrusive::key_of_value<Key<member>>,
                                            boost::intrusive::hash<Hash>,
                                            boost::intrusive::power_2_buckets<true>>;
        typename Set::bucket_type buckets_[4096];
        Set set_{{buckets_, std::size(buckets_)}};
    };
    void forget_handle_of(MessageType& type) noexcept;
    MessageType* take_out(MessageType* type) noexcept;
    void stop_wanting(MessageType& type) noexcept;
    void note_wanted() noexcept;

    bool is_librarys(const library::UcxOps& ops) noexcept;

    std::mutex mutex_;
    std::condition_variable made_;
    library::UcxOps library_{};
    std::atomic<bool> knows_library_{false};  // with release, after library_
    Index<ByUcxType, &MessageType::ucx_type> by_ucx_type_;
    Index<ByContext, &MessageType::context> by_context_;
    Index<ByHandle, &MessageType::handle> by_handle_;
    std::atomic<size_t> handles_{0};  // in by_handle_
    std::vector<MessageType*> wanted_;
};

inline MessageTypes& message_types() {
    static auto* const types = new MessageTypes;  // outlives all callers
    return *types;
}

}  // namespace vecmpi::datatype
