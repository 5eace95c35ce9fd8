#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The tests of a build that scripts/check.sh has made: chooses, has CTest run them, says what failed.

The last line is "N passed, N failed", with ", N skipped" where this machine does not allow what a test needs.
"""

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = True
import choose  # noqa: E402

SOURCE = Path(__file__).resolve().parents[2]
LINES_OF_A_FAILURE = 60
SLOWEST = 20


@dataclass
class Result:
    name: str
    state: str  # run, fail, skipped
    seconds: float
    output: str


def word(text):
    """No empty one, which would mean a whole run, and no option of git's."""
    if not text.strip() or text.startswith("-"):
        raise argparse.ArgumentTypeError(f"takes a name, not '{text}'")
    return text


def at_once(text):
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"takes a number from 1 on, not '{text}'")
    return int(text)


def arguments():
    parser = argparse.ArgumentParser(prog="check.sh", description="Builds, and runs tests.", allow_abbrev=False)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--quick", action="store_true", help="only short tests")
    what.add_argument("--all", action="store_true", help="everything, at all numbers of ranks: for releases")
    what.add_argument(
        "--only", metavar="NAME", type=word, help="the test of this name, or those that match it (a regular expression)"
    )
    what.add_argument(
        "--changed",
        type=word,
        nargs="?",
        const="HEAD",
        metavar="COMMIT",
        help="what the files changed since COMMIT (default: HEAD) can break",
    )
    what.add_argument("--list", action="store_true", help="names and labels of all tests")
    parser.add_argument("--seed", type=int, help="of what is drawn (default: a random one, printed)")
    parser.add_argument("--stop-on-failure", action="store_true", help="end with the first test that fails")
    # CTest changes its folder before it reads files: paths from the root.
    parser.add_argument("--build", type=lambda word: Path(word).resolve(), required=True, help=argparse.SUPPRESS)
    parser.add_argument("--parse-only", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=at_once, default=2, help="tests at once (default: 2)")
    return parser.parse_args()


def ctest(build, *words, **options):
    return subprocess.run(["ctest", "--test-dir", str(build), *words], stdin=subprocess.DEVNULL, check=False, **options)


def known_tests(build):
    """Name -> its number and labels, in CTest's order."""
    shown = json.loads(ctest(build, "--show-only=json-v1", capture_output=True, text=True).stdout)
    tests = {}
    for number, test in enumerate(shown["tests"], start=1):
        labels = next((item["value"] for item in test.get("properties", []) if item["name"] == "LABELS"), [])
        tests[test["name"]] = (number, set(labels))
    return tests


def changed_files(commit):
    """Since the commit, and what git does not know yet."""
    changed = subprocess.run(
        ["git", "diff", "--name-only", commit], cwd=SOURCE, capture_output=True, text=True, check=False
    )
    if changed.returncode != 0:
        sys.exit(f"check.sh: --changed takes a commit, not '{commit}'")
    new = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard"], cwd=SOURCE, capture_output=True, text=True, check=True
    )
    return changed.stdout.splitlines() + new.stdout.splitlines()


def matching(tests, pattern):
    if pattern in tests:
        return {pattern}
    try:
        found = {name for name in tests if re.search(pattern, name)}
    except re.error as problem:
        sys.exit(f"check.sh: --only {pattern}: {problem}")
    if not found:
        sys.exit(f"check.sh: no test matches '{pattern}' (--list shows all)")
    return found


def broken_by(tests, labels, commit, seed):
    """Of the tests with the labels of what was changed, those that a default run may take."""
    words = choose.labels_broken_by(changed_files(commit))
    print(f"labels of what changed: {words or 'none'}")
    wanted = {name for name in tests if words and any(re.fullmatch(words, label) for label in labels[name])}
    lint = {name for name in tests if "lint" in labels[name] and "quick" in labels[name]}
    return choose.choose({name: labels[name] for name in wanted | lint}, "default", seed)


def chosen(options, tests, seed):
    labels = {name: words for name, (_, words) in tests.items()}
    if options.only:
        return matching(tests, options.only)
    if options.changed:
        return broken_by(tests, labels, options.changed, seed)
    return choose.choose(labels, "quick" if options.quick else "all" if options.all else "default", seed)


