// SPDX-License-Identifier: BSD-3-Clause
// The decision, from what costs least to ask on.
#include "candidate.hpp"

#include <algorithm>
#include <climits>

#include "pipeline/segments/scattered_allreduce.hpp"
#include "pipeline/segments/segment_count.hpp"

namespace vecmpi::pipeline {

namespace {

constexpr double long_us = 1000;  // a call that takes so long shows a loser at once

ChoiceFacts facts_of(const CollectiveCall& call, const Asked& asked,
                     const NodeLayout& layout) noexcept {
    ChoiceFacts facts;
    facts.collective = call.collective;
    facts.bytes = asked.bytes;
    facts.elements = asked.elements;
    // Its elements are bytes.
    if (call.collective == Collective::allgather)
        facts.largest_bytes = static_cast<uint64_t>(asked.elements);
    facts.ranks = layout.ranks();
    facts.nodes = layout.nodes();
    facts.most_ranks_on_a_node = layout.most_ranks_on_a_node();
    facts.uniform = layout.uniform();
    facts.user_op = library::is_user_op(call.op);
    facts.nonblocking = !call.form.is_blocking();
    facts.spans_world = call.spans_world();
    return facts;
}

// The model's choice, unless a trial has shown, or shows, what is fastest.
ServedBy served_by(const CollectiveCall& call, uint64_t bytes, const Choice& choice,
                   PrivateComm& own) noexcept {
    const Server by_model = is_algorithm_of(call.collective, choice.path) ? Server::ours
                            : choice.may_be_cut                           ? Server::segments
                                                                          : Server::library;
    if (!choice.is_open) return {by_model};
    if (!call.form.is_blocking() || settings().trials == TrialMode::off)
        return {own.trials().known(call.collective, bytes, by_model)};
    TriedCall tried{call.form.call, call.collective, bytes};
    if (choice.may_be_cut) tried.candidates |= bit_of(Server::segments);
    tried.is_long = std::min(choice.predicted_us, choice.library_us) >= long_us;
    tried.ours = name_of(choice.rival);
    return own.trials().begin_call(tried, own.comm());
}

// Null, and a reason is noted: no schedule serves this form of the call.
PrivateCommPointer comm_of_schedules(CollectiveCall& call, const Asked& asked) noexcept {
    const bool is_later = !call.form.is_blocking();
    const auto declined = [&call](Counter why) noexcept {
        call.decline.note(why);
        return nullptr;
    };
    if (call.ranks() < 2) return declined(Counter::decline_setting);
    if (real.Isend_c == nullptr &&
        most_in_message(call.collective, asked.elements, call.ranks()) > INT_MAX)
        return declined(Counter::decline_type);
    if (is_later && !offload::jobs_are_served()) return declined(Counter::decline_no_progress);
    PrivateCommPointer own = private_comm_of(call);
    if (!own) return declined(Counter::decline_no_private_comm);
    if (is_later && !own->serves_requests()) return declined(Counter::decline_session);
    return own;
}

ScheduleRequest request_of(const CollectiveCall& call, const Choice& choice, int rank,
                           const NodeLayout& layout) noexcept {
    ScheduleRequest request;
    request.algorithm = choice.is_open ? choice.rival : choice.path;
    request.collective = call.collective;
    request.segments = choice.segments;
    request.rank = rank;
    request.layout = &layout;
    return request;
}

// The library's call in pieces, with its turn, or the library itself.
Candidate candidate_of_pieces(CollectiveCall& call, const Asked& asked, Candidate pieces) noexcept {
    Counter why{};
    if (call.collective == Collective::allreduce && library::is_user_op(call.op) &&
        !offload::agreement().twin_collectives && asked.elements <= INT_MAX) {
        if (!scatters({asked.bytes, asked.elements, call.ranks()}, settings(), &why)) {
            call.decline.note(why);
        } else if (is_commutative(call.op)) {
            pieces.kind = Candidate::Kind::scattered;
            return pieces;
        }
    }
    pieces.segments = number_of_segments(
        {call.collective, asked.bytes, asked.elements, call.ranks(), call.spans_world()},
        settings(), &why);
    if (pieces.segments == 0)
        call.decline.note(why);
    else if (segment(asked.elements, pieces.segments, 0).count <= INT_MAX)
        pieces.kind = Candidate::Kind::segments;
    return pieces;
}

}  // namespace

// The first blocking collective that wants one makes it. A nonblocking one may not wait for the
// others.
PrivateCommPointer private_comm_of(const CollectiveCall& call) noexcept {
    if (PrivateCommPointer known = find_private_comm(call.comm)) return known;
    if (call.form.kind == CollectiveForm::Kind::nonblocking) {
        want_private_comm(call.comm);
        return nullptr;
    }
    const offload::DirectCall scope(call.form.call);
    return obtain_private_comm(call.comm, call.ranks());
}

int64_t most_in_message(Collective collective, int64_t elements, int ranks) noexcept {
    switch (collective) {
        case Collective::allreduce:
        case Collective::reduce:
        case Collective::bcast:
        case Collective::scan:
        case Collective::exscan:
            return elements;
        default:  // trees and Bruck's algorithm send blocks of several ranks at once
            int64_t all = 0;
            return __builtin_mul_overflow(elements, ranks, &all) ? INT64_MAX : all;
    }
}

bool may_be_scheduled(CollectiveCall& call, uint64_t bytes) noexcept {
    Counter why{};
    const bool several_nodes = !offload::agreement().one_node;
    if (may_be_scheduled(call.collective, bytes, several_nodes, settings(), &why)) return true;
    call.decline.note(why);
    return false;
}

Candidate candidate_for(CollectiveCall& call, const Asked& asked) noexcept {
    Candidate candidate;
    PrivateCommPointer own = asked.can_be_scheduled ? comm_of_schedules(call, asked) : nullptr;
    if (own) {
        const NodeLayout& layout = settings().reproducible && reduces(call.collective)
                                       ? own->flat_layout()
                                       : own->layout();
        const Choice choice = own->choice_for(facts_of(call, asked, layout));
        const ServedBy by = served_by(call, asked.bytes, choice, *own);
        candidate.turn = by.turn;
        if (by.server == Server::ours) {
            candidate.kind = Candidate::Kind::schedule;
            candidate.request = request_of(call, choice, own->rank(), layout);
            candidate.own = std::move(own);
            return candidate;
        }
        call.decline.note(choice.is_open ? Counter::decline_slower : choice.why);
        if (by.server == Server::library && choice.is_open) {
            turn_of_others = by.turn;
            return {};
        }
    }
    if (!call.form.is_blocking() || !asked.can_be_cut) return {};
    candidate = candidate_of_pieces(call, asked, std::move(candidate));
    return candidate.kind == Candidate::Kind::library ? Candidate{} : candidate;
}

}  // namespace vecmpi::pipeline
