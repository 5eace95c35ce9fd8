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
    facts.ranks = layout.ranks();
    facts.nodes = layout.nodes();
    facts.most_ranks_on_a_node = layout.most_ranks_on_a_node();
    facts.uniform = layout.uniform();
    facts.user_op = asked.user_op;
    facts.nonblocking = form.kind != CollectiveForm::Kind::blocking;
    return facts;
}

Looks looks_at(const Recipe& recipe) noexcept {
    return recipe.caller_waits || offload::jobs_are_watched() ? Looks::often : Looks::seldom;
}

// One run of a recipe whose data goes through packed memory.
class PackedRun : public ScheduleRun {
  public:
    PackedRun(std::shared_ptr<const Recipe> recipe, Buffer<char> packed, const Elements& elements)
        : ScheduleRun(recipe->comm, recipe->schedule, elements, recipe->persistent_number,
                      looks_at(*recipe)),
          recipe_(std::move(recipe)),
          packed_(std::move(packed)) {
        for (const PackedPart& part : recipe_->packed_before)
            if (error == MPI_SUCCESS) error = part.pack(packed_.get(), recipe_->comm->comm());
    }
    bool advance() noexcept override {
        if (!ScheduleRun::advance()) return false;
        if (!std::exchange(unpacked_, true))
            for (const PackedPart& part : recipe_->unpacked_after)
                if (error == MPI_SUCCESS) error = part.unpack(packed_.get(), recipe_->comm->comm());
        return true;
    }

  private:
    std::shared_ptr<const Recipe> recipe_;
    Buffer<char> packed_;
    bool unpacked_ = false;
};

// Null: out of memory.
std::unique_ptr<offload::Job> make_run(std::shared_ptr<const Recipe> recipe) noexcept {
    try {
        if (recipe->packed_bytes == 0)
            return std::make_unique<ScheduleRun>(recipe->comm, recipe->schedule, recipe->elements,
                                                 recipe->persistent_number, looks_at(*recipe));
        Buffer<char> packed = allocate<char>(recipe->packed_bytes);
        if (!packed) return nullptr;
        Elements elements = recipe->elements;
        elements.input = elements.output = packed.get();
        return std::make_unique<PackedRun>(std::move(recipe), std::move(packed), elements);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

// ---- persistent: the request keeps a recipe, and cooks it at each start -------------------------

using SharedRecipe = std::shared_ptr<Recipe>;

std::unique_ptr<offload::Job> start_persistent(const void* arguments, int* error) noexcept {
    const SharedRecipe* recipe;
    std::memcpy(&recipe, arguments, sizeof recipe);
    std::unique_ptr<offload::Job> run = make_run(*recipe);
    if (!run) *error = out_of_memory((*recipe)->program_comm);
    return run;
}

void drop_persistent(const void* arguments) noexcept {
    const SharedRecipe* recipe;
    std::memcpy(&recipe, arguments, sizeof recipe);
    const auto& number = (*recipe)->persistent_number;
    if (number) (*recipe)->comm->give_number(*number);
    delete recipe;
}

constexpr offload::JobMaker maker{start_persistent, drop_persistent};

// Every rank has a request for it and a number that all have free, or none keeps one: then it is
// the library's collective.
std::optional<int> make_persistent(const CollectiveForm& form,
                                   const SharedRecipe& recipe) noexcept {
    auto* const kept = new (std::nothrow) SharedRecipe(recipe);
    const MPI_Comm comm = recipe->program_comm;
    const bool made =
        kept && offload::make_persistent_job(form.call, comm, maker, &kept, sizeof kept,
                                             form.request) == MPI_SUCCESS;
    const uint32_t mine = made ? recipe->comm->free_numbers() : 0;
    uint32_t free_on_all = 0;
    {
        const offload::DirectCall scope(form.call);
        real.Allreduce(&mine, &free_on_all, 1, MPI_UINT32_T, MPI_BAND, recipe->comm->comm());
    }
    if (free_on_all != 0) {
        recipe->persistent_number = static_cast<uint32_t>(std::countr_zero(free_on_all));
        recipe->comm->take_number(*recipe->persistent_number);
        return MPI_SUCCESS;
    }
    if (made)
        offload::request_free(form.request);
    else
        delete kept;
    return std::nullopt;
}

bool is_served_at_some_size(Collective collective, Decline& decline) noexcept {
    if (may_be_scheduled_at_some_size(collective, !offload::agreement().one_node, settings()))
        return true;
    decline.note(Counter::decline_layout);
    return false;
}

}  // namespace

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
    const bool may_meet_wishes =
        form.kind == CollectiveForm::Kind::blocking && private_comms_are_wanted();
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
    if (form.kind != CollectiveForm::Kind::blocking && !offload::jobs_are_served())
        return declined(Counter::decline_no_progress);
    Offer offer;
    offer.comm = private_comm_for(form, comm, traits.size);
    if (!offer.comm) return declined(Counter::decline_no_private_comm);
    if (form.kind != CollectiveForm::Kind::blocking && !offer.comm->serves_requests())
        return declined(Counter::decline_session);
    const NodeLayout& layout = settings().reproducible && reduces(asked.collective)
                                   ? offer.comm->flat_layout()
                                   : offer.comm->layout();
    const Choice choice = offer.comm->choice_for(facts_of(form, asked, layout));
    if (!is_algorithm_of(asked.collective, choice.path)) return declined(choice.why);
    offer.request.collective = asked.collective;
    offer.request.algorithm = choice.path;
    offer.request.segments = choice.segments;
    offer.request.rank = offer.comm->rank();
    offer.request.layout = &layout;
    return offer;
}

