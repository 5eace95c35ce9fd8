# SPDX-License-Identifier: BSD-3-Clause
"""Fourier transforms of a square matrix by rows, with mpi4py: Alltoall of numpy arrays between the two directions.

There and back, so that the matrix must come again; then Alltoall of few numbers, as in a sort that tells counts. Knows
nothing of vecmpi.
"""
from __future__ import annotations

import sys

import numpy
from mpi4py import MPI


def transposed(comm: MPI.Intracomm, rows: numpy.ndarray) -> numpy.ndarray:
    """The rows of the transposed matrix that belong to this rank."""
    height, width = rows.shape
    ranks = comm.size
    sent = numpy.ascontiguousarray(rows.reshape(height, ranks, width // ranks).transpose(1, 2, 0))
    received = numpy.empty_like(sent)
    comm.Alltoall(sent, received)
    return numpy.ascontiguousarray(received.transpose(1, 0, 2)).reshape(width // ranks, height * ranks)


def there_and_back(comm: MPI.Intracomm, rows: numpy.ndarray) -> numpy.ndarray:
    for transform in (numpy.fft.fft, numpy.fft.ifft):
        rows = transform(transposed(comm, transform(rows)))
    return rows


def matrix_rows(n: int, comm: MPI.Intracomm) -> numpy.ndarray:
    """Known numbers between -1 and 1."""
    height = n // comm.size
    first = comm.rank * height * n
    index = numpy.arange(first, first + height * n, dtype=numpy.uint64).reshape(height, n)
    return ((index * numpy.uint64(2654435761)) % numpy.uint64(65536)).astype(float) / 32768 - 1 + 0j


def transforms(comm: MPI.Intracomm, n: int, steps: int) -> tuple[float, bool]:
    rows = matrix_rows(n, comm)
    comm.Barrier()
    begin = MPI.Wtime()
    for _ in range(steps):
        rows = there_and_back(comm, rows)
    seconds = MPI.Wtime() - begin
    return seconds, bool(numpy.abs(rows - matrix_rows(n, comm)).max() < 1e-12 * steps)


def counts(comm: MPI.Intracomm, calls: int) -> tuple[float, bool]:
    sent, received = numpy.empty(comm.size, numpy.int64), numpy.empty(comm.size, numpy.int64)
    everyone, wrong = numpy.arange(comm.size), 0
    comm.Barrier()
    begin = MPI.Wtime()
    for call in range(calls):
        sent[:] = everyone + comm.rank * 1000 + call
        comm.Alltoall(sent, received)
        wrong += int((received != comm.rank + everyone * 1000 + call).any())
    return MPI.Wtime() - begin, wrong == 0


def main() -> None:
    n, steps, calls = map(int, sys.argv[1:4])
    comm = MPI.COMM_WORLD
    if n % comm.size:
        raise SystemExit(f"{n} rows on {comm.size} ranks")
    results = transforms(comm, n, steps), counts(comm, calls)
    times = [comm.allreduce(seconds, MPI.MAX) for seconds, _ in results]
    right = comm.allreduce(int(all(ok for _, ok in results)), MPI.MIN) == 1
    if comm.rank == 0:
        print(f"time of transforms {times[0]:.6f} s")
        print(f"time of counts {times[1]:.6f} s")
        print("check passed" if right else "check failed", flush=True)


main()
