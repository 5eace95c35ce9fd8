// SPDX-License-Identifier: BSD-3-Clause
// Settings: every kind of value, the problem line, the warnings, and the agreement of ranks.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/api.hpp"
#include "base/setting_values.hpp"

using namespace vecmpi;
using namespace vecmpi::base;

namespace {

SettingsResult parse(const std::vector<std::string>& entries) {
    std::vector<const char*> environment;
    for (const std::string& entry : entries) environment.push_back(entry.c_str());
    environment.push_back(nullptr);
    return parse_settings(environment.data());
}

CollectivePath path_at(const char* text, size_t bytes) {
    PathRanges ranges;
    REQUIRE(read_allreduce(text, ranges));
    return ranges.at(bytes);
}

// One reader for each collective, with the words that only some of them know.
struct Reader {
    const char* name;
    bool (*read)(std::string_view text, PathRanges& value);
    PathRanges Settings::*paths;
    std::vector<CollectivePath> algorithms;
    bool has_segments = true;
};

const std::vector<Reader>& readers() {
    using enum CollectivePath;
    static const std::vector<Reader> all = {
        {"VECMPI_ALLREDUCE",
         read_allreduce,
         &Settings::allreduce,
         {ring, rabenseifner, recursive_doubling, recursive_halving, hierarchical}},
        {"VECMPI_REDUCE", read_reduce, &Settings::reduce, {chain, binomial, rabenseifner}},
        {"VECMPI_REDUCE_SCATTER",
         read_reduce_scatter,
         &Settings::reduce_scatter,
         {ring, recursive_halving}},
        {"VECMPI_BCAST",
         read_bcast,
         &Settings::bcast,
         {chain, binomial, scatter_allgather, circulant}},
        {"VECMPI_ALLGATHER", read_allgather, &Settings::allgather, {ring, bruck}},
        {"VECMPI_ALLTOALL",
         read_alltoall,
         &Settings::alltoall,
         {hierarchical, bruck, pairwise},
         false},
    };
    return all;
}

}  // namespace

TEST_CASE("parse_bytes reads sizes and refuses the rest", "[base][settings]") {
    struct Case {
        const char* text;
        size_t bytes;
    };
    for (auto [text, bytes] : std::vector<Case>{{"0", 0},
                                                {"1", 1},
                                                {"64K", 65536},
                                                {"64k", 65536},
                                                {"4M", 4U << 20},
                                                {"1G", 1U << 30},
                                                {"007", 7},
                                                {"max", SIZE_MAX},
                                                {"MAX", SIZE_MAX},
                                                {"17179869183G", 17179869183ULL << 30},
                                                {"18446744073709551615", SIZE_MAX}}) {
        size_t parsed = 42;
        CAPTURE(text);
        CHECK(parse_bytes(text, parsed));
        CHECK(parsed == bytes);
    }
    for (const char* text : {"", "K", "-1", "+1", "1T", "1KB", "1 K", " 1", "1 ", "0x10", "1.5M",
                             "maxi", "17179869184G", "18446744073709551616", "18014398509481984K",
                             "99999999999999999999999"}) {
        size_t parsed = 42;
        CAPTURE(text);
        CHECK_FALSE(parse_bytes(text, parsed));
        CHECK(parsed == 42);
    }
}

TEST_CASE("format_bytes cuts to one decimal", "[base][settings]") {
    CHECK(format_bytes(0) == "0 B");
    CHECK(format_bytes(1023) == "1023 B");
    CHECK(format_bytes(1024) == "1 KiB");
    CHECK(format_bytes(1536) == "1.5 KiB");
    CHECK(format_bytes((1 << 20) - 1) == "1023.9 KiB");
    CHECK(format_bytes(64ULL << 20) == "64 MiB");
    CHECK(format_bytes(5ULL << 40) == "5 TiB");
    CHECK(format_bytes(UINT64_MAX) == "15.9 EiB");
}

