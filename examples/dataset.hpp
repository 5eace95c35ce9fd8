// SPDX-License-Identifier: BSD-3-Clause
// The handwritten digits, as numbers. Knows the one file format of data/README.md and no MPI.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace example {

inline constexpr std::size_t pixels_per_image = 64;
inline constexpr std::size_t classes = 10;

struct Dataset {
    std::vector<float> images;  // pixels_per_image values from 0 to 1 for each image
    std::vector<int> labels;    // 0 to 9

    std::size_t size() const { return labels.size(); }
};

struct Batch {
    std::span<const float> images;
    std::span<const int> labels;

    std::size_t size() const { return labels.size(); }
};

// Throws std::runtime_error with one line that names the first line that is wrong.
Dataset parse_digits(const std::string& text);

// Every fifth image is held out from training.
struct Split {
    std::vector<std::size_t> training;
    std::vector<std::size_t> held_out;
};
Split split_every_fifth(std::size_t images);

// Copies the chosen images into one batch; keeps its memory from call to call.
class BatchBuilder {
  public:
    Batch gather(const Dataset& data, std::span<const std::size_t> chosen);

  private:
    std::vector<float> images_;
    std::vector<int> labels_;
};

}  // namespace example
