# SPDX-License-Identifier: BSD-3-Clause
"""Runs a measurement: sides in turn, repeated, with progress on standard error. No statistics."""

import os
import platform
import sys
import time
from dataclasses import dataclass, field
from functools import partial

import exec_cost
import launch
import values
from failure import RunFailed
from progress import Progress


@dataclass(frozen=True)
class Side:
    """One way to run the same program."""

    name: str
    preloaded: bool  # the library that is measured, not just any
    environment: dict
    openmpi: bool = False  # built for Open MPI and started by its mpirun
    mpi: object = None  # mpi_libraries.Library of --against; None: the library that is measured


@dataclass
class Outcome:
    measurement: object
    options: object
    sides: list
    host: dict
    runs: list = field(
        default_factory=list
    )  # dicts: side, repeat, ranks, wall_s, header, threads, figures, skipped, wrong, hung
    left_out: dict = field(default_factory=dict)  # side of --against -> launches that failed there
    failed: str = ""  # the first run that failed; nothing was run after it, or a result was wrong


def make_sides(options):
    plain = {"LD_PRELOAD": options.yield_library} if options.yield_library else {}
    sides = [Side("plain", False, plain)]
    if options.plain_only:
        return sides
    for mode in options.offload:
        environment = {} if mode == "auto" else {"VECMPI_OFFLOAD": mode}
        for settings in options.settings or [{}]:
            words = [f"{name.removeprefix('VECMPI_')}={settings[name]}" for name in settings]
            sides.append(Side(" ".join(["vecmpi", mode, *words]), True, environment | settings))
    if options.programs.openmpi:
        sides.append(Side("Open MPI", False, {}, openmpi=True))
    for name, library in options.programs.others.items():
        sides.append(Side(f"plain {name}", False, plain, mpi=library))
    return sides


def split_records(records, side, options):
    """What a run's records say; raises RunFailed if they are not of a whole run."""
    header = next((r for r in records if r["bench"] == "header"), None)
    figures, wrong, skipped = (
        [r for r in records if r["bench"] == kind] for kind in ("figure", "wrong", "skipped")
    )
    if header is None or not figures + wrong:
        raise RunFailed(f"the {side.name} run printed no figures")
    if side.preloaded and header["preload"] != options.programs.library:
        raise RunFailed(f"{options.programs.library} was not loaded into the ranks")
    threads = next((r["rank_0"] for r in records if r["bench"] == "threads"), [])
    return {
        "header": header,
        "threads": threads,
        "figures": figures,
        "skipped": skipped,
        "wrong": wrong,
    }


def show_figure(progress, record):
    if record["bench"] == "figure":
        at = values.size_text(int(record["at"])) if record["at"] >= 8 else f"{record['at']:g}"
        progress.show(f"{record['name']} {at}")


def run_side(measurement, options, side, job, repeat, progress):
    command = launch.command_line(options, side, job, measurement.name)
    ranks = f"{job.ranks} rank{'s' if job.ranks > 1 else ''}"
    what = f", {job.what}" if job.what else ""
    progress.start(f"{side.name}, {ranks}{what}, run {repeat + 1} of {options.repeats}")
    begin = time.monotonic()
    ended = launch.run_to_end(
        command,
        options.timeout,
        lambda record: show_figure(progress, record),
        watch_finalize=bool(options.lab),
    )
    progress.finish()
    try:
        parts = split_records(ended.records, side, options)
    except RunFailed as error:
        raise RunFailed(ended.failure or str(error)) from None
    return {
        "side": side.name,
        "repeat": repeat,
        "ranks": job.ranks,
        "wall_s": round(time.monotonic() - begin, 3),
        **parts,
        "hung": ended.hung,
        "failure": ended.failure,
    }


def note_dropped_variables():
    dropped = sorted(set(os.environ) - set(launch.clean_environment()))
    if dropped:
        print(f"not passed on to the ranks: {', '.join(dropped)} (use -e)", file=sys.stderr)


