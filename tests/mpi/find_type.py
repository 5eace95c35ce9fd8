#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Which call of random_types differs from the plain library's, and how its types are made.

For a line that tests/mpi/run.py has shown: `find_type.py --seed S --from TYPE --modes MODE`. Exit status 1 where one is
found.
"""

import argparse
import re
import sys

sys.dont_write_bytecode = True
import run as battery  # noqa: E402
from cases import Case  # noqa: E402

CALL = re.compile(r"type (\d+) call (\d+) ")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--from", dest="first", type=int, default=0, help="type to begin with")
    parser.add_argument("--types", type=int, default=100)
    parser.add_argument("--modes", default="auto", help="one mode of run.py")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--build-dir", default=None)
    parser.add_argument("--library", default=None)
    return parser.parse_args()


def explained(options, ours, preloads, settings):
    """Lines of each rank."""
    words = ("--from", str(ours.first), "--explain", "1")
    case = Case("random_types", str(ours.types), more=words)
    outcome = battery.run(options, case, ours.ranks, ours.seed, preloads, settings)
    lines = [[] for _ in range(ours.ranks)]
    for line in outcome.output.splitlines():
        if found := re.match(r"rank (\d+): (.*)", line):
            lines[int(found[1])].append(found[2])
    if outcome.status != 0:
        print(f"exit status {outcome.status}: {outcome.errors[:2000]}")
    return lines


def calls(lines):
    return [line for line in lines if CALL.match(line)]


def making(lines, number):
    """What stands between the last call of the type before and the first of this one."""
    first = next(i for i, line in enumerate(lines) if line.startswith(f"type {number} call "))
    begin = max((i for i in range(first) if CALL.match(lines[i])), default=-1)
    return lines[begin + 1 : first]


def main():
    ours = arguments()
    words = [f"--{name}={value}" for name, value in (("build-dir", ours.build_dir), ("library", ours.library)) if value]
    options = battery.parser_of_arguments().parse_args(words)
    plain = explained(options, ours, [battery.yield_library(options)], {})
    preloaded = explained(options, ours, [options.library], battery.MODES[ours.modes])
    differs = False
    for rank in range(ours.ranks):
        pairs = zip(calls(plain[rank]), calls(preloaded[rank]))
        pair = next((pair for pair in pairs if pair[0] != pair[1]), None)
        if pair is None:
            continue
        differs = True
        print(f"rank {rank}, plain:     {pair[0]}\nrank {rank}, preloaded: {pair[1]}")
        print("\n".join(making(plain[rank], CALL.match(pair[0])[1])))
    print("" if differs else "no difference")
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main())
