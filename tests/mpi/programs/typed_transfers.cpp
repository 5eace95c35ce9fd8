// SPDX-License-Identifier: BSD-3-Clause
// One-sided transfers between random datatypes: windows of all kinds, all synchronisations. What
// windows and origins hold goes into digests, to be compared with those of a run without vecmpi.
// The argument `threads`: several threads transfer and complete at once, by passive target.
// The argument `late`: a target makes no progress while MPI_Win_flush_local waits for it.
//
// A window of each rank has one place for each transfer of an epoch of each rank, which only that
// one writes, a place that is only read, and one of ints that all ranks add to.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "type_maker.hpp"

using namespace battery;

namespace {

constexpr int most_transfers = 4;  // of a thread's epoch
constexpr int epochs = 18;

int threads = 1;

void fill(char* memory, MPI_Aint bytes, uint64_t seed) {
    for (MPI_Aint i = 0; i < bytes; i += 8) {
        const uint64_t word = mix(seed += 0x9e3779b97f4a7c15u);
        std::memcpy(memory + i, &word, static_cast<size_t>(std::min<MPI_Aint>(8, bytes - i)));
    }
}

// ---- windows -----------------------------------------------------------------------------------

// Not dynamic ones: MPICH 4.0.2 fails in transfers of some types there (an assertion in
// MPIR_Typerep_to_iov).
enum class WindowKind { create, allocate, shared };

class Window {
  public:
    Window(WindowKind kind, int most_units)
        : most_units_(most_units), place_bytes_(8192 + MPI_Aint{104} * most_units) {
        switch (kind) {
            case WindowKind::create:
                own_.resize(static_cast<size_t>(bytes()));
                base_ = own_.data();
                MPI_Win_create(base_, bytes(), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win_);
                break;
            case WindowKind::allocate:
                MPI_Win_allocate(bytes(), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base_, &win_);
                break;
            case WindowKind::shared:
                MPI_Win_allocate_shared(bytes(), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base_, &win_);
                break;
        }
        fill(base_, bytes(), mix(world.seed) + static_cast<uint64_t>(world.rank));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    Window(const Window&) = delete;
    ~Window() { MPI_Win_free(&win_); }
    MPI_Win get() const { return win_; }
    int most_units() const { return most_units_; }  // of a transfer
    MPI_Aint place_bytes() const { return place_bytes_; }
    // Displacement of a place. The first is left out, so that none is negative: types begin before
    // their place.
    MPI_Aint place(int number) const { return (number + 1) * place_bytes_; }
    static int own_place(int thread, int transfer) {
        return (world.rank * threads + thread) * most_transfers + transfer;
    }
    static int read_place() { return world.size * threads * most_transfers; }
    static int sum_place() { return read_place() + 1; }
    uint64_t digest() const { return hash_bytes(base_, static_cast<size_t>(bytes())); }

  private:
    MPI_Aint bytes() const { return (sum_place() + 2) * place_bytes_; }

    const int most_units_;
    const MPI_Aint place_bytes_;
    MPI_Win win_ = MPI_WIN_NULL;
    char* base_ = nullptr;
    std::vector<char> own_;
};

// ---- synchronisation ---------------------------------------------------------------------------

enum class Sync { fence, general, lock, lock_all };  // general: post, start, complete, wait
enum class Flush { none, one, all, one_local, all_local };

class Epoch {
  public:
    Epoch(const Window& window, Sync sync) : win_(window.get()), sync_(sync) {
        MPI_Group all;
        MPI_Comm_group(MPI_COMM_WORLD, &all);
        if (sync == Sync::fence) MPI_Win_fence(MPI_MODE_NOPRECEDE, win_);
        if (sync == Sync::general) {
            MPI_Win_post(all, 0, win_);
            MPI_Win_start(all, 0, win_);
        }
        if (sync == Sync::lock_all) MPI_Win_lock_all(0, win_);
        if (sync == Sync::lock)
            for (const int rank : locked()) MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win_);
        MPI_Group_free(&all);
    }
    Epoch(const Epoch&) = delete;
    bool is_passive() const { return sync_ == Sync::lock || sync_ == Sync::lock_all; }
    void flush(Flush flush, int target) const {
        if (flush == Flush::one) MPI_Win_flush(target, win_);
        if (flush == Flush::all) MPI_Win_flush_all(win_);
        if (flush == Flush::one_local) MPI_Win_flush_local(target, win_);
        if (flush == Flush::all_local) MPI_Win_flush_local_all(win_);
    }
    void end() const {
        if (sync_ == Sync::fence) MPI_Win_fence(MPI_MODE_NOSUCCEED, win_);
        if (sync_ == Sync::general) {
            MPI_Win_complete(win_);
            MPI_Win_wait(win_);
        }
        if (sync_ == Sync::lock_all) MPI_Win_unlock_all(win_);
        if (sync_ == Sync::lock)
            for (const int rank : locked()) MPI_Win_unlock(rank, win_);
    }

