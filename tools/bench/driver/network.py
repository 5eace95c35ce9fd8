# SPDX-License-Identifier: BSD-3-Clause
"""`network`: the measured constants as a setting of the library. Runs nothing."""

import report
from launch import Launch

LATENCY, BANDWIDTH, OVERHEAD = "latency", "bandwidth one way", "overhead of a message"


def launches(options):
    return [Launch(options.lab or options.ranks, ["--sizes", str(options.size)])]


def time_text(ns):
    """Whole numbers, as the setting takes them: 31us, below 10 us in ns."""
    return f"{ns / 1e3:.0f}us" if ns >= 1e4 else f"{ns:.0f}ns"


def setting(medians):
    """The line to set, from medians by name of figure."""
    return (
        f"VECMPI_NETWORK=latency={time_text(medians[LATENCY])},"
        f"bandwidth={medians[BANDWIDTH]:.0f}Mbit,overhead={time_text(medians[OVERHEAD])}"
    )


def print_view(outcome, results, file):
    report.print_table(outcome, results, file)
    medians = {result["name"]: result["sides"]["plain"]["median"] for result in results}
    if {LATENCY, BANDWIDTH, OVERHEAD} <= medians.keys():
        print(f"\n{setting(medians)}", file=file)