TEST_CASE("PathRanges: inclusive start, exclusive end, last range wins", "[base][settings]") {
    using enum CollectivePath;
    CHECK(PathRanges().at(0) == automatic);
    CHECK(path_at("mpi", 0) == mpi);
    CHECK(path_at("mpi", SIZE_MAX) == mpi);
    CHECK(path_at("segmented:1M-max", (1 << 20) - 1) == automatic);
    CHECK(path_at("segmented:1M-max", 1 << 20) == segmented);
    CHECK(path_at("segmented:1M-max", SIZE_MAX) == segmented);
    CHECK(path_at("mpi:0-4K", 4095) == mpi);
    CHECK(path_at("mpi:0-4K", 4096) == automatic);
    CHECK(path_at("mpi;segmented:1K-2K", 1023) == mpi);
    CHECK(path_at("mpi;segmented:1K-2K", 1024) == segmented);
    CHECK(path_at("mpi;segmented:1K-2K", 2048) == mpi);
    CHECK(path_at("segmented:1K-2K;mpi", 1024) == mpi);
    CHECK(path_at("MPI:0-1K,Segmented:1K-MAX", 5000) == segmented);
    CHECK(path_at(" mpi : 0 - 1K ; auto : 1K - 2K ", 512) == mpi);
    for (const char* text : {"fast", "mpi:", "mpi:1K", "mpi:1K-", "mpi:-1K", "mpi:2K-1K",
                             "mpi:1K-1K", "mpi:max-max", ";", "mpi;", "mpi;;auto", "bruck:0-max",
                             "mpi:0-1K-2K", "mpi:0-20000000000G", "0-1K:mpi"}) {
        PathRanges ranges;
        CAPTURE(text);
        CHECK_FALSE(read_allreduce(text, ranges));
        CHECK(ranges.ranges.empty());
    }
}

TEST_CASE("Each collective takes its own algorithms and no others", "[base][settings]") {
    for (const Reader& reader : readers())
        for (int number = 0; number < static_cast<int>(number_of_collective_paths); ++number) {
            const auto path = static_cast<CollectivePath>(number);
            INFO(reader.name << " " << name_of(path));
            const bool is_common = path < CollectivePath::segmented ||
                                   (path == CollectivePath::segmented && reader.has_segments);
            const bool is_known = is_common || std::count(reader.algorithms.begin(),
                                                          reader.algorithms.end(), path) == 1;
            PathRanges ranges;
            CHECK(reader.read(name_of(path), ranges) == is_known);
            const auto result = parse({std::string(reader.name) + "=" + name_of(path) + ":1K-2K"});
            CHECK(result.problem.empty() == is_known);
            if (is_known) {
                CHECK(ranges.at(5) == path);
                CHECK((result.settings.*reader.paths).at(1024) == path);
                continue;
            }
            // The error line names every word that is accepted.
            for (CollectivePath other : reader.algorithms)
                CHECK(result.problem.find(name_of(other)) != std::string::npos);
        }
}

TEST_CASE("read_network: constants with units", "[base][settings]") {
    struct Case {
        const char* text;
        NetworkSetting expected;
    };
    for (const auto& [text, expected] : std::vector<Case>{
             {"auto", {}},
             {"latency=30us", {30000, -1, -1}},
             {"latency=30us,bandwidth=1Gbit", {30000, 125000000, -1}},
             {"latency = 1.5us ; bandwidth = 12.5 GB/s ; overhead=250ns", {1500, 12500000000, 250}},
             {"OVERHEAD=0us,LATENCY=2MS", {2000000, -1, 0}},
             {"bandwidth=100Mbit", {-1, 12500000, -1}},
             {"bandwidth=500mb/s", {-1, 500000000, -1}},
             {"latency=1us,latency=2us", {2000, -1, -1}},
             {"bandwidth=400gbit/s", {-1, 50000000000, -1}}}) {
        NetworkSetting network;
        CAPTURE(text);
        CHECK(read_network(text, network));
        CHECK(network == expected);
    }
    for (const char* text : {"fast",
                             "latency",
                             "latency=",
                             "latency=30",
                             "latency=us",
                             "latency=-1us",
                             "latency=1.us",
                             "latency=.5us",
                             "latency=1.2.3us",
                             "latency=1.0001us",
                             "latency=2000ms",
                             "latency=1s",
                             "bandwidth=0Gbit",
                             "bandwidth=0.000GB",
                             "bandwidth=1Gb it",
                             "bandwidth=1K",
                             "bandwidth=9999999999GB",
                             "bandwidth=999999999GB",
                             "latency=1us,",
                             ",",
                             "speed=1Gbit",
                             "latency=1Gbit",
                             "bandwidth=1us",
                             "latency=1us bandwidth=1Gbit"}) {
        NetworkSetting network;
        CAPTURE(text);
        CHECK_FALSE(read_network(text, network));
        CHECK(network == NetworkSetting{});
    }
}

