# SPDX-License-Identifier: BSD-3-Clause
"""Checks that a type's name means one type: no class, struct, union or enum is defined in two files of a program.

    check_names.py [ROOT]      prints one line a violation; exit status 1 where there is one
    check_names.py --selftest  shows that it finds what it should

Two types of one qualified name break the one definition rule. The linker then keeps one body of each inline function
and template of the two, std::vector<Step> for example, and nothing tells. Anonymous namespaces and functions keep their
types to themselves, so what stands there is not looked at.

The library is src and include. A folder of PROGRAMS is linked to it or runs beside it, and may not define its names
again. It reads text, not C++: a macro that makes a type would escape it.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

import small_trees

LIBRARY = ("include", "src")
PROGRAMS = (
    "tests/unit",
    "tests/kernels",
    "tests/intercept",
    "tests/mpi",
    "tools/info",
    "tools/tune",
    "tools/bench/ranks",
    "examples",
)
SOURCES = {".cpp", ".hpp", ".h"}

BLANKED = re.compile(
    r"//[^\n]*|/\*.*?\*/"
    r"|R\"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)\""
    r"|\"(?:\\.|[^\"\\\n])*\"|(?<!\w)'(?:\\.|[^'\\\n])+'"
    r"|^[ \t]*#(?:[^\n\\]|\\.)*",
    re.DOTALL | re.MULTILINE,
)
TOKEN = re.compile(r"\w+|::|[^\w\s]")
TYPE_WORDS = {"class", "struct", "union", "enum"}
NO_NAMES = {"alignas", "final", "__attribute__"}


def blank(text):
    """The text without comments, strings, characters and directives, line by line as it was."""
    return BLANKED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def without_brackets(words, opening, closing):
    """The words outside of brackets."""
    depth, kept = 0, []
    for word in words:
        depth += word == opening
        if depth == 0:
            kept.append(word)
        elif word == closing:
            depth -= 1
    return kept


def behind_template(head):
    """The words behind `template <...>`."""
    while head[:1] == ["template"]:
        depth = 0
        for end, word in enumerate(head):  # noqa: B007 - used behind the loop
            depth += (word == "<") - (word == ">")
            if word == ">" and depth == 0:
                break
        head = head[end + 1 :]
    return head


def type_of(head):
    """The name of the type that these words before a brace define; None where they define none."""
    head = behind_template(head)
    while head[:1] and head[0] in ("typedef", "static", "inline", "constexpr", "const"):
        head = head[1:]
    if not head or head[0] not in TYPE_WORDS or "=" in head:
        return None
    head = without_brackets(without_brackets(head, "[", "]"), "(", ")")
    if ":" in head:  # what it is derived from, or an enum's type
        head = head[: head.index(":")]
    name = "".join(word for word in head if word not in TYPE_WORDS | NO_NAMES)
    return name if re.fullmatch(r"\w+(::\w+)*(<.*>)?", name) else None


def namespace_of(head):
    """The name of the namespace that begins here, "" for an anonymous one, None where none begins."""
    head = head[1:] if head[:1] == ["inline"] else head
    if head[:1] != ["namespace"]:
        return None
    return "".join(without_brackets(head[1:], "[", "]"))


class Unbalanced(Exception):
    pass


def types_of(text):
    """(line, qualified name) for each type that the text defines in named namespaces and in the global one."""
    text = blank(text)
    scopes = []  # names of namespaces; None: what stands in there is nobody else's
    head, line, at = [], 1, 0
    for token in TOKEN.finditer(text):
        word = token[0]
        if word == "}":
            if not scopes:
                raise Unbalanced
            scopes.pop()
            head = []
        elif word == "{":
            space, hidden = namespace_of(head), None in scopes
            if not hidden and space is None and (name := type_of(head)):
                line += text.count("\n", at, token.start())
                at = token.start()
                yield line, "::".join([*(scope for scope in scopes if scope), name])
            is_transparent = head == ["extern"]  # "C"
            scopes.append("" if is_transparent else space or None)
            head = []
        elif word == ";":
            head = []
        else:
            head.append(word)
    if scopes:
        raise Unbalanced


def definitions_below(root, folders):
    """name -> [(file, line)]; files whose braces do not match."""
    found, unbalanced = defaultdict(list), []
    paths = [path for folder in folders for path in sorted((root / folder).glob("**/*"))]
    for path in (path for path in paths if path.suffix in SOURCES):
        name = path.relative_to(root).as_posix()
        try:
            for line, defined in types_of(path.read_text(encoding="utf-8")):
                found[defined].append((name, line))
        except Unbalanced:
            unbalanced.append(name)
    return found, unbalanced


def check_tree(root):
    library, unbalanced = definitions_below(root, LIBRARY)
    programs = [definitions_below(root, [folder]) for folder in PROGRAMS]
    problems = {f"{name}: its braces do not match: not looked at" for name in unbalanced}
    for own, unbalanced in [({}, []), *programs]:
        problems |= {f"{name}: its braces do not match: not looked at" for name in unbalanced}
        for name in library.keys() | own.keys():
            first, *others = library.get(name, []) + own.get(name, [])
            problems |= {
                f"{file}:{line}: {name} is another type's name: {first[0]}:{first[1]}"
                for file, line in others
                if file != first[0]  # two in one file: of an #if and its #else, or the compiler tells
            }
    return sorted(problems)


# ---- self-test -----------------------------------------------------------------------------------------

# file, its text, the name that is complained of there or None
CASES = [
    ("src/datatype/pack_step.hpp", "namespace vecmpi {\nstruct Step {\n    int a;\n};\n}\n", None),
    ("src/pipeline/schedule.hpp", "namespace vecmpi {\nstruct Step {};\n}  // vecmpi\n", "vecmpi::Step"),
    ("src/pipeline/a.cpp", "namespace vecmpi {\nnamespace {\nstruct Step {};\n}\n}\n", None),
    ("src/pipeline/b.cpp", "namespace vecmpi {\nvoid f() {\n    struct Step {};\n}\n}\n", None),
    ("src/pipeline/c.cpp", "namespace vecmpi {\nstruct Step;\nenum class Order : int;\n}\n", None),
    ("src/pipeline/d.cpp", "namespace vecmpi {\nclass Run {\n    struct Step {};\n};\n}\n", None),
    ("src/pipeline/e.cpp", "namespace other {\nstruct Step {};\n}\nstruct Step {};\n", None),
    ("src/pipeline/f.cpp", '// namespace vecmpi { struct Step {\n"struct Step {" R"x(\n{)x" \'{\'\n', None),
    ("src/pipeline/g.cpp", "#define BEGIN namespace vecmpi { \\\n    struct Step {\nint x = 1\'000;\n", None),
    ("src/offload/a.hpp", "namespace vecmpi::inner {\nenum class Order : int { up, down };\n}\n", None),
    (
        "src/offload/b.cpp",
        "namespace vecmpi {\nnamespace inner {\nenum Order { up };\n}\n}\n",
        "vecmpi::inner::Order",
    ),
    ("src/offload/c.hpp", "namespace vecmpi {\ntemplate <class T, class... R>\nclass Call : Base<T> {};\n}\n", None),
    (
        "src/offload/d.hpp",
        "namespace vecmpi {\ntemplate <class T>\nclass alignas(64) Call final {};\n}\n",
        "vecmpi::Call",
    ),
    ("src/offload/e.hpp", "namespace vecmpi {\ntemplate <>\nclass Call<int> {};\n}\n", None),
    (
        "src/offload/f.hpp",
        "namespace vecmpi {\ntemplate <>\nstruct [[nodiscard]] Call<int> : Base {};\n}\n",
        "vecmpi::Call<int>",
    ),
    ("src/offload/g.cpp", "namespace vecmpi {\nstruct stat look(int n) {\n}\nCall call = {1};\n}\n", None),
    ("src/offload/h.cpp", 'extern "C" {\nstruct outer {};\n}\n', None),
    ("src/offload/i.cpp", "typedef struct outer {\n} outer;\n", "outer"),
    ("src/offload/j.cpp", "#if A\nstruct twice {};\n#else\nstruct twice {};\n#endif\n", None),
    ("src/offload/k.cpp", "namespace vecmpi {\n", "braces"),
    ("src/base/api.hpp", "namespace vecmpi {\nstruct Settings {};\n}\n", None),
    ("tests/unit/a.cpp", "namespace vecmpi {\nunion Settings {\n};\n}\n", "vecmpi::Settings"),
    ("tests/unit/b.cpp", "struct Case {};\n", None),
    ("tests/unit/c.cpp", "struct Case {};\n", "Case"),
    ("tests/kernels/a.cpp", "struct Case {};\n", None),
]


def selftest():
    return small_trees.failures(CASES, check_tree, said=" {} ")


def main():
    if sys.argv[1:] == ["--selftest"]:
        sys.exit(1 if selftest() else 0)
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    problems = check_tree(root)
    print("\n".join(problems) if problems else "each name of a type means one type.")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
