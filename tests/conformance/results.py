# SPDX-License-Identifier: BSD-3-Clause
"""Stores results as JSON, compares preloaded with plain, and prints the counts. Runs nothing."""
from __future__ import annotations

import collections
import dataclasses
import json
import pathlib

from execute import Result, SetupError
from verdict import PASS


def save(path: pathlib.Path, header: dict, results: dict[str, Result]) -> None:
    """Replaces the file in one step: a run that is stopped leaves the last whole one."""
    body = header | {"tests": [dataclasses.asdict(result) for result in results.values()]}
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(body, indent=1) + "\n")
    partial.replace(path)


def load(path: pathlib.Path, expected: dict) -> dict[str, Result]:
    """Results of an earlier run, if it ran under the same conditions."""
    body = json.loads(path.read_text())
    for key, value in expected.items():
        if body.get(key) != value:
            raise SetupError(f"{path} has {key} {body.get(key)!r}, this run {value!r}")
    return {test["id"]: Result(**test) for test in body["tests"]}


def counts(results: dict[str, Result]) -> dict[str, int]:
    return dict(collections.Counter(result.outcome for result in results.values()))


def differing(plain: dict[str, Result], preloaded: dict[str, Result]) -> list[str]:
    """Ids of the tests that pass plain and not preloaded."""
    return [
        key
        for key, result in preloaded.items()
        if key in plain and plain[key].outcome == PASS and result.outcome != PASS
    ]


def print_table(title: str, results: dict[str, Result]) -> None:
    """One line per directory: how many ended how, and the time they took in sum."""
    groups: dict[str, list[Result]] = {}
    for result in results.values():
        groups.setdefault(result.directory, []).append(result)
    print(f"\n{title}\n  {'directory':28} {'tests':>5} {'pass':>5} {'other':>5} {'seconds':>8}")
    for directory, group in groups.items():
        passed = sum(result.outcome == PASS for result in group)
        seconds = sum(result.seconds for result in group)
        print(f"  {directory:28} {len(group):5} {passed:5} {len(group) - passed:5} {seconds:8.0f}")


def count_line(name: str, results: dict[str, Result]) -> str:
    found = counts(results)
    order = ["pass", "fail", "timeout", "not-built", "needs-ranks", "needs-memory"]
    parts = [f"{found[outcome]} {outcome}" for outcome in order if outcome in found]
    seconds = sum(result.seconds for result in results.values())
    return f"{name:10} {len(results):5} tests: {', '.join(parts)} ({seconds:.0f} s)"
