# SPDX-License-Identifier: BSD-3-Clause
"""Unit tests of how applications are judged; needs neither MPI nor the programs (python3 selftest.py)."""
from __future__ import annotations

import contextlib
import io
import pathlib
import types
import unittest

import judgement
import launch
import report
import run_applications
import table
from judgement import Figure, as_plain, at_most, contains, found, lacks


class Figures(unittest.TestCase):
    def test_number_with_its_unit(self):
        self.assertAlmostEqual(Figure("x", r"time: ([\d.]+) (s|ms|us)").seconds("time: 2.5 ms"), 0.0025)

    def test_several_are_summed_and_none_is_none(self):
        figure = Figure("x", r"t=([\d.]+)")
        self.assertEqual(figure.seconds("t=1\nt=2"), 3)
        self.assertIsNone(figure.seconds("no"))

    def test_a_rate_is_inverted(self):
        self.assertEqual(Figure("x", r"r=([\d.]+)", is_rate=True).seconds("r=4"), 0.25)
        self.assertIsNone(Figure("x", r"r=([\d.]+)", is_rate=True).seconds("r=0.0"))


class Checks(unittest.TestCase):
    def test_each_kind(self):
        for check, right, wrong in (
            (contains("^ok$"), "a\nok", "not ok"),
            (lacks("bad"), "good", "so bad"),
            (at_most(r"e=(\S+)", 1), "e=1", "e=1.1"),
            (at_most(r"e=(\S+)", 1), "e=0", "e=nan"),
            (at_most(r"e=(\S+)", 1), "e=0", "nothing"),
            (as_plain(found(r"v=\d")), "x v=1", "v=2"),
            (as_plain(found(r"v=\d")), "v=1", "v=1 v=1"),
        ):
            self.assertEqual(check(right, "v=1"), "")
            self.assertNotEqual(check(wrong, "v=1"), "")

    def test_losses(self):
        def text(ranks, *losses):
            return f"losses of rank 0 of {ranks}: " + " ".join(map(float.hex, losses))

        check = judgement.losses_as_plain(1e-3)
        self.assertEqual(check(text(2, 7.0, 6.5), text(2, 7.0, 6.5)), "")
        self.assertIn("step 1 on rank 0", check(text(2, 7.0, 6.5000001), text(2, 7.0, 6.5)))
        plain = text(4, 7.0, 6.5, 5.0)
        self.assertEqual(check(text(4, 7.0, 6.501, 5.1), plain), "")
        nan = float("nan")
        for wrong in ((7.0, 6.6, 5.0), (7.0, 6.5), (7.0, nan, 5.0), (7.0, 6.5, nan)):
            self.assertNotEqual(check(text(4, *wrong), plain), "")
        for wrong in (text(3, 7.0, 6.5, 5.0), ""):
            self.assertNotEqual(check(wrong, plain), "")
        self.assertNotEqual(check("", ""), "")

    def test_nothing_to_compare_is_no_success(self):
        self.assertNotEqual(as_plain(found("v"))("", ""), "")

    def test_first_problem(self):
        self.assertEqual(judgement.first_problem((contains("a"), lacks("b")), "a", ""), "")
        self.assertIn("'b'", judgement.first_problem((contains("a"), lacks("b")), "ab", ""))


class Comparisons(unittest.TestCase):
    def winner(self, plain, preloaded):
        return judgement.compare(plain, preloaded).winner

    def test_who_wins(self):
        self.assertEqual(self.winner([2, 2, 2], [1, 1, 1]), "vecmpi")
        self.assertEqual(self.winner([1, 1, 1], [1.03, 1.04, 1.05]), "plain")
        self.assertEqual(self.winner([1, 1, 1], [1.03, 0.99, 1.05]), "unsteady")
        self.assertEqual(self.winner([1, 1, 1], [1.01, 1.5, 1.01]), "nobody")

    def test_gain_is_that_of_the_rounds(self):
        compared = judgement.compare([1.0, 10.0, 4.0], [0.5, 5.0, 4.0])
        self.assertEqual((compared.gain, compared.spread), (2, 0.5))


