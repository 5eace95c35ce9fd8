# SPDX-License-Identifier: BSD-3-Clause
"""The table of measurements: what each is called, what it starts, how its figures are compared.

A row says everything that differs between them; how they are run and shown is elsewhere.
"""

import allreduce
import applications
import cells
import collectives
import everyday
import launch
import network
import operators
import pack_report
import plot
import reduce_report
import reduced_elements
import report
import values
from failure import BadArgument
from launch import Launch, words_of
from measurement import LAB_OPTIONS, RANKS_ON_NODE, Measurement, Option, sizes_option

ALL_SIZES = "8-16M"
OVERLAP_OPS = ("p2p", "vector", "iallreduce", "ibcast", "ialltoall")
CALLS = ("allreduce", "reduce", "reduce_scatter_block", "scan")
WAYS_OF_WAITING = ("auto", "spin", "yield", "sleep")
BLOCKED_CALLS = ("recv", "wait", "barrier")
USER_CALLS = ("allreduce", "reduce")  # those that are measured with the user-defined op as well


def ring(options):
    """The usual launch: a fixed number of ranks over a list of sizes."""
    sizes = ",".join(str(size) for size in options.sizes)
    return [Launch(options.ranks, ["--sizes", sizes])]


def post(options):
    (launch,) = ring(options)
    return [Launch(launch.ranks, launch.arguments + ["--gap-us", str(options.gap)])]


def overlap(options):
    (launch,) = ring(options)
    rest = ["--ops", ",".join(options.ops), "--tests", str(options.tests)]
    return [Launch(options.lab or launch.ranks, launch.arguments + rest)]


def overlap_notes(options):
    if options.tests:
        return [f"the program calls MPI_Testall {options.tests} times during each computation"]
    return ["the program makes no MPI call while it computes (see --tests)"]


def threads(options):
    counts = ",".join(str(count) for count in options.threads)
    return [Launch(2, ["--threads", counts, "--separate-comms", str(int(options.comms))])]


def team(options):
    """One process: its threads are the team."""
    return [Launch(1, ["--threads", ",".join(str(count) for count in options.threads)])]


def intranode(options):
    """All in one run, with the floor: the machine drifts between runs."""
    rest = ["--sizes", ",".join(str(size) for size in options.sizes), "--ops", "sum"]
    rest += ["--calls", ",".join(options.collectives)]
    return [Launch(options.ranks, [*rest, "--nonblocking", str(int(options.nonblocking))])]


def each_rank_count(options):
    return [Launch(ranks, []) for ranks in options.ranks]


def idle(options):
    return [Launch(options.ranks, [])]


def in_each_way_of_waiting(options):
    """Unless the user names sides of their own."""
    if not options.settings and not options.plain_only:
        options.settings = [{"VECMPI_WAIT": way} for way in WAYS_OF_WAITING]


def training(options):
    arguments = {
        "--multiple": 1,
        "--threads": ",".join(str(count) for count in options.threads),
        "--sizes": options.size,
        "--buckets": options.buckets,
        "--compute-ms": options.compute,
        "--steps": options.steps,
    }
    return [Launch(options.lab or options.ranks, words_of(arguments))]


def training_notes(options):
    return [
        f"{options.buckets} buckets of {values.size_text(options.size)} a step, by a blocking Allreduce each; "
        f"each computing thread computes {options.compute} ms"
    ]


def wake(options):
    arguments = {
        "--threads": ",".join(str(count) for count in options.threads),
        "--calls": ",".join(options.calls),
        "--gap-us": 1000 * options.pause,
    }
    return [Launch(options.lab or 2, words_of(arguments))]


def settle_wake(options):
    if options.lab not in (None, 2):
        raise BadArgument("wake is measured between two ranks: --lab 2")
    in_each_way_of_waiting(options)


def settle_reduce(options):
    operators.settle(
        options,
        lambda records: operators.names_of(records, "op"),
        lambda records: operators.names_of(
            [record for record in records if options.aliases or not record.get("alias")], "type"
        ),
    )
    if options.plot:
        if options.plain_only:
            raise BadArgument("--plot shows a gain: leave out --plain-only")
        plot.check(options.plot)


