# SPDX-License-Identifier: BSD-3-Clause
"""The table of applications, and the document of --json, whose head is that of vecmpi-bench. Runs no program."""
from __future__ import annotations

import os
import pathlib
import subprocess
import time

import judgement

COLUMNS = "{:<16} {:<14} {:>8} {:>9} {:>9} {:>6} {:>7} {:>6}  {:<8} {}"
HEAD = ("program", "figure", "setting", "plain s", "vecmpi s", "gain", "+-%", "in MPI", "faster", "check")
WAYS = 3  # of the report, where the preloaded side loses


def share_of(report: dict) -> float | None:
    return report["mpi_ns"] / report["run_ns"] if report.get("run_ns") else None


def longest_calls(report: dict) -> list[str]:
    """Where the time went, as shares of the run."""
    run = report.get("run_ns")
    rows = report.get("calls", [])[:WAYS] if run else []
    return [f"{row['name']} {row['path']} {100 * row['time_ns'] / run:.1f} %" for row in rows]


def row_text(row: dict) -> str:
    check = "passed" if not row["problem"] else f"FAILED: {row['problem']}"
    share = "-" if row["share"] is None else f"{100 * row['share']:.0f} %"
    figures = ["-"] * 4 + [share, "-"]
    if row["winner"]:
        times = [f"{row[side]:.3f}" if row[side] >= 0.1 else f"{row[side]:.2g}" for side in ("plain", "preloaded")]
        figures = [*times, f"{row['gain']:.2f}", f"{100 * row['spread']:.0f}", share, row["winner"]]
    return COLUMNS.format(row["program"], row["figure"], row["setting"], *figures, check)


def problem_of(turns) -> str:
    reported = [turns.reported] if turns.reported else []
    named = [("plain", run) for run in turns.plain] + [("preloaded", run) for run in (*turns.preloaded, *reported)]
    return next((f"{side}: {run.problem}" for side, run in named if run.problem), "")


def rows_of(turns, is_measured: bool) -> list[dict]:
    """A row for each figure of a program; without a comparison where a run failed."""
    told = turns.reported.report if turns.reported else {}
    common = dict(program=turns.program.name, setting=str(turns.setting), problem=problem_of(turns), winner="")
    common |= dict(share=share_of(told), calls=longest_calls(told))
    rows = []
    for figure in turns.program.figures:
        sides = {"plain": turns.plain, "preloaded": turns.preloaded}
        times = {side: [run.times[figure.name] for run in runs] for side, runs in sides.items()}
        row = common | dict(figure=figure.name, times=times)
        if is_measured and not row["problem"]:
            row |= vars(judgement.compare(**times))
        rows.append(row)
    return rows


def losses(rows: list[dict]) -> list[str]:
    """What loses, and where its time goes."""
    return [
        f"slower: {row['program']} {row['figure']} on {row['setting']}: {100 * (1 / row['gain'] - 1):.1f} % "
        f"in all of {len(row['times']['plain'])} rounds; longest in MPI: {', '.join(row['calls']) or 'no report'}"
        for row in rows
        if row["winner"] == "plain"
    ]


def cpu_name() -> str:
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "CPU")


def document(args, load: float) -> dict:
    """Without results yet."""
    version = subprocess.run([args.mpirun, "--version"], capture_output=True, text=True, check=False).stdout.split()
    mpi = f"MPICH Version: {version[version.index('Version:') + 1]}" if "Version:" in version else "MPICH"
    return {
        "date": time.strftime("%Y-%m-%d"),
        "host": {"cpu": cpu_name(), "cpus": len(os.sched_getaffinity(0)), "load": load},
        "options": {name: getattr(args, name) for name in ("rate", "pin", "plain_yield")} | {"repeats": args.rounds},
        "runs": [{"ranks": True, "header": {"mpi": mpi}}],
        "results": [],
    }
