# SPDX-License-Identifier: BSD-3-Clause
"""What a preloaded library costs a program without MPI: time to run `true`, libraries loaded.

No MPI program is started here.
"""

import os
import re
import shutil
import statistics
import subprocess
import time

import launch
from failure import RunFailed

SPAWNS = 40
MPI_LIBRARY = re.compile(
    r"/lib(mpi|mpich|mpicxx|mpi_abi|mpifort|ucp|ucs|uct|open-pal|open-rte)[-_.\d]*so"
)


def side_environment(side, options):
    environment = launch.clean_environment() | dict(options.environment) | side.environment
    if side.preloaded:
        environment["LD_PRELOAD"] = options.programs.library
    return environment


def spawn_ns(environment):
    program = shutil.which("true")
    begin = time.perf_counter_ns()
    _, status = os.waitpid(os.posix_spawn(program, [program], environment), 0)
    took = time.perf_counter_ns() - begin
    if status != 0:
        raise RunFailed(f"{program} ended with status {status}")
    return took


def mpi_libraries(side, options):
    """How many MPI libraries the dynamic linker mapped into a program without MPI."""
    maps = subprocess.run(
        ["cat", "/proc/self/maps"],
        env=side_environment(side, options),
        timeout=20,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    if side.preloaded and options.programs.library not in maps:
        raise RunFailed(f"{options.programs.library} was not loaded into cat")
    return len({line.split()[-1] for line in maps.splitlines() if MPI_LIBRARY.search(line)})


def figure(name, unit, value):
    return {
        "bench": "figure",
        "name": name,
        "at": 0,
        "unit": unit,
        "better": "lower",
        "value": value,
    }


def measure(sides, options, repeat):
    """One run for each side; single spawns of the sides alternate."""
    environments = [side_environment(side, options) for side in sides]
    times = [[] for _ in sides]
    for _ in range(SPAWNS):
        for environment, samples in zip(environments, times):
            samples.append(spawn_ns(environment))
    return [
        {
            "side": side.name,
            "repeat": repeat,
            "ranks": 0,
            "figures": [
                figure("exec of true", "ns", statistics.median(samples)),
                figure("MPI libraries in cat", "", mpi_libraries(side, options)),
            ],
        }
        for side, samples in zip(sides, times)
    ]
