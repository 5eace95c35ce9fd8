# SPDX-License-Identifier: BSD-3-Clause
"""Joins mpi_functions.def with mpi.h and later_functions.def, and writes the C++ and assembly of src/intercept.

generate.py --table FILE --later FILE --compiler CC --include DIR --out DIR
"""

import argparse
import os
import sys

import emit_handlers
import emit_tables
from function_table import join, parse_table
from prototypes import GeneratorError, parse_prototypes, preprocessed, without_comments


def render(functions):
    posts = [function for function in functions if function.kind == "post"]
    operations = {function.name: function.prototype for function in posts}
    files = {
        "library/api/mpi_calls.hpp": emit_tables.calls_header(functions),
        "library/api/mpi_real.hpp": emit_tables.real_header(functions),
        "offload/api/mpi_operations.hpp": emit_handlers.operations_header(posts),
        "intercept/mpi_handlers.hpp": emit_handlers.handlers_header(functions),
        "mpi_calls.cpp": emit_tables.calls_source(functions),
        "mpi_operations.cpp": emit_handlers.operations_source(posts),
        "mpi_entries.cpp": emit_tables.entries_source(functions),
        "mpi_entries.S": emit_tables.entries_assembly(functions),
    }
    for name, (kinds, pattern, purpose) in emit_handlers.SOURCES.items():
        files[name] = emit_handlers.handlers_source(functions, operations, kinds, pattern, purpose)
    return files


def read_prototypes(options):
    """Those of mpi.h, and of functions that it is too old to have."""
    known = parse_prototypes(preprocessed(options.compiler, options.include))
    with open(options.later, encoding="utf-8") as later:
        return parse_prototypes(without_comments(later.read())) | known


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
        functions = join(parse_table(options.table), read_prototypes(options), options.table)
        write(options.out, render(functions))
    except GeneratorError as problem:
        sys.exit(f"generate.py: {problem}")


if __name__ == "__main__":
    main()
