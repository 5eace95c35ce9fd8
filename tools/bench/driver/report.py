# SPDX-License-Identifier: BSD-3-Clause
"""Medians, ratios and spreads of the runs, as an aligned table and as JSON. Runs nothing."""

import json
import statistics
import sys
from dataclasses import asdict

import values
from failure import RunFailed


def skipped(outcome):
    """Names and sizes that some run could not measure or got wrong: there is nothing to compare."""
    return {
        (record["name"], record["at"])
        for run in outcome.runs
        for kind in ("skipped", "wrong")
        for record in run.get(kind, [])
    }


def trim(rows, sides):
    """After a failed run: as many values on all sides as the side with the fewest has."""
    for row in rows:
        least = min(len(row["values"].get(side.name, [])) for side in sides)
        for kind in ("values", "details"):
            row[kind] = {name: numbers[:least] for name, numbers in row[kind].items()}
        if least:
            yield row


def collect(outcome):
    """Rows by name in order of first appearance, each with the values of the runs by side."""
    rows = {}
    for run in outcome.runs:
        for figure in run["figures"]:
            row = rows.setdefault(
                (figure["name"], figure["at"]),
                {
                    "name": figure["name"],
                    "at": figure["at"],
                    "unit": figure["unit"],
                    "better": figure["better"],
                    "labels": figure.get("labels"),
                    "values": {},
                    "details": {},
                },
            )
            row["values"].setdefault(run["side"], []).append(figure["value"])
            if "detail" in figure:
                row["details"].setdefault(run["side"], []).append(figure["detail"])
    unmeasured = skipped(outcome)
    complete = [row for key, row in rows.items() if key not in unmeasured]
    if outcome.failed:
        complete = list(trim(complete, outcome.sides))
    for row in complete:
        if len({len(row["values"].get(side.name, [])) for side in outcome.sides if not side.mpi}) > 1:
            raise RunFailed(f"{row['name']} was not measured alike on all sides")
    order = list(dict.fromkeys(name for name, _ in rows))
    return sorted(complete, key=lambda row: order.index(row["name"]))


def spread_percent(numbers):
    """Half the distance of the extremes, in % of the median."""
    middle = statistics.median(numbers)
    return 50 * (max(numbers) - min(numbers)) / abs(middle) if middle else 0.0


def compare(row, side):
    """A side against plain: `gain` is the ratio of medians, above 1 when the side is better."""
    plain, other = (statistics.median(row["values"][name]) for name in ("plain", side))
    ratio = (plain, other) if row["better"] == "lower" else (other, plain)
    return {"gain": ratio[0] / ratio[1] if ratio[1] > 0 else None, "added": other - plain}


def summarise(row, sides):
    result = {key: row[key] for key in ("name", "at", "unit", "better")}
    if row["labels"]:
        result["labels"] = row["labels"]
    result["sides"] = {}
    for side in sides:
        if side.mpi and side.name not in row["values"]:
            continue  # left out there
        numbers = row["values"][side.name]
        entry = {
            "median": statistics.median(numbers),
            "min": min(numbers),
            "max": max(numbers),
            "spread_percent": round(spread_percent(numbers), 2),
            "values": numbers,
        }
        if side.name in row["details"]:
            details = row["details"][side.name]
            entry["detail"] = {
                key: statistics.median(d[key] for d in details) for key in details[0]
            }
        if side.preloaded:
            entry.update(compare(row, side.name))
        result["sides"][side.name] = entry
    return result


def results_of(outcome):
    return [summarise(row, outcome.sides) for row in collect(outcome)]


def quantity(value, unit, signed=False):
    """Three figures and a unit of fitting size."""
    sign = "+" if signed and value >= 0 else ""
    if unit == "ns":
        for factor, name in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
            if abs(value) >= factor:
                return f"{sign}{three_figures(value / factor)} {name}"
    digits = f"{value:.0f}" if unit == "" else three_figures(value)
    return f"{sign}{digits} {unit}".rstrip()


def three_figures(value):
    size = abs(value)
    return f"{value:.0f}" if size >= 99.95 else f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"


def at_text(at, kind):
    if at == 0:
        return "-"
    return values.size_text(int(at)) if kind == "bytes" else f"{at:g}"


def spans_text(detail):
    """comm, comp and both of an overlap figure."""
    return " ".join(quantity(value, "ns") for value in detail.values())


def table_header(outcome):
    header = ["", outcome.measurement.at]
    for side in outcome.sides:
        header += [side.name, "+-%"]
        header += list(outcome.measurement.compare) if side.preloaded else []
    if outcome.measurement.detail:
        title, _ = outcome.measurement.detail
        header += [f"{side.name}: {title}" for side in outcome.sides]
    return header


