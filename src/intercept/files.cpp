// SPDX-License-Identifier: BSD-3-Clause
// Hand-written handlers of files: which of them have another data representation.
#include "files.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <vector>

#include "intercept/mpi_handlers.hpp"
#include "offload/api.hpp"

namespace vecmpi::intercept {

namespace {

// A set of files by handle. Few programs have one that is in it.
class Files {
  public:
    bool contains(MPI_File file) noexcept {
        if (number_.load(std::memory_order_acquire) == 0) [[likely]]
            return false;
        const std::lock_guard lock(mutex_);
        return holds_all_ || std::find(files_.begin(), files_.end(), file) != files_.end();
    }
    void insert(MPI_File file) noexcept {
        const std::lock_guard lock(mutex_);
        try {
            files_.push_back(file);
        } catch (const std::exception&) {  // no memory
            holds_all_ = true;
        }
        number_.store(std::max<size_t>(files_.size(), 1), std::memory_order_release);
    }
    void erase(MPI_File file) noexcept {
        if (number_.load(std::memory_order_acquire) == 0) return;
        const std::lock_guard lock(mutex_);
        std::erase(files_, file);
        number_.store(holds_all_ ? 1 : files_.size(), std::memory_order_release);
    }

  private:
    std::mutex mutex_;
    std::vector<MPI_File> files_;
    bool holds_all_ = false;  // as far as anybody knows
    std::atomic<size_t> number_{0};
};

// Whose view has another representation than the memory's.
Files& converted() noexcept {
    static auto* const files = new Files;  // outlives all callers
    return *files;
}

}  // namespace

bool has_native_view(MPI_File file) noexcept {
    return file != MPI_FILE_NULL && !converted().contains(file);
}

// The handle may be another file's as soon as it is free.
int serve_File_close(MPI_File* fh) {
    const offload::DirectCall scope(Call::File_close);
    if (fh != nullptr) converted().erase(*fh);
    return real.File_close(fh);
}

int serve_File_set_view(MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
                        const char* datarep, MPI_Info info) {
    const offload::DirectCall scope(Call::File_set_view);
    const bool is_native = datarep != nullptr && std::strcmp(datarep, "native") == 0;
    const int rc = real.File_set_view(fh, disp, etype, filetype, datarep, info);
    if (rc != MPI_SUCCESS) return rc;
    converted().erase(fh);
    if (!is_native) converted().insert(fh);
    return rc;
}

}  // namespace vecmpi::intercept
