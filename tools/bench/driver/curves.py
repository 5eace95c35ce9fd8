# SPDX-License-Identifier: BSD-3-Clause
"""A picture of lines over bytes, or bars: a panel for each figure with a line for each side, or what the caller names.

Needs matplotlib, which is asked for only when a picture is.
"""

import math
from dataclasses import dataclass

import plot
import report
import values

COLOURS = 10  # that differ; then lines are dashed
COLUMNS = 4
FEW_LABELS = 4
BARS_WIDTH = 0.8  # of all bars of a name, where 1 is the next name


@dataclass(frozen=True)
class Axis:
    """What the lines show."""

    title: str
    logarithmic: bool
    line_at: float = None  # a thin line, where there is something to reach


def check(path):
    plot.check(path)


def draw_panel(axes, name, lines, axis, labels):
    """`lines`: label -> points of bytes and value; `labels`: those of all panels."""
    for label, points in lines.items():
        number = labels.index(label)
        style = ("-", "--", ":")[number // COLOURS % 3]
        axes.plot(*zip(*points), style, color=f"C{number % COLOURS}", marker="o", markersize=3, label=label)
    sizes = sorted({size for points in lines.values() for size, _ in points})
    axes.set_title(name)
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [values.size_text(int(size)) for size in sizes], rotation=90)
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    if axis.logarithmic:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    if axis.line_at is not None:
        axes.axhline(axis.line_at, color="black", linewidth=0.8)
    if axis.logarithmic and axis.line_at is not None:
        show_ratios(axes.yaxis)


def draw_bars(axes, name, bars, axis, labels):
    """`bars`: label -> names and values, from the axis' line to the value; in the order in which the names appear."""
    names = list(dict.fromkeys(name for points in bars.values() for name, _ in points))
    width = BARS_WIDTH / len(labels)
    for label, points in bars.items():
        number = labels.index(label)
        places = [names.index(name) + (number - (len(labels) - 1) / 2) * width for name, _ in points]
        heights = [value - axis.line_at for _, value in points]
        axes.bar(places, heights, width, bottom=axis.line_at, color=f"C{number}", label=label)
    axes.set_title(name)
    axes.set_xticks(range(len(names)), names, rotation=90)
    axes.set_yscale("log")
    axes.grid(axis="y", alpha=0.3)
    axes.axhline(axis.line_at, color="black", linewidth=0.8)
    show_ratios(axes.yaxis)


def show_ratios(axis):
    """0.5, 1, 2, 5, 10 in place of powers of ten."""
    from matplotlib import ticker

    axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_locator(ticker.NullLocator())


def show_legend(panels, columns):
    """Few labels in the first panel, many right of the first row; each once."""
    handles = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    labels = (list(handles.values()), list(handles))
    if len(handles) <= FEW_LABELS:
        panels[0].legend(*labels)
    else:
        panels[columns - 1].legend(*labels, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))


def draw_panels(outcome, panels, axis, draw_one=draw_panel):
    """`panels`: titles with the lines of each, or the bars."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.fonttype"] = "none"  # letters stay letters
    labels = list(dict.fromkeys(label for _, lines in panels for label in lines))
    columns = min(len(panels), COLUMNS)
    rows = math.ceil(len(panels) / columns)
    figure, drawn = pyplot.subplots(
        rows,
        columns,
        sharey=axis.line_at is not None,
        squeeze=False,
        figsize=(1 + 4.5 * columns, 4.5 * rows),
        layout="constrained",
    )
    for axes in drawn.flat[len(panels) :]:
        axes.set_visible(False)
    for axes, (name, lines) in zip(drawn.flat, panels):
        draw_one(axes, name, lines, axis, labels)
    for row in drawn:
        row[0].set_ylabel(axis.title)
    show_legend(list(drawn.flat[: len(panels)]), columns)
    figure.suptitle(plot.host_text(outcome), fontsize=10)
    figure.savefig(outcome.options.plot, dpi=150)
    pyplot.close(figure)


def draw(outcome, value_of, axis):
    """`value_of`: what to show of a side's entry in a result."""
    panels = {}
    for result in report.results_of(outcome):
        lines = panels.setdefault(result["name"], {})
        for side in outcome.sides:
            point = (result["at"], value_of(result["sides"][side.name]))
            lines.setdefault(side.name, []).append(point)
    draw_panels(outcome, list(panels.items()), axis)
