// SPDX-License-Identifier: BSD-3-Clause
// A random derived datatype that carries a given number of elements, with its buffer. Must not
// communicate.
#pragma once

#include <vector>

#include "battery.hpp"

namespace battery {

struct Element {
    MPI_Datatype type;
    size_t bytes;
};
inline Element element_of(int kind) {
    if (kind % 3 == 0) return {MPI_INT, sizeof(int)};
    if (kind % 3 == 1) return {MPI_DOUBLE, sizeof(double)};
    return {MPI_BYTE, 1};
}

// Element i lies at (i / block) * stride + i % block, so every constructor below describes the same
// kind of map.
class Layout {
  public:
    Layout(Random& random, Element element, int elements, bool may_be_absolute = true);

    void* address() { return absolute_ ? MPI_BOTTOM : storage_.data(); }
    int count() const { return count_; }
    MPI_Datatype type() const { return type_; }
    // A predefined type is not freed. Legal as soon as the operation is posted (MPI 4.0, 5.1.9).
    void free_type();

    void fill(uint64_t id, int elements);
    // The first `elements` are those of message `id`.
    void check_content(uint64_t id, int elements, const char* what) const;
    uint64_t hash(int elements) const;

  private:
    size_t offset(int i) const;
    void make_whole(Random& random, int blocks);
    void make_resized(int blocks);
    void make_absolute(int blocks);

    Element element_;
    int block_ = 1;
    int stride_ = 1;
    int count_ = 0;
    bool absolute_ = false;
    bool derived_ = false;
    MPI_Datatype type_;
    std::vector<unsigned char> storage_;
};

}  // namespace battery
