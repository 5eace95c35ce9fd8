// SPDX-License-Identifier: BSD-3-Clause
// The classes of mpi_functions.def: how a call is served, and what must exist for it to come to us.
// F is a function, of namespace calls. Not a door: src/intercept only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "argument_lists.hpp"
#include "base/api/needs.hpp"
#include "entries.hpp"
#include "offload/api.hpp"
#include "offload/api/call_operations.hpp"
#include "pipeline/api.hpp"
#include "pipeline/api/calls_left.hpp"
#include "pipeline/api/turn.hpp"

namespace vecmpi::intercept {

// What names of parameters do not say of the bytes that a call moves: moved_bytes.hpp.
enum class DataShape : uint8_t { plain, block_for_each, from_root, to_neighbors };

// What all classes have, and what a class or a word of its row may change. A class whose data the
// report counts also has Data: the function whose parameters name them.
template <class F>
struct Served {
    using Function = F;
    static constexpr When when = When::needed;
    static constexpr unsigned needs = 0;   // else it would only hand the call on
    static constexpr bool plans = false;   // makes the plans that messages wait for
    static constexpr bool blocks = false;  // may wait for another process
    static constexpr Path path = Path::library;
    static constexpr DataShape data_shape = DataShape::plain;
};

// What stands for a function that a row does not name.
constexpr std::nullptr_t none = nullptr;
template <auto function>
constexpr bool is_named = !std::is_null_pointer_v<decltype(function)>;

// The library's own calls (ROMIO) are its own on all ranks alike. Inline, so that the return
// address is the entry's.
[[gnu::always_inline]] inline bool is_called_by_library() noexcept {
    return library::is_mpi_library(reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
}

// ---- calls that the library executes ------------------------------------------------------------

template <class F>
struct Pass : Served<F> {
    template <class... A>
    [[gnu::always_inline]] static int serve(A... a) {
        return (real.*F::real_function)(a...);
    }
};

template <class F, auto before = none>
struct Direct : Served<F> {
    using Data = F;
    static constexpr When when = When::running;

    template <class... A>
    [[gnu::always_inline]] static int serve(A... a) {
        if constexpr (is_named<before>) before();
        offload::DirectCall scope{F::call};
        return (real.*F::real_function)(a...);
    }
};

template <class F>
struct Ordered : Served<F> {
    using Data = F;
    static constexpr unsigned needs = Need::queue | Need::counting;

    template <class... A>
    [[gnu::always_inline]] static int serve(A... a) noexcept {
        offload::DirectCall scope{F::call, offload::Reentry::program};
        return (real.*F::real_function)(a...);
    }
};

template <class F, auto serve_by_hand>
struct Hook : Served<F> {
    using Data = F;
    static constexpr When when = When::running;
    static constexpr auto serve = serve_by_hand;
};

template <class F, auto serve_requests>
struct Requests : Served<F> {
    static constexpr unsigned needs = Need::messages | Need::virtual_requests | Need::counting;
    static constexpr bool plans = true;
    static constexpr Path path = Path::completion;
    static constexpr auto serve = serve_requests;
};

// ---- calls that are operations ------------------------------------------------------------------

// A matched message is used up by the call that receives it: the last parameter of its operation.
template <class P>
concept ReceivesMatched = requires(P p) {
    p.message;
};

// A message to or from one buffer, on a communicator.
template <class P>
concept MovesOneBuffer = requires(P p) {
    p.count;
    p.datatype;
    p.tag;
};

template <class Operation, class... A>
[[gnu::always_inline]] inline bool lacks_message(const A&... a) noexcept {
    if constexpr (ReceivesMatched<Parameters<Operation>>) {
        const MPI_Message* message = argument<Parameters<Operation>::members - 1>(a...);
        return message == nullptr || *message == MPI_MESSAGE_NULL;
    }
    return false;
}

template <class Operation, class... A>
[[gnu::always_inline]] inline void use_message_up(int error, const A&... a) noexcept {
    if constexpr (ReceivesMatched<Parameters<Operation>>)
        if (error == MPI_SUCCESS)
            *argument<Parameters<Operation>::members - 1>(a...) = MPI_MESSAGE_NULL;
}

// The one on a node is asked first. What follows the paths' parameters is a request, or `info`.
template <auto pipeline_path, auto node_path, class... A>
[[gnu::always_inline]] inline std::optional<int> serve_by_paths(
    const pipeline::CollectiveForm& form, A... a) noexcept {
    std::optional<int> served;
    if constexpr (is_named<node_path>) served = FirstArguments<node_path>::call(form, a...);
    if constexpr (is_named<pipeline_path>)
        if (!served) served = FirstArguments<pipeline_path>::call(form, a...);
    return served;
}

// Asked before the engine: a function of src/pipeline, one of src/pipeline/node before that. Both
// may decline.
template <class F, auto pipeline_path = none, auto node_path = none>
struct Post : Served<F> {
    using Data = F;
    static constexpr bool has_path = is_named<pipeline_path> || is_named<node_path>;
    static constexpr When when = has_path ? When::running : When::needed;
    static constexpr unsigned needs = Need::messages | Need::queue | Need::counting;
    static constexpr bool plans = true;

    // The paths are asked from a callback as well, as in BlockingCollective.
    template <class... A>
    [[gnu::always_inline]] static int serve(A... a) noexcept {
        MPI_Request* request = last_argument(a...);
        if constexpr (has_path)
            if (is_called_by_library()) return (real.*F::real_function)(a...);
        if constexpr (has_path) {
            const pipeline::CollectiveForm form{
                F::call, pipeline::CollectiveForm::Kind::nonblocking, request};
            if (!no_path_serves(Parameters<F>::of(a...)))
                if (const auto served = serve_by_paths<pipeline_path, node_path>(form, a...))
                    return *served;
        }
        if constexpr (MovesOneBuffer<Parameters<F>>) {
            const Parameters<F> parameters = Parameters<F>::of(a...);
            if (offload::caller_issues(F::call, parameters.count, parameters.datatype)) [[likely]]
                return (real.*F::real_function)(a...);
        }
        if (request == nullptr || lacks_message<F>(a...) || offload::is_reentrant())
            return (real.*F::real_function)(a...);
        return post(a...);
    }

  private:
    template <class P>
    [[gnu::always_inline]] static bool no_path_serves(const P& p) noexcept {
        Counter why = Counter::decline_layout;
        if (!pipeline::is_among_one_rank(p.comm)) {
            bool is_left = false;
            if constexpr (requires { p.op; })  // only blocking ones are scattered
                is_left = pipeline::is_left_with_user_op<false>(p);
            if (pipeline::calls_left.nothing_serves_later)
                why = Counter::decline_no_progress;
            else if (!is_left)
                return false;
        }
        count(why);  // told, not asked: ranks may count apart, and must not go apart
        return true;
    }

    // Apart: here the parameters need memory, of which a short message must not pay the writing.
    template <class... A>
    [[gnu::noinline]] static int post(A... a) noexcept {
        const Parameters<F> parameters = Parameters<F>::of(a...);
        const int error =
            offload::post(offload::operation_of<F>(F::call, parameters), last_argument(a...));
        use_message_up<F>(error, a...);
        return error;
    }
};

// Operation: the nonblocking function that it is run as.
template <class F, class Operation, class... A>
[[gnu::always_inline]] inline int run_as_twin(MPI_Status* status, const A&... a) noexcept {
    const Parameters<Operation> parameters = Parameters<Operation>::of(a...);
    const int error =
        offload::run_twin(offload::operation_of<Operation>(F::call, parameters), status);
    use_message_up<Operation>(error, a...);
    return error;
}

template <class F, class Operation>
struct Twin : Served<F> {
    using Data = Operation;
    static constexpr unsigned needs = Need::messages | Need::counting;
    static constexpr bool plans = true;
    static constexpr bool blocks = true;

    template <class... A>
    [[gnu::always_inline]] static int serve(A... a) noexcept {
        if (lacks_message<Operation>(a...) || !is_served(Parameters<Operation>::of(a...))) {
            offload::DirectCall scope{F::call, offload::Reentry::program};
            return (real.*F::real_function)(a...);
        }
        return run_as_twin<F, Operation>(status_of(a...), a...);
    }

  private:
    // The request of a receive from no one has an empty status in MPICH 4.0.
    template <class P>
    [[gnu::always_inline]] static bool is_served(const P& p) noexcept {
        if constexpr (requires { p.source; })
            if (p.source == MPI_PROC_NULL) return false;
        if constexpr (requires { p.comm; }) return offload::twin_serves(p.comm);
        return offload::matched_twin_serves();
    }

    // Behind the parameters of the operation, where there is one.
    template <class... A>
    [[gnu::always_inline]] static MPI_Status* status_of(const A&... a) noexcept {
        if constexpr (sizeof...(A) > Parameters<Operation>::members) return last_argument(a...);
        return MPI_STATUS_IGNORE;
    }
};

template <class F, class Operation, auto pipeline_path = none, auto node_path = none>
struct BlockingCollective : Served<F> {
    using Data = Operation;
    static constexpr When when =
        is_named<pipeline_path> || is_named<node_path> ? When::running : When::needed;
    static constexpr unsigned needs = Need::queue | Need::twins | Need::counting;
    static constexpr bool plans = true;
    static constexpr bool blocks = true;

    // From a callback as well: other ranks may make the same call outside of one. What cannot be
    // served there, the paths decline.
    template <class... A>
    [[gnu::always_inline]] static int serve(A... a) {
        if (is_surely_librarys(a...)) {
            if (has_need(Need::queue)) offload::issue_what_was_posted();
            return (real.*F::real_function)(a...);
        }
        if constexpr (is_named<node_path>) {
            if (const auto served = node_path(pipeline::CollectiveForm{F::call}, a...))
                return *served;
            // What follows may be timed, as our paths are.
            const pipeline::Turn turn(pipeline::take_turn_of_others());
            if (!has_need(Need::queue | Need::twins | Need::counting) &&
                pipeline::is_left_after_node(Parameters<Operation>::of(a...)))
                return (real.*F::real_function)(a...);
            return serve_elsewhere(a...);
        } else {
            return serve_elsewhere(a...);
        }
    }

  private:
    template <class... A>
    [[gnu::always_inline]] static bool is_surely_librarys(const A&... a) noexcept {
        const auto p = Parameters<Operation>::of(a...);
        return (pipeline::is_among_one_rank(p.comm) || is_small(p) || has_user_op(p)) &&
               !has_need(Need::twins | Need::counting);
    }
    static constexpr auto collective = pipeline::collective_of<pipeline_path>;
    template <class P>
    [[gnu::always_inline]] static bool is_small(const P& p) noexcept {
        if constexpr (collective) return pipeline::is_surely_librarys<*collective>(p);
        return false;
    }
    template <class P>
    [[gnu::always_inline]] static bool has_user_op(const P& p) noexcept {
        if constexpr (requires { p.op; })
            return pipeline::is_left_with_user_op<collective == Collective::allreduce>(p);
        return false;
    }

    template <class... A>
    [[gnu::always_inline]] static int serve_elsewhere(A... a) {
        if (offload::is_reentrant() && is_called_by_library())
            return (real.*F::real_function)(a...);
        if constexpr (is_named<pipeline_path>) {
            const pipeline::CollectiveForm form{F::call, pipeline::CollectiveForm::Kind::blocking};
            if (const auto served = pipeline_path(form, a...)) return *served;
            const pipeline::Turn turn(pipeline::take_turn_of_others());
            return serve_by_library(a...);
        } else {
            return serve_by_library(a...);
        }
    }

    template <class... A>
    [[gnu::always_inline]] static int serve_by_library(A... a) {
        if (!offload::collective_twin_serves(Parameters<Operation>::of(a...).comm)) {
            offload::DirectCall scope{F::call, offload::Reentry::program};
            return (real.*F::real_function)(a...);
        }
        return run_as_twin<F, Operation>(MPI_STATUS_IGNORE, a...);
    }
};

// ---- calls that make persistent requests --------------------------------------------------------

template <class F, auto pipeline_path = none, auto node_path = none>
struct Persistent : Served<F> {
    static constexpr When when = When::running;
    static constexpr bool plans = true;

    template <class... A>
    [[gnu::always_inline]] static int serve(A... a) noexcept {
        MPI_Request* request = last_argument(a...);
        if constexpr (is_named<pipeline_path> || is_named<node_path>) {
            const pipeline::CollectiveForm form{F::call, pipeline::CollectiveForm::Kind::persistent,
                                                request};
            if (const auto served = serve_by_paths<pipeline_path, node_path>(form, a...))
                return *served;
        }
        if (offload::is_reentrant()) {
            offload::note_persistent_requests();  // it may outlive the callback
            return (real.*F::real_function)(a...);
        }
        int error;
        {
            offload::DirectCall scope{F::call};
            error = (real.*F::real_function)(a...);
        }
        if (error == MPI_SUCCESS) adopt(Parameters<F>::of(a...), request);
        return error;
    }

  private:
    template <class P>
    [[gnu::always_inline]] static void adopt(const P& p, MPI_Request* request) noexcept {
        offload::CallFacts facts = offload::facts_of(p);
        if constexpr (requires { p.partitions; }) facts.count *= p.partitions;
        offload::adopt_persistent(facts, request);
    }
};

// ---- words of a row -----------------------------------------------------------------------------

template <class Class>
struct Blocking : Class {
    static constexpr bool blocks = true;
};
template <class Class>
struct MakingPlans : Class {
    static constexpr bool plans = true;
};
template <class Class>
struct Always : Class {
    static constexpr When when = When::always;
};
template <class Class>
struct ForMessages : Class {
    static constexpr When when = When::needed;
    static constexpr unsigned needs = Need::messages | Need::counting;
};
template <class Class>
struct Looking : Class {
    static constexpr unsigned needs = Class::needs | Need::looks;

    template <class... A>
    [[gnu::always_inline]] static int serve(A... a) noexcept {
        const library::LookingCall looking;
        return Class::serve(a...);
    }
};
// offload::look_once(). Mostly that is all a call comes for: a loop of looks is to cost no more.
template <class Class>
struct LookingAgain : Class {
    static constexpr When when = When::needed;
    static constexpr unsigned other_needs = Class::needs | Need::queue | Need::counting;
    static constexpr unsigned needs = other_needs | Need::later_looks;

    template <class... A>
    [[gnu::always_inline]] static int serve(A... a) noexcept {
        using F = typename Class::Function;
        if (has_need(other_needs)) return Class::serve(a...);
        return offload::look_once(flag_of(a...),
                                  [=]() noexcept { return (real.*F::real_function)(a...); });
    }

  private:
    // The first int that the call sets.
    template <class First, class... Rest>
    [[gnu::always_inline]] static const int* flag_of(First first, Rest... rest) noexcept {
        if constexpr (std::is_same_v<First, int*>)
            return first;
        else
            return flag_of(rest...);
    }
};
template <class Class, DataShape shape>
struct Moving : Class {
    static constexpr DataShape data_shape = shape;
};

}  // namespace vecmpi::intercept