TEST_CASE("An empty environment gives the defaults", "[base][settings]") {
    for (const SettingsResult& result :
         {parse_settings(nullptr), parse({}), parse({"VECMPI_WAIT=", "VECMPI= ", "PATH=/bin"})}) {
        CHECK(result.problem.empty());
        CHECK(result.warnings.empty());
        CHECK(result.settings.enabled);
        CHECK(result.settings.offload == OffloadMode::automatic);
        CHECK(result.settings.wait == WaitMode::automatic);
        CHECK(result.settings.log == LogLevel::warn);
        CHECK(result.agreement_hash == parse({}).agreement_hash);
    }
}

TEST_CASE("The defaults of the table are those of struct Settings", "[base][settings]") {
    std::vector<std::string> entries;
    for (const SettingText& setting : setting_texts())
        entries.push_back(std::string(setting.name) + "=" + setting.default_value);
    SettingsResult result = parse(entries);
    Settings plain;
    CHECK(result.problem.empty());
    CHECK(result.warnings.empty());
    CHECK(result.agreement_hash == parse({}).agreement_hash);
    CHECK(result.settings.enabled == plain.enabled);
    CHECK(result.settings.offload == plain.offload);
    CHECK(result.settings.cpu.kind == plain.cpu.kind);
    CHECK(result.settings.wait == plain.wait);
    CHECK(result.settings.segments == plain.segments);
    CHECK(result.settings.segment_bytes == plain.segment_bytes);
    CHECK(result.settings.network == plain.network);
    CHECK(result.settings.reproducible == plain.reproducible);
    CHECK(result.settings.report.kind == plain.report.kind);
    CHECK(result.settings.log == plain.log);
}

TEST_CASE("Every setting takes what it accepts", "[base][settings]") {
    SettingsResult result = parse(
        {"VECMPI=OFF", "VECMPI_OFFLOAD=On", "VECMPI_CPU= 3, 7 ", "VECMPI_WAIT=sleep",
         "VECMPI_SEGMENTS=64", "VECMPI_ALLREDUCE=segmented:1M-max", "VECMPI_BCAST=mpi",
         "VECMPI_REDUCE=mpi:0-1M;chain:1M-max", "VECMPI_NETWORK=latency=2us,bandwidth=100Gbit",
         "VECMPI_REPRODUCIBLE=on", "VECMPI_REPORT=JSON:/tmp/Report.json", "VECMPI_LOG=debug"});
    CHECK(result.problem.empty());
    CHECK(result.warnings.empty());
    const Settings& settings = result.settings;
    CHECK_FALSE(settings.enabled);
    CHECK(settings.offload == OffloadMode::on);
    CHECK(settings.cpu.kind == CpuChoice::Kind::list);
    CHECK(settings.cpu.cpus == std::vector<int>{3, 7});
    CHECK(settings.wait == WaitMode::sleep);
    CHECK(settings.segments == 64);
    CHECK(settings.allreduce.at(2 << 20) == CollectivePath::segmented);
    CHECK(settings.bcast.at(0) == CollectivePath::mpi);
    CHECK(settings.reduce.at(2 << 20) == CollectivePath::chain);
    CHECK(settings.network == NetworkSetting{2000, 12500000000, -1});
    CHECK(settings.reproducible);
    CHECK(settings.report.kind == ReportTarget::Kind::json);
    CHECK(settings.report.file == "/tmp/Report.json");
    CHECK(settings.log == LogLevel::debug);
    CHECK(parse({"VECMPI_SEGMENT_BYTES=64K"}).settings.segment_bytes == 65536);
    CHECK(parse({"VECMPI_SINGLE_COPY=64K"}).settings.single_copy == 65536);
    CHECK(parse({"VECMPI_SINGLE_COPY=Off"}).settings.single_copy == SIZE_MAX);
    CHECK(parse({"VECMPI_SINGLE_COPY=auto"}).settings.single_copy == 0);
    CHECK(parse({"VECMPI_CPU=None"}).settings.cpu.kind == CpuChoice::Kind::none);
    CHECK(parse({"VECMPI_REPORT=summary"}).settings.report.kind == ReportTarget::Kind::summary);
    const auto both = parse({"VECMPI_REPORT=Summary, json: a,b.json"});
    CHECK(both.problem.empty());
    CHECK(both.settings.report.kind == ReportTarget::Kind::summary_and_json);
    CHECK(both.settings.report.file == "a,b.json");
    // As getenv: the first entry of a name counts.
    CHECK(parse({"VECMPI_WAIT=spin", "VECMPI_WAIT=yield"}).settings.wait == WaitMode::spin);
}