def reduce(options):
    """A run for each size, so that plain and preloaded alternate often."""
    rest = ["--random", str(int(options.random)), *operators.arguments(options)]
    return [
        Launch(1, ["--sizes", str(size), *rest], values.size_text(size)) for size in options.sizes
    ]


def by_layout(ranks):
    """A run for each size, so that plain and preloaded alternate often."""

    def launches(options):
        groups = ["--types", ",".join(options.layouts)]
        return [
            Launch(ranks, ["--sizes", str(size), *groups], values.size_text(size))
            for size in options.sizes
        ]

    return launches


def reduce_notes(options):
    if options.random:
        return [
            "MAX MIN MINLOC MAXLOC LAND LOR LXOR reduce random numbers, the other ops equal ones"
        ]
    return ["all numbers of a buffer are equal: the best case for branches (see --random)"]


def settle_reductions(options):
    operators.settle(options, lambda _: ["sum", "user"], lambda _: ["float"], more_ops=["user"])
    if options.ops == ["user"]:
        options.calls = [call for call in options.calls if call in USER_CALLS]
        if not options.calls:
            raise BadArgument(f"the op user is measured with {' and '.join(USER_CALLS)} only")
    if options.plain_yield or options.yield_library:
        options.yield_library = launch.find_yield_library(options)


def reductions(options):
    """A run for each call, so that the sides alternate often."""
    sizes = ",".join(str(size) for size in options.sizes)
    rest = ["--sizes", sizes, *operators.arguments(options)]
    return [
        Launch(ranks, ["--calls", call, *rest], call)
        for ranks in options.ranks
        for call in options.calls
    ]


def reductions_notes(options):
    if options.yield_library:
        return [f"plain ranks yield the CPU after each poll in vain: {options.yield_library}"]
    return ["plain ranks wait as their library does, no yield (see --plain-yield)"]


def names_option(flag, what, default):
    return Option(flag, f"names of mpi.h without MPI_, {what} (default {default})", values.words)


def computing_threads(default):
    """Of training and wake."""
    what = f"threads a rank that compute meanwhile, a list (default {default})"
    return Option("--threads", what, values.wholes(0, 64), default)


