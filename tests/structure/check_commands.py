#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the commands of README.md and docs/*.md as they stand there, with vecmpi installed into a passing folder.

    check_commands.py --build BUILD [ROOT]         the last line is "N passed, N failed", with ", N skipped" where this
                                                   machine does not allow what a command needs
    check_commands.py --build BUILD --only TEXT    those that contain TEXT, with what they print
    check_commands.py --list [ROOT]                each command, and what runs it
    check_commands.py --selftest                   shows that each rule bites

A command is a line four blanks from the left, or in a fence without a language. What is no command (output, C, a
diagram) stands in a fence that names one: ```text. A command runs here, with STAND_INS for what is long or stands for
any. Or another test runs it, ELSEWHERE: here its arguments are read by the script's own --help.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^\s*```(\w*)")
SECONDS = 60  # for a command

# What stands in the run for a name that stands for any, and what makes a run short: pattern, replacement.
STAND_INS = (
    (r"/path/to/|/on/all/hosts/", "$PWD/installed/lib/"),
    (r"\bPREFIX/", "mpich/"),
    (r"\bMEASUREMENT\b", "post"),
    (r"\bNAME=VALUE\b", "VECMPI_WAIT=spin"),
    (r"\bNAME=OTHER\b", "VECMPI_WAIT=yield"),
    (r"^cmake --install build && ldconfig$", "cmake --install $BUILD --prefix installed && ldconfig -n installed/lib"),
    (r"--sizes 64K-16M", "--sizes 64K"),
    (r"(vecmpi-bench allreduce .*--offload off,on)", r"\1 --sizes 64K"),
    (r"(vecmpi-bench messages)", r"\1 --sizes 2K"),
    (r"(vecmpi-bench applications)", r"\1 --sizes small"),
    (r"--ranks 2,4,5", "--ranks 2"),
    (r"^(\S*vecmpi-bench overlap.*)", r"\1 --sizes 64K"),
    (r"^(\S*vecmpi-bench \w.*?)( --quick)?$", r"\1 --quick"),  # one short run of each side in place of five
    (r"^vecmpi-tune$", "vecmpi-tune --quick --only kernels,pack,node"),  # its network lies between hosts
    (r" docs/pictures$", " pictures post"),
    (r" --loop 20$", " --loop 2"),
    (r"^(ctest .*)", r"\1 --show-only"),
    (r"(find_type\.py .*)", r"\1 --types 20"),
)


@dataclass(frozen=True)
class Elsewhere:
    """Commands that another test runs."""

    command: str  # a regular expression of the whole command
    why: str  # not here
    test: str  # of CTest, or check.sh, which builds and tests
    runs: str  # what stands in that test's command, or in check.sh


ELSEWHERE = (
    Elsewhere(r"cmake -S \. -B build.* && (cmake --build|ninja -C) .*", "minutes", "check.sh", "cmake -S"),
    Elsewhere(r"scripts/check\.sh.*", "it runs this test", "check.sh", 'check "$@"'),
    Elsewhere(r"scripts/demo\.sh.*", "builds all", "demo: demo.sh", "scripts/demo.sh"),
    Elsewhere(r"scripts/applications\.sh.*", "fetches", "applications: results", "scripts/applications.sh"),
    Elsewhere(r"scripts/clients\.sh.*", "fetches", "mpi4py: test_cco_buf", "scripts/clients.sh"),
    Elsewhere(r"scripts/conformance\.sh.*", "fetches", "mpich: part 1", "scripts/conformance.sh"),
    Elsewhere(r"scripts/libraries\.sh.*", "fetches", "intel: whole battery", "scripts/libraries.sh"),
    Elsewhere(r".*vecmpi-bench network", "wants two hosts", "bench: vecmpi-bench", "tests/bench/test_bench.sh"),
    Elsewhere(r"vecmpi-tune --only network.*", "wants two hosts", "tune: vecmpi-tune", "tests/tune/test_tune.sh"),
)

# Where a command has this, the machine must allow that; else it is skipped.
NEEDS = (
    (r"--lab\b|\blab\.sh\b", "scripts/lab.sh -n 1 -- true"),
    (r"--plot\b|\bpictures\.py\b", "python3 -c 'import matplotlib'"),
)

