# SPDX-License-Identifier: BSD-3-Clause
"""Reads the list files of MPICH's test/mpi into Test records.

Pure parsing and directory walking: runs nothing, builds nothing, and decides nothing about what passes.
"""
from __future__ import annotations

import dataclasses
import pathlib

DEFAULT_NP = 2  # what the suite's own runtests takes where an entry names no number


@dataclasses.dataclass(frozen=True)
class Test:
    """One entry of a list file, with the number of ranks that it asks for."""

    directory: str
    program: str
    np: int
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    mpiexec_args: tuple[str, ...] = ()
    result_test: str = ""
    time_limit_s: int | None = None
    memory_gb: float = 0.0
    exclusive: bool = False

    @property
    def id(self) -> str:
        words = [f"{self.directory}/{self.program}", str(self.np)]
        words += [f"arg={value}" for value in self.args]
        words += [f"env={value}" for value in self.env]
        words += [f"mpiexecarg={value}" for value in self.mpiexec_args]
        return " ".join(words)


def parse_line(directory: str, line: str) -> Test | None:
    """The test that a line of a list file names; None for a comment or an empty line.

    xfail=, strict= and mpix= are read over: whether a test passes plain is measured here, not told.
    """
    words = line.split("#", 1)[0].split()
    if not words or words[0].startswith("!"):
        return None
    path = pathlib.PurePosixPath(directory, words[0])
    np = int(words[1]) if len(words) > 1 and words[1].isdigit() else DEFAULT_NP
    values: dict[str, list[str]] = {}
    for word in words[2:]:
        key, equals, value = word.partition("=")
        if equals:
            values.setdefault(key, []).append(value)
    limit = values.get("timeLimit", [""])[-1]
    return Test(
        directory=str(path.parent),
        program=path.name,
        np=np,
        args=tuple(values.get("arg", [])),
        env=tuple(values.get("env", [])),
        mpiexec_args=tuple(values.get("mpiexecarg", [])),
        result_test=values.get("resultTest", [""])[-1],
        time_limit_s=int(limit) if limit.isdigit() else None,
        memory_gb=float(values.get("mem", ["0"])[-1] or 0),
        exclusive="mem" in values or values.get("lock", ["shared"])[-1] != "shared",
    )


class Suite:
    """The configured suite: build tree for programs and generated lists, source tree for the rest."""

    def __init__(self, source: pathlib.Path, build: pathlib.Path, lists: list[str]):
        self.source, self.build, self.lists = source, build, lists

    def tests(self, directories: list[str]) -> list[Test]:
        """All tests of these directories (all that the top list names, if none), each id once.

        In the order of the lists: the long tail of algorithm tests (testlist.cvar) comes last.
        """
        walked = [entry for directory in directories or ["."] for entry in self._walk(directory)]
        found: dict[str, Test] = {}
        for _, test in sorted(walked, key=lambda entry: entry[0]):
            found.setdefault(test.id, test)
        return list(found.values())

    def _walk(self, directory: str):
        for rank, name in enumerate(self.lists):
            for line in self._lines(directory, name):
                words = line.split("#", 1)[0].split()
                below = str(pathlib.PurePosixPath(directory, words[0])) if words else ""
                if words and (self.build / below).is_dir():
                    yield from self._walk(below)
                elif (test := parse_line(directory, line)) is not None:
                    yield rank, test

    def _lines(self, directory: str, name: str) -> list[str]:
        for root in (self.build, self.source):
            path = root / directory / name
            if path.is_file() and path.stat().st_size > 0:
                return path.read_text().splitlines()
        return []


def read_subset(path: pathlib.Path) -> list[str]:
    """The test ids of a subset file, in its order."""
    lines = (line.split("#", 1)[0].strip() for line in path.read_text().splitlines())
    return [" ".join(line.split()) for line in lines if line]
