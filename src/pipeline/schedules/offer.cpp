// SPDX-License-Identifier: BSD-3-Clause
// Which schedule serves a collective, and how it is run: at once, on the engine, or again and
// again.
#include "offer.hpp"

#include <bit>
#include <climits>
#include <cstring>
#include <new>
#include <utility>

namespace vecmpi::pipeline {

namespace {

constexpr double long_us = 1000;  // a call that takes so long shows a loser at once

bool is_nonblocking(const CollectiveForm& form) noexcept {
    return form.kind == CollectiveForm::Kind::nonblocking;
}

// The first blocking collective that wants one makes it. A nonblocking one may not wait for the
// others.
PrivateCommPointer private_comm_for(const CollectiveForm& form, MPI_Comm comm, int ranks) noexcept {
    if (PrivateCommPointer known = find_private_comm(comm)) return known;
    if (is_nonblocking(form)) {
        want_private_comm(comm);
        return nullptr;
    }
    const offload::DirectCall scope(form.call);
    return obtain_private_comm(comm, ranks);
}

ChoiceFacts facts_of(const CollectiveForm& form, const Asked& asked,
                     const NodeLayout& layout) noexcept {
    ChoiceFacts facts;
    facts.collective = asked.collective;
    facts.bytes = asked.bytes;
    facts.elements = asked.elements;
    // Its elements are bytes.
    if (asked.collective == Collective::allgather)
        facts.largest_bytes = static_cast<uint64_t>(asked.elements);
    facts.ranks = layout.ranks();
    facts.nodes = layout.nodes();
    facts.most_ranks_on_a_node = layout.most_ranks_on_a_node();
    facts.uniform = layout.uniform();
    facts.user_op = asked.user_op;
    facts.nonblocking = !form.is_blocking();
    return facts;
}

// The model's choice, unless a trial has shown, or shows, what is fastest.
ServedBy served_by(const CollectiveForm& form, const Asked& asked, const Choice& choice,
                   PrivateComm& comm) noexcept {
    const Server by_model = is_algorithm_of(asked.collective, choice.path) ? Server::ours
                            : choice.may_be_cut                            ? Server::segments
                                                                           : Server::library;
    if (!choice.is_open) return {by_model};
    if (!form.is_blocking() || settings().trials == TrialMode::off)
        return {comm.trials().known(asked.collective, asked.bytes, by_model)};
    TriedCall tried{form.call, asked.collective, asked.bytes};
    if (choice.may_be_cut) tried.candidates |= bit_of(Server::segments);
    tried.is_long = std::min(choice.predicted_us, choice.library_us) >= long_us;
    tried.ours = name_of(choice.rival);
    return comm.trials().begin_call(tried, comm.comm());
}

Looks looks_at(const PreparedCollective& prepared) noexcept {
    return prepared.caller_waits || offload::jobs_are_watched() ? Looks::often : Looks::seldom;
}

// One run of a collective whose data goes through packed memory.
class PackedRun : public ScheduleRun {
  public:
    PackedRun(std::shared_ptr<const PreparedCollective> prepared, Buffer<char> packed,
              const Operands& operands)
        : ScheduleRun(prepared->comm, prepared->schedule, operands, prepared->persistent_number,
                      looks_at(*prepared)),
          prepared_(std::move(prepared)),
          packed_(std::move(packed)) {
        for (const PreparedCollective::Part& part : prepared_->packed_before)
            if (error == MPI_SUCCESS) error = part.buffer.pack_to(packed_.get() + part.first);
    }
    bool advance() noexcept override {
        if (!ScheduleRun::advance()) return false;
        if (std::exchange(unpacked_, true)) return true;
        for (const PreparedCollective::Part& part : prepared_->unpacked_after)
            if (error == MPI_SUCCESS) error = part.buffer.unpack_from(packed_.get() + part.first);
        return true;
    }