def run_tests(options, tests, names, seed, sample):
    """CTest's own results of these tests, and of those that make what they need."""
    folder = options.build / "tests"
    (folder / "check_run").write_text(f"{seed} {'sample' if sample else 'whole'}\n")
    shutil.rmtree(folder / "plain", ignore_errors=True)
    numbers = ",".join(str(tests[name][0]) for name in sorted(names, key=lambda name: tests[name][0]))
    (folder / "chosen").write_text(f"0,0,0,{numbers}\n")
    report = folder / "results.xml"
    report.unlink(missing_ok=True)
    ctest(
        options.build,
        "-I",
        str(folder / "chosen"),
        "-j",
        str(options.jobs),
        "--output-junit",
        str(report),
        "--test-output-size-passed",
        "20000",
        "--test-output-size-failed",
        "200000",
        "--no-tests=error",
        *(["--stop-on-failure"] if options.stop_on_failure else []),
    )
    if not report.exists():
        sys.exit("check.sh: CTest wrote no results")
    return results_in(report)


def results_in(report):
    results = []
    for case in xml.parse(report).getroot().iter("testcase"):
        state = {"run": "run", "fail": "fail"}.get(case.get("status"), "skipped")
        if case.find("skipped") is not None:
            state = "skipped" if "SKIP_RETURN_CODE" in (case.find("skipped").get("message") or "") else "fail"
        output = case.findtext("system-out") or ""
        results.append(Result(case.get("name"), state, float(case.get("time") or 0), output))
    return results


def quoted(name):
    return "'" + name.replace("'", "'\\''") + "'"


def show_failure(result, seed):
    print(f"\nFAILED {result.name}")
    lines = [line for line in result.output.splitlines() if not re.match(r"ok ", line)]
    for line in lines[-LINES_OF_A_FAILURE:]:
        print("    | " + line[:300])
    print(f"    again: scripts/check.sh --only {quoted(result.name)} --seed {seed}")


def reason_of_skip(result):
    """The last line that is no count."""
    lines = [line for line in result.output.splitlines() if line.strip() and not re.match(r"\d+ passed, ", line)]
    return lines[-1][:160] if lines else "no reason given"


def show_times(results):
    seconds = Counter()
    for result in results:
        seconds[choose.group_of(result.name)] += result.seconds
    print(
        "\nseconds by group, of two CPUs: "
        + ", ".join(f"{group} {spent:.0f}" for group, spent in seconds.most_common())
    )
    print(f"the slowest {min(SLOWEST, len(results))}:")
    for result in sorted(results, key=lambda one: -one.seconds)[:SLOWEST]:
        print(f"  {result.seconds:7.1f} s  {result.name}")


def report(results, seed):
    failed = [result for result in results if result.state == "fail"]
    skipped = [result for result in results if result.state == "skipped"]
    show_times(results)
    for result in skipped:
        print(f"skipped {result.name}: {reason_of_skip(result)}")
    for result in failed:
        show_failure(result, seed)
    more = f", {len(skipped)} skipped" if skipped else ""
    print(f"\nseed {seed}")
    print(f"{len(results) - len(failed) - len(skipped)} passed, {len(failed)} failed{more}")
    return 1 if failed or len(results) == len(skipped) else 0


def main():
    options = arguments()
    if options.parse_only:
        return 0
    tests = known_tests(options.build)
    if options.list:
        for name, (_, labels) in tests.items():
            print(f"{name}  [{' '.join(sorted(labels))}]")
        return 0
    seed = options.seed if options.seed is not None else random.randrange(1, 1000000)
    names = chosen(options, tests, seed)
    if not names:
        print("nothing to run\n0 passed, 0 failed")
        return 0
    print(f"{len(names)} of {len(tests)} tests, seed {seed}", flush=True)
    sample = not (options.all or options.only and options.seed is None)
    return report(run_tests(options, tests, names, seed, sample), seed)


if __name__ == "__main__":
    sys.exit(main())
