#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs each program of the MPI battery plain and preloaded and compares what it prints.

Exit status 1 when anything differs. Must not be used for timing: the plain run yields the CPU (see yield.c).
"""

import argparse
import dataclasses
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from cases import CASES

SEGMENTED = {
    f"VECMPI_{name}": "segmented"
    for name in ("ALLREDUCE", "BCAST", "REDUCE", "REDUCE_SCATTER", "ALLGATHER")
}


def schedules(offload, allreduce, reduce, reduce_scatter, bcast, allgather, alltoall, **more):
    """Settings that send every collective through these algorithms, at every size."""
    names = ("ALLREDUCE", "REDUCE", "REDUCE_SCATTER", "BCAST", "ALLGATHER", "ALLTOALL")
    chosen = (allreduce, reduce, reduce_scatter, bcast, allgather, alltoall)
    settings = {f"VECMPI_{name}": algorithm for name, algorithm in zip(names, chosen)}
    return {"VECMPI_OFFLOAD": offload, **settings, **more}


MODES = {
    "auto": {},
    # From the first call on, what else needs a stream of them; and always, what else is chosen by measurement.
    "off": {"VECMPI_OFFLOAD": "off", "VECMPI_INTRANODE": "on", "VECMPI_SINGLE_COPY": "off", "VECMPI_PACK": "on"},
    "on": {"VECMPI_OFFLOAD": "on", "VECMPI_INTRANODE": "on", "VECMPI_SINGLE_COPY": "1K", "VECMPI_PACK": "on"},
    "segments": {"VECMPI_OFFLOAD": "on", "VECMPI_SEGMENTS": "4", "VECMPI_PACK": "on", **SEGMENTED},
    "bytes": {"VECMPI_OFFLOAD": "off", "VECMPI_SEGMENT_BYTES": "1K", **SEGMENTED},
    # Nothing of the library's inside is made use of.
    "traitless": {"VECMPI_TRAITS_OFF": "all", "VECMPI_OFFLOAD": "off", "VECMPI_INTRANODE": "on", "VECMPI_PACK": "on"},
    "traitless-on": {"VECMPI_TRAITS_OFF": "all", "VECMPI_OFFLOAD": "on"},
    # Blocked calls sleep until a message or another rank wakes them.
    "sleep": {"VECMPI_WAIT": "sleep", "VECMPI_OFFLOAD": "off", "VECMPI_INTRANODE": "on"},
    "sleep-on": {"VECMPI_WAIT": "sleep", "VECMPI_OFFLOAD": "on", "VECMPI_INTRANODE": "on"},
    # Who serves a collective is left to chance, time and again, and compared.
    "shuffle": {"VECMPI_TRIALS": "shuffle", "VECMPI_OFFLOAD": "off"},
    # Every call comes by its timed entry.
    "report": {"VECMPI_OFFLOAD": "on", "VECMPI_INTRANODE": "on", "VECMPI_REPORT": "json:/dev/null"},
}
SEGMENTED_MODES = ("segments", "bytes")
# Every collective is a schedule of ours, by each algorithm: only for cases that have to do with them.
SCHEDULES = {
    "ring": schedules("off", "ring", "chain", "ring", "chain", "ring", "pairwise", VECMPI_SEGMENTS="3",
                      VECMPI_PACK="on"),
    "ring-on": schedules("on", "ring", "chain", "ring", "chain", "ring", "pairwise"),
    "halving": schedules("off", "rabenseifner", "rabenseifner", "recursive_halving",
                         "scatter_allgather", "bruck", "bruck"),
    "halving-on": schedules("on", "recursive_halving", "rabenseifner", "recursive_halving",
                            "circulant", "bruck", "bruck", VECMPI_SEGMENT_BYTES="32K", VECMPI_PACK="on"),
    "trees": schedules("off", "recursive_doubling", "binomial", "recursive_halving", "binomial",
                       "bruck", "hierarchical", VECMPI_SEGMENTS="2"),
    "hierarchical-on": schedules("on", "hierarchical", "binomial", "ring", "binomial", "ring", "hierarchical"),
    "reproducible": {"VECMPI_OFFLOAD": "off", "VECMPI_REPRODUCIBLE": "on"},
}
MODES = MODES | SCHEDULES
# Where --ranks does not say so, modes that differ from another one only in how a vector is cut, in the algorithm, or in
# what is chosen by measurement, take part with two ranks, another power of two, and one left over from it; of two modes
# with the same algorithms, with and without the offload thread, each takes some of these. Every case that has to do
# with them has one of the two.
FEW_RANKS = {
    "auto": (2, 4, 5),
    "segments": (2, 5), "bytes": (4, 5),
    "ring": (2, 5), "ring-on": (4, 5),
    "halving": (4, 5), "halving-on": (2, 5),
    "trees": (2, 4, 5),
    "hierarchical-on": (4, 5),  # also on several nodes, in scripts/check.sh
    "reproducible": (2, 5),
    "report": (2,),
    "traitless": (2, 3), "traitless-on": (2, 4),
    "sleep": (2, 3), "sleep-on": (2, 4),
    "shuffle": (2, 4),
}


@dataclass
class Outcome:
    """What one mpirun gave. status is None after a timeout."""

    status: int | None
    output: str
    errors: str
    stacks: str = ""


def parser_of_arguments():
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-dir", type=Path, default=here.parents[1] / "build" / "tests" / "mpi",
                        help="where CMake built the programs: holds bin/ and libvecmpi_yield.so")
    parser.add_argument("--library", type=Path, default=here.parents[1] / "build" / "libvecmpi.so")
    parser.add_argument("--modes", default=",".join(MODES), help="of " + ",".join(MODES))
    parser.add_argument("--ranks", help="default: 1,2,3,4,5, fewer in modes that resemble others")
    parser.add_argument("--sample", action="store_true",
                        help="of each case in each mode a third of the numbers of ranks, drawn by the seed")
    parser.add_argument("--only", default="", help="cases whose name contains one of these, by comma")
    parser.add_argument("--leave-out", default="", help="not the cases whose name contains one of these, by comma")
    parser.add_argument("--case", default="", help="the case of exactly this name")
    parser.add_argument("--nodes", type=int, help="MPI and vecmpi see so many nodes, all of them this machine")
    parser.add_argument("--seed", type=int, default=None, help="default: a random one, printed")
    parser.add_argument("--plain-cache", type=Path, help="folder of plain runs of this seed, which modes share")
    parser.add_argument("--loop", type=int, default=1, help="repeat with the next seeds")
    parser.add_argument("--repeats", type=int, default=1, help="preloaded runs of one seed beside one plain run")
    parser.add_argument("--jobs", type=int, default=1, choices=[1], help="one mpirun at a time")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for one mpirun")
    parser.add_argument("--where-plain-passes", action="store_true",
                        help="leave out, with a line, what fails with the plain library")
    parser.add_argument("--other-library", action="store_true",
                        help="not MPICH 4.0: rounded sums need not have its bits, their cases run on up to two ranks")
    parser.add_argument("--gdb", action="store_true", help="stacks of all ranks when one hangs")
    parser.add_argument("--debug", action="store_true",
                        help="each rank of the preloaded runs under gdb: stacks where it ends by a signal")
    parser.add_argument("--mpirun", default=shutil.which("mpirun.mpich") or "mpirun")
    return parser


def default_options():
    return parser_of_arguments().parse_args([])


def arguments():
    """What is not given comes from the run of scripts/check.sh that this one belongs to."""
    options = parser_of_arguments().parse_args()
    run_seed, run_sample = check_run(options.build_dir.parent / "check_run")
    options.sample = options.sample or run_sample
    if options.seed is None:
        options.seed = run_seed if run_seed is not None else random.randrange(1, 1000000)
    if options.nodes:
        os.environ["NODES"] = str(options.nodes)
        options.mpirun = str(Path(__file__).resolve().parent / "over_nodes.sh")
    return options


def check_run(path):
    """Seed of the last run of scripts/check.sh in this build, and whether it takes a sample. None: there was none."""
    try:
        seed, share = path.read_text().split()
    except (FileNotFoundError, ValueError):
        return None, False
    return int(seed), share == "sample"


def clean_environment():
    """Without settings, and without what this host's own profile says."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VECMPI")}
    return kept | {"VECMPI_PROFILE": "off"}


