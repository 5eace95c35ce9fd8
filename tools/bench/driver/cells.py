# SPDX-License-Identifier: BSD-3-Clause
"""Cells: how many times faster each is, means by group, the fastest library, and what stays under a limit.

A cell is a group (thread level, form ...), a row of it (a pattern or a collective) and a size. The ranks name a figure
GROUP ROW, where ROW is one word. A cell counts with the best run of a side: what else the host does only adds time.
"""

import copy
import math
from typing import NamedTuple

import report
import runs
import values
from failure import BadArgument, RunFailed
from measurement import Option

LEVELS = ("single", "multiple")
PASSES = 3  # a cell that is under the limit is measured again
BY_HAND = "by-hand"  # a group that stands beside the others: the program's own loops, no gain between the sides
START_S = 0.25  # a run besides its figures: mpirun, MPI_Init, two measurements of the exchange

FAIL_BELOW = Option(
    "--fail-below",
    f"exit status 1 if a cell stays under so many times plain in {PASSES} passes (0.95)",
    values.ratio,
)
MPI = Option("--mpi", "installed MPI library to run with, such as a folder of scripts/libraries.sh")


def levels_option(default, words):
    return Option(
        "--levels",
        f"thread levels, out of {','.join(LEVELS)} (default {words})",
        values.choices(*LEVELS),
        default,
    )


class Cell(NamedTuple):
    group: str
    row: str
    at: int


class Best(NamedTuple):
    """The fastest plain library of a cell."""

    ns: float
    side: str


def settle(options):
    name = options.measurement
    if options.fail_below is not None and options.plain_only:
        raise BadArgument("--fail-below compares with plain: leave out --plain-only")
    if len(options.offload) * max(len(options.settings), 1) > 1:
        raise BadArgument(f"{name} compares one preloaded side with plain: one --offload, one --set")


def grouped(cells):
    """Group -> row -> its sizes, in the order in which groups and rows appear."""
    groups = {}
    for cell in cells:
        groups.setdefault(cell.group, {}).setdefault(cell.row, []).append(cell.at)
    return groups


def plan(outcome):
    """What the first pass will make, and about how long that takes."""
    measurement, options = outcome.measurement, outcome.options
    jobs = measurement.launches(options)
    starts = len(jobs) * options.repeats * len(outcome.sides)
    seconds = sum(job.seconds for job in jobs) * options.repeats * len(outcome.sides) + starts * START_S
    return (
        f"plan: {len(jobs)} launches, {options.repeats} times, {len(outcome.sides)} sides, "
        f"{options.seconds:g} s a figure: about {values.minutes_text(seconds)}, half as long again on an unsteady host"
    )


# ---- pure: from runs to numbers -----------------------------------------------------------------------


def best_times(outcome):
    """Cell -> side -> the best of its runs, in ns."""
    best = {}
    for run in outcome.runs:
        for figure in run["figures"]:
            group, _, row = figure["name"].rpartition(" ")
            times = best.setdefault(Cell(group, row, figure["at"]), {})
            times[run["side"]] = min(figure["value"], times.get(run["side"], math.inf))
    return best


def the_two(outcome):
    """Names of the plain side and of the preloaded one; nothing where there is none."""
    preloaded = [side.name for side in outcome.sides if side.preloaded]
    return (outcome.sides[0].name, preloaded[0]) if preloaded else None


def gains(outcome):
    """Cell -> how many times faster it is preloaded: best plain over best preloaded."""
    names = the_two(outcome)
    if not names:
        return {}
    plain, other = names
    return {
        cell: times[plain] / times[other]
        for cell, times in best_times(outcome).items()
        if plain in times and other in times and cell.group != BY_HAND
    }


def best_of_all(outcome):
    """Cell -> the fastest of all plain sides; empty where there is only one."""
    plain = [side.name for side in outcome.sides if not side.preloaded]
    if len(plain) < 2:
        return {}
    found = {}
    for cell, times in best_times(outcome).items():
        candidates = [Best(times[name], name) for name in plain if name in times]
        if candidates:
            found[cell] = min(candidates)
    return found


def gains_over_best(outcome):
    """Cell -> how many times faster than the fastest plain library the preloaded side is."""
    names = the_two(outcome)
    if not names:
        return {}
    times = best_times(outcome)
    return {
        cell: best.ns / times[cell][names[1]]
        for cell, best in best_of_all(outcome).items()
        if names[1] in times[cell]
    }


def geometric_mean(numbers):
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


