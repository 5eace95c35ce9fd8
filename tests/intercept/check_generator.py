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

from emit_calls import parameters_struct  # noqa: E402
from emit_handlers import class_of, handler_row  # noqa: E402
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
MPI(Pcontrol, real)
MPI(Finalize, hook, always)
MPI(Wtime, real)
MPI(Of_another_version, direct)
MPIX(Comm_agree, direct)
MPI_T(enum_get_item, real)
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
        self.assertEqual(functions["MPI_Send_c"].twin.name, "MPI_Isend_c")
        self.assertEqual(functions["MPI_Send"].twin.name, "MPI_Isend")

    def test_a_row_of_another_version_is_skipped(self):
        self.assertNotIn("MPI_Of_another_version", joined())

    def test_a_function_without_a_row_fails(self):
        self.fails(
            "declares 1 functions that the table does not name: MPI_Wtime",
            table=TABLE.replace("MPI(Wtime, real)\n", ""),
        )

    def test_a_function_left_alone_is_named_but_has_no_entry(self):
        self.assertNotIn(
            "MPI_Wtime", joined(table=TABLE.replace("MPI(Wtime, real)", "MPI(Wtime, leave)"))
        )

    def test_bad_rows_fail(self):
        self.fails("unknown", table=TABLE + "MPI(Wtick, served)\n")
        self.fails("columns", table=TABLE + "MPI(Recv, twin)\n")
        self.fails("twice", table=TABLE + "MPI(Send, pass)\n")
        self.fails("not a row", table=TABLE + "Send, pass\n")
        self.fails("unknown", table=TABLE + "MPI(Recv)\n")
        self.fails("other columns", table=TABLE + "MPI(Probe, hook, mesages)\n")
        self.fails("other columns", table=TABLE + "MPI(Start, direct, always)\n")

    def test_rows_that_do_not_fit_the_prototype_fail(self):
        self.fails("no error code", table=TABLE.replace("MPI(Wtime, real)", "MPI(Wtime, pass)"))
        self.fails("makes no request", table=TABLE.replace("MPI(Comm_spawn, hook)", "MPI(Comm_spawn, post)"))
        of_another_name = HEADER.replace("void *buf, int count, MPI_Comm", "void *buf, int number, MPI_Comm", 1)
        self.fails("its twin MPI_Isend takes 'count'", header=of_another_name)


class Handlers(unittest.TestCase):
    def class_of(self, row, prototype="int MPI_X(const void *buf, int count, MPI_Comm comm, MPI_Request *request);\n"):
        functions = joined(table=TABLE + row + "\n", header=HEADER + prototype)
        return class_of(functions["MPI_X"])

    def test_columns_name_functions_of_their_folders(self):
        self.assertEqual(self.class_of("MPI(X, post)"), "Post<calls::X>")
        self.assertEqual(
            self.class_of("MPI(X, post, bcast, ibcast)"), "Post<calls::X, pipeline::bcast, pipeline::node::ibcast>"
        )
        self.assertEqual(self.class_of("MPI(X, direct, note)"), "Direct<calls::X, offload::note>")
        self.assertEqual(self.class_of("MPI(X, requests, wait_one)"), "Requests<calls::X, offload::wait_one>")

    def test_a_twin_is_a_function_of_the_same_form(self):
        functions = joined()
        self.assertEqual(class_of(functions["MPI_Send"]), "Twin<calls::Send, calls::Isend>")
        self.assertEqual(class_of(functions["MPI_Send_c"]), "Twin<calls::Send_c, calls::Isend_c>")
        self.assertEqual(
            self.class_of("MPI(X, collective, Isend, bcast)"),
            "BlockingCollective<calls::X, calls::Isend, pipeline::bcast>",
        )

    def test_words_stand_around_the_class(self):
        self.assertEqual(self.class_of("MPI(X, ordered, blocks)"), "Blocking<Ordered<calls::X>>")
        self.assertEqual(
            self.class_of("MPI(X, hook, messages, blocks)"), "Blocking<ForMessages<Hook<calls::X, serve_X>>>"
        )
        self.assertEqual(
            self.class_of("MPI(X, hook, messages, looks)"), "Looking<ForMessages<Hook<calls::X, serve_X>>>"
        )
        self.assertEqual(self.class_of("MPI(X, hook, again)"), "LookingAgain<Hook<calls::X, serve_X>>")
        self.assertEqual(self.class_of("MPI(X, twin, Isend, typed)"), "Typed<Twin<calls::X, calls::Isend>>")
        self.assertEqual(self.class_of("MPI(X, post, typed)"), "Typed<Post<calls::X>>")
        self.assertEqual(self.class_of("MPI(X, hook, calls_back)"), "Hook<calls::X, serve_X>")

    def test_what_is_always_the_library_s_has_no_handler(self):
        functions = joined()
        self.assertEqual(handler_row(functions["MPI_Wtime"]), "NO_HANDLER(Wtime)\n")
        row = handler_row(functions["MPI_Group_range_incl"])
        self.assertEqual(row, "HANDLER(Group_range_incl, Pass<calls::Group_range_incl>)\n")


class Parameters(unittest.TestCase):
    def test_an_operation_has_all_but_the_request(self):
        self.assertEqual(
            parameters_struct(joined()["MPI_Isend"]),
            "template <> struct Parameters<calls::Isend> {\n"
            "    static constexpr size_t members = 3;\n"
            "    const void* buf; int count; MPI_Comm comm;\n"
            "    [[gnu::always_inline]] static Parameters of(const void* buf, int count, MPI_Comm comm,\n"
            "                                                const auto&...) noexcept {\n"
            "        return {buf, count, comm};\n"
            "    }\n"
            "    int issue(MPI_Request* mpi_request) noexcept {\n"
            "        return real.Isend(buf, count, comm, mpi_request);\n"
            "    }\n"
            "};\n",
        )

    def test_arrays_are_pointers_and_a_matched_message_a_value(self):
        prototype = "int MPI_X(const int recvcounts[], MPI_Message *message, MPI_Request *request);\n"
        functions = joined(table=TABLE + "MPI(X, post)\n", header=HEADER + prototype)
        self.assertIn("const int* recvcounts; MatchedMessage message;", parameters_struct(functions["MPI_X"]))


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
        names = (Path(sys.argv[2]) / "library/api/mpi_calls.def").read_text(encoding="utf-8")
        entries = set(re.findall(r"VECMPI_CALL\(\w+, (MPIX?_\w+)\)", names))
        self.assertGreater(len(pairs), 500)
        self.assertEqual(sorted(pairs - entries), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
