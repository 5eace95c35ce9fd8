# SPDX-License-Identifier: BSD-3-Clause
"""Prints input for MUMPS' dsimpletest: a convection-diffusion matrix on a grid of N x N x N points, not symmetric.

The right-hand side is that of the solution 1, 2, ... 7, 1, 2, ..., so that the output tells by itself whether it is
right.
"""
from __future__ import annotations

import sys


def neighbours(n: int, point: tuple[int, int, int]):
    """Index and value of each entry in the point's row."""
    yield (point[0] * n + point[1]) * n + point[2], 6.5
    for axis in range(3):
        for step, value in ((-1, -1.25), (1, -0.75)):
            other = [*point]
            other[axis] += step
            if 0 <= other[axis] < n:
                yield (other[0] * n + other[1]) * n + other[2], value


def solution(index: int) -> int:
    return 1 + index % 7


def lines(n: int):
    rows = [list(neighbours(n, (x, y, z))) for x in range(n) for y in range(n) for z in range(n)]
    yield str(len(rows))
    yield str(sum(map(len, rows)))
    for row, entries in enumerate(rows):
        yield from (f"{row + 1} {column + 1} {value}" for column, value in entries)
    for entries in rows:
        yield str(sum(value * solution(column) for column, value in entries))


if __name__ == "__main__":
    print("\n".join(lines(int(sys.argv[1]))))
