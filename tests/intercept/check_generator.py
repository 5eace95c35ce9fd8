# SPDX-License-Identifier: BSD-3-Clause
"""Checks the generator on small headers and tables: what fails the build, what is skipped, what a row covers.

    check_generator.py GENERATOR_FOLDER [GENERATED_FOLDER MPI_LIBRARY]

With the two more it also checks that every MPI function which the library exports in pairs has an entry.
"""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

generator = Path(sys.argv[1])
sys.path.insert(0, str(generator))
sys.dont_write_bytecode = True

from emit_tables import needs_of  # noqa: E402
from function_table import join, parse_table  # noqa: E402
from prototypes import GeneratorError, parse_prototypes  # noqa: E402
from text import wrap  # noqa: E402

HEADER = """
typedef int MPI_Comm; typedef int (MPI_Fake_function)(int a, int b);
int MPI_Send(const void *buf, int count, MPI_Comm comm) __attribute__((pointer_with_type_tag(MPI,1,3)));
int MPI_Send_c(const void *buf, MPI_Count count,
               MPI_Comm comm) ;
int MPI_Isend(const void *buf, int count, MPI_Comm comm, MPI_Request *request);
int MPI_Isend_c(const void *buf, MPI_Count count, MPI_Comm comm, MPI_Request *request);
int MPI_Group_range_incl(MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup);
int MPI_Comm_spawn(const char *command, char *argv[], int maxprocs);
int MPI_Pcontrol(const int level, ...);
int MPI_Finalize(void);
double MPI_Wtime(void);
int MPIX_Comm_agree(MPI_Comm comm, int *flag);
extern int MPI_T_enum_get_item(MPI_T_enum enumtype, int indx);
int PMPI_Send(const void *buf, int count, MPI_Comm comm);
"""
TABLE = """// comment
MPI(Send, twin, Isend)
MPI(Isend, post)
MPI(Group_range_incl, pass)
MPI(Comm_spawn, hook)
MPI(Pcontrol, pass)
MPI(Finalize, hook, always)
MPI(Wtime, pass)
MPI(Of_another_version, direct)
MPIX(Comm_agree, direct)
MPI_T(enum_get_item, pass)
"""


def joined(table=TABLE, header=HEADER):
    with tempfile.NamedTemporaryFile("w", suffix=".def") as file:
        file.write(table)
        file.flush()
        functions = join(parse_table(file.name), parse_prototypes(header), "table")
    return {function.name: function for function in functions}


class Prototypes(unittest.TestCase):
    def setUp(self):
        self.found = parse_prototypes(HEADER)

    def test_names(self):
        self.assertEqual(len(self.found), 11)
        self.assertNotIn("PMPI_Send", self.found)
        self.assertNotIn("MPI_Fake_function", self.found)

    def test_parameters(self):
        self.assertEqual(
            self.found["MPI_Send"].parameter_list(),
            ["const void* buf", "int count", "MPI_Comm comm"],
        )
        self.assertEqual(self.found["MPI_Group_range_incl"].parameter_list()[2], "int ranges[][3]")
        self.assertEqual(self.found["MPI_Comm_spawn"].parameter_list()[1], "char* argv[]")

    def test_no_parameters_and_any(self):
        self.assertEqual(self.found["MPI_Finalize"].parameter_list(), [])
        self.assertEqual(self.found["MPI_Pcontrol"].parameter_list(), ["const int level", "..."])

    def test_results(self):
        self.assertEqual(self.found["MPI_Wtime"].result, "double")
        self.assertEqual(self.found["MPI_T_enum_get_item"].result, "int")

    def test_short_names(self):
        self.assertEqual(self.found["MPIX_Comm_agree"].short_name(), "X_Comm_agree")
        self.assertEqual(self.found["MPI_T_enum_get_item"].short_name(), "T_enum_get_item")


class Table(unittest.TestCase):
    def fails(self, words, **changed):
        with self.assertRaises(GeneratorError) as caught:
            joined(**changed)
        self.assertIn(words, str(caught.exception))
        self.assertEqual(len(str(caught.exception).splitlines()), 1)

    def test_a_row_covers_the_large_count_form(self):
        functions = joined()
        self.assertEqual(functions["MPI_Send_c"].kind, "twin")
        self.assertEqual(functions["MPI_Send_c"].columns, ("MPI_Isend_c",))
        self.assertEqual(functions["MPI_Send"].columns, ("MPI_Isend",))

    def test_a_row_of_another_version_is_skipped(self):
        self.assertNotIn("MPI_Of_another_version", joined())

    def test_a_function_without_a_row_fails(self):
        self.fails(
            "declares 1 functions that the table does not name: MPI_Wtime",
            table=TABLE.replace("MPI(Wtime, pass)\n", ""),
        )

    def test_a_function_left_alone_is_named_but_has_no_entry(self):
        self.assertNotIn(
            "MPI_Wtime", joined(table=TABLE.replace("MPI(Wtime, pass)", "MPI(Wtime, leave)"))
        )

    def test_bad_rows_fail(self):
        self.fails("unknown", table=TABLE + "MPI(Wtick, served)\n")
        self.fails("columns", table=TABLE + "MPI(Recv, twin)\n")
        self.fails("twice", table=TABLE + "MPI(Send, pass)\n")
        self.fails("not a row", table=TABLE + "Send, pass\n")
        self.fails("unknown", table=TABLE + "MPI(Recv)\n")
        self.fails("column 3 of a hook", table=TABLE + "MPI(Probe, hook, mesages)\n")


