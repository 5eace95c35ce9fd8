# SPDX-License-Identifier: BSD-3-Clause
"""Joins mpi_functions.def with mpi.h and later_functions.def, and writes lists for macros and C++ types.

generate.py --table FILE --later FILE --compiler CC --include DIR --out DIR
"""

import argparse
import os
import sys

import emit_calls
import emit_handlers
from function_table import join, parse_table
from prototypes import GeneratorError, parse_prototypes, preprocessed, without_comments


def render(functions, in_mpi_h):
    return {
        "library/api/mpi_calls.def": emit_calls.calls_list(functions),
        "library/api/mpi_later.hpp": emit_calls.later_prototypes(functions, in_mpi_h),
        "library/api/mpi_parameters.hpp": emit_calls.parameters_header(functions),
        "intercept/mpi_handlers.def": emit_handlers.handlers_list(functions),
        "intercept/mpi_handlers.hpp": emit_handlers.handlers_header(functions),
    }


def later_functions(path):
    with open(path, encoding="utf-8") as later:
        return parse_prototypes(without_comments(later.read()))


def write(directory, files):
    for name, text in files.items():
        path = os.path.join(directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as output:
            output.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", required=True)
    parser.add_argument("--later", required=True)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    try:
        in_mpi_h = parse_prototypes(preprocessed(options.compiler, options.include))
        prototypes = later_functions(options.later) | in_mpi_h
        functions = join(parse_table(options.table), prototypes, options.table)
        write(options.out, render(functions, in_mpi_h))
    except GeneratorError as problem:
        sys.exit(f"generate.py: {problem}")


if __name__ == "__main__":
    main()