TEST_CASE("A bad value names variable, value and what is accepted", "[base][settings]") {
    CHECK(parse({"VECMPI_WAIT=fast"}).problem ==
          "VECMPI_WAIT=fast: accepted are auto, spin, yield, sleep");
    for (const char* entry : {"VECMPI=1",
                              "VECMPI_OFFLOAD=yes",
                              "VECMPI_CPU=3;7",
                              "VECMPI_CPU=3,",
                              "VECMPI_CPU=-1",
                              "VECMPI_CPU=1048576",
                              "VECMPI_CPU=x",
                              "VECMPI_SEGMENTS=0",
                              "VECMPI_SEGMENTS=65",
                              "VECMPI_SEGMENTS=4K",
                              "VECMPI_SEGMENTS=99999999999",
                              "VECMPI_SEGMENT_BYTES=1023",
                              "VECMPI_SEGMENT_BYTES=max",
                              "VECMPI_SEGMENT_BYTES=99999999999G",
                              "VECMPI_SINGLE_COPY=on",
                              "VECMPI_SINGLE_COPY=512",
                              "VECMPI_ALLREDUCE=chain",
                              "VECMPI_NETWORK=10Gbit",
                              "VECMPI_ALLGATHER=mpi:2M-1M",
                              "VECMPI_REPRODUCIBLE=maybe",
                              "VECMPI_REPORT=json:",
                              "VECMPI_REPORT=json",
                              "VECMPI_REPORT=summary,",
                              "VECMPI_REPORT=summary,json:",
                              "VECMPI_REPORT=json:r.json,summary",
                              "VECMPI_REPORT=text",
                              "VECMPI_LOG=7"}) {
        std::string problem = parse({entry}).problem;
        CAPTURE(entry);
        CHECK(problem.starts_with(std::string(entry) + ": accepted are "));
        CHECK(problem.find('\n') == std::string::npos);
    }
}

TEST_CASE("The first bad value in the order of the table is the problem", "[base][settings]") {
    CHECK(parse({"VECMPI_LOG=x", "VECMPI_WAIT=x", "VECMPI_REPORT=x"})
              .problem.starts_with("VECMPI_WAIT=x"));
}

TEST_CASE("A bad value is shortened and kept on one line", "[base][settings]") {
    std::string problem = parse({"VECMPI_WAIT=a\nb" + std::string(500, 'x')}).problem;
    CHECK(problem.starts_with("VECMPI_WAIT=a?bxxx"));
    CHECK(problem.size() < 200);
}

TEST_CASE("Number and size of segments exclude each other", "[base][settings]") {
    CHECK(parse({"VECMPI_SEGMENTS=4", "VECMPI_SEGMENT_BYTES=64K"}).problem ==
          "VECMPI_SEGMENTS=4 and VECMPI_SEGMENT_BYTES=64K: accepted is one of them, the other auto "
          "or unset");
    CHECK(parse({"VECMPI_SEGMENTS=4", "VECMPI_SEGMENT_BYTES=auto"}).problem.empty());
    CHECK(parse({"VECMPI_SEGMENTS=auto", "VECMPI_SEGMENT_BYTES=1K"}).problem.empty());
}

