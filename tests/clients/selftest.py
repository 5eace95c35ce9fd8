# SPDX-License-Identifier: BSD-3-Clause
"""Unit tests of how clients are compared; needs neither MPI nor the clients (python3 selftest.py)."""
from __future__ import annotations

import pathlib
import stat
import tempfile
import types
import unittest

import compare
import mumps_grid
import programs
import run_clients
from compare import Check
from execute import Mode
from programs import Case


def begin(name):
    return {"begin": name}


def end(name, outcome="pass", value="", detail=""):
    return {"end": name, "outcome": outcome, "value": value, "detail": detail}


class MergeRanks(unittest.TestCase):
    def test_worst_rank_decides(self):
        one = [begin("a"), end("a"), begin("b"), end("b", "skip"), begin("c"), end("c", "skip"), {"finished": True}]
        two = [begin("a"), end("a", "fail", detail="why"), begin("b"), end("b"), begin("c"), end("c", "skip")]
        progress = compare.merge_ranks([one, two])
        self.assertEqual({name: check.outcome for name, check in progress.checks.items()},
                         dict(a="fail", b="pass", c="skip"))
        self.assertEqual(progress.checks["a"].detail, "why")
        self.assertFalse(progress.finished)  # rank 1 did not say so

    def test_stuck_is_what_the_rank_behind_is_in(self):
        ahead = [begin("a"), end("a"), begin("b"), end("b"), begin("c")]
        behind = [begin("a"), end("a"), begin("b")]
        progress = compare.merge_ranks([ahead, behind])
        self.assertEqual((list(progress.checks), progress.stuck), (["a"], ("b",)))

    def test_values_of_all_ranks_count(self):
        logs = [[begin("a"), end("a", value=value)] for value in ("x", "y")]
        self.assertEqual(compare.merge_ranks(logs).checks["a"].value, "x\ny")

    def test_a_rank_that_never_began(self):
        self.assertEqual(compare.merge_ranks([[begin("a"), end("a")], []]), compare.Progress({}, (), False))


class Differing(unittest.TestCase):
    def test_only_what_passes_plain_counts(self):
        plain = {"a": Check("pass"), "b": Check("pass"), "c": Check("fail"), "d": Check("pass"), "e": Check("skip")}
        loaded = {"a": Check("pass"), "b": Check("hang"), "c": Check("fail"), "e": Check("fail")}
        found = compare.differing(plain, loaded)
        self.assertEqual({name: check.outcome for name, check in found.items()}, {"b": "hang", "d": "missing"})

    def test_another_value_differs(self):
        found = compare.differing({"a": Check("pass", "1\n2")}, {"a": Check("pass", "1\n3")})
        self.assertEqual((found["a"].outcome, found["a"].detail), ("fail", "another result: line 2 is '3', plain '2'"))
        agree = compare.numbers_agree(0)
        self.assertFalse(compare.differing({"a": Check("pass", "1.0")}, {"a": Check("pass", "1")}, agree))


class Text(unittest.TestCase):
    def test_masked_lines_go(self):
        text = "Step 1\nLoop time of 3.2\n\nPair | 0.1\nPairs 7  \n"
        self.assertEqual(compare.mask(text, programs.LAMMPS_TIMES), "Step 1\nPairs 7")

    def test_numbers(self):
        near = compare.numbers_agree(1e-9)
        for one, other, expected in [
            ("x 1.0", "x 1.0000000001", True),
            ("x 1.0", "x 1.00000001", False),
            ("x 1e12", "x 1000000000001", True),
            ("x 0", "x 1e-10", True),
            ("x nan", "x 1", False),
            ("x 1", "y 1", False),
            ("x 1", "x 1 2", False),
        ]:
            with self.subTest(one=one, other=other):
                self.assertEqual(near(one, other), expected)

    def test_known_solution(self):
        case = Case("a", [], taken=programs.MUMPS_SOLUTION, expected="Solution is 1 2")
        text = "Entering 3\n  Solution is  1.0000000001\n  2.0E+00\n Elapsed time 3\n"
        self.assertEqual(programs.judge(case, text).outcome, "pass")
        self.assertEqual(programs.judge(case, "Entering 3").outcome, "fail")
        self.assertEqual(programs.judge(case, "  Solution is  1.1 2.0\n").outcome, "fail")


class Grid(unittest.TestCase):
    def test_right_hand_side_is_that_of_the_solution(self):
        lines = list(mumps_grid.lines(2))
        count, entries = int(lines[0]), int(lines[1])
        self.assertEqual((count, entries, len(lines)), (8, 8 * 4, 2 + 8 * 4 + 8))
        sums = [0.0] * count
        for line in lines[2 : 2 + entries]:
            row, column, value = line.split()
            sums[int(row) - 1] += float(value) * mumps_grid.solution(int(column) - 1)
        self.assertEqual(sums, [float(line) for line in lines[2 + entries :]])


class RunSuite(unittest.TestCase):
    """With a shell script in the place of mpirun, called as `mpirun -n 2 COMMAND`."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.mpirun = self.root / "mpirun"
        options = types.SimpleNamespace(timeout=20, limit=10, out=self.root / "out")
        self.launcher = run_clients.Launcher(options, str(self.mpirun))

    def tearDown(self):
        self.folder.cleanup()

    def run_with(self, body, plain=None):
        self.mpirun.write_text(f"#!/bin/sh\nlog() {{ echo \"$2\" >>$CLIENTS_LOG/rank-$1.jsonl; }}\n{body}\n")
        self.mpirun.chmod(self.mpirun.stat().st_mode | stat.S_IXUSR)
        return run_clients.Suite("x", ["command"], {}).run(self.launcher, Mode("plain", {}, ()), 1, plain or {})

    def test_goes_on_behind_a_crash(self):
        checks = self.run_with(
            """if grep -q b $CLIENTS_LOG/skip; then
                 log 0 '{"begin": "c"}'; log 0 '{"end": "c", "outcome": "pass", "value": "", "detail": ""}'
                 log 0 '{"finished": true}'; exit 0
               fi
               log 0 '{"begin": "a"}'; log 0 '{"end": "a", "outcome": "pass", "value": "", "detail": ""}'
               log 0 '{"begin": "b"}'; echo broken; exit 139"""
        )
        self.assertEqual({name: check.outcome for name, check in checks.items()}, dict(a="pass", b="crash", c="pass"))
        self.assertIn("broken", checks["b"].detail)
        self.assertIn("broken", (self.root / "out" / "x-1-plain.log").read_text())

    def test_what_hung_plain_is_left_out(self):
        body = """log 0 '{"finished": true}'; cp $CLIENTS_LOG/skip $CLIENTS_LOG/../skip"""
        plain = dict(a=Check("hang"), b=Check("pass"), c=Check("crash"))
        self.run_with(body.replace("$CLIENTS_LOG/..", str(self.root)), plain)
        self.assertEqual((self.root / "skip").read_text(), "a\nc")

    def test_nothing_begun(self):
        checks = self.run_with("echo no; exit 3")
        self.assertEqual([check.outcome for check in checks.values()], ["crash"])

    def test_a_check_at_its_limit_is_a_hang(self):
        checks = self.run_with("log 0 '{\"begin\": \"a\"}'; echo 'Timeout (0:02:00)!'; exit 1")
        self.assertEqual(checks["a"].outcome, "hang")


if __name__ == "__main__":
    unittest.main()
