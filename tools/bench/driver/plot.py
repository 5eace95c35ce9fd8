# SPDX-License-Identifier: BSD-3-Clause
"""The picture of `reduce`: two heat maps of op by type, gain over plain and share of memcpy's rate.

Needs matplotlib, which is asked for only when a picture is.
"""

import math
import os
import statistics

import report
import values
from failure import BadArgument

EXTENSIONS = (".svg", ".png")
EMPTY = "#ececec"  # pairs that do not exist
INK = ("#1a1a1a", "#ffffff")


def check(path):
    """Before anything runs: the format and the library."""
    if os.path.splitext(path)[1].lower() not in EXTENSIONS:
        raise BadArgument(f"--plot: '{path}' does not end in {' or '.join(EXTENSIONS)}")
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise BadArgument(f"--plot: no folder for {path}")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise BadArgument(
            "--plot needs matplotlib for this Python: apt-get install python3-matplotlib"
        ) from None


class Panel:
    """What one heat map shows."""

    def __init__(self, title, value_of, text_of, colours, norm, ticks):
        self.title, self.value_of, self.text_of = title, value_of, text_of
        self.colours, self.norm, self.ticks = colours, norm, ticks


def gain_panel(cells, side):
    """Colours by the logarithm, white at 1; red reaches as far as it must, blue as far as it can."""
    from matplotlib.colors import TwoSlopeNorm

    gains = [cell.gain for cell in cells]
    least, most = min(0.5, *gains), max(2, *gains)
    steps = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)
    return Panel(
        f"times as fast as plain ({side.name}); red: slower",
        lambda cell: math.log(cell.gain),
        lambda cell: report.three_figures(cell.gain),
        "RdBu",
        TwoSlopeNorm(0, math.log(least), math.log(most)),
        {math.log(step): f"{step:g}" for step in steps if least <= step <= most},
    )


def memcpy_panel(cells, rate):
    from matplotlib.colors import Normalize

    most = max(1.0, *(cell.of_memcpy for cell in cells))
    return Panel(
        f"share of memcpy's rate ({rate})",
        lambda cell: cell.of_memcpy,
        lambda cell: f"{cell.of_memcpy:.2f}",
        "YlGnBu",
        Normalize(0, most),
        {tick / 4: f"{tick / 4:g}" for tick in range(math.floor(4 * most) + 1)},
    )


def kind_borders(types, cells):
    """Row numbers where a new kind of type begins."""
    kinds = {cell.type: cell.kind for cell in cells}
    return [i for i in range(1, len(types)) if kinds[types[i]] != kinds[types[i - 1]]]


def ink_on(colour):
    """Dark or light letters, whichever can be read on the colour."""
    red, green, blue = colour[:3]
    return INK[0] if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else INK[1]


def draw_cells(axes, panel, cells, ops, types, letters):
    """The image and the numbers in it."""
    image = [[math.nan] * len(ops) for _ in types]
    for cell in cells:
        image[types.index(cell.type)][ops.index(cell.op)] = panel.value_of(cell)
    shown = axes.imshow(image, cmap=panel.colours, norm=panel.norm, aspect="auto")
    shown.cmap.set_bad(EMPTY)
    for cell in cells:
        value = panel.value_of(cell)
        axes.text(
            ops.index(cell.op),
            types.index(cell.type),
            panel.text_of(cell),
            ha="center",
            va="center",
            fontsize=letters,
            color=ink_on(shown.cmap(panel.norm(value))),
        )
    return shown


def draw_frame(axes, ops, types, letters):
    """Names of ops above, of types at the left, white lines between cells."""
    axes.set_xticks(range(len(ops)), ops, fontsize=letters - 1)
    axes.set_yticks(range(len(types)), types, fontsize=letters)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xticks([i - 0.5 for i in range(1, len(ops))], minor=True)
    axes.set_yticks([i - 0.5 for i in range(1, len(types))], minor=True)
    axes.grid(which="minor", color="white", linewidth=1)
    axes.tick_params(which="minor", length=0)


def draw_panel(axes, panel, cells, ops, types, letters):
    shown = draw_cells(axes, panel, cells, ops, types, letters)
    draw_frame(axes, ops, types, letters)
    axes.set_title(panel.title, fontsize=letters + 3, pad=8)
    for border in kind_borders(types, cells):
        axes.axhline(border - 0.5, color="#505050", linewidth=1)
    bar = axes.figure.colorbar(shown, ax=axes, orientation="horizontal", fraction=0.03, pad=0.02)
    bar.set_ticks(list(panel.ticks), labels=list(panel.ticks.values()))
    bar.ax.minorticks_off()
    bar.ax.tick_params(labelsize=letters)
    bar.outline.set_visible(False)


def host_text(outcome):
    """CPU and MPI version, without what the version string repeats."""
    mpi = " ".join(outcome.runs[0]["header"]["mpi"].split()).replace("Version: ", "")
    where = outcome.runs[0]["header"]["places"][0].partition(":")[0]
    return f"{outcome.host['cpu']} ({where}), {mpi}"


def draw(outcome, cells, axes_names, side, size):
    """`cells`: reduce_report.Cell of one preloaded side and one size, `axes_names` ops and types."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.fonttype"] = "none"  # letters stay letters
    ops, types = axes_names
    letters = 10
    figure, panels = pyplot.subplots(
        1,
        2,
        sharey=True,
        figsize=(max(8, 3.4 + 1.12 * len(ops)), max(3.6, 2.3 + 0.22 * len(types))),
        layout="constrained",
    )
    memcpy = statistics.median(cell.memcpy for cell in cells)
    rate = f"{memcpy:.0f} GB/s" if cells[0].unit == "GB/s" else f"{memcpy:.1f} ns"
    for axes, panel in zip(panels, (gain_panel(cells, side), memcpy_panel(cells, rate))):
        draw_panel(axes, panel, cells, ops, types, letters)
    panels[1].tick_params(axis="y", which="both", labelleft=False)
    mean = statistics.geometric_mean(cell.gain for cell in cells)
    figure.suptitle(
        f"MPI_Reduce_local, {values.size_text(size)}: vecmpi {mean:.2f} times plain MPICH "
        f"(geometric mean of {len(cells)} cells)\n{host_text(outcome)}",
        fontsize=letters + 5,
    )
    figure.savefig(outcome.options.plot, dpi=150)
    pyplot.close(figure)
