#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs/schedules.svg: the cost model's curves up to 100000 ranks, and which path is chosen where.

    plot_schedules.py VECMPI_INFO PICTURE.svg

Asks `vecmpi-info --explain ... --json` for every point, under the settings in force. Writes the SVG
itself and needs no library.
"""

import json
import math
import subprocess
import sys

RANKS = sorted({2**k for k in range(1, 17)} | {3 * 2**k for k in range(16)} | {100000})
SIZES = [2**k for k in range(10, 28)]
CURVES = ((64 << 10, "64 KiB"), (1 << 20, "1 MiB"), (64 << 20, "64 MiB"))
COLLECTIVES = ("allreduce", "reduce", "reduce_scatter", "bcast", "allgather", "alltoall")
COLOURS = {
    "mpi": "#b8b8b8",
    "ring": "#1f77b4",
    "rabenseifner": "#d62728",
    "recursive_doubling": "#2ca02c",
    "recursive_halving": "#ff7f0e",
    "hierarchical": "#9467bd",
    "chain": "#17becf",
    "binomial": "#8c564b",
    "scatter_allgather": "#e377c2",
    "bruck": "#bcbd22",
    "pairwise": "#98df8a",
    "circulant": "#393b79",
}
WIDTH, MARGIN, GAP = 1180, 62, 58


class Panel:
    """A rectangle with logarithmic axes."""

    def __init__(self, left, top, width, height, x_range, y_range):
        self.left, self.top, self.width, self.height = left, top, width, height
        self.x_range = [math.log(v) for v in x_range]
        self.y_range = [math.log(v) for v in y_range]

    def x(self, value):
        low, high = self.x_range
        return self.left + self.width * (math.log(value) - low) / (high - low)

    def y(self, value):
        low, high = self.y_range
        return self.top + self.height * (1 - (math.log(value) - low) / (high - low))


def explain(info, collective, size, ranks):
    """What the library would do with one rank on each node."""
    words = ["--explain", collective, "--bytes", str(size), "--ranks", str(ranks), "--json"]
    run = subprocess.run([info, *words], check=True, capture_output=True, text=True)
    return json.loads(run.stdout)


def text(x, y, words, size=12, anchor="middle", turn=0):
    turned = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"{turned}>'
        f"{words}</text>"
    )


def time_text(us):
    for unit, length in (("s", 1e6), ("ms", 1e3)):
        if us >= length:
            return f"{us / length:g} {unit}"
    return f"{us:g} us"


def size_text(size):
    return f"{size >> 20}M" if size >= 1 << 20 else f"{size >> 10}K"


def frame(panel, title, y_ticks, y_text):
    """The border, the title and the ticks."""
    bottom = panel.top + panel.height
    parts = [
        f'<rect x="{panel.left}" y="{panel.top}" width="{panel.width:.1f}" '
        f'height="{panel.height}" fill="none" stroke="#444"/>',
        text(panel.left + panel.width / 2, panel.top - 10, title, 14),
        text(panel.left + panel.width / 2, bottom + 34, "ranks"),
    ]
    for ranks in (10, 100, 1000, 10000, 100000):
        x = panel.x(ranks)
        parts.append(f'<path d="M{x:.1f} {bottom}v5" stroke="#444"/>')
        parts.append(text(x, bottom + 18, f"10<tspan dy='-5' font-size='9'>{round(math.log10(ranks))}</tspan>"))
    for tick in y_ticks:
        y = panel.y(tick)
        parts.append(f'<path d="M{panel.left} {y:.1f}h-5" stroke="#444"/>')
        parts.append(text(panel.left - 8, y + 4, y_text(tick), 11, "end"))
    return parts


def curve(panel, points, colour, width, dashes=""):
    path = " ".join(f"{panel.x(p):.1f},{panel.y(us):.1f}" for p, us in points)
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"{dashed}/>'
    )


def draw_curves(info, left, top, width, height):
    """Allreduce at three sizes: each algorithm, and the library's own."""
    parts = []
    for number, (size, name) in enumerate(CURVES):
        answers = [explain(info, "allreduce", size, ranks) for ranks in RANKS]
        lines = {"mpi": [(a["ranks"], a["library"]["predicted_us"]) for a in answers]}
        for answer in answers:
            for row in answer["algorithms"]:
                if row["path"] != "hierarchical":  # one rank a node: the same as rabenseifner
                    point = (answer["ranks"], row["predicted_us"])
                    lines.setdefault(row["path"], []).append(point)
        times = [us for points in lines.values() for _, us in points]
        y_range = (min(times) / 1.5, min(max(times), 3000 * min(times)) * 1.5)
        panel = Panel(left + number * (width + GAP), top, width, height, (2, 100000), y_range)
        ticks = [10.0**k for k in range(9) if y_range[0] <= 10.0**k <= y_range[1]]
        parts += frame(panel, f"MPI_Allreduce, {name}", ticks, time_text)
        for path, all_points in lines.items():
            points = [(p, us) for p, us in all_points if us <= y_range[1]]
            is_library = path == "mpi"
            colour = "#444444" if is_library else COLOURS[path]
            parts.append(curve(panel, points, colour, 2, "6 4" if is_library else ""))
    return parts


