# SPDX-License-Identifier: BSD-3-Clause
"""Fetches and builds what a program needs, once: sources and builds are kept in a cache."""
from __future__ import annotations

import glob
import os
import pathlib
import string
import subprocess
import sys

from table import BUILDS, HERE, Build, Program

SCRIPTS = HERE.parent.parent / "scripts"
TAIL = 15  # lines of a log that are shown where something fails


class BuildFailed(Exception):
    pass


def variables(cache: pathlib.Path, name: str) -> dict[str, str]:
    """What $SOURCE, $HERE and $CACHE mean in the table."""
    return {"SOURCE": str(cache / "applications" / name), "HERE": str(HERE), "CACHE": str(cache / "clients")}


def product_of(cache: pathlib.Path, name: str) -> str:
    return string.Template(BUILDS[name].product).substitute(variables(cache, name))


def is_built(cache: pathlib.Path, name: str) -> bool:
    products, own = glob.glob(product_of(cache, name)), BUILDS[name].own
    return any(not own or os.path.getmtime(path) >= (HERE / own).stat().st_mtime for path in products)


def logged(log: pathlib.Path, what: str, command: list[str], **options) -> None:
    print(f"applications: {what} (log: {log})", file=sys.stderr, flush=True)
    with log.open("w") as output:
        options |= dict(stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        ended = subprocess.run(command, check=False, **options)
    if ended.returncode:
        lines = log.read_text(errors="replace").splitlines()[-TAIL:]
        raise BuildFailed("\n".join([f"{what} failed", *lines]))


def in_scripts(text: str, *arguments: str) -> list[str]:
    """A command with the functions of packages.sh and sources.sh."""
    head = f'set -euo pipefail; . "{SCRIPTS}/packages.sh"; . "{SCRIPTS}/sources.sh"; '
    return ["bash", "-c", head + text, "bash", *arguments]


def fetch(cache: pathlib.Path, name: str, build: Build) -> pathlib.Path:
    source = pathlib.Path(variables(cache, name)["SOURCE"])
    if build.own:
        source.mkdir(parents=True, exist_ok=True)
    elif not source.is_dir():
        log = source.parent / f"{name}-fetch.log"
        part = "original" if build.original else "patched"
        command = in_scripts('fetch_source "$1" "$2" "$3"', build.package, str(source), part)
        logged(log, f"fetching {build.package}", command)
    return source


def build_one(cache: pathlib.Path, name: str) -> None:
    if is_built(cache, name):
        return
    build = BUILDS[name]
    logs = cache / "applications"
    logs.mkdir(parents=True, exist_ok=True)
    if build.client:
        script = [str(SCRIPTS / "clients.sh"), "build", "--only", build.client, "--cache", str(cache / "clients")]
        logged(logs / f"{name}.log", f"building {name}", script)
        return
    source = fetch(cache, name, build)
    environment = dict(os.environ) | variables(cache, name)
    commands = ["bash", "-euxo", "pipefail", "-c", build.commands]
    logged(logs / f"{name}.log", f"building {name}", commands, cwd=source, env=environment)
    if not is_built(cache, name):
        raise BuildFailed(f"building {name}: no {product_of(cache, name)}")


def build_yield(cache: pathlib.Path) -> pathlib.Path:
    """The preload of plain ranks that may not spin."""
    library = cache / "applications" / "libyield.so"
    command = in_scripts('build_yield "$1"', str(library))
    logged(library.with_suffix(".log"), "building tests/conformance/yield.c", command, cwd=SCRIPTS)
    return library


def build_all(cache: pathlib.Path, programs: list[Program]) -> None:
    for name in dict.fromkeys(program.build for program in programs):
        build_one(cache, name)
