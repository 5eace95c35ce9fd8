// SPDX-License-Identifier: BSD-3-Clause
// How the library orders numbers in MPI_MAX and MPI_MIN, where neither the type nor its op function
// says so. Asks the library; changes nothing.
#pragma once

#include <cstddef>
#include <optional>

#include "arithmetic.hpp"

namespace vecmpi::offload {

// What serves an op on a type.
struct OrderRow {
    MPI_Op op;
    MPI_Datatype type;
    std::optional<kernels::ElementType> element;  // none: the library, since no kernel orders so
    bool is_sure;  // the kernel of `element` serves without a comparison with the op function
};

// Made before the op functions are replaced. cap: of the kernels that are tried.
class MaxMinOrder {
  public:
    explicit MaxMinOrder(kernels::Isa cap) noexcept;
    const OrderRow* begin() const noexcept { return rows_; }
    const OrderRow* end() const noexcept { return rows_ + size_; }

  private:
    void ask_for_signed() noexcept;
    void ask_for_subnormals(kernels::Isa cap) noexcept;
    static constexpr size_t number_of_ops = 2, number_of_types = 15;
    OrderRow rows_[number_of_ops * number_of_types];
    size_t size_ = 0;
};

}  // namespace vecmpi::offload
