# SPDX-License-Identifier: BSD-3-Clause
"""Figures of the shape of src: how much there is, and what is longer than it should be.

    figures.py [--build DIR] [--list] [ROOT]

--build: a build folder, for the lines that are generated. --list: names what is counted as well. Tables (*.def) and
generated files are no sources here. It asserts nothing: check_includes.py and check_names.py do. It reads text, not
C++: a function is what stands in braces behind a parameter list, outside of other functions.
"""

import argparse
import re
from collections import defaultdict
from pathlib import Path

import check_includes
import check_names

LONG_FUNCTION, LONG_FILE = 40, 350
SOURCES = {".cpp", ".hpp", ".h", ".S", ".py"}
CPP = {".cpp", ".hpp"}


def is_function(head):
    """Do these words before a brace end a function's head?"""
    if "(" not in head or head[0] in ("class", "struct", "union", "enum", "namespace", "extern"):
        return False
    outside = check_names.without_brackets(head, "(", ")")
    return "=" not in outside or "operator" in head


def functions_of(text):
    """(name, first line, number of lines) of each function, its head included."""
    text = check_names.blank(text)
    scopes = []  # what a brace belongs to: "scope", or the function that begins there
    head, began = [], None
    for token in check_names.TOKEN.finditer(text):
        word = token[0]
        if word == "{":
            if any(isinstance(scope, tuple) for scope in scopes) or not head or not is_function(head):
                scopes.append("scope")
            else:
                name = next((before for before, after in zip(head, head[1:], strict=False) if after == "("), "?")
                scopes.append((name, began))
            head, began = [], None
        elif word == "}":
            scope = scopes.pop() if scopes else "scope"
            if isinstance(scope, tuple):
                name, start = scope
                yield name, 1 + text.count("\n", 0, start), 1 + text.count("\n", start, token.start())
            head, began = [], None
        elif word == ";" and head.count("(") == head.count(")"):
            head, began = [], None
        else:
            began = token.start() if began is None else began
            head.append(word)


def booleans_of(text, name):
    """Members of type bool of a class, atomic ones among them."""
    body = re.search(rf"^class {name} \{{(.*?)^\}};", check_names.blank(text), re.DOTALL | re.MULTILINE)
    return re.findall(r"^    (?:std::atomic<bool>|bool) (\w+)(?:\{| =|;)", body[1], re.MULTILINE) if body else []


def types_of_one_name(root):
    """Last parts of names that several types of src have, in whatever namespace."""
    found, _ = check_names.definitions_below(root, ["src"])
    by_last = defaultdict(set)
    for name in found:
        by_last[name.split("::")[-1]].add(name)
    return sorted(" ".join(sorted(names)) for last, names in by_last.items() if len(names) > 1 and "<" not in last)


def collect(root, build):
    """(figure, what is counted: a number, or a list of names)."""
    files = {path: path.read_text(encoding="utf-8") for path in sorted(root.glob("src/**/*")) if path.suffix in SOURCES}
    lines = {path.relative_to(root).as_posix(): text.count("\n") for path, text in files.items()}
    yield "lines of src", sum(lines.values())
    if build:
        generated = [path for path in (build / "generated").glob("**/*") if path.is_file()]
        yield "lines generated", sum(path.read_text(encoding="utf-8").count("\n") for path in generated)
    long = [
        f"{path.relative_to(root)}:{line} {name}: {length}"
        for path, text in files.items()
        if path.suffix in CPP
        for name, line, length in functions_of(text)
        if length > LONG_FUNCTION
    ]
    yield f"functions over {LONG_FUNCTION} lines", long
    yield f"files over {LONG_FILE} lines", [f"{name}: {count}" for name, count in lines.items() if count > LONG_FILE]
    engine = (root / "src/offload/engine.hpp").read_text(encoding="utf-8")
    yield "booleans of Engine", booleans_of(engine, "Engine")
    yield "names that several types have", types_of_one_name(root)
    broken = check_includes.check_tree(root)
    yield "includes that point up", [problem for problem in broken if "may not include" in problem]
    yield "insides of foreign folders included", [problem for problem in broken if "by its door" in problem]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("--build", type=Path)
    parser.add_argument("--list", action="store_true", help="name what is counted")
    options = parser.parse_args()
    for figure, counted in collect(options.root, options.build):
        print(f"{figure:38} {counted if isinstance(counted, int) else len(counted):6}")
        if options.list and not isinstance(counted, int):
            print("".join(f"    {name}\n" for name in counted), end="")


if __name__ == "__main__":
    main()
