# SPDX-License-Identifier: BSD-3-Clause
"""vecmpi-tune: measures this host and writes a profile that libvecmpi.so reads.

Entry point of the zip application: from options to parts to the file. It knows no measurement by name.
"""

import fcntl
import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass

import children
import launch
import mpi_libraries
import report
import tune_options
from failure import BadArgument, RunFailed
from parts import MEASURE, Bench, Skipped
from profile_text import HEAD, Output, is_replaced, printable, profile, read_rows
from progress import Progress


@dataclass(frozen=True)
class Programs:
    kernels: str
    ranks: str
    library: str


def beside(name):
    return launch.first_file([f"{launch.tool_folder()}/{name}"], "program", "build vecmpi")


def default_mpirun():
    cpus = len(os.sched_getaffinity(0))
    return [mpi_libraries.find_mpirun(None), "-n", str(max(2, cpus))]


def given_mpirun(text):
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise BadArgument(f"--mpirun: {error}") from None
    if not words or shutil.which(words[0]) is None:
        raise BadArgument(f"--mpirun: no program {words[0] if words else 'given'}")
    return words


def find_host(kernels):
    lines, _ = children.run([kernels, "host"], 20)
    return json.loads("".join(lines))


def make_bench(options, kernels, host):
    """mpirun and its ranks are looked for only where a part needs them."""
    needs_mpi = {"node", "network"} & set(options.only)
    mpirun = local = []
    if needs_mpi:
        mpirun = default_mpirun() if options.mpirun is None else given_mpirun(options.mpirun)
        try:
            local = mpirun if options.mpirun is None else default_mpirun()
        except BadArgument:
            local = []
    library = ranks = ""
    if needs_mpi:
        ranks = beside("vecmpi-bench-ranks")
        places = launch.library_places(options, "libvecmpi.so")
        library = launch.first_file(places, "library", "build vecmpi, or give --library")
    return Bench(Programs(kernels, ranks, library), host, mpirun, local, options.quick, options.timeout)


# ---- the existing profile -----------------------------------------------------------------------------------


def what_is_wrong(kernels, path):
    """The library's own line on a file; empty: it fits."""
    checked = subprocess.run([kernels, "check", path], capture_output=True, text=True, check=False, timeout=20)
    return checked.stdout.strip() or checked.stderr.strip()


def existing_rows(kernels, output):
    if not output.exists():
        return {}
    problem = what_is_wrong(kernels, output.file)
    if problem:
        print(f"nothing is kept of {output.path}: {problem}", file=sys.stderr)
        return {}
    return read_rows(output.file)


def show(kernels, places):
    path = next((place for place in places if os.path.exists(place)), None)
    if path is None:
        print(f"vecmpi-tune: no profile of this host at {' or '.join(places)}", file=sys.stderr)
        return 1
    problem = what_is_wrong(kernels, path)
    if problem:
        print(f"vecmpi-tune: {problem}", file=sys.stderr)
        return 1
    print(f"# {path}: fits this host", flush=True)
    with open(path, "rb") as file:  # comments may be in any encoding
        sys.stdout.buffer.write(file.read())
    return 0


# ---- measuring ----------------------------------------------------------------------------------------------


def measure(bench, parts):
    """What was measured, and whether all of it was: a part that fails does not stop the next."""
    bench.progress = Progress(bench.total(parts))
    found, failed = [], False
    for part in parts:
        try:
            found.append(MEASURE[part](bench))
            failure = found[-1].failure
        except Skipped as reason:
            print(f"{part}: not measured: {reason}", file=sys.stderr)
            failure = ""
        except (RunFailed, OSError) as error:
            failure = str(error)
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
            failure = f"a run printed what is no figure ({type(error).__name__}: {error})"
        if failure:
            failed = True
            print(f"vecmpi-tune: {part}: {failure}", file=sys.stderr)
    return found, failed


def merge(existing, found):
    """Rows of the new profile and its MPI library. Ways and network of another library are not kept."""
    mpi = next((one.mpi for one in found if one.mpi), existing.get("mpi", ""))
    rows = {key: value for key, value in existing.items() if key not in HEAD}
    if existing.get("mpi", mpi) != mpi:
        rows = {key: value for key, value in rows.items() if not key.startswith(("node.", "learned.", "network"))}
        print(f"ways on a node and network were of {printable(existing['mpi'])}: not kept", file=sys.stderr)
    for one in found:
        rows = {key: value for key, value in rows.items() if not is_replaced(key, one.replaces)}
        rows |= {row.key: row.value for row in one.rows if row.value}
    return rows, mpi


def print_table(found, file):
    lines = [["", "built in", "chosen", "figures"]]
    lines += [[row.what, row.built_in, row.tuned, row.figures] for one in found for row in one.rows if row.figures]
    for line in report.align(lines):
        print(line, file=file)
    new = sum(row.value != "" for one in found for row in one.rows)
    print(f"\n{new} entries measured anew; figures are times faster, or medians", file=file)


def tune(options):
    kernels = beside("vecmpi-tune-kernels")
    host = find_host(kernels)
    if options.show:
        return show(kernels, [options.output] if options.output else host["places"])
    output = Output(options.output or host["places"][0], makes_folder=not options.output)
    bench = make_bench(options, kernels, host)
    found, failed = measure(bench, options.only)
    to = sys.stderr if output.path == "-" else sys.stdout
    if not found:
        print("nothing was measured, nothing is written", file=to)
        return 1 if failed else 0
    print_table(found, to)
    with children.held_signals():
        # Read only now: another run may have written its part meanwhile.
        rows, mpi = merge(existing_rows(kernels, output), found)
        output.write(profile(host, mpi, rows), lambda file: what_is_wrong(kernels, file))
    if output.path != "-":
        print(f"written: {output.path}")
    return 1 if failed else 0


def open_streams():
    """A closed one is None here, where print means standard output, or the tool's own file, opened in its place."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        try:
            is_writable = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
        except OSError:
            is_writable = False
        if getattr(sys, name) is None or not is_writable:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - as long as the process
        getattr(sys, name).reconfigure(errors="surrogateescape")  # names of files in any encoding


def main(arguments):
    open_streams()
    children.watch_signals()
    try:
        return tune(tune_options.parse(arguments))
    except BadArgument as error:
        print(f"vecmpi-tune: {error}", file=sys.stderr)
        return 2
    except (RunFailed, OSError, subprocess.TimeoutExpired) as error:
        print(f"vecmpi-tune: {error}", file=sys.stderr)
        return 1
    except children.Stopped as signal:
        print("vecmpi-tune: stopped", file=sys.stderr)
        return 128 + signal.number


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
