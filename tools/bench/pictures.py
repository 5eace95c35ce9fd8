#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The pictures of docs/results.md and docs/applications.md: runs vecmpi-bench, and draws what it measured.

    pictures.py VECMPI_BENCH FOLDER [NAME...]      writes FOLDER/NAME.svg, all of them without a name
    pictures.py --from RESULTS FOLDER [NAME...]    draws RESULTS/NAME.json again, and measures nothing

--keep RESULTS writes the measurements there; --png draws NAME.png as well. overlap needs root, for virtual hosts. Needs
matplotlib (apt-get install python3-matplotlib).
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

COLOURS = {"plain": "#8a8a8a", "Open MPI": "#e08214"}
VECMPI = "#2166ac"
GROUPS = {
    "vector": "#1b9e77",
    "indexed": "#d95f02",
    "struct": "#7570b3",
    "face": "#e7298a",
    "transpose": "#66a61e",
    "nested": "#a6761d",
}
REPEATS = 3
NEW_LINE = "\n"  # no backslash within an f-string before Python 3.12


@dataclass(frozen=True)
class Picture:
    name: str
    arguments: tuple  # of vecmpi-bench; none: scripts/applications.sh measures it, and it is drawn where it is named
    title: str
    draw: object  # (pyplot, document) -> figure


def colour_of(side):
    return COLOURS.get(side, VECMPI)


def size_text(size):
    for unit, letter in ((1 << 20, "M"), (1 << 10, "K")):
        if size >= unit:
            return f"{size / unit:g}{letter}"
    return f"{size:g}"


def time_text(ns):
    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if ns >= factor:
            return f"{ns / factor:.3g} {unit}"
    return f"{ns:.3g} ns"


def sides_of(document):
    return [side["name"] for side in document["sides"]]


def show_times(axes):
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda ns, _: time_text(ns))


def errors_of(entries):
    """Down to the fastest run and up to the slowest."""
    return [
        [entry["median"] - entry["min"] for entry in entries],
        [entry["max"] - entry["median"] for entry in entries],
    ]


# ---- kinds of pictures ------------------------------------------------------------------------------------


def draw_bars(axes, labels, document, rows, text_of):
    """A group of bars for each row, a bar for each side; the lines reach from the fastest run to the slowest."""
    sides = sides_of(document)
    width = 0.8 / len(sides)
    for number, side in enumerate(sides):
        entries = [row["sides"][side] for row in rows]
        places = [i + (number - (len(sides) - 1) / 2) * width for i in range(len(rows))]
        medians = [entry["median"] for entry in entries]
        axes.bar(places, medians, width, label=side, color=colour_of(side), yerr=errors_of(entries), ecolor="#303030")
        for place, entry in zip(places, entries):
            axes.text(place, entry["max"], text_of(entry["median"]), ha="center", va="bottom", fontsize=8)
    axes.set_xticks(range(len(rows)), labels)


def bars_of_times(pyplot, document):
    figure, axes = pyplot.subplots(figsize=(9, 4.6), layout="constrained")
    rows = document["results"]
    labels = [f"{row['name'].replace(' ', NEW_LINE, 1)}{NEW_LINE}{row['at']:g} ranks" for row in rows]
    draw_bars(axes, labels, document, rows, time_text)
    show_times(axes)
    axes.set_ylabel("mean time of a call")
    axes.margins(y=0.25)
    axes.legend(loc="upper left", ncols=2)
    return figure


def bars_of_shares(pyplot, document):
    names = list(dict.fromkeys(row["name"] for row in document["results"]))
    figure, panels = pyplot.subplots(
        1, len(names), sharey=True, squeeze=False, figsize=(1 + 3.2 * len(names), 3.8), layout="constrained"
    )
    for axes, name in zip(panels[0], names):
        rows = [row for row in document["results"] if row["name"] == name]
        draw_bars(axes, [size_text(row["at"]) for row in rows], document, rows, lambda share: f"{share:.0f}")
        axes.set_title(name)
        axes.set_xlabel("bytes")
    panels[0][0].set_ylabel("hidden behind computation, %")
    panels[0][0].set_ylim(0, 112)
    panels[0][0].legend()
    return figure