def descendants(pid):
    """All processes below pid, from /proc."""
    found = []
    for child in Path(f"/proc/{pid}/task").glob("*/children"):
        for word in child.read_text().split():
            found += [int(word), *descendants(int(word))]
    return found


def stacks_of(pid, program):
    """What gdb says of each rank below pid."""
    text = ""
    for rank in descendants(pid):
        try:
            if os.readlink(f"/proc/{rank}/exe") != str(program):
                continue
        except OSError:
            continue
        command = ["gdb", "-p", str(rank), "-batch", "-ex", "thread apply all bt 25"]
        shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        lines = [line for line in shown.splitlines() if line.startswith(("#", "Thread"))]
        text += f"process {rank}\n" + "\n".join(lines) + "\n"
    return text


def stop(process):
    """Ends mpirun, which ends its ranks."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def debug(options, case, ranks, seed, settings):
    """Each rank under gdb, which says nothing of one that ends well. The preload is the program's alone."""
    program = (options.build_dir / "bin" / case.program).resolve()
    preload = f"set environment LD_PRELOAD {options.library.resolve()}"
    script = [preload, "set pagination off", "handle SIGPIPE nostop", "run", "thread apply all bt 25"]
    command = [options.mpirun, "-n", str(ranks), "-prepend-rank", "gdb", "-q", "-batch"]
    for line in script:
        command += ["-ex", line]
    command += ["--args", str(program), *([case.argument] if case.argument else []), "--seed", str(seed)]
    print(f"{case.name} on {ranks} ranks, seed {seed}", flush=True)
    subprocess.run(command, env=clean_environment() | settings, stdin=subprocess.DEVNULL, timeout=600, check=False)


