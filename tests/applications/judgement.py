# SPDX-License-Identifier: BSD-3-Clause
"""What the output of a run says: its times, whether its results are right, and who is faster. Pure: runs nothing."""
from __future__ import annotations

import dataclasses
import math
import re
import statistics

UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
MARGIN = 0.02  # less is no difference


@dataclasses.dataclass(frozen=True)
class Figure:
    """A time that a program prints. The first group of the pattern is the number, a second one its unit."""

    name: str
    pattern: str
    is_rate: bool = False  # as GB/s, of which more is better: its inverse is the time

    def seconds(self, text: str) -> float | None:
        """Of several the sum."""
        found = list(re.finditer(self.pattern, text, re.MULTILINE))
        if not found:
            return None
        numbers = [float(match[1]) * UNITS[match[2] if match.re.groups > 1 else "s"] for match in found]
        if self.is_rate:
            return sum(1 / number for number in numbers) if all(numbers) else None
        return sum(numbers)


# ---- checks: (output, output of the first plain run) -> what is wrong, "" where nothing is ---------------------


def contains(*patterns: str):
    def check(text: str, plain: str) -> str:
        missing = [pattern for pattern in patterns if not re.search(pattern, text, re.MULTILINE)]
        return f"it does not print {missing[0]!r}" if missing else ""

    return check


def lacks(pattern: str):
    def check(text: str, plain: str) -> str:
        found = re.search(pattern, text, re.MULTILINE)
        return f"it prints {found[0]!r}" if found else ""

    return check


def at_most(pattern: str, limit: float):
    """Every number that the pattern's groups take."""

    def check(text: str, plain: str) -> str:
        taken = [number for match in re.finditer(pattern, text, re.MULTILINE) for number in match.groups()]
        if not taken:
            return f"it does not print {pattern!r}"
        above = [number for number in taken if not abs(float(number)) <= limit]  # nan is above
        return f"{above[0]} is above {limit:g}" if above else ""

    return check


def as_plain(taken):
    """What `taken` takes out of the output is the same as plain."""

    def check(text: str, plain: str) -> str:
        ours, theirs = taken(text), taken(plain)
        if not theirs:
            return "nothing to compare with plain"
        pairs = zip(ours.splitlines(), theirs.splitlines())
        different = next((f"{our!r}, plain {their!r}" for our, their in pairs if our != their), "its length")
        return "" if ours == theirs else f"not as plain: {different}"

    return check


LOSSES = re.compile(r"^losses of rank (\d+) of (\d+): (.+)$", re.MULTILINE)


FIRST_LOSSES = 2


def losses_as_plain(tolerance: float):
    """Of each step on each rank: to the bit on up to two ranks, which have one order of summation.

    Else the first two to the relative `tolerance`, and the others are numbers: training multiplies what another order
    of sums changes. Plain ResNet-50 on 4 ranks, its learning rate larger by 1e-5: loss 1 changes by 1e-5, 2 by 2e-2.
    """

    def differs(step: int, ranks: int, number: float, plain_number: float) -> bool:
        if ranks <= 2:
            return number != plain_number  # as is nan
        if step >= FIRST_LOSSES:
            return not math.isfinite(number)
        return not abs(number - plain_number) <= tolerance * abs(plain_number)

    def check(text: str, plain: str) -> str:
        ours, theirs = LOSSES.findall(text), LOSSES.findall(plain)
        if not theirs or [row[:2] for row in ours] != [row[:2] for row in theirs]:
            return "no losses, or of other ranks than plain"
        for (rank, ranks, our), (_, _, their) in zip(ours, theirs):
            numbers, wanted = ([float.fromhex(word) for word in words.split()] for words in (our, their))
            if len(numbers) != len(wanted):
                return f"rank {rank} has {len(numbers)} losses, plain {len(wanted)}"
            for step, (number, plain_number) in enumerate(zip(numbers, wanted)):
                if differs(step, int(ranks), number, plain_number):
                    return f"loss of step {step} on rank {rank} is {number!r}, plain {plain_number!r}"
        return ""

    return check


def found(pattern: str):
    def taken(text: str) -> str:
        return "\n".join(match[0] for match in re.finditer(pattern, text, re.MULTILINE))

    return taken


def first_problem(checks, text: str, plain: str) -> str:
    return next(filter(None, (check(text, plain) for check in checks)), "")


# ---- who wins ---------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Comparison:
    plain: float  # medians, seconds
    preloaded: float
    gain: float  # the median of the rounds' plain / preloaded
    spread: float  # half the distance between the rounds' smallest and largest gain
    winner: str  # "vecmpi", "plain", "nobody", "unsteady"


def compare(plain: list[float], preloaded: list[float]) -> Comparison:
    """A difference counts where it is above the margin and all rounds agree who is faster."""
    gains = [a / b for a, b in zip(plain, preloaded)]
    gain = statistics.median(gains)
    if abs(gain - 1) <= MARGIN:
        winner = "nobody"
    elif all(each > 1 for each in gains):
        winner = "vecmpi"
    elif all(each < 1 for each in gains):
        winner = "plain"
    else:
        winner = "unsteady"
    spread = (max(gains) - min(gains)) / 2
    return Comparison(statistics.median(plain), statistics.median(preloaded), gain, spread, winner)