class Needs(unittest.TestCase):
    def needs(self, row, prototype="int MPI_X(const void *buf, int count, MPI_Comm comm);\n"):
        function = joined(table=TABLE + row + "\n", header=HEADER + prototype)["MPI_X"]
        return needs_of(function)

    def test_a_message_comes_where_we_wait_better_or_something_is_to_be_seen(self):
        post = ("messages", "counting", "message_plans", "error_handlers")
        self.assertEqual(self.needs("MPI(X, post)"), post)
        self.assertEqual(self.needs("MPI(X, twin, Isend)"), (*post[:3], "sleepers", post[3]))
        self.assertEqual(self.needs("MPI(X, hook, messages)"), ("messages", "counting", "error_handlers"))

    def test_a_wait_comes_from_the_first_virtual_request_on(self):
        self.assertIn("virtual_requests", self.needs("MPI(X, requests, wait_one)"))

    def test_what_blocks_comes_where_blocked_calls_sleep(self):
        for name in ("Recv", "Mprobe", "Waitall", "Win_flush_all", "Comm_split_type", "Bcast"):
            row = f"MPI({name}, hook, messages)" if name != "Bcast" else "MPI(Bcast, collective, Isend)"
            prototype = f"int MPI_{name}(const void *buf, int count, MPI_Comm comm);\n"
            table = "".join(line for line in TABLE.splitlines(True) if f"MPI({name}," not in line)
            header = "".join(line for line in HEADER.splitlines(True) if f"MPI_{name}(" not in line)
            function = joined(table=table + row + "\n", header=header + prototype)[f"MPI_{name}"]
            self.assertEqual("sleepers" in needs_of(function), name != "Recv", name)
        for row in ("MPI(X, requests, test_one)", "MPI(X, post)", "MPI(X, ordered)"):
            self.assertNotIn("sleepers", self.needs(row))

    def test_what_has_a_path_of_ours_always_comes(self):
        self.assertIsNone(self.needs("MPI(X, collective, Isend, a_path)"))
        self.assertIsNone(self.needs("MPI(X, post, a_path)"))
        self.assertIsNone(self.needs("MPI(X, direct)"))
        self.assertIsNone(self.needs("MPI(X, hook)"))

    def test_what_has_none_comes_where_calls_are_queued_or_twins_run(self):
        self.assertEqual(
            self.needs("MPI(X, collective, Isend)"),
            ("queue", "twins", "counting", "message_plans", "sleepers", "error_handlers"),
        )
        self.assertEqual(self.needs("MPI(X, ordered)"), ("queue", "counting", "error_handlers"))
        self.assertEqual(self.needs("MPI(X, pass)"), ("error_handlers",))


class Text(unittest.TestCase):
    def test_lines_are_short_and_whole(self):
        items = [f"parameter_{number}" for number in range(40)]
        for head in ("    return real.X(", "int " + "f" * 60 + "("):
            text = wrap(head, items, ");")
            self.assertLessEqual(max(len(line) for line in text.splitlines()), 100)
            self.assertEqual(re.findall(r"parameter_\d+", text), items)


class Installed(unittest.TestCase):
    @unittest.skipUnless(len(sys.argv) > 3, "no generated folder given")
    def test_every_pair_of_the_library_has_an_entry(self):
        listing = subprocess.run(
            ["nm", "-D", "--defined-only", sys.argv[3]], capture_output=True, text=True, check=True
        ).stdout
        defined = set(re.findall(r"\b[TWi] (P?MPIX?_\w+)$", listing, re.MULTILINE))
        pairs = {name for name in defined if "P" + name in defined}
        names = (Path(sys.argv[2]) / "mpi_calls.cpp").read_text(encoding="utf-8")
        entries = set(re.findall(r"\"(MPIX?_\w+)\"", names))
        self.assertGreater(len(pairs), 500)
        self.assertEqual(sorted(pairs - entries), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