TEST_CASE("Unknown names are warned about with the nearest real one", "[base][settings]") {
    struct Case {
        const char* name;
        const char* meant;
    };
    for (auto [name, meant] :
         std::vector<Case>{{"VECMPI_SEGMENT", "VECMPI_SEGMENTS"},
                           {"VECMPI_SEGMENTS_BYTES", "VECMPI_SEGMENT_BYTES"},
                           {"VECMPI_WIAT", "VECMPI_WAIT"},
                           {"VECMPI_CPUS", "VECMPI_CPU"},
                           {"VECMPI_ALLREDCUE", "VECMPI_ALLREDUCE"},
                           {"VECMPI_LGO", "VECMPI_LOG"},
                           {"VECMPI_REDUCESCATTER", "VECMPI_REDUCE_SCATTER"}}) {
        auto warnings = parse({std::string(name) + "=1"}).warnings;
        REQUIRE(warnings.size() == 1);
        CHECK(warnings[0] == std::string(name) + ": unknown setting, did you mean " + meant + "?");
    }
    for (const char* name : {"VECMPI_ZZZZ", "VECMPI_", "VECMPI_wait_and_see_what_comes"}) {
        auto warnings = parse({std::string(name) + "=1"}).warnings;
        REQUIRE(warnings.size() == 1);
        CHECK(warnings[0].starts_with(std::string(name) + ": unknown setting, vecmpi-info"));
    }
    CHECK(parse({"VECMPI_CACHE=/tmp", "VECMPI_LIBRARY=x", "VECMPIX=1", "MY_VECMPI_WAIT=1"})
              .warnings.empty());
}

TEST_CASE("The agreement hash sees meanings, and only what ranks must share", "[base][settings]") {
    auto hash = [](const char* entry) { return parse({entry}).agreement_hash; };
    uint64_t plain = parse({}).agreement_hash;
    CHECK(hash("VECMPI_WAIT=spin") == plain);
    CHECK(hash("VECMPI_OFFLOAD=off") == plain);
    CHECK(hash("VECMPI_CPU=1,2") == plain);
    CHECK(hash("VECMPI_LOG=debug") == plain);
    for (const char* entry :
         {"VECMPI=off", "VECMPI_SEGMENTS=4", "VECMPI_SEGMENT_BYTES=4K", "VECMPI_ALLREDUCE=mpi",
          "VECMPI_BCAST=mpi", "VECMPI_REDUCE=mpi", "VECMPI_REDUCE_SCATTER=mpi",
          "VECMPI_ALLGATHER=mpi", "VECMPI_ALLTOALL=mpi", "VECMPI_REPRODUCIBLE=on",
          "VECMPI_REPORT=summary", "VECMPI_NETWORK=latency=1us", "VECMPI_ALLREDUCE=ring"}) {
        CAPTURE(entry);
        CHECK(hash(entry) != plain);
    }
    CHECK(hash("VECMPI_BCAST=mpi") != hash("VECMPI_REDUCE=mpi"));
    CHECK(hash("VECMPI_SEGMENT_BYTES=64K") == hash("VECMPI_SEGMENT_BYTES=65536"));
    CHECK(hash("VECMPI_BCAST=mpi") == hash("VECMPI_BCAST=MPI:0-max"));
    CHECK(hash("VECMPI_BCAST=mpi:0-1K;mpi:1K-2K") == hash("VECMPI_BCAST=mpi:0-2048"));
    CHECK(hash("VECMPI_BCAST=mpi:0-1K") != hash("VECMPI_BCAST=mpi:0-2K"));
    CHECK(hash("VECMPI_BCAST=auto") == plain);
    CHECK(hash("VECMPI_NETWORK=auto") == plain);
    CHECK(hash("VECMPI_NETWORK=latency=1us") == hash("VECMPI_NETWORK=latency=1000ns"));
    CHECK(hash("VECMPI_NETWORK=bandwidth=8Mbit") == hash("VECMPI_NETWORK=bandwidth=1MB/s"));
}

TEST_CASE("process_settings reads once", "[base][settings]") {
    CHECK(&process_settings() == &process_settings());
    CHECK(&settings() == &process_settings().settings);
}
