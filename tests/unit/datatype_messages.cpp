// SPDX-License-Identifier: BSD-3-Clause
// Plans that stand between a library and UCX: a fake of both, whose only derived types are vectors
// of ints.
#include <array>
#include <numeric>
#include <thread>

#include "vector_types.hpp"

using namespace vecmpi;
using namespace vecmpi::datatype;
using namespace vector_types;

namespace {

// ---- the library's functions -------------------------------------------------------------------

// What it shows to UCX: its datatype, behind a pointer of its own.
struct LibraryType {
    MPI_Datatype handle;
};
struct LibraryState {
    Vector vector;
    char* memory;
    size_t bytes;
};
std::atomic<int> started{0}, finished{0}, pieces{0};
std::atomic<size_t> most_in_piece{SIZE_MAX};  // it may pack less than there is room for
std::atomic<bool> packs_wrongly{false};
std::atomic<std::chrono::microseconds> dawdles{std::chrono::microseconds(0)};

void* library_start(void* context, void* memory, size_t count) {
    ++started;
    const Vector v = types.at(static_cast<LibraryType*>(context)->handle);
    return new LibraryState{v, static_cast<char*>(memory),
                            count * static_cast<size_t>(v.count) * sizeof(int)};
}
void* library_start_pack(void* context, const void* memory, size_t count) {
    return library_start(context, const_cast<void*>(memory), count);
}
size_t library_packed_size(void* state) { return static_cast<LibraryState*>(state)->bytes; }

void dawdle() {
    const auto until = std::chrono::steady_clock::now() + dawdles.load();
    while (std::chrono::steady_clock::now() < until) {
    }
}
size_t library_pack(void* opaque, size_t offset, void* to, size_t most) {
    ++pieces;
    dawdle();
    const auto& state = *static_cast<LibraryState*>(opaque);
    size_t bytes = std::min({most, state.bytes - offset, most_in_piece.load()});
    if (bytes > sizeof(int)) bytes -= (offset + bytes) % sizeof(int);
    for (size_t i = 0; i < bytes; ++i)
        static_cast<char*>(to)[i] =
            state.memory[place_of(state.vector, static_cast<MPI_Count>(offset + i))];
    if (packs_wrongly && offset == 0) static_cast<char*>(to)[bytes / 2] ^= 1;
    return bytes;
}
library::UcxStatus library_unpack(void* opaque, size_t offset, const void* from, size_t bytes) {
    ++pieces;
    dawdle();
    const auto& state = *static_cast<LibraryState*>(opaque);
    for (size_t i = 0; i < bytes; ++i)
        state.memory[place_of(state.vector, static_cast<MPI_Count>(offset + i))] =
            static_cast<const char*>(from)[i];
    return 0;
}
void library_finish(void* state) {
    ++finished;
    delete static_cast<LibraryState*>(state);
}
constexpr library::UcxOps library_ops = {library_start_pack, library_start,  library_packed_size,
                                         library_pack,       library_unpack, library_finish};

// ---- UCX ---------------------------------------------------------------------------------------

struct UcxType {
    library::UcxOps ops;
    void* context;
};
std::mutex ucx_mutex;
std::map<uint64_t, UcxType> ucx_types;
uint64_t last_ucx_type = 0;

library::UcxStatus ucx_create(const library::UcxOps* ops, void* context, uint64_t* ucx_type) {
    const std::lock_guard lock(ucx_mutex);
    *ucx_type = ++last_ucx_type;
    ucx_types[*ucx_type] = {*ops, context};
    return 0;
}
library::UcxStatus ucx_refuses(const library::UcxOps*, void*, uint64_t*) { return -1; }
void ucx_destroy(uint64_t ucx_type) {
    const std::lock_guard lock(ucx_mutex);
    CHECK(ucx_types.erase(ucx_type) == 1);
}
UcxType look_up(uint64_t ucx_type) {
    const std::lock_guard lock(ucx_mutex);
    return ucx_types.at(ucx_type);
}

// ---- the program -------------------------------------------------------------------------------

// A committed datatype, as long as the library lets UCX know it.
class Committed {
  public:
    explicit Committed(int number) : library_type_{handle(number)} {
        MakingMessageType making;
        CHECK(create_message_type(ucx_create, library_ops, &library_type_, &ucx_type_) == 0);
        meet_type(handle(number), making.belongs_to(handle(number)));
    }
    ~Committed() {
        free();
        destroy();
    }
    void free() const { forget_plan(library_type_.handle); }
    void destroy() {
        if (ucx_type_ != 0) destroy_message_type(ucx_destroy, std::exchange(ucx_type_, 0));
    }
    UcxType ucx() const { return look_up(ucx_type_); }
    const Vector& vector() const { return types.at(library_type_.handle); }

