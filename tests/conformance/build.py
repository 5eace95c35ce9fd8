# SPDX-License-Identifier: BSD-3-Clause
"""Builds the programs of the tests at hand with the suite's own makefiles; runs none of them."""
from __future__ import annotations

import fcntl
import os
import pathlib
import subprocess

from execute import SetupError
from testlist import Test

SUPPORT_DIRECTORIES = ("util", "dtpools")  # linked into every program


def _make(directory: pathlib.Path, jobs: int, targets: list[str], log: pathlib.Path) -> int:
    """-k: one program that does not compile must not keep the others from being built."""
    command = ["make", "-k", f"-j{jobs}", "-C", str(directory), *targets]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode


def build_support(build: pathlib.Path, jobs: int, logs: pathlib.Path) -> None:
    for name in SUPPORT_DIRECTORIES:
        log = logs / "build" / f"{name}.log"
        if (build / name / "Makefile").is_file() and _make(build / name, jobs, ["all"], log):
            raise SetupError(f"{name} of the suite does not build, see {log}")


def build_programs(tests: list[Test], build: pathlib.Path, jobs: int, logs: pathlib.Path) -> None:
    """Builds what is missing. A program that fails to build is found missing when its test runs."""
    with (build / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two runs may share one build tree
        _build_missing(tests, build, jobs, logs)


def _build_missing(tests: list[Test], build: pathlib.Path, jobs: int, logs: pathlib.Path) -> None:
    wanted: dict[str, set[str]] = {}
    for test in tests:
        if not os.access(build / test.directory / test.program, os.X_OK):
            wanted.setdefault(test.directory, set()).add(test.program)
    if wanted:
        build_support(build, jobs, logs)
    for directory, programs in wanted.items():
        print(f"building {len(programs)} programs in {directory}", flush=True)
        log = logs / "build" / f"{directory.replace('/', '+')}.log"
        _make(build / directory, jobs, sorted(programs), log)
