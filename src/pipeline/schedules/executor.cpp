// SPDX-License-Identifier: BSD-3-Clause
// One look at a schedule: begin what may begin, complete what is complete, compute one step.
#include "executor.hpp"

#include <algorithm>
#include <climits>
#include <cstring>
#include <functional>
#include <new>

namespace vecmpi::pipeline {

namespace {

// A tag's 20 bits, as many as any library of the MPICH family has (MPI_TAG_UB).
int tag_of(bool persistent, uint32_t number, const ScheduleStep& step) noexcept {
    static_assert(PrivateComm::sequence_numbers_apart == 32 &&
                  PrivateComm::persistent_numbers == 32);
    const uint32_t run = (persistent ? 32u : 0u) | number % 32;
    return static_cast<int>(run << 14 | (step.segment % 32u) << 9 | step.message % 512u);
}

}  // namespace

// So that no push allocates.
ScheduleRun::Ready ScheduleRun::room_for(size_t steps) {
    std::vector<uint32_t> memory;
    memory.reserve(steps);
    return Ready({}, std::move(memory));
}

// Messages that share a link end together, and a rank further down the pipeline waits for them all.
// So long ones go one by one, unless looks are seldom and the link would be idle between them
// (docs/schedules.md has figures). Ranks need not agree.
uint32_t ScheduleRun::window_for(int64_t message_bytes, Looks looks) noexcept {
    constexpr int64_t bytes_under_way = 65536, most_sends = most_messages - 1;
    if (looks == Looks::seldom) return most_sends;
    const int64_t fit = 1 + bytes_under_way / std::max<int64_t>(1, message_bytes);
    return static_cast<uint32_t>(std::min(fit, most_sends));
}

bool ScheduleRun::Messages::may_begin(const Schedule& schedule) const noexcept {
    return !ready.empty() && schedule.ordinals[ready.top()] - completed_before < window;
}

void ScheduleRun::Messages::complete(uint32_t ordinal) noexcept {
    completed[ordinal] = true;
    while (completed_before < completed.size() && completed[completed_before]) ++completed_before;
}

ScheduleRun::ScheduleRun(PrivateCommPointer comm, std::shared_ptr<const Schedule> schedule,
                         const Operands& operands, std::optional<uint32_t> persistent_number,
                         Looks looks)
    : comm_(std::move(comm)),
      schedule_(std::move(schedule)),
      operands_(operands),
      persistent_(persistent_number.has_value()),
      begun_(persistent_),
      left_(schedule_->steps.size()),
      waits_(schedule_->waits),
      sends_{window_for(schedule_->largest_message * operands.extent, looks),
             std::vector<bool>(schedule_->sends), room_for(schedule_->sends)},
      // One more, so that the next one finds its buffer; unless that comes from somebody else, who
      // would share the link.
      receives_{sends_.window + (schedule_->changes_partners ? 0 : 1),
                std::vector<bool>(schedule_->receives), room_for(schedule_->receives)},
      local_(room_for(schedule_->steps.size())) {
    scratch_ = comm_->take_scratch(operands.bytes_of(schedule_->scratch_elements));
    if (!scratch_.memory) throw std::bad_alloc();
    for (uint32_t step = 0; step < waits_.size(); ++step)
        if (waits_[step] == 0) let_go(step);
    sequence_number_ = persistent_ ? *persistent_number : comm_->take_sequence_number();
}

ScheduleRun::~ScheduleRun() { comm_->give_back(std::move(scratch_)); }

// Nobody writes the input.
unsigned char* ScheduleRun::at(Place place) const noexcept {
    switch (place.memory) {
        case Memory::input:
            return const_cast<unsigned char*>(operands_.input_at(place.first));
        case Memory::output:
            return operands_.output_at(place.first);
        default:
            return scratch_.memory.get() + operands_.bytes_of(place.first);
    }
}

// Null for a local step.
ScheduleRun::Messages* ScheduleRun::messages_of(uint32_t step) noexcept {
    switch (schedule_->steps[step].kind) {
        case ScheduleStep::Kind::send:
            return &sends_;
        case ScheduleStep::Kind::receive:
            return &receives_;
        default:
            return nullptr;
    }
}

void ScheduleRun::let_go(uint32_t step) noexcept {
    Messages* const messages = messages_of(step);
    (messages ? messages->ready : local_).push(step);
}

void ScheduleRun::complete_step(uint32_t step) noexcept {
    --left_;
    const uint32_t end = schedule_->first_dependent[step + 1];
    for (uint32_t i = schedule_->first_dependent[step]; i < end; ++i) {
        const uint32_t dependent = schedule_->dependents[i];
        if (--waits_[dependent] == 0) let_go(dependent);
    }
}

// A message that failed counts as complete, as in the library's own collectives: other ranks wait
// for what comes after it.
void ScheduleRun::fail(int code) noexcept {
    if (error == MPI_SUCCESS) error = code;
}

// After an error of a call itself nobody knows what the library would do next.
void ScheduleRun::give_up(int code) noexcept {
    fail(code);
    given_up_ = true;
}

void ScheduleRun::issue(uint32_t index) noexcept {
    const ScheduleStep& step = schedule_->steps[index];
    const int tag = tag_of(persistent_, sequence_number_, step);
    MPI_Request* const request = &requests_[under_way_];
    *request = MPI_REQUEST_NULL;
    int rc;
    if (step.kind == ScheduleStep::Kind::send) {
        void* const from = at(step.from);
        rc = step.count <= INT_MAX ? real.Isend(from, static_cast<int>(step.count), operands_.type,
                                                step.peer, tag, comm_->comm(), request)
                                   : real.Isend_c(from, step.count, operands_.type, step.peer, tag,
                                                  comm_->comm(), request);
    } else {
        void* const to = at(step.to);
        rc = step.count <= INT_MAX ? real.Irecv(to, static_cast<int>(step.count), operands_.type,
                                                step.peer, tag, comm_->comm(), request)
                                   : real.Irecv_c(to, step.count, operands_.type, step.peer, tag,
                                                  comm_->comm(), request);
    }
    if (rc != MPI_SUCCESS) return give_up(rc);
    steps_[under_way_++] = index;
}

bool ScheduleRun::begin_messages(Messages& messages) noexcept {
    bool any = false;
    for (; !given_up_ && messages.may_begin(*schedule_); any = true) {
        const uint32_t step = messages.ready.top();
        messages.ready.pop();
        issue(step);
    }
    return any;
}

bool ScheduleRun::test_messages() noexcept {
    if (under_way_ == 0) return false;
    int completed = 0;
    int indices[2 * most_messages];
    MPI_Status statuses[2 * most_messages];
    const library::QuietErrors
        quiet;  // raised with the program's handler, for the program's communicator
    const int rc = real.Testsome(under_way_, requests_, &completed, indices, statuses);
    if (rc != MPI_SUCCESS && rc != MPI_ERR_IN_STATUS) {
        give_up(rc);
        return true;
    }
    if (completed == MPI_UNDEFINED || completed <= 0) return false;
    for (int i = 0; i < completed && rc == MPI_ERR_IN_STATUS; ++i)
        if (statuses[i].MPI_ERROR != MPI_SUCCESS) fail(statuses[i].MPI_ERROR);
    std::sort(indices, indices + completed, std::greater<>());  // the last moves into each gap
    for (int i = 0; i < completed; ++i) {
        const int place = indices[i];
        const uint32_t step = steps_[place];
        messages_of(step)->complete(schedule_->ordinals[step]);
        --under_way_;
        requests_[place] = requests_[under_way_];
        steps_[place] = steps_[under_way_];
        complete_step(step);
    }
    return true;
}

bool ScheduleRun::do_local_step() noexcept {
    if (local_.empty()) return false;
    const uint32_t index = local_.top();
    local_.pop();
    const ScheduleStep& step = schedule_->steps[index];
    if (step.kind == ScheduleStep::Kind::reduce) {
        const int rc =
            offload::reduce_elements(at(step.from), at(step.right), at(step.to), step.count,
                                     operands_.type, operands_.extent, operands_.op);
        if (rc != MPI_SUCCESS) fail(rc);
    } else {
        std::memmove(at(step.to), at(step.from), operands_.bytes_of(step.count));
    }
    complete_step(index);
    return true;
}

// Well or not: the library may not touch the memory afterwards.
bool ScheduleRun::finish() noexcept {
    for (int i = 0; i < under_way_; ++i) {
        real.Cancel(&requests_[i]);
        real.Request_free(&requests_[i]);
    }
    under_way_ = 0;
    if (!persistent_) comm_->end_sequence_number(sequence_number_);
    ended_ = true;
    return true;
}

// Messages come before arithmetic: what is on the wire needs nobody meanwhile. Ends when nothing
// moves.
bool ScheduleRun::advance() noexcept {
    if (ended_) return true;
    if (!begun_ && !(begun_ = comm_->may_begin(sequence_number_))) return false;
    for (bool moved = true; moved;) {
        if (left_ == 0 || given_up_) return finish();
        moved = begin_messages(receives_);
        moved |= begin_messages(sends_);
        moved |= test_messages();
        moved |= do_local_step();
    }
    return left_ == 0 || given_up_ ? finish() : false;
}

}  // namespace vecmpi::pipeline