# ---- the limit ------------------------------------------------------------------------------------------


def again(outcome, cells):
    """Gains of these cells, measured once more as often as before, plain and preloaded alone."""
    fresh = copy.copy(outcome)
    fresh.runs, fresh.sides = [], outcome.sides[:2]
    runs.run_sides(fresh, outcome.measurement.relaunch(outcome.options, list(cells)))
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
        try:
            found = again(outcome, under)
        except RunFailed as error:
            outcome.failed = str(error)
            return
        under = {
            cell: [*before, found[cell]] for cell, before in under.items() if found[cell] < limit
        }
    outcome.losses = under
    if under:
        outcome.failed = f"{len(under)} cells stay under {limit:g} of plain in {PASSES} passes"


# ---- text -----------------------------------------------------------------------------------------------


def exchange_line(outcome):
    taken = [ns for run in outcome.runs for ns in run.get("exchange_ns", [])]
    repeated = sum(run.get("repeated", 0) for run in outcome.runs)
    if not taken:
        return "exchange of a cache line: not measured on one CPU"
    line = f"exchange of a cache line, before and after each run: {min(taken):.0f} to {max(taken):.0f} ns"
    return line + (f"; runs repeated because it was slow: {repeated}" if repeated else "")


def at_text(at):
    return report.at_text(at, "bytes")


def cell_text(cell, numbers):
    where = f" {at_text(cell.at)}" if cell.at else ""
    return f"{cell.group} {cell.row}{where}: {', '.join(f'{n:.2f}' for n in numbers)}"


def mean_lines(name, numbers, than):
    """The geometric mean, and how many are slower."""
    slower = sum(number < 1 for number in numbers)
    return [
        f"{name}: geometric mean {geometric_mean(numbers):.3f}{than}; "
        f"{slower} of {len(numbers)} cells under 1"
    ]


def gains_lines(group, found):
    """A row of the group a line, a size a column."""
    sizes = sorted({cell.at for cell in found})
    lines = [[f"{group}: times faster", *map(at_text, sizes)]]
    for row in dict.fromkeys(cell.row for cell in found):
        row_gains = [found.get(Cell(group, row, size)) for size in sizes]
        lines.append([row, *("-" if gain is None else f"{gain:.2f}" for gain in row_gains)])
    return [*report.align(lines), *mean_lines(group, list(found.values()), "")]


def time_text(ns):
    return "-" if ns is None else report.quantity(ns, "ns")


def best_lines(group, outcome):
    """A cell a line: the time on each side, the fastest plain library, and vecmpi's gain over it."""
    times, best, over = best_times(outcome), best_of_all(outcome), gains_over_best(outcome)
    mine = [cell for cell in over if cell.group == group]
    names = [side.name for side in outcome.sides]
    lines = [[f"{group}: time of a call", "bytes", *names, "best plain of all", "gain over it"]]
    for cell in mine:
        beside = [time_text(times[cell].get(name)) for name in names]
        ns, side = best[cell]
        lines.append([cell.row, at_text(cell.at), *beside, f"{time_text(ns)} {side}", f"{over[cell]:.2f}"])
    than = " over the best plain of all"
    return [*report.align(lines), *mean_lines(group, [over[cell] for cell in mine], than)]


def losses_lines(outcome):
    losses = getattr(outcome, "losses", None)
    if losses is None:
        return []
    limit = f"{outcome.options.fail_below:g} of plain"
    count = len(losses) or "none"
    lines = ["", f"cells that stay under {limit} in {PASSES} passes: {count}"]
    return [*lines, *(f"  {cell_text(cell, numbers)}" for cell, numbers in losses.items())]


def left_out_lines(outcome):
    return [f"left out, it failed there: {side}: {', '.join(jobs)}" for side, jobs in outcome.left_out.items()]


def print_view(outcome, results, file):
    print(exchange_line(outcome), file=file)
    found = gains(outcome)
    if not found:
        report.print_table(outcome, results, file)
        return
    lines = []
    for group in grouped(found):
        of_group = {cell: gain for cell, gain in found.items() if cell.group == group}
        lines += ["", *gains_lines(group, of_group)]
        if best_of_all(outcome):
            lines += ["", *best_lines(group, outcome)]
    lines += left_out_lines(outcome)
    if len(grouped(found)) > 1:
        lines += ["", *mean_lines("all", list(found.values()), "")]
    for line in lines + losses_lines(outcome):
        print(line, file=file)
