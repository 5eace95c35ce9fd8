# SPDX-License-Identifier: BSD-3-Clause
"""Runs one program to its end. A signal to the tool ends the program, and all that it has started, first."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

import launch
from failure import RunFailed

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
LAST_RECORD = f'{{"bench":"{launch.LAST_RECORD}"'  # what ranks print before MPI_Finalize, which may hang over TCP


class Stopped(BaseException):
    """One of ENDING_SIGNALS."""

    def __init__(self, number):
        super().__init__(number)
        self.number = number


class Signals:
    held, pending = False, 0


def take_signal(number, _):
    for one in ENDING_SIGNALS:
        signal.signal(one, lambda *_: None)  # one is enough: the rest is cleaning up
    if not Signals.held:
        raise Stopped(number)
    Signals.pending = number


def watch_signals():
    for one in ENDING_SIGNALS:
        if one != signal.SIGHUP or signal.getsignal(one) != signal.SIG_IGN:  # nohup
            signal.signal(one, take_signal)


@contextlib.contextmanager
def held_signals():
    """What must not be left half-done: a child that is started and not known yet."""
    Signals.held = True
    try:
        yield
    finally:
        Signals.held = False
    if Signals.pending:
        raise Stopped(Signals.pending)


def wait_for_group(group, seconds):
    """True once no process of the group is left."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def stop(process):
    """mpirun takes its ranks along; a script that started it does not, so the whole group is told next."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(launch.GRACE_S)
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        if wait_for_group(process.pid, launch.GRACE_S):
            return


class Timers:
    """Ends the process when it is late, or hangs behind its last record; says which."""

    def __init__(self, process, limit_s):
        self.process, self.hung, self.timers = process, False, []
        self.start(limit_s, lambda: stop(process))

    def start(self, seconds, action):
        timer = threading.Timer(seconds, action)
        timer.daemon = True
        timer.start()
        self.timers.append(timer)

    def finalize(self):
        self.hung = True
        stop(self.process)

    def look_at(self, line):
        if line.startswith(LAST_RECORD):
            self.start(launch.FINALIZE_GRACE_S, self.finalize)

    def cancel(self):
        for timer in self.timers:
            timer.cancel()


def run(command, limit_s):
    """Lines of standard output and of standard error. RunFailed says what went wrong."""
    process = timers = None
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        try:
            with held_signals():
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    errors="replace",
                    env=launch.clean_environment(),
                    start_new_session=True,
                )
                timers = Timers(process, limit_s)
            lines = []
            for line in process.stdout:
                lines.append(line)
                timers.look_at(line)
            status = process.wait()
        except BaseException:
            if process:
                stop(process)
            raise
        finally:
            if timers:
                timers.cancel()
        errors.seek(0)
        messages = errors.read().splitlines()
    if status != 0 and not timers.hung:
        for message in messages[-10:]:
            print(message, file=sys.stderr)
        raise RunFailed(f"a run ended with status {status} (limit {limit_s} s): {' '.join(command)}")
    return lines, messages
