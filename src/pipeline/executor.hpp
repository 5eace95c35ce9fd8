// SPDX-License-Identifier: BSD-3-Clause
// Runs one rank's schedule with the library's nonblocking point-to-point calls and our kernels.
#pragma once

#include <vector>

#include "private_comm.hpp"
#include "vecmpi/offload.hpp"

namespace vecmpi {

// What the schedule's elements are, and where its memories begin. Elements lie `extent` bytes apart
// without gaps.
struct Elements {
    MPI_Datatype type = MPI_BYTE;
    MPI_Count extent = 1;
    MPI_Op op = MPI_OP_NULL;  // of the reduce steps
    const void* input = nullptr;
    void* output = nullptr;
};

class ScheduleRun : public Job {
  public:
    // Takes the communicator's next turn. May throw std::bad_alloc, before that.
    ScheduleRun(PrivateCommPointer comm, std::shared_ptr<const Schedule> schedule,
                const Elements& elements);
    ~ScheduleRun() override;

    bool advance() noexcept override;

  private:
    // Steps that may begin, the earliest in the schedule first: older segments go before younger
    // ones, on all ranks alike.
    class Ready {
      public:
        void reserve(size_t steps) { heap_.reserve(steps); }
        bool empty() const noexcept { return heap_.empty(); }
        void push(uint32_t step) noexcept;  // within what was reserved
        uint32_t pop() noexcept;

      private:
        std::vector<uint32_t> heap_;
    };
    // Messages of one direction under way.
    static constexpr int most_messages = 16;
    struct Messages {
        Ready ready;
        int under_way = 0;
    };

    void let_go(uint32_t step) noexcept;  // it waits for nothing any more
    void complete_step(uint32_t step) noexcept;
    bool begin_messages(Messages& messages) noexcept;
    void issue(uint32_t step) noexcept;
    bool test_messages() noexcept;
    bool do_local_step() noexcept;
    void fail(int code) noexcept;
    bool finish() noexcept;
    char* at(Place place) const noexcept;

    PrivateCommPointer comm_;
    std::shared_ptr<const Schedule> schedule_;
    Elements elements_;
    Scratch scratch_;
    uint32_t turn_ = 0;
    bool begun_ = false;
    bool ended_ = false;
    size_t left_;  // steps that are not complete
    std::vector<uint32_t> waits_;
    Messages sends_, receives_;
    Ready local_;
    int under_way_ = 0;
    MPI_Request requests_[2 * most_messages];
    uint32_t steps_[2 * most_messages];  // of the requests
};

}  // namespace vecmpi
