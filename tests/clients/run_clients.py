# SPDX-License-Identifier: BSD-3-Clause
"""Runs the clients plain and preloaded and prints what differs. Started by scripts/clients.sh, which builds them.

How processes are started and ended is tests/conformance/execute.py's affair, what differs compare.py's.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import shutil
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "conformance"))

import execute  # noqa: E402
from execute import Mode, SetupError  # noqa: E402
from run_suite import MODE_SETTINGS, check_launch, comma_list  # noqa: E402

import compare  # noqa: E402
import programs  # noqa: E402
from compare import Check  # noqa: E402

STARTS = 12  # of the ranks in one mode: each check that hangs or crashes costs one more
ENDS_THE_RANKS = (compare.HANG, compare.CRASH)


class Launcher:
    """Starts ranks in a mode, and keeps what they print."""

    def __init__(self, args: argparse.Namespace, mpirun: str):
        self.mpirun, self.timeout_s, self.out = mpirun, args.timeout, args.out
        self.limit_s = args.limit  # for one check

    def run(self, mode: Mode, ranks: int, command: list[str], env: dict[str, str], work: pathlib.Path, log: str):
        preload = ["-genv", "LD_PRELOAD", ":".join(mode.preload)] if mode.preload else []
        line = [self.mpirun, *preload, "-n", str(ranks), *command]
        whole = execute.clean_environment(self.timeout_s, execute.new_mark()) | env | mode.environment
        status, text, timed_out = execute.launch(line, work, whole, self.timeout_s)
        path = self.out / f"{log.replace(' ', '-')}-{ranks}-{mode.name}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {' '.join(line)}\n{text}")
        return status, text, timed_out


class Suite:
    """A client whose ranks log their checks (rank_log.py). What hangs or crashes is left out of the next start."""

    same = None
    standard_abi = False  # run with MPICH 5 and the library for the standard ABI

    def __init__(self, name: str, command: list[str], env: dict[str, str], ranks=lambda n: True):
        self.name, self.command, self.env, self.runs_on = name, command, env, ranks

    def run(self, launcher: Launcher, mode: Mode, ranks: int, plain: dict[str, Check]) -> dict[str, Check]:
        """`plain` is empty for the plain run itself. What ended the ranks there is not run preloaded."""
        left_out = [name for name, check in plain.items() if check.outcome in ENDS_THE_RANKS]
        checks: dict[str, Check] = {}
        for start in range(STARTS):
            progress, ending = self._start(launcher, mode, ranks, [*left_out, *checks], start)
            checks |= progress.checks
            if progress.finished and ending.outcome == compare.PASS:
                break
            if not progress.stuck:  # before the first check, or after the last one
                checks[f"beginning and end of the run, start {start}"] = ending
                break
            checks |= dict.fromkeys(progress.stuck, ending)
        return checks

    def _start(self, launcher: Launcher, mode: Mode, ranks: int, done: list[str], start: int):
        with tempfile.TemporaryDirectory(prefix="clients-") as folder:
            work = pathlib.Path(folder)
            (work / "skip").write_text("\n".join(done))
            env = self.env | {"CLIENTS_LOG": folder, "CLIENTS_LIMIT": str(launcher.limit_s)}
            log = f"{self.name}-start{start}" if start else self.name
            status, text, timed_out = launcher.run(mode, ranks, self.command, env, work, log)
            logs = [read_log(work / f"rank-{rank}.jsonl") for rank in range(ranks)]
        return compare.merge_ranks(logs), how_it_ended(status, text, timed_out)


def read_log(path: pathlib.Path) -> list[dict]:
    if not path.is_file():
        return []
    whole = (line for line in path.read_text().splitlines() if line.endswith("}"))
    return [json.loads(line) for line in whole]


def how_it_ended(status: int | None, text: str, timed_out: bool) -> Check:
    tail = " / ".join(text.splitlines()[-3:])[-300:]
    if timed_out or "Timeout (" in text:  # mpirun's limit, or faulthandler's
        return Check(compare.HANG, detail=tail)
    return Check(compare.PASS) if status in (0, 1) else Check(compare.CRASH, detail=f"status {status}: {tail}")


class Programs:
    """A client that is run once for each of its cases, and whose output is its result."""

    standard_abi = False

    def __init__(self, name: str, cases: list[programs.Case], env: dict[str, str], same=None):
        self.name, self.cases, self.env, self.same = name, cases, env, same

    def runs_on(self, ranks: int) -> bool:
        return True

    def run(self, launcher: Launcher, mode: Mode, ranks: int, plain: dict[str, Check]) -> dict[str, Check]:
        return {case.name: self._run_case(case, launcher, mode, ranks) for case in self.cases}

    def _run_case(self, case: programs.Case, launcher: Launcher, mode: Mode, ranks: int) -> Check:
        with tempfile.TemporaryDirectory(prefix="clients-") as folder:
            work = pathlib.Path(folder)
            for path in case.files:
                shutil.copy(path, work)
            (work / "stdin").write_text(case.stdin)
            command = ["sh", "-c", 'exec "$@" <stdin', "sh", *case.command]
            log = f"{self.name}-{case.name}"
            status, text, timed_out = launcher.run(mode, ranks, command, self.env, work, log)
        if timed_out or status:
            return how_it_ended(status or 2, text, timed_out)
        return programs.judge(case, text)


PYTEST = ("-m", "pytest", "-p", "rank_log", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--assert=plain")


def mpi4py_suite(name: str, version: str, pytest: list[str], env: dict[str, str], args: argparse.Namespace) -> Suite:
    suite = args.cache / f"mpi4py-{version}" / "test"
    names = programs.lines(args.tests) if args.tests else [""]
    return Suite(name, [*pytest, "--rootdir", str(suite), *(str(suite / name) for name in names)], env)


def python_suites(args: argparse.Namespace) -> dict[str, list[Suite]]:
    python = str(args.cache / "venv" / "bin" / "python")
    env = {"PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    pytest = [python, *PYTEST, "-c", "/dev/null", "-q", "-s"]
    mpi4py = mpi4py_suite("mpi4py", args.mpi4py, pytest, env, args)
    abi_env = env | {"PYTHONPATH": f"{HERE}:{args.cache / 'mpi4py_abi'}"}  # before the virtual environment's own mpi4py
    mpi4py_abi = mpi4py_suite("mpi4py_abi", args.mpi4py_abi, pytest, abi_env, args)
    mpi4py_abi.standard_abi = True
    training = [python, str(HERE / "horovod_training.py")]
    # Which gradients Horovod fuses depends on time, and so does the order of summation of three ranks or more.
    unfused = env | {"HOROVOD_FUSION_THRESHOLD": "0"}
    horovod = [
        Suite("horovod collectives", [python, str(HERE / "horovod_collectives.py")], env),
        Suite("horovod training", training, unfused),
        Suite("horovod training with float16", [*training, "--fp16"], unfused),
        Suite("horovod training with fusion", training, env, lambda ranks: ranks <= 2),
    ]
    if args.horovod_tests:
        parallel = args.horovod_tests / "parallel" / "test_torch.py"
        own = [*pytest, "--rootdir", str(args.horovod_tests), str(parallel)]
        horovod.append(Suite("horovod test_torch", own, env))
    return {"mpi4py": [mpi4py], "mpi4py_abi": [mpi4py_abi], "horovod": horovod}


def clients(args: argparse.Namespace) -> list[Suite | Programs]:
    env = {"OMP_NUM_THREADS": "1"}
    mumps = programs.mumps(args.cache / "mumps")
    libraries = {"LD_LIBRARY_PATH": str(args.cache / "mumps" / "lib")}
    known: dict[str, list] = python_suites(args) | {
        "fortran": [Programs("mumps", mumps, env | libraries, compare.numbers_agree(1e-9))],
        "cxx": [Programs("lammps", programs.lammps(args.cache / "lammps"), env)],
    }
    return [client for name in comma_list(args.only) for client in known[name]]


class Tally:
    def __init__(self):
        self.passed = self.failed = 0

    def add(self, plain: dict[str, Check], loaded: dict[str, Check], different: dict[str, Check]) -> None:
        self.failed += len(different)
        self.passed += compare.passed(plain) - len(different)


def timed(
    client, launcher: Launcher, mode: Mode, ranks: int, plain: dict[str, Check]
) -> tuple[dict[str, Check], float]:
    begun = time.monotonic()
    checks = client.run(launcher, mode, ranks, plain)
    return checks, time.monotonic() - begun


def print_troubles(checks: dict[str, Check], outcomes: tuple[str, ...]) -> None:
    for name, check in checks.items():
        if check.outcome in outcomes:
            print(f"    {check.outcome} plain: {name} {check.detail.splitlines()[-1][:160] if check.detail else ''}")


def run_client(client, ranks: int, plain_mode: Mode, modes: list[Mode], launcher: Launcher, tally: Tally) -> None:
    title = f"{client.name} on {ranks} rank{'s' if ranks > 1 else ''}"
    plain, seconds = timed(client, launcher, plain_mode, ranks, {})
    print(f"{title}, plain: {compare.counts(plain)} ({seconds:.0f} s)", flush=True)
    print_troubles(plain, (compare.FAIL, *ENDS_THE_RANKS))
    if not compare.passed(plain):
        print(f"{title}: nothing passes plain, which shows nothing", flush=True)
        tally.failed += 1
        return
    for mode in modes:
        loaded, seconds = timed(client, launcher, mode, ranks, plain)
        different = compare.differing(plain, loaded, client.same)
        both = compare.passed(plain) - len(different)
        counts = f"{compare.passed(plain)} passed plain, {both} preloaded"
        print(f"{title}, {mode.name}: {counts} ({seconds:.0f} s)", flush=True)
        for name, check in different.items():
            print(f"  passes plain, not preloaded: {name}: {check.outcome} {check.detail}", flush=True)
        tally.add(plain, loaded, different)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name in ("--library", "--cache", "--out", "--tests", "--horovod-tests"):
        parser.add_argument(name, type=pathlib.Path)
    for name in ("--mpirun", "--only", "--modes", "--ranks", "--yield-library", "--mpi4py", "--mpi4py-abi"):
        parser.add_argument(name, default="")
    for name in ("--timeout", "--limit"):
        parser.add_argument(name, type=int, required=True)
    return parser.parse_args()


def main() -> int:
    args = parse_arguments()
    behind = (args.yield_library,) if args.yield_library else ()
    tally, plain = Tally(), Mode("plain", {}, behind)
    for client in clients(args):
        mpirun, library = args.mpirun, args.library
        if client.standard_abi:
            mpirun, library = str(args.cache / "mpich_5" / "bin" / "mpiexec"), library.parent / "libvecmpi_abi.so"
        launcher = Launcher(args, mpirun)
        modes = [Mode(name, MODE_SETTINGS[name], (str(library), *behind)) for name in comma_list(args.modes)]
        for mode in (plain, *modes):
            check_launch(mode, launcher)
        for ranks in filter(client.runs_on, map(int, comma_list(args.ranks))):
            run_client(client, ranks, plain, modes, launcher, tally)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    execute.run_to_exit("clients", main, {SetupError: 3})
