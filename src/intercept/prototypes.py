# SPDX-License-Identifier: BSD-3-Clause
"""The prototypes of an mpi.h, read from its preprocessed text. Knows C declarations, not what MPI functions mean."""

import re
import subprocess
from dataclasses import dataclass


class GeneratorError(Exception):
    """Stops the build with one line."""


@dataclass(frozen=True)
class Parameter:
    type: str  # "const void*"
    name: str
    array: str  # "", "[]" or "[][3]"

    def declaration(self):
        return f"{self.type} {self.name}{self.array}"

    def is_array(self):
        return self.array != ""


@dataclass(frozen=True)
class Prototype:
    name: str  # "MPI_Send"
    result: str
    parameters: tuple
    variadic: bool

    def short_name(self):
        """Name inside vecmpi: Send, T_cvar_read, X_Comm_agree."""
        if self.name.startswith("MPIX_"):
            return "X_" + self.name[len("MPIX_") :]
        return self.name[len("MPI_") :]

    def parameter_list(self):
        declared = [parameter.declaration() for parameter in self.parameters]
        return declared + ["..."] if self.variadic else declared

    def makes_request(self):
        return self.parameters != () and self.parameters[-1].name == "request"

    def without_request(self):
        return self.parameters[:-1] if self.makes_request() else self.parameters


def preprocessed(compiler, include_directories):
    command = [compiler, "-E", "-P", "-x", "c", "-"]
    command += [f"-I{directory}" for directory in include_directories]
    run = subprocess.run(command, input="#include <mpi.h>\n", capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise GeneratorError(f"{compiler} cannot preprocess mpi.h: {run.stderr.strip()}")
    return run.stdout


def without_comments(header_text):
    """For a header that is not preprocessed."""
    return re.sub(r"/\*.*?\*/", "", header_text, flags=re.DOTALL)


def tidy_type(text):
    text = re.sub(r"\s+", " ", text).strip()
    return re.sub(r"\s*\*\s*", "*", text)


def parse_parameter(function, text):
    match = re.fullmatch(r"\s*(.*?[\s*])(\w+)\s*((?:\[\w*\]\s*)*)", text, re.DOTALL)
    if match is None:
        raise GeneratorError(f"mpi.h: {function}: cannot read the parameter '{text.strip()}'")
    return Parameter(tidy_type(match[1]), match[2], re.sub(r"\s", "", match[3]))


def parse_prototype(result, name, text):
    parts = [part.strip() for part in text.split(",")]
    variadic = parts[-1] == "..."
    if variadic:
        parts.pop()
    if parts in ([""], ["void"]):
        parts = []
    parameters = tuple(parse_parameter(name, part) for part in parts)
    return Prototype(name, tidy_type(result), parameters, variadic)


def parse_prototypes(header_text):
    """All MPI_ and MPIX_ functions, in the order of the header. Nested parentheses stand in no prototype."""
    text = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", "", header_text)
    pattern = r"([A-Za-z_][\w\s]*?[\s*]+)(MPIX?_\w+)\s*\(([^();{}]*)\)\s*;"
    found = {}
    for result, name, parameters in re.findall(pattern, text):
        if not result.startswith("typedef"):
            found[name] = parse_prototype(result.replace("extern ", ""), name, parameters)
    return found
