# SPDX-License-Identifier: BSD-3-Clause
"""Writes which class of handler_classes.hpp serves each MPI function, and declares the hand-written handlers."""

from text import banner, namespace, wrap

# Words of a row that change its class: templates around it.
AROUND = {
    "blocks": "Blocking<{}>",
    "plans": "MakingPlans<{}>",
    "looks": "Looking<{}>",
    "again": "LookingAgain<{}>",
    "always": "Always<{}>",
    "messages": "ForMessages<{}>",
    "typed": "Typed<{}>",
    "file_data": "MovingFileData<{}, datatype::FileAccess::independent>",
    "file_data_of_all": "MovingFileData<{}, datatype::FileAccess::collective>",
    "completes": "Completing<{}>",
    "for_each": "Moving<{}, DataShape::block_for_each>",
    "scatters": "Moving<{}, DataShape::from_root>",
    "neighbors": "Moving<{}, DataShape::to_neighbors>",
}


# Where the functions stand that the columns of a class name.
FOLDERS = {
    "direct": ("offload",),
    "requests": ("offload",),
    "post": ("pipeline", "pipeline::node"),
    "collective": ("pipeline", "pipeline::node"),
    "persistent": ("pipeline", "pipeline::node"),
}


def arguments_of_class(function):
    """Of the class template: the function itself, its twin, functions of ours."""
    own = [f"calls::{function.short_name}"]
    if function.kind == "hook":
        return [*own, f"serve_{function.short_name}"]
    columns = function.row.columns
    if function.twin is not None:
        own.append(f"calls::{function.twin.short_name()}")
        columns = columns[1:]
    folders = FOLDERS.get(function.kind, ())
    named = zip(folders, columns, strict=False)
    return own + [name if name == "none" else f"{folder}::{name}" for folder, name in named]


def class_of(function):
    template = "BlockingCollective" if function.kind == "collective" else function.kind.capitalize()
    text = f"{template}<{', '.join(arguments_of_class(function))}>"
    for word in function.words:
        text = AROUND.get(word, "{}").format(text)
    return text


def handler_row(function):
    if function.kind == "real":
        return f"NO_HANDLER({function.short_name})\n"
    if function.kind == "convert":
        return f"CONVERTER({function.short_name}, convert_{function.short_name})\n"
    return wrap("HANDLER(", [function.short_name, class_of(function)], ")") + "\n"


def handlers_list(functions):
    return (
        banner(
            "The class that serves each function: for macros HANDLER(name, class), CONVERTER(name, function)"
            " and NO_HANDLER(name)."
        )
        + "".join(handler_row(function) for function in functions)
    )


def hand_written(function):
    type_of = "CallingBack" if "calls_back" in function.words else "ByHand"
    name = f"{'convert' if function.kind == 'convert' else 'serve'}_{function.short_name}"
    return f"{type_of}<calls::{function.short_name}> {name};\n"


def handlers_header(functions):
    body = "".join(hand_written(function) for function in functions if function.kind in ("hook", "convert"))
    return (
        banner("The hand-written handlers: parameters as in mpi.h. Only src/intercept includes this.")
        + '#pragma once\n\n#include "hand_written.hpp"\n\n'
        + namespace("intercept", body)
    )