def yield_library(options):
    """Makes ranks give their CPU away where they poll in vain, or more of them than CPUs take minutes."""
    return options.build_dir / "libvecmpi_yield.so"


def run(options, case, ranks, seed, preloads, settings):
    program = (options.build_dir / "bin" / case.program).resolve()
    preload = ":".join(str(library.resolve()) for library in preloads)
    command = [options.mpirun, "-n", str(ranks), "-genv", "LD_PRELOAD", preload,
               str(program), *([case.argument] if case.argument else []), *case.more, "--seed", str(seed)]
    process = subprocess.Popen(
        command, env=clean_environment() | settings, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
        start_new_session=True)
    try:
        output, errors = process.communicate(timeout=options.timeout)
        return Outcome(process.returncode, output, errors)
    except subprocess.TimeoutExpired:
        stacks = stacks_of(process.pid, program) if options.gdb else ""
        stop(process)
        output, errors = process.communicate()
        return Outcome(None, output, errors, stacks)
    except BaseException:  # who ended this program does not want the ranks to go on
        stop(process)
        raise


def ended_as_expected(case, outcome):
    """Why not, or an empty text."""
    if outcome.status is None:
        return "no end within the time limit"
    if not case.aborts:
        return f"exit status {outcome.status}" if outcome.status != 0 else ""
    if outcome.status == 0:
        return "the job was not aborted"
    silent = not outcome.errors.strip()
    return "" if silent or case.says in outcome.errors else f"nothing is said of '{case.says}'"


def rank_lines(output):
    """The topics; what the launcher prints of an aborted job is not compared."""
    return [line for line in output.splitlines() if line.startswith("rank ")]


def difference(plain, preloaded):
    """The first line that differs, or an empty text."""
    left, right = rank_lines(plain.output), rank_lines(preloaded.output)
    for expected, found in zip(left, right):
        if expected != found:
            return f"plain '{expected}', preloaded '{found}'"
    return "" if len(left) == len(right) else f"{len(left)} lines plain, {len(right)} preloaded"


def expected_counts(case, options):
    return case.counts if options.other_library else case.counts + case.counts_at_home


def missing_counts(expected, report):
    """Which events and paths the report has none of, or an empty text."""
    told = json.loads(Path(report).read_text())
    counted = [name for name, event in told["events"].items() if event["count"]]
    counted += [f"path {row['path']} of {row['name']}" for row in told["calls"]]
    missing = [beginning for beginning in expected if not any(name.startswith(beginning) for name in counted)]
    return f"the report has no {', '.join(missing)}" if missing else ""


def run_counted(options, case, ranks, seed, settings):
    """The outcome, and which counts are missing."""
    with tempfile.TemporaryDirectory() as folder:
        report = f"{folder}/report.json"
        outcome = run(options, case, ranks, seed, [options.library], settings | {"VECMPI_REPORT": f"json:{report}"})
        if outcome.status != 0:
            return outcome, ""
        return outcome, missing_counts(expected_counts(case, options), report)


def report_failure(name, why, outcome):
    print(f"FAIL {name}\n     {why}")
    for line in (outcome.errors + outcome.stacks).splitlines()[:200 if outcome.stacks else 12]:
        print("     | " + line[:160])
    sys.stdout.flush()


class Tally:
    def __init__(self):
        self.passed = 0
        self.failed = 0

    def note(self, name, why, outcome):
        if why:
            self.failed += 1
            report_failure(name, why, outcome)
        else:
            self.passed += 1
            print(f"ok   {name}", flush=True)


def run_preloaded(options, tally, case, mode, ranks, seed, plain):
    missing = ""
    # On several nodes what is counted on one need not happen.
    if expected_counts(case, options) and mode in case.counted and ranks >= case.counted_from and not options.nodes:
        preloaded, missing = run_counted(options, case, ranks, seed, MODES[mode])
    else:
        # Without the traits the library's own waits do not yield.
        waits = [yield_library(options)] if "VECMPI_TRAITS_OFF" in MODES[mode] else []
        preloaded = run(options, case, ranks, seed, [options.library, *waits], MODES[mode])
    why = ended_as_expected(case, preloaded) or difference(plain, preloaded) or missing
    tally.note(f"{case.name} {mode} {ranks} (seed {seed})", why, preloaded)


