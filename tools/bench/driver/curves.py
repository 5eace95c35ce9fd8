# SPDX-License-Identifier: BSD-3-Clause
"""A picture of results over bytes: a panel for each figure, a line for each side.

Needs matplotlib, which is asked for only when a picture is.
"""

import plot
import report
import values


def check(path):
    plot.check(path)


def draw_side(axes, rows, side, value_of):
    points = [(row["at"], value_of(row["sides"][side.name])) for row in rows]
    axes.plot(*zip(*points), marker="o", markersize=3, label=side.name)


def draw_panel(axes, name, rows, sides, value_of):
    sizes = [row["at"] for row in rows]
    for side in sides:
        draw_side(axes, rows, side, value_of)
    axes.set_title(name)
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [values.size_text(int(size)) for size in sizes], rotation=90)
    axes.minorticks_off()
    axes.grid(alpha=0.3)


def draw(outcome, title, value_of, logarithmic):
    """`value_of`: what to show of a side's entry in a result."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.fonttype"] = "none"  # letters stay letters
    results = report.results_of(outcome)
    names = list(dict.fromkeys(result["name"] for result in results))
    figure, panels = pyplot.subplots(
        1,
        len(names),
        sharey=not logarithmic,
        squeeze=False,
        figsize=(1 + 4.5 * len(names), 4.5),
        layout="constrained",
    )
    for axes, name in zip(panels[0], names):
        rows = [result for result in results if result["name"] == name]
        draw_panel(axes, name, rows, outcome.sides, value_of)
        if logarithmic:
            axes.set_yscale("log")
        else:
            axes.axhline(1, color="black", linewidth=0.8)
            axes.set_ylim(bottom=0)
    panels[0][0].set_ylabel(title)
    panels[0][0].legend()
    figure.suptitle(plot.host_text(outcome), fontsize=10)
    figure.savefig(outcome.options.plot, dpi=150)
    pyplot.close(figure)