  private:
    LibraryType library_type_;
    uint64_t ucx_type_ = 0;
};

std::vector<int> some_memory(size_t ints = 1 << 17) {
    std::vector<int> memory(ints);
    for (size_t i = 0; i < ints; ++i) memory[i] = static_cast<int>(i * 2654435761u);
    return memory;
}

// In pieces of `piece` bytes. The right bytes, and no others? True: not one by the library.
bool send(const Committed& type, size_t count = 1, size_t piece = 1000) {
    const UcxType ucx = type.ucx();
    const std::vector<int> memory = some_memory();
    const auto* const bytes = reinterpret_cast<const char*>(memory.data());
    const int before = pieces, given_back = finished;
    void* const state = ucx.ops.start_pack(ucx.context, memory.data(), count);
    const size_t size = ucx.ops.packed_size(state);
    CHECK(size == count * static_cast<size_t>(type.vector().count) * sizeof(int));
    std::vector<char> stream(size + piece, 'x');
    size_t sent = 0;
    while (sent < size) {
        const size_t part = ucx.ops.pack(state, sent, stream.data() + sent, piece);
        REQUIRE(part > 0);
        sent += part;
        if (piece >= sizeof(int)) CHECK(sent % sizeof(int) == 0);  // where the library can go on
    }
    ucx.ops.finish(state);
    size_t wrong = 0;
    for (size_t i = 0; i < size; ++i)
        wrong += stream[i] != bytes[place_of(type.vector(), static_cast<MPI_Count>(i))];
    for (size_t i = size; i < stream.size(); ++i) wrong += stream[i] != 'x';
    CHECK(wrong == 0);
    CHECK(finished == given_back + 1);  // it counts its users so
    return pieces == before;
}

// The pieces come in any order.
bool receive(const Committed& type, size_t count = 1, size_t piece = 1000, size_t most = SIZE_MAX) {
    const UcxType ucx = type.ucx();
    std::vector<int> memory = some_memory();
    std::vector<int> expected = memory;
    auto* const bytes = reinterpret_cast<char*>(expected.data());
    const size_t size =
        std::min(most, count * static_cast<size_t>(type.vector().count) * sizeof(int));
    std::vector<char> stream(size);
    std::iota(stream.begin(), stream.end(), 1);
    for (size_t i = 0; i < size; ++i)
        bytes[place_of(type.vector(), static_cast<MPI_Count>(i))] = stream[i];
    const int before = pieces, given_back = finished;
    void* const state = ucx.ops.start_unpack(ucx.context, memory.data(), count);
    for (size_t at = size / piece * piece;; at -= piece) {
        if (at < size)
            CHECK(ucx.ops.unpack(state, at, stream.data() + at, std::min(piece, size - at)) == 0);
        if (at == 0) break;
    }
    ucx.ops.finish(state);
    CHECK((memory == expected));
    CHECK(finished == given_back + 1);  // it counts its users so
    return pieces == before;
}

// A message of one element that the library packs to other bytes than the type says; `meanwhile`
// between its start and its piece.
template <class Meanwhile>
void send_wrongly(const Committed& type, Meanwhile meanwhile) {
    const UcxType ucx = type.ucx();
    const std::vector<int> memory = some_memory();
    std::vector<char> stream(static_cast<size_t>(type.vector().count) * sizeof(int));
    void* const state = ucx.ops.start_pack(ucx.context, memory.data(), 1);
    meanwhile();
    packs_wrongly = true;
    CHECK(ucx.ops.pack(state, 0, stream.data(), stream.size()) == stream.size());
    ucx.ops.finish(state);
    packs_wrongly = false;
}

// Until the library has spent what a plan costs four times, and longer.
void make_plan_worthwhile(const Committed& type, bool by_receives = false) {
    for (int i = 0; i < 100000 && message_plans_wanted == 0; ++i)
        CHECK_FALSE((by_receives ? receive(type) : send(type)));
    REQUIRE(message_plans_wanted == 1);
}

struct Scene : Library {
    explicit Scene(const std::map<int, Vector>& wanted) : Library(wanted) {
        started = finished = pieces = 0;
        most_in_piece = SIZE_MAX;
        packs_wrongly = false;
        dawdles = std::chrono::microseconds(20);  // any plan is faster
    }
    ~Scene() {
        CHECK(started == finished);
        CHECK(message_plans_wanted == 0);
        CHECK(ucx_types.empty());
    }
};

}  // namespace

