# SPDX-License-Identifier: BSD-3-Clause
"""Jacobi's method for Laplace's equation on a square, with mpi4py: a block of points and its halo on each rank.

As such programs are written: columns of the halo are a vector datatype, and the change of a step is an Allreduce. A
small problem is solved by one rank as well and must have the same bits. Knows nothing of vecmpi.
"""
from __future__ import annotations

import hashlib
import sys

import numpy
from mpi4py import MPI


def boundary(n: int) -> numpy.ndarray:
    """The whole square with x * y on its edge, zero inside."""
    line = numpy.linspace(0.0, 1.0, n + 2)
    square = numpy.zeros((n + 2, n + 2))
    square[0, :], square[-1, :] = 0.0, line
    square[:, 0], square[:, -1] = 0.0, line
    return square


def swept(block: numpy.ndarray) -> numpy.ndarray:
    return 0.25 * (block[:-2, 1:-1] + block[2:, 1:-1] + block[1:-1, :-2] + block[1:-1, 2:])


def own_part(n: int, parts: int, place: int) -> tuple[int, int]:
    return n * place // parts, n * (place + 1) // parts


class Grid:
    """This rank's block, with one line of its neighbours' points on each side."""

    def __init__(self, comm: MPI.Cartcomm, n: int):
        self.comm = comm
        rows, columns = (own_part(n, parts, place) for parts, place in zip(comm.dims, comm.coords))
        self.block = boundary(n)[rows[0] : rows[1] + 2, columns[0] : columns[1] + 2].copy()
        height, width = self.block.shape
        self.column = MPI.DOUBLE.Create_vector(height - 2, 1, width).Commit()
        self.up, self.down = comm.Shift(0, 1)
        self.left, self.right = comm.Shift(1, 1)

    def exchange(self) -> None:
        block, flat = self.block, self.block.reshape(-1)
        width = block.shape[1]
        row = [MPI.DOUBLE, width - 2]
        first, last = flat[width:], flat[-2 * width :]
        requests = [
            self.comm.Irecv([block[0, 1:-1], *row[::-1]], self.up),
            self.comm.Irecv([block[-1, 1:-1], *row[::-1]], self.down),
            self.comm.Irecv([first, 1, self.column], self.left),
            self.comm.Irecv([first[width - 1 :], 1, self.column], self.right),
            self.comm.Isend([block[1, 1:-1], *row[::-1]], self.up),
            self.comm.Isend([last[1:], *row[::-1]], self.down),
            self.comm.Isend([first[1:], 1, self.column], self.left),
            self.comm.Isend([first[width - 2 :], 1, self.column], self.right),
        ]
        MPI.Request.Waitall(requests)

    def step(self) -> float:
        """One sweep; returns the largest change on all ranks."""
        self.exchange()
        after = swept(self.block)
        change = numpy.array([numpy.abs(after - self.block[1:-1, 1:-1]).max()])
        self.block[1:-1, 1:-1] = after
        largest = numpy.empty(1)
        self.comm.Allreduce(change, largest, MPI.MAX)
        return float(largest[0])

    def inside(self) -> bytes:
        return self.block[1:-1, 1:-1].tobytes()


def solve(comm: MPI.Cartcomm, n: int, steps: int) -> tuple[Grid, float]:
    grid, change = Grid(comm, n), 0.0
    for _ in range(steps):
        change = grid.step()
    return grid, change


def same_as_one_rank(comm: MPI.Cartcomm, n: int, steps: int) -> bool:
    grid, _ = solve(comm, n, steps)
    whole = boundary(n)
    for _ in range(steps):
        whole[1:-1, 1:-1] = swept(whole)
    rows, columns = (own_part(n, parts, place) for parts, place in zip(comm.dims, comm.coords))
    mine = whole[1:-1, 1:-1][rows[0] : rows[1], columns[0] : columns[1]].tobytes() == grid.inside()
    return comm.allreduce(int(mine), MPI.MIN) == 1


def main() -> None:
    n, steps = int(sys.argv[1]), int(sys.argv[2])
    world = MPI.COMM_WORLD
    comm = world.Create_cart(MPI.Compute_dims(world.size, 2))
    right = same_as_one_rank(comm, 61, 50)
    comm.Barrier()
    begin = MPI.Wtime()
    grid, change = solve(comm, n, steps)
    seconds = comm.allreduce(MPI.Wtime() - begin, MPI.MAX)
    digest = hashlib.sha256(b"".join(comm.allgather(hashlib.sha256(grid.inside()).digest()))).hexdigest()
    if comm.rank == 0:
        print(f"result change {change!r} digest {digest}")
        print(f"time {seconds:.6f} s")
        print("check passed" if right else "check failed: not what one rank computes", flush=True)


main()