  private:
    std::shared_ptr<const PreparedCollective> prepared_;
    Buffer<char> packed_;
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
        Buffer<char> packed = allocate<char>(prepared->packed_bytes);
        if (!packed) return nullptr;
        Operands operands = prepared->operands;
        operands.input = packed.get();
        operands.output = packed.get() + prepared->packed_output;
        return std::make_unique<PackedRun>(std::move(prepared), std::move(packed), operands);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

// ---- persistent: the request keeps what was prepared, and runs it at each start -----------------

using SharedCollective = std::shared_ptr<PreparedCollective>;

const SharedCollective* kept_by_request(const void* arguments) noexcept {
    const SharedCollective* kept;
    std::memcpy(&kept, arguments, sizeof kept);
    return kept;
}

std::unique_ptr<offload::Job> start_persistent(const void* arguments, int* error) noexcept {
    const SharedCollective& prepared = *kept_by_request(arguments);
    std::unique_ptr<offload::Job> run = make_run(prepared);
    if (!run) *error = out_of_memory(prepared->program_comm);
    return run;
}

void drop_persistent(const void* arguments) noexcept {
    const SharedCollective* const kept = kept_by_request(arguments);
    const auto& number = (*kept)->persistent_number;
    if (number) (*kept)->comm->give_number(*number);
    delete kept;
}

constexpr offload::JobMaker maker{start_persistent, drop_persistent};

// Every rank has a request for it and a number that all have free, or none keeps one: then it is
// the library's collective.
std::optional<int> make_persistent(const CollectiveForm& form,
                                   const SharedCollective& prepared) noexcept {
    auto* const kept = new (std::nothrow) SharedCollective(prepared);
    const MPI_Comm comm = prepared->program_comm;
    const bool made =
        kept && offload::make_persistent_job(form.call, comm, maker, &kept, sizeof kept,
                                             form.request) == MPI_SUCCESS;
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
    if (made)
        offload::request_free(form.request);
    else
        delete kept;
    return std::nullopt;
}

}  // namespace

bool is_served_at_some_size(Collective collective, Decline& decline) noexcept {
    if (may_be_scheduled_at_some_size(collective, !offload::agreement().one_node, settings()))
        return true;
    decline.note(Counter::decline_layout);
    return false;
}

bool is_worth_a_look(Collective collective, uint64_t bytes, Decline& decline) noexcept {
    Counter why{};
    if (may_be_scheduled(collective, bytes, !offload::agreement().one_node, settings(), &why))
        return true;
    decline.note(why);
    return false;
}

// On one node and with nothing set, a call ends here without a question to the library.
std::optional<offload::CommTraits> traits_to_schedule(const CollectiveForm& form,
                                                      Collective collective, MPI_Comm comm,
                                                      MPI_Datatype type, MPI_Count count,
                                                      Decline& decline) noexcept {
    const bool served = is_served_at_some_size(collective, decline);
    const bool may_meet_wishes = form.is_blocking() && private_comms_are_wanted();
    if (!served && !may_meet_wishes) return std::nullopt;
    const auto traits = traits_to_cut(comm, type, count, decline);
    if (traits && may_meet_wishes && private_comm_is_wanted(comm))
        private_comm_for(form, comm, traits->size);
    return served ? traits : std::nullopt;
}

std::optional<Offer> offer_schedule(const CollectiveForm& form, const Asked& asked, MPI_Comm comm,
                                    const offload::CommTraits& traits, Decline& decline) noexcept {
    const auto declined = [&decline](Counter why) noexcept {
        decline.note(why);
        return std::nullopt;
    };
    if (traits.size < 2) return declined(Counter::decline_setting);
    if (asked.elements > INT_MAX && real.Isend_c == nullptr) return declined(Counter::decline_type);
    if (!form.is_blocking() && !offload::jobs_are_served())
        return declined(Counter::decline_no_progress);
    Offer offer;
    offer.comm = private_comm_for(form, comm, traits.size);
    if (!offer.comm) return declined(Counter::decline_no_private_comm);
    if (!form.is_blocking() && !offer.comm->serves_requests())
        return declined(Counter::decline_session);
    const NodeLayout& layout = settings().reproducible && reduces(asked.collective)
                                   ? offer.comm->flat_layout()
                                   : offer.comm->layout();
    ChoiceFacts facts = facts_of(form, asked, layout);
    facts.spans_world = spans_world(traits);
    const Choice choice = offer.comm->choice_for(facts);
    const ServedBy by = served_by(form, asked, choice, *offer.comm);
    if (by.server == Server::library && choice.is_open) decline.leave_to_library();
    if (by.server != Server::ours) {
        turn_of_others = by.turn;
        return declined(choice.is_open ? Counter::decline_slower : choice.why);
    }
    offer.turn = by.turn;
    offer.request.algorithm = choice.is_open ? choice.rival : choice.path;
    offer.request.collective = asked.collective;
    offer.request.segments = choice.segments;
    offer.request.rank = offer.comm->rank();
    offer.request.layout = &layout;
    return offer;
}

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

void count_schedule(const CollectiveForm& form, const Offer& offer, uint64_t bytes) noexcept {
    constexpr auto first = static_cast<unsigned>(CollectivePath::ring);
    count_call(static_cast<size_t>(form.call), Path::scheduled, bytes);
    count(static_cast<Counter>(static_cast<unsigned>(Counter::ran_ring) +
                               static_cast<unsigned>(offer.request.algorithm) - first));
}
static_assert(static_cast<unsigned>(Counter::ran_dissemination) -
                  static_cast<unsigned>(Counter::ran_ring) ==
              static_cast<unsigned>(CollectivePath::dissemination) -
                  static_cast<unsigned>(CollectivePath::ring));

std::optional<int> run_offer(const CollectiveForm& form, const Offer& offer,
                             PreparedCollective prepared, uint64_t bytes, MPI_Comm comm) noexcept {
    prepared.comm = offer.comm;
    prepared.program_comm = comm;
    prepared.caller_waits = form.is_blocking();
    prepared.schedule = offer.comm->schedule_for(offer.request);
    if (!prepared.schedule) return out_of_memory(comm);
    count_schedule(form, offer, bytes);
    const bool calls_program = is_user_op(prepared.operands.op);
    SharedCollective shared;
    try {
        shared = std::make_shared<PreparedCollective>(std::move(prepared));
    } catch (const std::bad_alloc&) {
        return out_of_memory(comm);
    }
    if (form.kind == CollectiveForm::Kind::persistent) return make_persistent(form, shared);
    std::unique_ptr<offload::Job> run = make_run(std::move(shared));
    if (!run) return out_of_memory(comm);
    if (is_nonblocking(form))
        return offload::post_job(form.call, std::move(run), comm, form.request);
    const Turn timed(offer.turn);
    return calls_program ? offload::run_job_unowned(form.call, *run, comm)
                         : offload::run_job(*run, comm);
}

}  // namespace vecmpi::pipeline
