# SPDX-License-Identifier: BSD-3-Clause
"""`applications`: what published codes exchange, as cells: the options, what is launched, the text and the picture.

A group is how long the datatype lives, or packing by hand, which stands beside; a row is a layout. The ranks program
has the table of layouts, with three sizes of each.
"""

import cells
import curves
import report
import values
from cells import BY_HAND, Cell
from failure import BadArgument
from launch import Launch, words_of
from measurement import Option

LAYOUTS = (
    "wrf_x_vec",
    "wrf_y_vec",
    "wrf_x_sa",
    "wrf_y_sa",
    "lammps_full",
    "lammps_atomic",
    "specfem3d_oc",
    "specfem3d_cm",
    "specfem3d_mt",
    "milc_su3_z",
    "nas_mg_x",
    "nas_mg_y",
    "nas_mg_z",
    "nas_lu_x",
    "nas_lu_y",
    "fft2",
)
SIZES = ("small", "middle", "large")
LIFETIMES = ("long-lived", "short-lived")
MORE_TIME = 2.8  # a figure takes so many budgets, on average, with what comes before its samples
PLAIN_LIMIT = 0.95  # under so many times plain, or over so many times the time by hand, a cell is counted
BY_HAND_LIMIT = 1.1

OPTIONS = [
    Option(
        "--layouts",
        f"out of {', '.join(LAYOUTS)} (default all)",
        values.choices(*LAYOUTS),
        ",".join(LAYOUTS),
    ),
    Option(
        "--sizes",
        f"out of {','.join(SIZES)}: some 4, 40 and 250 KiB (default all)",
        values.choices(*SIZES),
        ",".join(SIZES),
        quick="small",
    ),
    Option(
        "--lifetimes",
        f"of the datatype, out of {','.join(LIFETIMES)} (default both)",
        values.choices(*LIFETIMES),
        ",".join(LIFETIMES),
    ),
    Option("--seconds", "budget of one figure (default 0.05)", values.seconds),
    cells.FAIL_BELOW,
    cells.MPI,
    Option("--plot", "draw the gains of each layout: FILE.svg or FILE.png"),
]


def settle(options):
    cells.settle(options)
    if options.plot:
        if options.plain_only:
            raise BadArgument("--plot shows a gain: leave out --plain-only")
        curves.check(options.plot)


def launch_of(options, layout, groups):
    arguments = {
        "--types": layout,
        "--calls": ",".join(groups),
        "--sizes": ",".join(str(SIZES.index(size)) for size in options.sizes),
    }
    seconds = MORE_TIME * options.seconds * len(groups) * len(options.sizes)
    return Launch(2, words_of(arguments), layout, seconds)


def relaunch(options, chosen):
    """A launch for each layout of these cells, so that the sides alternate often; with all of its sizes."""
    groups = {}
    for cell in chosen:
        groups.setdefault(cell.row, {})[cell.group] = True
    return [launch_of(options, layout, names) for layout, names in groups.items()]


def launches(options):
    return [launch_of(options, layout, [*options.lifetimes, BY_HAND]) for layout in options.layouts]


# ---- pure: from runs to numbers -----------------------------------------------------------------------


def by_hand(outcome):
    """Row and size -> the best time of packing by hand, of all runs: it is the same program on each side."""
    return {
        (cell.row, cell.at): min(times.values())
        for cell, times in cells.best_times(outcome).items()
        if cell.group == BY_HAND
    }


def gains_over_hand(outcome):
    """Cell -> how many times faster than packing by hand the preloaded side is."""
    names, hand = cells.the_two(outcome), by_hand(outcome)
    if not names:
        return {}
    return {
        cell: hand[cell.row, cell.at] / times[names[1]]
        for cell, times in cells.best_times(outcome).items()
        if cell.group != BY_HAND and names[1] in times and (cell.row, cell.at) in hand
    }


# ---- text -----------------------------------------------------------------------------------------------


def microseconds(ns):
    return "-" if ns is None else report.three_figures(ns / 1e3)


def ratio(number):
    return "-" if number is None else f"{number:.2f}"


def header(groups, names):
    words = ["us a message", "bytes", "by hand"]
    for group in groups:
        words += [f"{group}: {names[0]}", names[1], "over plain", "over hand"]
    return words


def table_lines(outcome, found, over_hand):
    """A layout and size a line."""
    times, hand, names = cells.best_times(outcome), by_hand(outcome), cells.the_two(outcome)
    groups = list(cells.grouped(found))
    lines = [header(groups, names)]
    for row, at in dict.fromkeys((cell.row, cell.at) for cell in found):
        line = [row, str(int(at)), microseconds(hand.get((row, at)))]
        for group in groups:
            cell = Cell(group, row, at)
            line += [microseconds(times.get(cell, {}).get(name)) for name in names]
            line += [ratio(found.get(cell)), ratio(over_hand.get(cell))]
        lines.append(line)
    return report.align(lines)


def summary_lines(found, over_hand):
    lines = []
    for group in cells.grouped(found):
        plain = [gain for cell, gain in found.items() if cell.group == group]
        hand = [gain for cell, gain in over_hand.items() if cell.group == group]
        lines += [
            f"{group}: geometric mean {cells.geometric_mean(plain):.3f} over plain; "
            f"{sum(gain < PLAIN_LIMIT for gain in plain)} of {len(plain)} cells under {PLAIN_LIMIT}",
            f"{group}: geometric mean {cells.geometric_mean(hand):.3f} over packing by hand; "
            f"{sum(gain * BY_HAND_LIMIT < 1 for gain in hand)} of {len(hand)} cells more than "
            f"{BY_HAND_LIMIT} times as slow",
        ]
    return lines


def print_view(outcome, results, file):
    found, over_hand = cells.gains(outcome), gains_over_hand(outcome)
    if not found or not over_hand:
        report.print_table(outcome, results, file)
        return
    lines = [*table_lines(outcome, found, over_hand), "", *summary_lines(found, over_hand)]
    for line in [*lines, cells.exchange_line(outcome), *cells.losses_lines(outcome)]:
        print(line, file=file)


# ---- the picture ----------------------------------------------------------------------------------------


def bars_of(options, found, group):
    """Size -> layout and value of each; a layout's sizes in the order of their bytes."""
    rows = {}
    for cell, gain in found.items():
        if cell.group == group:
            rows.setdefault(cell.row, []).append((cell.at, gain))
    names = sorted(options.sizes, key=SIZES.index)
    bars = {name: [] for name in names}
    for row, gains in rows.items():
        for name, (_, gain) in zip(names, sorted(gains)):
            bars[name].append((row, gain))
    return bars


def draw(outcome):
    if not outcome.options.plot:
        return
    panels = []
    for what, found in (("plain", cells.gains(outcome)), ("packing by hand", gains_over_hand(outcome))):
        panels += [
            (f"{group}, over {what}", bars_of(outcome.options, found, group)) for group in cells.grouped(found)
        ]
    axis = curves.Axis("times faster", logarithmic=True, line_at=1)
    curves.draw_panels(outcome, panels, axis, curves.draw_bars)
