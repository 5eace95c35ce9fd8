# SPDX-License-Identifier: BSD-3-Clause
"""The four parts of a profile: what is run for each, and what its figures say. Writes no file."""

import json
import re
import statistics
from collections import Counter
from dataclasses import dataclass, field

import decide
import network
from children import run
from failure import RunFailed

PARTS = ("kernels", "pack", "node", "network")
KINDS = {
    "Allreduce": "allreduce",
    "Reduce": "reduce",
    "Reduce_scatter": "reduce_scatter",
    "Bcast": "bcast",
    "Allgather": "allgather",
}
CALLS = "allreduce,reduce,reduce_scatter,bcast,allgather"  # of the ranks program
SIZES = (64, 256, 1024)  # KiB
# What the log calls each, and the profile.
TRANSPORTS = {"copy-in copy-out": "rounds", "single copy": "copy", "the library": "library"}
TRIED = re.compile(
    r"on this node MPI_(\w+) of (\d+) KiB takes by copy-in copy-out (\S+)(?: us)?, "
    r"by single copy (\S+)(?: us)?, by the library (\S+)(?: us)?: (.+)"
)
CONSTANTS = {"latency": network.LATENCY, "bandwidth": network.BANDWIDTH, "overhead": network.OVERHEAD}


class Skipped(Exception):
    """Nothing to measure here: why, in one line."""


@dataclass
class Measured:
    rows: list
    replaces: str  # prefix of the keys that the rows take the place of
    mpi: str = ""
    failure: str = ""  # some runs were done before one failed


@dataclass
class Bench:
    """What the parts need: programs, mpirun, effort, progress."""

    programs: object
    host: dict
    mpirun: list
    local_mpirun: list
    quick: bool
    limit_s: int
    progress: object = None
    runs: int = field(init=False)

    def __post_init__(self):
        self.runs = 2 if self.quick else 5

    def total(self, parts):
        return sum(self.runs if part in ("node", "network") else 1 for part in parts)

    def step(self, what, command):
        self.progress.start(what)
        try:
            return run(command, self.limit_s)
        finally:
            self.progress.finish()


def cells_of(bench, part):
    quick = ["--quick"] if bench.quick else []
    lines, _ = bench.step(f"{part}, on one CPU", [bench.programs.kernels, part, *quick])
    cells = [json.loads(line) for line in lines]
    for cell in cells:
        cell["ns"] = {name: [decide.figure(ns) for ns in times] for name, times in cell["ns"].items()}
    return decide.by_key(cells)


def kernels(bench):
    cells = cells_of(bench, "kernels")
    return Measured([decide.instruction_set(key, cells[key]) for key in cells], "reduce.")


def pack(bench):
    cells = cells_of(bench, "pack")
    return Measured([decide.verdict(key, cells[key]) for key in sorted(cells)], "pack.")


# ---- runs of the ranks program ---------------------------------------------------------------------------


def ranks_command(bench, mpirun, measurement, environment, options):
    """By `env`, since every launcher has its own option for variables."""
    settings = [f"{name}={value}" for name, value in environment.items()]
    usual = ["--pin", "none", "--limit", str(bench.limit_s)]
    return [*mpirun, "env", *settings, bench.programs.ranks, measurement, *usual, *options]


def records_of(lines):
    return [json.loads(line) for line in lines if line.startswith('{"bench":')]


def header_of(records):
    header = next((record for record in records if record["bench"] == "header"), None)
    if header is None:
        raise RunFailed("a run printed no figures")
    header["hosts"] = [place.rpartition(":")[0] for place in header["places"]]
    return header


def repeat(bench, what, first):
    """first(i): one run. What was done before a run that failed is kept, with the failure."""
    done = []
    for i in range(bench.runs):
        try:
            done.append(first(f"{what}, run {i + 1} of {bench.runs}"))
        except RunFailed as error:
            if not done:
                raise
            return done, str(error)
    return done, ""


# ---- transports on a node ------------------------------------------------------------------------------------


def number_of(text):
    try:
        return float(text)
    except ValueError:
        return text


def tried_transports(messages):
    """By kind and size: microseconds by way (None: not tried) and what the library chose."""
    for message in messages:
        match = TRIED.search(message)
        if match:
            kind, size, *times, chosen = match.groups()
            numbers = [None if time == "-" else decide.figure(number_of(time)) for time in times]
            yield (KINDS[kind], int(size)), dict(zip(TRANSPORTS.values(), numbers)), TRANSPORTS[chosen.strip()]


