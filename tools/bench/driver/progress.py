# SPDX-License-Identifier: BSD-3-Clause
"""Progress on standard error, for people who wait. Measures nothing but how long the runs take."""

import sys
import time


class Progress:
    """One line a run; on a terminal it also shows the latest figure."""

    def __init__(self, total):
        self.total, self.done, self.begin = total, 0, time.monotonic()

    def start(self, text):
        self.text, self.run_begin = f"[{self.done + 1}/{self.total}] {text}", time.monotonic()
        self.show("")

    def show(self, detail):
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\033[K{self.text} {detail}")
            sys.stderr.flush()

    def finish(self):
        self.done += 1
        took = time.monotonic() - self.run_begin
        left = (time.monotonic() - self.begin) / self.done * (self.total - self.done)
        end = "\r\033[K" if sys.stderr.isatty() else ""
        note = f", about {left:.0f} s left" if self.done < self.total else ""
        print(f"{end}{self.text}: {took:.1f} s{note}", file=sys.stderr)