def rank_numbers(options, case, mode, seed):
    """The numbers of ranks that a case takes in a mode."""
    if mode in SCHEDULES and not case.schedules or mode in SEGMENTED_MODES and case.rounds or mode in case.not_in:
        return []
    if options.ranks:
        wanted = [int(number) for number in options.ranks.split(",")]
    else:
        wanted = FEW_RANKS.get(mode, (1, 2, 3, 4, 5))
    most = 2 if options.other_library and case.rounds else max(wanted)
    numbers = [number for number in wanted if number in case.ranks and number <= most]
    if not options.sample:
        return numbers
    drawn = random.Random(f"{seed} {case.name}")  # in all modes alike: one plain run serves them
    order = {number: drawn.random() for number in sorted(case.ranks)}
    return sorted(numbers, key=order.get)[: (len(numbers) + 2) // 3]


def run_plain(options, case, ranks, seed):
    """The outcome without vecmpi: of this run of the check, one for all modes."""
    if not options.plain_cache:
        return run(options, case, ranks, seed, [yield_library(options)], {})
    program = options.build_dir / "bin" / case.program
    facts = [case.name, ranks, seed, str(options.mpirun), options.nodes, program.stat().st_mtime_ns,
             os.environ.get("LD_LIBRARY_PATH")]
    kept = options.plain_cache / hashlib.sha256(repr(facts).encode()).hexdigest()[:24]
    try:
        return Outcome(**json.loads(kept.read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        pass
    outcome = run(options, case, ranks, seed, [yield_library(options)], {})
    options.plain_cache.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=options.plain_cache, delete=False) as file:
        json.dump(dataclasses.asdict(outcome), file)
    os.replace(file.name, kept)
    return outcome


def run_plain_where_it_can(options, case, ranks, seed):
    """The outcome, and its seed: the first of five with which the library does not fail as it is known to."""
    for step in range(5):
        other_seed = seed + step * 1000003
        plain = run_plain(options, case, ranks, other_seed)
        if not case.library_says or plain.status == 0 or case.library_says not in plain.errors:
            break
        print(f"left out: {case.name} {ranks} (seed {other_seed}): plain: {case.library_says}", flush=True)
    return plain, other_seed


def run_case(options, tally, case, ranks, modes, seed):
    if options.debug:
        for mode in modes:
            debug(options, case, ranks, seed, MODES[mode])
        return
    plain, seed = run_plain_where_it_can(options, case, ranks, seed)
    label = f"{ranks} (seed {seed})"
    why = ended_as_expected(case, plain)
    if why and options.where_plain_passes:
        print(f"left out: {case.name} {label}: plain: {why}", flush=True)
        return
    tally.note(f"{case.name} plain {label}", why, plain)
    if why:
        return
    for mode in modes:
        for _ in range(options.repeats):
            run_preloaded(options, tally, case, mode, ranks, seed, plain)


def contains_one_of(name, words):
    return any(word in name for word in words.split(",") if word)


def chosen_cases(options):
    if options.case:
        return [case for case in CASES if case.name == options.case]
    return [case for case in CASES if not options.only or contains_one_of(case.name, options.only)]


def main():
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    options = arguments()
    if not chosen_cases(options):
        sys.exit(f"run.py: no case is called '{options.case or options.only}' (tests/mpi/cases.py)")
    if options.nodes and subprocess.run([options.mpirun, "-n", "1", "true"], check=False).returncode == 77:
        print("this user may not make namespaces, which name the nodes")
        return 77
    first_seed = options.seed
    print(f"seed {first_seed}")
    cases = chosen_cases(options)
    unsteady = [case for case in cases if contains_one_of(case.name, options.leave_out)]
    for case in unsteady:
        print(f"left out: {case.name}: does not always pass plain", flush=True)
    tally = Tally()
    seconds = Counter()
    for seed in range(first_seed, first_seed + options.loop):
        for case in cases:
            if case in unsteady:
                continue
            begun = time.monotonic()
            modes_of = {}  # number of ranks -> modes
            for mode in options.modes.split(","):
                for ranks in rank_numbers(options, case, mode, seed):
                    modes_of.setdefault(ranks, []).append(mode)
            for ranks in sorted(modes_of):
                run_case(options, tally, case, ranks, modes_of[ranks], seed)
            seconds[case.name] += time.monotonic() - begun
    longest = ", ".join(f"{name} {spent:.0f} s" for name, spent in seconds.most_common(5))
    print(f"took the longest: {longest}")
    print(f"{tally.passed} passed, {tally.failed} failed")
    if tally.passed + tally.failed == 0 and not options.debug:
        print("plain MPI does not pass, or nothing was drawn")
        return 77
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