def lines_over_bytes(pyplot, document):
    """A panel for each figure that was taken at several sizes; a figure of one size is a level line in all."""
    results = document["results"]
    names = list(dict.fromkeys(row["name"] for row in results))
    rows_of = {name: [row for row in results if row["name"] == name] for name in names}
    panels_of = [name for name in names if len(rows_of[name]) > 1 and name != "memcpy"]
    figure, panels = pyplot.subplots(
        1, len(panels_of), sharey=True, squeeze=False, figsize=(3.5 + 3 * len(panels_of), 4.5), layout="constrained"
    )
    for axes, name in zip(panels[0], panels_of):
        for side in sides_of(document):
            points = [(row["at"], row["sides"][side]["median"]) for row in rows_of[name]]
            axes.plot(*zip(*points), marker="o", markersize=3, label=side, color=colour_of(side))
        for beside, style in (("memcpy", ":"), ("exchange of two lines", "--")):
            rows = rows_of.get(beside, [])
            points = [(row["at"], row["sides"]["plain"]["median"]) for row in rows]
            if len(points) == 1:
                axes.axhline(points[0][1], linestyle=style, color="#303030", linewidth=1, label=beside)
            elif points:
                axes.plot(*zip(*points), linestyle=style, color="#303030", linewidth=1, label=beside)
        sizes = [row["at"] for row in rows_of[name]]
        axes.set_title(name)
        axes.set_xscale("log", base=2)
        show_times(axes)
        axes.set_xticks(sizes, [size_text(size) for size in sizes], rotation=90)
        axes.set_xlabel("bytes")
        axes.grid(alpha=0.3)
    panels[0][0].set_ylabel("time of a call")
    panels[0][0].legend()
    return figure


def draw_gains(axes, rows, side):
    """A dot for each layout, sorted by gain."""
    for group, colour in GROUPS.items():
        dots = [(i, row["sides"][side]["gain"]) for i, row in enumerate(rows) if row["labels"]["group"] == group]
        axes.scatter(*zip(*dots), s=14, color=colour, label=group)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_yscale("log")
    axes.set_yticks([0.5, 1, 2, 5, 10, 20, 50, 100], ["0.5", "1", "2", "5", "10", "20", "50", "100"])
    axes.minorticks_off()
    axes.set_xlabel(f"{len(rows)} layouts, by gain")
    axes.grid(alpha=0.3, axis="y")


def draw_shares(axes, rows, side):
    """The share of the limit of cache-line traffic of both sides, in the order of the gains above."""
    for name in ("plain", side):
        shares = [row["sides"][name]["detail"]["of_limit"] for row in rows]
        axes.scatter(range(len(rows)), shares, s=14, color=colour_of(name), label=name)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"{len(rows)} layouts, by gain")
    axes.grid(alpha=0.3, axis="y")


def gains_by_layout(pyplot, document):
    """Pack and unpack apart; what was measured before there were shares of a limit has no second row."""
    side = next(side["name"] for side in document["sides"] if side["preloaded"])
    has_shares = all("of_limit" in row["sides"][side]["detail"] for row in document["results"])
    calls, lines = ("pack", "unpack"), 2 if has_shares else 1
    figure, panels = pyplot.subplots(
        lines, len(calls), sharey="row", squeeze=False, figsize=(10, 4.2 * lines), layout="constrained"
    )
    for i, call in enumerate(calls):
        rows = [row for row in document["results"] if row["labels"]["call"] == call]
        rows.sort(key=lambda row: row["sides"][side]["gain"])
        draw_gains(panels[0][i], rows, side)
        panels[0][i].set_title(f"MPI_{call.capitalize()}, {size_text(rows[0]['at'])} packed")
        if has_shares:
            draw_shares(panels[1][i], rows, side)
    panels[0][0].set_ylabel("times as fast as plain")
    panels[0][0].legend()
    if has_shares:
        panels[1][0].set_ylabel("share of the limit of cache-line traffic")
        panels[1][0].legend()
    return figure