  private:
    // MPI_PROC_NULL too, whose flush and unlock complete nothing of the others.
    static std::vector<int> locked() {
        std::vector<int> ranks{MPI_PROC_NULL};
        for (int rank = 0; rank < world.size; ++rank) ranks.push_back(rank);
        return ranks;
    }

    const MPI_Win win_;
    const Sync sync_;
};

// ---- transfers ---------------------------------------------------------------------------------

enum class Way { put, get, replace, add, put_and_get, request_put, request_get };

// Equal in each epoch of a window but for its data.
struct Pattern {
    Way way;
    Unit unit;
    int units;
    uint64_t origin_seed, target_seed;
    int target;
    int gotten;  // units of a get: those of its origin, or fewer
    bool has_dense_target, frees_at_once, flushes_nobody;
    Flush flush;
};

Pattern random_pattern(Random& random, int most_units) {
    Pattern p{};
    p.way = static_cast<Way>(random.below(7));
    p.unit = static_cast<Unit>(random.below(5));
    if (p.way == Way::add) p.unit = Unit::integer;
    if (p.way == Way::replace && p.unit == Unit::record) p.unit = Unit::real;
    constexpr int sizes[] = {0, 1, 7, 60, 300, 3000};
    p.units = std::min(sizes[random.below(6)], most_units);
    p.origin_seed = random.next();
    p.target_seed = random.next();
    p.target = random.chance(5) ? MPI_PROC_NULL : random.below(world.size);
    p.has_dense_target = random.chance(40);
    p.gotten = random.chance(30) ? p.units / 2 : p.units;
    p.frees_at_once = random.chance(50);
    p.flushes_nobody = random.chance(30);
    p.flush = static_cast<Flush>(random.below(5));
    return p;
}

Type made(uint64_t seed, Unit unit, int units, bool is_dense) {
    Random random(seed);
    Maker maker(random, unit);
    Type type = is_dense ? maker.dense(units) : maker.make(units, 3);
    MPI_Type_commit(&type.handle);
    return type;
}

class Transfer {
  public:
    Transfer(const Window& window, const Pattern& pattern, int thread, int number, uint64_t seed)
        : window_(window),
          p_(pattern),
          place_(Window::own_place(thread, number)),
          origin_(made(p_.origin_seed, p_.unit, p_.units, false)),
          target_(made(p_.target_seed, p_.unit, p_.way == Way::get ? p_.gotten : p_.units,
                       p_.has_dense_target)) {
        const MPI_Aint bytes = origin_.high() - origin_.low() + 2 * guard;
        memory_.resize(static_cast<size_t>(bytes));
        fill(memory_.data(), bytes, seed);
        again_ = memory_;
        check(target_.high() - target_.low() <= window.place_bytes(), "target fits into its place");
    }

