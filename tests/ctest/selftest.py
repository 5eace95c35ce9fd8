#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of what chooses the tests, and of what lists them."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import check  # noqa: E402
import choose  # noqa: E402
import discover  # noqa: E402
import table  # noqa: E402

MODES = ("off", "on", "auto", "ring", "trees")
NAMES = [f"mpi: {case}, {mode}" for case in ("a:b, c", "d") for mode in MODES]
ALTERNATIVES = [[f"{group}: {case}" for group in row for case in ("p", "q", "r", "s")] for row in choose.ALTERNATIVES]


class Choice(unittest.TestCase):
    def test_every_case_in_each_run(self):
        for seed in range(50):
            taken = choose.rotating(NAMES, seed)
            self.assertEqual(len(taken), 2)  # one of five modes, for each case
            self.assertEqual({choose.stratum_of(name) for name in taken}, {"mpi: a:b, c", "mpi: d"})

    def test_every_test_in_some_run(self):
        seen = set()
        for seed in range(200):
            seen |= choose.rotating(sum(ALTERNATIVES, NAMES), seed)
        self.assertEqual(seen, set(sum(ALTERNATIVES, NAMES)))

    def test_a_seed_repeats_its_run(self):
        self.assertEqual(choose.rotating(NAMES, 7), choose.rotating(list(reversed(NAMES)), 7))

    def test_one_of_the_alternatives(self):
        for seed in range(20):
            for row in ALTERNATIVES:
                taken = {choose.group_of(name) for name in choose.rotating(row, seed)}
                self.assertEqual(len(taken), 1)

    def test_alternatives_are_those_there_are(self):
        for seed in range(20):
            self.assertEqual(choose.rotating(["tune: x"], seed), {"tune: x"})

    def test_groups_exist(self):
        discovered = {"mpi", "many", "nodes", "thread", "address", "mpi4py"}
        groups = {choose.group_of(test.name) for test in table.TESTS} | discovered
        self.assertLessEqual({group for row in choose.ALTERNATIVES for group in row} | set(choose.SHARES), groups)

    def test_costs(self):
        labels = {
            "unit: x": {"quick", "base"},
            "bench: y": {"default"},
            "mpi: z, off": {"rotating"},
            "mpich: all": {"long"},
        }
        self.assertEqual(choose.choose(labels, "quick", 1), {"unit: x"})
        self.assertEqual(choose.choose(labels, "default", 1), {"unit: x", "bench: y", "mpi: z, off"})
        self.assertEqual(choose.choose(labels, "all", 1), set(labels))

    def test_always(self):
        names = [f"thread: {stem}" for stem in ("offload_queue", *"abcdefgh")]
        for seed in range(20):
            self.assertIn("thread: offload_queue", choose.rotating(names, seed))

    def test_what_is_named_exists(self):
        stems = {stem for stem, _ in discover.cases_in(discover.SOURCE / "tests" / "unit").values()}
        for names in choose.ALWAYS.values():
            self.assertLessEqual({name.split(": ")[1] for name in names}, stems)
        self.assertLessEqual({case.program for case in discover.CASES}, set(discover.AREAS))

    def test_changed(self):
        self.assertEqual(choose.labels_broken_by(["src/datatype/kernel_choice.cpp"]), "datatype|node|pipeline")
        self.assertEqual(choose.labels_broken_by(["LICENSE"]), "")
        self.assertEqual(choose.labels_broken_by(["docs/a.md", "tests/mpi/run.py"]), "docs|mpi")


class Listing(unittest.TestCase):
    def test_cases(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "base_x.cpp").write_text(
                'TEST_CASE("one, \\"two\\" "\n    "three", "[base][long]") {}\nTEST_CASE("four") {}\n'
            )
            self.assertEqual(
                discover.cases_in(Path(folder)),
                {'one, "two" three': ("base_x", "[base][long]"), "four": ("base_x", "")},
            )

    def test_arguments_of_catch(self):
        self.assertEqual(discover.catch_argument("a, [b] *"), "a\\, \\[b] \\*")

    def test_ctest(self):
        test = table.Test("g: n", ("{build}/x", "a b"), ("area",), needs="thread_build")
        text = discover.in_ctest(test, {"build": "/b", "source": "/s", "tests": "/t"})
        self.assertIn("add_test([==[g: n]==] [==[/b/x]==] [==[a b]==])", text)
        self.assertIn("LABELS [==[area;quick]==]", text)
        self.assertIn("FIXTURES_REQUIRED thread_build", text)


class Report(unittest.TestCase):
    JUNIT = """<testsuite><testcase name="a" status="run" time="1.5"><system-out>x</system-out></testcase>
<testcase name="b" status="fail" time="2"><failure message="Failed"/><system-out>why</system-out></testcase>
<testcase name="c" status="notrun" time="0"><skipped message="SKIP_RETURN_CODE=77"/><system-out>not here
0 passed, 0 failed</system-out></testcase>
<testcase name="d" status="notrun" time="0"><skipped message="Fixture dependency failed"/></testcase></testsuite>"""

    def test_states(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "results.xml")
            path.write_text(self.JUNIT)
            results = check.results_in(path)
        self.assertEqual([result.state for result in results], ["run", "fail", "skipped", "fail"])
        self.assertEqual(check.reason_of_skip(results[2]), "not here")


if __name__ == "__main__":
    unittest.main()
