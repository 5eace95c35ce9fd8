# SPDX-License-Identifier: BSD-3-Clause
"""Writes what is one line a function: names, the struct of real functions, the entries. No behaviour."""

from emit_handlers import blocks, has_entry, is_timed, moves_messages
from text import banner, namespace, vocabulary, wrap


def calls_header(functions):
    rows = "".join(f"    {function.short_name},\n" for function in functions)
    body = (
        "// Every function of mpi.h; `Send_c` is MPI_Send_c, `T_...` is MPI_T_..., `X_...` is MPIX_...\n"
        "enum class Call : uint16_t {\n" + rows + "};\n"
        f"constexpr size_t number_of_calls = {len(functions)};\n\n"
        '// Name as in mpi.h, such as "MPI_Send".\n'
        "const char* call_name(Call call) noexcept;\n"
    )
    return (
        banner("Names and numbers of the MPI functions. Says nothing about how they are served.")
        + "#pragma once\n\n#include <cstddef>\n#include <cstdint>\n\n"
        + namespace("library", body)
        + vocabulary("library", "Call")
    )


def calls_source(functions):
    rows = "".join(f'    "{function.name}",\n' for function in functions)
    body = (
        "namespace {\n\nconstexpr const char* names[number_of_calls] = {\n"
        + rows
        + "};\n\n}  // namespace\n\n"
        "const char* call_name(Call call) noexcept { return names[static_cast<size_t>(call)]; }\n"
    )
    return (
        banner("Names of the MPI functions.")
        + '#include "library/api/mpi_calls.hpp"\n\n'
        + namespace("library", body)
    )


def real_header(functions):
    members = ""
    for function in functions:
        prototype = function.prototype
        head = f"    {prototype.result} (*{function.short_name})("
        members += wrap(head, prototype.parameter_list(), ");") + "\n"
    body = (
        "// In the order of enum class Call. A member is null where the library lacks the function.\n"
        "struct RealFunctions {\n" + members + "};\n"
        "static_assert(sizeof(RealFunctions) == number_of_calls * sizeof(void (*)()));\n\n"
        "// Written once by bind_real_functions(), before any entry leads here.\n"
        "extern RealFunctions real;\n"
    )
    return (
        banner("The MPI library's own functions: the only way to call MPI from inside vecmpi.")
        + '#pragma once\n\n#include <mpi.h>\n\n#include "library/api/mpi_calls.hpp"\n\n'
        + namespace("library", body)
        + vocabulary("library", "real")
    )


def as_entry(prefix, function):
    return f"reinterpret_cast<EntryFunction>({prefix}_{function.short_name})"


# What must exist for a call to come to us, by class (and column of a hook): members of struct Need. Whatever else our
# handler does, it only hands the call on. Classes that are not here come while the engine runs.
NEEDS = {
    "pass": (),
    "ordered": ("queue", "counting"),
    "post": ("messages", "counting"),
    "twin": ("messages", "counting"),
    "messages": ("messages", "counting"),
    "requests": ("messages", "virtual_requests", "counting"),
    "collective": ("queue", "twins", "counting"),
}


def needs_of(function):
    """Members of struct Need, one of which must exist; None: the call comes whenever the engine runs."""
    kind = function.columns[0] if function.kind == "hook" and function.columns else function.kind
    if kind not in NEEDS or function.pipeline or function.intranode:
        return None
    plans = ("message_plans",) if moves_messages(function) else ()
    sleep = ("sleepers",) if blocks(function) and kind != "pass" else ()
    return NEEDS[kind] + plans + sleep + ("error_handlers",)


def entries_source(functions):
    rows = ""
    for function in functions:
        if not has_entry(function):
            rows += "    {nullptr, nullptr, When::never, 0},\n"
            continue
        needs = needs_of(function)
        when = "running" if needs is None else "needed"
        if "always" in function.columns:
            when = "always"
        timed = as_entry("timed", function) if is_timed(function) else "nullptr"
        row = [as_entry("enter", function), timed, f"When::{when}"]
        row.append(" | ".join(f"Need::{need}" for need in needs or ()) or "0")
        rows += wrap("    {", row, "},") + "\n"
    body = (
        "// In the order of enum class Call.\n"
        "const Handler handlers[library::number_of_calls] = {\n" + rows + "};\n"
    )
    return (
        banner("The handler of each function that has one.")
        + '#include "entries.hpp"\n#include "intercept/mpi_handlers.hpp"\n\n'
        + namespace("intercept", body)
    )


def entries_assembly(functions):
    rows = ""
    for number, function in enumerate(functions):
        rows += f"entry {function.name}, {2 * number}\n"
        rows += f"entry P{function.name}, {2 * number + 1}\n"
    rows += f"observer vecmpi_pcontrol_entry, {2 * len(functions)}\n"
    return (
        banner("The global symbols MPI_X and PMPI_X; `entry` is a macro of src/intercept/entry.S.")
        + '#include "entry.S"\n\nbegin_entries\n'
        + rows
        + "end_entries\n"
    )
