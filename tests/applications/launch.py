# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program once, on this machine or over virtual hosts, plain or preloaded, in a folder of its own."""
from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import string
import subprocess
import sys
import tempfile
import time

import build
from judgement import first_problem
from table import HERE, Program

sys.path.insert(0, str(HERE.parent / "conformance"))

import execute

FINALIZE_S = 3  # MPICH 4.0 over TCP can hang in MPI_Finalize, plain too; by then the results are there
GRACE_S = 10  # mpirun and lab.sh end a run at its limit; this much later it is ended for them


@dataclasses.dataclass(frozen=True)
class Setting:
    count: int
    over_hosts: bool

    def __str__(self) -> str:
        return f"{self.count} {'hosts' if self.over_hosts else 'ranks'}"


@dataclasses.dataclass(frozen=True)
class Run:
    times: dict[str, float]  # by the name of the figure
    problem: str  # "" for a right result
    text: str
    report: dict  # of VECMPI_REPORT, where it was asked for
    hung: bool = False  # in MPI_Finalize, with its results printed


def cpu_list() -> str:
    return ",".join(map(str, sorted(os.sched_getaffinity(0))))


class Launcher:
    def __init__(self, args):
        self.args = args

    def _variables(self, program: Program, ranks: int) -> dict[str, str]:
        crowded = ranks > len(os.sched_getaffinity(0))
        size = 2 if self.args.quick else int(crowded)
        sizes = {name: str(values[size]) for name, values in program.sizes.items()}
        return build.variables(self.args.cache, program.build) | sizes | {"RANKS": str(ranks)}

    def _command(self, program: Program, setting: Setting, preloaded: bool, report: pathlib.Path | None) -> list[str]:
        variables = self._variables(program, setting.count)
        environment = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        for name, value in program.environment.items():
            environment[name] = string.Template(value).substitute(variables)
        if preloaded:
            environment |= {"LD_PRELOAD": str(self.args.library)} | dict(self.args.set)
        elif self.args.plain_library:
            environment["LD_PRELOAD"] = str(self.args.plain_library)
        if report:
            environment["VECMPI_REPORT"] = f"json:{report}"
        words = [string.Template(word).safe_substitute(variables) for word in program.command]
        if self.args.pin == "process":
            words = [str(HERE / "pinned.sh"), cpu_list(), *words]
        if setting.over_hosts:
            lab = [str(build.SCRIPTS / "lab.sh"), "-n", str(setting.count), "-r", self.args.rate]
            passed = [part for name, value in environment.items() for part in ("-e", f"{name}={value}")]
            return [*lab, "-t", str(self.args.timeout), *passed, "--", *words]
        passed = [part for name, value in environment.items() for part in ("-genv", name, value)]
        return [self.args.mpirun, "-n", str(setting.count), *passed, *words]

    def run(
        self, program: Program, setting: Setting, log: pathlib.Path, preloaded=False, reported=False, plain=""
    ) -> Run:
        """`plain` is what the first plain run printed."""
        with tempfile.TemporaryDirectory(prefix="applications-") as folder:
            work = pathlib.Path(folder)
            files = program.files(self._variables(program, setting.count), setting.count) if program.files else {}
            for name, text in files.items():
                (work / name).write_text(text)
            report = work / "report.json" if reported else None
            command = self._command(program, setting, preloaded, report)
            run = _Watched(program, work, log, plain, FINALIZE_S if setting.over_hosts else None)
            status = run.to_end(command, self.args.timeout + GRACE_S)
            text = run.text()
            log.write_text(text)  # with what the program wrote into a file, which goes with the folder
            found = json.loads(report.read_text()) if report and report.is_file() else {}
        times = {figure.name: figure.seconds(text) for figure in program.figures}
        missing = [name for name, seconds in times.items() if seconds is None]
        if status and not run.hung:
            problem = f"status {status}, see {log}"
        elif missing:
            problem = f"no time of {missing[0]}, see {log}"
        else:
            problem = first_problem(program.checks, text, plain or text)
        return Run(times, problem, text, found, run.hung)


class _Watched:
    """A process whose output goes to a log, and which may hang behind its results."""

    def __init__(self, program: Program, work: pathlib.Path, log: pathlib.Path, plain: str, finalize_s: int | None):
        self.program, self.work, self.log, self.plain, self.finalize_s = program, work, log, plain, finalize_s
        self.hung = False

    def text(self) -> str:
        """What was printed; a file that the program wrote behind it, and in the log."""
        text = self.log.read_text(errors="replace")
        path = self.work / self.program.output
        return text + path.read_text(errors="replace") if self.program.output and path.is_file() else text

    def _is_complete(self) -> bool:
        text = self.text()
        if any(figure.seconds(text) is None for figure in self.program.figures):
            return False
        return not first_problem(self.program.checks, text, self.plain or text)

    def to_end(self, command: list[str], limit_s: float) -> int:
        with self.log.open("w") as output:
            process = subprocess.Popen(
                command,
                cwd=self.work,
                env=execute.inherited_environment() | {"MPIEXEC_TIMEOUT": str(int(limit_s - GRACE_S))},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            try:
                return self._wait(process, time.monotonic() + limit_s)
            finally:
                if process.poll() is None:
                    process.terminate()  # mpirun and lab.sh take their ranks along
                    process.wait()

    def _wait(self, process: subprocess.Popen, limit: float) -> int:
        complete_since = None
        while time.monotonic() < limit:
            try:
                return process.wait(0.2)
            except subprocess.TimeoutExpired:
                pass
            if self.finalize_s is None:
                continue
            if complete_since is None:
                complete_since = time.monotonic() if self._is_complete() else None
            elif time.monotonic() > complete_since + self.finalize_s:
                self.hung = True
                return 0
        return 124
