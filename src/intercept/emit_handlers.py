# SPDX-License-Identifier: BSD-3-Clause
"""Writes the functions that serve MPI calls, one pattern a class. What a pattern means stands in offload.hpp.

serve_X does it, noexcept but where the library calls functions of the program; enter_X is where the program comes in,
and calls its error handler functions at the end; timed_X is the same for VECMPI_REPORT.
"""

import re

from prototypes import GeneratorError
from text import banner, namespace, wrap

COUNT_ARRAYS = ("sendcounts", "recvcounts")


# ---- operations: arguments of a nonblocking call and the function that issues it -------------------


def operation_parameters(prototype):
    return [parameter for parameter in prototype.parameters if parameter.name != "request"]


def is_matched_message(parameter):
    return parameter.name == "message"


def arguments_struct(prototype):
    members = ""
    for parameter in operation_parameters(prototype):
        stored = parameter.type + ("*" if parameter.is_array() else "")
        if is_matched_message(parameter):
            stored = stored.removesuffix(
                "*"
            )  # the program's variable may be gone when the call is issued
        members += f"    {stored} {parameter.name};\n"
    return f"struct {prototype.short_name()}Arguments {{\n{members}}};\n"


def issue_declaration(prototype):
    return f"int issue_{prototype.short_name()}(const void* arguments, MPI_Request* mpi_request) noexcept"


def issue_function(prototype):
    name = prototype.short_name()
    parameters = operation_parameters(prototype)
    copies = any(is_matched_message(parameter) for parameter in parameters)
    names = [parameter.name for parameter in parameters]
    passed = [("&" if is_matched_message(p) else "") + p.name for p in parameters] + ["mpi_request"]
    binding = "    auto [" if copies else "    const auto& ["
    return (
        issue_declaration(prototype)
        + " {\n"
        + wrap(binding, names, "] =")
        + f"\n        *static_cast<const {name}Arguments*>(arguments);\n"
        + wrap(f"    return real.{name}(", passed, ");")
        + "\n}\n"
    )


def operations_header(posts):
    body = "\n".join(
        arguments_struct(f.prototype) + issue_declaration(f.prototype) + ";\n" for f in posts
    )
    return (
        banner(
            "Arguments of the nonblocking calls, as an operation carries them, and how each is issued."
        )
        + "#pragma once\n\n#include <mpi.h>\n\n"
        + namespace("offload", body)
    )


def operations_source(posts):
    body = "\n".join(issue_function(function.prototype) for function in posts)
    return (
        banner("Issues nonblocking calls from their stored arguments. Part of src/offload.")
        + '#include "offload/api/mpi_operations.hpp"\n\n#include "library/api/mpi_real.hpp"\n\n'
        + namespace("offload", body)
    )


# ---- what is known of a call from its parameters ----------------------------------------------------


def scalar(prototype, *names):
    """The first of these parameters that the function has and that is no array."""
    for name in names:
        parameter = prototype.parameter(name)
        if parameter is not None and not parameter.is_array():
            return name
    return None


def call_facts(prototype):
    """Members of CallFacts in their order, as designated initialisers."""
    has = prototype.parameter
    two_sides = any(
        parameter.name.startswith(("sendcount", "sendtype")) for parameter in prototype.parameters
    )
    received = () if two_sides else ("recvcount",)
    received_type = () if two_sides else ("recvtype",)
    both_buffers = has("sendbuf") and has("recvbuf")
    point_to_point = has("dest") or has("source") or has("message")
    facts = [
        ("comm", scalar(prototype, "comm")),
        ("count", scalar(prototype, "count", "sendcount", *received)),
        ("other_count", scalar(prototype, "recvcount") if two_sides else None),
        ("type", scalar(prototype, "datatype", "sendtype", *received_type)),
        ("other_type", scalar(prototype, "recvtype") if two_sides else None),
        ("peer", scalar(prototype, "dest", "source")),
        ("other_peer", "source" if has("dest") and has("source") else None),
        ("tag", scalar(prototype, "tag", "sendtag")),
        ("other_tag", scalar(prototype, "recvtag")),
        ("root", scalar(prototype, "root")),
        ("op", scalar(prototype, "op")),
        (
            "sendbuf",
            "sendbuf" if both_buffers else "buf" if has("buf") and point_to_point else None,
        ),
        ("recvbuf", "recvbuf" if both_buffers else None),
        ("collective", None if point_to_point else "true"),
        ("reduces", "true" if has("op") else None),
        (
            "vector_form",
            "true" if any(has(name) and has(name).is_array() for name in COUNT_ARRAYS) else None,
        ),
        ("type_arrays", "true" if has("sendtypes") else None),
    ]
    return [f".{member} = {value}" for member, value in facts if value is not None]


