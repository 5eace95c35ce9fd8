// SPDX-License-Identifier: BSD-3-Clause
// Operations made of the parameters of a nonblocking MPI function, whichever it is. A part of the
// door that only templates over functions include.
#pragma once

#include "library/api/mpi_parameters.hpp"
#include "offload/api/operations.hpp"

namespace vecmpi::offload {

using library::Parameters;

// Runs the real function with parameters that were stored: an IssueFunction. From a copy, since it
// uses a matched message up.
template <class Function>
int issue(const void* arguments, MPI_Request* mpi_request) noexcept {
    auto parameters = *static_cast<const Parameters<Function>*>(arguments);
    return parameters.issue(mpi_request);
}

// Of a call with one buffer, or of the send side of one with two.
template <class P>
void note_sent(CallFacts& facts, const P& p) noexcept {
    if constexpr (requires { p.count; }) facts.count = p.count;
    if constexpr (requires { p.sendcount; }) facts.count = p.sendcount;
    if constexpr (requires { p.datatype; }) facts.type = p.datatype;
    if constexpr (requires { p.sendtype; }) facts.type = p.sendtype;
    if constexpr (requires { p.buf; }) facts.sendbuf = p.buf;
    if constexpr (requires { p.buffer; }) facts.sendbuf = p.buffer;
    if constexpr (requires { p.tag; }) facts.tag = p.tag;
    if constexpr (requires { p.sendtag; }) facts.tag = p.sendtag;
}

// A reduction's recvcount is its only count.
template <class P>
void note_received(CallFacts& facts, const P& p) noexcept {
    constexpr bool has_type = requires { p.recvtype; };
    if constexpr (requires { p.recvcount; })
        (has_type ? facts.other_count : facts.count) = p.recvcount;
    if constexpr (has_type) facts.other_type = p.recvtype;
    if constexpr (requires { p.recvtag; }) facts.other_tag = p.recvtag;
    if constexpr (requires { p.recvbuf; }) {
        facts.sendbuf = p.sendbuf;
        facts.recvbuf = p.recvbuf;
    }
}

template <class P>
void note_peers(CallFacts& facts, const P& p) noexcept {
    constexpr bool has_source = requires { p.source; };
    constexpr bool has_dest = requires { p.dest; };
    constexpr bool is_matched = requires { p.message; };
    if constexpr (has_source) facts.peer = p.source;
    if constexpr (has_dest) facts.peer = p.dest;
    if constexpr (has_dest && has_source) facts.other_peer = p.source;
    if constexpr (requires { p.root; }) facts.root = p.root;
    facts.collective = !has_source && !has_dest && !is_matched;
}

template <class P>
CallFacts facts_of(const P& p) noexcept {
    CallFacts facts;
    if constexpr (requires { p.comm; }) facts.comm = p.comm;
    note_sent(facts, p);
    note_received(facts, p);
    note_peers(facts, p);
    if constexpr (requires { p.op; }) facts.op = p.op;
    constexpr bool has_send_counts = requires { p.sendcounts; };
    constexpr bool has_receive_counts = requires { p.recvcounts; };
    facts.reduces = requires { p.op; };
    facts.vector_form = has_send_counts || has_receive_counts;
    facts.type_arrays = requires { p.sendtypes; };
    return facts;
}

// A call by this name, as a nonblocking Function of these parameters, which must outlive it.
template <class Function>
Operation operation_of(Call call, const Parameters<Function>& parameters) noexcept {
    return make_operation(call, issue<Function>, parameters, facts_of(parameters));
}

}  // namespace vecmpi::offload