class Exchange:
    """The time of a cache line between two CPUs, by which a run shows whether the host had moved them apart."""

    SLOW = 1.5  # times the quickest seen
    MOST_RUNS = 4
    MOST_MORE = 0.5  # of the runs so far: on a host that is never steady the time stays bounded

    def __init__(self, options):
        self.options, self.quickest = options, None
        self.may_repeat = self.MOST_RUNS  # grows with each run

    def measure(self):
        taken = launch.exchange_ns(self.options)
        if taken:
            self.quickest = min(taken, self.quickest or taken)
        return taken

    def steady(self, run, progress):
        """run() again while the exchange is slow before or after it; what was run last."""
        self.may_repeat += self.MOST_MORE
        for attempt in range(self.MOST_RUNS):
            before = self.measure()
            record = run()
            taken = [ns for ns in (before, self.measure()) if ns]
            record.update(exchange_ns=taken, repeated=attempt)
            if not taken or max(taken) <= self.SLOW * self.quickest or record["failure"]:
                break
            if self.may_repeat < 1 or attempt + 1 == self.MOST_RUNS:
                break
            self.may_repeat -= 1
            progress.total += 1
        return record


def run_sides(outcome, jobs=None):
    """Plain, preloaded, plain, preloaded ...: what drifts on the machine touches all sides."""
    measurement, options = outcome.measurement, outcome.options
    jobs = jobs or measurement.launches(options)
    exchange = Exchange(options) if measurement.watches_exchange else None
    progress = Progress(options.repeats * len(jobs) * len(outcome.sides))
    for repeat in range(options.repeats):
        for job in jobs:
            for side in outcome.sides:
                if job.what in outcome.left_out.get(side.name, []):
                    progress.total -= 1
                    continue

                def once(job=job, side=side, repeat=repeat):
                    return run_side(measurement, options, side, job, repeat, progress)

                steady = partial(exchange.steady, once, progress) if exchange else once
                keep_run(outcome, side, job, steady)
        if measurement.name == "footprint":
            outcome.runs.extend(exec_cost.measure(outcome.sides, options, repeat))


def keep_run(outcome, side, job, make_run):
    """A library of --against may fail where others do not: its figures of that launch are left out."""
    try:
        run = make_run()
        if run["failure"] and side.mpi:
            raise RunFailed(run["failure"])
    except RunFailed as error:
        if not side.mpi:
            raise
        outcome.left_out.setdefault(side.name, []).append(job.what)
        print(f"left out: {side.name}, {job.what}: {error}", file=sys.stderr)
        return
    outcome.runs.append(run)
    if run["failure"]:
        raise RunFailed(run["failure"])


def wrong_results(outcome):
    """A line for each cell and side whose result was wrong, however often."""
    lines = [
        f"{run['side']}: {record['name']} {values.size_text(int(record['at']))}: {record['why']}"
        for run in outcome.runs
        for record in run.get("wrong", [])
    ]
    return list(dict.fromkeys(lines))


def run_all(measurement, options):
    """All runs. One that fails ends the measurement; figures that all sides have are kept."""
    note_dropped_variables()
    outcome = Outcome(measurement, options, make_sides(options), describe_host())
    if measurement.plan:
        print(measurement.plan(outcome), file=sys.stderr)
    try:
        run_sides(outcome)
    except RunFailed as error:
        outcome.failed = str(error)
        if {run["side"] for run in outcome.runs} != {side.name for side in outcome.sides}:
            raise
    measured = {run["side"] for run in outcome.runs}
    outcome.sides = [side for side in outcome.sides if side.name in measured]
    wrong = wrong_results(outcome)
    for line in wrong:
        print(f"wrong result, {line}", file=sys.stderr)
    if wrong and not outcome.failed:
        outcome.failed = f"{len(wrong)} wrong results, see above"
    if measurement.after:
        measurement.after(outcome)
    return outcome


def describe_host():
    model = platform.machine()
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        for line in cpuinfo:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return {
        "cpu": model,
        "cpus": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "load": round(os.getloadavg()[0], 2),
    }