    void begin(const Epoch& epoch) {
        const bool may_ask = epoch.is_passive();
        switch (p_.way) {
            case Way::put:
                put();
                break;
            case Way::get:
                get(Window::read_place(), memory_);
                break;
            case Way::replace:
                accumulate(place_, MPI_REPLACE);
                break;
            case Way::add:
                accumulate(Window::sum_place(), MPI_SUM);
                break;
            case Way::put_and_get:
                put();
                if (!may_ask || p_.target == MPI_PROC_NULL) break;
                epoch.flush(Flush::one, p_.target);
                get(place_, again_);
                break;
            case Way::request_put:
                if (may_ask) requested(true);
                break;
            case Way::request_get:
                if (may_ask) requested(false);
                break;
        }
        if (p_.frees_at_once) {
            origin_ = Type();
            target_ = Type();
        }
        if (may_ask && p_.flushes_nobody) epoch.flush(Flush::one, MPI_PROC_NULL);
        if (!may_ask || p_.flush == Flush::none || p_.target == MPI_PROC_NULL) return;
        epoch.flush(p_.flush, p_.target);
        add_to_digest();
        if (p_.way != Way::get)  // complete at the origin, so that its memory may be used
            fill(memory_.data(), static_cast<MPI_Aint>(memory_.size()), 1);
    }
    void end() { add_to_digest(); }
    uint64_t digest() const { return digest_; }

  private:
    static constexpr MPI_Aint guard = 64;

