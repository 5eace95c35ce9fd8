#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes what CTest reads: each row of table.py, each Catch2 case, each case of the MPI battery in each mode, each
scenario of tests/preload and each file of unit tests with each sanitizer, as a test with labels.

Runs at the end of a build, since programs list their cases themselves.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests" / "mpi"))
sys.dont_write_bytecode = True

import run as battery  # noqa: E402
import table  # noqa: E402
from cases import AREAS, CASES  # noqa: E402
from table import Test  # noqa: E402

CASE = re.compile(r'\bTEST_CASE\s*\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)(?:,\s*"([^"]*)")?')
LONG_TAGS = ("[cost]", "[long]")  # cases that take more than a second or two
NODES = {2: (3, 4), 3: (5, 7)}  # number of nodes -> of ranks
NODES_CASES = (
    "collectives:blocking",
    "collectives:mixed",
    "small_collectives:random",
    "small_collectives:ahead",
    "small_collectives:free",
    "small_collectives:last",
    "small_collectives:inside",
    "unlike_ranks",
    "threads_comms",
)
NODES_MODES = ("off", "on", "hierarchical-on")
MANY_RANKS_MODES = ("ring", "halving-on", "trees")


# ---- Catch2 ----------------------------------------------------------------------------------------------


def cases_in(folder):
    """Name of a case -> stem of its file and tags, from the sources."""
    found = {}
    for path in sorted(folder.glob("*.cpp")):
        for match in CASE.finditer(path.read_text()):
            name = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', match[1]))
            found[name.replace('\\"', '"').replace("\\\\", "\\")] = (path.stem, match[2] or "")
    return found


def catch_argument(name):
    """The name as Catch2's command line wants it."""
    return re.sub(r"([\\,\[*])", r"\\\1", name)


def catch_tests(program, folder, group, area=None):
    """A case is one test. Its area is that of its file, BASE_noun.cpp, where none is given."""
    # Catch2 2 ends with the number of cases. Catch2 3 has other options, and refuses those of 2 on standard error.
    for words in (("--list-test-names-only",), ("--list-tests", "--verbosity", "quiet")):
        listed = subprocess.run([program, *words], capture_output=True, text=True, check=False)
        if names := [line for line in listed.stdout.splitlines() if line.strip()]:
            break
    else:
        raise SystemExit(f"discover.py: {program} lists no tests")
    cases = cases_in(folder)
    for name in names:
        if name not in cases:
            raise SystemExit(f"discover.py: no TEST_CASE of {folder} is called '{name}'")
        stem, tags = cases[name]
        cost = "default" if any(tag in tags for tag in LONG_TAGS) else "quick"
        yield Test(f"{group}: {name}", (str(program), catch_argument(name)), (area or stem.split("_")[0], group), cost)


# ---- MPI programs -------------------------------------------------------------------------------------------


def battery_command(*arguments):
    return (
        "python3",
        "-B",
        "{source}/tests/mpi/run.py",
        "--library",
        "{build}/libvecmpi.so",
        "--build-dir",
        "{tests}/mpi",
        "--plain-cache",
        "{tests}/plain",
        *arguments,
    )


def distinct(cases):
    """Cases of one name (on one rank, on several) are one test."""
    return list({case.name: case for case in cases}.values())


def modes_of(name):
    every = battery.default_options()
    return [
        mode
        for mode in battery.MODES
        if any(battery.rank_numbers(every, case, mode, 1) for case in CASES if case.name == name)
    ]


def battery_tests():
    for case in distinct(CASES):
        for mode in modes_of(case.name):
            yield Test(
                f"mpi: {case.name}, {mode}",
                battery_command("--case", case.name, "--modes", mode, "--loop", str(case.loop)),
                ("mpi", *AREAS[case.program]),
                "rotating" if case.loop == 1 else "long",
                600 * case.loop,
            )
    for case in distinct(case for case in CASES if case.program == "collectives"):
        for mode in MANY_RANKS_MODES:
            yield Test(
                f"many: {case.name}, {mode}",
                battery_command("--case", case.name, "--modes", mode, "--ranks", "7,9", "--timeout", "120"),
                ("mpi", "pipeline"),
                "rotating",
                600,
            )


