# SPDX-License-Identifier: BSD-3-Clause
"""Self tests of what checks the shape of a tree: shown a few files, it must find what is wrong in them."""

import tempfile
from pathlib import Path


def failures(cases, check_tree, said="{}", others=()):
    """How many cases come out otherwise; prints them.

    A case is a file's name, its text, and what is wrong in it, or None.
    said: how a problem of that file has it in its text. others: files that stand beside, as cases.
    """
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text, _ in [*cases, *others]:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        problems = check_tree(root)
    for name, _, expected in cases:
        found = [problem for problem in problems if problem.startswith(name + ":")]
        as_expected = len(found) == 1 and said.format(expected) in found[0] if expected else not found
        if not as_expected:
            failed += 1
            print(f"FAIL {name}: expected {expected}, found {found}")
    print(f"selftest: {len(cases) - failed} of {len(cases)} cases")
    return failed
