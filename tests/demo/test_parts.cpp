// SPDX-License-Identifier: BSD-3-Clause
// The parts of the demo program that need no MPI: data, options, buckets, matrix product, network.
// Not for the training loop; test_train_digits.sh runs that.
#include <algorithm>
#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "dataset.hpp"
#include "gradient_exchange.hpp"
#include "half.hpp"
#include "matrix.hpp"
#include "measure.hpp"
#include "network.hpp"
#include "options.hpp"
#include "random.hpp"

using namespace example;

namespace {

std::string shipped_text() {
    std::ifstream file(DIGITS_FILE);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string repeated_line(const std::string& line, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += line + "\n";
    return text;
}

std::string error_of(const std::vector<const char*>& arguments) {
    try {
        parse_options(arguments);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "";
}

// Whole numbers, so that every order of summation gives the same floats.
std::vector<float> small_integers(std::size_t count, std::uint64_t seed) {
    Random random(seed);
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(random.next() % 17) - 8;
    return values;
}

}  // namespace

TEST_CASE("the shipped images are the whole UCI test set") {
    const Dataset data = parse_digits(shipped_text());
    REQUIRE(data.size() == 1797);
    REQUIRE(data.images.size() == 1797 * pixels_per_image);
    std::array<int, classes> count{};
    for (const int label : data.labels) ++count[static_cast<std::size_t>(label)];
    // As the repository's description of the set gives them.
    CHECK(count == std::array<int, classes>{178, 182, 177, 183, 181, 182, 181, 179, 174, 180});
    CHECK(*std::min_element(data.images.begin(), data.images.end()) == 0.0F);
    CHECK(*std::max_element(data.images.begin(), data.images.end()) == 1.0F);
}

TEST_CASE("a pixel is its value over 16") {
    const std::string line = "7 0123456789abcdefg" + std::string(47, '0');
    const Dataset data = parse_digits(repeated_line(line, 5));
    REQUIRE(data.labels == std::vector<int>(5, 7));
    for (std::size_t i = 0; i <= 16; ++i) CHECK(data.images[i] == static_cast<float>(i) / 16);
}

TEST_CASE("a wrong line is named") {
    const std::string good = "7 " + std::string(64, '0');
    for (const std::string& bad :
         {std::string(), "x " + std::string(64, '0'), "7 " + std::string(63, '0'),
          "7 " + std::string(63, '0') + "h", "7_" + std::string(64, '0')}) {
        CHECK_THROWS_WITH(parse_digits(repeated_line(good, 5) + bad + "\n"),
                          Catch::StartsWith("line 6 is not"));
    }
    CHECK_THROWS_WITH(parse_digits(""), "fewer than 5 images");
}

TEST_CASE("every image is either trained on or held out") {
    const Split split = split_every_fifth(12);
    CHECK(split.held_out == std::vector<std::size_t>{4, 9});
    CHECK(split.training == std::vector<std::size_t>{0, 1, 2, 3, 5, 6, 7, 8, 10, 11});
}

TEST_CASE("options") {
    const std::vector<const char*> all = {
        "--blocking", "--width",  "7", "--layers", "2",  "--batch",
        "3",          "--epochs", "4", "--bucket", "3K", "--learning-rate",
        "0.5",        "--seed",   "0", "--data",   "x"};
    const Options options = parse_options(all);
    CHECK(options.exchange == Exchange::blocking);
    CHECK(options.width == 7);
    CHECK(options.layers == 2);
    CHECK(options.batch == 3);
    CHECK(options.epochs == 4);
    CHECK(options.bucket_bytes == 3072);
    CHECK(options.learning_rate == 0.5);
    CHECK(options.seed == 0);
    CHECK(options.data == "x");
    const std::vector<const char*> none;
    CHECK(parse_options(none).exchange == Exchange::overlap);
    CHECK(parse_options(none).wire == Wire::floats);
    CHECK(parse_options(std::vector<const char*>{"--half"}).wire == Wire::halves);
    CHECK(parse_options(std::vector<const char*>{"--bucket", "1024M"}).bucket_bytes == 1U << 30);
}

TEST_CASE("a bad option is told in one line") {
    CHECK(error_of({"--wide"}) == "'--wide' is not an option (see --help)");
    CHECK(error_of({"--width"}) == "--width needs a value (see --help)");
    CHECK(error_of({"--width", "0"}) == "--width: '0' is not a whole number from 1 to 16384");
    CHECK(error_of({"--width", "8x"}) == "--width: '8x' is not a whole number from 1 to 16384");
    CHECK(error_of({"--epochs", "-1"}) == "--epochs: '-1' is not a whole number from 1 to 10000");
    CHECK(error_of({"--bucket", "K"}) ==
          "--bucket: 'K' is not a size from 1 to 1024M, such as 256K or 4M");
    CHECK(error_of({"--bucket", "2048M"}) ==
          "--bucket: '2048M' is not a size from 1 to 1024M, such as 256K or 4M");
    CHECK(error_of({"--learning-rate", "nan"}) ==
          "--learning-rate: 'nan' is not a number above 0, at most 10");
    CHECK(error_of({"--seed", ""}) == "--seed: '' is not a whole number from 0 to 2^64-1");
}

TEST_CASE("buckets fuse neighbours and never split a block") {
    struct Case {
        std::vector<std::size_t> blocks;
        std::size_t most_bytes;
        std::vector<std::array<std::size_t, 3>> expected;  // first, count, last block
    };
    const Case cases[] = {
        {{10, 20, 30}, 4 * 60, {{0, 60, 2}}},
        {{10, 20, 30}, 4 * 59, {{0, 30, 1}, {30, 30, 2}}},
        {{10, 20, 30}, 4 * 30, {{0, 30, 1}, {30, 30, 2}}},
        {{10, 20, 30}, 1, {{0, 10, 0}, {10, 20, 1}, {30, 30, 2}}},
        {{100, 1, 1}, 4 * 50, {{0, 100, 0}, {100, 2, 2}}},
        {{}, 100, {}},
    };
    for (const Case& c : cases) {
        std::vector<std::array<std::size_t, 3>> got;
        for (const Bucket& b : plan_buckets(c.blocks, c.most_bytes)) {
            got.push_back({b.first, b.count, b.last_block});
        }
        CHECK(got == c.expected);
    }
}

TEST_CASE("a bucket of halves has twice the numbers") {
    const std::vector<std::size_t> blocks{100, 100};
    CHECK(plan_buckets(blocks, 400).size() == 2);
    CHECK(plan_buckets(blocks, 400, Wire::halves).size() == 1);
}

std::uint16_t half_of(float number) {
    std::uint16_t half = 0;
    to_halves({&number, 1}, &half);
    return half;
}

TEST_CASE("every half is the same after a way over float") {
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        float number = 0;
        to_floats(&half, {&number, 1});
        const bool is_nan = (bits & 0x7fff) > 0x7c00;
        if (is_nan ? !std::isnan(number) : half_of(number) != half) FAIL("half " << bits);
    }
}

TEST_CASE("floats between two halves go to the nearest, ties to even") {
    const std::pair<float, std::uint16_t> cases[] = {
        {1.0F, 0x3c00},
        {-2.0F, 0xc000},
        {1.0F + 0x1p-11F, 0x3c00},
        {1.0F + 0x3p-11F, 0x3c02},
        {65504.0F, 0x7bff},
        {65519.0F, 0x7bff},
        {65520.0F, 0x7c00},
        {-1e30F, 0xfc00},
        {0x1p-24F, 0x0001},
        {0x1p-25F, 0x0000},
        {0x3p-25F, 0x0002},
        {-0.0F, 0x8000},
        {0x1.ff8p-15F, 0x03ff},
        {0x1.ffcp-15F, 0x0400},
    };
    for (const auto& [number, half] : cases) {
        INFO(number);
        CHECK(half_of(number) == half);
    }
}

TEST_CASE("the matrix product equals three plain loops") {
    for (const std::size_t depth : {1, 3, 4, 5, 9}) {
        const std::size_t rows = 3;
        const std::size_t columns = 7;
        const std::vector<float> a = small_integers(rows * depth, depth);
        const std::vector<float> b = small_integers(depth * columns, depth + 100);
        std::vector<float> a_transposed(a.size());
        transpose(a_transposed.data(), a.data(), rows, depth);
        std::vector<float> expected(rows * columns, 2.0F);
        for (std::size_t i = 0; i < rows; ++i) {
            for (std::size_t j = 0; j < columns; ++j) {
                for (std::size_t k = 0; k < depth; ++k) {
                    expected[i * columns + j] += a[i * depth + k] * b[k * columns + j];
                }
            }
        }
        std::vector<float> c(rows * columns, 2.0F);
        multiply_add(c.data(), {a.data(), depth, 1}, b.data(), rows, depth, columns);
        CHECK(c == expected);
        c.assign(rows * columns, 2.0F);
        multiply_add(c.data(), {a_transposed.data(), 1, rows}, b.data(), rows, depth, columns);
        CHECK(c == expected);
    }
}

TEST_CASE("transposition of sizes around the tile") {
    for (const std::size_t rows : {1, 31, 32, 33, 65}) {
        const std::size_t columns = 34;
        const std::vector<float> source = small_integers(rows * columns, rows);
        std::vector<float> target(source.size());
        transpose(target.data(), source.data(), rows, columns);
        bool same = true;
        for (std::size_t i = 0; i < rows; ++i) {
            for (std::size_t j = 0; j < columns; ++j) {
                same = same && target[j * rows + i] == source[i * columns + j];
            }
        }
        CHECK(same);
    }
}

TEST_CASE("gradients are the slopes of the loss") {
    const Dataset data = parse_digits(shipped_text());
    const std::vector<std::size_t> chosen{0, 1, 2, 3, 4, 5, 6, 7};
    BatchBuilder builder;
    const Batch batch = builder.gather(data, chosen);
    Network network(perceptron_shape(12, 2), chosen.size(), 1);
    const double loss = network.forward(batch).loss_sum;
    std::vector<std::size_t> ready;
    network.backward(batch, [&](std::size_t block) { ready.push_back(block); });
    CHECK(ready == std::vector<std::size_t>{0, 1, 2});
    CHECK(network.loss_sum() == static_cast<float>(loss));
    const std::vector<std::size_t> blocks = network.gradient_blocks();
    CHECK(std::accumulate(blocks.begin(), blocks.end(), std::size_t{0}) ==
          network.gradients().size());
    const std::vector<float> gradients(network.gradients().begin(), network.gradients().end());
    const float step = 1.0F / 1024;
    for (std::size_t i = 0; i < network.parameters().size(); i += 13) {
        float& parameter = network.parameters()[i];
        const float before = parameter;
        parameter = before + step;
        const double above = network.forward(batch).loss_sum;
        parameter = before - step;
        const double below = network.forward(batch).loss_sum;
        parameter = before;
        const double slope = (above - below) / (2.0 * step);
        CAPTURE(i, slope, gradients[i]);
        CHECK(std::abs(slope - static_cast<double>(gradients[i])) < 0.01);
    }
}

TEST_CASE("momentum adds nine tenths of the last change") {
    Network network(perceptron_shape(4, 1), 1, 1);
    const std::vector<float> start(network.parameters().begin(), network.parameters().end());
    std::fill(network.gradients().begin(), network.gradients().end(), 2.0F);
    network.update(0.5F, 0.25F);
    CHECK(network.parameters()[0] == Approx(start[0] - 0.25));
    network.update(0.5F, 0.25F);
    CHECK(network.parameters()[0] == Approx(start[0] - 0.25 - (0.25 + 0.9 * 0.25)));
}

TEST_CASE("known values of the generator and of the hash") {
    Random random(0);
    CHECK(random.next() == 0xe220a8397b1dcdaf);
    CHECK(random.next() == 0x6e789e6aa1b965f4);
    BitHash hash;
    CHECK(hash.value() == 0xcbf29ce484222325);
    hash.add(std::array{std::bit_cast<float>(0x626f6f66U), 1.0F});
    CHECK(hash.value() == 0x35ef979e8e069fbb);  // by a second implementation
    BitHash other;
    other.add(std::array{std::bit_cast<float>(0x626f6f67U), 1.0F});
    CHECK(other.value() != hash.value());
}

TEST_CASE("medians") {
    CHECK(median({}) == 0);
    CHECK(median({3}) == 3);
    CHECK(median({3, 1, 2}) == 2);
    CHECK(median({4, 1, 3, 2}) == 3);
    StepClock clock;
    clock.add(9, {9, 9});
    clock.add(0.002, {0.0005, 0.001});
    const StepTimes times = clock.medians(1);
    CHECK(times.step == Approx(2));
    CHECK(times.posting == Approx(0.5));
    CHECK(times.waiting == Approx(1));
    CHECK(times.communication == Approx(1.5));
}
