// SPDX-License-Identifier: BSD-3-Clause
// Messages of derived datatypes, where they go as bytes. Not a door: src/intercept only.
#pragma once

#include <limits>
#include <optional>
#include <utility>

#include "datatype/api.hpp"
#include "handler_classes.hpp"

namespace vecmpi::intercept {

template <class Count>
constexpr MPI_Count most_of = static_cast<MPI_Count>(std::numeric_limits<Count>::max());

// Of a status that the library has filled in.
inline MPI_Count bytes_received(const MPI_Status& status) noexcept {
    MPI_Count bytes = 0;
    real.Get_count_c(&status, MPI_BYTE, &bytes);
    return bytes;
}

// What goes to no one or comes from no one is the library's: there may be no memory behind it. Its
// is what it has served before, and would serve again.
template <datatype::TypedCall::Way way>
[[gnu::always_inline]] inline bool is_librarys(MPI_Count count, MPI_Datatype type, int peer,
                                               MPI_Comm comm) noexcept {
    if (library::is_builtin_type(type) || peer == MPI_PROC_NULL) [[likely]]
        return true;
    return datatype::is_left(
        {.way = way, .type = type, .object = library::number_of_handle(comm), .count = count});
}

// The receiving side of a blocking call. by_library(memory, count, type, status) makes it.
template <class Count, class ByLibrary>
[[gnu::always_inline]] inline int receive_typed(void* memory, Count count, MPI_Datatype type,
                                                int source, MPI_Comm comm, MPI_Status* status,
                                                ByLibrary by_library) noexcept {
    if (is_librarys<datatype::TypedCall::Way::receive>(count, type, source, comm))
        return by_library(memory, count, type, status);
    datatype::MessageAsBytes message(kernels::Direction::unpack, memory, count, type, comm,
                                     most_of<Count>);
    if (!message) {
        const int error = by_library(memory, count, type, status);
        if (error == MPI_SUCCESS) message.note_moved_by_library();
        return error;
    }
    MPI_Status own;
    MPI_Status* const filled = status == MPI_STATUS_IGNORE ? &own : status;
    const int error =
        by_library(message.place(), static_cast<Count>(message.bytes()), MPI_BYTE, filled);
    if (error == MPI_SUCCESS) message.unpack(bytes_received(*filled));
    return error;
}

// The sending side: by_library(memory, count, type).
template <class Count, class ByLibrary>
[[gnu::always_inline]] inline int send_typed(const void* memory, Count count, MPI_Datatype type,
                                             int dest, MPI_Comm comm,
                                             ByLibrary by_library) noexcept {
    if (is_librarys<datatype::TypedCall::Way::send>(count, type, dest, comm))
        return by_library(memory, count, type);
    datatype::MessageAsBytes message(kernels::Direction::pack, memory, count, type, comm,
                                     most_of<Count>);
    if (!message) {
        const int error = by_library(memory, count, type);
        if (error == MPI_SUCCESS) message.note_moved_by_library();
        return error;
    }
    return by_library(message.place(), static_cast<Count>(message.sent_count()),
                      message.sent_type());
}

// Word `typed` of a row of class twin: MPI_Send, MPI_Recv and their sisters.
template <class Class>
struct Typed : Class {
    static constexpr unsigned needs = Class::needs | Need::typed_messages;

    template <class Count>
    [[gnu::always_inline]] static int serve(const void* buf, Count count, MPI_Datatype type,
                                            int dest, int tag, MPI_Comm comm) noexcept {
        return send_typed(buf, count, type, dest, comm,
                          [=](const void* from, Count number, MPI_Datatype of) noexcept {
                              return serve_untyped(from, number, of, dest, tag, comm);
                          });
    }
    template <class Count>
    [[gnu::always_inline]] static int serve(void* buf, Count count, MPI_Datatype type, int source,
                                            int tag, MPI_Comm comm, MPI_Status* status) noexcept {
        return receive_typed(
            buf, count, type, source, comm, status,
            [=](void* to, Count number, MPI_Datatype of, MPI_Status* filled) noexcept {
                return serve_untyped(to, number, of, source, tag, comm, filled);
            });
    }

  private:
    template <class... A>
    [[gnu::always_inline]] static int serve_untyped(A... a) noexcept {
        if (!has_need(Class::needs)) [[likely]]  // it came for its type alone
            return (real.*Class::Function::real_function)(a...);
        return Class::serve(a...);
    }
};

// Of a row of class post: MPI_Isend, MPI_Irecv and their sisters. Their bytes are kept until the
// message is complete.
template <class F>
struct Typed<Post<F>> : Post<F> {
    static constexpr unsigned needs = Post<F>::needs | Need::typed_requests;

    template <class... A>
    [[gnu::always_inline]] static int serve(A... a) noexcept {
        const Parameters<F> parameters = Parameters<F>::of(a...);
        if (!is_librarys<way>(parameters.count, parameters.datatype, peer_of(parameters),
                              parameters.comm)) [[unlikely]]
            if (const auto served = serve_derived(a...)) return *served;
        if (!has_need(Post<F>::needs)) [[likely]]  // it came for its type alone
            return (real.*F::real_function)(a...);
        return Post<F>::serve(a...);
    }

  private:
    static constexpr bool receives = requires(Parameters<F> p) { p.source; };
    static constexpr auto direction =
        receives ? kernels::Direction::unpack : kernels::Direction::pack;
    static constexpr auto way =
        receives ? datatype::TypedCall::Way::post_receive : datatype::TypedCall::Way::post_send;

    static int peer_of(const Parameters<F>& p) noexcept {
        if constexpr (receives)
            return p.source;
        else
            return p.dest;
    }

    // Nothing where the library is to move the message by its type.
    template <class... A>
    [[gnu::noinline]] static std::optional<int> serve_derived(A... a) noexcept {
        Parameters<F> p = Parameters<F>::of(a...);
        MPI_Request* const request = last_argument(a...);
        using Count = decltype(p.count);
        if (request == nullptr) return std::nullopt;
        auto message =
            datatype::PackedRequest::of(direction, F::call, offload::facts_of(p), most_of<Count>);
        if (message == nullptr) return std::nullopt;
        p.buf = message->place();
        p.count = static_cast<Count>(message->sent_count());
        p.datatype = message->sent_type();
        return offload::post_with_ending(offload::operation_of<F>(F::call, p), std::move(message),
                                         request);
    }
};

// Of a hook that does the same by hand.
template <class F, auto serve_by_hand>
struct Typed<ForMessages<Hook<F, serve_by_hand>>> : ForMessages<Hook<F, serve_by_hand>> {
    static constexpr unsigned needs =
        ForMessages<Hook<F, serve_by_hand>>::needs | Need::typed_messages;
};

}  // namespace vecmpi::intercept