# ---- handlers ---------------------------------------------------------------------------------------


def signature(function, prefix="serve", linkage=""):
    return wrap(
        f"{linkage}{function.prototype.result} {prefix}_{function.short_name}(",
        function.prototype.parameter_list(),
        ") noexcept",
    )


# Hand-written, and the library calls functions of the program in them.
CALLING_BACK = ("Comm_free", "Comm_disconnect", "Type_free", "Type_dup", "Reduce_local", "Reduce_local_c", "Finalize")


def own_signature(function):
    """Of a function that only the entry below it calls."""
    return signature(function, linkage="static ")


def inlined_signature(function):
    """The same where the return address must be the entry's."""
    return signature(function, linkage="[[gnu::always_inline]] static inline ")


def leavable(text):
    """An exception may pass: of a callback, or of an error handler function that the callback called."""
    return text.removesuffix(" noexcept")


def entry_signature(function):
    return leavable(signature(function, "enter"))


def entry(function, served_by, before=""):
    """Nothing of ours is left on the stack when finish calls a function of the program."""
    call = wrap(f"    return finish({served_by}(", function.prototype.argument_list(), "));")
    return entry_signature(function) + " {\n" + before + call + "\n}\n"


def moves_messages(function):
    """Or waits for them: a program that sends calls one of these before long."""
    kinds = ("post", "twin", "collective", "persistent", "requests")
    return function.kind in kinds or function.prototype.parameter("sendtag") is not None


BLOCKING = re.compile(
    r"(Sendrecv|Sendrecv_replace|Probe|Mprobe|Wait|Waitall|Waitany|Waitsome"
    r"|Win_(fence|wait|complete|start|lock|lock_all|unlock|unlock_all|flush\w*|free|create|allocate\w*)"
    r"|Comm_(accept|connect|disconnect|create|create_group|dup|dup_with_info|split|split_type|spawn|spawn_multiple)"
    r"|Intercomm_(create|merge))(_c)?"
)


def blocks(function):
    """It may wait for another process, and never returns before that has done its part."""
    return function.kind in ("twin", "collective") or BLOCKING.fullmatch(function.short_name) is not None


def enter_served(function, operations):
    before = "    datatype::make_wanted_message_plans();\n" if moves_messages(function) else ""
    if not blocks(function):
        return entry(function, f"serve_{function.short_name}", before)
    call = wrap(f"        rc = serve_{function.short_name}(", function.prototype.argument_list(), ");")
    scope = "    int rc;\n    {\n        const library::BlockingCall waits;\n" + call + "\n    }\n"
    return entry_signature(function) + " {\n" + before + scope + "    return finish(rc);\n}\n"


def enter_real(function, operations):
    return entry(function, f"real.{function.short_name}")


def may_call_error_handlers(function):
    """Class pass: MPI_Wtime and its like have no error, MPI_T knows no error handlers."""
    prototype = function.prototype
    return (
        prototype.result == "int"
        and not prototype.variadic
        and not function.name.startswith("MPI_T_")
    )


def has_entry(function):
    return function.kind != "pass" or may_call_error_handlers(function)


def call_real(function, indent="    "):
    return wrap(
        f"{indent}return real.{function.short_name}(", function.prototype.argument_list(), ");"
    )


# ---- the same, timed, for VECMPI_REPORT --------------------------------------------------------------


# Columns: buffer that may be MPI_IN_PLACE, count, type; an alternative for that case in the next row.
SEND_SIDE = (("sendbuf", "sendcount", "sendtype"), ("recvbuf", "recvcount", "recvtype"))
# One block for each rank of the communicator.
BLOCKS_FOR_EACH = ("Alltoall", "Reduce_scatter_block")
KINDS_WITH_DATA = ("post", "twin", "collective", "direct", "ordered", "hook")


def is_timed(function):
    """All that have an entry, but MPI_T's, and what comes before the engine runs or ends it."""
    return (
        has_entry(function)
        and "always" not in function.columns
        and not function.name.startswith("MPI_T_")
    )


def is_count(parameter):
    return parameter is not None and parameter.type in ("int", "MPI_Count") and not parameter.is_array()


