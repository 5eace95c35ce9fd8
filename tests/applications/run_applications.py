# SPDX-License-Identifier: BSD-3-Clause
"""Runs real programs plain and preloaded by turns, checks their results and prints who is faster.

Started by scripts/applications.sh, which installs what it needs.
"""
from __future__ import annotations

import argparse
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import build
import launch
import report
from launch import Launcher, Setting
from table import HERE, PROGRAMS, Program

TOP = HERE.parent.parent
CACHE = pathlib.Path(os.environ.get("VECMPI_CACHE") or pathlib.Path.home() / ".cache" / "vecmpi")


def numbers(text: str) -> list[int]:
    values = [int(word) for word in text.split(",") if word]
    if any(not 1 <= value <= 64 for value in values):
        raise argparse.ArgumentTypeError(f"takes numbers such as 2,4, not '{text}'")
    return values


def chosen(text: str) -> list[Program]:
    known = {program.name: program for program in PROGRAMS}
    unknown = [name for name in text.split(",") if name not in known]
    if unknown:
        raise argparse.ArgumentTypeError(f"no program is called '{unknown[0]}': {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(text.split(","))]


def setting_of_preload(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("VECMPI"):
        raise argparse.ArgumentTypeError(f"takes VECMPI_NAME=VALUE, not '{text}'")
    return name, value


# Option -> what argparse takes.
OPTIONS = {
    "--only": dict(type=chosen, default=list(PROGRAMS), metavar="NAME,..", help="of --list (default: all)"),
    "--list": dict(action="store_true", help="the programs, and no more"),
    "--ranks": dict(type=numbers, default=[2, 4], metavar="LIST", help="on this machine (default: 2,4; '': none)"),
    "--hosts": dict(
        type=numbers,
        default=[2, 4],
        metavar="LIST",
        help="virtual hosts, one rank on each, as root (default: 2,4; '': none)",
    ),
    "--rate": dict(default="1gbit", help="of a host's link, as tc writes it (default: 1gbit)"),
    "--rounds": dict(type=int, default=3, metavar="N", help="runs of each side, by turns (default: 3)"),
    "--quick": dict(action="store_true", help="small sizes and one round: checks results, and measures nothing"),
    "--pin": dict(choices=("process", "none"), default="process", help="a CPU for each rank (default: process)"),
    "--plain-yield": dict(action="store_true", help="plain ranks give their CPU away while they wait"),
    "--set": dict(
        type=setting_of_preload,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the preloaded runs",
    ),
    "--timeout": dict(type=int, default=120, metavar="S", help="for one run (default: 120)"),
    "--build": dict(
        type=pathlib.Path, default=TOP / "build", metavar="DIR", help="its libvecmpi.so is preloaded (default: build)"
    ),
    "--library": dict(type=pathlib.Path, metavar="LIB", help="this library instead"),
    "--cache": dict(type=pathlib.Path, default=CACHE, metavar="DIR", help="sources and builds of the programs"),
    "--out": dict(type=pathlib.Path, default=TOP / "build" / "applications", metavar="DIR", help="logs of all runs"),
    "--json": dict(type=pathlib.Path, metavar="FILE", help="all figures"),
    "--plot": dict(type=pathlib.Path, metavar="FILE", help="a picture, an SVG; needs matplotlib"),
}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="applications.sh",
        description="Runs real programs plain and preloaded by turns, checks their results, prints who is faster.",
        epilog="Exit status: 0 all right and none slower, 1 a result is wrong or a program slower, 2 bad arguments,"
        " 3 no set-up.",
    )
    parser.add_argument("action", nargs="?", choices=("run", "build"), default="run", help="build: only builds")
    for name, how in OPTIONS.items():
        parser.add_argument(name, **how)
    args = parser.parse_args()
    args.library = (args.library or args.build / "libvecmpi.so").resolve()
    args.plain_library = None
    args.rounds = 1 if args.quick else args.rounds
    if args.rounds < 1 or args.timeout < 1:
        parser.error("--rounds and --timeout take numbers from 1 on")
    if not args.list and args.action == "run" and not args.library.is_file():
        parser.error(f"no {args.library}: build it first")
    return args


def build_programs(args: argparse.Namespace) -> None:
    args.cache.mkdir(parents=True, exist_ok=True)
    with (args.cache / "applications.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two of these scripts may share the cache
        build.build_all(args.cache, args.only)
        if args.plain_yield:
            args.plain_library = build.build_yield(args.cache)


class Turns:
    """The runs of a program on one setting, plain and preloaded by turns."""

    def __init__(self, args: argparse.Namespace, launcher: Launcher, program: Program, setting: Setting):
        self.args, self.launcher, self.program, self.setting = args, launcher, program, setting
        self.plain: list[launch.Run] = []
        self.preloaded: list[launch.Run] = []
        self.reported: launch.Run | None = None

    def _run(self, what: str, **options) -> launch.Run:
        begun = time.monotonic()
        log = self.args.out / f"{self.program.name}-{self.setting}-{what}.log".replace(" ", "-")
        plain = self.plain[0].text if self.plain else ""
        run = self.launcher.run(self.program, self.setting, log, plain=plain, **options)
        took = f"{time.monotonic() - begun:.1f} s" + (", hung in MPI_Finalize" if run.hung else "")
        print(f"{self.program.name} on {self.setting}, {what}: {took} {run.problem}", file=sys.stderr, flush=True)
        return run

    def has_failed(self) -> bool:
        return any(run.problem for run in (*self.plain, *self.preloaded))

    def take_rounds(self) -> None:
        """Each begins with the side that ended the one before."""
        for number in range(len(self.plain), len(self.plain) + self.args.rounds):
            for is_preloaded in (False, True) if number % 2 == 0 else (True, False):
                if self.has_failed():
                    return
                side, name = (self.preloaded, "preloaded") if is_preloaded else (self.plain, "plain")
                side.append(self._run(f"{name}-{number + 1}", preloaded=is_preloaded))

    def take_report(self) -> None:
        if not self.has_failed():
            self.reported = self._run("report", preloaded=True, reported=True)

    def rows(self) -> list[dict]:
        return report.rows_of(self, is_measured=not self.args.quick)


def measure(args: argparse.Namespace, launcher: Launcher, program: Program, setting: Setting) -> list[dict]:
    turns = Turns(args, launcher, program, setting)
    turns.take_rounds()
    turns.take_report()
    rows = turns.rows()
    if any(row["winner"] == "plain" for row in rows):  # what else the machine does can make one slower: once more
        turns.take_rounds()
        rows = turns.rows()
    return rows


def draw(document: dict, path: pathlib.Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "programs.json").write_text(json.dumps(document))
        pictures = str(TOP / "tools" / "bench" / "pictures.py")
        subprocess.run([sys.executable, "-B", pictures, "--from", folder, folder, "programs"], check=True)
        shutil.move(f"{folder}/programs.svg", path)


def settings_of(args: argparse.Namespace) -> list[Setting]:
    """Without hosts where this machine does not allow them."""
    hosts = args.hosts
    if hosts:
        command = [str(build.SCRIPTS / "lab.sh"), "-n", "1", "true"]
        tried = subprocess.run(command, capture_output=True, text=True, check=False)
        if tried.returncode:
            print(f"applications: virtual hosts left out: {tried.stderr.strip()}", file=sys.stderr)
            hosts = []
    return [Setting(count, False) for count in args.ranks] + [Setting(count, True) for count in hosts]


def finish(args: argparse.Namespace, document: dict) -> int:
    rows = document["results"]
    if args.plot:
        draw(document, args.plot)
    slower = [] if args.quick else report.losses(rows)
    print("\n".join(["", *slower]) if slower else "")
    wrong = sum(1 for row in rows if row["problem"])
    print(f"{len(rows) - wrong} passed, {wrong} failed" + ("" if args.quick else f", {len(slower)} slower"))
    return 1 if wrong or slower else 0


def main() -> int:
    args = parse_arguments()
    if args.list:
        print("\n".join(f"{program.name:<14} {program.what}" for program in args.only))
        return 0
    args.mpirun = shutil.which("mpirun.mpich") or "mpirun"
    build_programs(args)
    if args.action == "build":
        return 0
    args.out.mkdir(parents=True, exist_ok=True)
    args.out = args.out.resolve()
    launcher, document = Launcher(args), report.document(args, round(os.getloadavg()[0], 2))
    print(report.COLUMNS.format(*report.HEAD), flush=True)
    settings = settings_of(args)
    for program in args.only:
        for setting in settings:
            found = measure(args, launcher, program, setting)
            print("\n".join(map(report.row_text, found)), flush=True)
            document["results"] += found
            if args.json:  # whenever the run is stopped
                args.json.write_text(json.dumps(document, indent=1) + "\n")
    return finish(args, document)


if __name__ == "__main__":
    launch.execute.run_to_exit("applications", main, {build.BuildFailed: 3})