def run_node(bench, mpirun, what):
    environment = {"LD_PRELOAD": bench.programs.library, "VECMPI_PROFILE": "off", "VECMPI_LOG": "info"}
    sizes = ",".join(str(size << 10) for size in SIZES)
    options = ["--seconds", "0.15", "--sizes", sizes, "--ops", "sum", "--calls", CALLS]
    lines, messages = bench.step(what, ranks_command(bench, mpirun, "allreduce", environment, options))
    return header_of(records_of(lines)), list(tried_transports(messages))


def node_row(kind, ranks, runs):
    """runs: ((kind, size in KiB), times by way, chosen). A collective whose sizes are not all clear is left to jobs."""
    ways, built_in, figures = [], [], []
    for size in SIZES:
        tried = [(times, chosen) for key, times, chosen in runs if key == (kind, size)]
        times = {way: [one[way] for one, _ in tried if one[way] is not None] for way in TRANSPORTS.values()}
        ways.append(decide.way({way: numbers for way, numbers in times.items() if numbers}))
        chosen, often = Counter(chosen for _, chosen in tried).most_common(1)[0]
        built_in.append(f"{chosen} {often}/{len(tried)}")
        medians = (f"{statistics.median(of):.0f}" if of else "-" for of in times.values())
        figures.append("/".join(medians))
    key = f"node.{ranks}.{kind}"
    is_clear = None not in ways
    text = ", ".join(ways) if is_clear else "tried in each job"
    return decide.Row(
        key, key, ", ".join(built_in), text, " ".join(figures) + " us", ",".join(ways) if is_clear else ""
    )


def node(bench):
    mpirun = [bench.mpirun]

    def once(what):
        header, tried = run_node(bench, mpirun[0], what)
        if len(set(header["hosts"])) == 1:
            return header, tried
        if mpirun[0] is bench.local_mpirun or not bench.local_mpirun:
            raise Skipped("the ranks are on several hosts: give an --mpirun for one")
        mpirun[0] = bench.local_mpirun  # the network's command; a node has one of its own
        bench.progress.total += 1
        return once(what)

    done, failure = repeat(bench, "ways on a node", once)
    header = done[0][0]
    runs = [one for _, tried in done for one in tried]
    there = {key for key, _, _ in runs}
    kinds = [kind for kind in KINDS.values() if all((kind, size) in there for size in SIZES)]
    if not kinds:
        raise Skipped("the library tried no ways here: its log (VECMPI_LOG=info) and report say why")
    ranks = int(header["ranks"])
    rows = [node_row(kind, ranks, runs) for kind in kinds]
    return Measured(rows, f"node.{ranks}.", header["mpi"], failure)


# ---- the network -----------------------------------------------------------------------------------------------


def run_network(bench, what):
    options = ["--seconds", "0.05" if bench.quick else "0.3", "--sizes", str(1 << (20 if bench.quick else 22))]
    lines, _ = bench.step(what, ranks_command(bench, bench.mpirun, "network", {}, options))
    records = records_of(lines)
    header = header_of(records)
    if len(header["hosts"]) < 2 or header["hosts"][0] == header["hosts"][1]:
        raise Skipped("ranks 0 and 1 are on one host: --mpirun with -hosts measures the network")
    figures = {record["name"]: record["value"] for record in records if record["bench"] == "figure"}
    if not set(CONSTANTS.values()) <= figures.keys():
        raise RunFailed("a run printed no figures of the network")
    # Half a ns or Mbit/s would round to 0 in the profile.
    return header, {name: decide.figure(figures[name], least=0.5) for name in CONSTANTS.values()}


def constant_text(name, value):
    return f"{value:.0f}Mbit" if name == "bandwidth" else network.time_text(value)


def network_part(bench):
    done, failure = repeat(bench, "network", lambda what: run_network(bench, what))
    rows, changed = [], []
    for name, figure in CONSTANTS.items():
        measured = [figures[figure] for _, figures in done]
        value = decide.constant(bench.host["network"][name], measured)
        built_in, median = (
            constant_text(name, number) for number in (bench.host["network"][name], statistics.median(measured))
        )
        extremes = f"{constant_text(name, min(measured))} to {constant_text(name, max(measured))}"
        rows.append(decide.Row("", f"network {name}", built_in, built_in if value is None else median, extremes))
        if value is not None:
            changed.append(f"{name}={median}")
    if changed:
        rows.append(decide.Row("network", "network", "", "", "", ",".join(changed)))
    return Measured(rows, "network", done[0][0]["mpi"], failure)


MEASURE = {"kernels": kernels, "pack": pack, "node": node, "network": network_part}