TEST_CASE("messages are moved by a plan once the library has spent enough on them",
          "[datatype][messages]") {
    const Scene scene({{1, {3000, 2}}});
    const Committed type(1);
    const bool by_receives = GENERATE(false, true);
    make_plan_worthwhile(type, by_receives);
    CHECK(envelopes == 0);  // nobody asked the library from within a callback
    CHECK_FALSE(send(type));
    make_wanted_message_plans();
    CHECK(envelopes > 0);
    CHECK(message_plans_wanted == 0);
    int by_plan = 0;
    for (int i = 0; i < 40; ++i) by_plan += send(type) + receive(type);
    CHECK(by_plan > 40);
    for (const size_t piece : {4, 5, 1027, 4096, 12000, 100000}) CHECK(send(type, 1, piece));
    CHECK_FALSE(send(type, 1, 3));  // less than a value: only the library knows how to go on
    for (const size_t piece : {1, 3, 4, 4096, 12000, 100000}) CHECK(receive(type, 1, piece));
    for (const size_t count : {2, 7}) {  // another class of lengths
        send(type, count);
        receive(type, count);
    }
}

TEST_CASE("a message that ends early is unpacked as far as it goes", "[datatype][messages]") {
    const Scene scene({{1, {3000, 2}}});
    const Committed type(1);
    make_plan_worthwhile(type);
    make_wanted_message_plans();
    for (int i = 0; i < 40; ++i)
        for (const size_t most : {0, 1, 4, 4001}) receive(type, 2, 1000, most);
}

TEST_CASE("the library may pack less than there is room for", "[datatype][messages]") {
    const Scene scene({{1, {3000, 2}}});
    const Committed type(1);
    most_in_piece = 900;
    make_plan_worthwhile(type);
    make_wanted_message_plans();
    int by_plan = 0;
    for (int i = 0; i < 20; ++i) by_plan += send(type);
    CHECK(by_plan > 10);
}

TEST_CASE("a plan that packs other bytes than the library moves no message",
          "[datatype][messages]") {
    const Scene scene({{1, {3000, 2}}});
    const Committed type(1);
    make_plan_worthwhile(type);
    make_wanted_message_plans();
    send_wrongly(type, [] {});
    for (int i = 0; i < 40; ++i) {
        CHECK_FALSE(send(type));
        CHECK_FALSE(receive(type));
    }
}

TEST_CASE("receives longer than their messages show whether a plan may serve",
          "[datatype][messages]") {
    const Scene scene({{1, {3000, 2}}});
    const Committed type(1);
    make_plan_worthwhile(type);
    make_wanted_message_plans();
    const size_t coming = GENERATE(1000, 8000);
    for (size_t compared = 0; compared < 4096; compared += coming)
        CHECK_FALSE(receive(type, 1, 1000, coming));
    unsigned by_plan = 0;
    for (unsigned i = 0; i < 2 * Trial::rounds; ++i) by_plan += receive(type, 1, 1000, coming);
    CHECK(by_plan > 0);
}

TEST_CASE("a difference counts though another message showed none", "[datatype][messages]") {
    const Scene scene({{1, {3000, 2}}});
    const Committed type(1);
    make_plan_worthwhile(type);
    make_wanted_message_plans();
    send_wrongly(type, [&] { CHECK_FALSE(send(type)); });  // the same bytes
    for (int i = 0; i < 20; ++i) CHECK_FALSE(send(type));
}

TEST_CASE("pieces smaller than an element of values of several sizes", "[datatype][messages]") {
    const Scene scene({{1, {30, 2}}});
    has_several_sizes = true;  // a piece may end where an int of them does, says the plan
    const Committed type(1);
    make_plan_worthwhile(type);
    make_wanted_message_plans();
    for (int i = 0; i < 40; ++i) send(type, 9, 1000);
    CHECK(send(type, 9, 1000));
    for (const size_t piece : {8, 40, 119, 120, 121, 125, 239, 241, 500}) {
        CAPTURE(piece);
        send(type, 9, piece);
    }
}