def gains_of_programs(pyplot, document):
    """A bar for each time of a real program, a panel for each setting; document of scripts/applications.sh."""
    rows = [row for row in document["results"] if row["winner"]]
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    names = list(dict.fromkeys((row["program"], row["figure"]) for row in rows))
    figure, panels = pyplot.subplots(
        1, len(settings), sharey=True, squeeze=False, figsize=(3 + 2 * len(settings), 1.5 + 0.28 * len(names)),
        layout="constrained",
    )  # fmt: skip
    for axes, setting in zip(panels[0], settings):
        found = {(row["program"], row["figure"]): row for row in rows if row["setting"] == setting}
        for place, name in enumerate(names):
            if name in found:
                row = found[name]
                colour = {"vecmpi": VECMPI, "plain": "#b2182b"}.get(row["winner"], COLOURS["plain"])
                axes.barh(place, row["gain"] - 1, left=1, color=colour, xerr=row["spread"], ecolor="#303030")
                axes.text(max(1, row["gain"] + row["spread"]), place, f" {row['gain']:.2f}", va="center", fontsize=7)
        axes.axvline(1, color="black", linewidth=0.8)
        axes.set_xscale("log")
        axes.set_xticks([0.5, 1, 2, 5, 10, 50], ["0.5", "1", "2", "5", "10", "50"])
        axes.minorticks_off()
        axes.set_xlim(0.7, max(2, 3 * max(row["gain"] + row["spread"] for row in rows)))
        axes.set_title(setting, fontsize=9)
        axes.grid(alpha=0.3, axis="x")
    panels[0][0].set_yticks(range(len(names)), [" ".join(name) for name in names], fontsize=8)
    panels[0][0].invert_yaxis()
    figure.supxlabel("times as fast as plain", fontsize=9)
    return figure


PICTURES = (
    Picture("oversub", ("oversub", "--ranks", "4,8"), "More ranks than cores", bars_of_times),
    Picture("intranode", ("intranode", "--sizes", "8-16M"), "One node, 2 ranks", lines_over_bytes),
    Picture("pack", ("pack", "--sizes", "32K"), "Derived datatypes", gains_by_layout),
    Picture(
        "overlap",
        ("overlap", "--lab", "2", "--ops", "p2p,iallreduce,ibcast"),
        "Overlap, 2 virtual hosts at 1 Gbit/s",
        bars_of_shares,
    ),
    Picture("programs", (), "Real programs", gains_of_programs),
    Picture("post", ("post", "--sizes", "8-4M"), "A nonblocking call to oneself, by itself", lines_over_bytes),
)


# ---- measuring and drawing --------------------------------------------------------------------------------


def measure(bench, picture, path):
    command = [bench, *picture.arguments, "--repeats", str(REPEATS), "--json", str(path)]
    print(" ".join(command), file=sys.stderr)
    subprocess.run(command, check=True)


def where_and_how(document):
    run = next(run for run in document["runs"] if run["ranks"])
    mpi = " ".join(run["header"]["mpi"].split()).replace("Version: ", "")
    host = document["host"]
    how = f"medians of {document['options']['repeats']} runs a side, load before {host['load']}"
    date = f", {document['date']}" if "date" in document else ""
    return f"{host['cpu']}, {host['cpus']} CPUs, {mpi}{date}; {how}"


def draw(picture, document, folder, endings):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "vecmpi"})
    figure = picture.draw(pyplot, document)
    figure.suptitle(f"{picture.title}\n{where_and_how(document)}", fontsize=9)
    for ending in endings:
        metadata = {"Date": None} if ending == "svg" else None
        figure.savefig(folder / f"{picture.name}.{ending}", dpi=110, metadata=metadata)
    pyplot.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="results", type=Path, help="draw what was measured before")
    parser.add_argument("--keep", type=Path, help="write the measurements there")
    parser.add_argument("--png", action="store_true", help="draw NAME.png as well")
    parser.add_argument("words", nargs="+", help="VECMPI_BENCH (not with --from), FOLDER, NAME...")
    options = parser.parse_args()
    bench = None if options.results else options.words.pop(0)
    if not options.words:
        parser.error("which folder are the pictures for?")
    folder, *names = options.words
    unknown = set(names) - {picture.name for picture in PICTURES}
    if unknown:
        parser.error(f"no picture is called {', '.join(sorted(unknown))}")
    if bench and "programs" in names:
        parser.error("programs is measured by scripts/applications.sh --json; draw it with --from")
    Path(folder).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        results = options.results or options.keep or Path(temporary)
        results.mkdir(parents=True, exist_ok=True)
        for picture in PICTURES:
            if picture.name not in names and (names or not picture.arguments):
                continue
            path = results / f"{picture.name}.json"
            if bench:
                measure(bench, picture, path)
            document = json.loads(path.read_text(encoding="utf-8"))
            draw(picture, document, Path(folder), ("svg", "png") if options.png else ("svg",))


if __name__ == "__main__":
    main()
