// SPDX-License-Identifier: BSD-3-Clause
// An array for the time of a call: on the stack where it is short, else from the heap.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace vecmpi::offload {

template <class T>
class SmallArray {
  public:
    explicit SmallArray(int size) noexcept
        : long_(size > short_size ? new (std::nothrow) T[static_cast<size_t>(size)] : nullptr),
          data_(size > short_size ? long_.get() : short_) {}
    SmallArray(const SmallArray&) = delete;
    SmallArray& operator=(const SmallArray&) = delete;
    T* data() const noexcept { return data_; }  // null where there is no memory
    T& operator[](int i) const noexcept { return data_[i]; }

  private:
    static constexpr int short_size = 64;
    T short_[short_size];  // not initialized
    const std::unique_ptr<T[]> long_;
    T* const data_;
};

}  // namespace vecmpi::offload
