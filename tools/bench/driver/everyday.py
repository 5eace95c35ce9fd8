# SPDX-License-Identifier: BSD-3-Clause
"""`everyday`: best of the runs by cell, geometric means by group, and the cells that stay under a limit.

A group is a thread level with a number of threads, a cell a pattern with a size in a group.
"""

import copy
import math

import report
import runs
import values
from failure import BadArgument
from launch import Launch, words_of

PATTERNS = (
    "ping-pong",
    "window",
    "stream",
    "sendrecv",
    "probe",
    "waitany",
    "waitsome",
    "start",
    "scatter",
    "gather",
    "scan",
    "alltoall",
)
LEVELS = ("single", "multiple")
MORE_TIME = 4  # a figure of several threads takes so much longer: they start anew for each sample
PASSES = 3  # a cell that is under the limit is measured again


def settle(options):
    if options.fail_below is not None and options.plain_only:
        raise BadArgument("--fail-below compares with plain: leave out --plain-only")
    if len(options.offload) * max(len(options.settings), 1) > 1:
        raise BadArgument("everyday compares one preloaded side with plain: one --offload, one --set")


def job(options, level, threads, patterns, sizes):
    seconds = options.seconds * (MORE_TIME if threads > 1 else 1)
    arguments = {
        "--multiple": int(level == "multiple"),
        "--threads": threads,
        "--calls": ",".join(patterns),
        "--sizes": ",".join(str(size) for size in sizes),
        "--seconds": seconds,
    }
    return Launch(2, words_of(arguments), f"{level}, {threads} threads" if threads > 1 else level)


def groups(options):
    """Level, threads and sizes of each."""
    for level in options.levels:
        for threads in options.threads if level == "multiple" else [1]:
            yield level, threads, options.sizes if threads == 1 else options.thread_sizes


def group_name(level, threads):
    return "SINGLE" if level == "single" else f"MULTIPLE {threads}"


def launches(options):
    return [
        job(options, level, threads, options.patterns, sizes)
        for level, threads, sizes in groups(options)
    ]


def gains(outcome):
    """How many times faster each cell is preloaded, (group, pattern, size) -> best plain / best preloaded."""
    best = {}
    for run in outcome.runs:
        for figure in run["figures"]:
            group, _, pattern = figure["name"].rpartition(" ")
            times = best.setdefault((group, pattern, figure["at"]), {})
            times[run["side"]] = min(figure["value"], times.get(run["side"], math.inf))
    plain, *others = [side.name for side in outcome.sides]
    if not others:
        return {}
    return {cell: times[plain] / times[others[0]] for cell, times in best.items() if len(times) == 2}


def geometric_mean(numbers):
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


def again(outcome, cells):
    """Runs the patterns and sizes of these cells once more, as often as before."""
    jobs = []
    for level, threads, _ in groups(outcome.options):
        mine = [cell for cell in cells if cell[0] == group_name(level, threads)]
        patterns = [pattern for pattern in PATTERNS if any(cell[1] == pattern for cell in mine)]
        sizes = sorted({int(cell[2]) for cell in mine})
        if mine:
            jobs.append(job(outcome.options, level, threads, patterns, sizes))
    fresh = copy.copy(outcome)
    fresh.runs = []
    runs.run_sides(fresh, jobs)
    return gains(fresh)


def find_losses(outcome):
    """Cells that stay under --fail-below in each of the passes, with the gain of each pass."""
    limit = outcome.options.fail_below
    if limit is None or outcome.failed:
        return
    under = {cell: [gain] for cell, gain in gains(outcome).items() if gain < limit}
    for _ in range(PASSES - 1):
        if not under:
            break
        found = again(outcome, under)
        under = {
            cell: [*before, found[cell]] for cell, before in under.items() if found[cell] < limit
        }
    outcome.losses = under
    if under:
        outcome.failed = f"{len(under)} cells stay under {limit:g} of plain in {PASSES} passes"


def exchange_line(outcome):
    taken = [ns for run in outcome.runs for ns in run.get("exchange_ns", [])]
    repeated = sum(run.get("repeated", 0) for run in outcome.runs)
    if not taken:
        return "exchange of a cache line: not measured on one CPU"
    line = f"exchange of a cache line, before and after each run: {min(taken):.0f} to {max(taken):.0f} ns"
    return line + (f"; runs repeated because it was slow: {repeated}" if repeated else "")


def cell_text(cell, numbers):
    group, pattern, size = cell
    return f"{group} {pattern} {values.size_text(int(size))}: {', '.join(f'{n:.2f}' for n in numbers)}"


def print_view(outcome, results, file):
    print(exchange_line(outcome), file=file)
    found = gains(outcome)
    if not found:
        report.print_table(outcome, results, file)
        return
    for group in dict.fromkeys(cell[0] for cell in found):
        sizes = sorted({size for name, _, size in found if name == group})
        lines = [[f"{group}: times faster", *(values.size_text(int(size)) for size in sizes)]]
        for pattern in dict.fromkeys(cell[1] for cell in found if cell[0] == group):
            cells = [found.get((group, pattern, size)) for size in sizes]
            lines.append([pattern, *("-" if gain is None else f"{gain:.2f}" for gain in cells)])
        print(file=file)
        for line in report.align(lines):
            print(line, file=file)
        mean = geometric_mean([gain for cell, gain in found.items() if cell[0] == group])
        print(f"{group}: geometric mean {mean:.3f}", file=file)
    losses = getattr(outcome, "losses", None)
    if losses is not None:
        limit = f"{outcome.options.fail_below:g} of plain"
        print(f"\ncells that stay under {limit} in {PASSES} passes: {len(losses) or 'none'}", file=file)
        for cell, numbers in losses.items():
            print(f"  {cell_text(cell, numbers)}", file=file)