    void put() {
        MPI_Put(at(memory_), 1, origin_.handle, p_.target, to(place_), 1, target_.handle,
                window_.get());
    }
    void get(int place, std::vector<char>& memory) {
        MPI_Get(at(memory), 1, origin_.handle, p_.target, to(place), 1, target_.handle,
                window_.get());
    }
    void accumulate(int place, MPI_Op op) {
        MPI_Accumulate(at(memory_), 1, origin_.handle, p_.target, to(place), 1, target_.handle, op,
                       window_.get());
    }
    void requested(bool puts) {
        MPI_Request request;
        if (puts)
            MPI_Rput(at(memory_), 1, origin_.handle, p_.target, to(place_), 1, target_.handle,
                     window_.get(), &request);
        else
            MPI_Rget(at(memory_), 1, origin_.handle, p_.target, to(Window::read_place()), 1,
                     target_.handle, window_.get(), &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    char* at(std::vector<char>& memory) const { return memory.data() + guard - origin_.low(); }
    MPI_Aint to(int place) const {
        if (p_.target == MPI_PROC_NULL) return 0;
        return window_.place(place) - target_.low();
    }
    void add_to_digest() {
        for (const auto* memory : {&memory_, &again_})
            digest_ = mix(digest_ ^ hash_bytes(memory->data(), memory->size()));
    }

    const Window& window_;
    const Pattern p_;
    const int place_;
    Type origin_, target_;
    std::vector<char> memory_, again_;
    uint64_t digest_ = 0;
};

// One epoch of a thread. Patterns are of its own.
uint64_t run(const Window& window, const Epoch& epoch, const std::vector<Pattern>& patterns,
             int thread, uint64_t seed, bool ends) {
    std::vector<std::unique_ptr<Transfer>> transfers;
    for (const Pattern& pattern : patterns) {
        const auto number = static_cast<int>(transfers.size());
        transfers.push_back(std::make_unique<Transfer>(window, pattern, thread, number,
                                                       mix(seed + static_cast<uint64_t>(number))));
        transfers.back()->begin(epoch);
    }
    if (ends)
        epoch.end();
    else
        MPI_Win_flush_all(window.get());
    uint64_t digest = 0;
    for (const auto& transfer : transfers) {
        transfer->end();
        digest = mix(digest ^ transfer->digest());
    }
    return digest;
}

std::vector<Pattern> random_patterns(Random& random, int most_units) {
    std::vector<Pattern> patterns(static_cast<size_t>(random.between(1, most_transfers)));
    for (Pattern& pattern : patterns) pattern = random_pattern(random, most_units);
    return patterns;
}

uint64_t seed_of(int epoch, int thread) {
    return mix(mix(world.seed) + static_cast<uint64_t>((epoch * 8 + thread) * 64 + world.rank));
}

// What others have put may be read, and is read before they put again.
void look_at(const Window& window, Digest& digest) {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, world.rank, 0, window.get());
    digest.add(window.digest());
    MPI_Win_unlock(world.rank, window.get());
    MPI_Barrier(MPI_COMM_WORLD);
}

void run_by_one(const Window& window, Sync sync, Random& own) {
    const std::vector<Pattern> patterns = random_patterns(own, window.most_units());
    for (int i = 0; i < epochs; ++i) {
        const Epoch epoch(window, sync);
        topic("origins").add(run(window, epoch, patterns, 0, seed_of(i, 0), true));
        // The larger the window, the longer it takes to look at.
        if (window.most_units() <= 60 || i % 6 == 5) look_at(window, topic("windows"));
    }
}

void run_by_threads(const Window& window, Random& own) {
    std::vector<std::vector<Pattern>> patterns;
    for (int thread = 0; thread < threads; ++thread)
        patterns.push_back(random_patterns(own, window.most_units()));
    const Epoch epoch(window, Sync::lock_all);
    std::vector<uint64_t> digests(static_cast<size_t>(threads), 0);
    std::vector<std::thread> all;
    for (int thread = 0; thread < threads; ++thread)
        all.emplace_back([&, thread] {
            const auto self = static_cast<size_t>(thread);
            for (int i = 0; i < epochs; ++i)
                digests[self] ^=
                    mix(static_cast<uint64_t>(i) +
                        run(window, epoch, patterns[self], thread, seed_of(i, thread), false));
        });
    for (std::thread& thread : all) thread.join();
    for (const uint64_t digest : digests) topic("origins").add(digest);
    epoch.end();
    look_at(window, topic("windows"));
}

// A get, and a put that is complete at once.
void run_late(const Window& window, bool flushes_all) {
    constexpr int doubles = 640, target = 1;
    const Epoch epoch(window, Sync::lock_all);
    MPI_Datatype every_second;
    MPI_Type_vector(doubles, 1, 2, MPI_DOUBLE, &every_second);
    MPI_Type_commit(&every_second);
    std::vector<double> gotten(size_t{2} * doubles);
    const double put = 0;
    for (int i = 0; i < 4; ++i) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (world.rank == target) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        if (world.rank != 0) continue;
        gotten.assign(gotten.size(), 0);
        MPI_Get(gotten.data(), 1, every_second, target, window.place(Window::read_place()), doubles,
                MPI_DOUBLE, window.get());
        MPI_Put(&put, 1, MPI_DOUBLE, target, window.place(0), 1, MPI_DOUBLE, window.get());
        epoch.flush(flushes_all ? Flush::all_local : Flush::one_local, target);
        topic("origins").add(hash_bytes(gotten.data(), gotten.size() * sizeof(double)));
    }
    epoch.end();
    MPI_Type_free(&every_second);
}

}  // namespace

int main(int argc, char** argv) {
    read_arguments(argc, argv);
    const bool is_threaded = world.argument == "threads";
    begin(argc, argv, is_threaded ? MPI_THREAD_MULTIPLE : -1);
    if (is_threaded) threads = 3;
    Random common = common_random(71);
    Random own = own_random(72);
    if (world.argument == "late") {
        for (const WindowKind kind :
             {WindowKind::create, WindowKind::allocate, WindowKind::shared}) {
            const Window window(kind, 60);
            for (const bool flushes_all : {false, true}) run_late(window, flushes_all);
        }
        return end();
    }
    const int windows = is_threaded ? 3 : 4;
    for (int i = 0; i < windows; ++i) {
        const auto kind = static_cast<WindowKind>(common.below(3));
        constexpr int sizes[] = {60, 60, 300, 3000};
        const Window window(kind, sizes[common.below(4)]);
        if (is_threaded)
            run_by_threads(window, own);
        else
            run_by_one(window, static_cast<Sync>(common.below(4)), own);
    }
    return end();
}