class Programs(unittest.TestCase):
    def test_names_and_builds(self):
        names = [program.name for program in table.PROGRAMS]
        self.assertEqual(len(names), len(set(names)))
        for program in table.PROGRAMS:
            self.assertIn(program.build, table.BUILDS)
            self.assertTrue(program.figures and program.checks)
            self.assertTrue(all(len(values) == 3 for values in program.sizes.values()))

    def test_a_build_has_one_origin(self):
        for build in table.BUILDS.values():
            self.assertEqual([bool(build.package), bool(build.own), bool(build.client)].count(True), 1)

    def test_grid_of_hpcc(self):
        for ranks, grid in ((1, ("1", "1")), (2, ("1", "2")), (4, ("2", "2")), (6, ("2", "3"))):
            lines = table.hpcc_input({"N": "300"}, ranks)["hpccinf.txt"].splitlines()
            self.assertEqual((lines[10], lines[11]), grid)


class Rows(unittest.TestCase):
    def run_of(self, seconds, problem="", told=None):
        return types.SimpleNamespace(times={"f": seconds}, problem=problem, report=told or {})

    def rows(self, plain, preloaded, reported=None):
        program = types.SimpleNamespace(name="p", figures=(Figure("f", "t"),))
        turns = types.SimpleNamespace(
            program=program, setting="2 ranks", plain=plain, preloaded=preloaded, reported=reported
        )
        return report.rows_of(turns, is_measured=True)

    def test_a_problem_of_any_run_shows(self):
        good, bad = self.run_of(1.0), self.run_of(None, "bad")
        for plain, preloaded, reported, problem in (
            ([good], [bad], None, "preloaded: bad"),
            ([good], [good], bad, "preloaded: bad"),
            ([bad], [], None, "plain: bad"),
        ):
            row = self.rows(plain, preloaded, reported)[0]
            self.assertEqual((row["problem"], row["winner"]), (problem, ""))
            self.assertIn("FAILED", report.row_text(row))

    def test_losses_say_where_the_time_goes(self):
        calls = [dict(name="MPI_Wait", path="completion", time_ns=40)]
        told = self.run_of(2.0, told=dict(run_ns=100, mpi_ns=50, calls=calls))
        rows = self.rows([self.run_of(1.0)], [self.run_of(2.0)], told)
        self.assertEqual((rows[0]["share"], rows[0]["winner"]), (0.5, "plain"))
        self.assertIn("100.0 % in all of 1 rounds; longest in MPI: MPI_Wait completion 40.0 %", report.losses(rows)[0])


class ByTurns(unittest.TestCase):
    """A launcher that only counts: who runs when, and what follows from a failure and from a loss."""

    def measured(self, seconds_of):
        asked = []

        def run(program, setting, log, plain="", preloaded=False, reported=False):
            asked.append("report" if reported else "preloaded" if preloaded else "plain")
            seconds = seconds_of(len(asked), asked[-1])
            return launch.Run({"f": seconds}, "" if seconds else "bad", "text", {})

        args = types.SimpleNamespace(rounds=2, quick=False, out=pathlib.Path())
        program = types.SimpleNamespace(name="p", figures=(Figure("f", "t"),))
        with contextlib.redirect_stderr(io.StringIO()):
            launcher = types.SimpleNamespace(run=run)
            rows = run_applications.measure(args, launcher, program, launch.Setting(2, False))
        return asked, rows[0]

    def test_order(self):
        asked, row = self.measured(lambda number, what: 1.0)
        self.assertEqual(asked, ["plain", "preloaded", "preloaded", "plain", "report"])
        self.assertEqual(row["winner"], "nobody")

    def test_a_loss_is_measured_again(self):
        asked, row = self.measured(lambda number, what: 1.0 if what == "plain" else 2.0)
        self.assertEqual((len(asked), row["winner"], len(row["times"]["plain"])), (9, "plain", 4))
        _, row = self.measured(lambda number, what: 1.0 if what == "plain" or number > 5 else 1.1)
        self.assertNotEqual(row["winner"], "plain")

    def test_nothing_follows_a_failure(self):
        asked, row = self.measured(lambda number, what: None if number == 2 else 1.0)
        self.assertEqual((asked, row["problem"]), (["plain", "preloaded"], "preloaded: bad"))


if __name__ == "__main__":
    unittest.main()
