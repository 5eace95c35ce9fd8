# SPDX-License-Identifier: BSD-3-Clause
"""Runs a configured MPICH test suite plain and in each preloaded mode, and reports the difference.

Started by scripts/conformance.sh, which fetches and configures the suite; not meant to be run by hand.
"""
from __future__ import annotations

import argparse
import concurrent.futures
import pathlib
import subprocess
import time

import build
import results
from execute import Mode, Result, Settings, SetupError, kill_marked, run_test, run_to_exit
from testlist import Suite, Test, read_subset
from verdict import PASS

SEGMENTED = ("ALLREDUCE", "BCAST", "REDUCE", "REDUCE_SCATTER", "ALLGATHER")
MODE_SETTINGS = {
    "off": {"VECMPI_OFFLOAD": "off", "VECMPI_INTRANODE": "on", "VECMPI_SINGLE_COPY": "off"},
    "on": {"VECMPI_OFFLOAD": "on", "VECMPI_INTRANODE": "on", "VECMPI_SINGLE_COPY": "1K"},
    "segments": {"VECMPI_OFFLOAD": "on", "VECMPI_SEGMENTS": "4"}
    | {f"VECMPI_{name}": "segmented" for name in SEGMENTED},
    "traitless": {"VECMPI_OFFLOAD": "off", "VECMPI_TRAITS_OFF": "all"},
}
SAVE_EVERY_S = 20
CONFIRM_AT_MOST = 30  # a library that breaks everything needs no second look at each test


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name in ("--source", "--build", "--library", "--out", "--subset", "--plain-cache"):
        parser.add_argument(name, type=pathlib.Path)
    for name in ("--mpich", "--mpirun", "--modes", "--dirs", "--lists", "--yield-library", "--part"):
        parser.add_argument(name, default="")
    for name in ("--max-np", "--timeout", "--jobs", "--confirm"):
        parser.add_argument(name, type=int, required=True)
    return parser.parse_args()


