#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks what the documents say against what there is: links, options, settings, paths, identifiers of files, reasons,
messages, examples, manual pages.

    check_docs.py --build BUILD ROOT   prints one line a problem; exit status 1 where there is one
    check_docs.py --selftest           shows that each rule bites

It reads Markdown as text: code is what stands between backticks, in fences, or four blanks from the left. Options are
looked for behind the names of our tools and scripts only, so a command of somebody else's is not judged.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import unittest
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

FENCE = re.compile(r"^\s*```")
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
NAME = re.compile(r"\bVECMPI_[A-Z][A-Z0-9_]*\b")
PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*\.(?:cpp|hpp|py|sh|def|h|c|md|svg|cmake|txt|map|in)")
IDENTIFIER = re.compile(r"(?:(?:enum class|struct|class) )?([A-Za-z_]\w*(?:::\w+)*)(?:\(\))?")
# `identifier` ... (`path`; `identifier` in `path`; a row of a table whose last column is "where".
IN_BRACKETS = re.compile(r"`([^`\n]+)`[^`.;:()|]*\(`([^`\n]+)`")
IN_FILE = re.compile(r"`([^`\n]+)`\s+(?:in|of)\s+`([^`\n]+)`")
TABLE_OF_PLACES = re.compile(r"^\|.*\| *where *\|\n((?:\|.*\n?)+)", re.MULTILINE)
ROW_OF_PLACE = re.compile(r"^\|(.*)\| *`([^`\n]+)` *\|$", re.MULTILINE)
REASON = re.compile(r"\b(?:decline|ran)_[a-z_]+\b")

# Options and files of others that the documents name by themselves; an example of a misspelt name.
OF_OTHERS = {"--export", "--pid", "--cap-add", "--cpus"}
FILES_OF_OTHERS = {"mpi.h", "hwy/highway.h", "xxhash.h"}
MISSPELT = {"VECMPI_OFLOAD"}
STARTED_BY_OTHERS = ("vecmpi-bench-", "vecmpi-tune-")  # programs that answer no --help
# What a script takes stands in its source.
SCRIPTS = ("preload.sh", "lab.sh", "demo.sh", "check.sh", "emulated.sh", "conformance.sh", "clients.sh",
           "libraries.sh", "lint.sh", "odr.sh", "release.sh", "run.py", "check_docs.py", "pictures.py")
# What they are given is a command of its own, with options of its own.
WRAPPERS = ("vecmpi-preload", "preload.sh", "vecmpi-run")
PROGRAMS_OF_EXAMPLES = re.compile(r"add_(?:executable|example)\((\w+)")


@dataclass
class Facts:
    """What there is."""

    files: set = field(default_factory=set)  # relative, with slashes
    options: dict = field(default_factory=dict)  # tool or script -> options
    measurements: dict = field(default_factory=dict)  # of vecmpi-bench -> options
    names: set = field(default_factory=set)  # that begin with VECMPI_
    settings: set = field(default_factory=set)  # those of them that the library reads
    reasons: set = field(default_factory=set)
    messages: list = field(default_factory=list)  # of the library, longest fixed part of each

    def all_options(self):
        return set().union(OF_OTHERS, *self.options.values(), *self.measurements.values())


# ---- Markdown -----------------------------------------------------------------------------------------


def code_of(text):
    """(line number, code, whether it is a span) for each span and each line of code."""
    in_fence = False
    for number, line in enumerate(text.splitlines(), start=1):
        if FENCE.match(line):
            in_fence = not in_fence
        elif in_fence or line.startswith("    "):
            yield number, line, False
        else:
            yield from ((number, span, True) for span in SPAN.findall(line))