def base_name(function):
    """Allgather of Iallgather_c: what the collectives of a family have in common."""
    name = function.short_name.removesuffix("_c")
    return name[1:].capitalize() if name[:1] == "I" and name[1:2].islower() else name


def moves(function, count, datatype):
    """The call that adds up `count` elements: of one rank, or an array with one for each."""
    parameter = function.prototype.parameter(count)
    if parameter is None or function.prototype.parameter(datatype) is None:
        return ""
    if parameter.is_array():
        own = function.prototype.parameter("sendcount") is not None  # a gather in place
        form = "moves_own" if own else "moves_all"
        return f"timing.{form}({count}, {datatype}, comm);"
    if not is_count(parameter):
        return ""
    if base_name(function) in BLOCKS_FOR_EACH:
        return f"timing.moves_for_each({count}, {datatype}, comm);"
    # Between two groups the arguments of the rank that is MPI_ROOT, and of those that are MPI_PROC_NULL, may mean
    # nothing.
    given = count if function.prototype.parameter("root") is None else f"root >= 0 ? {count} : 0"
    return f"timing.moves({given}, {datatype});"


def bytes_of_two_sides(function):
    """A scatter's root alone has a send side, so the receive side comes first there."""
    sides = SEND_SIDE[::-1] if "catter" in function.name else SEND_SIDE
    buffer = sides[0][0]
    first, second = (moves(function, side[1], side[2]) or moves(function, side[1] + "s", side[2]) for side in sides)
    if first == "" or "eighbor" in function.name or "exchange" in function.name:
        # No MPI_IN_PLACE there, and the neighbours are not the communicator's ranks.
        return first if "(sendcount, " in first else ""
    if "catter" in function.name and "moves_all" in second:
        second = ""  # the root of a Scatterv: its own part does not move
    if second == "":
        return f"if ({buffer} != MPI_IN_PLACE) {first}"
    return f"if ({buffer} != MPI_IN_PLACE)\n            {first}\n        else\n            {second}"


def bytes_moved(function):
    """A statement, or nothing where the call moves nothing or does not tell. Never of handles that it may change."""
    if function.kind not in KINDS_WITH_DATA:
        return ""
    has = function.prototype.parameter
    if has("sendtype") and has("recvtype") and has("sendbuf") and has("recvbuf"):
        return bytes_of_two_sides(function)
    for count, datatype in (
        ("origin_count", "origin_datatype"),
        ("incount", "datatype"),
        ("outcount", "datatype"),
        ("recvcounts", "datatype"),
        ("recvcount", "datatype"),
        ("count", "datatype"),
    ):
        statement = moves(function, count, datatype)
        if statement:
            return statement
    return ""


def timed_signature(function):
    return leavable(signature(function, "timed"))


def timed_entry(function, operations):
    """As the entry, in a scope that ends before a function of the program may be called."""
    if not is_timed(function):
        return ""
    call = "serve_" if function.kind != "pass" else "real."
    path = ", Path::completion" if function.kind == "requests" else ""
    moved = bytes_moved(function)
    text = timed_signature(function) + " {\n    int rc;\n    {\n"
    constant = "" if moved else "const "
    text += f"        {constant}TimedCall timing{{Call::{function.short_name}{path}}};\n"
    text += f"        {moved}\n" if moved else ""
    text += "        const library::BlockingCall waits;\n" if blocks(function) else ""
    text += "        datatype::make_wanted_message_plans();\n" if moves_messages(function) else ""
    text += wrap(f"        rc = {call}{function.short_name}(", function.prototype.argument_list(), ");")
    return text + "\n    }\n    return finish(rc);\n}\n"


def hand_on(function, condition, before=""):
    """if (condition) the real function, on one line where it fits."""
    if before == "":
        line = f"    if ({condition}) " + call_real(function, "").strip()
        if "\n" not in line and len(line) <= 100:
            return line + "\n"
    return f"    if ({condition}) {{\n{before}{call_real(function, '        ')}\n    }}\n"


def direct_scope(function, indent="    ", reentry=""):
    return f"{indent}offload::DirectCall scope{{Call::{function.short_name}{reentry}}};\n"


def message_scope(function):
    """Messages and collectives: the library makes them without calling MPI itself."""
    return direct_scope(function, "        ", ", offload::Reentry::program")


def arguments_of(function, operation):
    """Fills the operation's arguments from the parameters of the same names."""
    values = []
    for parameter in operation_parameters(operation):
        if function.prototype.parameter(parameter.name) is None:
            raise GeneratorError(
                f"{function.name}: its twin {operation.name} takes '{parameter.name}'"
            )
        values.append(("*" if is_matched_message(parameter) else "") + parameter.name)
    return wrap(f"    const offload::{operation.short_name()}Arguments arguments{{", values, "};") + "\n"


