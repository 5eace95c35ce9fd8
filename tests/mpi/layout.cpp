// SPDX-License-Identifier: BSD-3-Clause
// Builds random strided datatypes in several ways that mean the same. Must not communicate.
#include "layout.hpp"

#include <cstring>

namespace battery {

Layout::Layout(Random& random, Element element, int elements, bool may_be_absolute)
    : element_(element), count_(elements), type_(element.type) {
    const int shape = random.below(5);
    if (shape < 2 || elements == 0) {
        storage_.resize(static_cast<size_t>(elements) * element.bytes + 1);
        return;
    }
    const int candidates[4] = {1, 2, 3, 8};
    block_ = candidates[random.below(4)];
    if (elements % block_ != 0) block_ = 1;
    stride_ = block_ + random.between(1, 3);
    const int blocks = elements / block_;
    storage_.resize(static_cast<size_t>(blocks) * static_cast<size_t>(stride_) * element.bytes);
    derived_ = true;
    if (shape == 2)
        make_whole(random, blocks);
    else if (shape == 3 || !may_be_absolute)
        make_resized(blocks);
    else
        make_absolute(blocks);
    MPI_Type_commit(&type_);
}

// One element of the type is the whole message.
void Layout::make_whole(Random& random, int blocks) {
    count_ = 1;
    if (random.chance(50) || blocks > 4096) {
        MPI_Type_vector(blocks, block_, stride_, element_.type, &type_);
        return;
    }
    std::vector<int> displacements(static_cast<size_t>(blocks));
    for (int i = 0; i < blocks; ++i) displacements[static_cast<size_t>(i)] = i * stride_;
    MPI_Type_create_indexed_block(blocks, block_, displacements.data(), element_.type, &type_);
}

// One block, resized to the stride; the count is the number of blocks.
void Layout::make_resized(int blocks) {
    count_ = blocks;
    MPI_Datatype dense;
    MPI_Type_contiguous(block_, element_.type, &dense);
    const auto extent = static_cast<MPI_Aint>(static_cast<size_t>(stride_) * element_.bytes);
    MPI_Type_create_resized(dense, 0, extent, &type_);
    MPI_Type_free(&dense);
}

// Absolute addresses, for MPI_BOTTOM: a struct of two vectors.
void Layout::make_absolute(int blocks) {
    absolute_ = true;
    count_ = 1;
    const int first = blocks / 2;
    const size_t skipped = static_cast<size_t>(first) * static_cast<size_t>(stride_);
    MPI_Datatype halves[2];
    MPI_Aint addresses[2];
    const int lengths[2] = {1, 1};
    MPI_Type_vector(first, block_, stride_, element_.type, &halves[0]);
    MPI_Type_vector(blocks - first, block_, stride_, element_.type, &halves[1]);
    MPI_Get_address(storage_.data(), &addresses[0]);
    MPI_Get_address(storage_.data() + skipped * element_.bytes, &addresses[1]);
    MPI_Type_create_struct(2, lengths, addresses, halves, &type_);
    MPI_Type_free(&halves[0]);
    MPI_Type_free(&halves[1]);
}

void Layout::free_type() {
    if (derived_) MPI_Type_free(&type_);
    derived_ = false;
}

size_t Layout::offset(int i) const {
    const int at = (i / block_) * stride_ + i % block_;
    return static_cast<size_t>(at) * element_.bytes;
}

void Layout::fill(uint64_t id, int elements) {
    for (int i = 0; i < elements; ++i) {
        const uint64_t value = mix(id + static_cast<uint64_t>(i));
        std::memcpy(storage_.data() + offset(i), &value, element_.bytes);
    }
}

void Layout::check_content(uint64_t id, int elements, const char* what) const {
    for (int i = 0; i < elements; ++i) {
        const uint64_t value = mix(id + static_cast<uint64_t>(i));
        if (std::memcmp(storage_.data() + offset(i), &value, element_.bytes) != 0)
            check_equal(i, -1, what);
    }
}

uint64_t Layout::hash(int elements) const {
    uint64_t hash = static_cast<uint64_t>(elements);
    for (int i = 0; i < elements; ++i)
        hash = mix(hash ^ hash_bytes(storage_.data() + offset(i), element_.bytes)) + 1;
    return hash;
}

}  // namespace battery
