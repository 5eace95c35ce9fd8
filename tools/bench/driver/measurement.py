# SPDX-License-Identifier: BSD-3-Clause
"""What a measurement is, and an option of one. The table of them is elsewhere."""

from dataclasses import dataclass, field

import values


@dataclass(frozen=True)
class Option:
    """An option of one measurement."""

    flag: str
    help: str
    type: object = None
    default: object = None
    quick: object = None  # the default with --quick, where it differs

    def name(self):
        return self.flag.removeprefix("--").replace("-", "_")


@dataclass(frozen=True)
class Measurement:
    name: str
    summary: str
    title: str  # of the table: what the figures are
    at: str  # what a figure is taken at: bytes, threads or ranks
    launches: object  # options -> list of Launch
    offload: tuple  # VECMPI_OFFLOAD of the preloaded sides
    compare: tuple  # gain (times better) and added (difference)
    pin: str
    seconds: tuple  # budget of one figure: usual, quick
    repeats: int = 5
    options: list = field(default_factory=list)
    settle: object = None  # options -> None: checks and fills in what only this measurement has
    notes: object = None  # options -> lines for the head of the text
    view: object = None  # (outcome, results, file): the text in place of the usual table
    detail: tuple = ()  # title of a column for each side, its text from the detail of a figure
    footer: str = ""  # a line below the table
    after: object = None  # outcome -> None: once all runs are done
    draw: object = None  # outcome -> None: once all is printed and written
    program: str = "vecmpi-bench-ranks"  # what is measured, and what is preloaded on the other side
    library: str = "libvecmpi.so"
    statistic: str = "median"  # of the runs, that the text shows
    plan: object = None  # outcome -> a line for standard error, before the first run
    relaunch: object = None  # options, cells.Cell list -> list of Launch that measures them alone
    watches_exchange: bool = False  # a run in which cache lines went slowly between the CPUs is repeated


def sizes_option(default, quick=None):
    return Option(
        "--sizes",
        f"a list (8,64K) or a range in steps of four (default {default})",
        values.sizes,
        default,
        quick,
    )


RANKS_ON_NODE = Option("--ranks", "number of ranks on this node (default 2)", values.whole(2, 64), 2)

LAB_OPTIONS = [
    Option(
        "--lab",
        "run over this many virtual hosts, one rank on each; needs root",
        values.whole(2, 64),
    ),
    Option("--rate", "link rate of the virtual hosts (default 1gbit)", values.rate, "1gbit"),
    Option("--lab-script", "script that makes the virtual hosts (default: lab.sh beside the tool)"),
]
