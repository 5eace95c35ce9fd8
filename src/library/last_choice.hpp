// SPDX-License-Identifier: BSD-3-Clause
// What the last caller of an interposed function would have reached without us. Nearly always there
// is only one. Takes a lock, so not for what is called in every wait. Inside src/library only.
#pragma once

#include <mutex>

#include "library/api.hpp"

namespace vecmpi::library {

class LastChoice {
  public:
    explicit constexpr LastChoice(const char* symbol) noexcept : symbol_(symbol) {}
    CallersChoice for_caller(uintptr_t caller) noexcept {
        const std::lock_guard lock(mutex_);
        if (!choice_.is_of(caller)) choice_ = definition_for(caller, symbol_);
        return choice_;
    }

  private:
    const char* const symbol_;
    std::mutex mutex_;
    CallersChoice choice_;
};

}  // namespace vecmpi::library
