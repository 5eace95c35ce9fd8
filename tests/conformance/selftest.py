# SPDX-License-Identifier: BSD-3-Clause
"""Unit tests of the suite runner's own rules; needs neither MPI nor the suite (python3 selftest.py)."""
from __future__ import annotations

import os
import pathlib
import stat
import tempfile
import types
import unittest

import execute
import results
import run_suite
import verdict
from execute import Mode, Result, Settings, SetupError
from testlist import Suite, Test, parse_line, read_subset

PLAIN = Mode("plain", {}, ())


class ParseLine(unittest.TestCase):
    def test_all_keys(self):
        test = parse_line("coll", "bcast 10 arg=-type=MPI_INT env=A=b=c timeLimit=420 mem=1.2 resultTest=TestStatus")
        self.assertEqual((test.directory, test.program, test.np), ("coll", "bcast", 10))
        self.assertEqual((test.args, test.env), (("-type=MPI_INT",), ("A=b=c",)))
        self.assertEqual((test.time_limit_s, test.memory_gb, test.exclusive), (420, 1.2, True))
        self.assertEqual(test.id, "coll/bcast 10 arg=-type=MPI_INT env=A=b=c")

    def test_defaults_and_ignored_words(self):
        test = parse_line("pt2pt", "  sendself test/mpi/pt2pt/sendself xfail=ticket1 # note")
        self.assertEqual((test.np, test.args, test.exclusive), (2, (), False))

    def test_program_in_a_sub_directory(self):
        self.assertEqual(parse_line("f08", "coll/red 4").id, "f08/coll/red 4")

    def test_no_test(self):
        for line in ("", "   ", "# allred 4", "#allred 4", "!util:all"):
            self.assertIsNone(parse_line("coll", line))


