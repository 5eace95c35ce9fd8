// SPDX-License-Identifier: BSD-3-Clause
// What vecmpi-tune measures for an entry of a profile is looked up by the library at that entry.
#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "base/api/profile.hpp"
#include "kernels/api.hpp"
#include "tune/samples.hpp"

using namespace vecmpi;
using namespace vecmpi::kernels;

namespace {

constexpr size_t streams[] = {size_t{8} << 10, size_t{64} << 10};
constexpr Distance distances[] = {Distance::dense, Distance::open, Distance::sparse, Distance::far};

int64_t mean_distance(const std::vector<int64_t>& offsets) {
    const auto [low, high] = std::minmax_element(offsets.begin(), offsets.end());
    return (*high - *low) / (static_cast<int64_t>(offsets.size()) - 1);
}

// With this one entry, does the library unpack by it? Nothing built in scatters.
bool is_looked_up(const std::vector<int64_t>& offsets, size_t bytes, Distance distance) {
    PackLimits limits{best_isa(), true, PackWay::block, {}};
    limits.table.entry(PackKernel::unpack_gather, block_class(static_cast<int64_t>(bytes)),
                       distance) = PackVerdict::yes;
    return TableCopier(offsets, bytes, limits).way(Direction::unpack) == PackWay::gather;
}

bool can_gather(const std::vector<int64_t>& offsets, size_t bytes) {
    const PackLimits only{best_isa(), false, PackWay::gather, {}};
    return TableCopier(offsets, bytes, only).way(Direction::unpack) == PackWay::gather;
}

}  // namespace

TEST_CASE("samples of a profile: blocks of one length", "[kernels][profile]") {
    for (const int64_t bytes : {1, 2, 4, 8, 16, 32, 96})
        for (const Distance distance : distances)
            for (const size_t stream : streams)
                for (const bool rising : {true, false}) {
                    CAPTURE(bytes, static_cast<int>(distance), stream, rising);
                    const auto offsets =
                        tune::offsets_of(bytes, tune::distance_of(distance, bytes), stream, rising);
                    REQUIRE(offsets.size() >= 2);
                    CHECK(distance_class(bytes, mean_distance(offsets)) == distance);
                    if (can_gather(offsets, static_cast<size_t>(bytes)))
                        CHECK(is_looked_up(offsets, static_cast<size_t>(bytes), distance));
                    auto sorted = offsets;
                    std::sort(sorted.begin(), sorted.end());
                    const auto overlap = [&](int64_t one, int64_t next) {
                        return next < one + bytes;
                    };
                    CHECK(std::adjacent_find(sorted.begin(), sorted.end(), overlap) ==
                          sorted.end());
                }
}

TEST_CASE("samples of a profile: blocks of different lengths", "[kernels][profile]") {
    for (const int64_t bytes : {2, 4, 8, 16, 32})
        for (const Distance distance : distances)
            for (const size_t stream : streams) {
                CAPTURE(bytes, static_cast<int>(distance), stream);
                const auto blocks =
                    tune::blocks_of(bytes, tune::distance_of(distance, bytes), stream);
                std::vector<int64_t> offsets;
                int64_t sum = 0, end = 0;
                bool are_apart = true;
                for (const Block& block : blocks) {
                    are_apart = are_apart && block.bytes > 0 && block.offset >= end;
                    end = block.offset + block.bytes;
                    offsets.push_back(block.offset);
                    sum += block.bytes;
                }
                const int64_t mean = sum / static_cast<int64_t>(blocks.size());
                CHECK(are_apart);
                CHECK(block_class(mean) == block_class(bytes));
                CHECK(distance_class(mean, mean_distance(offsets)) == distance);
                CHECK(std::any_of(blocks.begin(), blocks.end(),
                                  [&](const Block& block) { return block.bytes != mean; }));
            }
}
