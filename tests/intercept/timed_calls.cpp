// SPDX-License-Identifier: BSD-3-Clause
// The generated timed entries: what the report counts of a call, on a fake engine. That they serve
// as the others do follows from the one serve_X behind both.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/counter_snapshot.hpp"
#include "fake_engine.hpp"
#include "served.hpp"

using namespace vecmpi;
using test::fake;
using test::timed;

namespace {

constexpr MPI_Comm comm = 0x44000000;
constexpr MPI_Datatype derived = static_cast<MPI_Datatype>(0xcc000001u);

// Fresh engine and report.
class Reported {
  public:
    Reported() {
        test::reset();
        begin_report();
        empty_report();
    }
    ~Reported() { count_for_report(false); }
};

uint64_t calls_of(Call call, Path path) {
    return counter_snapshot()[calls_index(static_cast<size_t>(call), path)];
}

uint64_t bytes(Call call) {
    const std::vector<uint64_t> now = counter_snapshot();
    uint64_t sum = 0;
    for (size_t path = 0; path < number_of_paths; ++path)
        sum += now[bytes_index(static_cast<size_t>(call), static_cast<Path>(path))];
    return sum;
}

uint64_t all_calls() {
    const std::vector<uint64_t> now = counter_snapshot();
    uint64_t sum = 0;
    for (size_t i = number_of_events; i < after_calls; i += numbers_of_call) sum += now[i];
    return sum;
}

int send(MPI_Datatype type, int count = 3) {
    return timed<calls::Send>(nullptr, count, type, 1, 2, comm);
}

int nested_send(const void*, int, MPI_Datatype, int, int, MPI_Comm) {
    return timed<calls::Barrier>(comm);  // as a callback of the program's would
}

}  // namespace

TEST_CASE("timed: one row for a call, with its bytes and result", "[handlers][timed]") {
    const Reported reported;
    fake.result = 77;
    CHECK(send(MPI_INT) == 77);
    CHECK(calls_of(Call::Send, Path::library) == 1);
    CHECK(bytes(Call::Send) == 12);
    CHECK(send(derived, 2) == 77);
    CHECK(bytes(Call::Send) == 12 + 48);
    CHECK(all_calls() == 2);
}

TEST_CASE("timed: arguments that the library may refuse count as nothing", "[handlers][timed]") {
    const Reported reported;
    send(MPI_DATATYPE_NULL);
    send(0);
    send(MPI_INT, -5);
    fake.quiet = false;
    send(derived);
    CHECK(bytes(Call::Send) == 0);
    timed<calls::Alltoallv>(nullptr, nullptr, nullptr, MPI_INT, nullptr, nullptr, nullptr, MPI_INT,
                            comm);
    timed<calls::Reduce_scatter>(nullptr, nullptr, nullptr, MPI_INT, MPI_SUM, MPI_COMM_NULL);
    CHECK(bytes(Call::Alltoallv) == 0);
    CHECK(all_calls() == 6);
}

TEST_CASE("timed: what is not the program's call is not counted", "[handlers][timed]") {
    const Reported reported;
    fake.reentrant = true;
    send(MPI_INT);
    fake.reentrant = false;
    fake.runs = false;
    send(MPI_INT);
    fake.runs = true;
    count_for_report(false);
    send(MPI_INT);
    CHECK(all_calls() == 0);
}

TEST_CASE("timed: requests complete, other calls are the library's", "[handlers][timed]") {
    const Reported reported;
    MPI_Request request = MPI_REQUEST_NULL;
    timed<calls::Wait>(&request, MPI_STATUS_IGNORE);
    CHECK(calls_of(Call::Wait, Path::completion) == 1);
    real.Comm_rank = [](MPI_Comm, int* rank) { return *rank = 2, 5; };
    int rank = 0;
    CHECK(timed<calls::Comm_rank>(comm, &rank) == 5);
    CHECK(rank == 2);
    CHECK(calls_of(Call::Comm_rank, Path::library) == 1);
}

