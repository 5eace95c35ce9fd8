# SPDX-License-Identifier: BSD-3-Clause
"""`everyday`: what programs call all day, between two ranks, as cells: the options and what is launched.

A group is a thread level with a number of threads, a row of it a pattern.
"""

import values
from cells import FAIL_BELOW, MPI, Cell, grouped, levels_option
from launch import Launch, words_of
from measurement import Option

PATTERNS = (
    "ping-pong",
    "window",
    "stream",
    "sendrecv",
    "probe",
    "waitany",
    "waitsome",
    "start",
    "scatter",
    "gather",
    "scan",
    "alltoall",
)
MORE_TIME = 4  # a figure of several threads takes so much longer: they start anew for each sample

OPTIONS = [
    Option(
        "--sizes",
        "a list, such as 1,8,4K (default 1,8,64,512,1K,4K,16K,64K)",
        values.byte_sizes,
        "1,8,64,512,1K,4K,16K,64K",
        quick="8,4K",
    ),
    Option(
        "--patterns",
        f"out of {','.join(PATTERNS)} (default all)",
        values.choices(*PATTERNS),
        ",".join(PATTERNS),
    ),
    levels_option("single,multiple", "both"),
    Option(
        "--threads",
        "threads a rank at level multiple, a list (default 1,2,4,8)",
        values.wholes(1, 64),
        "1,2,4,8",
        quick="1,2",
    ),
    Option(
        "--thread-sizes",
        "sizes with several threads (default 8,4K)",
        values.byte_sizes,
        "8,4K",
        quick="8",
    ),
    FAIL_BELOW,
    MPI,
]


def groups(options):
    """Level, threads and sizes of each, by its name as the ranks have it."""
    found = {}
    for level in options.levels:
        for threads in options.threads if level == "multiple" else [1]:
            name = "SINGLE" if level == "single" else f"MULTIPLE {threads}"
            found[name] = (level, threads, options.sizes if threads == 1 else options.thread_sizes)
    return found


def relaunch(options, cells):
    """A launch for each group, with all patterns and sizes that these cells have in it."""
    jobs = []
    for name, rows in grouped(cells).items():
        level, threads, _ = groups(options)[name]
        sizes = sorted({size for row in rows.values() for size in row})
        seconds = options.seconds * (MORE_TIME if threads > 1 else 1)
        arguments = {
            "--multiple": int(level == "multiple"),
            "--threads": threads,
            "--calls": ",".join(rows),
            "--sizes": ",".join(str(size) for size in sizes),
            "--seconds": seconds,
        }
        what = f"{level}, {threads} threads" if threads > 1 else level
        jobs.append(Launch(2, words_of(arguments), what, seconds * len(rows) * len(sizes)))
    return jobs


def launches(options):
    cells = [
        Cell(name, pattern, size)
        for name, (_, _, sizes) in groups(options).items()
        for pattern in options.patterns
        for size in sizes
    ]
    return relaunch(options, cells)
