# SPDX-License-Identifier: BSD-3-Clause
"""Which tests there are, but for those that programs list themselves (discover.py): a row for each.

Costs, each a label of CTest:
  quick      in scripts/check.sh --quick, and in every run
  default    in every run but --quick
  rotating   a part of each group in every run, drawn by the run's seed (choose.py); all of them with --all
  long       with --all only
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Test:
    name: str  # "GROUP: WHAT", or "GROUP: WHAT, MODE": choose.py draws by group, or by what
    command: tuple  # {build}, {source} and {tests} (build/tests) stand for folders
    areas: tuple  # labels
    cost: str = "quick"
    timeout: int = 120  # seconds
    cpus: int = 1  # of two; a test of several ranks that wait asleep or yield counts as one
    needs: str = ""  # a fixture: the test that makes what this one needs
    makes: str = ""  # the fixture that this test is
    alone: str = ""  # no two tests with this word run at once


def python(path, *arguments):
    return ("python3", "-B", "{source}/" + path, *arguments)


def script(path, *arguments):
    return ("{source}/" + path, *arguments)


LINT = ("lint",)
SHAPE = ("structure",)

TESTS = [
    Test("lint: format", script("scripts/lint.sh", "format"), LINT),
    Test("lint: shell", script("scripts/lint.sh", "shell"), LINT),
    Test("lint: python", script("scripts/lint.sh", "python"), LINT, timeout=300),
    Test(
        "lint: tidy, some files",
        script("scripts/lint.sh", "tidy", "--sample", "8", "--jobs", "1", "--build", "{build}"),
        LINT,
        "default",
        600,
    ),
    Test("lint: tidy", script("scripts/lint.sh", "tidy", "--build", "{build}"), LINT, "long", 3600, cpus=2),
    Test("lint: lint.sh", script("tests/structure/test_lint.sh"), LINT),
    Test("structure: includes", python("tests/structure/check_includes.py", "{source}"), SHAPE),
    Test("structure: includes, selftest", python("tests/structure/check_includes.py", "--selftest"), SHAPE),
    Test("structure: names", python("tests/structure/check_names.py", "{source}"), SHAPE),
    Test("structure: names, selftest", python("tests/structure/check_names.py", "--selftest"), SHAPE),
    Test(
        "structure: documents",
        python("tests/structure/check_docs.py", "--build", "{build}", "{source}"),
        ("structure", "docs"),
    ),
    Test(
        "structure: documents, selftest", python("tests/structure/check_docs.py", "--selftest"), ("structure", "docs")
    ),
    Test(
        "documents: commands",
        python("tests/structure/check_commands.py", "--build", "{build}", "{source}"),
        ("docs", "demo"),
        "default",
        300,
    ),
    Test("documents: commands, selftest", python("tests/structure/check_commands.py", "--selftest"), ("docs",)),
    Test("structure: one definition", script("scripts/odr.sh", "{build}/odr"), SHAPE, "long", 1800, cpus=2),
    Test("structure: exported names", script("tests/structure/exported_names.sh", "{build}/libvecmpi.so"), SHAPE),
    Test(
        "structure: vector code",
        python(
            "tests/structure/check_vector_code.py",
            "{build}/libvecmpi.so",
            "{build}/libvecmpi_team.so",
            "{build}/vecmpi_kernel_check",
        ),
        ("structure", "kernels"),
    ),
    Test("structure: vector code, selftest", python("tests/structure/check_vector_code.py", "--selftest"), SHAPE),
    Test("structure: tests of CTest", python("tests/ctest/selftest.py"), SHAPE),
    Test("kernels: every instruction set", ("{build}/vecmpi_kernel_check",), ("kernels",)),
    Test(
        "intercept: generator", python("tests/intercept/check_generator.py", "{source}/src/intercept"), ("intercept",)
    ),
    Test(
        "info: vecmpi-info",
        script("tools/info/test_info.sh", "{build}/vecmpi-info", "{source}/docs/settings.md"),
        ("info", "docs"),
    ),
    Test("preload: run.sh", script("tests/preload/test_run_sh.sh", "{build}"), ("preload", "packaging")),
    Test("preload: preload.sh", script("tests/preload/test_preload_sh.sh", "{build}"), ("preload", "packaging")),
    Test(
        "demo: training",
        script("tests/demo/test_train_digits.sh", "{build}/examples/train_digits", "{build}/libvecmpi.so"),
        ("demo",),
        "default",
        300,
    ),
    Test("demo: demo.sh", script("scripts/demo.sh", "--quick"), ("demo",), "long", 1800, cpus=2),
    Test("demo: packages", script("tests/demo/test_packages.sh"), ("demo", "packaging")),
    Test("demo: thread teams", script("tests/demo/test_team_sum.sh", "{build}", "{source}"), ("demo", "node")),
    Test(
        "demo: datatypes",
        script("tests/demo/test_datatype_examples.sh", "{build}"),
        ("demo", "datatype"),
        "default",
        300,
    ),
    Test("demo: tool counters", script("tests/demo/test_tool_counters.sh", "{build}"), ("demo", "tools")),
    Test("demo: virtual hosts", script("tests/demo/test_lab.sh"), ("demo",), "default", 300),
    Test(
        "packaging: installed",
        script("tests/packaging/test_installed.sh", "{build}", "{source}"),
        ("packaging",),
        "default",
        300,
    ),
    Test("packaging: release", script("tests/packaging/test_release.sh", "{source}"), ("packaging",)),
    Test(
        "packaging: Debian package, preload scenarios",
        script("tests/packaging/test_debian_package.sh", "{build}", "{source}"),
        ("packaging", "preload"),
        "long",
        3600,
        cpus=2,
    ),
    Test(
        "packaging: recipes",
        script("tests/packaging/test_recipes.sh", "{build}", "{source}"),
        ("packaging",),
        "long",
        3600,
        cpus=2,
    ),
    Test("conformance: runner", python("tests/conformance/selftest.py"), ("conformance",)),
    Test("clients: runner", python("tests/clients/selftest.py"), ("clients",)),
    Test("applications: runner", python("tests/applications/selftest.py"), ("applications",)),
    Test(
        "applications: results",
        script(
            *("scripts/applications.sh", "--quick", "--hosts", "2"),
            *("--build", "{build}", "--out", "{build}/applications"),
        ),
        ("applications",),
        "long",
        3600,
        cpus=2,
    ),
    Test("libraries: runner", script("tests/libraries/test_libraries.sh"), ("libraries",)),
    Test("libraries: docs/upstream", script("tests/upstream/check.sh"), ("libraries",), "long", 900, cpus=2),
    Test(
        "bench: vecmpi-bench", script("tests/bench/test_bench.sh", "{build}/vecmpi-bench"), ("bench",), "rotating", 600
    ),
    Test("tune: vecmpi-tune", script("tests/tune/test_tune.sh", "{build}"), ("tune",), "rotating", 600),
]

# ---- the same bits whatever the settings -----------------------------------------------------------------

TESTS += [
    Test(
        f"bits: {ranks} ranks",
        python(
            "tests/mpi/reproducible.py",
            "--library",
            "{build}/libvecmpi.so",
            "--build-dir",
            "{tests}/mpi",
            "--ranks",
            str(ranks),
        ),
        ("pipeline", "mpi"),
        "rotating",
        300,
    )
    for ranks in (2, 3, 4, 5)
]

# ---- other CPUs ---------------------------------------------------------------------------------------------

EMULATED = script("scripts/emulated.sh", "--x86-64", "{build}/vecmpi_kernel_check")
X86 = ("qemu64", "Conroe", "Nehalem", "Haswell")
ARM = ("cortex-a72", "sve-128", "sve-256", "sve-512", "sve-2048")
TESTS += [
    Test(f"{group}: {cpu}", (*EMULATED, "--cpu", cpu), ("emulated", "kernels"), "rotating", 900, alone="emulated")
    for group, cpus in (("emulated", X86), ("arm", ARM))
    for cpu in cpus
]
TESTS += [
    Test(
        "arm: library",
        (*EMULATED, "--cpu", "library"),
        ("emulated", "kernels"),
        "long",
        900,
        cpus=2,
        alone="emulated",
    )
]

# ---- sanitizers: a build of the unit tests, and each of their sources as a test ---------------------------

# Word of tests/ctest/sanitized.sh -> the sources of tests/unit that it leaves out. thread: those of functions of one
# thread.
SANITIZED = {
    "thread": "(kernels|bench)_.*|pipeline_(algorithms|choice|cost|layout|schedule|segments)|datatype_(layout|plan)"
    "|base_(placement|profile|settings)"
    "|node_(arena|combining|reduction_run|way_choice)",
    "address": "bench_.*",
}


def sanitizer_build(word):
    return Test(
        f"{word}: build",
        script("tests/ctest/sanitized.sh", "{build}", word, SANITIZED[word]),
        ("sanitizers",),
        "rotating",
        900,
        cpus=2,
        makes=f"{word}_build",
    )


def sanitized(word, stem):
    area = stem.split("_")[0]
    return Test(
        f"{word}: {stem}",
        ("{build}/" + f"unit-{word}/tests/unit/vecmpi_unit", "-#", f"[#{stem}]~[cost]~[long]"),  # arithmetic alone
        ("sanitizers", area),
        "rotating",
        300,
        needs=f"{word}_build",
    )


# ---- what other people wrote --------------------------------------------------------------------------------

LIBRARIES = ("mpich4", "mpich5", "ofi", "intel")
# A library of MPI 3.1, without large counts: what rests on them.
MPI3_LIBRARY = "mpich3"
MPI3_CASES = ("p2p_random", "derived_types", "packing:columns", "packed_collectives", "node_blocks:random", "rma")
# The standard ABI: the programs of a few cases are built once more for it.
ABI_LIBRARIES = ("abi", "abi_ofi", "abi_intel")
ABI_CASES = ("p2p_random", "node_collectives:random", "packing")
LIBRARY_CASES = (
    "p2p_random",
    "many_requests",
    "error_handlers",
    "collectives:mixed",
    "small_collectives:random",
    "node_collectives:random",
    "packing:errors",
    "random_types",
    "callbacks",
    "rma",
    "later",
)
LIBRARY_TEST = script("scripts/libraries.sh", "--build", "{build}", "--out", "{build}/libraries")
TESTS += [
    Test(
        f"{library}: {case}",
        (*LIBRARY_TEST, "--only", library, "--cases", case, "--ranks", "2", "--modes", "off,on"),
        ("libraries", library),
        "rotating",
        300,
    )
    for library, cases in [(name, LIBRARY_CASES) for name in LIBRARIES]
    + [("abi", ABI_CASES), (MPI3_LIBRARY, MPI3_CASES)]
    for case in cases
]
TESTS += [
    Test(
        f"{library}: whole battery",
        (*LIBRARY_TEST, "--only", library, "--out", "{build}/libraries/whole"),
        ("libraries", library),
        "long",
        3600,
    )
    for library in (MPI3_LIBRARY, *LIBRARIES, *ABI_LIBRARIES)
]

MPICH_PARTS = 8
MPICH = script("scripts/conformance.sh", "--library", "{build}/libvecmpi.so")
TESTS += [
    Test(
        f"mpich: part {part}",
        (
            *MPICH,
            "--tests",
            f"{{tests}}/parts/mpich-{part}.txt",
            "--modes",
            "off,on",
            "--timeout",
            "60",
            "--out",
            f"{{build}}/conformance/part-{part}",
        ),
        ("conformance",),
        "rotating",
        1200,
        alone="mpich",
    )
    for part in range(1, MPICH_PARTS + 1)
]
MPICH_WHOLE = ("--jobs", "2", "--out")
MPICH_WHOLE_PARTS = 4
TESTS += [
    Test(
        "mpich: whole suite, plain",
        (*MPICH, "--modes", "none", *MPICH_WHOLE, "{build}/conformance/whole"),
        ("conformance",),
        "long",
        7200,
        cpus=2,
        makes="mpich_plain",
        alone="mpich",
    )
]
TESTS += [
    Test(
        f"mpich: whole suite {part}, {mode}",
        (
            *MPICH,
            *("--part", f"{part}/{MPICH_WHOLE_PARTS}", "--modes", mode),
            *("--plain-cache", "{build}/conformance/whole/plain.json"),
            *MPICH_WHOLE,
            f"{{build}}/conformance/whole-{part}",
        ),
        ("conformance",),
        "long",
        3600,
        cpus=2,
        needs="mpich_plain",
        alone="mpich",
    )
    for mode in ("off", "on", "segments", "traitless")
    for part in range(1, MPICH_WHOLE_PARTS + 1)
]
# The same for the standard ABI; which algorithm MPICH takes (testlist.cvar) is no matter of the ABI.
TESTS += [
    Test(
        f"mpich: standard ABI {part}",
        script(
            *("scripts/conformance.sh", "--abi", "--library", "{build}/libvecmpi_abi.so"),
            *("--lists", "testlist,testlist.dtp", "--part", f"{part}/{MPICH_WHOLE_PARTS}", "--modes", "off,on"),
            *("--timeout", "60"),
            *MPICH_WHOLE,
            f"{{build}}/conformance/abi-{part}",
        ),
        ("conformance",),
        "long",
        7200,
        cpus=2,
        alone="mpich",
    )
    for part in range(1, MPICH_WHOLE_PARTS + 1)
]
TESTS += [
    Test(
        "mpi4py_abi: whole suite",
        script(
            *("scripts/clients.sh", "--only", "mpi4py_abi", "--ranks", "2", "--modes", "off,on"),
            *("--library", "{build}/libvecmpi.so", "--out", "{build}/clients/mpi4py_abi"),
        ),
        ("clients",),
        "long",
        7200,
        cpus=2,
        alone="mpi4py",
    )
]


def mpi4py_module(module):
    return Test(
        f"mpi4py: {module.removesuffix('.py')}",
        script(
            "scripts/clients.sh",
            "--only",
            "mpi4py",
            "--tests",
            f"{{tests}}/parts/mpi4py-{module}.txt",
            "--ranks",
            "2",
            "--modes",
            "on",
            "--library",
            "{build}/libvecmpi.so",
            "--out",
            f"{{build}}/clients/{module}",
        ),
        ("clients",),
        "rotating",
        900,
        alone="mpi4py",
    )
