# SPDX-License-Identifier: BSD-3-Clause
"""Finds programs and runs the ranks once, under mpirun or the lab script, with a time limit."""

import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass

import mpi_libraries
from failure import BadArgument, RunFailed

RECORD_START = '{"bench":'
GRACE_S = 10  # the ranks end themselves at the limit; this much later mpirun is ended too
FINALIZE_GRACE_S = 3  # for MPI_Finalize over virtual hosts, where MPICH 4.0 can hang
LAST_RECORD = "threads"  # what the ranks print before MPI_Finalize
# Root too, more ranks than cores too; the ranks pin themselves.
OPENMPI_OPTIONS = ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]


@dataclass(frozen=True)
class OpenMpi:
    mpirun: str
    ranks: str


@dataclass(frozen=True)
class Programs:
    mpi: mpi_libraries.Library
    others: dict  # name -> mpi_libraries.Library: measured plain beside it
    ranks: str
    library: str  # None when only the plain library is measured
    lab_script: str  # None without --lab
    openmpi: OpenMpi  # None where it is not shown beside


@dataclass(frozen=True)
class Launch:
    """One start of the ranks program."""

    ranks: int
    arguments: list
    what: str = ""  # for the progress line, where launches differ in more than the ranks
    seconds: float = 0  # budget of all its figures, where a plan is printed


def words_of(arguments):
    """The words of a command line, from a dict of options and values."""
    return [str(word) for pair in arguments.items() for word in pair]


@dataclass(frozen=True)
class Ended:
    """What a run left: its records, and what went wrong (empty: nothing)."""

    records: list
    failure: str
    hung: bool  # ended by us, in MPI_Finalize, after all its figures


def tool_folder():
    """Where the tool lies: in the zip application or, in a checkout, the folder of its sources."""
    return os.path.dirname(os.path.realpath(sys.argv[0]))


def first_file(paths, what, hint):
    for path in paths:
        if os.path.isfile(path):
            return os.path.realpath(path)
    raise BadArgument(f"no {what} at {paths[0]}: {hint}")


def find_lab_script(options):
    if not options.lab:
        return None
    if options.lab_script:
        return first_file([options.lab_script], "lab script", "--lab-script names the file")
    here = tool_folder()
    places = ["../scripts/lab.sh", "../share/vecmpi/lab.sh", "../../../scripts/lab.sh"]
    return first_file(
        [os.path.normpath(os.path.join(here, place)) for place in places],
        "lab script",
        "give --lab-script",
    )


def find_yield_library(options):
    """For the plain side of `reductions`."""
    here = tool_folder()
    places = [f"{here}/tests/mpi/libvecmpi_yield.so"]
    return first_file(
        [options.yield_library] if options.yield_library else places,
        "library that yields",
        "build vecmpi's tests, or tests/conformance/yield.c and give --yield-library",
    )


def library_places(options, name):
    """Beside the tool in a build tree; installed, in a lib folder beside bin."""
    if options.library:
        return [options.library]
    here = tool_folder()
    return [
        f"{here}/{name}",
        *sorted(glob.glob(f"{here}/../lib*/{name}")),
        *sorted(glob.glob(f"{here}/../lib/*/{name}")),
    ]


def find_openmpi(options):
    """The same ranks program, which CMake builds where it finds Open MPI's compiler."""
    chosen = getattr(options, "openmpi", "none")
    if options.plain_only or chosen == "none":
        return None
    ranks = f"{tool_folder()}/vecmpi-bench-ranks-openmpi"
    mpirun = shutil.which(chosen or "mpirun.openmpi")
    if mpirun and os.path.isfile(ranks):
        return OpenMpi(mpirun, ranks)
    if chosen:
        raise BadArgument(f"--openmpi needs {ranks} and {chosen}: one of them is not there")
    return None


def find_programs(options, program, library_name):
    ranks = [options.ranks_program or f"{tool_folder()}/{program}"]
    library = None
    if not options.plain_only:
        library = first_file(
            library_places(options, library_name),
            "library",
            "build vecmpi, or give --library or --plain-only",
        )
    return Programs(
        mpi_libraries.find(options),
        mpi_libraries.find_others(options),
        first_file(ranks, "ranks program", "build vecmpi or give --ranks-program"),
        library,
        find_lab_script(options),
        find_openmpi(options),
    )


