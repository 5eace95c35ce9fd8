# SPDX-License-Identifier: BSD-3-Clause
"""Checks the shape of src: includes point down only, through doors, names stand in their folder's namespace, MPI is
called through `real.` alone, and only src/library names what is inside an MPI library.

    check_includes.py [ROOT]      prints one line a violation; exit status 1 where there is one
    check_includes.py --selftest  shows that each rule bites

The order is intercept > team > pipeline > datatype > offload > library > kernels > base.
A foreign folder is included by its door src/<folder>/api.hpp, or by a part of the door, src/<folder>/api/<noun>.hpp.
Folders inside a layer are found by their path from src, and do not know each other: src/pipeline/node includes
"pipeline/operands.hpp", but nothing of src/pipeline/schedules. The names of src/pipeline stand in vecmpi::pipeline or
in a namespace inside it. It reads text, not C++: a macro that pastes names together would escape it.
"""

import re
import sys
from pathlib import Path

import small_trees

RANK = {
    "base": 0,
    "kernels": 1,
    "library": 2,
    "offload": 3,
    "datatype": 4,
    "pipeline": 5,
    "team": 6,
    "intercept": 7,
}
# What programs include: C, and the folder that implements it.
PUBLIC = {"vecmpi/team.h": "team"}
# What is generated into a folder, for itself alone.
GENERATED = {"intercept/mpi_handlers.def": "intercept", "intercept/mpi_handlers.hpp": "intercept"}
# Below src/library nobody knows MPI.
LOWEST_WITH_MPI = RANK["library"]
SOURCES = {".cpp", ".hpp", ".h", ".c", ".inc"}


def without_comments(text):
    """The text with comments and the insides of strings blanked, line by line as it was."""

    def blank(match):
        token = match[0]
        if token.startswith("/"):
            return re.sub(r"[^\n]", " ", token)
        return token[0] + " " * (len(token) - 2) + token[-1]

    # An include's name is a string too: it is read before this.
    return re.sub(
        r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'",
        blank,
        text,
        flags=re.DOTALL,
    )


def layer_of(path, root):
    """The first folder that the file stands in; None right in src."""
    parts = path.relative_to(root / "src").parts[:-1]
    return parts[0] if parts else None


def check_include(layer, path, root, target):
    """None, or what is wrong with this include of the file `path` in src/<layer>."""
    if target == "mpi.h":
        return None if RANK[layer] >= LOWEST_WITH_MPI else "knows nothing of MPI"
    if target in PUBLIC:
        return None if layer == PUBLIC[target] else "is for programs"
    if target in GENERATED:
        return None if layer == GENERATED[target] else f"is for {GENERATED[target]} alone"
    other = target.split("/")[0]
    if re.fullmatch(r"[\w/]+?/api(/\w+)?\.(hpp|def)", target) and other in RANK:
        return None if layer == other or RANK[other] < RANK[layer] else f"{layer} may not include {other}"
    if other == layer:
        return check_inner_include(path.relative_to(root / "src").parts[1:-1], Path(target).parts[1:-1], root, target)
    if "/" in target:
        return "another folder is included by its door <folder>/api.hpp only"
    return None if (path.parent / target).exists() else "no file of this folder"


def check_inner_include(own, others, root, target):
    """The same of an include in the same layer; own, others: the folders of both files inside it."""
    if own and others and own[0] != others[0]:
        return f"{own[0]} and {others[0]} do not know each other"
    return None if (root / "src" / target).exists() else "no file of this layer"


def check_includes(path, root, layer, text):
    for number, line in enumerate(text.splitlines(), start=1):
        match = re.match(r"\s*#\s*include\s*([<\"])([^>\"]+)[>\"]", line)
        if match is None:
            continue
        ours = match[1] == '"' or match[2].startswith("vecmpi/") or match[2] == "mpi.h"
        problem = check_include(layer, path, root, match[2]) if ours else None
        if problem:
            yield f"{path.relative_to(root)}:{number}: #include {match[2]}: {problem}"


