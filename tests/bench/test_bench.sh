#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests of vecmpi-bench itself: every measurement runs, plain and with a stand-in library preloaded, its JSON holds what
# docs/bench.md says, and a bad argument ends with one line and status 2. It asserts no timing.
#
#   test_bench.sh VECMPI_BENCH
set -uo pipefail
bench=$(realpath "${1:?usage: test_bench.sh VECMPI_BENCH}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
    echo "FAIL: $*" >&2
    failures=$((failures + 1))
}

# measurement, then what the figures must be called, then more arguments
check_measurement() {
    local name=$1 figures=$2
    shift 2
    if ! timeout 120 "$bench" "$name" --quick --plain-only --json "$work/out.json" "$@" \
        > "$work/text" 2> "$work/err"; then
        fail "$name: $(tail -n 1 "$work/err")"
        return
    fi
    head -n 1 "$work/text" | grep -q "^$name: " || fail "$name: the table has no title"
    python3 - "$work/out.json" "$name" "$figures" <<'PYTHON' || fail "$name: JSON"
import json, math, sys

document = json.load(open(sys.argv[1]))
assert document["measurement"] == sys.argv[2]
names = {result["name"] for result in document["results"]}
assert names == set(sys.argv[3].split(",")), names
for result in document["results"]:
    plain = result["sides"]["plain"]
    assert math.isfinite(plain["median"]), result
    assert plain["min"] <= plain["median"] <= plain["max"], result
    assert len(plain["values"]) == document["options"]["repeats"], result
for run in document["runs"]:
    assert not run["ranks"] or len(run["header"]["places"]) == run["ranks"], run
PYTHON
}

# words that the line must hold, then the arguments
check_refusal() {
    local words=$1
    shift
    timeout 20 "$bench" "$@" > "$work/text" 2> "$work/err"
    local status=$?
    [ $status -eq 2 ] || fail "$*: status $status, not 2"
    [ "$(wc -l < "$work/err")" -eq 1 ] || fail "$*: not one line: $(cat "$work/err")"
    grep -qF -- "$words" "$work/err" || fail "$*: '$(cat "$work/err")' does not say '$words'"
    [ ! -s "$work/text" ] || fail "$*: wrote to standard output"
}

check_preloaded() {
    echo 'int stand_in;' | "${CC:-cc}" -shared -fPIC -x c -o "$work/stand_in.so" - || fail "no compiler"
    timeout 120 "$bench" latency --quick --sizes 8 --library "$work/stand_in.so" --json - \
        > "$work/out.json" 2> "$work/err" || fail "preloaded: $(tail -n 1 "$work/err")"
    python3 - "$work/out.json" "$work/stand_in.so" <<'PYTHON' || fail "preloaded: JSON"
import json, os, sys

document = json.load(open(sys.argv[1]))
sides = [side["name"] for side in document["sides"]]
assert sides == ["plain", "vecmpi off", "vecmpi on"], sides
assert [run["side"] for run in document["runs"]] == sides
preloads = [run["header"]["preload"] for run in document["runs"]]
assert preloads == ["", os.path.realpath(sys.argv[2]), os.path.realpath(sys.argv[2])], preloads
(result,) = document["results"]
plain, other = result["sides"]["plain"]["median"], result["sides"]["vecmpi on"]
assert abs(other["added"] - (other["median"] - plain)) < 1e-6
assert abs(other["gain"] - plain / other["median"]) < 1e-6
PYTHON
}

# A run that cannot end in time ends with status 1, says so, and leaves no rank behind.
check_time_limit() {
    timeout 60 "$bench" idle --plain-only --seconds 30 --repeats 1 --timeout 1 > "$work/text" 2> "$work/err"
    local status=$?
    [ $status -eq 1 ] || fail "time limit: status $status, not 1"
    tail -n 1 "$work/err" | grep -q "limit 1 s" || fail "time limit: $(tail -n 1 "$work/err")"
}

check_measurement post Isend,Irecv,Iallreduce --sizes 8,64K,1M
check_measurement post Isend,Irecv,Iallreduce --sizes 8-1K --ranks 2 --gap 5
check_measurement latency "round trip" --sizes 8,64K
check_measurement overlap Isend/Irecv,Iallreduce,Ibcast,Ialltoall --sizes 64K
check_measurement threads messages --threads 1,2
check_measurement threads messages --threads 2 --comms --unpinned
check_measurement oversub "Allreduce 64 B,Allreduce 64 KiB,Barrier,ring lap 8 B" --ranks 3
check_measurement footprint "MPI_Init,RSS before Init,RSS after Init,peak RSS after Init,\
threads after Init,MPI_Finalize,RSS after Finalize,peak RSS at the end,threads at the end,\
exec of true,MPI libraries in cat" --ranks 2
check_measurement idle "other threads: idle,compute: idle,other threads: receive pending,\
compute: receive pending"
check_preloaded
check_time_limit

check_refusal "MEASUREMENT"
check_refusal "nonsense" nonsense
check_refusal "--nonsense" post --plain-only --nonsense
check_refusal "'7' is not a multiple of 8" latency --plain-only --sizes 7
check_refusal "'x' is not a size" post --plain-only --sizes x
check_refusal "empty range" post --plain-only --sizes 64K-8
check_refusal "not a whole number from 1 to 64" threads --plain-only --threads 0
check_refusal "'q' is none of" overlap --plain-only --ops p2p,q
check_refusal "'FOO' is not NAME=VALUE" post --plain-only -e FOO
check_refusal "set by --offload" post --plain-only -e VECMPI_OFFLOAD=on
check_refusal "CPU 4000" post --plain-only --cpus 4000
check_refusal "no library at /nowhere.so" post --library /nowhere.so
check_refusal "/bin/true is not MPICH's mpirun" post --plain-only --mpirun /bin/true
check_refusal "no ranks program at /nowhere" post --plain-only --ranks-program /nowhere
check_refusal "no lab script at /nowhere" overlap --plain-only --lab 2 --lab-script /nowhere
check_refusal "no folder" post --plain-only --json /nowhere/out.json

[ $failures -eq 0 ] && echo "test_bench: all passed"
exit $((failures > 0))