def nodes_tests():
    """MPI and vecmpi see two or three nodes.

    There plain MPICH 4.0.2 crashes in an MPI_Reduce in place whose root is not the first rank of its node, and fails
    `refused`.
    """
    for nodes, ranks in NODES.items():
        for name in NODES_CASES:
            if not any(set(case.ranks) & set(ranks) for case in CASES if case.name == name):
                continue
            for mode in (mode for mode in NODES_MODES if mode in modes_of(name)):
                yield Test(
                    f"nodes: {nodes}, {name}, {mode}",
                    battery_command(
                        "--nodes",
                        str(nodes),
                        "--case",
                        name,
                        "--modes",
                        mode,
                        "--where-plain-passes",
                        "--ranks",
                        ",".join(map(str, ranks)),
                    ),
                    ("mpi", "nodes", *AREAS[name.split(":")[0]]),
                    "rotating",
                    600,
                )


def preload_tests():
    script = SOURCE / "tests" / "preload" / "run.sh"
    names = subprocess.run([script, "--list"], capture_output=True, text=True, check=True).stdout.splitlines()
    for name in names:
        cost = "default" if name == "VECMPI=off on one rank" else "quick"  # which takes 12 s
        yield Test(
            f"preload: {name}",
            (str(script), "--programs", "{tests}/preload/programs", "{build}/libvecmpi.so", name),
            ("preload", "intercept"),
            cost,
            timeout=300,  # several runs, each with a limit in run.sh, which says what hangs
        )


# ---- sanitizers, parts ------------------------------------------------------------------------------------------


def sanitizer_tests():
    stems = sorted({stem for stem, _ in cases_in(SOURCE / "tests" / "unit").values()})
    for word in table.SANITIZED:
        yield table.sanitizer_build(word)
        for stem in stems:
            if not re.fullmatch(table.SANITIZED[word], stem):
                yield table.sanitized(word, stem)


def lines_of(path):
    return [line for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]


def part_tests(folder):
    """The lists that scripts/conformance.sh and scripts/clients.sh are given, a file for each part."""
    folder.mkdir(parents=True, exist_ok=True)
    suite = lines_of(SOURCE / "tests" / "conformance" / "subset.txt")
    for part in range(table.MPICH_PARTS):
        text = "\n".join(suite[part :: table.MPICH_PARTS]) + "\n"
        (folder / f"mpich-{part + 1}.txt").write_text(text)
    for module in lines_of(SOURCE / "tests" / "clients" / "mpi4py_subset.txt"):
        (folder / f"mpi4py-{module}.txt").write_text(module + "\n")
        yield table.mpi4py_module(module)


# ---- CTest's language --------------------------------------------------------------------------------------------


def bracket(text):
    return f"[==[{text}]==]"


def in_ctest(test, folders):
    name = bracket(test.name)
    words = " ".join(bracket(word.format(**folders)) for word in test.command)
    properties = {
        "LABELS": bracket(";".join(dict.fromkeys((*test.areas, test.cost)))),
        "TIMEOUT": str(test.timeout),
        "SKIP_RETURN_CODE": "77",
        "PROCESSORS": str(test.cpus),
        "WORKING_DIRECTORY": bracket(str(SOURCE)),
    }
    if test.needs:
        properties["FIXTURES_REQUIRED"] = test.needs
    if test.makes:
        properties["FIXTURES_SETUP"] = test.makes
    if test.alone:
        properties["RESOURCE_LOCK"] = test.alone
    settings = " ".join(f"{key} {value}" for key, value in properties.items())
    return f"add_test({name} {words})\nset_tests_properties({name} PROPERTIES {settings})\n"


def all_tests(build):
    tests = build / "tests"
    found = list(table.TESTS)
    found += catch_tests(tests / "unit" / "vecmpi_unit", SOURCE / "tests" / "unit", "unit")
    found += catch_tests(
        tests / "intercept" / "vecmpi_handlers", SOURCE / "tests" / "intercept", "handlers", "intercept"
    )
    abi = tests / "standard_abi" / "vecmpi_standard_abi"
    if abi.exists():  # -DVECMPI_STANDARD_ABI=OFF has none
        found += catch_tests(abi, SOURCE / "tests" / "standard_abi", "standard ABI", "library")
    found += catch_tests(tests / "demo" / "test_demo_parts", SOURCE / "tests" / "demo", "demo parts", "demo")
    for more in (battery_tests(), nodes_tests(), preload_tests(), sanitizer_tests(), part_tests(tests / "parts")):
        found += more
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, required=True)
    build = parser.parse_args().build.resolve()
    folders = {"build": str(build), "source": str(SOURCE), "tests": str(build / "tests")}
    tests = all_tests(build)
    names = [test.name for test in tests]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise SystemExit(f"discover.py: two tests of one name: {', '.join(sorted(twice))}")
    text = "# Written by tests/ctest/discover.py\n" + "".join(in_ctest(test, folders) for test in tests)
    (build / "tests" / "discovered.cmake").write_text(text)


if __name__ == "__main__":
    main()
