# SPDX-License-Identifier: BSD-3-Clause
"""Writes what is known of an MPI function, whatever is done with it: its name, its prototype, its parameters."""

from text import banner, namespace, wrap


def calls_list(functions):
    rows = "".join(f"VECMPI_CALL({function.short_name}, {function.name})\n" for function in functions)
    return (
        banner("Every MPI function that has an entry: for a macro VECMPI_CALL(name in vecmpi, name in mpi.h).")
        + rows
    )


def later_prototypes(functions, in_mpi_h):
    later = [function.prototype for function in functions if function.name not in in_mpi_h]
    rows = "".join(
        wrap(f"{prototype.result} {prototype.name}(", prototype.parameter_list() or ["void"], ");") + "\n"
        for prototype in later
    )
    return (
        banner("Functions that the installed mpi.h is too old for: no more than their types is used.")
        + f'#pragma once\n\n#include <mpi.h>\n\nextern "C" {{\n{rows}}}\n'
    )


# ---- parameters by name -----------------------------------------------------------------------------


def has_named_parameters(function):
    """Those that operations are made of, and whose data the report counts."""
    takes_type = any(parameter.type == "MPI_Datatype" for parameter in function.prototype.parameters)
    return function.kind in ("post", "persistent") or (
        function.kind in ("direct", "ordered", "hook") and takes_type
    )


def stored_type(parameter):
    """The program's variable may be gone when the call is issued."""
    if parameter.name == "message":
        return "MatchedMessage"
    return parameter.type + ("*" if parameter.is_array() else "")


def from_arguments(members):
    """From the arguments of a call: this function's, or one's that takes more behind them."""
    head = "    [[gnu::always_inline]] static Parameters of("
    declared = [parameter.declaration() for parameter in members] + ["const auto&..."]
    names = [parameter.name for parameter in members]
    return wrap(head, declared, ") noexcept {") + "\n" + wrap("        return {", names, "};") + "\n    }\n"


def issue_function(prototype):
    """The library's own function, with parameters that were stored."""
    passed = [parameter.name for parameter in prototype.without_request()] + ["mpi_request"]
    head = "    int issue(MPI_Request* mpi_request) noexcept { return "
    one_line = head + f"real.{prototype.short_name()}({', '.join(passed)}); }}\n"
    if len(one_line) <= 100:
        return one_line
    head = "    int issue(MPI_Request* mpi_request) noexcept {\n"
    return head + wrap(f"        return real.{prototype.short_name()}(", passed, ");\n    }\n")


def parameters_struct(function):
    members = function.prototype.without_request()
    declared = [f"{stored_type(parameter)} {parameter.name};" for parameter in members]
    text = f"template <> struct Parameters<calls::{function.short_name}> {{\n"
    text += f"    static constexpr size_t members = {len(members)};\n"
    text += wrap("    ", declared, "", separator="") + "\n" + from_arguments(members)
    if function.kind == "post":
        text += issue_function(function.prototype)
    return text + "};\n"


def parameters_header(functions):
    body = "".join(parameters_struct(function) for function in functions if has_named_parameters(function))
    return (
        banner("Parameters of MPI functions by name.")
        + '#pragma once\n\n#include "library/api/call_types.hpp"\n\n'
        + namespace("library", body)
    )