def run_operation(function, operation, runner, last):
    issue = f"offload::issue_{operation.short_name()}"
    made = [f"offload::make_operation(Call::{function.short_name}, {issue}, arguments, facts)", last]
    text = arguments_of(function, operation)
    text += wrap("    const offload::CallFacts facts{", call_facts(operation), "};") + "\n"
    if not takes_message(function):
        return text + wrap(f"    return offload::{runner}(", made, ");") + "\n"
    # A matched message is used up by the call that receives it.
    return (
        text + wrap(f"    const int error = offload::{runner}(", made, ");") + "\n"
        "    if (error == MPI_SUCCESS) *message = MPI_MESSAGE_NULL;\n    return error;\n"
    )


def takes_message(function):
    return function.prototype.parameter("message") is not None


def refusal(function, condition):
    return f"message == nullptr || {condition}" if takes_message(function) else condition


FORMS = {"collective": "blocking", "post": "nonblocking", "persistent": "persistent"}


def ask_paths(function, folder, name, first):
    passed = [first] + [
        parameter.name
        for parameter in function.prototype.parameters
        if parameter.name not in ("request", "info")
    ]
    call = wrap(f"    if (const auto served = {folder}{name}(", passed, "))")
    return f"{call}\n        return *served;\n"


def request_behind(function):
    return "" if function.prototype.parameter("request") is None else ", request"


def ask_intranode(function):
    """Where the ranks share a node."""
    if function.intranode == "":
        return ""
    first = f"Call::{function.short_name}{request_behind(function)}"
    return ask_paths(function, "pipeline::node::", function.intranode, first)


def ask_pipeline(function):
    """Paths of ours for this collective; where they decline, it goes on as its class says."""
    if function.pipeline == "":
        return ""
    kind = f"pipeline::CollectiveForm::Kind::{FORMS[function.kind]}"
    form = f"pipeline::CollectiveForm{{Call::{function.short_name}, {kind}{request_behind(function)}}}"
    return ask_paths(function, "pipeline::", function.pipeline, form)


# The library's own calls (ROMIO) are its own on all ranks alike.
CALLED_BY_LIBRARY = "library::is_mpi_library(reinterpret_cast<uintptr_t>(__builtin_return_address(0)))"


def serve_post(function, operations):
    operation = function.prototype
    body = hand_on(function, refusal(function, "offload::is_reentrant()"))
    body += run_operation(function, operation, "post", "request")
    if not function.pipeline and not function.intranode:
        return own_signature(function) + " {\n" + body + "}\n"
    # The paths are asked from a callback as well, as in serve_collective().
    paths = ask_intranode(function) + ask_pipeline(function)
    return inlined_signature(function) + " {\n" + hand_on(function, CALLED_BY_LIBRARY) + paths + body + "}\n"


def serve_twin(function, operations):
    operation = operations[function.columns[0]]
    communicator = scalar(function.prototype, "comm") or "MPI_COMM_WORLD"
    condition = f"!offload::twin_serves({communicator})"
    if function.prototype.parameter("source") is not None:
        # The request of a receive from no one has an empty status in MPICH 4.0.
        condition = f"source == MPI_PROC_NULL || {condition}"
    text = own_signature(function) + " {\n"
    text += hand_on(function, refusal(function, condition), message_scope(function))
    status = "status" if function.prototype.parameter("status") else "MPI_STATUS_IGNORE"
    return text + run_operation(function, operation, "run_twin", status) + "}\n"


def serve_collective(function, operations):
    # From a callback as well: other ranks may make the same call outside of one. What cannot be served there, the
    # paths decline.
    operation = operations[function.columns[0]]
    return (
        leavable(inlined_signature(function))
        + " {\n"
        + ask_intranode(function)
        + hand_on(function, f"offload::is_reentrant() && {CALLED_BY_LIBRARY}")
        + ask_pipeline(function)
        + hand_on(function, "!offload::collective_twin_serves(comm)", message_scope(function))
        + run_operation(function, operation, "run_twin", "MPI_STATUS_IGNORE")
        + "}\n"
    )


def serve_direct(function, operations):
    before = f"    offload::{function.columns[0]}();\n" if function.columns else ""
    return (
        leavable(own_signature(function))
        + " {\n"
        + before
        + direct_scope(function)
        + call_real(function)
        + "\n}\n"
    )


