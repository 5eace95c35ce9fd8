# SPDX-License-Identifier: BSD-3-Clause
"""Which of the tests that CTest knows a run takes. Pure: names, labels and a seed in, names out.

A *group* of tests is what stands before the first colon of their names, a *stratum* of a group the tests that differ
only in the word after the last comma (one case of the MPI battery in all modes).
"""

import math
import random

# Of each stratum in a run; at least one test. What is not named here: all.
SHARES = {
    "mpi": 1 / 12,
    "many": 1 / 12,
    "nodes": 1 / 12,
    "bits": 1 / 4,
    "emulated": 1 / 4,
    "arm": 1 / 5,
    "mpich": 1 / 8,
    "mpi4py": 1 / 9,
    "thread": 1 / 6,
    "address": 1 / 6,
    "mpich4": 1 / 2,
    "mpich5": 1 / 2,
    "ofi": 1 / 2,
    "intel": 1 / 2,
}
STRATA_BY_MODE = ("mpi",)
# Groups that cost much (a build with sanitizers, a library that is fetched, an emulated CPU): of each row one in a run.
ALTERNATIVES = (
    ("mpich4", "mpich5", "ofi", "intel"),
    ("thread", "address"),
    ("emulated", "arm", "mpi4py"),
    ("bench", "tune"),
)
# Data races are found here or nowhere: always where the sanitizer of threads is drawn.
ALWAYS = {
    "thread": (
        "thread: offload_queue",
        "thread: offload_slots",
        "thread: offload_thread",
        "thread: offload_jobs",
        "thread: node_butterfly",
    )
}

# A path of the repository begins so -> the labels whose tests it can break, a regular expression of CTest's.
BROKEN_BY = (
    ("src/base/", "base|kernels|offload|datatype|node|pipeline|intercept|info|tune|docs"),
    ("src/kernels/", "kernels|offload|datatype|node|pipeline|emulated"),
    ("src/library/", "library|offload|node|datatype|pipeline|intercept|tools"),
    ("src/offload/", "offload|node|datatype|pipeline|intercept"),
    ("src/datatype/", "datatype|node|pipeline"),
    ("src/pipeline/", "node|pipeline|info"),
    ("src/intercept/", "intercept|offload|tools"),
    ("src/team/", "node"),
    ("include/vecmpi/", "node|demo"),
    ("tools/bench/", "bench|tune|docs"),
    ("tools/tune/", "tune|docs"),
    ("tools/info/", "info|docs"),
    ("tools/man/", "packaging|docs"),
    ("examples/", "demo"),
    ("packaging/", "packaging"),
    ("cmake/", "packaging|structure"),
    ("docs/upstream/programs/", "libraries"),
    ("docs/", "docs"),
    ("README.md", "docs"),
    ("CHANGELOG.md", "packaging|docs"),
    ("scripts/libraries.sh", "libraries"),
    ("scripts/conformance.sh", "conformance"),
    ("scripts/clients.sh", "clients"),
    ("scripts/applications.sh", "applications"),
    ("scripts/emulated.sh", "emulated"),
    ("scripts/", "demo|packaging|lint"),
    ("tests/bench/", "bench"),
    ("tests/clients/", "clients"),
    ("tests/applications/", "applications"),
    ("tests/conformance/", "conformance"),
    ("tests/ctest/", "structure"),
    ("tests/demo/", "demo"),
    ("tests/intercept/", "intercept"),
    ("tests/kernels/", "kernels"),
    ("tests/libraries/", "libraries"),
    ("tests/mpi/", "mpi"),
    ("tests/packaging/", "packaging"),
    ("tests/preload/", "preload"),
    ("tests/structure/", "structure"),
    ("tests/tune/", "tune"),
    ("tests/unit/", "unit"),
    ("tests/upstream/", "libraries"),
)


def group_of(name):
    return name.split(":")[0]


def stratum_of(name):
    group = group_of(name)
    return name.rsplit(", ", 1)[0] if group in STRATA_BY_MODE else group


def draw(names, share, seed):
    """The part of one stratum that a seed takes: at least one."""
    number = max(1, math.ceil(share * len(names) - 1e-9))
    return random.Random(seed).sample(sorted(names), number)


def groups_left_out(groups, seed):
    """Of each row of alternatives among these groups all but the one that this seed takes."""
    rows = [[group for group in row if group in groups] for row in ALTERNATIVES]
    return {group for row in rows if row for group in set(row) - {random.Random(f"{seed} {row}").choice(row)}}


def rotating(names, seed):
    """The tests of a run among those with the label `rotating`."""
    left_out = groups_left_out({group_of(name) for name in names}, seed)
    strata = {}
    for name in names:
        strata.setdefault(stratum_of(name), []).append(name)
    taken = set()
    for stratum, members in strata.items():
        group = group_of(members[0])
        if group in left_out:
            continue
        taken.update(draw(members, SHARES.get(group, 1), f"{seed} {stratum}"))
        taken.update(set(ALWAYS.get(group, ())) & set(members))
    return taken


def choose(labels, mode, seed):
    """labels: name -> set of labels. mode: quick, default or all."""
    if mode == "all":
        return set(labels)
    taken = {name for name, words in labels.items() if "quick" in words}
    if mode == "default":
        taken |= {name for name, words in labels.items() if "default" in words}
        taken |= rotating([name for name, words in labels.items() if "rotating" in words], seed)
    return taken


def labels_broken_by(paths):
    """The labels of what changed files can break, as a regular expression; empty where they break nothing by name."""
    words = set()
    for path in paths:
        for beginning, labels in BROKEN_BY:
            if path.startswith(beginning):
                words.update(labels.split("|"))
                break
    return "|".join(sorted(words))
