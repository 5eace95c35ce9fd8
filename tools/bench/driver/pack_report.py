# SPDX-License-Identifier: BSD-3-Clause
"""The text of `pack` and `messages`: a line for each layout and call with its rates by size, then gains by group.

Of `pack` also the share of the limit that the traffic of cache lines sets.

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


def share_of_limit(entry):
    """The least time for the cache lines of both buffers over the time of the call; None for messages."""
    return entry.get("detail", {}).get("of_limit")


def rates_text(result, sides):
    """GB/s of each side, then gain and share of the limit of the last."""
    rates = [report.three_figures(result["sides"][side.name]["median"]) for side in sides]
    last = result["sides"][sides[-1].name]
    gain, share = last.get("gain"), share_of_limit(last)
    text = " / ".join(rates) + (f"  {report.three_figures(gain)}x" if gain else "")
    return text + (f"  {percent(share)}" if share is not None else "")


def percent(share):
    """Three decimals of a share are too many: a plain struct is at 0.5 %."""
    return f"{100 * share:.0f}%" if share >= 0.0995 else f"{100 * share:.1f}%"


def rate_lines(results, sides):
    sizes = sizes_in(results)
    cells = {(result["name"], int(result["at"])): rates_text(result, sides) for result in results}
    names = list(dict.fromkeys(result["name"] for result in results))
    rows = [[name] + [cells.get((name, size), "") for size in sizes] for name in names]
    header = ["GB/s: " + " / ".join(side.name for side in sides)]
    if sides[-1].preloaded:
        header[0] += "  gain"
    if any(share_of_limit(result["sides"][sides[-1].name]) is not None for result in results):
        header[0] += "  of the limit"
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


def limit_line(results, side):
    """The shares of the limit of one side, of all layouts and calls the median."""
    shares = {}
    for result in results:
        share = share_of_limit(result["sides"][side.name])
        if share is not None:
            shares.setdefault(int(result["at"]), []).append(share)
    texts = [
        f"{values.size_text(size)} {percent(statistics.median(shares[size]))}"
        for size in sorted(shares)
    ]
    return f"share of the limit of cache-line traffic, median, {side.name}: " + ", ".join(texts)


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
        if any(share_of_limit(result["sides"][side.name]) is not None for result in results):
            print(limit_line(results, side), file=file)
    for side in outcome.sides:
        if side.preloaded:
            print(file=file)
            for line in gain_lines(results, side):
                print(line, file=file)