def comma_list(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def choose_tests(suite: Suite, args: argparse.Namespace) -> list[Test]:
    tests = suite.tests(comma_list(args.dirs))
    if args.subset:
        known = {test.id: test for test in tests}
        names = read_subset(args.subset)
        unknown = [name for name in names if name not in known]
        if unknown and not args.dirs:
            raise SetupError(f"not in this MPICH's suite: {', '.join(unknown)}")
        tests = [known[name] for name in names if name in known]
    if args.part:
        number, parts = map(int, args.part.split("/"))
        tests = tests[number - 1 :: parts]
    if not tests:
        raise SetupError("no test chosen")
    return tests


MEMORY_WAIT_S = 300  # for what others use at the moment


def memory_gb(field: str) -> float:
    lines = pathlib.Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return int(fields[field].split()[0]) / 2**20


def has_memory(needed_gb: float) -> bool:
    """Waits for a while where the machine has as much, but not now."""
    limit = time.monotonic() + MEMORY_WAIT_S
    while needed_gb > 0.8 * memory_gb("MemAvailable"):
        if needed_gb > 0.8 * memory_gb("MemTotal") or time.monotonic() > limit:
            return False
        time.sleep(5)
    return True


def check_launch(mode: Mode, settings: Settings) -> None:
    """A preload that the loader refuses would make the run a second plain one."""
    preload = ["-genv", "LD_PRELOAD", ":".join(mode.preload)] if mode.preload else []
    command = [settings.mpirun, *preload, "-n", "1", "cat", "/proc/self/maps"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if shown.returncode:
        raise SetupError(f"{settings.mpirun} starts nothing: {shown.stdout}{shown.stderr}")
    missing = [library for library in mode.preload if library not in shown.stdout]
    if missing:
        raise SetupError(f"{missing[0]} does not reach the ranks")


class Run:
    """One pass over the tests in one mode, saved as it goes."""

    def __init__(self, mode: Mode, settings: Settings, header: dict, out: pathlib.Path):
        self.mode, self.settings, self.header = mode, settings, header
        self.path = out / f"{mode.name}.json"
        self.results: dict[str, Result] = {}
        self.saved = time.monotonic()

    def run(self, tests: list[Test], plain: dict[str, Result] | None, jobs: int) -> None:
        self.total = len(tests) + len(self.results)
        shared = [test for test in tests if not test.exclusive]
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            try:
                for result in pool.map(lambda test: self._one(test, plain), shared):
                    self._note(result)
            except BaseException:  # interrupted: without this the pool waits for hung tests
                pool.shutdown(wait=False, cancel_futures=True)
                kill_marked()
                raise
        for test in tests:
            if test.exclusive:
                self._note(self._one(test, plain))
        self._save()

    def _one(self, test: Test, plain: dict[str, Result] | None) -> Result:
        if not has_memory(test.memory_gb):
            np = min(test.np, self.settings.max_np)
            return Result(test.id, test.directory, np, test.np, "needs-memory", f"{test.memory_gb} GB")
        result = run_test(test, self.mode, self.settings, plain[test.id].timed_out if plain else None)
        if plain is None and result.outcome != PASS and test.np > self.settings.max_np:
            result.outcome = "needs-ranks"  # ran with fewer ranks than it asks for, and did not allow it
        return result

    def _note(self, result: Result) -> None:
        self.results[result.id] = result
        if result.outcome != PASS:
            print(f"[{self.mode.name}] {result.outcome}: {result.id} ({result.reason})", flush=True)
        if time.monotonic() - self.saved > SAVE_EVERY_S:
            print(f"[{self.mode.name}] {len(self.results)}/{self.total}", flush=True)
            self._save()

    def _save(self) -> None:
        results.save(self.path, self.header, self.results)
        self.saved = time.monotonic()


def confirm(test: Test, mode: Mode, plain_mode: Mode, plain: Result, settings: Settings, times: int) -> str:
    """Runs a differing test again in both ways: is it steady, and is the plain library?"""
    alone = [run_test(test, plain_mode, settings) for _ in range(times)]
    loaded = [run_test(test, mode, settings, plain.timed_out) for _ in range(times)]
    passed = [sum(result.outcome == PASS for result in group) for group in (alone, loaded)]
    return f"again: plain {passed[0]} of {times}, {mode.name} {passed[1]} of {times} pass"


def report_differences(run: Run, plain: Run, tests: dict[str, Test], times: int) -> int:
    keys = results.differing(plain.results, run.results)
    print(f"\npasses plain, not preloaded ({run.mode.name}): {len(keys) or 'none'}")
    for number, key in enumerate(keys):
        result = run.results[key]
        print(f"  {key}: {result.outcome} ({result.reason})", flush=True)
        if times and number < CONFIRM_AT_MOST:
            words = confirm(tests[key], run.mode, plain.mode, plain.results[key], run.settings, times)
            print(f"    {words}", flush=True)
    return len(keys)


def run_plain(tests: list[Test], plain: Run, args: argparse.Namespace) -> None:
    if args.plain_cache:
        wanted = {test.id for test in tests}
        earlier = results.load(args.plain_cache, plain.header)
        plain.results = {key: result for key, result in earlier.items() if key in wanted}
    plain.run([test for test in tests if test.id not in plain.results], None, args.jobs)
    plain.results = {test.id: plain.results[test.id] for test in tests}


def main() -> int:
    args = parse_arguments()
    suite = Suite(args.source, args.build, comma_list(args.lists))
    tests = choose_tests(suite, args)
    settings = Settings(args.mpirun, args.build, args.max_np, args.timeout, args.out.resolve() / "logs")
    header = {"mpich": args.mpich, "max_np": args.max_np, "timeout_s": args.timeout}
    header["yield"] = bool(args.yield_library)
    behind = (args.yield_library,) if args.yield_library else ()
    build.build_programs(tests, args.build, args.jobs, settings.logs)

    plain = Run(Mode("plain", {}, behind), settings, header, args.out)
    check_launch(plain.mode, settings)
    run_plain(tests, plain, args)
    results.print_table("plain", plain.results)
    by_id = {test.id: test for test in tests}
    passing = [test for test in tests if plain.results[test.id].outcome == PASS]
    if not passing:
        raise SetupError("no test passes plain")
    lines, different = [results.count_line("plain", plain.results)], 0
    for name in [] if args.modes == "none" else comma_list(args.modes):
        mode = Mode(name, MODE_SETTINGS[name], (str(args.library.resolve()), *behind))
        check_launch(mode, settings)
        run = Run(mode, settings, header | {"environment": mode.environment}, args.out)
        run.run(passing, plain.results, args.jobs)
        results.print_table(name, run.results)
        count = report_differences(run, plain, by_id, args.confirm)
        lines.append(f"{results.count_line(name, run.results)}; {count} pass plain and not here")
        different += count
    print("\ncounts (preloaded: only what passes plain is run)")
    print("\n".join(f"  {line}" for line in lines))
    return 1 if different else 0


if __name__ == "__main__":
    run_to_exit("conformance", main, {SetupError: 3}, "; results so far are saved")