# A run that has the left in its command prints the right; the environment asks for a report.
PRINTS = ((r"^(?!.*(VECMPI=off|=json)).*(LD_PRELOAD|vecmpi-preload|vecmpi-run|run\.sh).*\./app", "vecmpi report: "),)
NEVER_PRINTED = "cannot be preloaded"  # the loader's, which goes on

# An MPI program that has work for each part of vecmpi.
APP = """
#include <mpi.h>
int main(int argc, char **argv) {
    static double values[4096], sums[4096];
    int rank, size;
    MPI_Datatype columns;
    MPI_Request requests[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Type_vector(1024, 1, 2, MPI_DOUBLE, &columns);
    MPI_Type_commit(&columns);
    for (int i = 0; i < 200; ++i) {
        MPI_Irecv(sums, 1, columns, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(values, 1, columns, (rank + 1) % size, 0, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Allreduce(values, sums, 1024, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Type_free(&columns);
    return MPI_Finalize();
}
"""


# ---- what stands in the documents ------------------------------------------------------------------------------


def commands_of(text):
    """(line number, command) for each; a line that ends with a backslash goes on."""
    language, began, parts = None, 0, []
    for number, line in enumerate(text.splitlines(), start=1):
        if fence := FENCE.match(line):
            language = fence[1] if language is None else None
        elif language == "" or (language is None and line.startswith("    ")):
            began = began if parts else number
            parts.append(without_comment(line).removesuffix("\\").rstrip())
            if not line.endswith("\\"):
                if any(parts):
                    yield began, " ".join(parts)
                parts = []


def without_comment(line):
    """A comment begins behind a blank: no # of these documents stands in quotes."""
    return re.sub(r"(^|\s)#.*", "", line).strip()


def with_stand_ins(command):
    for pattern, replacement in STAND_INS:
        command = re.sub(pattern, replacement, command)
    return command


def asking_for_help(command):
    """Behind the options, whose values are looked at first, and before what stands behind --."""
    own, dashes, rest = command.partition(" -- ")
    return f"{own} --help{dashes}{rest}"


def row_for(command):
    return next((row for row in ELSEWHERE if re.fullmatch(row.command, command)), None)


def problem_of_row(row, tests, check_sh):
    """tests: name -> command, a text."""
    if row.test == "check.sh":
        return None if row.runs in check_sh else f"check.sh has no '{row.runs}'"
    if row.test not in tests:
        return f"no test is called '{row.test}'"
    return None if row.runs in tests[row.test] else f"the test '{row.test}' does not run {row.runs}"


def commands_in(root):
    """Command -> the first place where it stands."""
    found = {}
    for path in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        for number, command in commands_of(path.read_text("utf-8")):
            found.setdefault(command, f"{path.relative_to(root)}:{number}")
    return found


def problem_of_run(command, status, said):
    if status != 0:
        return f"status {status}"
    if NEVER_PRINTED in said:
        return NEVER_PRINTED
    missing = [wanted for pattern, wanted in PRINTS if re.search(pattern, command) and wanted not in said]
    return f"does not print '{missing[0]}'" if missing else None


# ---- running them ----------------------------------------------------------------------------------------------


def prepare(work, root, build):
    """A checkout with its build, and beside them what the commands name: app, hosts, an MPI library's prefix."""
    for folder in ("cmake", "docs", "examples", "include", "packaging", "src", "tests"):
        (work / folder).symlink_to(root / folder)
    for folder in ("scripts", "tools"):  # they look for the rest of the checkout from where they lie
        shutil.copytree(root / folder, work / folder)
    (work / "build").mkdir()
    for path in build.iterdir():
        if path.is_file() and path.name.startswith(("vecmpi", "libvecmpi")):
            shutil.copy(path, work / "build" / path.name)  # a tool looks beside itself
        else:
            (work / "build" / path.name).symlink_to(path)
    (work / "build" / "check").symlink_to(build)
    (work / "app_mpi.c").write_text(APP, "utf-8")
    shutil.copy(root / "examples" / "team_sum.c", work / "app.c")
    (work / "hosts").write_text("a:1\nb:1\n", "utf-8")
    (work / "bin").mkdir()
    for folder in ("mpich/bin", "mpich/lib"):
        (work / folder).mkdir(parents=True)
    for name, program in (("bin/mpirun", "mpirun.mpich"), ("mpich/bin/mpiexec", "mpirun.mpich")):
        (work / name).write_text(f'#!/bin/sh\nexec {program} "$@"\n', "utf-8")
        (work / name).chmod(0o755)


