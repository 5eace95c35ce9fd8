// SPDX-License-Identifier: BSD-3-Clause
// MPI_Pack_external and MPI_Unpack_external by plans, over a library whose only derived types are
// vectors of ints, and which has values in an order that the test says.
#include <algorithm>
#include <chrono>

#include "datatype/external32.hpp"
#include "vector_types.hpp"

using namespace vecmpi;
using namespace vecmpi::datatype;
using namespace vector_types;

namespace {

// What the library does with values: reverses so many bytes at a time. 0: adds 1 to each byte.
size_t width_of_library = 4;
int asked = 0;

unsigned char external_byte(const unsigned char* stream, size_t at) {
    const size_t w = width_of_library;
    return w == 0 ? static_cast<unsigned char>(stream[at] + 1)
                  : stream[at / w * w + w - 1 - at % w];
}

int fake_pack_external(const char*, const void* memory, int count, MPI_Datatype type, void* packed,
                       MPI_Aint, MPI_Aint* position) {
    ++asked;
    const auto bytes = static_cast<size_t>(count) * library::builtin_type_bytes(type);
    for (size_t i = 0; i < bytes; ++i)
        static_cast<unsigned char*>(packed)[i] =
            external_byte(static_cast<const unsigned char*>(memory), i);
    *position += static_cast<MPI_Aint>(bytes);
    return MPI_SUCCESS;
}
int fake_unpack_external(const char* form, const void* packed, MPI_Aint, MPI_Aint* position,
                         void* memory, int count, MPI_Datatype type) {
    return fake_pack_external(form, packed, count, type, memory, 0, position);
}

struct ExternalLibrary : Library {
    explicit ExternalLibrary(const std::map<int, Vector>& wanted, size_t width = 4)
        : Library(wanted) {
        width_of_library = width;
        asked = 0;
        real.Pack_external = fake_pack_external;
        real.Unpack_external = fake_unpack_external;
    }
};

struct Buffers {
    std::vector<int> memory = std::vector<int>(1 << 17), packed = std::vector<int>(1 << 16);
    Buffers() {
        for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<int>(i * 2654435761u);
    }
};

PackCall external_call(Buffers& b, MPI_Datatype type, MPI_Count count = 1,
                       kernels::Direction direction = kernels::Direction::pack) {
    PackCall call = pack_call(b, 0, count);
    call.type = type;
    call.form = DataForm::external32;
    call.comm = MPI_COMM_NULL;
    call.direction = direction;
    return call;
}

Vector vector_of(MPI_Datatype type) {
    return types.contains(type) ? types.at(type) : Vector{1, 1, int_bytes};
}
MPI_Count bytes_of(const PackCall& call) {
    return call.count * vector_of(call.type).count * int_bytes;
}

// The library's own call.
void move_plainly(const PackCall& call) {
    const Vector v = vector_of(call.type);
    const MPI_Count bytes = bytes_of(call);
    auto* const packed = static_cast<unsigned char*>(call.packed) + call.position;
    auto* const memory = static_cast<unsigned char*>(call.memory);
    std::vector<unsigned char> values(static_cast<size_t>(bytes));
    const bool packs = call.direction == kernels::Direction::pack;
    for (size_t i = 0; i < values.size(); ++i)
        values[i] = packs ? memory[place_of(v, static_cast<MPI_Count>(i))] : packed[i];
    for (size_t i = 0; i < values.size(); ++i) {
        unsigned char& to = packs ? packed[i] : memory[place_of(v, static_cast<MPI_Count>(i))];
        to = call.form == DataForm::native ? values[i] : external_byte(values.data(), i);
    }
}

// As serve_Pack_external, over a library that is slower than any plan. True: by a plan.
bool run(const PackCall& call) {
    MPI_Count end = 0;
    uint64_t timed_since_ns = 0;
    if (pack_by_plan(call, &end, &timed_since_ns)) {
        CHECK(end == call.position + bytes_of(call));
        return true;
    }
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(50);
    move_plainly(call);
    while (timed_since_ns != 0 && std::chrono::steady_clock::now() < until) {
    }
    note_packed_by_library(call, call.position + bytes_of(call), timed_since_ns);
    return false;
}

// How many of so many calls a plan served.
int served(const PackCall& call, int calls) {
    int by_plan = 0;
    for (int i = 0; i < calls; ++i) by_plan += run(call) ? 1 : 0;
    return by_plan;
}
constexpr int many = 3000;

}  // namespace