TEST_CASE("a type that UCX never forgets goes when another lies in its place",
          "[datatype][messages]") {
    const Scene scene({{1, {3000, 2}}, {2, {500, 3}}});
    LibraryType place{handle(1)};
    uint64_t first = 0, second = 0;
    const auto commit = [&](uint64_t* ucx_type) {
        MakingMessageType making;
        CHECK(create_message_type(ucx_create, library_ops, &place, ucx_type) == 0);
        making.belongs_to(place.handle);
    };
    commit(&first);
    forget_plan(handle(1));
    place.handle = handle(2);
    commit(&second);  // the first is gone: the sanitizer's leak check says so
    forget_plan(handle(2));
    destroy_message_type(ucx_destroy, second);
    destroy_message_type(ucx_destroy, first);  // never comes, and would do no harm
}

TEST_CASE("library and plan share the messages until one has won", "[datatype][messages]") {
    const Scene scene({{1, {3000, 2}}});
    const Committed type(1);
    make_plan_worthwhile(type);
    make_wanted_message_plans();
    const bool receiving = GENERATE(false, true);
    const auto move = [&] { return receiving ? receive(type) : send(type); };
    CHECK_FALSE(move());  // compared
    unsigned by_plan = 0;
    constexpr unsigned first_turns = 8;  // that are not counted
    for (unsigned i = 0; i < 2 * Trial::rounds + first_turns; ++i) by_plan += move();
    CHECK(by_plan > 0);
    for (int i = 0; i < 10; ++i) CHECK(move());
}

TEST_CASE("a plan that is clearly faster has won with its first message", "[datatype][messages]") {
    const Scene scene({{1, {3000, 2}}});
    const Committed type(1);
    make_plan_worthwhile(type);  // by 12 pieces of 20 us
    make_wanted_message_plans();
    CHECK_FALSE(send(type));  // compared
    while (!send(type)) {
    }
    for (int i = 0; i < 10; ++i) CHECK(send(type));
}

TEST_CASE("a type that comes again has a plan for its first message", "[datatype][messages]") {
    const Scene scene({{1, {3000, 2}}, {2, {3000, 2}}});
    {
        const Committed type(1);
        make_plan_worthwhile(type);
        make_wanted_message_plans();
        for (int i = 0; i < 40; ++i) send(type);
    }
    const Committed again(2);
    CHECK(send(again));
}

TEST_CASE("messages count in the row of their type", "[datatype][messages][report]") {
    const Scene scene({{1, {4000, 2}}});
    begin_report();
    report_types(true);
    {
        const Committed type(1);
        make_plan_worthwhile(type);
        make_message_plans();
        for (int i = 0; i < 40; ++i) send(type);
        for (int i = 0; i < 40; ++i) receive(type);
        send(type, 0);  // not a message with data
    }
    count_for_report(false);
    const auto all = std::make_unique<DatatypeUses>();
    read_datatype_rows(*all);
    REQUIRE(all->number == 2);
    const DatatypeUse& use = all->rows[1];
    CHECK(use.made_as == std::string("vector(4000, 1, 2) of MPI_INT"));
    const auto times = [&](WhyLibrary why) { return use.by_library[static_cast<size_t>(why)]; };
    const uint64_t before_plan = times(WhyLibrary::too_little);
    CHECK(before_plan >= 1);
    CHECK(times(WhyLibrary::trial) >= 1);
    CHECK(use.by_plan >= 60);
    CHECK(use.by_plan + times(WhyLibrary::trial) == 80);
    CHECK(times_by_library(use) == before_plan + times(WhyLibrary::trial));
    CHECK(use.bytes == (80 + before_plan) * 4000 * sizeof(int));
}

TEST_CASE("elements that may overlap are unpacked by the library", "[datatype][messages]") {
    const Scene scene({{1, {3000, 2, 4}}});
    const Committed type(1);
    make_plan_worthwhile(type);
    make_wanted_message_plans();
    for (int i = 0; i < 20; ++i) {
        send(type, 3);
        CHECK_FALSE(receive(type, 3, 1 << 20));
    }
    CHECK(send(type, 3));
}

TEST_CASE("what has no elements is the library's", "[datatype][messages]") {
    const Scene scene({{1, {3000, 2}}});
    const Committed type(1);
    make_plan_worthwhile(type);
    make_wanted_message_plans();
    while (!send(type)) {
    }
    const UcxType ucx = type.ucx();
    for (const size_t count : {size_t{0}, size_t{1}}) {
        void* const state = ucx.ops.start_pack(ucx.context, nullptr, count);
        std::array<char, 4> room{};
        const int before = pieces;
        if (count == 0) CHECK(ucx.ops.pack(state, 0, room.data(), room.size()) == 0);
        CHECK(ucx.ops.packed_size(state) == count * 12000);
        CHECK(pieces == before + (count == 0 ? 1 : 0));
        ucx.ops.finish(state);
    }
    CHECK(receive(type, 0));
}

