# SPDX-License-Identifier: BSD-3-Clause
"""What one rank says of its checks: a file of JSON lines. Also the pytest plugin (-p rank_log) that keeps it.

A check that takes longer than its limit ends the rank, after the stacks of all threads have been printed: ranks wait
for each other, so one that hangs would take the whole suite's time.
"""
from __future__ import annotations

import faulthandler
import json
import os
import pathlib
import sys


class Log:
    def __init__(self):
        folder = pathlib.Path(os.environ["CLIENTS_LOG"])
        self.rank = int(os.environ.get("PMI_RANK", "0"))
        self.limit_s = float(os.environ["CLIENTS_LIMIT"])
        self.skipped = set((folder / "skip").read_text().splitlines())
        self._file = (folder / f"rank-{self.rank}.jsonl").open("w")

    def _write(self, record: dict) -> None:
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()

    def begin(self, name: str) -> None:
        self._write({"begin": name})
        faulthandler.dump_traceback_later(self.limit_s, exit=True, file=sys.__stderr__)

    def end(self, name: str, outcome: str, value: str = "", detail: str = "") -> None:
        faulthandler.cancel_dump_traceback_later()
        self._write({"end": name, "outcome": outcome, "value": value, "detail": detail})

    def finished(self) -> None:
        self._write({"finished": True})


class Plugin:
    """pytest's reports of set-up, call and tear-down, as one outcome a test."""

    def __init__(self):
        self.log = Log()
        self.outcome, self.detail = "pass", ""

    def pytest_collection_modifyitems(self, items) -> None:
        items[:] = [item for item in items if item.nodeid not in self.log.skipped]

    def pytest_collectreport(self, report) -> None:
        if report.failed:  # or a module that cannot be imported would be as if it had no tests
            self.log.begin(report.nodeid)
            self.log.end(report.nodeid, "fail", detail=str(report.longrepr)[-2000:])

    def pytest_runtest_logstart(self, nodeid) -> None:
        self.outcome, self.detail = "pass", ""
        self.log.begin(nodeid)

    def pytest_runtest_logreport(self, report) -> None:
        if report.failed:
            self.outcome, self.detail = "fail", str(report.longrepr)[-2000:]
        elif report.skipped and self.outcome == "pass":
            self.outcome = "skip"

    def pytest_runtest_logfinish(self, nodeid) -> None:
        self.log.end(nodeid, self.outcome, detail=self.detail)

    def pytest_sessionfinish(self, exitstatus) -> None:
        if int(exitstatus) in (0, 1, 5):  # through, some failed, none left to run
            self.log.finished()


def pytest_configure(config) -> None:
    config.pluginmanager.register(Plugin())