TEST_CASE("which predefined types are asked about in external32", "[datatype]") {
    for (const MPI_Datatype type : {MPI_CHAR, MPI_C_BOOL, MPI_SHORT, MPI_INT, MPI_INT64_T, MPI_AINT,
                                    MPI_FLOAT, MPI_DOUBLE, MPI_COMPLEX, MPI_COMPLEX16})
        CHECK(external_value(type) != nullptr);
    for (const MPI_Datatype type :
         {MPI_WCHAR, MPI_LONG, MPI_UNSIGNED_LONG, MPI_LONG_DOUBLE, MPI_2INT, MPI_DOUBLE_INT,
          MPI_C_LONG_DOUBLE_COMPLEX, MPI_DATATYPE_NULL, handle(1), handle(5)})
        CHECK(external_value(type) == nullptr);
}

TEST_CASE("the width of a reversal is what the library shows", "[datatype]") {
    for (const size_t width : {1, 2, 4, 8, 16}) {
        const ExternalLibrary library({}, width);
        CHECK(reversed_width(*external_value(MPI_DOUBLE_COMPLEX)) == width);
        const int calls = asked;
        CHECK(calls == 2);
        CHECK(reversed_width(*external_value(MPI_DOUBLE_COMPLEX)) == width);
        CHECK(asked == calls);
    }
    const ExternalLibrary library({}, 0);
    CHECK(reversed_width(*external_value(MPI_DOUBLE)) == 0);
}

TEST_CASE("a setting beyond this CPU is a limit, no more", "[datatype]") {
    for (unsigned isa = 0; isa <= static_cast<unsigned>(kernels::Isa::sve); ++isa) {
        unsigned char bytes[64], reversed[64];
        for (unsigned char i = 0; i < 64; ++i) bytes[i] = i;
        kernels::reverse_bytes(reversed, bytes, 64, 4, static_cast<kernels::Isa>(isa));
        CHECK((reversed[0] == 3 && reversed[3] == 0 && reversed[63] == 60));
    }
}

TEST_CASE("a stream is reversed by values", "[datatype]") {
    const unsigned char memory[] = {1, 2, 3, 4, 5, 6, 7, 8}, by_two[] = {2, 1, 4, 3, 6, 5, 8, 7},
                        by_four[] = {4, 3, 2, 1, 8, 7, 6, 5};
    CHECK(is_reversed(memory, memory, 8, 1));
    CHECK(is_reversed(by_two, memory, 8, 2));
    CHECK(is_reversed(by_four, memory, 8, 4));
    CHECK_FALSE(is_reversed(by_two, memory, 8, 4));
    CHECK_FALSE(is_reversed(by_four, memory, 8, 8));
}

TEST_CASE("a plan with a reversal behind it gives the library's bytes", "[datatype]") {
    for (const int count : {3, 500, 20000}) {
        const ExternalLibrary library({{1, {count, 2}}});
        CAPTURE(count);
        Buffers b;
        const PackCall packing = external_call(b, handle(1), 2);
        CHECK(served(packing, many) > many / 2);
        std::fill(b.packed.begin(), b.packed.end(), 0);
        REQUIRE(run(packing));
        Buffers plain;
        move_plainly(external_call(plain, handle(1), 2));
        CHECK(b.packed == plain.packed);

        const auto unpacks = kernels::Direction::unpack;
        CHECK(served(external_call(b, handle(1), 2, unpacks), many) > many / 2);
        std::fill(b.memory.begin(), b.memory.end(), 7);
        std::fill(plain.memory.begin(), plain.memory.end(), 7);
        REQUIRE(run(external_call(b, handle(1), 2, unpacks)));
        move_plainly(external_call(plain, handle(1), 2, unpacks));
        CHECK(b.memory == plain.memory);
        CHECK(b.packed == plain.packed);
    }
}

