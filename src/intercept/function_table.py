# SPDX-License-Identifier: BSD-3-Clause
"""mpi_functions.def joined with the prototypes of the installed mpi.h. Decides nothing: a row says what is done."""

import re
from dataclasses import dataclass

from prototypes import GeneratorError, Prototype

# Class of a row: number of columns that must follow it, columns that may, words that may.
CLASSES = {
    "leave": (0, 0, ()),
    "real": (0, 0, ()),
    "pass": (0, 0, ()),
    "direct": (0, 1, ("blocks", "file_data", "file_data_of_all")),
    "ordered": (0, 0, ("blocks", "plans", "typed", "completes")),
    "post": (0, 2, ("typed", "for_each", "scatters", "neighbors")),
    "twin": (1, 1, ("typed",)),
    "collective": (1, 3, ("for_each", "scatters", "neighbors")),
    "persistent": (0, 2, ()),
    "requests": (1, 1, ("blocks", "looks", "again")),
    "convert": (0, 0, ()),
    "hook": (0, 0, ("always", "messages", "typed", "blocks", "plans", "looks", "again", "calls_back")),
}
WORDS = {word for _, _, words in CLASSES.values() for word in words}


@dataclass(frozen=True)
class Row:
    name: str  # "MPI_Send"
    kind: str
    columns: tuple  # names of functions
    words: tuple


@dataclass(frozen=True)
class Function:
    prototype: Prototype
    row: Row
    twin: Prototype | None = None  # of class twin and collective: MPI_Isend_c for MPI_Send_c

    @property
    def name(self):
        return self.prototype.name

    @property
    def short_name(self):
        return self.prototype.short_name()

    @property
    def kind(self):
        return self.row.kind

    @property
    def words(self):
        return self.row.words


def parse_row(line, where):
    match = re.fullmatch(r"(MPI|MPI_T|MPIX)\(([^()]*)\)", line)
    if match is None:
        raise GeneratorError(f"{where}: not a row of the table: {line}")
    name, *rest = [column.strip() for column in match[2].split(",")]
    kind = rest[0] if rest else ""
    if kind not in CLASSES:
        raise GeneratorError(f"{where}: class '{kind}' unknown: {line}")
    least, most, allowed = CLASSES[kind]
    words = tuple(column for column in rest[1:] if column in WORDS)
    columns = tuple(column for column in rest[1:] if column not in WORDS)
    if not least <= len(columns) <= most or not set(words) <= set(allowed):
        raise GeneratorError(f"{where}: class '{kind}' has other columns: {line}")
    return Row(f"{match[1]}_{name}", kind, columns, words)


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


def twin_of(row, prototype, suffix, prototypes):
    """It takes the parameters of the blocking function, in the same order, and makes a request."""
    name = f"MPI_{row.columns[0]}{suffix}"
    if name not in prototypes:
        raise GeneratorError(f"{prototype.name}: its twin {name} is not in mpi.h")
    taken = prototypes[name].without_request()
    for place, parameter in enumerate(taken):
        if prototype.parameters[place : place + 1] != (parameter,):
            raise GeneratorError(f"{prototype.name}: its twin {name} takes '{parameter.name}'")
    return prototypes[name]


def checked(function):
    """What a class takes for granted of the prototypes."""
    prototype = function.prototype
    if function.kind == "pass" and (prototype.result != "int" or prototype.variadic):
        raise GeneratorError(f"{prototype.name}: class pass, but what it returns is no error code")
    if function.kind in ("post", "persistent") and not prototype.makes_request():
        raise GeneratorError(f"{prototype.name}: class {function.kind}, but it makes no request")
    return function


def join(rows, prototypes, table_path):
    """Functions of this mpi.h in the order of the table, a large-count form after its row."""
    functions = []
    for row in rows.values():
        for suffix in ("", "_c"):
            name = row.name + suffix
            if name not in prototypes or (suffix and name in rows):
                continue
            has_twin = row.kind in ("twin", "collective")
            twin = twin_of(row, prototypes[name], suffix, prototypes) if has_twin else None
            functions.append(checked(Function(prototypes[name], row, twin)))
    missing = sorted(set(prototypes) - {function.name for function in functions})
    if missing:
        raise GeneratorError(
            f"{table_path}: mpi.h declares {len(missing)} functions that the table does not name:"
            f" {', '.join(missing)}"
        )
    return [function for function in functions if function.kind != "leave"]
