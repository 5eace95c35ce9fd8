# SPDX-License-Identifier: BSD-3-Clause
"""Runs one test under mpirun in a directory of its own and records how it ended.

Kills only processes that carry the mark of the run at hand. Decides nothing: see verdict.py.
"""
from __future__ import annotations

import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

import verdict
from testlist import Test

MARK = "CONFORMANCE_RUN"
RUN_ID = uuid.uuid4().hex
GRACE_S = 15  # mpirun ends a job at its own limit; past this it is ended for it
OUTPUT_BYTES = 1 << 20
NOT_SHOWN_TO_TEST = (".o", ".c", ".cxx", ".f", ".f90", ".lo", ".la", ".mod")


class SetupError(Exception):
    """The suite cannot be run at all, as against a test that fails."""


@dataclasses.dataclass(frozen=True)
class Mode:
    """A way to run the suite: the settings in the environment and the libraries to preload."""

    name: str
    environment: dict[str, str]
    preload: tuple[str, ...]


@dataclasses.dataclass
class Result:
    id: str
    directory: str
    np: int
    np_asked: int
    outcome: str
    reason: str = ""
    seconds: float = 0.0
    status: int | None = None
    timed_out: bool = False


@dataclasses.dataclass(frozen=True)
class Settings:
    mpirun: str
    build: pathlib.Path
    max_np: int
    timeout_s: int
    logs: pathlib.Path


def command_line(test: Test, mode: Mode, settings: Settings) -> list[str]:
    """-genv reaches the ranks alone: mpirun, its proxies and their shells run without the preload."""
    preload = ["-genv", "LD_PRELOAD", ":".join(mode.preload)] if mode.preload else []
    np = str(min(test.np, settings.max_np))
    return [settings.mpirun, *preload, "-n", np, *test.mpiexec_args, f"./{test.program}", *test.args]


def new_mark() -> str:
    return f"{RUN_ID}-{uuid.uuid4().hex}"


def inherited_environment() -> dict[str, str]:
    """The caller's, without what would reach the plain runs too."""
    return {
        name: value
        for name, value in os.environ.items()
        if name != "LD_PRELOAD" and not name.startswith("VECMPI")
    }


def clean_environment(limit_s: int, mark: str) -> dict[str, str]:
    return inherited_environment() | {"MPIEXEC_TIMEOUT": str(limit_s), MARK: mark}


def environment(test: Test, mode: Mode, limit_s: int, mark: str) -> dict[str, str]:
    asked = dict(entry.partition("=")[::2] for entry in test.env)
    return clean_environment(limit_s, mark) | asked | mode.environment


def _show_build_directory(build_directory: pathlib.Path, work: pathlib.Path) -> None:
    """Links to the programs and data beside the test, so that each run writes its files apart."""
    for entry in build_directory.iterdir():
        if entry.is_file() and entry.suffix not in NOT_SHOWN_TO_TEST:
            (work / entry.name).symlink_to(entry)


def _marked_processes(mark: str) -> list[int]:
    wanted = f"\0{MARK}={mark}".encode()
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if wanted in b"\0" + (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue  # gone already, or another user's
    return found


def kill_marked(mark: str = RUN_ID) -> None:
    """Ends all processes of one test, or of the whole run.

    Ranks that outlive mpirun (-disable-auto-cleanup, or a kill) would take the CPU from later tests.
    """
    for _ in range(50):
        left = _marked_processes(mark)
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)


def _wait(process: subprocess.Popen, limit_s: int) -> bool:
    """True if mpirun had to be ended from here."""
    try:
        process.wait(limit_s + GRACE_S)
        return False
    except subprocess.TimeoutExpired:
        process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return True


def launch(command: list[str], work: pathlib.Path, env: dict[str, str], limit_s: int):
    """Status, output and whether the time limit ended it. A file, not a pipe: orphans keep pipes open."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            cwd=work,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            ended_here = _wait(process, limit_s)
        finally:
            kill_marked(env[MARK])
        output.seek(0)
        text = output.read(OUTPUT_BYTES).decode(errors="replace")
    return process.returncode, text, ended_here or "APPLICATION TIMED OUT" in text


def _write_log(result: Result, command: list[str], text: str, mode: Mode, logs: pathlib.Path) -> None:
    path = logs / mode.name / f"{result.id.replace('/', '+').replace(' ', '_')[:200]}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    settings = " ".join(f"{name}={value}" for name, value in mode.environment.items())
    head = f"# {settings} {' '.join(command)}\n# {result.outcome}: {result.reason}\n"
    path.write_text(head + text)


def run_test(test: Test, mode: Mode, settings: Settings, plain_timed_out: bool | None = None) -> Result:
    """Runs `test` once. `plain_timed_out` is how its plain run ended; None for the plain run itself."""
    np = min(test.np, settings.max_np)
    result = Result(test.id, test.directory, np, test.np, "not-built")
    build_directory = settings.build / test.directory
    if not os.access(build_directory / test.program, os.X_OK):
        return result
    limit_s = test.time_limit_s or settings.timeout_s
    command = command_line(test, mode, settings)
    work = pathlib.Path(tempfile.mkdtemp(prefix="conformance-"))
    started = time.monotonic()
    try:
        _show_build_directory(build_directory, work)
        env = environment(test, mode, limit_s, new_mark())
        result.status, text, result.timed_out = launch(command, work, env, limit_s)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    result.seconds = round(time.monotonic() - started, 2)
    result.outcome, result.reason = verdict.judge(test.result_test, text, result.status, result.timed_out)
    if plain_timed_out is not None:
        result.outcome = verdict.same_end(result.outcome, result.timed_out, plain_timed_out)
    if result.outcome != verdict.PASS:
        _write_log(result, command, text, mode, settings.logs)
    return result


def _interrupted(signal_number: int, _frame) -> None:
    raise KeyboardInterrupt(f"signal {signal_number}")


def run_to_exit(name: str, main, failures: dict[type[Exception], int], saved: str = "") -> None:
    """Exits with main's status, with that of a failure, or 130 once it is stopped; one line says why.

    SIGTERM counts as an interrupt, so that everything is ended and taken away again.
    """
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        sys.exit(main())
    except tuple(failures) as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(failures[type(error)])
    except KeyboardInterrupt as stop:
        print(f"{name}: stopped ({stop or 'interrupt'}){saved}", file=sys.stderr)
        sys.exit(130)
    finally:
        kill_marked()
