#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Rounded results of reductions: the same bits from run to run, and with VECMPI_REPRODUCIBLE whatever the settings
and wherever the ranks are (docs/schedules.md).

Exit status 1 when anything differs. Hosts of their own for the ranks need root; without it that part is left out.
"""

import argparse
import random
import shutil
import subprocess
import sys
from pathlib import Path

import run as battery
from cases import Case

CASE = Case("same_bits", argument="rounded")
TREES = {"VECMPI_REPRODUCIBLE": "on"}
# What must not make a difference with VECMPI_REPRODUCIBLE.
SETTINGS = [
    {"VECMPI_OFFLOAD": "off"},
    {"VECMPI_OFFLOAD": "on"},
    {"VECMPI_SEGMENTS": "3"},
    {"VECMPI_SEGMENTS": "7", "VECMPI_OFFLOAD": "on"},
    {"VECMPI_SEGMENT_BYTES": "1K"},
    {"VECMPI_WAIT": "yield", "VECMPI_SEGMENT_BYTES": "32K"},
    {"VECMPI_WAIT": "sleep", "VECMPI_OFFLOAD": "on"},
    {"VECMPI_ALLREDUCE": "ring", "VECMPI_REDUCE": "chain", "VECMPI_REDUCE_SCATTER": "recursive_halving"},
    {"VECMPI_ALLREDUCE": "mpi", "VECMPI_REDUCE": "mpi", "VECMPI_REDUCE_SCATTER": "mpi"},
    {"VECMPI_NETWORK": "latency=1us,bandwidth=10GB,overhead=100ns"},
]
# Each of these gives bits of its own, the same in every run.
REPEATED = {
    "schedules": battery.SCHEDULES["halving-on"],
    "rings": battery.SCHEDULES["ring"],
    "defaults": {},
}
RUNS = 3
SETTINGS_OF_A_SAMPLE = 4
# MPICH 4.0.2 over TCP may hang in MPI_Finalize, plain as well: a run that is still there then is ended and counts.
FINALIZE_SECONDS = 3


def arguments():
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-dir", type=Path, default=here.parents[1] / "build" / "tests" / "mpi")
    parser.add_argument("--library", type=Path, default=here.parents[1] / "build" / "libvecmpi.so")
    parser.add_argument("--lab", type=Path, default=here.parents[1] / "scripts" / "lab.sh")
    parser.add_argument("--ranks", default="2,3,4,5")
    parser.add_argument("--seed", type=int, help="default: that of scripts/check.sh, or a random one")
    options = parser.parse_args()
    seed, sample = battery.check_run(options.build_dir.parent / "check_run")
    if options.seed is None:
        options.seed = seed or random.randrange(1, 1000000)
    options.settings = random.Random(options.seed).sample(SETTINGS, SETTINGS_OF_A_SAMPLE) if sample else SETTINGS
    options.mpirun = shutil.which("mpirun.mpich") or "mpirun"
    options.timeout, options.gdb = 120, False
    return options


def rounded(output):
    return sorted(line for line in battery.rank_lines(output) if "rounded" in line)


def text(settings):
    return " ".join(f"{name}={value}" for name, value in settings.items()) or "nothing set"


def on_this_host(options, ranks, settings):
    return battery.run(options, CASE, ranks, options.seed, [options.library], settings)


def on_hosts(options, ranks, settings):
    """One rank on each of so many virtual hosts. Standard error is not kept."""
    for_ranks = {"LD_PRELOAD": str(options.library.resolve())} | settings
    command = [str(options.lab), "-n", str(ranks), "-r", "0", "-t", str(options.timeout)]
    for name, value in for_ranks.items():
        command += ["-e", f"{name}={value}"]
    program = (options.build_dir / "bin" / CASE.program).resolve()
    command += ["--", str(program), CASE.argument, "--seed", str(options.seed)]
    process = subprocess.Popen(command, env=battery.clean_environment(), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace",
                               start_new_session=True)
    output = ""
    for line in process.stdout:
        output += line
        if len(rounded(output)) == ranks:
            break
    try:
        return battery.Outcome(process.wait(FINALIZE_SECONDS), output, "")
    except subprocess.TimeoutExpired:
        battery.stop(process)
        return battery.Outcome(0 if len(rounded(output)) == ranks else None, output, "")


def hosts_are_possible(options):
    return subprocess.run([str(options.lab), "-n", "1", "--", "true"], capture_output=True,
                          stdin=subprocess.DEVNULL, check=False).returncode == 0


class Expected:
    """The bits that the first run gave."""

    def __init__(self):
        self.lines = None

    def why_not(self, outcome):
        why = battery.ended_as_expected(CASE, outcome)
        if why:
            return why
        lines = rounded(outcome.output)
        if not lines:
            return "no rounded results"
        if self.lines is None:
            self.lines = lines
        return "" if lines == self.lines else f"{lines[0]}, not {self.lines[0]}"


def main():
    options = arguments()
    print(f"seed {options.seed}")
    hosts = hosts_are_possible(options)
    if not hosts:
        print("virtual hosts cannot be made here: all ranks run on this one")
    tally = battery.Tally()
    for ranks in map(int, options.ranks.split(",")):
        label = f"{ranks} ranks (seed {options.seed})"
        trees = Expected()
        for settings in options.settings:
            outcome = on_this_host(options, ranks, TREES | settings)
            tally.note(f"reproducible, {text(settings)}, {label}", trees.why_not(outcome), outcome)
        if hosts:
            for settings in options.settings[:2]:
                outcome = on_hosts(options, ranks, TREES | settings)
                tally.note(f"reproducible, hosts, {text(settings)}, {label}", trees.why_not(outcome), outcome)
        for name, settings in REPEATED.items():
            again = Expected()
            for number in range(RUNS):
                outcome = on_this_host(options, ranks, settings)
                tally.note(f"{name}, run {number + 1}, {label}", again.why_not(outcome), outcome)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
