// SPDX-License-Identifier: BSD-3-Clause
// A multilayer perceptron with hand-written forward and backward pass. Knows no MPI: it says when
// a layer's gradients are ready, and whoever listens may send them.
//
// Glossary. *Block*: the parameters (or gradients) of one layer, weights then biases. Blocks lie
// in memory in the order in which the backward pass finishes them, output layer first, so that
// neighbours can be sent as one piece without a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "dataset.hpp"

namespace example {

struct LayerShape {
    std::size_t inputs;
    std::size_t outputs;

    std::size_t parameters() const { return (inputs + 1) * outputs; }
};

// layers hidden layers of width neurons between the pixels and the classes; input side first.
std::vector<LayerShape> perceptron_shape(std::size_t width, std::size_t layers);

struct Score {
    double loss_sum = 0;  // cross entropy, natural logarithm
    int correct = 0;
};

class Network {
  public:
    Network(const std::vector<LayerShape>& shape, std::size_t most_images, std::uint64_t seed);

    Score forward(const Batch& batch);

    // Fills the gradients of the loss sum of the last forward(), block by block, and calls
    // block_ready(block) after each. The last float of the last block is the loss sum itself: it
    // travels with the gradients, so that every rank learns the loss of the global batch.
    void backward(const Batch& batch, const std::function<void(std::size_t)>& block_ready);

    // Gradient descent with momentum on gradients · scale.
    void update(float learning_rate, float scale);

    std::span<float> gradients() { return gradients_; }
    std::span<const float> parameters() const { return parameters_; }
    std::span<float> parameters() { return parameters_; }
    float loss_sum() const { return gradients_.back(); }

    // Floats of each block of gradients(), in order; they add up to gradients().size().
    std::vector<std::size_t> gradient_blocks() const;

  private:
    struct Layer {
        LayerShape shape;
        std::size_t offset;           // of its block
        std::vector<float> output;    // images × outputs, after the activation function
        std::vector<float> d_output;  // gradient of the loss by the value before activation
    };

    void initialise(std::uint64_t seed);
    void forward_layer(std::size_t index, const float* input, std::size_t images);
    void backward_block(std::size_t index, const float* input, std::size_t images);
    void backward_input(std::size_t index, std::size_t images);
    const float* input_of(std::size_t index, const Batch& batch) const;

    std::vector<Layer> layers_;  // input side first
    std::vector<float> parameters_;
    std::vector<float> gradients_;
    std::vector<float> velocity_;
    std::vector<float> transposed_;  // weights of one layer, for backward_input
    Score score_;
};

}  // namespace example
