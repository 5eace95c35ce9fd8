# SPDX-License-Identifier: BSD-3-Clause
"""The profile as a file: its lines, and writing it so that nothing is left half-written. Decides nothing."""

import contextlib
import os
import stat
import sys
import tempfile
import time

from failure import BadArgument, RunFailed

VERSION = "1"
HEAD = ("version", "cpu", "isa", "mpi")
OF_PACK = ("pack.", "unpack.", "move.")


def read_rows(path):
    """Keys and values, in the order of the file. Only of a file that the library would read."""
    rows = {}
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            key, equals, value = line.strip().partition("=")
            if equals and not key.startswith("#"):
                rows[key.strip()] = value.strip()
    return rows


def printable(text):
    """Of a profile, fit for one line of a message."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:80])


def is_replaced(key, prefix):
    return key.startswith(OF_PACK if prefix == "pack." else prefix)


def profile(host, mpi, rows):
    head = {"version": VERSION, "cpu": host["cpu"], "isa": host["isa"]} | ({"mpi": mpi} if mpi else {})
    day = time.strftime("%Y-%m-%d")
    lines = [f"# A profile of vecmpi, made by vecmpi-tune on {day}; tuning.md says what the lines mean."]
    lines += [f"{key} = {value}" for key, value in head.items()]
    lines += [f"{key} = {rows[key]}" for key in sorted(rows)]
    return "\n".join(lines) + "\n"


class Output:
    """Where the profile goes. What is in the way is found out before anything is measured."""

    def __init__(self, path, makes_folder):
        self.path = path
        if path == "-":
            return
        self.file = os.path.realpath(path)  # a link stays one: what it leads to is written
        self.folder = os.path.dirname(self.file)
        if makes_folder:
            self.try_to(lambda: os.makedirs(self.folder, exist_ok=True))
        if os.path.lexists(self.file):
            mode = os.stat(self.file).st_mode
            if not stat.S_ISREG(mode):
                raise BadArgument(f"{path} is no regular file: accepted is a file, or - for standard output")
            if not os.access(self.file, os.W_OK):
                raise BadArgument(f"{path}: no permission to write")
        self.try_to(self.probe)

    def try_to(self, action):
        try:
            action()
        except OSError as error:
            raise BadArgument(f"{self.path}: {error.strerror}") from None

    def probe(self):
        with tempfile.NamedTemporaryFile(dir=self.folder, prefix=".vecmpi-tune."):
            pass

    def exists(self):
        return self.path != "-" and os.path.exists(self.file)

    def mode(self):
        if self.exists():
            return stat.S_IMODE(os.stat(self.file).st_mode)
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask

    def write(self, text, problem_of):
        """problem_of(file): why the library would not read it. Then what was there stays as it was."""
        folder = None if self.path == "-" else self.folder
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", errors="replace", dir=folder, prefix=".vecmpi-tune.", delete=False
        ) as file:
            try:
                file.write(text)
                file.flush()
                problem = problem_of(file.name).replace(f"profile {file.name}", "the new profile")
                if problem:
                    raise RunFailed(f"{self.path}: not written: {problem}")
                self.put(text, file)
            finally:
                with contextlib.suppress(FileNotFoundError):  # it has become the profile
                    os.unlink(file.name)

    def put(self, text, file):
        if self.path == "-":
            sys.stdout.write(text)
            sys.stdout.flush()
            return
        os.fsync(file.fileno())
        os.fchmod(file.fileno(), self.mode())
        os.replace(file.name, self.file)
