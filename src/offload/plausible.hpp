// SPDX-License-Identifier: BSD-3-Clause
// Whether the library might refuse a call's arguments. Then the call is not queued but made at
// once, so that it returns the library's own error. Only the library decides what is an error.
// Pure.
#pragma once

#include "offload/api.hpp"

namespace vecmpi::offload {

// Bytes of the buffer of a call; 0 where the type does not tell.
inline size_t payload_bytes(const CallFacts& facts) noexcept {
    if (facts.vector_form || facts.count <= 0 || !library::is_builtin_type(facts.type)) return 0;
    return static_cast<size_t>(facts.count) * library::builtin_type_bytes(facts.type);
}

constexpr bool is_receive(Call call) noexcept {
    return call == Call::Recv || call == Call::Irecv || call == Call::Recv_c ||
           call == Call::Irecv_c;
}

constexpr bool plausible_peer(int peer, int size, bool receive) noexcept {
    return (peer >= 0 && peer < size) || peer == MPI_PROC_NULL ||
           (receive && peer == MPI_ANY_SOURCE);
}

constexpr bool plausible_tag(int tag, int upper_bound, bool receive) noexcept {
    return (tag >= 0 && tag <= upper_bound) || (receive && tag == MPI_ANY_TAG);
}

inline bool plausible_buffer(MPI_Count count, MPI_Datatype type) noexcept {
    return count >= 0 && library::is_type_handle(type);
}

// Integer types on which every predefined op but MAXLOC and MINLOC is defined (MPI 4.0, 6.9.2).
constexpr bool is_plain_integer(MPI_Datatype type) noexcept {
    for (MPI_Datatype integer :
         {MPI_INT, MPI_UNSIGNED, MPI_LONG, MPI_UNSIGNED_LONG, MPI_LONG_LONG, MPI_UNSIGNED_LONG_LONG,
          MPI_SHORT, MPI_UNSIGNED_SHORT, MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_INT8_T,
          MPI_INT16_T, MPI_INT32_T, MPI_INT64_T, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T,
          MPI_UINT64_T})
        if (type == integer) return true;
    return false;
}

// Real floating types: SUM, PROD, MAX and MIN are defined on them.
constexpr bool is_plain_real(MPI_Datatype type) noexcept {
    return type == MPI_FLOAT || type == MPI_DOUBLE || type == MPI_LONG_DOUBLE;
}

// Pairs of op and type that the library surely takes. It may take others.
constexpr bool plausible_op(MPI_Op op, MPI_Datatype type) noexcept {
    if (!library::is_op_handle(op)) return false;
    if (!library::is_builtin_op(op)) return true;
    if (op == MPI_MAXLOC || op == MPI_MINLOC) return type == MPI_2INT;
    if (op == MPI_REPLACE || op == MPI_NO_OP) return false;  // RMA's
    const bool arithmetic = op == MPI_SUM || op == MPI_PROD || op == MPI_MAX || op == MPI_MIN;
    return is_plain_integer(type) || (arithmetic && is_plain_real(type));
}

// The library refuses one buffer for both sides, unless nothing is sent.
inline bool plausible_pair(const CallFacts& facts) noexcept {
    return facts.sendbuf != facts.recvbuf || facts.sendbuf == nullptr || facts.count == 0;
}

template <class... Calls>
constexpr bool is_one_of(Call call, Calls... calls) noexcept {
    return ((call == calls) || ...);
}

// By the names of blocking calls too: those run as nonblocking ones.
constexpr bool sends_at_root(Call call) noexcept {
    return is_one_of(call, Call::Iscatter, Call::Iscatter_c, Call::Scatter, Call::Scatter_c);
}
constexpr bool receives_on_some(Call call) noexcept {
    return is_one_of(call, Call::Igather, Call::Igather_c, Call::Gather, Call::Gather_c,
                     Call::Ireduce, Call::Ireduce_c, Call::Reduce, Call::Reduce_c) ||
           is_one_of(call, Call::Iexscan, Call::Iexscan_c, Call::Exscan, Call::Exscan_c);
}
constexpr bool is_among_neighbours(Call call) noexcept {
    return is_one_of(call, Call::Ineighbor_allgather, Call::Ineighbor_allgather_c,
                     Call::Neighbor_allgather, Call::Neighbor_allgather_c) ||
           is_one_of(call, Call::Ineighbor_alltoall, Call::Ineighbor_alltoall_c,
                     Call::Neighbor_alltoall, Call::Neighbor_alltoall_c);
}

// A buffer of a predefined type that is null, or MPI_IN_PLACE where data come in. What counts on
// some ranks alone is not looked at.
inline bool lacks_buffer(Call call, const CallFacts& facts) noexcept {
    const MPI_Count received = facts.reduces ? facts.count : facts.other_count;
    const bool no_input = facts.sendbuf == nullptr && facts.count != 0;
    const bool no_output =
        received != 0 &&
        (facts.recvbuf == nullptr || (facts.recvbuf == MPI_IN_PLACE && !sends_at_root(call)));
    return (no_input && !sends_at_root(call)) || (no_output && !receives_on_some(call));
}

// Where errors return, a program may look for them at the call. Only the library knows whether it
// takes derived types (which may not be committed), counts in arrays, buffers that overlap, a
// collective between groups, and whether an attached buffer has room.
inline bool plausible_where_errors_return(Call call, const CallFacts& facts,
                                          const CommTraits& comm) noexcept {
    if (!library::is_builtin_type(facts.type) || !library::is_builtin_type(facts.other_type) ||
        is_one_of(call, Call::Ibsend, Call::Ibsend_c))
        return false;
    if (!facts.collective) return true;
    if (facts.vector_form || comm.inter || lacks_buffer(call, facts) ||
        (is_among_neighbours(call) && !comm.neighbours))
        return false;
    const auto received = static_cast<uintptr_t>(facts.other_count) *
                          library::builtin_type_bytes(facts.other_type) *
                          static_cast<uintptr_t>(comm.size);
    const auto from_begin =
        reinterpret_cast<uintptr_t>(facts.sendbuf) - reinterpret_cast<uintptr_t>(facts.recvbuf);
    return from_begin >= received;
}

inline bool plausible(Call call, const CallFacts& facts, const CommTraits& comm,
                      int tag_upper_bound) noexcept {
    if (!facts.vector_form && !(plausible_buffer(facts.count, facts.type) &&
                                plausible_buffer(facts.other_count, facts.other_type)))
        return false;
    if (facts.collective) {
        const bool root = comm.inter || (facts.root >= 0 && facts.root < comm.size);
        const bool op = !facts.reduces || plausible_op(facts.op, facts.type);
        return root && op && plausible_pair(facts);
    }
    const bool receive = is_receive(call);
    const bool buffer =
        facts.sendbuf != nullptr || facts.count == 0 || !library::is_builtin_type(facts.type);
    const bool other_buffer = facts.recvbuf != nullptr || facts.other_count == 0 ||
                              !library::is_builtin_type(facts.other_type);
    return buffer && other_buffer && plausible_tag(facts.tag, tag_upper_bound, receive) &&
           plausible_tag(facts.other_tag, tag_upper_bound, true) &&
           plausible_peer(facts.peer, comm.size, receive) &&
           plausible_peer(facts.other_peer, comm.size, true);
}

// True where the library takes the arguments for sure.
inline bool surely_taken(Call call, const CallFacts& facts, const CommTraits& comm,
                         int tag_upper_bound) noexcept {
    return plausible(call, facts, comm, tag_upper_bound) &&
           (comm.handler != CommTraits::Handler::returns ||
            plausible_where_errors_return(call, facts, comm));
}

}  // namespace vecmpi::offload