def spread_text(entry):
    return f"{entry['spread_percent']:.0f}" if len(entry["values"]) > 1 else "-"


def table_row(outcome, result):
    cells = [result["name"], at_text(result["at"], outcome.measurement.at)]
    for side in outcome.sides:
        entry = result["sides"][side.name]
        cells += [quantity(entry["median"], result["unit"]), spread_text(entry)]
        if not side.preloaded:
            continue
        for kind in outcome.measurement.compare:
            if kind == "added":
                cells.append(quantity(entry["added"], result["unit"], signed=True))
            else:
                cells.append(f"{entry['gain']:.2f}x" if entry["gain"] is not None else "-")
    if outcome.measurement.detail:
        _, text_of = outcome.measurement.detail
        cells += [text_of(result["sides"][side.name]["detail"]) for side in outcome.sides]
    return cells


def align(lines):
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        cells = [
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths))
        ]
        yield "  ".join(cells).rstrip()


def places_text(places):
    """0 1 on vm:0-1: ranks of the same place together."""
    ranks_at = {}
    for rank, place in enumerate(places):
        ranks_at.setdefault(place, []).append(str(rank))
    return ", ".join(f"{' '.join(ranks)} on {place}" for place, ranks in ranks_at.items())


def describe_places(outcome):
    """Which rank ran where, by number of ranks; the threads of rank 0, by side."""
    lines = []
    for ranks in dict.fromkeys(run["ranks"] for run in outcome.runs if run["ranks"]):
        run = next(run for run in outcome.runs if run["ranks"] == ranks)
        lines.append(
            f"ranks on host:CPUs (of the main thread): {places_text(run['header']['places'])}"
        )
    for side in outcome.sides:
        run = next(run for run in outcome.runs if run["side"] == side.name and run["ranks"])
        lines.append(f"threads of rank 0, {side.name} (name:CPUs): {', '.join(run['threads'])}")
    return lines


def print_table(outcome, results, file):
    rows = [table_row(outcome, result) for result in results]
    for line in align([table_header(outcome)] + rows):
        print(line, file=file)
    if outcome.measurement.footer:
        print(f"\n{outcome.measurement.footer}", file=file)


def print_text(outcome, file):
    measurement = outcome.measurement
    notes = measurement.notes(outcome.options) if measurement.notes else []
    for line in describe_run(outcome) + notes + describe_places(outcome):
        print(line, file=file)
    print(file=file)
    results = results_of(outcome)
    if results:
        (measurement.view or print_table)(outcome, results, file)
    else:
        print("no figures", file=file)
    print_hung(outcome, file)


def print_hung(outcome, file):
    """How many runs of each side were ended in MPI_Finalize."""
    counts = {side.name: 0 for side in outcome.sides}
    for run in outcome.runs:
        counts[run["side"]] += run.get("hung", False)
    if any(counts.values()):
        text = ", ".join(f"{count} {name}" for name, count in counts.items())
        print(
            f"\nhung in MPI_Finalize after their figures and were ended: {text} "
            f"(of {len(outcome.runs)} runs; MPICH 4.0 over TCP does so by itself)",
            file=file,
        )


def describe_run(outcome):
    host, options = outcome.host, outcome.options
    overheads = [run["header"]["clock_overhead_ns"] for run in outcome.runs if run["ranks"]]
    libraries = dict.fromkeys(run["header"]["mpi"] for run in outcome.runs if run["ranks"])
    lab = f", {options.lab} virtual hosts at {options.rate}" if options.lab else ""
    return [
        f"{outcome.measurement.name}: {outcome.measurement.title}{lab}",
        f"{host['cpu']}, {host['cpus']} CPUs, load before {host['load']}; "
        + "; ".join(libraries),
        f"{outcome.measurement.statistic} of {options.repeats} runs a side; pin {options.pin}; "
        f"reading the clock takes {statistics.median(overheads):.0f} ns",
    ]


def document_of(outcome):
    """Everything: how it was measured, the medians, and each run as it came."""
    options = dict(vars(outcome.options))
    programs = options.pop("programs")
    options.update(environment=dict(options["environment"]), library=programs.library)
    return {
        "tool": "vecmpi-bench",
        "measurement": outcome.measurement.name,
        "host": outcome.host,
        "options": options,
        "sides": [asdict(side) for side in outcome.sides],
        "results": results_of(outcome),
        "runs": outcome.runs,
    }


def write_json(outcome, path):
    text = json.dumps(document_of(outcome), indent=1) + "\n"
    if path == "-":
        sys.stdout.write(text)
        return
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