def serve_ordered(function, operations):
    scope = direct_scope(function, reentry=", offload::Reentry::program")
    return own_signature(function) + " {\n" + scope + call_real(function) + "\n}\n"


def serve_persistent(function, operations):
    if function.prototype.parameter("request") is None:
        raise GeneratorError(f"{function.name}: class persistent, but it makes no request")
    adopted = "comm, request, op" if function.prototype.parameter("op") else "comm, request"
    call = wrap(
        f"        error = real.{function.short_name}(", function.prototype.argument_list(), ");"
    )
    return (
        own_signature(function)
        + " {\n"
        + ask_pipeline(function)
        + hand_on(function, "offload::is_reentrant()")
        + "    int error;\n    {\n"
        + direct_scope(function, "        ")
        + call
        + "\n    }\n"
        f"    if (error == MPI_SUCCESS) offload::adopt_persistent({adopted});\n    return error;\n}}\n"
    )


def serve_requests(function, operations):
    call = wrap(f"    return offload::{function.columns[0]}(", function.prototype.argument_list(), ");")
    return own_signature(function) + " {\n" + call + "\n}\n"


SOURCES = {
    "serve_posts.cpp": (("post",), serve_post, "Nonblocking calls: posted to the engine."),
    "serve_twins.cpp": (
        ("twin",),
        serve_twin,
        "Blocking point-to-point calls, run as their nonblocking twins.",
    ),
    "serve_collectives.cpp": (
        ("collective",),
        serve_collective,
        "Blocking collectives, run as their nonblocking twins where the ranks agreed to.",
    ),
    "serve_direct.cpp": (
        ("direct",),
        serve_direct,
        "Calls that the library executes on the caller's thread.",
    ),
    "serve_ordered.cpp": (
        ("ordered",),
        serve_ordered,
        "Calls that the library executes on the caller's thread without any call of MPI.",
    ),
    "serve_persistent.cpp": (
        ("persistent",),
        serve_persistent,
        "Calls that make persistent requests.",
    ),
    "serve_requests.cpp": (
        ("requests",),
        serve_requests,
        "Calls that take requests, real or virtual.",
    ),
    "serve_by_hand.cpp": (
        ("hook",),
        enter_served,
        "Entries of the hand-written handlers.",
    ),
    "serve_pass.cpp": (
        ("pass",),
        enter_real,
        "Calls that are the library's own: entered only once the program made an error handler.",
    ),
}


def written(function, operations, pattern):
    text = pattern(function, operations)
    if pattern not in (enter_served, enter_real):
        text += enter_served(function, operations)
    return text + timed_entry(function, operations)


def handlers_source(functions, operations, kinds, pattern, purpose):
    chosen = [f for f in functions if f.kind in kinds and has_entry(f)]
    includes = '#include "error_handlers.hpp"\n#include "timed_call.hpp"\n#include "intercept/mpi_handlers.hpp"\n'
    if any(kind in ("post", "twin", "collective") for kind in kinds):
        includes += '#include "offload/api/mpi_operations.hpp"\n'
    if any(moves_messages(function) for function in chosen):
        includes += '#include "datatype/api.hpp"\n'
    if any(function.pipeline for function in chosen):
        includes += '#include "pipeline/api.hpp"\n'
    if any(function.intranode for function in chosen):
        includes += '#include "pipeline/node/api.hpp"\n'
    body = "\n".join(written(function, operations, pattern) for function in chosen)
    return banner(purpose) + includes + '#include "offload/api.hpp"\n\n' + namespace("intercept", body)


def handlers_header(functions):
    by_hand = [function for function in functions if function.kind == "hook"]
    body = "// Where the program comes in. May be left by an exception of its error handler function.\n"
    body += "".join(entry_signature(f) + ";\n" for f in functions if has_entry(f))
    body += "\n// The same for the report; cold, so that they lie apart and repeat little of the code.\n"
    body += "".join("[[gnu::cold]] " + timed_signature(f) + ";\n" for f in functions if is_timed(f))
    body += "\n// Hand-written.\n"
    for function in by_hand:
        declared = signature(function)
        if function.short_name in CALLING_BACK:
            declared = leavable(declared)
        body += declared + ";\n"
    return (
        banner("The handlers. Only src/intercept includes this.")
        + "#pragma once\n\n#include <mpi.h>\n\n"
        + namespace("intercept", body)
    )
