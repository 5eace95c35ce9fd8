// SPDX-License-Identifier: BSD-3-Clause
// Seed, digests, checks and life of the battery's programs. Must not include anything of vecmpi.
#include "battery.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

namespace battery {

World world;

namespace {

std::deque<Digest> topics;  // a deque: references stay valid

[[noreturn]] void fail(const std::string& text, std::source_location where) {
    std::fprintf(stderr, "rank %d: %s:%u: mismatch: %s\n", world.rank, where.file_name(),
                 where.line(), text.c_str());
    std::fflush(nullptr);
    std::_Exit(1);  // not MPI_Abort: the library may be what is broken
}

bool tracing() {
    static const bool on = std::getenv("BATTERY_TRACE") != nullptr;
    return on;
}

std::string my_lines() {
    std::string text;
    for (const Digest& digest : topics) {
        char line[200];
        std::snprintf(line, sizeof line, "rank %d %s: %016" PRIx64 " (%" PRIu64 " items)\n",
                      world.rank, digest.name().c_str(), digest.value(), digest.items());
        text += line;
    }
    return text;
}

}  // namespace

uint64_t mix(uint64_t value) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

uint64_t hash_bytes(const void* data, size_t bytes) {
    const auto* at = static_cast<const unsigned char*>(data);
    uint64_t hash = bytes;
    for (; bytes >= 8; bytes -= 8, at += 8) {
        uint64_t word;
        std::memcpy(&word, at, 8);
        hash = mix(hash ^ word) + 1;
    }
    for (; bytes > 0; --bytes, ++at) hash = mix(hash ^ *at) + 1;
    return hash;
}

uint64_t hash_of(const MPI_Status& status, MPI_Datatype type) {
    int count = 0;
    int cancelled = 0;
    MPI_Get_count(&status, type, &count);
    MPI_Test_cancelled(&status, &cancelled);
    const int items[4] = {status.MPI_SOURCE, status.MPI_TAG, count, cancelled};
    return hash_bytes(items, sizeof items);
}

void Digest::add(uint64_t item) {
    ordered_ = mix(ordered_ ^ item) + 1;
    ++items_;
    if (tracing())
        std::fprintf(stderr, "trace rank %d %s #%" PRIu64 " %016" PRIx64 "\n", world.rank,
                     name_.c_str(), items_, item);
}

void Digest::add_unordered(uint64_t item) {
    unordered_ += mix(item);
    ++items_;
    if (tracing())
        std::fprintf(stderr, "trace rank %d %s (any order) %016" PRIx64 "\n", world.rank,
                     name_.c_str(), item);
}

void Digest::add_bytes(const void* data, size_t bytes) { add(hash_bytes(data, bytes)); }

void Digest::add_status(const MPI_Status& status, MPI_Datatype type) { add(hash_of(status, type)); }

Digest& topic(const std::string& name) {
    for (Digest& digest : topics)
        if (digest.name() == name) return digest;
    return topics.emplace_back(name);
}

void check(bool truth, const char* what, std::source_location where) {
    if (!truth) fail(what, where);
}

void check_equal(int64_t found, int64_t expected, const char* what, std::source_location where) {
    if (found != expected)
        fail(std::string(what) + " is " + std::to_string(found) + ", expected " +
                 std::to_string(expected),
             where);
}

int error_class(int code) {
    int result = -1;
    MPI_Error_class(code, &result);
    return result;
}

void check_class(int code, int expected_class, const char* what, std::source_location where) {
    check_equal(error_class(code), expected_class, what, where);
}

void check_empty(const MPI_Status& status, std::source_location where) {
    int count = -1;
    int cancelled = -1;
    MPI_Get_count(&status, MPI_BYTE, &count);
    MPI_Test_cancelled(&status, &cancelled);
    check_equal(status.MPI_SOURCE, MPI_ANY_SOURCE, "source of an empty status", where);
    check_equal(status.MPI_TAG, MPI_ANY_TAG, "tag of an empty status", where);
    check_equal(count, 0, "count of an empty status", where);
    check_equal(cancelled, 0, "cancelled of an empty status", where);
}

void read_arguments(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            world.seed = std::strtoull(argv[++i], nullptr, 10);
        else if (world.argument.empty())
            world.argument = argv[i];
    }
}

void begin(int argc, char** argv, int level) {
    read_arguments(argc, argv);
    int provided = level;
    const int code =
        level < 0 ? MPI_Init(&argc, &argv) : MPI_Init_thread(&argc, &argv, level, &provided);
    check_equal(code, MPI_SUCCESS, "MPI_Init");
    check_equal(provided, level, "provided thread level");
    MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world.size);
}

void print_topics() {
    const std::string mine = my_lines();
    int bytes = static_cast<int>(mine.size());
    if (world.rank > 0) {
        MPI_Send(mine.data(), bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
        return;
    }
    std::fputs(mine.c_str(), stdout);
    for (int rank = 1; rank < world.size; ++rank) {
        MPI_Status status;
        MPI_Probe(rank, 0, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_CHAR, &bytes);
        std::vector<char> theirs(static_cast<size_t>(bytes));
        MPI_Recv(theirs.data(), bytes, MPI_CHAR, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        std::fwrite(theirs.data(), 1, theirs.size(), stdout);
    }
    std::fflush(stdout);
}

int end() {
    print_topics();
    check_equal(MPI_Finalize(), MPI_SUCCESS, "MPI_Finalize");
    return 0;
}

}  // namespace battery
