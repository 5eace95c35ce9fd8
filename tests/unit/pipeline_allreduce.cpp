// SPDX-License-Identifier: BSD-3-Clause
// Allreduce in segments over the fake library, on two nodes as far as the ranks' agreement knows.
// The other collectives are cut only where the environment says so: the MPI tests run them.
#include <catch2/catch.hpp>

#include "pipeline/candidate.hpp"
#include "pipeline/segments/segment_count.hpp"
#include "pipeline/segments/segmented_collectives.hpp"
#include "two_nodes.hpp"

using namespace vecmpi;
using namespace vecmpi::pipeline;

namespace {

constexpr int mib_of_floats = 1 << 18;

// Where no schedule can serve it.
std::optional<int> cut_allreduce(const void* send, void* receive, MPI_Count count,
                                 MPI_Datatype type = MPI_FLOAT, MPI_Comm comm = MPI_COMM_WORLD) {
    const CollectiveForm form{Call::Allreduce, CollectiveForm::Kind::blocking};
    CollectiveCall call{form, Collective::allreduce, comm, 0, MPI_SUM};
    if (!call.look_at(type, count) || are_refused(send, count, receive, count, type))
        return call.leave();
    const MPI_Count extent = offload::shape_of(type).extent;
    const Candidate by =
        candidate_for(call, {static_cast<uint64_t>(count * extent), count, false, true});
    if (by.kind != Candidate::Kind::segments) return call.leave();
    return segmented_reduction(call, by.segments, {send, receive, count, type, MPI_SUM, extent});
}

// The reductions after those of MPI_Init.
std::vector<fake::Reduction> segments_since(size_t first) {
    const std::vector<fake::Reduction> all = fake::reductions();
    return {all.begin() + static_cast<std::ptrdiff_t>(first), all.end()};
}

}  // namespace

TEST_CASE("segmented Allreduce: the segments cover the vector in order", "[pipeline][allreduce]") {
    const Mode mode = GENERATE(Mode::alone, Mode::callers, Mode::thread);
    const int count = GENERATE(as<int>{}, mib_of_floats, mib_of_floats + 1, 3 * mib_of_floats + 3);
    const bool in_place = GENERATE(false, true);
    INFO(count << " elements, in place " << in_place);
    TwoNodes world(mode);
    std::vector<float> input(static_cast<size_t>(count)), output(static_cast<size_t>(count));
    const void* const send = in_place ? MPI_IN_PLACE : static_cast<const void*>(input.data());
    const auto rc = cut_allreduce(send, output.data(), count);
    REQUIRE(rc.has_value());
    CHECK(*rc == MPI_SUCCESS);
    const std::vector<fake::Reduction> segments = segments_since(world.first);
    CHECK(segments.size() == 4);
    size_t next = 0;
    for (const fake::Reduction& part : segments) {
        CHECK(part.recvbuf == output.data() + next);
        CHECK(part.sendbuf ==
              (in_place ? MPI_IN_PLACE : static_cast<const void*>(input.data() + next)));
        next += static_cast<size_t>(part.count);
    }
    CHECK(next == static_cast<size_t>(count));
    CHECK(fake::most_active() <= static_cast<int>(segments_in_flight));
}

TEST_CASE("segmented Allreduce declines before it touches anything", "[pipeline][allreduce]") {
    TwoNodes world(Mode::alone);
    std::vector<float> buffer(mib_of_floats), other(mib_of_floats);
    const auto declines = [&](const void* send, MPI_Count count, MPI_Datatype type, MPI_Comm comm) {
        return !cut_allreduce(send, other.data(), count, type, comm).has_value();
    };
    const MPI_Comm half = fake::communicator(1), inter = fake::communicator(2);
    fake::facts_of(half).size = 1;
    fake::facts_of(inter).inter = true;
    CHECK(declines(buffer.data(), mib_of_floats - 1, MPI_FLOAT, MPI_COMM_WORLD));  // small
    CHECK(declines(other.data(), mib_of_floats, MPI_FLOAT,
                   MPI_COMM_WORLD));  // one buffer for both sides
    CHECK(declines(buffer.data(), -1, MPI_FLOAT, MPI_COMM_WORLD));
    CHECK(declines(buffer.data(), mib_of_floats, MPI_DATATYPE_NULL, MPI_COMM_WORLD));
    CHECK(declines(buffer.data(), mib_of_floats, MPI_FLOAT, MPI_COMM_NULL));
    CHECK(declines(buffer.data(), mib_of_floats, MPI_FLOAT, half));  // not known to span the nodes
    CHECK(declines(buffer.data(), mib_of_floats, MPI_FLOAT, inter));
    offload::this_thread.is_offload_thread =
        true;  // an error handler that the engine's thread calls
    CHECK(declines(buffer.data(), mib_of_floats, MPI_FLOAT, MPI_COMM_WORLD));
    offload::this_thread.is_offload_thread = false;
    CHECK(segments_since(world.first).empty());
}

TEST_CASE("segmented Allreduce serves a callback as its peers", "[pipeline][allreduce]") {
    TwoNodes world(Mode::alone);
    std::vector<float> buffer(mib_of_floats), other(mib_of_floats);
    const offload::DirectCall inside_the_library(Call::Comm_dup);
    CHECK(cut_allreduce(buffer.data(), other.data(), mib_of_floats).has_value());
    CHECK_FALSE(segments_since(world.first).empty());
}

TEST_CASE("segmented Allreduce on one node stays with the library", "[pipeline][allreduce]") {
    FreshLibrary library;
    RunningEngine running(Mode::alone);
    REQUIRE(offload::agreement().one_node);
    std::vector<float> input(mib_of_floats), output(mib_of_floats);
    CHECK_FALSE(cut_allreduce(input.data(), output.data(), mib_of_floats).has_value());
}

TEST_CASE("segmented Allreduce returns the first error, after all segments",
          "[pipeline][allreduce]") {
    TwoNodes world(Mode::alone);
    static int calls;
    calls = 0;
    real.Iallreduce = [](const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm,
                         MPI_Request* request) {
        const int label = 100 + calls++;
        const int error = label == 101   ? MPI_ERR_OTHER
                          : label == 103 ? MPI_ERR_INTERN
                                         : MPI_SUCCESS;
        return fake::issue(label, {.looks = 2, .error = error}, request);
    };
    std::vector<float> input(mib_of_floats), output(mib_of_floats);
    const auto rc = cut_allreduce(input.data(), output.data(), mib_of_floats);
    REQUIRE(rc.has_value());
    CHECK(*rc == MPI_ERR_OTHER);
    CHECK(calls == 4);
    for (int label = 100; label < 104; ++label) CHECK_FALSE(fake::is_active(label));
}
