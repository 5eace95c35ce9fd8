# SPDX-License-Identifier: BSD-3-Clause
"""How many elements a rank reduces in a call, for `reductions` with predefined ops.

Only the preloaded library can tell, by a counter of its report. The report sums all ranks over a
whole run, so each figure needs a short run of its own, and what comes out is a mean of the ranks.
"""

import dataclasses
import json
import os
import sys
import tempfile

import launch
from failure import RunFailed

CALLS = 4  # in a run that counts
COUNTER = "elements_reduced"


def counted(path):
    """The counter in a report, None where there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["events"]
    except (OSError, ValueError, KeyError):
        return None
    return events.get(COUNTER, {}).get("count")


def elements_of(outcome, side, figure):
    """Of an average rank in a call, None when the library does not count them."""
    labels, options = figure["labels"], outcome.options
    job = launch.Launch(
        labels["ranks"],
        ["--calls", labels["call"], "--ops", labels["op"], "--types", labels["type"]]
        + ["--sizes", f"{figure['at']:.0f}", "--count-calls", str(CALLS)],
    )
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        reporting = dataclasses.replace(
            side, environment=side.environment | {"VECMPI_REPORT": f"json:{path}"}
        )
        command = launch.command_line(options, reporting, job, outcome.measurement.name)
        records = launch.run_once(command, options.timeout, lambda record: None)
        if not any(record["bench"] == "figure" for record in records):
            raise RunFailed(f"a run that counts elements printed no figures: {' '.join(command)}")
        count = counted(path)
    return None if count is None else count / CALLS / labels["ranks"]


def annotate_side(outcome, side):
    figures = [
        figure
        for run in outcome.runs
        if run["side"] == side.name
        for figure in run["figures"]
        if figure["labels"]["op"] != "user"
    ]
    cells = {(figure["name"], figure["at"]): figure for figure in figures}
    for number, (key, first) in enumerate(cells.items()):
        mean = elements_of(outcome, side, first)
        if mean is None:
            note = f"{side.name}: its report has no counter {COUNTER}"
            print(note if number == 0 else f"{note} for {first['name']}", file=sys.stderr)
            return
        if number == 0:
            print(f"{side.name}: counting elements in {len(cells)} runs", file=sys.stderr)
        for figure in figures:
            if (figure["name"], figure["at"]) == key:
                figure["detail"]["mean"] = mean


def annotate(outcome):
    """Adds `mean` to the details of figures of preloaded sides where it is known."""
    for side in outcome.sides:
        if side.preloaded and not outcome.failed:
            annotate_side(outcome, side)


def text(detail):
    for key, note in (("busiest", ""), ("mean", " (mean)")):
        if key in detail:
            return f"{detail[key]:.0f} = {detail[key] / detail['of']:.2f} n{note}"
    return "-"