def check_namespaces(path, root, layer, text):
    """The house's vocabulary alone is put into vecmpi itself, by doors."""
    own = "vecmpi::" + layer
    in_door = path.name == "api.hpp" or path.parent.name == "api"
    for number, line in enumerate(without_comments(text).splitlines(), start=1):
        opened = re.match(r"namespace (vecmpi\S*) \{", line)
        if opened is None or opened[1] == own or opened[1].startswith(own + "::"):
            continue
        if opened[1] != "vecmpi" or not in_door:
            yield f"{path.relative_to(root)}:{number}: namespace {opened[1]}: names of src/{layer} stand in {own}"


def mpi_functions(root):
    """Names of all MPI functions, from the function table."""
    table = (root / "src/intercept/mpi_functions.def").read_text(encoding="utf-8")
    names = {
        f"{prefix}_{name}"
        for prefix, name in re.findall(r"^(MPI|MPI_T|MPIX)\((\w+),", table, re.MULTILINE)
    }
    return names | {f"{name}_c" for name in names}


def check_calls(path, root, functions, text):
    for number, line in enumerate(without_comments(text).splitlines(), start=1):
        for name in re.findall(r"\bP?(MPIX?_\w+)", line):
            if name in functions:
                yield f"{path.relative_to(root)}:{number}: {name}: call MPI through `real.` only"


# Of an MPI library's inside, in code and in strings: names of MPICH and UCX, and versions.
INSIDE = re.compile(r"\b(MPIR_|MPID|ucp_|uct_|[Yy]aksa|UCX_|MPICH_NUMVERSION)\w*|\b\w*mpich_[0-9]\w*|MPICH [0-9]")


def check_inside(path, root, layer, text):
    if layer == "library":
        return
    code = re.sub(r"//[^\n]*|/\*.*?\*/", lambda match: re.sub(r"[^\n]", " ", match[0]), text, flags=re.DOTALL)
    for number, line in enumerate(code.splitlines(), start=1):
        for match in INSIDE.finditer(line):
            yield f"{path.relative_to(root)}:{number}: {match[0]}: only src/library knows the inside of an MPI library"


def check_tree(root):
    functions = mpi_functions(root)
    problems = []
    for path in (file for file in sorted(root.glob("src/**/*")) if file.suffix in SOURCES):
        layer = layer_of(path, root)
        if layer is None:
            continue
        text = path.read_text(encoding="utf-8")
        if layer not in RANK:
            problems.append(f"{path.relative_to(root)}: src/{layer} is no layer of the order")
            continue
        problems += check_includes(path, root, layer, text)
        problems += check_namespaces(path, root, layer, text)
        problems += check_calls(path, root, functions, text)
        problems += check_inside(path, root, layer, text)
    return problems


# ---- self-test -----------------------------------------------------------------------------------------

