// SPDX-License-Identifier: BSD-3-Clause
// Parsing behind options.hpp. No MPI here.
#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <stdexcept>
#include <string_view>

namespace example {

const char* const usage =
    R"(train_digits: data-parallel training of a small network on handwritten digits, in plain MPI

  mpirun -n RANKS train_digits [OPTION...]

  --overlap            Iallreduce of a bucket as soon as its gradients are ready (default)
  --blocking           Allreduce of a bucket as soon as its gradients are ready
  --half               gradients travel as float16, summed by an op of the program's own
  --width N            neurons in a hidden layer (default 512)
  --layers N           hidden layers (default 5)
  --batch N            images per rank and step (default 128)
  --epochs N           passes over the training images (default 10)
  --bucket BYTES       gradients are fused up to this size, e.g. 256K, 4M (default 1M)
  --learning-rate X    (default 0.05)
  --seed N             of the initial weights and the order of the images (default 1)
  --data FILE          the images (default: the ones beside the source)
)";

namespace {

std::invalid_argument bad_value(std::string_view option, std::string_view value,
                                std::string_view accepted) {
    return std::invalid_argument(std::string(option) + ": '" + std::string(value) + "' is not " +
                                 std::string(accepted));
}

template <typename Number>
bool parse_whole(std::string_view text, Number& number) {
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    return error == std::errc() && stop == end;
}

std::size_t count_value(std::string_view option, std::string_view text, std::size_t most) {
    std::size_t number = 0;
    if (parse_whole(text, number) && number >= 1 && number <= most) return number;
    throw bad_value(option, text, "a whole number from 1 to " + std::to_string(most));
}

std::size_t size_value(std::string_view option, std::string_view text) {
    std::string_view digits = text;
    std::size_t unit = 1;
    if (!digits.empty() && (digits.back() == 'K' || digits.back() == 'M')) {
        unit = digits.back() == 'K' ? 1024 : 1024 * 1024;
        digits.remove_suffix(1);
    }
    std::size_t number = 0;
    const std::size_t most = std::size_t{1} << 30;
    if (parse_whole(digits, number) && number >= 1 && number <= most / unit) return number * unit;
    throw bad_value(option, text, "a size from 1 to 1024M, such as 256K or 4M");
}

double rate_value(std::string_view option, std::string_view text) {
    double number = 0;
    if (parse_whole(text, number) && number > 0 && number <= 10) return number;
    throw bad_value(option, text, "a number above 0, at most 10");
}

std::uint64_t seed_value(std::string_view option, std::string_view text) {
    std::uint64_t number = 0;
    if (parse_whole(text, number)) return number;
    throw bad_value(option, text, "a whole number from 0 to 2^64-1");
}

struct Flag {
    std::string_view name;
    void (*set)(Options&);
};

struct ValueOption {
    std::string_view name;
    void (*set)(Options&, std::string_view name, std::string_view value);
};

using Text = std::string_view;

constexpr Flag flags[] = {
    {"--overlap", [](Options& o) { o.exchange = Exchange::overlap; }},
    {"--blocking", [](Options& o) { o.exchange = Exchange::blocking; }},
    {"--half", [](Options& o) { o.wire = Wire::halves; }},
    {"--help", [](Options& o) { o.help = true; }},
};

constexpr ValueOption value_options[] = {
    {"--width", [](Options& o, Text n, Text v) { o.width = count_value(n, v, 16384); }},
    {"--layers", [](Options& o, Text n, Text v) { o.layers = count_value(n, v, 64); }},
    {"--batch", [](Options& o, Text n, Text v) { o.batch = count_value(n, v, 4096); }},
    {"--epochs", [](Options& o, Text n, Text v) { o.epochs = count_value(n, v, 10000); }},
    {"--bucket", [](Options& o, Text n, Text v) { o.bucket_bytes = size_value(n, v); }},
    {"--learning-rate", [](Options& o, Text n, Text v) { o.learning_rate = rate_value(n, v); }},
    {"--seed", [](Options& o, Text n, Text v) { o.seed = seed_value(n, v); }},
    {"--data", [](Options& o, Text, Text v) { o.data = v; }},
};

template <typename Table>
auto find(const Table& table, std::string_view name) {
    return std::find_if(std::begin(table), std::end(table),
                        [name](const auto& row) { return row.name == name; });
}

}  // namespace

Options parse_options(std::span<const char* const> arguments) {
    Options options;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string_view name = arguments[i];
        if (const auto flag = find(flags, name); flag != std::end(flags)) {
            flag->set(options);
            continue;
        }
        const auto option = find(value_options, name);
        if (option == std::end(value_options)) {
            throw std::invalid_argument("'" + std::string(name) +
                                        "' is not an option (see --help)");
        }
        if (++i == arguments.size()) {
            throw std::invalid_argument(std::string(name) + " needs a value (see --help)");
        }
        option->set(options, name, arguments[i]);
    }
    return options;
}

}  // namespace example