def slugs_of(text):
    headings = re.findall(r"^#+ +(.+?) *$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def resolve(name, target):
    """The file that a link of the file `name` leads to."""
    parts = []
    for part in [*PurePosixPath(name).parent.parts, *PurePosixPath(target).parts]:
        if part == "..":
            parts = parts[:-1] if parts else [".."]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def link_problems(name, text, facts, read):
    for number, line in enumerate(text.splitlines(), start=1):
        for link in LINK.findall(SPAN.sub("", line)):
            if re.match(r"[a-z]+:", link):
                continue
            target, _, anchor = link.partition("#")
            path = resolve(name, target) if target else name
            if path not in facts.files:
                yield number, f"{link}: no such file"
            elif anchor and anchor not in slugs_of(read(path)):
                yield number, f"{link}: no such heading"


# ---- options, names, paths, reasons ---------------------------------------------------------------------


def words_of(code):
    code = re.sub(r"(?:^|\s)#.*", "", code)
    return [word.strip("'\"()[]|,;:") for word in code.split()]


def options_after(tool, words):
    """Those of `words` that are the tool's own."""
    for word in words:
        if word == "--" or (tool in WRAPPERS and not word.startswith("-")):
            return
        if OPTION.fullmatch(word.partition("=")[0]) and not word.startswith("-D"):
            yield word.partition("=")[0]


def accepted(tool, words, facts):
    if tool != "vecmpi-bench":
        return facts.options[tool]
    if words and words[0] in facts.measurements:
        return facts.measurements[words[0]]
    return facts.options[tool].union(*facts.measurements.values())  # of any measurement


def option_problems(code, facts):
    words = words_of(code)
    places = [i for i, word in enumerate(words) if word.rpartition("/")[2] in facts.options]
    if not places:
        loose = OPTION.match(code.partition("=")[0].partition(" ")[0])
        if code.startswith("--") and loose and loose[0] not in facts.all_options():
            yield f"{loose[0]}: no tool has this option"
        return
    tool = words[places[0]].rpartition("/")[2]
    rest = words[places[0] + 1 :]
    for option in options_after(tool, rest):
        if option not in accepted(tool, rest, facts):
            yield f"{option}: {tool} has no such option"


def is_made_up(path):
    """A file that is made, or stands for any: build/x, FILE.svg, tests/.../x."""
    return path.startswith(("/", "~", "build/")) or "..." in path or re.search(r"(?<!\w)[A-Z]{4,}(?=[_./])", path)


def path_problems(name, code, facts):
    for word in words_of(code):
        if not PATH.fullmatch(word) or word in FILES_OF_OTHERS | facts.files or is_made_up(word):
            continue
        if resolve(name, word) in facts.files:
            continue
        if not any(file.endswith("/" + word) for file in facts.files):
            yield f"{word}: no such file"


def code_problems(name, text, facts):
    for number, code, is_span in code_of(text):
        yield from ((number, problem) for problem in option_problems(code, facts))
        if is_span:  # a command may name files that it makes
            yield from ((number, problem) for problem in path_problems(name, code, facts))


def word_problems(text, facts):
    for number, line in enumerate(text.splitlines(), start=1):
        for word in NAME.findall(line):
            if word not in facts.names | MISSPELT:
                yield number, f"{word}: no such setting"
        for word in REASON.findall(line):
            if word not in facts.reasons:
                yield number, f"{word}: no such counter"


# ---- identifiers, and the files that are said to have them ----------------------------------------------


def pairs_of(text):
    """(position, code, path) for each place that names a file beside what is in it."""
    for pattern in (IN_BRACKETS, IN_FILE):
        # A span may be the path of one pair and the code of the next.
        yield from ((match.start(), match[1], match[2]) for match in overlapping(pattern, text))
    for table in TABLE_OF_PLACES.finditer(text):
        for row in ROW_OF_PLACE.finditer(table[1]):
            yield from ((table.start(1) + row.start(), code, row[2]) for code in SPAN.findall(row[1]))


def overlapping(pattern, text):
    at = 0
    while match := pattern.search(text, at):
        yield match
        at = match.end(1) + 1


def pair_problems(text, facts, read):
    for position, code, path in pairs_of(text):
        identifier = IDENTIFIER.fullmatch(code)
        if not identifier or not PATH.fullmatch(path) or is_made_up(path) or is_pattern(code):
            continue
        if code.startswith("MPI_"):  # the program calls it
            continue
        files = [file for file in sorted(facts.files) if file == path or file.endswith("/" + path)]
        words = [set(re.findall(r"\w+", read(file))) for file in files]
        if files and not any(words_of_file.issuperset(identifier[1].split("::")) for words_of_file in words):
            yield text.count("\n", 0, position) + 1, f"{code}: {path} has no such name"


def is_pattern(code):
    """A name that stands for any: serve_NAME, enter_X."""
    return re.search(r"_[A-Z]+$", code)


def problems_of(name, text, facts, read):
    found = [
        *link_problems(name, text, facts, read),
        *code_problems(name, text, facts),
        *word_problems(text, facts),
        *pair_problems(text, facts, read),
    ]
    return [f"{name}:{number}: {problem}" for number, problem in sorted(found)]


# ---- troubleshooting, examples, manual pages -------------------------------------------------------------


def plain(text):
    return re.sub(r"\s+", " ", re.sub(r"[`*]", "", text))


def missing_from_troubleshooting(text, facts):
    text = plain(text)
    for message in facts.messages:
        if plain(message).strip() not in text:
            yield f"troubleshooting.md: nothing on the library's line '{message}'"
    for reason in sorted(facts.reasons):
        if reason.startswith("decline_") and reason not in text:
            yield f"troubleshooting.md: nothing on {reason}"


def examples_without_test(cmake, scripts):
    """scripts: texts of the tests that CTest knows."""
    for program in PROGRAMS_OF_EXAMPLES.findall(cmake):
        if program == "name":  # the function's own parameter
            continue
        if not any(re.search(rf"\b{program}\b", text) for text in scripts):
            yield f"examples: no test runs {program}"


def options_of_page(page):
    return {word for word in OPTION.findall(page.replace("\\-", "-")) if word.startswith("--")}


def page_problems(name, page, options):
    """options: of the tool that the page is about."""
    named, wanted = options_of_page(page), {word for word in options if word.startswith("--")}
    for option in sorted(wanted - named):
        yield f"{name}: does not name {option}"
    for option in sorted(named - wanted - OF_OTHERS):
        yield f"{name}: names {option}, which there is not"


def settings_missing_from(name, page, facts):
    for setting in sorted(facts.settings):
        if not re.search(rf"^\.B {setting}$", page, flags=re.MULTILINE):
            yield f"{name}: nothing on {setting}"


def groff_problems(path):
    run = subprocess.run(
        ["groff", "-ww", "-man", "-Tutf8", "-z", str(path)], capture_output=True, text=True, check=False
    )
    yield from run.stderr.splitlines()


# ---- what there is ----------------------------------------------------------------------------------------


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def fixed_part(message):
    """The longest part of a printf format that is printed as it is."""
    parts = re.split(r"%[-+ #0-9.]*(?:ll|z|l)?[a-z]", message)
    return max(parts, key=len).strip()


def messages_of(sources):
    literals = r'((?:"(?:\\.|[^"\\])*"\s*)+)'
    calls = rf'(?:log_line\(\s*LogLevel::\w+,|stop_job\([^;"]*|abort_with\([^;"]*|plan\.reason = )\s*{literals}'
    for text in sources:
        for found in re.findall(calls, text):
            message = fixed_part("".join(re.findall(r'"((?:\\.|[^"\\])*)"', found)))
            if len(message) > 8:
                yield message


def known_names(root, settings):
    texts = {
        "CMakeLists.txt": r"option\((\w+)",
        "cmake/find_mpich.cmake": r"set\((VECMPI_\w+) \"\" CACHE",
        "src/kernels/CMakeLists.txt": r"set\((VECMPI_\w+) \"\" CACHE",
        "src/base/setting_names.cpp": r'"(VECMPI_\w+)"',
        "include/vecmpi/team.h": r"\b(VECMPI_TEAM\w*)",
        "src/base/api/counters.def": r"(VECMPI_COUNTER)\(",
        "src/base/api/settings.def": r"(VECMPI_SETTING)\(",
    }
    found = [set(re.findall(pattern, (root / name).read_text("utf-8"))) for name, pattern in texts.items()]
    return settings.union(*found)


def files_below(root):
    paths = (path.relative_to(root) for path in root.rglob("*"))
    mine = (path for path in paths if not path.parts[0].startswith((".git", "build")))
    return {path.as_posix() for path in mine}


def options_known(root, build, files):
    tools = [path for path in build.glob("vecmpi-*") if not path.name.startswith(STARTED_BY_OTHERS)]
    help_of = {path.name: output_of(path, "--help") for path in tools if path.is_file()}
    help_of["vecmpi-preload"] = output_of(root / "scripts/preload.sh", "--help")
    help_of["vecmpi-run"] = output_of(root / "scripts/run.sh", "--help")
    help_of["applications.sh"] = output_of(root / "scripts/applications.sh", "--help")
    sources = {script: [name for name in files if name.endswith("/" + script)] for script in SCRIPTS}
    programs = PROGRAMS_OF_EXAMPLES.findall((root / "examples/CMakeLists.txt").read_text("utf-8"))
    of_examples = [name for name in files if re.match(r"examples/\w+\.(cpp|c)$", name)]
    sources |= dict.fromkeys(programs, of_examples)
    for program, names in sources.items():
        help_of[program] = "\n".join((root / name).read_text("utf-8") for name in names)
    return {tool: set(OPTION.findall(text)) for tool, text in help_of.items()}


def measurements_known(build):
    text = output_of(build / "vecmpi-bench", "--help")
    names = re.findall(r"^ {4}(\w+)(?: {2}|$)", text, flags=re.MULTILINE)
    return {name: set(OPTION.findall(output_of(build / "vecmpi-bench", name, "--help"))) for name in names}


def facts_of(root, build):
    table = (root / "src/base/api/settings.def").read_text("utf-8")
    settings = set(re.findall(r'VECMPI_SETTING\(\w+, "(\w+)"', table))
    counters = (root / "src/base/api/counters.def").read_text("utf-8")
    files = files_below(root)
    sources = [path.read_text("utf-8") for path in sorted(root.glob("src/**/*.cpp"))]
    return Facts(
        files=files,
        options=options_known(root, build, files),
        measurements=measurements_known(build),
        names=known_names(root, settings),
        settings=settings,
        reasons=set(re.findall(r"VECMPI_COUNTER\((\w+),", counters)),
        messages=sorted(set(messages_of(sources))),
    )


def tests_that_run(root):
    """Texts of the scripts that CTest is told of."""
    table = (root / "tests/ctest/table.py").read_text("utf-8")
    named = [name for name in re.findall(r"\btests/[\w/]+\.(?:sh|py)", table) if (root / name).exists()]
    return [(root / name).read_text("utf-8") for name in named]


def pages_problems(build, facts):
    options = dict(facts.options)
    options["vecmpi-bench"] = options["vecmpi-bench"].union(*facts.measurements.values())
    for path in sorted((build / "man").glob("*.[17]")):
        page = path.read_text("utf-8")
        if path.stem in options:
            yield from page_problems(path.name, page, options[path.stem])
        if path.name == "vecmpi.7":
            yield from settings_missing_from(path.name, page, facts)
        if not page.startswith(".so "):
            yield from groff_problems(path)


def check_tree(root, build):
    facts = facts_of(root, build)

    def read(name):
        return (root / name).read_text("utf-8")

    for name in sorted(file for file in facts.files if file.endswith(".md")):
        yield from problems_of(name, read(name), facts, read)
    yield from missing_from_troubleshooting(read("docs/troubleshooting.md"), facts)
    yield from examples_without_test(read("examples/CMakeLists.txt"), tests_that_run(root))
    yield from pages_problems(build, facts)


# ---- self-test ------------------------------------------------------------------------------------------

SOME = Facts(
    files={"README.md", "docs/guide.md", "src/base/log.cpp", "scripts/lab.sh", "docs/picture.svg"},
    options={
        "vecmpi-info": {"--json", "--help"},
        "vecmpi-bench": {"-h", "--help"},
        "vecmpi-preload": {"--help"},
        "lab.sh": {"-n", "-r"},
    },
    measurements={"post": {"--sizes", "--quick"}, "reduce": {"--plot"}},
    names={"VECMPI_WAIT", "VECMPI_MPICC"},
    settings={"VECMPI_WAIT"},
    reasons={"decline_small"},
    messages=["is wanted by others"],
)
GUIDE = "# User guide\n\n## What `x` does: now\n"


class Documents(unittest.TestCase):
    def expect(self, text, *problems, name="docs/guide.md"):
        found = problems_of(name, text, SOME, lambda path: GUIDE)
        self.assertEqual([line.partition(": ")[2] for line in found], list(problems))

    def test_links(self):
        self.expect("[a](../README.md) ![b](picture.svg) [c](#what-x-does-now) [d](https://x.org/y)")
        self.expect("[a](README.md)", "README.md: no such file")
        self.expect("![b](pictures.svg)", "pictures.svg: no such file")
        self.expect("[c](guide.md#what)", "guide.md#what: no such heading")
        self.expect("[a](docs/guide.md#what-x-does-now)", name="README.md")
        self.expect("`[a](nowhere.md)` is how a link is written")

    def test_options(self):
        self.expect("    build/vecmpi-bench post --sizes 8 --quick   # --nonsense\n")
        self.expect("`vecmpi-bench reduce --sizes 8`", "--sizes: vecmpi-bench has no such option")
        self.expect("`vecmpi-bench MEASUREMENT --sizes 8`, `vecmpi-bench --sizes 8`")
        self.expect("```\nvecmpi-info --jason\n```\n", "--jason: vecmpi-info has no such option")
        self.expect("`A=b scripts/lab.sh -n 4 -x -- ./app --own`", "-x: lab.sh has no such option")
        self.expect("`vecmpi-preload mpirun --any -n 4 ./app`, `mpirun --other -n 1 vecmpi-info --json`")
        self.expect("`--plot` draws, `--draw FILE` does not", "--draw: no tool has this option")
        self.expect("vecmpi-info --jason is no code here")

    def test_names_and_reasons(self):
        self.expect("`VECMPI_WAIT=spin -DVECMPI_MPICC=x`, VECMPI_ alone, `decline_small`")
        self.expect("VECMPI_WIAT", "VECMPI_WIAT: no such setting")
        self.expect("`decline_large`", "decline_large: no such counter")

    def test_paths(self):
        self.expect("`src/base/log.cpp`, `base/log.cpp`, `log.cpp`, `../README.md`, `/etc/x.txt`")
        self.expect("    lab.sh -n 2 -- ./made.py\n")
        self.expect("`mpi.h`, `FILE.svg`, `src/FOLDER/NAME.cpp`, `build/x.cmake`, `tests/.../x.sh`")
        self.expect("`src/base/lock.cpp`", "src/base/lock.cpp: no such file")


class Pairs(unittest.TestCase):
    def expect(self, text, *problems):
        sources = {"src/base/log.cpp": "void log_line() { Log::write(); }", "docs/guide.md": "`other`"}
        found = list(pair_problems(text, SOME, sources.__getitem__))
        self.assertEqual(found, [(number, f"{code}: base/log.cpp has no such name") for number, code in problems])

    def test_pairs(self):
        self.expect("`log_line` (`base/log.cpp`), `Log::write` of ours\n(`base/log.cpp`, more)")
        self.expect("`log_line()` in `base/log.cpp`")
        self.expect("calls\n`log_lines`\n(`base/log.cpp`)", (2, "log_lines"))
        self.expect("`Log::read` writes (`base/log.cpp`)", (1, "Log::read"))
        self.expect("`base/log.cpp` (`other` in `base/log.cpp`)", (1, "other"))
        self.expect("`other`. It writes (`base/log.cpp`); `other` and `log_line` (`base/log.cpp`)")
        self.expect("`a + b` (`base/log.cpp`), `serve_X` in `base/log.cpp`, `other` in `FILE.cpp`, `other` in `auto`")

    def test_tables(self):
        head = "| thing | where |\n|---|---|\n"
        self.expect(head + "| `log_line()`, once | `base/log.cpp` |\n| `MPI_Send` | `base/log.cpp` |")
        self.expect(head + "| a | b |\n| the log, `other` | `base/log.cpp` |\n", (4, "other"))
        self.expect(head + "| `other` | as in `base/log.cpp` |\n| `other` | `docs/guide.md` |")
        self.expect(head.replace("where", "run by") + "| `other` | `base/log.cpp` |")


class Rest(unittest.TestCase):
    def test_troubleshooting(self):
        text = "the CPU **is\nwanted** by `others`; `decline_small`"
        self.assertEqual(list(missing_from_troubleshooting(text, SOME)), [])
        self.assertEqual(len(list(missing_from_troubleshooting("decline_small", SOME))), 1)
        self.assertEqual(len(list(missing_from_troubleshooting("is wanted by others", SOME))), 1)

    def test_messages(self):
        source = """log_line(LogLevel::info,
                 "CPU %d is wanted by others, "
                 "so %zu rest", cpu);
        log_line(LogLevel::error, "%s", line); abort_with(name + " is not in " + library);
        stop_job(rank, 0, "settings differ"); plan.reason = "off: none";"""
        found = ["is wanted by others, so", "is not in", "settings differ", "off: none"]
        self.assertEqual(list(messages_of([source])), found)

    def test_examples(self):
        cmake = "add_executable(one a.c)\nadd_example(two)\nadd_executable(${name} b.c)\n"
        self.assertEqual(list(examples_without_test(cmake, ["run one; run two"])), [])
        problems = list(examples_without_test(cmake, ["run one; run twofold"]))
        self.assertEqual(problems, ["examples: no test runs two"])

    def test_pages(self):
        page = ".TP\n.B \\-\\-json\n.TP\n.B \\-\\-help\n.B VECMPI_WAIT\n"
        self.assertEqual(list(page_problems("x.1", page, SOME.options["vecmpi-info"])), [])
        problems = list(page_problems("x.1", page, {"--json", "--settings"}))
        self.assertEqual(problems, ["x.1: does not name --settings", "x.1: names --help, which there is not"])
        self.assertEqual(list(settings_missing_from("x.7", page, SOME)), [])
        self.assertEqual(len(list(settings_missing_from("x.7", "VECMPI_WAIT", SOME))), 1)

    def test_groff(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.1"
            path.write_text('.TH X 1 "" ""\n.SH NAME\nx \\- a page\n', "utf-8")
            self.assertEqual(list(groff_problems(path)), [])
            path.write_text('.TH X 1 "" ""\n.SH NAME\n.Bogus x\n', "utf-8")
            self.assertEqual(len(list(groff_problems(path))), 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--selftest", action="store_true")
    parser.add_argument("--build", type=Path, help="where the tools and the manual pages were built")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[2])
    options = parser.parse_args()
    if options.selftest:
        unittest.main(argv=[sys.argv[0]])
    if options.build is None:
        parser.error("--build is needed")
    problems = list(check_tree(options.root.resolve(), options.build.resolve()))
    print("\n".join(problems) if problems else "the documents say what there is.")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
