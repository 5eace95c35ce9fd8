// SPDX-License-Identifier: BSD-3-Clause
// A collective that no path of ours serves counts one reason, however many paths were asked.
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "offload/api/call_operations.hpp"
#include "pipeline/api.hpp"
#include "pipeline/api/calls_left.hpp"
#include "pipeline/candidate.hpp"
#include "pipeline/collective_call.hpp"
#include "pipeline/node/api.hpp"
#include "two_nodes.hpp"

using namespace vecmpi;
using namespace vecmpi::pipeline;

namespace {

// Every decline that something counted, by name.
class DeclinesCounted {
  public:
    DeclinesCounted() {
        count_for_tools(true);
        before_ = all();
    }
    ~DeclinesCounted() { count_for_tools(false); }
    std::vector<std::string> since() const {
        const Values now = all();
        std::vector<std::string> names;
        for (size_t i = 0; i < counters; ++i) {
            const CounterText& text = text_of(static_cast<Counter>(i));
            if (text.kind != CounterKind::decline) continue;
            names.insert(names.end(), now[i] - before_[i], text.name);
        }
        return names;
    }

  private:
    static constexpr auto counters = static_cast<size_t>(Counter::number_of_counters);
    using Values = std::array<uint64_t, counters>;
    static Values all() {
        Values values;
        for (size_t i = 0; i < counters; ++i)
            values[i] = counted_for_tools(static_cast<Counter>(i));
        return values;
    }
    Values before_;
};

constexpr int most_floats = 4096;

struct Row {
    const char* what;
    std::function<std::optional<int>(MPI_Count floats)> call;
};

// The blocking collectives that may be cut or scheduled.
std::vector<Row> blocking_collectives(float* send, float* receive) {
    const auto form = [](Call call) {
        return CollectiveForm{call, CollectiveForm::Kind::blocking};
    };
    static int counts[3];
    const auto same_for_all = [](MPI_Count floats) {
        for (int& count : counts) count = static_cast<int>(floats);
        return offload::RankArray(counts);
    };
    return {
        {"Allreduce",
         [=](MPI_Count n) {
             return pipeline::allreduce(form(Call::Allreduce), send, receive, n, MPI_FLOAT, MPI_SUM,
                                        MPI_COMM_WORLD);
         }},
        {"Reduce",
         [=](MPI_Count n) {
             return pipeline::reduce(form(Call::Reduce), send, receive, n, MPI_FLOAT, MPI_SUM, 0,
                                     MPI_COMM_WORLD);
         }},
        {"Reduce_scatter",
         [=](MPI_Count n) {
             return pipeline::reduce_scatter(form(Call::Reduce_scatter), send, receive,
                                             same_for_all(n), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
         }},
        {"Reduce_scatter_block",
         [=](MPI_Count n) {
             return pipeline::reduce_scatter_block(form(Call::Reduce_scatter_block), send, receive,
                                                   n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
         }},
        {"Bcast",
         [=](MPI_Count n) {
             return pipeline::bcast(form(Call::Bcast), receive, n, MPI_FLOAT, 0, MPI_COMM_WORLD);
         }},
        {"Allgather",
         [=](MPI_Count n) {
             return pipeline::allgather(form(Call::Allgather), send, n, MPI_FLOAT, receive, n,
                                        MPI_FLOAT, MPI_COMM_WORLD);
         }},
        {"Gather",
         [=](MPI_Count n) {
             return pipeline::gather(form(Call::Gather), send, n, MPI_FLOAT, receive, n, MPI_FLOAT,
                                     0, MPI_COMM_WORLD);
         }},
        {"Scatter",
         [=](MPI_Count n) {
             return pipeline::scatter(form(Call::Scatter), send, n, MPI_FLOAT, receive, n,
                                      MPI_FLOAT, 0, MPI_COMM_WORLD);
         }},
        {"Alltoall",
         [=](MPI_Count n) {
             return pipeline::alltoall(form(Call::Alltoall), send, n, MPI_FLOAT, receive, n,
                                       MPI_FLOAT, MPI_COMM_WORLD);
         }},
    };
}

using Reasons = std::vector<std::string>;

void check_each_counts(const Reasons& reasons, MPI_Count floats, bool node_declines = false) {
    std::vector<float> send(3 * most_floats), receive(3 * most_floats);
    // Whether it is there is asked; it is never called.
    real.Iallgatherv_c = [](const void*, MPI_Count, MPI_Datatype, void*, const MPI_Count[],
                            const MPI_Aint[], MPI_Datatype, MPI_Comm,
                            MPI_Request*) { return MPI_ERR_OTHER; };
    for (const Row& row : blocking_collectives(send.data(), receive.data())) {
        INFO(row.what);
        const DeclinesCounted declines;
        if (node_declines) pipeline::node::note_node_decline();
        CHECK_FALSE(row.call(floats).has_value());
        CHECK(declines.since() == reasons);
    }
    real.Iallgatherv_c = nullptr;
}

}  // namespace

TEST_CASE("a declined collective counts one reason: on one node", "[pipeline][declines]") {
    FreshLibrary library;
    fake::facts_of(MPI_COMM_WORLD).size = 3;
    RunningEngine running(Mode::alone);
    REQUIRE(offload::agreement().one_node);
    check_each_counts({"decline_layout"}, most_floats);
}

TEST_CASE("a collective that the node's part declined is not counted again",
          "[pipeline][declines]") {
    FreshLibrary library;
    fake::facts_of(MPI_COMM_WORLD).size = 3;
    RunningEngine running(Mode::alone);
    check_each_counts({}, most_floats, true);
    check_each_counts({"decline_layout"}, most_floats);  // the calls after those
}

TEST_CASE("a declined collective counts one reason: of a few bytes", "[pipeline][declines]") {
    TwoNodes world(Mode::alone);
    check_each_counts({"decline_small"}, 16);
}

TEST_CASE("a call of a few bytes over hosts is the library's at once", "[pipeline][declines]") {
    offload::Agreement agreed{.valid = true, .one_node = false};
    calls_left = calls_left_of(agreed, {});
    offload::Parameters<calls::Ireduce> sum{.count = 1, .datatype = MPI_DOUBLE, .op = MPI_SUM};
    sum.comm = MPI_COMM_WORLD;
    const auto is_small = [&]() { return is_surely_librarys<Collective::reduce>(sum); };
    CHECK(is_small());
    sum.count = 511;
    CHECK(is_small());
    sum.count = 512;
    CHECK_FALSE(is_small());
    sum.count = 1;
    sum.datatype = static_cast<MPI_Datatype>(0xcc000001u);
    CHECK_FALSE(is_small());
    sum.datatype = MPI_DOUBLE;
    sum.op = static_cast<MPI_Op>(0x98000001u);  // the program's
    CHECK_FALSE(is_small());
    // The memory of nodes may serve it, where ranks share them.
    offload::Parameters<calls::Iallreduce> total{.count = 1, .datatype = MPI_DOUBLE, .op = MPI_SUM};
    total.comm = MPI_COMM_WORLD;
    CHECK_FALSE(is_surely_librarys<Collective::allreduce>(total));
    sum.op = MPI_SUM;
    sum.comm = MPI_COMM_WORLD + 1;  // of one node, perhaps
    CHECK_FALSE(is_small());
    agreed.alone_on_nodes = true;
    calls_left = calls_left_of(agreed, {});
    CHECK(is_small());
    CHECK(is_surely_librarys<Collective::allreduce>(total));
    Settings node_memory;
    node_memory.intranode = IntranodeMode::on;
    calls_left = calls_left_of(agreed, node_memory);
    CHECK_FALSE(is_surely_librarys<Collective::allreduce>(total));
    calls_left = calls_left_of({.valid = true}, {});  // one node
    sum.comm = MPI_COMM_WORLD;
    CHECK_FALSE(is_small());
    calls_left = calls_left_of(agreed, {});
    // Each side that counts, where it does.
    char data[8];
    offload::Parameters<calls::Igather> gather{.sendbuf = data, .sendcount = 1};
    gather.sendtype = MPI_DOUBLE;
    gather.comm = MPI_COMM_WORLD;
    CHECK(is_surely_librarys<Collective::gather>(gather));
    gather.sendbuf = MPI_IN_PLACE;
    CHECK_FALSE(is_surely_librarys<Collective::gather>(gather));
    offload::Parameters<calls::Iscatter> scatter{.sendbuf = data, .recvbuf = MPI_IN_PLACE};
    scatter.recvcount = 1;
    scatter.recvtype = MPI_DOUBLE;
    scatter.comm = MPI_COMM_WORLD;
    CHECK_FALSE(is_surely_librarys<Collective::scatter>(scatter));
    scatter.recvbuf = data;
    CHECK(is_surely_librarys<Collective::scatter>(scatter));
    calls_left = {};
    CHECK_FALSE(is_surely_librarys<Collective::scatter>(scatter));
}

TEST_CASE("a call without elements is the library's at once on one node", "[pipeline][declines]") {
    calls_left = calls_left_of({.valid = true, .one_node = true}, {});
    offload::Parameters<calls::Iallreduce> total{.datatype = MPI_DOUBLE, .op = MPI_SUM};
    const auto is_left = [&]() { return is_surely_librarys<Collective::allreduce>(total); };
    CHECK(is_left());
    total.count = 1;
    CHECK_FALSE(is_left());
    total.count = -1;
    CHECK_FALSE(is_left());
    total.count = 0;
    total.op = static_cast<MPI_Op>(0x98000002u);  // of the program
    CHECK_FALSE(is_left());
    char data[8];
    offload::Parameters<calls::Igather> gather{.sendbuf = data, .recvcount = 1};
    CHECK(is_surely_librarys<Collective::gather>(gather));
    gather.sendbuf = MPI_IN_PLACE;
    CHECK_FALSE(is_surely_librarys<Collective::gather>(gather));
    offload::Parameters<calls::Ialltoall> exchange{.recvbuf = data};
    CHECK(is_surely_librarys<Collective::alltoall>(exchange));
    exchange.recvcount = 1;
    CHECK_FALSE(is_surely_librarys<Collective::alltoall>(exchange));
    total.op = MPI_SUM;
    calls_left = calls_left_of({.valid = true, .one_node = false}, {});
    total.comm = MPI_COMM_WORLD;
    CHECK_FALSE(is_left());
    calls_left = {};
    CHECK_FALSE(is_left());
}

TEST_CASE("a reduction by an operator of the program is the library's at once on one node",
          "[pipeline][declines]") {
    constexpr bool allreduce = true, other = false;
    offload::Agreement agreed{.valid = true, .one_node = true};
    calls_left = calls_left_of(agreed, {});
    offload::Parameters<calls::Iallreduce> sum{.count = 1, .datatype = MPI_DOUBLE, .op = MPI_SUM};
    sum.comm = MPI_COMM_WORLD;
    CHECK_FALSE(is_left_with_user_op<allreduce>(sum));
    sum.op = static_cast<MPI_Op>(0x98000001u);  // the program's
    CHECK(is_left_with_user_op<allreduce>(sum));
    sum.count = (1 << 17) - 1;
    CHECK(is_left_with_user_op<allreduce>(sum));
    sum.count = 1 << 17;  // may be scattered
    CHECK_FALSE(is_left_with_user_op<allreduce>(sum));
    CHECK(is_left_with_user_op<other>(sum));
    sum.datatype = static_cast<MPI_Datatype>(0xcc000001u);
    for (const int count : {-1, 0, 1, 2, 3}) {
        CAPTURE(count);
        sum.count = count;
        CHECK(is_left_with_user_op<allreduce>(sum) == (count >= 0 && count < 3));
        CHECK(is_left_with_user_op<other>(sum));
    }
    sum.count = 1;
    sum.datatype = MPI_DOUBLE;
    private_comms_wanted = 1;  // this call may have to make one
    CHECK_FALSE(is_left_with_user_op<allreduce>(sum));
    CHECK_FALSE(is_left_with_user_op<other>(sum));
    private_comms_wanted = 0;
    Settings reproducible;
    reproducible.reproducible = true;
    calls_left = calls_left_of(agreed, reproducible);
    CHECK_FALSE(is_left_with_user_op<allreduce>(sum));
    agreed.one_node = false;
    calls_left = calls_left_of(agreed, {});
    CHECK_FALSE(is_left_with_user_op<allreduce>(sum));
    calls_left = {};
    CHECK_FALSE(is_left_with_user_op<other>(sum));
}

TEST_CASE("calls over hosts are not counted for a node's memory", "[pipeline][declines]") {
    const TwoNodes world(Mode::alone);
    calls_left = calls_left_of(offload::agreement(), {});
    float data[2]{};
    const CollectiveForm form{Call::Bcast};
    for (uint64_t i = 0; i < 2 * pipeline::node::calls_before_sharing(); ++i)
        CHECK_FALSE(pipeline::node::bcast(form, data, 2, MPI_FLOAT, 0, MPI_COMM_WORLD).has_value());
    CHECK(fake::reductions().size() == world.first);
    calls_left = {};
}

TEST_CASE("a declined collective counts one reason: with other worlds", "[pipeline][declines]") {
    TwoNodes world(Mode::alone);
    fake::facts_of(MPI_COMM_WORLD).inter = true;
    offload::forget_comm_traits();
    check_each_counts({"decline_foreign"}, 16);
}

TEST_CASE("the reason of a decline", "[pipeline][declines]") {
    const auto counted = [](const std::vector<Counter>& noted, std::optional<int> served) {
        const DeclinesCounted declines;
        Decline decline;
        for (Counter why : noted) decline.note(why);
        CHECK(decline.count_unless(served) == served);
        return declines.since();
    };
    constexpr Counter setting = Counter::decline_setting, small = Counter::decline_small;
    constexpr Counter type = Counter::decline_type;
    CHECK(counted({}, std::nullopt).empty());
    CHECK(counted({type, small}, std::nullopt) == Reasons{"decline_type"});  // the first
    CHECK(counted({setting, small, type}, std::nullopt) == Reasons{"decline_small"});
    CHECK(counted({setting, setting}, std::nullopt) == Reasons{"decline_setting"});
    CHECK(counted({type, small}, MPI_SUCCESS).empty());  // a later path served it
    CHECK(counted({setting}, MPI_ERR_OTHER).empty());
}

TEST_CASE("a message of a schedule may hold the blocks of several ranks", "[pipeline][declines]") {
    using pipeline::most_in_message;
    constexpr int64_t block = int64_t{1} << 26;
    CHECK(most_in_message(Collective::allreduce, block, 64) == block);
    CHECK(most_in_message(Collective::bcast, block, 64) == block);
    for (const Collective collective :
         {Collective::gather, Collective::scatter, Collective::alltoall, Collective::allgather,
          Collective::allgatherv, Collective::reduce_scatter})
        CHECK(most_in_message(collective, block, 64) == 64 * block);
    CHECK(most_in_message(Collective::gather, INT64_MAX / 2, 3) == INT64_MAX);
}