TEST_CASE("the forms are compared with the library, and tried, each by itself", "[datatype]") {
    const ExternalLibrary library({{1, {500, 2}}});
    Buffers b;
    const PackCall external = external_call(b, handle(1));
    CHECK(served(external, many) > many / 2);
    const PackCall native = pack_call(b, 1);
    CHECK_FALSE(run(native));  // shows the plan
    CHECK(served(native, 100) > 0);
    CHECK(served(native, 100) == 100);
    Buffers plain;
    move_plainly(pack_call(plain, 1));
    CHECK(std::equal(b.packed.begin(), b.packed.begin() + 500, plain.packed.begin()));
    CHECK(run(external));
}

TEST_CASE("a type that the library has otherwise than its values stays with it", "[datatype]") {
    const ExternalLibrary library({{1, {500, 2}}});
    Buffers b;
    CHECK(reversed_width(*external_value(MPI_INT)) == 4);
    width_of_library = 2;
    CHECK(served(external_call(b, handle(1)), many) == 0);
    CHECK(plans_alive() == 1);
    run(pack_call(b, 1));
    CHECK(served(pack_call(b, 1), 100) > 0);  // MPI_Pack does not
}

TEST_CASE("values of several types, and what is no reversal, stay with the library", "[datatype]") {
    {
        const ExternalLibrary library({{1, {500, 2}}});
        has_several_sizes = true;
        Buffers b;
        CHECK(served(external_call(b, handle(1)), many) == 0);
    }
    const ExternalLibrary library({{1, {500, 2}}}, 0);
    Buffers b;
    CHECK(served(external_call(b, handle(1)), many) == 0);
    CHECK(served(external_call(b, MPI_INT, 500), many) == 0);
}

TEST_CASE("predefined types and types without gaps are reversed in one pass", "[datatype]") {
    const ExternalLibrary library({{1, {1000, 1}}});
    for (const MPI_Datatype type : {MPI_INT, handle(1)})
        for (const auto direction : {kernels::Direction::pack, kernels::Direction::unpack}) {
            Buffers b, plain;
            const MPI_Count count = type == MPI_INT ? 5000 : 5;
            CHECK(served(external_call(b, type, count, direction), many) > many / 2);
            for (Buffers* const buffers : {&b, &plain}) {
                std::fill(buffers->packed.begin(), buffers->packed.end(), 3);
                if (direction == kernels::Direction::unpack)
                    std::copy_n(buffers->memory.begin() + 9000, 5000, buffers->packed.begin());
            }
            REQUIRE(run(external_call(b, type, count, direction)));
            move_plainly(external_call(plain, type, count, direction));
            CHECK(b.packed == plain.packed);
            CHECK(b.memory == plain.memory);
        }
    Buffers b;
    CHECK(served(pack_call(b, 1), many) == 0);  // MPI_Pack copies as well
}

TEST_CASE("what the library may refuse in external32 it is asked", "[datatype]") {
    const ExternalLibrary library({{1, {500, 2}}});
    Buffers b;
    for (const PackCall& right : {external_call(b, handle(1)), external_call(b, MPI_INT, 500)}) {
        CHECK(served(right, many) > many / 2);
        std::vector<PackCall> refused(6, right);
        refused[0].packed_bytes = bytes_of(right) - 1;
        refused[1].position = -1;
        refused[2].count = -1;
        refused[3].packed = nullptr;
        refused[4].memory = nullptr;
        refused[5].count = MPI_Count{1} << 62;
        for (const PackCall& call : refused) {
            MPI_Count end = 0;
            uint64_t timed_since_ns = 0;
            CHECK_FALSE(pack_by_plan(call, &end, &timed_since_ns));
        }
        PackCall later = right;
        later.position = 3;
        later.packed_bytes = bytes_of(right) + 3;
        CHECK(run(later));
    }
}