def draw_map(info, panel, collective):
    """A field for each number of ranks and size, in the colour of the path chosen there."""
    parts = []
    tall = panel.height / len(SIZES)
    for i, ranks in enumerate(RANKS):
        begins = panel.x(ranks)
        ends = panel.x(RANKS[i + 1]) if i + 1 < len(RANKS) else panel.left + panel.width
        for size in SIZES:
            colour = COLOURS[explain(info, collective, size, ranks)["chosen"]]
            parts.append(
                f'<rect x="{begins:.1f}" y="{panel.y(size) - tall:.1f}" '
                f'width="{ends - begins + 0.3:.1f}" height="{tall + 0.3:.1f}" fill="{colour}"/>'
            )
    ticks = [1 << 10, 16 << 10, 256 << 10, 4 << 20, 64 << 20]
    return parts + frame(panel, f"MPI_{collective.capitalize()}", ticks, size_text)


def draw_legend(top):
    parts, left = [], MARGIN
    for path, colour in COLOURS.items():
        words = "mpi (dashed)" if path == "mpi" else path
        parts.append(f'<rect x="{left}" y="{top - 11}" width="14" height="14" fill="{colour}"/>')
        parts.append(text(left + 19, top, words, 12, "start"))
        left += 29 + 6.3 * len(words)
    return parts


def draw(info):
    width = (WIDTH - 2 * MARGIN - 2 * GAP + 40) / 3
    parts = [text(WIDTH / 2, 26, "Predicted times by the cost model, one rank on each node", 17)]
    network = explain(info, "allreduce", 1024, 2)["network"]
    words = (
        f"latency {network['latency_us']:g} us, {network['bytes_per_us']:g} MB/s each way, "
        f"overhead {network['overhead_us']:g} us a message and side: a model, nothing measured"
    )
    parts.append(text(WIDTH / 2, 46, words))
    parts += draw_legend(72)
    parts += draw_curves(info, MARGIN, 112, width, 260)
    parts.append(text(WIDTH / 2, 446, "Chosen path by ranks and bytes", 15))
    wide = (WIDTH - 2 * MARGIN - 2 * GAP + 40) / 3
    for number, collective in enumerate(COLLECTIVES):
        left = MARGIN + number % 3 * (wide + GAP)
        top = 488 + number // 3 * 290
        sizes = (SIZES[0], SIZES[-1] * 2)
        parts += draw_map(info, Panel(left, top, wide, 220, (2, 150000), sizes), collective)
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="1050" '
        f'viewBox="0 0 {WIDTH} 1050" font-family="sans-serif">\n'
        "<!-- Made by tools/info/plot_schedules.py: change that. -->\n"
        f'<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: plot_schedules.py VECMPI_INFO PICTURE.svg")
    picture = draw(sys.argv[1])
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(picture)


if __name__ == "__main__":
    main()
