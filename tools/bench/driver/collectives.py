# SPDX-License-Identifier: BSD-3-Clause
"""`collectives`: every collective, by form, as cells: the options, what is launched, and the picture.

A group is a thread level with a form, a row of it a collective. The ranks program has the table of collectives.
"""

import sys

import cells
import curves
import launch
import mpi_libraries
import values
from cells import Cell
from failure import BadArgument
from launch import Launch, words_of
from measurement import LAB_OPTIONS, RANKS_ON_NODE, Option, sizes_option

FORMS = ("blocking", "nonblocking", "persistent")
USUAL = "bcast,reduce,allreduce,reduce_scatter_block,scan,gather,scatter,allgather,alltoall,barrier"
ALL = "all"
WARM_SHARE = 0.2  # of a budget, on average, goes by before the samples

OPTIONS = [
    RANKS_ON_NODE,
    sizes_option("8-4M", quick="8,4K"),
    Option(
        "--collectives",
        f"names of mpi.h without MPI_, or {ALL} (default {USUAL.replace(',', ', ')})",
        values.words,
        USUAL,
    ),
    Option(
        "--forms",
        f"out of {','.join(FORMS)} (default blocking)",
        values.choices(*FORMS),
        "blocking",
    ),
    Option("--in-place", "each form also with MPI_IN_PLACE, where the standard has it", bool),
    cells.levels_option("single", "single"),
    Option("--seconds", "budget of one figure (default 0.05)", values.seconds),
    cells.FAIL_BELOW,
    cells.MPI,
    Option(
        "--against",
        f"further libraries, measured plain: a list of {', '.join([mpi_libraries.SYSTEM, *mpi_libraries.KEPT])} "
        "or NAME=PREFIX; the fastest plain one of each cell is shown beside",
        mpi_libraries.names,
    ),
    Option("--plot", "draw the gains over bytes: FILE.svg or FILE.png"),
    *LAB_OPTIONS,
]


def settle(options):
    cells.settle(options)
    if options.lab and (options.mpi or options.against):
        raise BadArgument("--lab runs with the system's MPICH: leave out --mpi and --against")
    if options.against and options.plain_only:
        raise BadArgument("--against compares with vecmpi: leave out --plain-only")
    if options.plot:
        if options.plain_only:
            raise BadArgument("--plot shows a gain: leave out --plain-only")
        curves.check(options.plot)
    choose_collectives(options)


def choose_collectives(options):
    """Those that the ranks program has, in its order; options.table: its records by name."""
    ranks = options.programs.ranks
    records = {record["name"]: record for record in launch.records_of(ranks, "calls")}
    if not records:
        raise BadArgument(f"{ranks} does not list its collectives: build vecmpi or give --ranks-program")
    for name in options.collectives:
        if name not in records and name != ALL:
            raise BadArgument(f"argument --collectives: '{name}' is none of {', '.join(records)}, {ALL}")
    chosen = records if ALL in options.collectives else options.collectives
    options.table = {name: record for name, record in records.items() if name in chosen}
    if "persistent" in options.forms and not any(record["persistent"] for record in records.values()):
        why = "persistent collectives are left out: the ranks program was built with an mpi.h before MPI 4"
        options.forms = [form for form in options.forms if form != "persistent"]
        if not options.forms:
            raise BadArgument(why)
        print(why, file=sys.stderr)


class Group:
    """A thread level and a form, maybe in place."""

    def __init__(self, level, form, in_place):
        self.level, self.form, self.in_place = level, form, in_place
        self.name = f"{level.upper()} {form}{' in place' if in_place else ''}"


def groups(options):
    """By name, as the ranks have it."""
    found = [
        Group(level, form, in_place)
        for level in options.levels
        for form in options.forms
        for in_place in ([False, True] if options.in_place else [False])
    ]
    return {group.name: group for group in found}


def relaunch(options, chosen):
    """A launch for each collective of each group, so that the sides alternate often."""
    jobs = []
    for name, rows in cells.grouped(chosen).items():
        group = groups(options)[name]
        for row, sizes in rows.items():
            arguments = {
                "--calls": row,
                "--sizes": ",".join(str(size) for size in sizes),
                "--multiple": int(group.level == "multiple"),
                "--form": group.form,
                "--in-place": int(group.in_place),
            }
            seconds = (1 + WARM_SHARE) * options.seconds * len(sizes)
            ranks = options.lab or options.ranks
            jobs.append(Launch(ranks, words_of(arguments), f"{name} {row}", seconds))
    return jobs


def launches(options):
    chosen = [
        Cell(name, row, size)
        for name, group in groups(options).items()
        for row, record in options.table.items()
        if record["in_place"] or not group.in_place
        for size in (options.sizes if record["has_size"] else [0])
    ]
    return relaunch(options, chosen)


def notes(options):
    lines = [
        "bytes: what one rank gives, or gets of scatter; of reduce_scatter and alltoall, and neighbor_alltoall, the "
        "whole vector of a rank"
    ]
    ahead = "bcast, scatter, reduce, gather, scan: a stream of 16 calls, then who was late answers"
    return [*lines, ahead]


# ---- the picture ----------------------------------------------------------------------------------------


def lines_of(found, group):
    """A line a collective; what has no size is the same at all sizes."""
    sizes = sorted({cell.at for cell in found if cell.at})
    lines = {}
    for cell, gain in found.items():
        if cell.group == group:
            lines.setdefault(cell.row, []).extend((size, gain) for size in ([cell.at] if cell.at else sizes))
    return {row: sorted(points) for row, points in lines.items()}


def draw(outcome):
    if not outcome.options.plot:
        return
    panels = []
    for what, found in (("plain", cells.gains(outcome)), ("the best plain of all", cells.gains_over_best(outcome))):
        panels += [(f"{group}, over {what}", lines_of(found, group)) for group in cells.grouped(found)]
    curves.draw_panels(outcome, panels, curves.Axis("times faster", logarithmic=True, line_at=1))
