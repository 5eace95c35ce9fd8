# SPDX-License-Identifier: BSD-3-Clause
"""`allreduce`: what a link could do at best, and which share of that a collective reached.

The ranks say how many bytes a link must carry in each direction; this divides them by time and
rate. It draws nothing and starts nothing.
"""

import curves
import report
import values
from failure import BadArgument
from launch import Launch

CALLS = ("allreduce", "bcast", "reduce", "reduce_scatter", "allgather", "alltoall")
OPS = ("sum", "user")
REDUCING = ("allreduce", "reduce", "reduce_scatter")
LIMITS = {  # bytes on a link each way, in words; the ranks program has the same as functions
    "allreduce": "2n(p-1)/p",
    "bcast": "n",
    "reduce": "n",
    "reduce_scatter": "n(p-1)/p",
    "allgather": "n(p-1)/p",
    "alltoall": "n(p-1)/p",
}
BURST_BYTES = 256 << 10  # of the rate limiter in scripts/lab.sh
DRAIN_BYTES = 2 * BURST_BYTES  # untimed before each sample: what is saved up, and as much again


def settle(options):
    reducing = [call for call in options.collectives if call in REDUCING]
    if "sum" not in options.ops and not reducing:
        raise BadArgument(f"the op user is measured with {', '.join(REDUCING)} only")
    if options.plot:
        curves.check(options.plot)


def launches(options):
    """A run for each collective, so that the sides alternate often."""
    rest = ["--sizes", ",".join(str(size) for size in options.sizes)]
    rest += ["--ops", ",".join(options.ops), "--nonblocking", str(int(options.nonblocking))]
    rest += ["--drain-bytes", str(DRAIN_BYTES if rate_of(options) else 0)]
    return [
        Launch(options.lab or options.ranks, ["--calls", call, *rest], call)
        for call in options.collectives
    ]


def rate_of(options):
    """Bytes a second of a link, 0 where there is none or it has no limit."""
    return values.rate_bytes(options.rate) if options.lab else 0


def annotate(outcome):
    """Adds the rate and, over a link, its share of the link's to the details of the figures."""
    rate = rate_of(outcome.options)
    for run in outcome.runs:
        for figure in run["figures"]:
            detail = figure["detail"]
            detail["mbit"] = 8e3 * detail["moved"] / figure["value"]
            if rate:
                detail["of_limit"] = 1e9 * detail["moved"] / rate / figure["value"]


def text(detail):
    rate = f"{report.three_figures(detail['mbit'])} Mbit/s"
    return f"{rate} = {100 * detail['of_limit']:.0f} %" if "of_limit" in detail else rate


def notes(options):
    limits = ", ".join(f"{call} {LIMITS[call]}" for call in options.collectives)
    lines = [f"moved: bytes that each link must carry each way, over the time: {limits}"]
    if not rate_of(options):
        return lines
    return lines + [
        f"%: of {options.rate}, the least time being those bytes over the rate. The rate limiter "
        f"lets {BURST_BYTES >> 10} KiB through at once:",
        f"untimed calls use that up before each sample ({DRAIN_BYTES >> 10} KiB or 16 calls), but "
        "sizes below 256 KiB can still seem to beat the limit",
    ]


def draw(outcome):
    """The share of the limit where there is one, else the time."""
    if not outcome.options.plot:
        return
    if rate_of(outcome.options):
        title = f"share of the bandwidth limit, {outcome.options.lab} hosts, {outcome.options.rate}"
        share = curves.Axis(title, logarithmic=False, line_at=1)
        curves.draw(outcome, lambda entry: entry["detail"]["of_limit"], share)
    else:
        time = curves.Axis("time of a call, ms", logarithmic=True)
        curves.draw(outcome, lambda entry: entry["median"] / 1e6, time)