def records_of(program, what):
    """What the ranks program says of itself, started without mpirun; none if it says nothing."""
    try:
        text = subprocess.run([program, what], capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        text = ""
    return [json.loads(line) for line in text.splitlines() if line.startswith(RECORD_START)]


def clean_environment():
    """What mpirun gets: the caller's, without settings that would reach the plain runs too."""
    return {
        name: value
        for name, value in os.environ.items()
        if name != "LD_PRELOAD" and not name.startswith("VECMPI")
    }


def command_line(options, side, launch, measurement_name):
    programs = options.programs
    settings = dict(options.environment) | side.environment
    if side.preloaded:
        settings["LD_PRELOAD"] = programs.library
    program = [
        programs.openmpi.ranks if side.openmpi else programs.ranks,
        measurement_name,
        "--pin",
        options.pin,
        "--cpus",
        ",".join(str(cpu) for cpu in options.cpus),
        "--seconds",
        str(options.seconds),
        "--limit",
        str(options.timeout),
        *launch.arguments,
    ]
    if options.lab:
        settings_part = [
            part for name, value in settings.items() for part in ("-e", f"{name}={value}")
        ]
        return [
            programs.lab_script,
            "-n",
            str(options.lab),
            "-r",
            options.rate,
            "-t",
            str(options.timeout + GRACE_S // 2),
            *settings_part,
            "--",
            *program,
        ]
    if side.openmpi:
        settings_part = [part for name in settings for part in ("-x", f"{name}={settings[name]}")]
        start = [programs.openmpi.mpirun, *OPENMPI_OPTIONS]
        return [*start, "-n", str(launch.ranks), *settings_part, *program]
    settings_part = [part for name, value in settings.items() for part in ("-genv", name, value)]
    library = side.mpi or programs.mpi
    start = [library.mpirun, "-n", str(launch.ranks), *settings_part, *program]
    environment = [f"{name}={value}" for name, value in library.environment.items()]
    return ["env", *environment, *start] if environment else start


def exchange_ns(options):
    """What two of the CPUs take to tell each other a number and back; None on one CPU."""
    cpus = ",".join(str(cpu) for cpu in options.cpus)
    command = [options.programs.ranks, "exchange", "--cpus", cpus, "--seconds", "0.005"]
    environment = clean_environment() | options.programs.mpi.environment
    told = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, timeout=60, check=True, env=environment
    ).stdout
    return json.loads(told)["ns"] if told else None


def stop(process):
    """Ends what we started: mpirun takes its ranks along on SIGTERM; else its group is killed."""
    process.terminate()
    try:
        process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


def read_records(process, on_record, watch):
    """Records from the ranks; every other line goes to our standard error.

    Not so after a hang, when Hydra says at length that we ended the ranks.
    """
    records = []
    for line in process.stdout:
        if line.startswith(RECORD_START):
            records.append(json.loads(line))
            on_record(records[-1])
        elif not watch.hung:
            sys.stderr.write(line)
    return records


class FinalizeWatch:
    """Ends a process that is still there some time after its last record."""

    def __init__(self, process):
        self.process, self.timer, self.hung = process, None, False

    def look_at(self, record):
        if record["bench"] == LAST_RECORD:
            self.timer = threading.Timer(FINALIZE_GRACE_S, self.end)
            self.timer.start()

    def end(self):
        self.hung = True
        stop(self.process)

    def cancel(self):
        if self.timer:
            self.timer.cancel()


def run_once(command, timeout_s, on_record):
    """Runs `command` to its end and returns its records. Raises RunFailed with what went wrong."""
    ended = run_to_end(command, timeout_s, on_record)
    if ended.failure:
        raise RunFailed(ended.failure)
    return ended.records


def run_to_end(command, timeout_s, on_record, watch_finalize=False):
    """Runs `command`; with `watch_finalize` a hang in MPI_Finalize is ended and is no failure."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=clean_environment(),
            start_new_session=True,
        )
        timer = threading.Timer(timeout_s + GRACE_S, stop, [process])
        timer.start()
        watch = FinalizeWatch(process)

        def take(record):
            on_record(record)
            if watch_finalize:
                watch.look_at(record)

        try:
            records = read_records(process, take, watch)
            status = process.wait()
        except BaseException:
            stop(process)
            raise
        finally:
            timer.cancel()
            watch.cancel()
        errors.seek(0)
        messages = errors.read().strip()
    if messages and not watch.hung:
        print(messages, file=sys.stderr)
    failure = ""
    if status != 0 and not watch.hung:
        failure = f"a run ended with status {status} (limit {timeout_s} s): {' '.join(command)}"
    return Ended(records, failure, watch.hung)
