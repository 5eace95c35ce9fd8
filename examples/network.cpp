// SPDX-License-Identifier: BSD-3-Clause
// Forward pass, backward pass and update behind network.hpp. No MPI here.
#include "network.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "matrix.hpp"
#include "random.hpp"

namespace example {
namespace {

constexpr float momentum = 0.9F;

// Turns one image's outputs into its loss and, in place, into softmax minus one-hot: the gradient
// of the loss by those outputs. Returns the loss.
double softmax_cross_entropy(std::span<float> outputs, int label) {
    const float largest = *std::max_element(outputs.begin(), outputs.end());
    double sum = 0;
    for (const float value : outputs) sum += std::exp(static_cast<double>(value) - largest);
    const double log_sum = std::log(sum) + largest;
    const double loss = log_sum - outputs[static_cast<std::size_t>(label)];
    for (float& value : outputs) value = static_cast<float>(std::exp(value - log_sum));
    outputs[static_cast<std::size_t>(label)] -= 1.0F;
    return loss;
}

void apply_relu(std::vector<float>& values, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) values[i] = std::max(values[i], 0.0F);
}

}  // namespace

std::vector<LayerShape> perceptron_shape(std::size_t width, std::size_t layers) {
    std::vector<LayerShape> shape{{pixels_per_image, width}};
    for (std::size_t i = 1; i < layers; ++i) shape.push_back({width, width});
    shape.push_back({width, classes});
    return shape;
}

Network::Network(const std::vector<LayerShape>& shape, std::size_t most_images,
                 std::uint64_t seed) {
    std::size_t largest = 0;
    for (const LayerShape& s : shape) {
        layers_.push_back({s, 0, std::vector<float>(most_images * s.outputs),
                           std::vector<float>(most_images * s.outputs)});
        largest = std::max(largest, s.inputs * s.outputs);
    }
    std::size_t offset = 0;
    for (std::size_t i = layers_.size(); i-- > 0;) {
        layers_[i].offset = offset;
        offset += layers_[i].shape.parameters();
    }
    parameters_.resize(offset);
    velocity_.resize(offset);
    gradients_.resize(offset + 1);  // and the loss sum
    transposed_.resize(largest);
    initialise(seed);
}

// He's uniform initialisation (2015): weights up to sqrt(6 / inputs), biases zero.
void Network::initialise(std::uint64_t seed) {
    Random random(seed);
    for (const Layer& layer : layers_) {
        const auto inputs = static_cast<float>(layer.shape.inputs);
        const float limit = std::sqrt(6.0F / inputs);
        float* weights = parameters_.data() + layer.offset;
        for (std::size_t i = 0; i < layer.shape.inputs * layer.shape.outputs; ++i) {
            weights[i] = random.uniform(limit);
        }
    }
}

std::vector<std::size_t> Network::gradient_blocks() const {
    std::vector<std::size_t> blocks;
    for (std::size_t i = layers_.size(); i-- > 0;) {
        blocks.push_back(layers_[i].shape.parameters());
    }
    ++blocks.back();  // the loss sum
    return blocks;
}

const float* Network::input_of(std::size_t index, const Batch& batch) const {
    return index == 0 ? batch.images.data() : layers_[index - 1].output.data();
}

void Network::forward_layer(std::size_t index, const float* input, std::size_t images) {
    Layer& layer = layers_[index];
    const auto [inputs, outputs] = layer.shape;
    const float* weights = parameters_.data() + layer.offset;
    const float* biases = weights + inputs * outputs;
    for (std::size_t i = 0; i < images; ++i) {
        std::copy_n(biases, outputs, layer.output.data() + i * outputs);
    }
    multiply_add(layer.output.data(), {input, inputs, 1}, weights, images, inputs, outputs);
    if (index + 1 < layers_.size()) apply_relu(layer.output, images * outputs);
}

Score Network::forward(const Batch& batch) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
        forward_layer(i, input_of(i, batch), batch.size());
    }
    Layer& last = layers_.back();
    score_ = {};
    for (std::size_t i = 0; i < batch.size(); ++i) {
        const float* outputs = last.output.data() + i * classes;
        const auto best = std::max_element(outputs, outputs + classes) - outputs;
        score_.correct += best == batch.labels[i] ? 1 : 0;
        float* gradient = last.d_output.data() + i * classes;
        std::copy_n(outputs, classes, gradient);
        score_.loss_sum += softmax_cross_entropy({gradient, classes}, batch.labels[i]);
    }
    return score_;
}

// Weights: inputᵀ · d_output. Biases: the column sums of d_output.
void Network::backward_block(std::size_t index, const float* input, std::size_t images) {
    const Layer& layer = layers_[index];
    const auto [inputs, outputs] = layer.shape;
    float* weights = gradients_.data() + layer.offset;
    float* biases = weights + inputs * outputs;
    std::fill_n(weights, layer.shape.parameters(), 0.0F);
    multiply_add(weights, {input, 1, inputs}, layer.d_output.data(), inputs, images, outputs);
    for (std::size_t i = 0; i < images; ++i) {
        const float* row = layer.d_output.data() + i * outputs;
        for (std::size_t j = 0; j < outputs; ++j) biases[j] += row[j];
    }
}

// d_output of the layer below: d_output · weightsᵀ, where that layer's ReLU let the value through.
void Network::backward_input(std::size_t index, std::size_t images) {
    const Layer& layer = layers_[index];
    Layer& below = layers_[index - 1];
    const auto [inputs, outputs] = layer.shape;
    transpose(transposed_.data(), parameters_.data() + layer.offset, inputs, outputs);
    std::fill_n(below.d_output.data(), images * inputs, 0.0F);
    multiply_add(below.d_output.data(), {layer.d_output.data(), outputs, 1}, transposed_.data(),
                 images, outputs, inputs);
    for (std::size_t i = 0; i < images * inputs; ++i) {
        if (below.output[i] <= 0.0F) below.d_output[i] = 0.0F;
    }
}

void Network::backward(const Batch& batch, const std::function<void(std::size_t)>& block_ready) {
    gradients_.back() = static_cast<float>(score_.loss_sum);
    for (std::size_t block = 0; block < layers_.size(); ++block) {
        const std::size_t index = layers_.size() - 1 - block;
        backward_block(index, input_of(index, batch), batch.size());
        block_ready(block);
        if (index > 0) backward_input(index, batch.size());
    }
}

void Network::update(float learning_rate, float scale) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        velocity_[i] = momentum * velocity_[i] - learning_rate * (scale * gradients_[i]);
        parameters_[i] += velocity_[i];
    }
}

}  // namespace example
