# SPDX-License-Identifier: BSD-3-Clause
"""Decides from a program's output and exit status whether a test passed, by the rules of MPICH's runtests.

Pure functions with a table of cases in selftest.py: no processes, no files.
"""
from __future__ import annotations

import re

NO_ERRORS = re.compile(r"^\s*No [Ee]rrors\s*$")
HARMLESS = re.compile(r"^\s*Test Passed\s*$|FORTRAN STOP")

PASS, FAIL, TIMEOUT = "pass", "fail", "timeout"


def _says_no_errors(output: str) -> tuple[bool, str]:
    lines = output.splitlines()
    unexpected = [line for line in lines if not NO_ERRORS.match(line) and not HARMLESS.search(line)]
    if unexpected:
        return False, f"unexpected output: {unexpected[0][:160]}"
    if not any(NO_ERRORS.match(line) for line in lines):
        return False, "no 'No Errors'"
    return True, ""


def judge(result_test: str, output: str, status: int, timed_out: bool) -> tuple[str, str]:
    """Outcome and reason. `result_test` is the entry's resultTest=, empty for the ordinary rule.

    Tests that must end with an error may be ended by the time limit too: one of them (init/timeout) has
    nothing else to show. Whether that also holds preloaded follows from the plain run: see same_end().
    """
    clean, reason = _says_no_errors(output)
    if result_test in ("TestStatus", "TestErrFatal"):
        return (PASS, "") if status != 0 else (FAIL, "exit status 0")
    if result_test == "TestStatusNoErrors":
        return (PASS, "") if clean and status != 0 else (FAIL, reason or "exit status 0")
    if timed_out:
        return TIMEOUT, "time limit"
    if not clean:
        return FAIL, reason
    return (PASS, "") if status == 0 else (FAIL, f"exit status {status}")


def same_end(outcome: str, timed_out: bool, plain_timed_out: bool) -> str:
    """A preloaded pass counts only if it did not need the time limit where the plain run did not."""
    return TIMEOUT if outcome == PASS and timed_out and not plain_timed_out else outcome
