# SPDX-License-Identifier: BSD-3-Clause
"""Command line: options to a plan, one-line errors, exit status. Starts no process itself."""

import argparse
import os
import sys

import launch
import report
import runs
import values
from failure import BadArgument, RunFailed
from measurements import TABLE

EPILOG = """Each figure is the median of several runs; plain and preloaded runs alternate, so that
drift of the machine touches both. docs/bench.md says how each measurement works."""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise BadArgument(message)


def cpu_list(text):
    cpus = values.wholes(0, 4095)(text)
    allowed = os.sched_getaffinity(0)
    for cpu in cpus:
        if cpu not in allowed:
            raise argparse.ArgumentTypeError(f"CPU {cpu} is not one that this process may use")
        if cpus.count(cpu) > 1:
            raise argparse.ArgumentTypeError(f"CPU {cpu} is named twice")
    return cpus


def add_common(parser, measurement):
    add = parser.add_argument
    add("--library", help=f"the library to preload (default: {measurement.library} beside the tool)")
    add("--mpirun", help="MPICH's mpirun (default: mpirun.mpich, mpiexec.hydra or mpirun)")
    add("--ranks-program", help=f"the MPI program (default: {measurement.program} beside the tool)")
    add("--plain-only", action="store_true", help="measure the plain library alone")
    add(
        "--offload",
        type=values.choices("auto", "on", "off"),
        default=list(measurement.offload),
        help="VECMPI_OFFLOAD of the preloaded runs "
        f"(default {','.join(measurement.offload) or 'plain runs only'})",
    )
    add(
        "-e",
        dest="environment",
        metavar="NAME=VALUE",
        type=values.assignment,
        action="append",
        default=[],
        help="an environment variable for the ranks of all runs",
    )
    add(
        "--set",
        dest="settings",
        metavar="NAME=VALUE",
        type=values.settings,
        action="append",
        default=[],
        help="a preloaded side with this variable (several with blanks between them); again for "
        "another side",
    )
    add(
        "--repeats",
        type=values.whole(1, 1000),
        help=f"runs of each side (default {measurement.repeats})",
    )
    add(
        "--quick",
        action="store_true",
        help="one short run of each side: shows that it works, no more",
    )
    add(
        "--pin",
        choices=("process", "main", "none"),
        default=measurement.pin,
        help=f"pin ranks whole, their main threads only, or not (default {measurement.pin})",
    )
    add("--unpinned", dest="pin", action="store_const", const="none", help="the same as --pin none")
    add(
        "--cpus",
        type=cpu_list,
        help="rank r is pinned to the r-th of these CPUs (default: all allowed)",
    )
    add(
        "--timeout",
        type=values.whole(1, 86400),
        default=300,
        help="seconds for one mpirun (default 300)",
    )
    add("--json", metavar="FILE", help="write all runs and results to FILE, - for the output")


def make_parser():
    parser = Parser(
        prog="vecmpi-bench",
        epilog=EPILOG,
        description="Measures MPI plain and with libvecmpi.so preloaded, side by side.",
    )
    commands = parser.add_subparsers(dest="measurement", metavar="MEASUREMENT", required=True)
    for measurement in TABLE:
        sub = commands.add_parser(
            measurement.name,
            help=measurement.summary,
            description=measurement.summary[0].upper() + measurement.summary[1:] + ".",
            epilog=EPILOG,
        )
        add_common(sub, measurement)
        for option in measurement.options:
            if option.type is bool:
                sub.add_argument(option.flag, action="store_true", help=option.help)
            else:
                sub.add_argument(
                    option.flag,
                    type=option.type or str,
                    default=None if option.quick else option.default,
                    help=option.help or argparse.SUPPRESS,
                )
    return parser


def settle(options, measurement):
    """Fills in what depends on other options."""
    usual, quick = measurement.seconds
    options.seconds = getattr(options, "seconds", None) or (quick if options.quick else usual)
    options.repeats = options.repeats or (1 if options.quick else measurement.repeats)
    options.cpus = options.cpus or sorted(os.sched_getaffinity(0))
    options.lab = getattr(options, "lab", None)
    options.yield_library = getattr(options, "yield_library", None)
    for option in measurement.options:
        if option.quick and getattr(options, option.name()) is None:
            text = option.quick if options.quick else option.default
            setattr(options, option.name(), option.type(text))
    if options.settings and not options.offload:
        options.offload = ["auto"]
    options.plain_only = options.plain_only or not options.offload
    if options.settings and options.plain_only:
        raise BadArgument("--set is for preloaded runs: leave out --plain-only")
    options.programs = launch.find_programs(options, measurement.program, measurement.library)
    if options.json not in (None, "-") and not os.path.isdir(os.path.dirname(options.json) or "."):
        raise BadArgument(f"--json: no folder for {options.json}")
    if measurement.settle:
        measurement.settle(options)


def run(arguments):
    options = make_parser().parse_args(arguments)
    measurement = next(m for m in TABLE if m.name == options.measurement)
    settle(options, measurement)
    outcome = runs.run_all(measurement, options)
    report.print_text(outcome, file=sys.stderr if options.json == "-" else sys.stdout)
    if options.json:
        report.write_json(outcome, options.json)
    if measurement.draw:
        measurement.draw(outcome)
    if outcome.failed:
        raise RunFailed(outcome.failed)
    return 0


def main(arguments):
    try:
        return run(arguments)
    except BadArgument as error:
        print(f"vecmpi-bench: {error}", file=sys.stderr)
        return 2
    except (RunFailed, OSError) as error:
        print(f"vecmpi-bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("vecmpi-bench: interrupted", file=sys.stderr)
        return 130
