# SPDX-License-Identifier: BSD-3-Clause
"""Decides what plain and preloaded runs of one client have in common. Pure: no processes, no files.

A *check* is one test of the client's suite, or one comparison of its output. Ranks log a check when it begins and when
it ends (rank_log.py); a run that was cut short has checks that began and never ended.
"""
from __future__ import annotations

import collections
import dataclasses
import hashlib
import re

PASS, FAIL, SKIP = "pass", "fail", "skip"
HANG, CRASH, MISSING = "hang", "crash", "missing"


@dataclasses.dataclass(frozen=True)
class Check:
    outcome: str
    value: str = ""  # what must be the same plain and preloaded: a digest, a loss, a program's masked output
    detail: str = ""


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far one start of the ranks came."""

    checks: dict[str, Check]
    stuck: tuple[str, ...]  # began and did not end, on the ranks that came least far
    finished: bool  # every rank said that it was through


def _merge(records: list[dict]) -> Check:
    """One check as all ranks saw it: it passes where some rank passed and none failed."""
    outcomes = [record["outcome"] for record in records]
    details = [record["detail"] for record in records if record["outcome"] == FAIL]
    value = "\n".join(record.get("value", "") for record in records).strip("\n")
    if FAIL in outcomes:
        return Check(FAIL, value, details[0])
    return Check(PASS if PASS in outcomes else SKIP, value)


def merge_ranks(logs: list[list[dict]]) -> Progress:
    """The logs of all ranks: {"begin": name}, {"end": name, "outcome": ...}, {"finished": true}."""
    ended = [{record["end"]: record for record in log if "end" in record} for log in logs]
    everywhere = [name for name in ended[0] if all(name in other for other in ended)]
    checks = {name: _merge([other[name] for other in ended]) for name in everywhere}
    least = min(len(done) for done in ended)
    stuck = {
        record["begin"]: None
        for log, done in zip(logs, ended)
        if len(done) == least
        for record in log
        if "begin" in record and record["begin"] not in done
    }
    return Progress(checks, tuple(stuck), all({"finished": True} in log for log in logs))


def differing(plain: dict[str, Check], loaded: dict[str, Check], same=None) -> dict[str, Check]:
    """What passes plain and not preloaded, or with another value. `same` compares values, else they must be equal."""
    same = same or (lambda one, other: one == other)
    found = {}
    for name, check in plain.items():
        if check.outcome != PASS:
            continue
        other = loaded.get(name, Check(MISSING, detail="did not run"))
        if other.outcome != PASS:
            found[name] = other
        elif not same(check.value, other.value):
            found[name] = Check(FAIL, other.value, f"another result: {first_difference(check.value, other.value)}")
    return found


def first_difference(one: str, other: str) -> str:
    lines, others = one.splitlines(), other.splitlines()
    for number, (line, wanted) in enumerate(zip(others, lines), 1):
        if line != wanted:
            return f"line {number} is '{line.strip()[:80]}', plain '{wanted.strip()[:80]}'"
    return f"{len(others)} lines, plain {len(lines)}"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def mask(text: str, patterns: tuple[str, ...]) -> str:
    """The lines that no pattern matches: times, rates and paths are not the result."""
    drop = re.compile("|".join(patterns)) if patterns else None
    kept = (line.rstrip() for line in text.splitlines() if not (drop and drop.search(line)))
    return "\n".join(line for line in kept if line)


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _close(one: str, other: str, relative: float) -> bool:
    a, b = _number(one), _number(other)
    if a is None or b is None:
        return one == other
    return abs(a - b) <= relative * max(abs(a), abs(b), 1.0)


def numbers_agree(relative: float):
    """Compares outputs word by word, and numbers up to a relative difference (an absolute one below 1).

    For programs that take messages in the order in which they arrive: their last digits vary from one plain run
    to the next.
    """

    def same(one: str, other: str) -> bool:
        words, others = one.split(), other.split()
        return len(words) == len(others) and all(map(lambda a, b: _close(a, b, relative), words, others))

    return same


def counts(checks: dict[str, Check]) -> str:
    found = collections.Counter(check.outcome for check in checks.values())
    order = [PASS, FAIL, HANG, CRASH, SKIP, MISSING]
    return ", ".join(f"{found[outcome]} {outcome}" for outcome in order if found[outcome])


def passed(checks: dict[str, Check]) -> int:
    return sum(check.outcome == PASS for check in checks.values())
