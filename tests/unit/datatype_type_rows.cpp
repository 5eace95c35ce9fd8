// SPDX-License-Identifier: BSD-3-Clause
// What the report counts for datatypes, over a library whose only derived types are vectors of
// ints.
#include <cstring>
#include <memory>

#include "datatype/type_rows.hpp"
#include "vector_types.hpp"

using namespace vecmpi;
using namespace vecmpi::datatype;
using namespace vector_types;

namespace {

struct Reported : Library {
    explicit Reported(const std::map<int, Vector>& wanted) : Library(wanted) {
        begin_report();
        report_types(true);
    }
    ~Reported() { count_for_report(false); }
};

// All zeros where there is no such row.
DatatypeUse use_of(const std::string& made_as) {
    const auto all = std::make_unique<DatatypeUses>();
    read_datatype_rows(*all);
    for (size_t i = 0; i < all->number; ++i)
        if (all->rows[i].made_as == made_as) return all->rows[i];
    return {};
}
uint64_t times(const DatatypeUse& use, WhyLibrary why) {
    return use.by_library[static_cast<size_t>(why)];
}

struct Buffers {
    std::vector<int> memory = std::vector<int>(1 << 13), packed = std::vector<int>(1 << 12);
};

// As serve_Pack, in a library that takes `ns`.
void pack(Buffers& b, int number, kernels::Direction direction, uint64_t ns, MPI_Count count = 1) {
    const Vector v = types.at(handle(number));
    PackCall call = pack_call(b, number, count);
    call.direction = direction;
    MPI_Count end = 0;
    uint64_t timed_since_ns = 0;
    if (pack_by_plan(call, &end, &timed_since_ns)) return;
    note_packed_by_library(call, count * v.count * int_bytes, monotonic_ns() - ns);
}

}  // namespace

TEST_CASE("nothing is described without a report", "[datatype][report]") {
    const Library library({{1, {100, 2}}});
    meet_type(handle(1), 0);
    meet_copy(handle(1));
    CHECK(envelopes == 0);
    CHECK(row_of(handle(1)) == no_row);
}

TEST_CASE("a type's row outlives its handle, and types of one description share it",
          "[datatype][report]") {
    const Reported report({{1, {100, 2}}, {2, {100, 2}}, {3, {100, 3}}});
    for (const int number : {1, 2, 3}) meet_type(handle(number), 0);
    CHECK(row_of(handle(1)) == row_of(handle(2)));
    CHECK(row_of(handle(1)) != row_of(handle(3)));
    CHECK(row_of(handle(4)) == row_of_others);
    Buffers b;
    pack(b, 1, kernels::Direction::pack, 100);
    forget_plan(handle(1));
    CHECK(row_of(handle(1)) == row_of_others);
    pack(b, 2, kernels::Direction::unpack, 100);
    pack(b, 3, kernels::Direction::pack, 100);
    const DatatypeUse use = use_of("vector(100, 1, 2) of MPI_INT");
    CHECK(times(use, WhyLibrary::too_little) == 2);
    CHECK(use.bytes == 2 * 100 * int_bytes);
    CHECK(use.by_plan == 0);
    meet_copy(handle(1));
    CHECK(row_of(handle(1)) == row_of(handle(2)));
}

TEST_CASE("a row says who packed, and why not a plan", "[datatype][report]") {
    const Reported report({{1, {100, 2}}, {2, {100, 1}}, {3, {4, 0}}});
    for (const int number : {1, 2, 3}) meet_type(handle(number), 0);
    Buffers b;
    for (size_t i = 0; i < b.memory.size(); ++i) b.memory[i] = 7;
    for (size_t i = 0; i < b.packed.size(); ++i) b.packed[i] = 7;
    constexpr uint64_t long_ns = 10'000'000;
    for (int i = 0; i < 100; ++i) pack(b, 1, kernels::Direction::pack, long_ns);
    const DatatypeUse gaps = use_of("vector(100, 1, 2) of MPI_INT");
    CHECK(gaps.by_plan + times_by_library(gaps) == 100);
    CHECK(gaps.bytes == 100 * 100 * int_bytes);
    CHECK(gaps.by_plan > 80);
    CHECK(times(gaps, WhyLibrary::too_little) == 1);
    CHECK(times(gaps, WhyLibrary::trial) > 0);
    CHECK(times_by_library(gaps) ==
          times(gaps, WhyLibrary::too_little) + times(gaps, WhyLibrary::trial));
    for (int i = 0; i < 10; ++i) pack(b, 2, kernels::Direction::pack, long_ns);
    const DatatypeUse dense = use_of("vector(100, 1, 1) of MPI_INT");
    CHECK(times(dense, WhyLibrary::too_little) == 1);
    CHECK(times(dense, WhyLibrary::dense) == 9);
    pack(b, 3, kernels::Direction::pack, long_ns);
    for (int i = 0; i < 10; ++i) pack(b, 3, kernels::Direction::unpack, long_ns);
    const DatatypeUse overlaps = use_of("vector(4, 1, 0) of MPI_INT");
    CHECK(times(overlaps, WhyLibrary::overlap) == 10);
}

TEST_CASE("without UCX a blocking message counts where it is sent by its type",
          "[datatype][report]") {
    const Reported report({{1, {3000, 2}}});
    real.Pack_c = fake_pack;
    meet_type(handle(1), 0);
    Buffers b;
    MessageAsBytes sent(kernels::Direction::pack, b.memory.data(), 1, handle(1), MPI_COMM_WORLD,
                        INT32_MAX);
    REQUIRE_FALSE(sent);
    sent.note_moved_by_library();
    const DatatypeUse use = use_of("vector(3000, 1, 2) of MPI_INT");
    CHECK(times(use, WhyLibrary::too_little) == 1);
    CHECK(use.bytes == 3000 * int_bytes);
}

TEST_CASE("more types of one set than it has places count among all others", "[datatype][report]") {
    std::map<int, Vector> wanted;
    for (int i = 0; i < 6; ++i) wanted[1024 * i] = {10 + i, 2};
    const Reported report(wanted);
    for (int i = 0; i < 6; ++i) meet_type(handle(1024 * i), 0);
    CHECK(row_of(handle(1024 * 3)) != row_of_others);
    CHECK(row_of(handle(1024 * 4)) == row_of_others);
    forget_plan(handle(0));
    meet_type(handle(1024 * 5), 0);
    CHECK(row_of(handle(1024 * 5)) != row_of_others);
}

TEST_CASE("a long description is not read", "[datatype][report]") {
    const Reported report({{1, {2, 2}}});
    static std::atomic<int> contents{0};
    contents = 0;
    real.Type_get_envelope_c = [](MPI_Datatype, MPI_Count* integers, MPI_Count* addresses,
                                  MPI_Count* counts, MPI_Count* inner, int* combiner) {
        *integers = 200001;
        *addresses = *counts = 0;
        *inner = 1;
        *combiner = MPI_COMBINER_INDEXED;
        return MPI_SUCCESS;
    };
    real.Type_get_contents_c = [](MPI_Datatype, MPI_Count, MPI_Count, MPI_Count, MPI_Count, int*,
                                  MPI_Aint*, MPI_Count*, MPI_Datatype*) {
        ++contents;
        return MPI_SUCCESS;
    };
    meet_type(handle(1), 0);
    Buffers b;
    pack(b, 1, kernels::Direction::pack, 0);
    CHECK(contents == 0);
    CHECK(times_by_library(use_of("indexed(100000) of ...")) == 1);
}