class WalkSuite(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        root = pathlib.Path(self.folder.name)
        self.source, self.build = root / "source", root / "build"
        for tree in (self.source, self.build):
            (tree / "coll" / "deep").mkdir(parents=True)
        (self.build / "testlist").write_text("coll\n#perf\n")
        (self.source / "coll" / "testlist").write_text("allred 4\nallred 4\ndeep\n")
        (self.build / "coll" / "testlist.dtp").write_text("bcast 4 arg=x\n")
        (self.source / "coll" / "deep" / "testlist").write_text("old 1\n")
        (self.build / "coll" / "deep" / "testlist").write_text("new 1\n")

    def tearDown(self):
        self.folder.cleanup()

    def ids(self, directories, lists=("testlist", "testlist.dtp")):
        return [test.id for test in Suite(self.source, self.build, list(lists)).tests(directories)]

    def test_whole_suite_once_and_build_tree_first(self):
        self.assertEqual(self.ids([]), ["coll/allred 4", "coll/deep/new 1", "coll/bcast 4 arg=x"])

    def test_chosen_directory_and_list(self):
        self.assertEqual(self.ids(["coll/deep"]), ["coll/deep/new 1"])
        self.assertEqual(self.ids(["coll"], ["testlist.dtp"]), ["coll/bcast 4 arg=x"])

    def test_subset_file(self):
        path = pathlib.Path(self.folder.name) / "subset"
        path.write_text("# why\ncoll/allred   4\n\ncoll/bcast 4 arg=x # large\n")
        self.assertEqual(read_subset(path), ["coll/allred 4", "coll/bcast 4 arg=x"])


class Parts(unittest.TestCase):
    def test_each_test_is_in_one_part(self):
        tests = [parse_line("coll", f"program{i} 4") for i in range(11)]
        suite = types.SimpleNamespace(tests=lambda _: tests)
        parts = [
            run_suite.choose_tests(suite, types.SimpleNamespace(dirs="", subset=None, part=f"{part}/4"))
            for part in range(1, 5)
        ]
        self.assertEqual(sorted(t.id for part in parts for t in part), sorted(t.id for t in tests))
        self.assertEqual([len(part) for part in parts], [3, 3, 3, 2])

    def test_memory_that_no_machine_has(self):
        self.assertTrue(run_suite.has_memory(0))
        self.assertFalse(run_suite.has_memory(1e9))


class Judge(unittest.TestCase):
    CASES = (  # resultTest, output, status, timed out -> outcome
        ("", " No Errors\n", 0, False, "pass"),
        ("", "No errors\nTest Passed\n", 0, False, "pass"),
        ("", " No Errors\nFORTRAN STOP\n", 0, False, "pass"),
        ("", "", 0, False, "fail"),
        ("", " No Errors\nwarning\n", 0, False, "fail"),
        ("", " No Errors\n", 1, False, "fail"),
        ("", " No Errors\n", 255, True, "timeout"),
        ("", "APPLICATION TIMED OUT\n", 255, True, "timeout"),
        ("TestStatus", "anything\n", 3, False, "pass"),
        ("TestStatus", "", 0, False, "fail"),
        ("TestErrFatal", "Abort\n", 1, False, "pass"),
        ("TestErrFatal", " No Errors\n", 0, False, "fail"),
        ("TestStatusNoErrors", " No Errors\n", 9, False, "pass"),
        ("TestStatusNoErrors", " No Errors\n", 0, False, "fail"),
        ("TestStatusNoErrors", "lost a rank\n", 9, False, "fail"),
    )

    def test_table(self):
        for kind, output, status, timed_out, expected in self.CASES:
            with self.subTest(kind=kind, output=output, status=status):
                self.assertEqual(verdict.judge(kind, output, status, timed_out)[0], expected)

    def test_hang_is_no_pass_where_plain_did_not_hang(self):
        self.assertEqual(verdict.same_end("pass", True, False), "timeout")
        self.assertEqual(verdict.same_end("pass", True, True), "pass")
        self.assertEqual(verdict.same_end("pass", False, False), "pass")
        self.assertEqual(verdict.same_end("fail", True, False), "fail")


class RunTest(unittest.TestCase):
    """With a shell script in the place of mpirun: `mpirun -genv LD_PRELOAD x -n 2 ./program`."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        root = pathlib.Path(self.folder.name)
        (root / "coll").mkdir()
        self.script(root / "coll" / "t", 'echo " No Errors"')
        self.mpirun = self.script(root / "mpirun", 'eval last=\\${$#}; "$last"')
        self.settings = Settings(str(self.mpirun), root, 4, 1, root / "logs")
        self.root = root

    def tearDown(self):
        self.folder.cleanup()

    def script(self, path, body):
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def run_one(self, mode=PLAIN):
        return execute.run_test(Test("coll", "t", 8), mode, self.settings)

    def test_pass_and_cap(self):
        result = self.run_one()
        self.assertEqual((result.outcome, result.np, result.np_asked), ("pass", 4, 8))

    def test_missing_program(self):
        (self.root / "coll" / "t").unlink()
        self.assertEqual(self.run_one().outcome, "not-built")

    def test_preload_goes_to_the_ranks_alone(self):
        mode = Mode("on", {"VECMPI_OFFLOAD": "on"}, ("/a.so", "/b.so"))
        line = execute.command_line(Test("coll", "t", 2), mode, self.settings)
        self.assertEqual(line[1:4], ["-genv", "LD_PRELOAD", "/a.so:/b.so"])
        os.environ["VECMPI_LOG"] = "debug"
        env = execute.environment(Test("coll", "t", 2, env=("A=b",)), mode, 7, "mark")
        del os.environ["VECMPI_LOG"]
        self.assertEqual((env["A"], env["VECMPI_OFFLOAD"], env["MPIEXEC_TIMEOUT"]), ("b", "on", "7"))
        self.assertFalse({"LD_PRELOAD", "VECMPI_LOG"} & env.keys())

    def test_hang_is_ended_with_what_it_started(self):
        grace, execute.GRACE_S = execute.GRACE_S, 0
        self.script(self.root / "coll" / "t", "setsid sleep 60 & sleep 60")
        self.assertEqual(self.run_one().outcome, "timeout")
        execute.GRACE_S = grace
        self.assertEqual(execute._marked_processes(execute.RUN_ID), [])

    def test_failure_leaves_a_log(self):
        self.script(self.root / "coll" / "t", "echo wrong data")
        self.assertEqual(self.run_one().outcome, "fail")
        self.assertIn("wrong data", (self.root / "logs" / "plain" / "coll+t_8.log").read_text())


class Compare(unittest.TestCase):
    @staticmethod
    def outcomes(**pairs):
        return {key: Result(key, "coll", 1, 1, outcome.replace("_", "-")) for key, outcome in pairs.items()}

    def test_only_what_passes_plain_counts(self):
        plain = self.outcomes(a="pass", b="pass", c="fail", d="pass")
        loaded = self.outcomes(a="pass", b="timeout", c="fail", d="not_built")
        self.assertEqual(results.differing(plain, loaded), ["b", "d"])

    def test_saved_results_come_back_under_the_same_conditions_only(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "plain.json"
            plain = self.outcomes(a="pass", b="fail")
            results.save(path, {"max_np": 4}, plain)
            self.assertEqual(results.load(path, {"max_np": 4}), plain)
            with self.assertRaises(SetupError):
                results.load(path, {"max_np": 2})


if __name__ == "__main__":
    unittest.main()
