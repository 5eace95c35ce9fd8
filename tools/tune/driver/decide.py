# SPDX-License-Identifier: BSD-3-Clause
"""From samples to choices. Pure: no file, no process. What is built in stays unless it is clearly beaten."""

import math
import statistics
from dataclasses import dataclass

from failure import RunFailed

LEAST_GAIN = 0.05
LIBRARY_GAIN = 0.11  # of the library over ours on a node: a profile is for all jobs to come


@dataclass(frozen=True)
class Row:
    """One line of the table, and of the profile where `value` is not empty."""

    key: str
    what: str
    built_in: str
    tuned: str
    figures: str
    value: str = ""


def figure(value, least=0.0):
    """A time or a rate that was measured: a number above `least`. JSON may hold anything, NaN too."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not least < value < math.inf:
        raise RunFailed(f"a run printed what is no figure: {str(value)[:40]!r}")
    return float(value)


def spread(numbers):
    """Distance of the quartiles. One number says nothing of it."""
    if len(numbers) < 2:
        return math.inf
    low, _, high = statistics.quantiles(numbers, n=4, method="inclusive")
    return high - low


def gain(default, other):
    """How many times faster the other is, by rounds, and the noise of that."""
    ratios = [before / after for before, after in zip(default, other)]
    return statistics.median(ratios), spread(ratios)


def wins(default, other, least=LEAST_GAIN):
    times, noise = gain(default, other)
    return times - 1 > max(least, noise)


def three_figures(number):
    return f"{number:.3g}" if number < 1000 else f"{number:.0f}"


def range_text(gains):
    low, high = (three_figures(number) for number in (min(gains), max(gains)))
    return f"{low}x" if low == high else f"{low} to {high}x"


def by_key(cells):
    keys = {}
    for cell in cells:
        keys.setdefault(cell["cell"], []).append(cell)
    return keys


def instruction_set(key, cells):
    """The set that beats the built-in one in every cell; of several the one with the largest least gain."""
    used = {cell["built_in"] for cell in cells}
    others = set.intersection(*(set(cell["ns"]) for cell in cells)) - used
    pairs = {
        other: [(cell["ns"][cell["built_in"]], cell["ns"][other]) for cell in cells] for other in sorted(others)
    }
    gains = {other: [gain(*pair)[0] for pair in pairs[other]] for other in pairs}
    winners = [other for other in pairs if all(wins(*pair) for pair in pairs[other])]
    chosen = max(winners, key=lambda other: min(gains[other]), default="")
    figures = ", ".join(f"{other} {range_text(gains[other])}" for other in gains)
    text = " or ".join(sorted(used))
    return Row(key, key, text, chosen or text, figures, chosen)


def holds(word, cell):
    """Is it at least as good as what is built in for this cell?"""
    other = "no" if word == "yes" else "yes"
    if cell["built_in"] == word:
        return not wins(cell["ns"][word], cell["ns"][other])
    return wins(cell["ns"][other], cell["ns"][word])


def verdict(key, cells):
    """yes or no where that holds in every cell, and some cell has the other built in."""
    built_in = {cell["built_in"] for cell in cells}
    chosen = ""
    for word in ("yes", "no"):
        if built_in != {word} and all(holds(word, cell) for cell in cells):
            chosen = word
    text = "by layout" if len(built_in) > 1 else min(built_in)
    gains = [gain(cell["ns"]["no"], cell["ns"]["yes"])[0] for cell in cells]
    return Row(key, key, text, chosen or text, f"used {range_text(gains)}", chosen)


def way(times):
    """The way that beats each other one; None where none does. times: by way, without those that were not tried."""
    best = min(times, key=lambda name: statistics.median(times[name]))
    least = LIBRARY_GAIN if best == "library" else LEAST_GAIN
    is_clear = all(wins(times[other], times[best], least) for other in times if other != best)
    return best if is_clear else None


def constant(built_in, measured):
    """The median, or None where it cannot be told from what is built in."""
    median = statistics.median(measured)
    noise = spread(measured) / median if median else 0
    return median if abs(median / built_in - 1) > max(LEAST_GAIN, noise) else None