# file, its text, a word of the complaint or None
CASES = [
    (
        "src/intercept/a.cpp",
        '#include "pipeline/api.hpp"\n#include "intercept/mpi_handlers.hpp"\n',
        None,
    ),
    ("src/pipeline/a.cpp", '#include "offload/api.hpp"\n#include "a.hpp"\n', None),
    ("src/pipeline/a.hpp", "#include <mpi.h>\n#include <vector>\n", None),
    (
        "src/offload/a.cpp",
        "// MPI_Send(\n/* PMPI_Send */ int x = real.Send != nullptr; // MPI_Wait\n",
        None,
    ),
    ("src/offload/b.cpp", 'const char* name = "MPI_Send"; MPI_Comm comm = MPI_COMM_WORLD;\n', None),
    ("src/base/a.cpp", '#include "base/api/settings.def"\n', None),
    ("src/base/api/a.hpp", "namespace vecmpi {\nusing namespace base;\n}\n", None),
    ("src/pipeline/node/a.cpp", '#include "datatype/api.hpp"\nnamespace vecmpi::pipeline::node {\n', None),
    ("src/pipeline/node/b.cpp", '#include "pipeline/a.hpp"\n', None),
    ("src/pipeline/node/c.cpp", '#include "pipeline/z.hpp"\n', "no file of this layer"),
    ("src/pipeline/node/a.hpp", "\n", None),
    ("src/pipeline/schedules/a.cpp", '#include "pipeline/node/a.hpp"\n', "do not know each other"),
    ("src/datatype/f.cpp", '#include "pipeline/node/api.hpp"\n', "datatype may not include pipeline"),
    ("src/pipeline/i.cpp", '#include "pipeline/node/a.hpp"\n', None),
    ("src/team/i.cpp", '#include "pipeline/node/api/butterfly.hpp"\n', None),
    ("src/team/j.cpp", '#include "pipeline/node/a.hpp"\n', "by its door"),
    ("src/pipeline/k.cpp", "namespace vecmpi {\n", "stand in vecmpi::pipeline"),
    ("src/pipeline/l.cpp", "namespace vecmpi::offload {\n", "stand in vecmpi::pipeline"),
    ("src/kernels/a.cpp", "namespace vecmpi::kernels::scalar {\n", None),
    ("src/offload/c.cpp", '#include "pipeline/api.hpp"\n', "offload may not include pipeline"),
    ("src/team/a.cpp", '#include "vecmpi/team.h"\n', None),
    ("src/offload/f.cpp", '#include "vecmpi/team.h"\n', "is for programs"),
    ("src/team/b.cpp", '#include "vecmpi/crew.h"\n', "by its door"),
    (
        "src/pipeline/d.cpp",
        '#include "intercept/mpi_handlers.hpp"\n',
        "is for intercept alone",
    ),
    ("src/kernels/c.cpp", '#include "library/api/mpi_parameters.hpp"\n', "kernels may not include library"),
    ("src/kernels/d.cpp", "#include <mpi.h>\n", "knows nothing of MPI"),
    ("src/base/api.hpp", '#include "offload/api.hpp"\n', "base may not include offload"),
    ("src/pipeline/e.cpp", '#include "../offload/engine.hpp"\n', "by its door"),
    ("src/pipeline/f.cpp", '#include "engine.hpp"\n', "no file of this folder"),
    ("src/pipeline/g.cpp", '#include "offload/engine.hpp"\n', "by its door"),
    ("src/offload/d.cpp", "int rc = MPI_Send_c(buf);\n", "MPI_Send_c: call MPI through"),
    ("src/offload/e.cpp", "auto f = &PMPI_Wait;\n", "MPI_Wait: call MPI through"),
    ("src/network/a.cpp", "\n", "no layer"),
    ("src/library/a.cpp", 'void* f = dlsym(library, "MPIR_Err_return_comm"); bool library_is_mpich_4();\n', None),
    ("src/offload/g.cpp", "// as yaksa does in MPICH 4.0, by ucp_worker_progress\nint mpich;\n", None),
    ("src/offload/h.cpp", 'getenv("MPIR_CVAR_X");\n', "MPIR_CVAR_X: only src/library"),
    ("src/datatype/e.cpp", "ucp_dt_destroy(type);\n", "ucp_dt_destroy: only src/library"),
    ("src/pipeline/h.cpp", "if (library_is_mpich_4()) return;\n", "library_is_mpich_4: only src/library"),
    ("src/intercept/b.cpp", 'strstr(version, "MPICH 5.0");\n', "MPICH 5: only src/library"),
]


def selftest():
    table = "MPI(Send, twin, Isend)\nMPI(Wait, requests, wait_one)\n"
    return small_trees.failures(CASES, check_tree, others=[("src/intercept/mpi_functions.def", table, None)])


def main():
    if sys.argv[1:] == ["--selftest"]:
        sys.exit(1 if selftest() else 0)
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    problems = check_tree(root)
    print(
        "\n".join(problems)
        if problems
        else "includes point down, doors are used, MPI is called through real."
    )
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
