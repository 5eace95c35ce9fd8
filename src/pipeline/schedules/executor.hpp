// SPDX-License-Identifier: BSD-3-Clause
// Runs one rank's schedule with the library's nonblocking point-to-point calls and our kernels.
#pragma once

#include <functional>
#include <optional>
#include <queue>
#include <vector>

#include "offload/api.hpp"
#include "pipeline/operands.hpp"
#include "pipeline/private_comm.hpp"

namespace vecmpi::pipeline {

// How often advance() will be called: without rest, or now and then.
enum class Looks : uint8_t { often, seldom };

class ScheduleRun : public offload::Job {
  public:
    // operands: what the schedule's elements are, and where its memories begin; their count means
    // nothing here.
    // Takes the communicator's next sequence number. A persistent collective has a number of its
    // own, and is started again only when the last run is complete. May throw std::bad_alloc,
    // before it takes a number.
    ScheduleRun(PrivateCommPointer comm, std::shared_ptr<const Schedule> schedule,
                const Operands& operands, std::optional<uint32_t> persistent_number, Looks looks);
    ~ScheduleRun() override;

    bool advance() noexcept override;

  private:
    // Steps that wait for nothing, the earliest in the schedule first.
    using Ready = std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>>;
    static Ready room_for(size_t steps);
    // The messages of one direction. One may begin when fewer than `window` before it in the
    // schedule are incomplete. A plain limit on how many are under way would deadlock: later
    // messages could take the place of one that another rank waits for.
    static constexpr uint32_t most_messages = 16;
    struct Messages {
        bool may_begin(const Schedule& schedule) const noexcept;
        void complete(uint32_t ordinal) noexcept;
        uint32_t window;              // at most most_messages
        std::vector<bool> completed;  // by ordinal
        Ready ready;
        uint32_t completed_before = 0;  // ordinals below this are complete
    };
    static uint32_t window_for(int64_t message_bytes, Looks looks) noexcept;

    Messages* messages_of(uint32_t step) noexcept;
    void let_go(uint32_t step) noexcept;  // it waits for nothing any more
    void complete_step(uint32_t step) noexcept;
    bool begin_messages(Messages& messages) noexcept;
    void issue(uint32_t step) noexcept;
    bool test_messages() noexcept;
    bool do_local_step() noexcept;
    void fail(int code) noexcept;
    void give_up(int code) noexcept;
    bool finish() noexcept;
    unsigned char* at(Place place) const noexcept;

    PrivateCommPointer comm_;
    std::shared_ptr<const Schedule> schedule_;
    const Operands operands_;
    Scratch scratch_;
    const bool persistent_;
    uint32_t sequence_number_ = 0;  // or the persistent number
    bool begun_ = false;
    bool ended_ = false;
    bool given_up_ = false;
    size_t left_;  // steps that are not complete
    std::vector<uint32_t> waits_;
    Messages sends_, receives_;
    Ready local_;
    int under_way_ = 0;
    MPI_Request requests_[2 * most_messages];
    uint32_t steps_[2 * most_messages];  // of the requests
};

}  // namespace vecmpi::pipeline
