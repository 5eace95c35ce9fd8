# SPDX-License-Identifier: BSD-3-Clause
"""One rank of a check of all of Horovod's collectives on all of torch's types that it takes, beside its own tests.

Values are small whole numbers, so that sums have one result in whatever order they are made and in every type. Each
check compares with what a loop over the ranks' inputs gives, and its value is a digest of the result's bytes.
"""
from __future__ import annotations

import hashlib
import os

import horovod.torch as hvd
import torch

import rank_log

TYPES = ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
LENGTHS = (1, 7, 1000, 100_003)  # the last one is large enough for a way through memory
SMALL = 3  # inputs are 0 to SMALL - 1: products of four ranks stay below 2^7


def rank_input(rank: int, length: int, dtype: torch.dtype) -> torch.Tensor:
    return ((torch.arange(length, dtype=torch.int64) * 7 + rank * 5) % SMALL).to(dtype)


def inputs(length: int, dtype: torch.dtype) -> list[torch.Tensor]:
    return [rank_input(rank, length, dtype) for rank in range(hvd.size())]


def wide(tensors: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack([tensor.to(torch.float64) for tensor in tensors])


REDUCED = {
    "sum": (hvd.Sum, lambda all_ranks: all_ranks.sum(0)),
    "min": (hvd.Min, lambda all_ranks: all_ranks.min(0).values),
    "max": (hvd.Max, lambda all_ranks: all_ranks.max(0).values),
    "product": (hvd.Product, lambda all_ranks: all_ranks.prod(0)),
}


def allreduce(op: str):
    def run(length, dtype):
        all_ranks = inputs(length, dtype)
        return hvd.allreduce(all_ranks[hvd.rank()].clone(), op=REDUCED[op][0]), REDUCED[op][1](wide(all_ranks))

    return run


def average(length, dtype):
    all_ranks = [tensor * hvd.size() for tensor in inputs(length, dtype)]
    return hvd.allreduce(all_ranks[hvd.rank()], op=hvd.Average), wide(all_ranks).sum(0) / hvd.size()


def grouped_allreduce(length, dtype):
    all_ranks = inputs(length, dtype)
    mine = [all_ranks[hvd.rank()].clone(), all_ranks[hvd.rank()][: length // 2].clone()]
    total = wide(all_ranks).sum(0)
    return torch.cat(hvd.grouped_allreduce(mine, op=hvd.Sum)), torch.cat([total, total[: length // 2]])


def in_place(length, dtype):
    all_ranks = inputs(length, dtype)
    mine = all_ranks[hvd.rank()].clone()
    hvd.allreduce_(mine, op=hvd.Sum)
    return mine, wide(all_ranks).sum(0)


def allgather(length, dtype):
    """Each rank contributes another length."""
    parts = [rank_input(rank, length + rank, dtype) for rank in range(hvd.size())]
    return hvd.allgather(parts[hvd.rank()]), torch.cat(parts).to(torch.float64)


def broadcast(length, dtype):
    root = hvd.size() - 1
    all_ranks = inputs(length, dtype)
    return hvd.broadcast(all_ranks[hvd.rank()], root_rank=root), all_ranks[root].to(torch.float64)


def alltoall(length, dtype):
    """Rank r sends (r + peer) % 3 elements to each peer, so that some send nothing, and `length` more to itself."""

    def splits(rank):
        return [(rank + peer) % 3 + (length if peer == rank else 0) for peer in range(hvd.size())]

    parts = [rank_input(rank, sum(splits(rank)), dtype).split(splits(rank)) for rank in range(hvd.size())]
    mine = torch.cat(parts[hvd.rank()])
    received, _ = hvd.alltoall(mine, splits=torch.tensor(splits(hvd.rank()), dtype=torch.int32))
    return received, torch.cat([parts[rank][hvd.rank()] for rank in range(hvd.size())]).to(torch.float64)


def reducescatter(length, dtype):
    """The first ranks get one element more."""
    all_ranks = inputs(length + hvd.size(), dtype)
    share, more = divmod(length + hvd.size(), hvd.size())
    sizes = [share + (rank < more) for rank in range(hvd.size())]
    total = wide(all_ranks).sum(0).split(sizes)[hvd.rank()]
    return hvd.reducescatter(all_ranks[hvd.rank()].clone(), op=hvd.Sum), total


def within(members: hvd.ProcessSet):
    """An allreduce of some of the ranks, which have a communicator of their own."""

    def run(length, dtype):
        if hvd.rank() not in members.ranks:
            return torch.zeros(0, dtype=dtype), torch.zeros(0, dtype=torch.float64)
        all_ranks = inputs(length, dtype)
        total = wide([all_ranks[rank] for rank in members.ranks]).sum(0)
        return hvd.allreduce(all_ranks[hvd.rank()].clone(), op=hvd.Sum, process_set=members), total

    return run


COLLECTIVES = {f"allreduce-{op}": allreduce(op) for op in REDUCED} | {
    "allreduce-average": average,
    "allreduce-in-place": in_place,
    "grouped-allreduce": grouped_allreduce,
    "allgather": allgather,
    "broadcast": broadcast,
    "alltoall": alltoall,
    "reducescatter": reducescatter,
}


def judge(run, length: int, dtype: torch.dtype) -> tuple[str, str, str]:
    """Outcome, value and detail."""
    try:
        got, expected = run(length, dtype)
    except (ValueError, hvd.HorovodInternalError) as error:
        return "skip" if "is not supported" in str(error) else "fail", "", str(error)  # a type without a binding
    if got.dtype != dtype or not torch.equal(got.to(torch.float64), expected):
        return "fail", "", f"{got[:8].tolist()}, not {expected[:8].tolist()}"
    return "pass", hashlib.sha256(got.numpy().tobytes()).hexdigest()[:16], ""


def main() -> None:
    log = rank_log.Log()
    ranks = int(os.environ["PMI_SIZE"])
    every_second = hvd.ProcessSet(range(0, ranks, 2))
    some = ranks > 1  # else they are the set of all ranks, which there is already
    hvd.init(process_sets=[every_second] if some else None)
    for name, run in (COLLECTIVES | ({"process-set": within(every_second)} if some else {})).items():
        for kind in TYPES:
            for length in LENGTHS:
                check = f"{name} {kind} {length}"
                if check not in log.skipped:
                    log.begin(check)
                    log.end(check, *judge(run, length, getattr(torch, kind)))
    log.begin("shutdown")
    hvd.barrier()  # ranks outside the process set are here long before the others, and a shutdown ends all
    hvd.shutdown()
    log.end("shutdown", "pass")
    log.finished()


if __name__ == "__main__":
    main()