LAYOUT_OPTIONS = [
    sizes_option("2K,32K,512K,4M", quick="2K"),
    Option(
        "--layouts",
        f"out of {','.join(pack_report.GROUPS)} (default all)",
        values.choices(*pack_report.GROUPS),
        ",".join(pack_report.GROUPS),
    ),
]

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
        "everyday",
        "what programs call all day, by size, thread level and number of threads",
        "how many times faster than plain, two ranks; under 1 is slower",
        "bytes",
        everyday.launches,
        ("auto",),
        ("gain",),
        "process",
        (0.015, 0.002),
        repeats=6,
        options=everyday.OPTIONS,
        settle=cells.settle,
        view=cells.print_view,
        after=cells.find_losses,
        plan=cells.plan,
        relaunch=everyday.relaunch,
        statistic="best",
        watches_exchange=True,
    ),
    Measurement(
        "collectives",
        "every collective, by size and form, also beside other MPI libraries",
        "how many times faster than plain, slowest rank; under 1 is slower",
        "bytes",
        collectives.launches,
        ("auto",),
        ("gain",),
        "process",
        (0.05, 0.001),
        repeats=8,
        options=collectives.OPTIONS,
        settle=collectives.settle,
        notes=collectives.notes,
        view=cells.print_view,
        after=cells.find_losses,
        draw=collectives.draw,
        plan=cells.plan,
        relaunch=collectives.relaunch,
        statistic="best",
        watches_exchange=True,
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
        detail=("comm, comp, both", report.spans_text),
        options=[
            RANKS_ON_NODE,
            sizes_option("64K,1M,4M"),
            Option(
                "--ops",
                f"out of {','.join(OVERLAP_OPS)} (default all)",
                values.choices(*OVERLAP_OPS),
                ",".join(OVERLAP_OPS),
            ),
            Option(
                "--tests",
                "calls of MPI_Testall spread over the computation (default 0)",
                values.whole(0, 100000),
                0,
            ),
            *LAB_OPTIONS,
        ],
        notes=overlap_notes,
    ),
    Measurement(
        "training",
        "a step of data-parallel training: threads compute, one reduces the gradients",
        "time of a step, slowest rank, and how much of the communication (or computation) was hidden",
        "threads",
        training,
        ("auto",),
        ("gain",),
        "none",
        (1.0, 0.1),
        detail=("comm, comp, both", report.spans_text),
        options=[
            RANKS_ON_NODE,
            computing_threads("0,1,2"),
            Option("--size", "bytes of a bucket (default 4M)", values.size, "4M", "64K"),
            Option("--buckets", "buckets a step (default 20)", values.whole(1, 10000), "20", "3"),
            Option(
                "--compute",
                "milliseconds that each thread computes in a step (default 600)",
                values.whole(1, 100000),
                "600",
                "20",
            ),
            Option("--steps", "steps of a run, whose median counts (default 3)", values.whole(1, 1000), "3", "1"),
            *LAB_OPTIONS,
        ],
        notes=training_notes,
    ),
    Measurement(
        "wake",
        "time from the other rank's call to the return of a blocked one, for each way of waiting",
        "time from a message's sending, or the last arrival, to the blocked call's return",
        "threads",
        wake,
        ("auto",),
        ("added",),
        "none",
        (1.0, 0.05),
        options=[
            computing_threads("0,1"),
            Option(
                "--calls",
                f"out of {','.join(BLOCKED_CALLS)} (default all)",
                values.choices(*BLOCKED_CALLS),
                ",".join(BLOCKED_CALLS),
            ),
            Option(
                "--pause",
                "milliseconds that a call is blocked (default 20)",
                values.whole(1, 100000),
                "20",
                "2",
            ),
            *LAB_OPTIONS,
        ],
        settle=settle_wake,
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
        "team",
        "barrier and reduction of the threads of one process (vecmpi/team.h)",
        "what a construct adds to a loop; plain: this compiler's OpenMP runtime",
        "threads",
        team,
        ("auto",),
        ("gain",),
        "process",
        (0.3, 0.02),
        options=[
            Option(
                "--threads",
                "threads of the team, a list (default 2)",
                values.wholes(1, 64),
                "2",
            ),
        ],
        program="vecmpi-bench-team",
        library="libvecmpi_team.so",
    ),
    Measurement(
        "intranode",
        "collectives of ranks that share a node, by size, beside what the node can do at best",
        "time of a call in a stream of calls, slowest rank; every result checked",
        "bytes",
        intranode,
        ("auto",),
        ("gain",),
        "process",
        (0.1, 0.005),
        options=[
            Option("--ranks", "number of ranks (default 2)", values.whole(2, 64), 2),
            sizes_option("8,16,32,56,512,4K,32K,256K,1M,4M,16M", quick="8,56,4K"),
            Option(
                "--collectives",
                f"out of {','.join(allreduce.CALLS)} (default allreduce)",
                values.choices(*allreduce.CALLS),
                "allreduce",
            ),
            Option("--nonblocking", "the nonblocking call and MPI_Wait", bool),
            Option(
                "--openmpi",
                "mpirun of Open MPI, shown beside where vecmpi was built with it "
                "(default mpirun.openmpi); none: not shown",
            ),
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
        settle=in_each_way_of_waiting,
    ),
    Measurement(
        "reduce",
        "MPI_Reduce_local over all predefined ops and types, by size",
        "MPI_Reduce_local in place, GB/s of one buffer or time of a call",
        "bytes",
        reduce,
        ("auto",),
        ("gain",),
        "main",
        (0.02, 0.001),
        options=[
            sizes_option("64,1K,4K,16K,64K,256K,1M,16M,64M", quick="64,4K,256K"),
            names_option("--ops", "such as sum,max", "all"),
            names_option("--types", "such as float,int", "one of each kind"),
            Option("--aliases", "all types, also those that are the same as another", bool),
            Option(
                "--random",
                "random numbers for the ops that compare or test them: no branch is predicted",
                bool,
            ),
            Option(
                "--show",
                "sizes of the tables in the text, the largest also of the picture "
                "(default 64,256K)",
                values.sizes,
                "64,256K",
            ),
            Option("--plot", "draw gain and share of memcpy's rate: FILE.svg or FILE.png"),
        ],
        settle=settle_reduce,
        notes=reduce_notes,
        view=reduce_report.print_view,
        draw=reduce_report.draw_picture,
    ),
    Measurement(
        "pack",
        "MPI_Pack and MPI_Unpack of derived datatypes, by layout and size",
        "packing and unpacking, GB/s of the packed bytes",
        "bytes",
        by_layout(1),
        ("auto",),
        ("gain",),
        "main",
        (0.01, 0.001),
        options=LAYOUT_OPTIONS,
        view=pack_report.print_view,
    ),
    Measurement(
        "messages",
        "messages of derived datatypes between two ranks, by layout and size",
        "one way of a ping-pong, GB/s of the packed bytes",
        "bytes",
        by_layout(2),
        ("auto",),
        ("gain",),
        "process",
        (0.01, 0.001),
        options=LAYOUT_OPTIONS,
        view=pack_report.print_view,
    ),
    Measurement(
        "applications",
        "what published codes exchange, by datatypes and packed by hand",
        "time of a message, one way, or of a transpose; two ranks, best of all runs",
        "bytes",
        applications.launches,
        ("auto",),
        ("gain",),
        "process",
        (0.05, 0.002),
        repeats=4,
        options=applications.OPTIONS,
        settle=applications.settle,
        view=applications.print_view,
        after=cells.find_losses,
        draw=applications.draw,
        plan=cells.plan,
        relaunch=applications.relaunch,
        statistic="best",
        watches_exchange=True,
    ),
    Measurement(
        "reductions",
        "blocking reducing collectives, by size",
        "time of a call, slowest rank",
        "bytes",
        reductions,
        ("auto",),
        ("gain",),
        "process",
        (0.1, 0.005),
        options=[
            Option("--ranks", "numbers of ranks, a list (default 2)", values.wholes(2, 64), "2"),
            sizes_option("1K-16M", quick="1K,64K"),
            Option(
                "--calls",
                f"out of {','.join(CALLS)} (default all)",
                values.choices(*CALLS),
                ",".join(CALLS),
            ),
            names_option("--ops", "and user, a float16 sum on 2 MPI_BYTE", "sum,user"),
            names_option("--types", "such as float,int", "float"),
            Option(
                "--plain-yield",
                "plain ranks give the CPU away when they wait, so that more ranks than cores do "
                "not crawl",
                bool,
            ),
            Option(
                "--yield-library",
                "preloaded for it (default: tests/mpi/libvecmpi_yield.so beside the tool)",
            ),
        ],
        settle=settle_reductions,
        notes=reductions_notes,
        detail=("reduced", reduced_elements.text),
        footer="reduced: elements that the busiest rank reduced in a call, n: those of a vector; "
        "(mean): of all ranks, by the library's counter; -: not known",
        after=reduced_elements.annotate,
    ),
    Measurement(
        "allreduce",
        "allreduce and other collectives over links of known bandwidth, by size",
        "time of a call, slowest rank; every result checked",
        "bytes",
        allreduce.launches,
        ("auto",),
        ("gain",),
        "none",
        (0.5, 0.02),
        options=[
            RANKS_ON_NODE,
            sizes_option(ALL_SIZES, quick="8,4K"),
            Option(
                "--collectives",
                f"out of {','.join(allreduce.CALLS)} (default allreduce)",
                values.choices(*allreduce.CALLS),
                "allreduce",
            ),
            Option(
                "--ops",
                "sum of floats, or user: a float16 sum of the program's own on 2 MPI_BYTE "
                "(default sum)",
                values.choices(*allreduce.OPS),
                "sum",
            ),
            Option("--nonblocking", "the nonblocking call and MPI_Wait", bool),
            Option("--plot", "draw the figures over bytes: FILE.svg or FILE.png"),
            *LAB_OPTIONS,
        ],
        settle=allreduce.settle,
        notes=allreduce.notes,
        detail=("moved", allreduce.text),
        after=allreduce.annotate,
        draw=allreduce.draw,
    ),
    Measurement(
        "network",
        "latency, bandwidth and cost of a message, as a line for VECMPI_NETWORK",
        "the network between ranks 0 and 1",
        "bytes",
        network.launches,
        (),
        ("gain",),
        "none",
        (0.5, 0.02),
        options=[
            RANKS_ON_NODE,
            Option("--size", "bytes of a large message (default 4M)", values.size, "4M", "1M"),
            *LAB_OPTIONS,
        ],
        view=network.print_view,
    ),
]
