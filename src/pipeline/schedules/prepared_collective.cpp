// SPDX-License-Identifier: BSD-3-Clause
// How a schedule is run: at once, on the engine, or again and again.
#include "prepared_collective.hpp"

#include <bit>
#include <new>
#include <utility>

namespace vecmpi::pipeline {

namespace {

Looks looks_at(const PreparedCollective& prepared) noexcept {
    return prepared.caller_waits || offload::jobs_are_watched() ? Looks::often : Looks::seldom;
}

// One run of a collective whose data goes through packed memory.
class PackedRun : public ScheduleRun {
  public:
    PackedRun(std::shared_ptr<const PreparedCollective> prepared, datatype::PackMemory packed,
              const Operands& operands)
        : ScheduleRun(prepared->comm, prepared->schedule, operands, prepared->persistent_number,
                      looks_at(*prepared)),
          prepared_(std::move(prepared)),
          packed_(std::move(packed)) {
        for (const PreparedCollective::Part& part : prepared_->packed_before)
            if (error == MPI_SUCCESS) error = part.buffer.pack_to(packed_.place() + part.first);
    }
    bool advance() noexcept override {
        if (!ScheduleRun::advance()) return false;
        if (std::exchange(unpacked_, true)) return true;
        for (const PreparedCollective::Part& part : prepared_->unpacked_after)
            if (error == MPI_SUCCESS) error = part.buffer.unpack_from(packed_.place() + part.first);
        return true;
    }

  private:
    std::shared_ptr<const PreparedCollective> prepared_;
    datatype::PackMemory packed_;
    bool unpacked_ = false;
};

// Null: out of memory.
std::unique_ptr<offload::Job> make_run(
    std::shared_ptr<const PreparedCollective> prepared) noexcept {
    try {
        if (prepared->packed_bytes == 0)
            return std::make_unique<ScheduleRun>(prepared->comm, prepared->schedule,
                                                 prepared->operands, prepared->persistent_number,
                                                 looks_at(*prepared));
        datatype::PackMemory packed;
        if (!packed.take_anyhow(prepared->packed_bytes)) return nullptr;
        Operands operands = prepared->operands;
        operands.input = packed.place();
        operands.output = packed.place() + prepared->packed_output;
        return std::make_unique<PackedRun>(std::move(prepared), std::move(packed), operands);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

// ---- persistent: the request keeps what was prepared, and runs it at each start -----------------

using SharedCollective = std::shared_ptr<PreparedCollective>;

class KeptSchedule final : public offload::JobSource {
  public:
    explicit KeptSchedule(SharedCollective prepared) noexcept : prepared_(std::move(prepared)) {}
    ~KeptSchedule() override {
        if (const auto& number = prepared_->persistent_number)
            prepared_->comm->give_number(*number);
    }
    std::unique_ptr<offload::Job> start(int* error) noexcept override {
        std::unique_ptr<offload::Job> run = make_run(prepared_);
        if (!run) *error = out_of_memory(prepared_->program_comm);
        return run;
    }

  private:
    const SharedCollective prepared_;
};

// Every rank has a request for it and a number that all have free, or none keeps one: then it is
// the library's collective.
std::optional<int> make_persistent(const CollectiveForm& form,
                                   const SharedCollective& prepared) noexcept {
    std::unique_ptr<offload::JobSource> kept(new (std::nothrow) KeptSchedule(prepared));
    const bool made = offload::make_persistent_job(form.call, prepared->program_comm,
                                                   std::move(kept), form.request) == MPI_SUCCESS;
    const uint32_t mine = made ? prepared->comm->free_numbers() : 0;
    uint32_t free_on_all = 0;
    {
        const offload::DirectCall scope(form.call);
        real.Allreduce(&mine, &free_on_all, 1, MPI_UINT32_T, MPI_BAND, prepared->comm->comm());
    }
    if (free_on_all != 0) {
        prepared->persistent_number = static_cast<uint32_t>(std::countr_zero(free_on_all));
        prepared->comm->take_number(*prepared->persistent_number);
        return MPI_SUCCESS;
    }
    if (made) offload::request_free(form.request);
    return std::nullopt;
}

}  // namespace

std::optional<Blocks> blocks_of(const RankCounts& counts, int ranks, MPI_Count units) noexcept {
    try {
        Blocks blocks(static_cast<size_t>(ranks));
        int64_t first = 0;
        for (int r = 0; r < ranks; ++r) {
            blocks[static_cast<size_t>(r)] = {first, counts[r] * units};
            first += counts[r] * units;
        }
        return blocks;
    } catch (const std::bad_alloc&) {
        return std::nullopt;
    }
}

void count_schedule(const CollectiveCall& call, const Candidate& by, uint64_t bytes) noexcept {
    // Both in the order of algorithms.def.
    constexpr auto first = static_cast<unsigned>(schedule_paths[0]);
    count_call(static_cast<size_t>(call.form.call), Path::scheduled, bytes);
    count(static_cast<Counter>(static_cast<unsigned>(Counter::ran_ring) +
                               static_cast<unsigned>(by.request.algorithm) - first));
}

std::optional<int> run_schedule(const CollectiveCall& call, const Candidate& by,
                                PreparedCollective prepared, uint64_t bytes) noexcept {
    const CollectiveForm& form = call.form;
    prepared.comm = by.own;
    prepared.program_comm = call.comm;
    prepared.caller_waits = form.is_blocking();
    prepared.schedule = by.own->schedule_for(by.request);
    if (!prepared.schedule) return out_of_memory(call.comm);
    count_schedule(call, by, bytes);
    const bool calls_program = library::is_user_op(prepared.operands.op);
    SharedCollective shared;
    try {
        shared = std::make_shared<PreparedCollective>(std::move(prepared));
    } catch (const std::bad_alloc&) {
        return out_of_memory(call.comm);
    }
    if (form.kind == CollectiveForm::Kind::persistent) return make_persistent(form, shared);
    std::unique_ptr<offload::Job> run = make_run(std::move(shared));
    if (!run) return out_of_memory(call.comm);
    if (form.kind == CollectiveForm::Kind::nonblocking)
        return offload::post_job(form.call, std::move(run), call.comm, form.request);
    const Turn timed(by.turn);
    return calls_program ? offload::run_job_unowned(form.call, *run, call.comm)
                         : offload::run_job(*run, call.comm);
}

}  // namespace vecmpi::pipeline