TEST_CASE("timed: bytes of collectives are what this rank gives", "[handlers][timed]") {
    const Reported reported;
    real.Comm_rank = [](MPI_Comm, int* rank) { return *rank = 1, MPI_SUCCESS; };
    int data[16] = {};
    const int counts[] = {1, 2, 4}, places[] = {0, 1, 3};

    timed<calls::Allgather>(data, 2, MPI_INT, data, 9, MPI_INT, comm);
    CHECK(bytes(Call::Allgather) == 8);
    timed<calls::Allgather>(MPI_IN_PLACE, 99, MPI_DATATYPE_NULL, data, 3, MPI_INT, comm);
    CHECK(bytes(Call::Allgather) == 8 + 12);
    MPI_Request request;
    timed<calls::Iallgather>(data, 2, MPI_DOUBLE, data, 2, MPI_DOUBLE, comm, &request);
    CHECK(bytes(Call::Iallgather) == 16);
    timed<calls::Allgatherv>(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, counts, places, MPI_INT,
                             comm);
    CHECK(bytes(Call::Allgatherv) == 8);
    timed<calls::Scatter>(data, 99, MPI_INT, data, 2, MPI_INT, 0, comm);
    CHECK(bytes(Call::Scatter) == 8);
    timed<calls::Scatter>(data, 2, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, 0, comm);
    CHECK(bytes(Call::Scatter) == 16);
    timed<calls::Alltoall>(data, 2, MPI_INT, data, 2, MPI_INT, comm);
    CHECK(bytes(Call::Alltoall) == 24);
    timed<calls::Alltoallv>(data, counts, places, MPI_INT, data, counts, places, MPI_INT, comm);
    CHECK(bytes(Call::Alltoallv) == 28);
    timed<calls::Reduce_scatter>(data, data, counts, MPI_INT, MPI_SUM, comm);
    timed<calls::Reduce_scatter_block>(data, data, 2, MPI_INT, MPI_SUM, comm);
    CHECK(bytes(Call::Reduce_scatter) == 28);
    CHECK(bytes(Call::Reduce_scatter_block) == 24);
    timed<calls::Barrier>(comm);
    CHECK(bytes(Call::Barrier) == 0);
    timed<calls::Neighbor_allgather>(data, 2, MPI_INT, data, 2, MPI_INT, comm);
    CHECK(bytes(Call::Neighbor_allgather) == 8);
    timed<calls::Allreduce_c>(data, data, 2, MPI_DOUBLE, MPI_SUM, comm);
    CHECK(bytes(Call::Allreduce_c) == 16);

    fake.between_groups = true;  // whose counts an array has differs from call to call
    timed<calls::Reduce_scatter>(data, data, counts, MPI_INT, MPI_SUM, comm);
    CHECK(bytes(Call::Reduce_scatter) == 28);
}

TEST_CASE("timed: the same bytes on every path", "[handlers][timed]") {
    const Reported reported;
    double data[4] = {};
    const auto allreduce = [&] {
        timed<calls::Allreduce>(data, data, 4, MPI_DOUBLE, MPI_SUM, comm);
    };
    fake.intranode = MPI_SUCCESS;
    allreduce();
    CHECK(bytes(Call::Allreduce) == 32);
    fake.intranode.reset();
    fake.pipeline = MPI_SUCCESS;
    allreduce();
    CHECK(bytes(Call::Allreduce) == 64);
    fake.pipeline.reset();
    allreduce();
    CHECK(bytes(Call::Allreduce) == 96);
    fake.collective_twins = false;
    real.Allreduce = [](const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm) { return 0; };
    allreduce();
    CHECK(bytes(Call::Allreduce) == 128);
}

TEST_CASE("timed: calls inside a call count for themselves", "[handlers][timed]") {
    const Reported reported;
    fake.twins = false;
    real.Send = nested_send;
    send(MPI_INT);
    CHECK(calls_of(Call::Send, Path::library) == 1);
    CHECK(calls_of(Call::Barrier, Path::library) == 1);
    const std::vector<uint64_t> now = counter_snapshot();
    CHECK(now[mpi_time_index] <= now[run_time_index]);
}

TEST_CASE("timed: a call that is left by an exception", "[handlers][timed]") {
    const Reported reported;
    real.Comm_dup = [](MPI_Comm, MPI_Comm*) -> int { throw std::string("from a callback"); };
    MPI_Comm copy;
    CHECK_THROWS_AS(timed<calls::Comm_dup>(comm, &copy), std::string);
    CHECK(calls_of(Call::Comm_dup, Path::library) == 1);
    fake.twins = true;
    send(MPI_INT);
    CHECK(calls_of(Call::Send, Path::library) == 1);
}