TEST_CASE("messages under way outlive the handle", "[datatype][messages]") {
    const Scene scene({{1, {3000, 2}}});
    Committed type(1);
    make_plan_worthwhile(type);
    make_wanted_message_plans();
    for (int i = 0; i < 20; ++i) send(type);
    type.free();
    CHECK(send(type));  // as a collective does whose datatype was given back meanwhile
}

TEST_CASE("no plan is made of a handle that was given back", "[datatype][messages]") {
    const Scene scene({{1, {3000, 2}}});
    const Committed type(1);
    SECTION("before it was worth one") {
        type.free();
        for (int i = 0; i < 2000; ++i) CHECK_FALSE(send(type));
    }
    SECTION("when it was") {
        make_plan_worthwhile(type);
        type.free();
    }
    CHECK(message_plans_wanted == 0);
    make_wanted_message_plans();
    CHECK(envelopes == 0);
    CHECK_FALSE(send(type));
}

TEST_CASE("a datatype that is destroyed while a plan is wanted is not asked for",
          "[datatype][messages]") {
    const Scene scene({{1, {3000, 2}}});
    Committed type(1);
    make_plan_worthwhile(type);
    type.destroy();
    CHECK(message_plans_wanted == 0);
}

TEST_CASE("types that the library makes for itself are shown to UCX as they are",
          "[datatype][messages]") {
    const Scene scene({{1, {3000, 2}}});
    LibraryType own{handle(1)};
    uint64_t ucx_type = 0;
    const auto is_the_librarys = [&] {
        const UcxType ucx = look_up(ucx_type);
        const bool same = ucx.ops == library_ops && ucx.context == &own;
        destroy_message_type(ucx_destroy, ucx_type);
        return same;
    };
    SECTION("outside of the program's calls") {
        CHECK(create_message_type(ucx_create, library_ops, &own, &ucx_type) == 0);
        CHECK(is_the_librarys());
    }
    SECTION("the second in one call") {
        MakingMessageType making;
        uint64_t first = 0;
        CHECK(create_message_type(ucx_create, library_ops, &own, &first) == 0);
        CHECK(create_message_type(ucx_create, library_ops, &own, &ucx_type) == 0);
        making.belongs_to(handle(1));
        CHECK(is_the_librarys());
        destroy_message_type(ucx_destroy, first);
    }
    SECTION("with functions of somebody else") {
        const Committed type(1);
        library::UcxOps others = library_ops;
        others.finish = [](void*) {};
        const MakingMessageType making;
        CHECK(create_message_type(ucx_create, others, &own, &ucx_type) == 0);
        const UcxType ucx = look_up(ucx_type);
        CHECK(ucx.ops == others);
        destroy_message_type(ucx_destroy, ucx_type);
    }
    SECTION("where UCX refuses") {
        const MakingMessageType making;
        CHECK(create_message_type(ucx_refuses, library_ops, &own, &ucx_type) == -1);
    }
}

TEST_CASE("plans of messages are made under threads that send and give handles back",
          "[datatype][messages]") {
    const Scene scene({{1, {300, 2}}, {2, {400, 3}}, {3, {500, 2}}});
    dawdles = std::chrono::microseconds(0);
    std::vector<std::thread> threads;
    std::atomic<size_t> wrong{0};
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&, t] {
            const std::vector<int> memory = some_memory(1 << 12);
            const auto* const bytes = reinterpret_cast<const char*>(memory.data());
            for (int life = 0; life < 3; ++life) {
                const Committed type(t + 1);
                const UcxType ucx = type.ucx();
                const size_t size = static_cast<size_t>(type.vector().count) * sizeof(int);
                std::vector<char> stream(size);
                for (int i = 0; i < 2000; ++i) {
                    void* const state = ucx.ops.start_pack(ucx.context, memory.data(), 1);
                    ucx.ops.pack(state, 0, stream.data(), size);
                    ucx.ops.finish(state);
                    const auto at = static_cast<size_t>(i) % size;
                    wrong +=
                        stream[at] != bytes[place_of(type.vector(), static_cast<MPI_Count>(at))];
                    make_wanted_message_plans();
                }
            }
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
}
