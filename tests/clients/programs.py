# SPDX-License-Identifier: BSD-3-Clause
"""The cases of the applications whose printed output is their result, and what of it must be the same. Runs nothing."""
from __future__ import annotations

import dataclasses
import pathlib
import re

import compare
import mumps_grid
from compare import Check


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    command: list[str]
    files: tuple[pathlib.Path, ...] = ()  # copied into the folder where it runs
    stdin: str = ""  # of every rank, from a file: mpirun gives up where a rank reads slower than it is given
    masked: tuple[str, ...] = ()
    taken: str = ""  # a regular expression for what of the output is the result; else all of it
    expected: str = ""  # the whole result, where that is known beforehand


def judge(case: Case, text: str) -> Check:
    """The outcome of a run that ended with status 0."""
    value = compare.mask(text, case.masked)
    if case.taken:
        value = "\n".join(re.findall(case.taken, value))
        if not value:
            return Check(compare.FAIL, detail="printed no result")
    if case.expected and not compare.numbers_agree(1e-6)(value, case.expected):
        return Check(compare.FAIL, value, f"not the known solution: {compare.first_difference(case.expected, value)}")
    return Check(compare.PASS, value)


def lines(path: pathlib.Path) -> list[str]:
    """The entries of a list file."""
    found = (line.split("#", 1)[0].strip() for line in path.read_text().splitlines())
    return [line for line in found if line]


MUMPS_SOLUTION = r"Solution is[-+.:()\s\d]*(?:E[-+]\d+[-+.:()\s\d]*)*"
MUMPS_GRIDS = (8, 16, 22)  # 512 to 10648 unknowns: one front, and fronts that ranks share


def mumps(folder: pathlib.Path) -> list[Case]:
    """MUMPS 5.5.1's own examples, and its dsimpletest on larger matrices."""
    examples = folder / "examples"
    given = examples / "input_simpletest_real"
    small = given.read_text() if given.is_file() else ""
    cases = [
        Case("c_example", [str(examples / "c_example")], taken=MUMPS_SOLUTION),
        Case("dsimpletest", [str(examples / "dsimpletest")], stdin=small, taken=MUMPS_SOLUTION),
    ]
    for n in MUMPS_GRIDS:
        solution = " ".join(str(mumps_grid.solution(index)) for index in range(n**3))
        cases.append(
            Case(
                f"dsimpletest on {n} x {n} x {n} points",
                [str(examples / "dsimpletest")],
                stdin="\n".join(mumps_grid.lines(n)) + "\n",
                taken=MUMPS_SOLUTION,
                expected=f"Solution is {solution}",
            )
        )
    return cases


LAMMPS_TIMES = (
    r"^(Loop time|Performance|Total wall time)",
    r"% CPU use",
    r"CPU = ",
    r"^(Pair|Bond|Neigh|Comm|Output|Modify|Other|Section|Kspace) *\|",
)
LAMMPS_INPUTS = (
    "bench/in.lj", "bench/in.chain",
    "examples/melt/in.melt", "examples/friction/in.friction", "examples/crack/in.crack", "examples/min/in.min",
    "examples/flow/in.flow.couette", "examples/indent/in.indent", "examples/obstacle/in.obstacle",
    "examples/micelle/in.micelle",
)  # fmt: skip


def lammps(folder: pathlib.Path) -> list[Case]:
    """LAMMPS' benchmarks and examples that need no further package."""
    cases = []
    for name in LAMMPS_INPUTS:
        source = folder / name
        files = (source, *source.parent.glob("data." + source.name.removeprefix("in.")))
        command = [str(folder / "src" / "lmp_mpi"), "-in", source.name, "-log", "none"]
        cases.append(Case(source.name.removeprefix("in."), command, files, masked=LAMMPS_TIMES))
    return cases
