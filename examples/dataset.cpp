// SPDX-License-Identifier: BSD-3-Clause
// Parsing and batching behind dataset.hpp. No MPI here.
#include "dataset.hpp"

#include <sstream>
#include <stdexcept>

namespace example {
namespace {

constexpr int brightest = 16;

// -1 for a character that is none of 0-9, a-g.
int pixel_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'g') return c - 'a' + 10;
    return -1;
}

bool append_image(Dataset& data, const std::string& line) {
    if (line.size() != 2 + pixels_per_image || line[1] != ' ') return false;
    if (line[0] < '0' || line[0] > '9') return false;
    for (std::size_t i = 2; i < line.size(); ++i) {
        const int value = pixel_value(line[i]);
        if (value < 0) return false;
        data.images.push_back(static_cast<float>(value) / brightest);
    }
    data.labels.push_back(line[0] - '0');
    return true;
}

}  // namespace

Dataset parse_digits(const std::string& text) {
    Dataset data;
    std::istringstream lines(text);
    std::size_t number = 1;
    for (std::string line; std::getline(lines, line); ++number) {
        if (append_image(data, line)) continue;
        throw std::runtime_error("line " + std::to_string(number) +
                                 " is not a digit, a space and 64 pixels from 0 to g");
    }
    if (data.size() < 5) throw std::runtime_error("fewer than 5 images");
    return data;
}

Split split_every_fifth(std::size_t images) {
    Split split;
    for (std::size_t i = 0; i < images; ++i) {
        (i % 5 == 4 ? split.held_out : split.training).push_back(i);
    }
    return split;
}

Batch BatchBuilder::gather(const Dataset& data, std::span<const std::size_t> chosen) {
    images_.clear();
    labels_.clear();
    for (const std::size_t image : chosen) {
        const auto first =
            data.images.begin() + static_cast<std::ptrdiff_t>(image * pixels_per_image);
        images_.insert(images_.end(), first, first + pixels_per_image);
        labels_.push_back(data.labels[image]);
    }
    return {images_, labels_};
}

}  // namespace example