PackedPart::PackedPart(const CollectiveForm& form, const void* buffer, MPI_Count count,
                       MPI_Datatype type, MPI_Count first) noexcept
    : buffer_(buffer),
      count_(count),
      type_(type),
      first_(first),
      bytes_(count * offload::shape_of(type).bytes),
      is_kept_(form.kind != CollectiveForm::Kind::blocking),
      handle_(is_kept_ ? datatype::PackableBuffer::Handle::other
                       : datatype::PackableBuffer::handle_of_call()) {
    if (!is_kept_) return;
    // A reference to it that has none of its attributes: the program's functions stay uncalled.
    if (real.Type_contiguous(1, type, &type_) != MPI_SUCCESS) type_ = MPI_DATATYPE_NULL;
    if (type_ != MPI_DATATYPE_NULL) real.Type_commit(&type_);
}

PackedPart::PackedPart(PackedPart&& other) noexcept
    : buffer_(other.buffer_),
      count_(other.count_),
      type_(std::exchange(other.type_, MPI_DATATYPE_NULL)),
      first_(other.first_),
      bytes_(other.bytes_),
      is_kept_(other.is_kept_),
      handle_(other.handle_) {}

PackedPart::~PackedPart() {
    if (is_kept_ && type_ != MPI_DATATYPE_NULL) real.Type_free(&type_);
}

int PackedPart::pack(char* packed, MPI_Comm comm) const noexcept {
    return datatype::PackableBuffer(buffer_, count_, type_, handle_)
        .pack(packed + first_, bytes_, comm);
}

int PackedPart::unpack(const char* packed, MPI_Comm comm) const noexcept {
    return datatype::PackableBuffer(buffer_, count_, type_, handle_)
        .unpack(packed + first_, bytes_, comm);
}

void count_schedule(const CollectiveForm& form, const Offer& offer, uint64_t bytes) noexcept {
    constexpr auto first = static_cast<unsigned>(CollectivePath::ring);
    count_call(static_cast<size_t>(form.call), Path::scheduled, bytes);
    count(static_cast<Counter>(static_cast<unsigned>(Counter::ran_ring) +
                               static_cast<unsigned>(offer.request.algorithm) - first));
}
static_assert(static_cast<unsigned>(Counter::ran_bruck) -
                  static_cast<unsigned>(Counter::ran_ring) ==
              static_cast<unsigned>(CollectivePath::bruck) -
                  static_cast<unsigned>(CollectivePath::ring));

std::optional<int> run_offer(const CollectiveForm& form, const Offer& offer, Recipe recipe,
                             uint64_t bytes, MPI_Comm comm) noexcept {
    recipe.comm = offer.comm;
    recipe.program_comm = comm;
    recipe.caller_waits = form.kind == CollectiveForm::Kind::blocking;
    recipe.schedule = offer.comm->schedule_for(offer.request);
    if (!recipe.schedule) return out_of_memory(comm);
    count_schedule(form, offer, bytes);
    const bool calls_program = is_user_op(recipe.elements.op);
    SharedRecipe shared;
    try {
        shared = std::make_shared<Recipe>(std::move(recipe));
    } catch (const std::bad_alloc&) {
        return out_of_memory(comm);
    }
    if (form.kind == CollectiveForm::Kind::persistent) return make_persistent(form, shared);
    std::unique_ptr<offload::Job> run = make_run(std::move(shared));
    if (!run) return out_of_memory(comm);
    if (is_nonblocking(form))
        return offload::post_job(form.call, std::move(run), comm, form.request);
    return calls_program ? offload::run_job_beside(form.call, *run, comm)
                         : offload::run_job(form.call, *run, comm);
}

}  // namespace vecmpi::pipeline
