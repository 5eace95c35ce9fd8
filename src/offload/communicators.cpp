// SPDX-License-Identifier: BSD-3-Clause
// What the paths need to know of a communicator: asked once, then kept in a small cache. The cache
// keeps no handle alive.
#include <iterator>

#include "engine.hpp"

namespace vecmpi::offload {

namespace {

// One entry is one word, so that readers need no lock: comm (32 bits), size (26), handler (2),
// neighbours, world_only, inter, and a bit that says the entry is used.
constexpr unsigned cache_entries = 64;
std::atomic<uint64_t> cache[cache_entries];
std::atomic<uint32_t> cache_epoch{0};
std::atomic<bool> dynamic_processes{false};
std::atomic<bool> sessions{false};

constexpr int largest_cached_size = (1 << 26) - 1;

uint64_t pack(MPI_Comm comm, const CommTraits& traits) noexcept {
    return uint64_t{library::key_of_handle(comm)} << 32 | uint64_t(traits.size) << 6 |
           uint64_t(traits.handler) << 4 | uint64_t{traits.neighbours} << 3 |
           uint64_t{traits.world_only} << 2 | uint64_t{traits.inter} << 1 | 1;
}

CommTraits unpack(uint64_t word) noexcept {
    CommTraits traits;
    traits.size = static_cast<int>((word >> 6) & largest_cached_size);
    traits.handler = static_cast<CommTraits::Handler>((word >> 4) & 3);
    traits.neighbours = (word >> 3) & 1;
    traits.world_only = (word >> 2) & 1;
    traits.inter = (word >> 1) & 1;
    return traits;
}

CommTraits::Handler handler_of(MPI_Comm comm) noexcept {
    const MPI_Errhandler handler = library::borrow_handler(comm);
    library::give_back_handler(handler);
    if (handler == MPI_ERRORS_RETURN) return CommTraits::Handler::returns;
    const bool fatal = handler == MPI_ERRORS_ARE_FATAL || handler == MPI_ERRORS_ABORT;
    return fatal ? CommTraits::Handler::fatal : CommTraits::Handler::user;
}

// All processes of the group are in this process's MPI_COMM_WORLD. Equal on all members: in a group
// that spans two worlds each sees a foreign process.
bool group_in_world(MPI_Group group, int size) noexcept {
    MPI_Group world = MPI_GROUP_NULL;
    real.Comm_group(MPI_COMM_WORLD, &world);
    bool inside = true;
    for (int rank = 0; rank < size && inside; ++rank) {
        int world_rank = MPI_UNDEFINED;
        real.Group_translate_ranks(group, 1, &rank, world, &world_rank);
        inside = world_rank != MPI_UNDEFINED;
    }
    real.Group_free(&world);
    return inside;
}

bool comm_in_world(MPI_Comm comm, bool inter, int size) noexcept {
    if (!agreement().valid) return false;
    if (!dynamic_processes.load(std::memory_order_relaxed)) return true;
    MPI_Group group = MPI_GROUP_NULL;
    int local_size = size;
    if (inter) real.Comm_size(comm, &local_size);
    real.Comm_group(comm, &group);
    bool inside = group_in_world(group, local_size);
    real.Group_free(&group);
    if (!inter || !inside) return inside;
    real.Comm_remote_group(comm, &group);
    inside = group_in_world(group, size);
    real.Group_free(&group);
    return inside;
}

// Of communicators that are MPICH's extensions. Ranks of a threadcomm are threads. Calls on the
// communicator of a stream take no lock of the library: the program puts them in order. All ranks
// make such a communicator together, some of them perhaps without a stream.
constinit std::atomic<int> stream_key{MPI_KEYVAL_INVALID};

// MPI_Comm_dup copies the mark, as it does the streams.
int copy_mark(MPI_Comm, int, void*, void*, void* copied, int* flag) noexcept {
    *static_cast<void**>(copied) = nullptr;
    *flag = 1;
    return MPI_SUCCESS;
}

bool is_extension(MPI_Comm comm) noexcept {
    int threads = 0;
    if (real.X_Comm_test_threadcomm != nullptr) real.X_Comm_test_threadcomm(comm, &threads);
    if (threads != 0) return true;
    const int key = stream_key.load(std::memory_order_acquire);
    void* value = nullptr;
    int marked = 0;
    if (key != MPI_KEYVAL_INVALID) real.Comm_get_attr(comm, key, &value, &marked);
    return marked != 0;
}

// "No" is an answer; the program must not see it as an error.
bool is_communicator(MPI_Comm comm, int* inter) noexcept {
    const library::QuietErrors question;
    const library::LoudQuestion where_it_cannot_be;
    return real.Comm_test_inter(comm, inter) == MPI_SUCCESS;
}

// Of a handle that is none, or was freed. No path of ours serves it, so the library refuses the
// program's own call, with nothing held.
constexpr CommTraits no_communicator{.size = 0,
                                     .inter = false,
                                     .neighbours = false,
                                     .world_only = false,
                                     .handler = CommTraits::Handler::user};

CommTraits ask_library(MPI_Comm comm) noexcept {
    CommTraits traits = no_communicator;
    const Within library(Inside::library);
    int inter = 0;
    if (is_communicator(comm, &inter) && !is_extension(comm)) {
        traits.inter = inter != 0;
        if (traits.inter)
            real.Comm_remote_size(comm, &traits.size);
        else
            real.Comm_size(comm, &traits.size);
        int topology = MPI_UNDEFINED;
        if (!traits.inter) real.Topo_test(comm, &topology);
        traits.neighbours = topology != MPI_UNDEFINED;
        traits.handler = handler_of(comm);
        traits.world_only = comm_in_world(comm, traits.inter, traits.size);
    }
    return traits;
}

}  // namespace

bool all_can(MPI_Comm comm, bool can, uint64_t same_number) noexcept {
    // A maximum of x and of ~x tells whether all had the same x.
    const uint64_t mine[] = {!can, same_number, ~same_number};
    uint64_t most[std::size(mine)] = {1, 0, 0};
    return real.Allreduce(mine, most, std::size(mine), MPI_UINT64_T, MPI_MAX, comm) ==
               MPI_SUCCESS &&
           most[0] == 0 && most[1] == ~most[2];
}

CommTraits comm_traits(MPI_Comm comm) noexcept {
    const uint32_t key = library::key_of_handle(comm);
    if (key == 0) [[unlikely]]
        return ask_library(comm);
    std::atomic<uint64_t>& entry = cache[(key ^ key >> 26) % cache_entries];
    const uint64_t word = entry.load(std::memory_order_relaxed);
    if ((word & 1) != 0 && word >> 32 == key) return unpack(word);
    const uint32_t epoch = cache_epoch.load(std::memory_order_acquire);
    const CommTraits traits = ask_library(comm);
    // Nothing is kept of a freed one: the next communicator may get its handle.
    if (traits.size > 0 && traits.size <= largest_cached_size) {
        entry.store(pack(comm, traits), std::memory_order_seq_cst);
        // Pairs with forget_comm_traits(): an answer from before the change must not stay.
        if (cache_epoch.load(std::memory_order_seq_cst) != epoch)
            entry.store(0, std::memory_order_relaxed);
    }
    return traits;
}

void forget_comm_traits() noexcept {
    cache_epoch.fetch_add(1, std::memory_order_seq_cst);
    // One fence in place of 64: an answer that is stored after these zeros was stored after the
    // fence, and so finds the new epoch.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    for (std::atomic<uint64_t>& entry : cache) entry.store(0, std::memory_order_relaxed);
}

// From here on only what window_serves() is queued. What was queued before must be completed with
// the handler that the communicator has now.
void note_handler(MPI_Comm comm) noexcept {
    if (!engine_runs() || !agreement().valid || !library::is_comm_handle(comm)) return;
    const bool served = comm != MPI_COMM_WORLD && window_serves(comm_traits(comm).handler);
    if (served) return;
    engine->handlers_may_differ.store(true, std::memory_order_relaxed);
    // In this order: an operation that is issued is in the window already.
    if (!engine->all_issued() || engine->has_work() ||
        engine->has_seen(RequestKind::virtual_persistent))
        engine->let_callers_complete();
}

void note_dynamic_processes() noexcept {
    if (!dynamic_processes.exchange(true)) forget_comm_traits();
}

void mark_stream_comm(MPI_Comm comm) noexcept {
    int key = stream_key.load(std::memory_order_acquire);
    if (key == MPI_KEYVAL_INVALID) {
        int made = MPI_KEYVAL_INVALID;
        real.Comm_create_keyval(copy_mark, MPI_COMM_NULL_DELETE_FN, &made, nullptr);
        // Where two threads come here at once, one of the keys stays unused.
        key = stream_key.compare_exchange_strong(key, made, std::memory_order_acq_rel) ? made : key;
    }
    real.Comm_set_attr(comm, key, nullptr);
}

void note_session() noexcept {
    note_dynamic_processes();
    sessions.store(true, std::memory_order_relaxed);
}

bool session_was_opened() noexcept { return sessions.load(std::memory_order_relaxed); }

}  // namespace vecmpi::offload
