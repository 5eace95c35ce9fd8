# SPDX-License-Identifier: BSD-3-Clause
"""mpi_functions.def joined with the prototypes of the installed mpi.h. Decides nothing: a row says what is done."""

import re
from dataclasses import dataclass

from prototypes import GeneratorError, Prototype

# Class of a row: number of columns that must follow it, columns that may.
CLASSES = {
    "leave": (0, 0),
    "pass": (0, 0),
    "direct": (0, 1),
    "ordered": (0, 0),
    "post": (0, 2),
    "twin": (1, 1),
    "collective": (1, 3),
    "persistent": (0, 1),
    "requests": (1, 1),
    "hook": (0, 1),
}

# Column of a hook: when its calls come, if not while the engine runs.
HOOKS = ("always", "messages")


@dataclass(frozen=True)
class Row:
    name: str  # "MPI_Send"
    kind: str
    columns: tuple


@dataclass(frozen=True)
class Function:
    prototype: Prototype
    kind: str
    columns: tuple  # a twin's name is that of this form: MPI_Isend_c beside MPI_Send_c
    pipeline: str = ""  # function of pipeline/api.hpp that is asked before the library
    intranode: str = ""  # function of pipeline/node/api.hpp that is asked before that

    @property
    def name(self):
        return self.prototype.name

    @property
    def short_name(self):
        return self.prototype.short_name()


def parse_row(line, where):
    match = re.fullmatch(r"(MPI|MPI_T|MPIX)\(([^()]*)\)", line)
    if match is None:
        raise GeneratorError(f"{where}: not a row of the table: {line}")
    name, kind, *columns = [column.strip() for column in match[2].split(",")] + [""] * (
        "," not in match[2]
    )
    least, most = CLASSES.get(kind, (1, 0))
    if not least <= len(columns) <= most:
        raise GeneratorError(f"{where}: class '{kind}' unknown, or with other columns: {line}")
    if kind == "hook" and not set(columns) <= set(HOOKS):
        raise GeneratorError(f"{where}: column 3 of a hook is one of {', '.join(HOOKS)}: {line}")
    return Row(f"{match[1]}_{name}", kind, tuple(columns))


def parse_table(path):
    rows = {}
    with open(path, encoding="utf-8") as table:
        for number, text in enumerate(table, start=1):
            line = text.strip()
            if not line or line.startswith("//"):
                continue
            row = parse_row(line, f"{path}:{number}")
            if row.name in rows:
                raise GeneratorError(f"{path}:{number}: {row.name} stands in the table twice")
            rows[row.name] = row
    return rows


def twin_columns(row, suffix):
    if row.kind in ("twin", "collective"):
        return (f"MPI_{row.columns[0]}{suffix}",) + row.columns[1:]
    return row.columns


def column_of(row, position):
    return "" if position is None or len(row.columns) <= position else row.columns[position]


def paths_of_ours(row):
    """The columns that name functions of ours which are asked first, for the classes that may have them."""
    return (
        column_of(row, {"collective": 1, "post": 0, "persistent": 0}.get(row.kind)),
        column_of(row, {"collective": 2, "post": 1}.get(row.kind)),
    )


def join(rows, prototypes, table_path):
    """Functions of this mpi.h in the order of the table, a large-count form after its row."""
    functions = []
    for row in rows.values():
        for suffix in ("", "_c"):
            name = row.name + suffix
            if name in prototypes and (suffix == "" or name not in rows):
                columns = twin_columns(row, suffix)
                functions.append(
                    Function(prototypes[name], row.kind, columns, *paths_of_ours(row))
                )
    missing = sorted(set(prototypes) - {function.name for function in functions})
    if missing:
        raise GeneratorError(
            f"{table_path}: mpi.h declares {len(missing)} functions that the table does not name:"
            f" {', '.join(missing)}"
        )
    return [function for function in functions if function.kind != "leave"]
