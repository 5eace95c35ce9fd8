# SPDX-License-Identifier: BSD-3-Clause
"""Measures horovod_training.py over virtual hosts, plain and preloaded in turn. Started by scripts/clients.sh training.

The hosts share this machine's CPUs: with more hosts than CPUs the computing takes longer than it would on real hosts,
and the network's share of a step is smaller.
"""
from __future__ import annotations

import argparse
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "conformance"))

import execute  # noqa: E402

LAB = HERE.parent.parent / "scripts" / "lab.sh"
LIMIT_S = 540
FINALIZE_S = 5  # MPICH 4.0 over TCP can hang in MPI_Finalize, plain too; by then the results are there
LAST_RESULT = "step_s"


class RunFailed(Exception):
    pass


def command(args: argparse.Namespace, hosts: int, variant: str) -> list[str]:
    settings = ["OMP_NUM_THREADS=1"]
    if variant == "preloaded":
        settings += [f"LD_PRELOAD={args.library}", *filter(None, args.set.split(","))]
    lab = [str(LAB), "-n", str(hosts), "-r", args.rate, "-t", str(LIMIT_S)]
    for setting in settings:
        lab += ["-e", setting]
    program = [str(args.cache / "venv" / "bin" / "python"), str(HERE / "horovod_training.py"), "--model", "resnet50"]
    options = ["--steps", str(args.steps), "--batch", str(args.batch), "--pixels", str(args.pixels)]
    if args.gradients == "float16":
        options.append("--fp16")
    return [*lab, "--", *program, *options]


def results_in(text: str) -> dict[str, float]:
    words = (line.split() for line in text.splitlines())
    return {entry[1]: float(entry[2]) for entry in words if len(entry) == 3 and entry[0] == "result"}


def wait_for_results(process: subprocess.Popen, log: pathlib.Path) -> None:
    """Until the run has ended, or for a moment after its last result."""
    while process.poll() is None and LAST_RESULT not in results_in(log.read_text()):
        time.sleep(0.5)
    try:
        process.wait(FINALIZE_S)
    except subprocess.TimeoutExpired:
        process.terminate()  # lab.sh ends its ranks and removes its hosts
        process.wait()


def run_once(args: argparse.Namespace, hosts: int, variant: str, repeat: int) -> dict[str, float]:
    log = args.out / f"training-{hosts}-{variant}-{repeat}.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            command(args, hosts, variant),
            env=execute.inherited_environment() | {"PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            wait_for_results(process, log)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    found = results_in(log.read_text())
    if LAST_RESULT not in found:
        raise RunFailed(f"{hosts} hosts, {variant}: no result, see {log}")
    return found


def summary(hosts: int, runs: dict[str, list[dict[str, float]]]) -> str:
    step = {variant: 1000 * statistics.median(run["step_s"] for run in found) for variant, found in runs.items()}
    pace = {variant: statistics.median(run["images_per_s"] for run in found) for variant, found in runs.items()}
    saved = 100 * (1 - step["preloaded"] / step["plain"])
    return (
        f"{hosts:5} | {step['plain']:8.0f} {step['preloaded']:10.0f} | {saved:9.1f} % | "
        f"{pace['plain']:8.2f} {pace['preloaded']:10.2f}"
    )


def measure(args: argparse.Namespace, hosts: int) -> str:
    runs: dict[str, list[dict[str, float]]] = {"plain": [], "preloaded": []}
    for repeat in range(args.repeats):
        for variant in ("plain", "preloaded") if repeat % 2 == 0 else ("preloaded", "plain"):
            found = run_once(args, hosts, variant, repeat)
            runs[variant].append(found)
            step_ms, loss = 1000 * found["step_s"], found["loss"]
            print(f"  {hosts} hosts, {variant}: {step_ms:.0f} ms a step, loss {loss!r}", flush=True)
    return summary(hosts, runs)


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("--library", "--cache", "--out"):
        parser.add_argument(name, type=pathlib.Path)
    for name in ("--hosts", "--rate", "--set"):
        parser.add_argument(name)
    for name in ("--steps", "--repeats", "--batch", "--pixels"):
        parser.add_argument(name, type=int)
    parser.add_argument("--gradients", choices=("float32", "float16"), default="float32")
    args = parser.parse_args()
    table = [measure(args, int(hosts)) for hosts in args.hosts.split(",")]
    print(f"\nResNet-50, gradients of {args.gradients}, {args.rate} a link,", end=" ")
    print(f"{args.batch} pictures of {args.pixels} x {args.pixels} a rank;", end=" ")
    print(f"medians of {args.repeats} runs, of the steps in each")
    print("      |       ms a step     |   step time | pictures a second")
    print("hosts |    plain  preloaded |      saved  |    plain  preloaded")
    print("\n".join(table))
    return 0


if __name__ == "__main__":
    execute.run_to_exit("clients", main, {RunFailed: 1})  # SIGTERM too, or lab.sh would go on
