# SPDX-License-Identifier: BSD-3-Clause
"""The table of measurements: what each is called, what it starts, how its figures are compared.

A row says everything that differs between them; how they are run and shown is elsewhere.
"""

from dataclasses import dataclass, field

import values

ALL_SIZES = "8-16M"
OVERLAP_OPS = ("p2p", "iallreduce", "ibcast", "ialltoall")


@dataclass(frozen=True)
class Launch:
    """One start of the ranks program."""

    ranks: int
    arguments: list


@dataclass(frozen=True)
class Option:
    """An option of one measurement."""

    flag: str
    help: str
    type: object = None
    default: object = None


@dataclass(frozen=True)
class Measurement:
    name: str
    summary: str
    title: str  # of the table: what the figures are
    at: str  # what a figure is taken at: bytes, threads or ranks
    launches: object  # options -> list of Launch
    offload: tuple  # VECMPI_OFFLOAD of the preloaded sides
    compare: tuple  # gain (times better) and added (difference)
    pin: str
    seconds: tuple  # budget of one figure: usual, quick
    repeats: int = 5
    options: list = field(default_factory=list)


def ring(options):
    """The usual launch: a fixed number of ranks over a list of sizes."""
    sizes = ",".join(str(size) for size in options.sizes)
    return [Launch(options.ranks, ["--sizes", sizes])]


def post(options):
    (launch,) = ring(options)
    return [Launch(launch.ranks, launch.arguments + ["--gap-us", str(options.gap)])]


def overlap(options):
    (launch,) = ring(options)
    return [
        Launch(options.lab or launch.ranks, launch.arguments + ["--ops", ",".join(options.ops)])
    ]


def threads(options):
    counts = ",".join(str(count) for count in options.threads)
    return [Launch(2, ["--threads", counts, "--separate-comms", str(int(options.comms))])]


def each_rank_count(options):
    return [Launch(ranks, []) for ranks in options.ranks]


def idle(options):
    return [Launch(options.ranks, [])]


def sizes_option(default):
    return Option(
        "--sizes",
        f"a list (8,64K) or a range in steps of four (default {default})",
        values.sizes,
        default,
    )


TABLE = [
    Measurement(
        "post",
        "time of MPI_Isend, MPI_Irecv and MPI_Iallreduce themselves, by size",
        "time of the nonblocking call alone, completion not included",
        "bytes",
        post,
        ("on",),
        ("gain",),
        "main",
        (0.15, 0.01),
        options=[
            Option(
                "--ranks", "1: to self (default), 2 or more: round a ring", values.whole(1, 64), 1
            ),
            sizes_option(ALL_SIZES),
            Option(
                "--gap",
                "microseconds of computation before each call (default 0)",
                values.whole(0, 1_000_000),
                0,
            ),
        ],
    ),
    Measurement(
        "latency",
        "blocking ping-pong of two ranks, by size",
        "round trip of a blocking ping-pong",
        "bytes",
        ring,
        ("off", "on"),
        ("added", "gain"),
        "process",
        (0.2, 0.01),
        options=[sizes_option("8-4M"), Option("--ranks", None, values.whole(2, 2), 2)],
    ),
    Measurement(
        "overlap",
        "share of a communication that runs while the program computes",
        "overlap of communication and computation",
        "bytes",
        overlap,
        ("on",),
        ("added",),
        "none",
        (1.0, 0.05),
        options=[
            Option("--ranks", "number of ranks on this node (default 2)", values.whole(2, 64), 2),
            sizes_option("64K,1M,4M"),
            Option(
                "--ops",
                f"out of {','.join(OVERLAP_OPS)} (default all)",
                values.choices(*OVERLAP_OPS),
                ",".join(OVERLAP_OPS),
            ),
            Option(
                "--lab",
                "run over this many virtual hosts, one rank on each; needs root",
                values.whole(2, 64),
            ),
            Option("--rate", "link rate of the virtual hosts (default 1gbit)", str, "1gbit"),
            Option(
                "--lab-script",
                "script that makes the virtual hosts (default: lab.sh beside the tool)",
            ),
        ],
    ),
    Measurement(
        "threads",
        "message rate of two ranks with several threads each",
        "rate of 8-byte messages, MPI_THREAD_MULTIPLE",
        "threads",
        threads,
        ("auto",),
        ("gain",),
        "process",
        (1.5, 0.05),
        options=[
            Option(
                "--threads",
                "threads a rank, a list (default 1,2,4,8)",
                values.wholes(1, 64),
                "1,2,4,8",
            ),
            Option("--comms", "give each thread pair a communicator of its own, not a tag", bool),
        ],
    ),
    Measurement(
        "oversub",
        "calls on more ranks than cores",
        "mean time of a call, ranks not pinned",
        "ranks",
        each_rank_count,
        ("auto",),
        ("gain",),
        "none",
        (1.0, 0.02),
        options=[
            Option("--ranks", "numbers of ranks, a list (default 4,8)", values.wholes(2, 64), "4,8")
        ],
    ),
    Measurement(
        "footprint",
        "what it costs that the library is there",
        "cost of being there (largest of all ranks)",
        "ranks",
        each_rank_count,
        ("auto", "on"),
        ("added",),
        "none",
        (0.1, 0.1),
        repeats=15,
        options=[
            Option(
                "--ranks", "numbers of ranks, a list (default 1,2,4)", values.wholes(1, 64), "1,2,4"
            )
        ],
    ),
    Measurement(
        "idle",
        "CPU time that the library takes while the program computes",
        "CPU time of threads that are not the program's, in % of a CPU",
        "ranks",
        idle,
        ("on",),
        ("added",),
        "none",
        (10.0, 0.3),
        repeats=3,
        options=[
            Option("--ranks", "number of ranks (default 1)", values.whole(1, 64), 1),
            Option("--seconds", "length of the computation (default 10)", values.seconds),
        ],
    ),
]