PREPARATION = """
mpicc.mpich app_mpi.c -o app
cmake --install $BUILD --prefix $PWD/installed >/dev/null
ln -s $(ldd ./app | sed -n 's/.*libmpich.so.12 => \\(\\S*\\).*/\\1/p') mpich/lib/libmpi.so.12
"""


def environment(work, build):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("VECMPI", "LD_", "HYDRA", "PMI"))}
    return kept | {
        "BUILD": str(build),
        "PATH": f"{work}/bin:{work}/installed/bin:{kept['PATH']}",
        "LD_LIBRARY_PATH": f"{work}/installed/lib",
        "PKG_CONFIG_PATH": str(next((work / "installed").rglob("pkgconfig"), "")),
        "XDG_CONFIG_HOME": str(work / "config"),
        "VECMPI_REPORT": "summary",
        "HYDRA_LAUNCHER": "fork",  # hosts a, b and c are here
    }


def run(command, work, build):
    """(status, output)"""
    words = ["timeout", "--kill-after=5", str(SECONDS), "bash", "-euo", "pipefail", "-c", command]
    done = subprocess.run(
        words,
        cwd=work,
        env=environment(work, build),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return done.returncode, done.stdout


class Runs:
    """Runs commands, and counts."""

    def __init__(self, work, build, tests, check_sh):
        self.work, self.build, self.tests, self.check_sh = work, build, tests, check_sh
        self.allowed = {}  # of NEEDS
        self.counts = {"ok": 0, "FAIL": 0, "skip": 0}

    def missing(self, command):
        """What the command needs and this machine does not allow."""
        for pattern, probe in NEEDS:
            if re.search(pattern, command):
                if probe not in self.allowed:
                    self.allowed[probe] = run(probe, self.work, self.build)[0] == 0
                if not self.allowed[probe]:
                    return probe
        return None

    def outcome(self, command):
        """(word, what to say of it)"""
        if row := row_for(command):
            if problem := problem_of_row(row, self.tests, self.check_sh):
                return "FAIL", problem
            if not command.startswith("scripts/"):
                return "ok", f"run by {row.test}"
            status, said = run(asking_for_help(command), self.work, self.build)
            return ("ok", f"run by {row.test}") if status == 0 else ("FAIL", said)
        if probe := self.missing(command):
            return "skip", f"not on this machine: {probe}"
        status, said = run(with_stand_ins(command), self.work, self.build)
        problem = problem_of_run(command, status, said)
        return ("FAIL", f"{problem}: {said}") if problem else ("ok", said)

    def take(self, place, command, verbose):
        began = time.monotonic()
        word, said = self.outcome(command)
        self.counts[word] += 1
        print(f"{word:4} {place}: {command}   ({time.monotonic() - began:.1f} s)", flush=True)
        if word != "ok" or verbose:
            print("\n".join(f"     {line}" for line in said.splitlines()[-30:]))


def tests_of(build):
    """Name -> command of each test that CTest knows."""
    words = ["ctest", "--test-dir", str(build), "--show-only=json-v1"]
    shown = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    return {test["name"]: " ".join(test.get("command", [])) for test in shown["tests"]}


def check_tree(root, build, only):
    tests = tests_of(build)
    check_sh = (root / "scripts/check.sh").read_text("utf-8")
    with tempfile.TemporaryDirectory(prefix="vecmpi-commands.") as folder:
        work = Path(folder)
        prepare(work, root, build)
        status, said = run(PREPARATION, work, build)
        if status != 0:
            print(f"FAIL preparation: {said}\n0 passed, 1 failed")
            return False
        runs = Runs(work, build, tests, check_sh)
        for command, place in commands_in(root).items():
            if only in command:
                runs.take(place, command, verbose=bool(only))
    passed, failed, skipped = runs.counts.values()
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return failed == 0


def list_commands(root):
    for command, place in commands_in(root).items():
        row = row_for(command)
        print(f"{place}: {command}\n     {f'{row.test} ({row.why})' if row else with_stand_ins(command)}")


# ---- self-test -------------------------------------------------------------------------------------------------


class Finding(unittest.TestCase):
    def expect(self, text, *commands):
        self.assertEqual([command for _, command in commands_of(text)], list(commands))

    def test_indented_and_fenced(self):
        self.expect("text\n\n    one -n 2   # two\n    # a comment alone\n\ntext `three`\n", "one -n 2")
        self.expect("```\nfour\n```\n```text\nfive\n```\n    six\n", "four", "six")
        self.expect("```c\n    five;\n```\n")

    def test_a_long_one(self):
        self.expect("    one \\\n        --two\n    three\n", "one --two", "three")
        self.assertEqual(list(commands_of("text\n    one \\\n      --two\n")), [(2, "one --two")])

    def test_quotes(self):
        self.expect("    python3 -c 'a;  b'\n", "python3 -c 'a;  b'")


class Rules(unittest.TestCase):
    def test_stand_ins(self):
        self.assertEqual(with_stand_ins("vecmpi-bench post"), "vecmpi-bench post --quick")
        self.assertEqual(with_stand_ins("build/vecmpi-bench post --quick"), "build/vecmpi-bench post --quick")
        self.assertEqual(with_stand_ins("PREFIX/bin/mpiexec x"), "mpich/bin/mpiexec x")
        self.assertEqual(with_stand_ins("vecmpi-tune --show"), "vecmpi-tune --show")

    def test_help(self):
        self.assertEqual(asking_for_help("x.sh -n 2"), "x.sh -n 2 --help")
        self.assertEqual(asking_for_help("x.sh -n 2 -- a"), "x.sh -n 2 --help -- a")

    def test_rows(self):
        row = Elsewhere("x.*", "long", "a: b", "scripts/x.sh")
        self.assertIsNone(problem_of_row(row, {"a: b": "{source}/scripts/x.sh --all"}, ""))
        self.assertIn("does not run", problem_of_row(row, {"a: b": "{source}/scripts/y.sh"}, ""))
        self.assertIn("no test is called", problem_of_row(row, {"a: c": "scripts/x.sh"}, ""))
        self.assertIn("check.sh has no", problem_of_row(Elsewhere("x", "long", "check.sh", "make"), {}, "ninja"))

    def test_what_no_other_test_runs_is_run(self):
        self.assertIsNone(row_for("scripts/lab.sh -n 2 -- true"))
        self.assertEqual(row_for("scripts/clients.sh --help").runs, "scripts/clients.sh")

    def test_what_is_printed(self):
        command = "VECMPI_LOG=info vecmpi-run -n 2 ./app"
        self.assertIsNone(problem_of_run(command, 0, "vecmpi report: 2 ranks"))
        self.assertIn("does not print", problem_of_run(command, 0, "vecmpi: a line"))
        self.assertEqual(problem_of_run("mpirun ./app", 0, f"x.so {NEVER_PRINTED}: ignored"), NEVER_PRINTED)
        self.assertIsNone(problem_of_run("VECMPI=off " + command, 0, ""))
        self.assertIn("status 3", problem_of_run("true", 3, ""))

    def test_statuses(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "installed").mkdir()
            runs = Runs(Path(folder), Path(folder), {}, "")
            self.assertEqual(runs.outcome("true | cat")[0], "ok")
            self.assertEqual(runs.outcome("false | cat")[0], "FAIL")
            self.assertEqual(runs.outcome("no-such-program")[0], "FAIL")
            runs.allowed[NEEDS[1][1]] = False
            self.assertEqual(runs.outcome("vecmpi-bench reduce --plot x.svg")[0], "skip")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--selftest", action="store_true")
    parser.add_argument("--list", action="store_true", help="each command, and what runs it")
    parser.add_argument("--build", type=Path, help="the built tree")
    parser.add_argument("--only", default="", metavar="TEXT", help="commands that contain it")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[2])
    options = parser.parse_args()
    if options.selftest:
        unittest.main(argv=[sys.argv[0]])
    if options.list:
        list_commands(options.root)
        return
    if options.build is None:
        parser.error("--build is needed")
    sys.exit(0 if check_tree(options.root.resolve(), options.build.resolve(), options.only) else 1)


if __name__ == "__main__":
    main()
