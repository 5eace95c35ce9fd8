# SPDX-License-Identifier: BSD-3-Clause
"""The text of `pack` and `messages`: a line for each layout and call with its rates by size, then gains by group.

Works on the rows that report.py makes.
"""

import statistics

import report
import values

GROUPS = ("vector", "indexed", "struct", "face", "transpose", "nested")
CALLS = ("pack", "unpack", "message")
BESIDE = {
    "memcpy": "memcpy of as many bytes",
    "contiguous": "messages of as many contiguous bytes",
}
NOT_SLOWER = 0.97


def sizes_in(results):
    return sorted({int(result["at"]) for result in results})


def rates_text(result, sides):
    """GB/s of each side, and the gain of the last."""
    rates = [report.three_figures(result["sides"][side.name]["median"]) for side in sides]
    gain = result["sides"][sides[-1].name].get("gain")
    return " / ".join(rates) + (f"  {report.three_figures(gain)}x" if gain else "")


def rate_lines(results, sides):
    sizes = sizes_in(results)
    cells = {(result["name"], int(result["at"])): rates_text(result, sides) for result in results}
    names = list(dict.fromkeys(result["name"] for result in results))
    rows = [[name] + [cells.get((name, size), "") for size in sizes] for name in names]
    header = ["GB/s: " + " / ".join(side.name for side in sides)]
    yield from report.align([header + [values.size_text(size) for size in sizes]] + rows)


def beside_line(results, side):
    """What was measured beside each layout; of all of them the median."""
    details = {id(result): result["sides"][side.name]["detail"] for result in results}
    what = next(name for name in BESIDE if name in next(iter(details.values())))
    rates = {}
    for result in results:
        rates.setdefault(int(result["at"]), []).append(details[id(result)][what])
    texts = [
        f"{values.size_text(size)} {report.three_figures(statistics.median(rates[size]))}"
        for size in sorted(rates)
    ]
    return f"{BESIDE[what]}, GB/s: " + ", ".join(texts)


def gain_row(title, results, side):
    gains = [result["sides"][side.name]["gain"] for result in results]
    worst = min(results, key=lambda result: result["sides"][side.name]["gain"])
    below = sum(gain < NOT_SLOWER for gain in gains)
    least = f"{report.three_figures(min(gains))}x ({worst['name']}, "
    least += values.size_text(int(worst["at"])) + ")"
    mean = f"{report.three_figures(statistics.geometric_mean(gains))}x"
    return [title, str(len(gains)), mean, least, str(below)]


def gain_lines(results, side):
    rows = [["gain, " + side.name, "cells", "geometric mean", "least", f"below {NOT_SLOWER}"]]
    for group in GROUPS:
        for call in CALLS:
            labels = {"group": group, "call": call}
            chosen = [r for r in results if labels.items() <= r["labels"].items()]
            if chosen:
                rows.append(gain_row(f"{call} {group}", chosen, side))
    rows.append(gain_row("all", results, side))
    yield from report.align(rows)


def print_view(outcome, results, file):
    for line in rate_lines(results, outcome.sides):
        print(line, file=file)
    print(beside_line(results, outcome.sides[0]), file=file)
    for side in outcome.sides:
        if side.preloaded:
            print(file=file)
            for line in gain_lines(results, side):
                print(line, file=file)
