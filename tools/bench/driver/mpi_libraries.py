# SPDX-License-Identifier: BSD-3-Clause
"""The MPI library that ranks run with: the system's, or one installed in a folder. Starts no ranks."""

import glob
import os
import re
import shutil
import subprocess
from argparse import ArgumentTypeError
from dataclasses import dataclass

from failure import BadArgument

SYSTEM = "system"
KEPT = {  # by scripts/libraries.sh fetch: the folder, and what the ranks need in their environment
    "mpich4": ("mpich-4.*", {}),
    "mpich5": ("mpich-5.*", {}),
    "mpich5-ofi": ("mpich-5.*", {"MPIR_CVAR_CH4_NETMOD": "ofi"}),
    "intel": ("impi-rt-*", {}),
}
FOLDER = "a folder with bin/mpiexec and lib/libmpich.so.12"
ACCEPTED = f"takes {', '.join([SYSTEM, *KEPT])} (scripts/libraries.sh fetch gets these four) or NAME=PREFIX, {FOLDER}"


@dataclass(frozen=True)
class Library:
    mpirun: str
    environment: dict  # of the launcher, which hands it on to the ranks


def find_mpirun(chosen):
    names = [chosen] if chosen else ["mpirun.mpich", "mpiexec.hydra", "mpirun"]
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise BadArgument(f"no program {' or '.join(names)}: install MPICH or give --mpirun")
    try:
        version = subprocess.run(
            [found, "--version"], capture_output=True, text=True, timeout=20, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        version = ""
    if "HYDRA" not in version:
        raise BadArgument(f"{found} is not MPICH's mpirun: choose it with --mpirun")
    return found


def installed(prefix, problem):
    """A library in a folder, whose ABI the ranks program has. Intel MPI must not move pinned ranks."""
    prefix = os.path.realpath(prefix)
    launcher = f"{prefix}/bin/mpiexec"
    for path in (f"{prefix}/lib/libmpich.so.12", launcher):
        if not os.path.isfile(path):
            raise BadArgument(f"no file {path}: {problem}")
    environment = {
        "LD_LIBRARY_PATH": f"{prefix}/lib",
        "I_MPI_ROOT": prefix,
        "FI_PROVIDER_PATH": f"{prefix}/lib",
        "I_MPI_PIN": "0",
    }
    return Library(os.path.realpath(launcher), environment)


def find(options):
    """The one that is measured."""
    prefix = getattr(options, "mpi", None)
    if prefix:
        return installed(prefix, f"--mpi takes {FOLDER}")
    return Library(find_mpirun(options.mpirun), {})


def names(text):
    """A list of NAME or NAME=PREFIX, each name once."""
    items = text.split(",")
    called = [item.partition("=")[0] for item in items]
    for name, item in zip(called, items):
        if not re.fullmatch(r"[\w.+-]+", name) or ("=" not in item and name not in (SYSTEM, *KEPT)):
            raise ArgumentTypeError(f"'{item}' is no library: {ACCEPTED}")
        if called.count(name) > 1:
            raise ArgumentTypeError(f"'{name}' is named twice")
    return items


def kept(name):
    """The newest of those that scripts/libraries.sh has fetched."""
    folder = os.environ.get("VECMPI_CACHE") or os.path.expanduser("~/.cache/vecmpi")
    pattern, environment = KEPT[name]
    found = sorted(glob.glob(f"{folder}/libraries/{pattern}/lib/libmpich.so.12"))
    if not found:
        raise BadArgument(f"--against: no {name} in {folder}/libraries: it {ACCEPTED}")
    library = installed(os.path.dirname(os.path.dirname(found[-1])), f"--against {ACCEPTED}")
    return Library(library.mpirun, library.environment | environment)


def find_others(options):
    """Those of --against, by name."""
    found = {}
    for item in getattr(options, "against", None) or []:
        name, equals, prefix = item.partition("=")
        if equals:
            found[name] = installed(prefix, f"--against {ACCEPTED}")
        elif name == SYSTEM:
            found[name] = Library(find_mpirun(options.mpirun), {})
        else:
            found[name] = kept(name)
    return found
