# SPDX-License-Identifier: BSD-3-Clause
"""The options of vecmpi-tune, for its parser and its manual page. Starts nothing."""

import argparse
import os

import values
from failure import BadArgument
from parts import PARTS

DESCRIPTION = "Measures this host and writes a profile that vecmpi reads in place of built-in choices."
EPILOG = """A profile is never needed: what is built in stays where nothing beats it by more than the noise.
docs/tuning.md says what is measured and what the lines of a profile mean."""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise BadArgument(message)


def part_list(text):
    return sorted(set(values.choices(*PARTS)(text)), key=PARTS.index)


def file_name(text):
    """What ends with a slash is a folder, there or not."""
    if os.path.basename(text) in ("", ".", ".."):
        raise argparse.ArgumentTypeError(f"'{text}' names no file")
    return text


def add_options(parser):
    add = parser.add_argument
    add("--mpirun", metavar="COMMAND",
        help="how ranks are started, with its options: \"mpirun -n 4 -hosts a,b\" (default: MPICH's mpirun, a "
        "rank for each CPU here)")
    add("--output", metavar="FILE", type=file_name,
        help="the profile to write, - for standard output (default: where the library looks first)")
    add("--only", metavar="PARTS", type=part_list, default=list(PARTS),
        help="some of kernels,pack,node,network; the other parts of an existing profile are kept")
    add("--quick", action="store_true", help="few and short samples: shows that it works, no more")
    add("--show", action="store_true", help="print the profile of this host and whether it fits, and measure nothing")
    add("--library", metavar="FILE", type=file_name, help="libvecmpi.so (default: beside the tool)")
    add("--timeout", metavar="SECONDS", type=values.whole(1, 86400), default=300,
        help="limit of one run (default 300)")


def parse(arguments):
    parser = Parser(prog="vecmpi-tune", description=DESCRIPTION, epilog=EPILOG)
    add_options(parser)
    return parser.parse_args(arguments)
