#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests of vecmpi-bench itself: every measurement runs, plain and with a stand-in library preloaded, its JSON holds what
# docs/bench.md says, and a bad argument ends with one line and status 2. It asserts no timing.
#
#   test_bench.sh VECMPI_BENCH
set -uo pipefail
bench=$(realpath "${1:?usage: test_bench.sh VECMPI_BENCH}")
here=$(dirname "$(realpath "$0")")
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

# After `pack` of the faces: the lines of cache that a layout touches, and the share of the limit that they set.
check_limit_of_pack() {
    grep -qE "^GB/s: plain  of the limit " "$work/text" || fail "pack: the table has no column of the limit"
    grep -qE "^share of the limit of cache-line traffic, median, plain: 2 KiB [0-9.]+%, 32 KiB [0-9.]+%$" "$work/text" ||
        fail "pack: no line of the shares"
    python3 - "$work/out.json" <<'PYTHON' || fail "pack: JSON, limit"
import json, math, sys

for result in json.load(open(sys.argv[1]))["results"]:
    plain = result["sides"]["plain"]
    detail = plain["detail"]
    assert math.isclose(detail["of_limit"], plain["median"] / detail["limit"], rel_tol=1e-3), result
    side = {2048: 16, 32768: 64}[result["at"]]  # a face of side x side doubles
    packed = 8 * side * side
    # Rows of whole lines, or doubles with a line each; where memory begins within a line, one more for each row.
    least, more = {"face normal to y": (packed, 64 * side), "face normal to x": (64 * side * side, 0)}[
        result["labels"]["layout"]]
    assert least + packed <= detail["lines"] <= least + packed + more + 64, result
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

# A limit that every cell keeps, and one that none can: the cell is named, with the gain of each of three passes.
# The cell, then the arguments.
check_limit() {
    local cell=$1
    shift
    local short=("$@" --quick --levels single --sizes 8 --library "$work/stand_in.so")
    timeout 120 "$bench" "${short[@]}" --fail-below 0.01 > "$work/text" 2> "$work/err" ||
        fail "$1: a limit that is kept: $(tail -n 1 "$work/err")"
    grep -qF "cells that stay under 0.01 of plain in 3 passes: none" "$work/text" || fail "$1: no line of the limit"
    grep -qE "^plan: 1 launches, 1 times, 2 sides, .* about 0:0[0-9] min" "$work/err" || fail "$1: no plan"
    local status=0
    for _ in 1 2 3; do # a plain run of 2 ms may stand still for longer than 1000 calls take
        status=0
        timeout 120 "$bench" "${short[@]}" --fail-below 1000 > "$work/text" 2> "$work/err" || status=$?
        [ $status -eq 0 ] || break
    done
    [ $status -eq 1 ] || fail "$1: a limit that is not kept: status $status"
    grep -qE "^  $cell 8 B: [0-9.]+, [0-9.]+, [0-9.]+$" "$work/text" || fail "$1: the cell is not named"
    grep -qF "1 cells stay under 1000 of plain in 3 passes" "$work/err" || fail "$1: $(cat "$work/err")"
}

# Figures of all layouts of `applications`, in the groups that are given.
applications_figures() {
    python3 - "$bench" "$@" <<'PYTHON'
import sys

sys.path.insert(0, sys.argv[1])
import applications

print(",".join(f"{group} {layout}" for layout in applications.LAYOUTS for group in sys.argv[2:]))
PYTHON
}

# The text of `applications`, what its limit looks at, and that data which another library has spoiled are wrong.
check_applications() {
    local line status=0
    timeout 120 "$bench" applications --quick --layouts "nas_mg_y,fft2" --library "$work/stand_in.so" \
        --fail-below 1000 > "$work/text" 2> "$work/err" || status=$?
    [ $status -eq 1 ] || fail "applications: a limit that is not kept: status $status"
    for line in "^us a message +bytes +by hand +long-lived: plain +vecmpi auto +over plain +over hand +short-lived: plain" \
        "^nas_mg_y +2048( +[0-9.]+){9}$" "^fft2 +4608( +[0-9.]+){9}$" \
        "^short-lived: geometric mean [0-9.]+ over plain; [0-2] of 2 cells under 0.95$" \
        "^long-lived: geometric mean [0-9.]+ over packing by hand; [0-2] of 2 cells more than 1.1 times as slow$" \
        "^cells that stay under 1000 of plain in 3 passes: 4$" "^  short-lived fft2 4608 B: [0-9.]+, [0-9.]+, [0-9.]+$"; do
        grep -qE -- "$line" "$work/text" || fail "applications: no line '$line'"
    done
    check_spoiled_messages
}

# A stand-in whose rank 1 leaves a byte of each received message of a datatype wrong.
check_spoiled_messages() {
    local status=0
    "${CC:-cc}" -shared -fPIC -x c -o "$work/spoils_types.so" - <<'C' || fail "no compiler"
#include <stdlib.h>
int PMPI_Recv(void *, int, int, int, int, int, void *);
int MPI_Recv(void *in, int count, int type, int from, int tag, int comm, void *result) {
    int status = PMPI_Recv(in, count, type, from, tag, comm, result);
    if (count == 1 && getenv("PMI_RANK")[0] == '1') *(char *)in = 'x';
    return status;
}
C
    timeout 120 "$bench" applications --quick --layouts nas_lu_x --library "$work/spoils_types.so" > "$work/text" \
        2> "$work/err" || status=$?
    [ $status -eq 1 ] || fail "applications, wrong data: status $status, not 1"
    grep -qF "wrong result, vecmpi auto: long-lived nas_lu_x 5 KiB: other bytes have come than were sent" "$work/err" ||
        fail "applications, wrong data: $(cat "$work/err")"
    ! grep -qF "by-hand nas_lu_x" "$work/err" || fail "applications: what is packed by hand is wrong too"
}

# Other libraries beside: the one that the ranks have anyway, in a folder of its own, and one whose launcher fails.
check_against() {
    local kind mpirun library
    library=$(ldd "$bench-ranks" | awk '/libmpich/ { print $3 }')
    mpirun=$(command -v mpirun.mpich || command -v mpiexec.hydra || command -v mpirun)
    for kind in same broken; do
        mkdir -p "$work/$kind/bin" "$work/$kind/lib"
        ln -s "$library" "$work/$kind/lib/libmpich.so.12"
    done
    ln -s "$mpirun" "$work/same/bin/mpiexec"
    printf '#!/bin/sh\nexit 3\n' > "$work/broken/bin/mpiexec"
    chmod +x "$work/broken/bin/mpiexec"
    timeout 120 "$bench" collectives --quick --sizes 8,64 --collectives bcast,barrier --library "$work/stand_in.so" \
        --against "same=$work/same,system,broken=$work/broken" --json "$work/out.json" > "$work/text" 2> "$work/err" ||
        fail "collectives --against: $(tail -n 1 "$work/err")"
    grep -qE "^SINGLE blocking: time of a call +bytes +plain +vecmpi auto +plain same +plain system +best plain of all" \
        "$work/text" || fail "collectives --against: no table"
    grep -qE "^bcast +64 B .* (plain|plain same|plain system) +[0-9.]+$" "$work/text" || fail "collectives --against: no cell"
    grep -qE "geometric mean [0-9.]+ over the best plain of all; [0-3] of 3 cells under 1$" "$work/text" ||
        fail "collectives --against: no mean"
    grep -qF "left out, it failed there: plain broken: SINGLE blocking bcast, SINGLE blocking barrier" "$work/text" ||
        fail "collectives --against: a library that fails is not named"
    python3 - "$work/out.json" "$work" <<'PYTHON' || fail "collectives --against: JSON"
import json, sys

document = json.load(open(sys.argv[1]))
sides = {side["name"]: side for side in document["sides"]}
assert list(sides) == ["plain", "vecmpi auto", "plain same", "plain system"], sides
assert sides["plain same"]["mpi"]["environment"]["LD_LIBRARY_PATH"] == f"{sys.argv[2]}/same/lib", sides
assert sides["plain"]["mpi"] is None and sides["plain system"]["mpi"]["environment"] == {}, sides
assert {(result["name"], result["at"]) for result in document["results"]} == {
    ("SINGLE blocking bcast", 8), ("SINGLE blocking bcast", 64), ("SINGLE blocking barrier", 0)}
PYTHON
}

# Open MPI beside, where the tool was built with it, and the same without it.
check_openmpi() {
    check_refusal "--openmpi needs" intranode --library "$work/stand_in.so" --openmpi /nowhere
    mkdir "$work/bin"
    cp "$bench" "$bench-ranks" "$work/bin"
    check_sides "$work/bin/vecmpi-bench" "plain,vecmpi auto"
    check_sides "$bench" "plain,vecmpi auto" --openmpi none
    if [ -x "$bench-ranks-openmpi" ] && command -v mpirun.openmpi > "$work/text"; then
        check_sides "$bench" "plain,vecmpi auto,Open MPI"
        grep -q "MPICH Version: .*; Open MPI v" "$work/text" || fail "Open MPI: not named in the head"
    else
        echo "test_bench: no Open MPI here, it was not shown beside" >&2
    fi
}

# the tool, the sides that intranode must have, more arguments
check_sides() {
    local tool=$1 sides=$2
    shift 2
    timeout 120 "$tool" intranode --quick --repeats 2 --sizes 8 --library "$work/stand_in.so" \
        --json "$work/out.json" "$@" > "$work/text" 2> "$work/err" || fail "intranode: $(tail -n 1 "$work/err")"
    python3 - "$work/out.json" "$sides" <<'PYTHON' || fail "intranode, sides $sides: JSON"
import json, sys

document = json.load(open(sys.argv[1]))
sides = sys.argv[2].split(",")
assert [run["side"] for run in document["runs"]] == 2 * sides, document["runs"]
assert [side["name"] for side in document["sides"] if side["openmpi"]] == sides[2:]
for run in document["runs"]:
    header = run["header"]
    assert header["mpi"].startswith("Open MPI" if run["side"] == "Open MPI" else "MPICH"), header
    assert bool(header["preload"]) == run["side"].startswith("vecmpi"), header
    assert header["places"] == document["runs"][0]["header"]["places"], header  # pinned alike
for result in document["results"]:
    assert list(result["sides"]) == sides
    assert [side for side in sides if "gain" in result["sides"][side]] == ["vecmpi auto"], result
PYTHON
}

# The whole table of ops and types: what it must and must not hold, and the kinds of the figures.
check_reduce_table() {
    timeout 120 "$bench" reduce --quick --plain-only --aliases --sizes 64,1K --json "$work/out.json" \
        > "$work/text" 2> "$work/err" || fail "reduce, all: $(tail -n 1 "$work/err")"
    python3 - "$work/out.json" <<'PYTHON' || fail "reduce, all: JSON"
import json, math, sys

document = json.load(open(sys.argv[1]))
results = {(result["name"], result["at"]): result for result in document["results"]}
names = {name for name, _ in results}
for name in ("SUM FLOAT", "PROD C_DOUBLE_COMPLEX", "LAND C_BOOL", "LOR LOGICAL", "BXOR BYTE",
             "MAXLOC LONG_DOUBLE_INT", "MIN LONG_DOUBLE", "SUM COUNT"):
    assert name in names, name
for name in ("LAND FLOAT", "LOR DOUBLE", "MAX COMPLEX", "BAND C_BOOL", "SUM 2INT"):
    assert name not in names, name
assert len(names) > 200, len(names)
for (name, at), result in results.items():
    expected = ("ns", "lower") if at < 1024 else ("GB/s", "higher")
    assert (result["unit"], result["better"]) == expected, result
    assert f"{result['labels']['op']} {result['labels']['type']}" == name
    detail = result["sides"]["plain"]["detail"]
    value, memcpy = result["sides"]["plain"]["median"], detail["memcpy"]
    share = memcpy / value if at < 1024 else value / memcpy
    assert math.isclose(share, detail["of_memcpy"], rel_tol=1e-3), result
for run in document["runs"]:  # MPICH 4.0.2 takes LXOR on MPI_REAL and leaves it undone
    for record in run["skipped"]:
        assert record["why"] == "the library refuses it" or record["name"].startswith("LXOR "), record
PYTHON
}

# Text and picture of `reduce` with the stand-in preloaded, and the picture's set-up errors.
check_reduce_view() {
    local plot=()
    python3 -c 'import matplotlib' 2> "$work/err" && plot=(--plot "$work/picture.svg")
    timeout 120 "$bench" reduce --quick --sizes 64,4K --show 64,4K --ops sum,prod,lor,maxloc \
        --types int,c_float_complex,2int "${plot[@]}" --library "$work/stand_in.so" --json "$work/out.json" \
        > "$work/text" 2> "$work/err" || fail "reduce: $(tail -n 1 "$work/err")"
    local line
    for line in "MPI_Reduce_local of 64 B: gain over plain, vecmpi auto" \
        "MPI_Reduce_local of 4 KiB: gain over plain, vecmpi auto" "SUM +PROD +LOR +MAXLOC$" \
        "^C_FLOAT_COMPLEX +[0-9.]+ +[0-9.]+$" "^geometric mean [0-9.]+x, worst [0-9.]+x" "^below 1.0, " \
        "^below 0.9 of memcpy's rate, [01] of 1: " "^least gain: complex PROD .*MINLOC MAXLOC " \
        "^a call takes .* ns, plain .* ns" "^by size, vecmpi auto" "^4 KiB +6 +.* GB/s"; do
        grep -qE -- "$line" "$work/text" || fail "reduce: no line '$line'"
    done
    if ((${#plot[@]} > 0)); then
        grep -q 'MPI_Reduce_local, 4 KiB' "$work/picture.svg" || fail "reduce: the picture has no title"
    else
        echo "test_bench: no matplotlib here, the picture was not drawn" >&2
    fi
    mkdir -p "$work/without"
    echo 'raise ImportError' > "$work/without/matplotlib.py"
    PYTHONPATH=$work/without check_refusal "apt-get install python3-matplotlib" \
        reduce --library "$work/stand_in.so" --plot "$work/picture.png"
    check_refusal "does not end in .svg or .png" reduce --library "$work/stand_in.so" --plot "$work/x.pdf"
    check_refusal "leave out --plain-only" reduce --plain-only --plot "$work/x.png"
}

# The plain side with yields, the elements that a user-defined op counts, the words that say so.
check_reductions() {
    "${CC:-cc}" -shared -fPIC -o "$work/yield.so" "$here/../conformance/yield.c" -ldl || fail "no compiler"
    timeout 200 "$bench" reductions --quick --ranks 2,4 --sizes 4K --calls allreduce,scan --ops max,user \
        --types int --yield-library "$work/yield.so" --library "$work/stand_in.so" --json "$work/out.json" \
        > "$work/text" 2> "$work/err" || fail "reductions: $(tail -n 1 "$work/err")"
    grep -qF "plain ranks yield the CPU after each poll in vain: $work/yield.so" "$work/text" ||
        fail "reductions: does not say that plain ranks yield"
    grep -qF "no counter elements_reduced" "$work/err" || fail "reductions: no word of the missing counter"
    python3 - "$work/out.json" "$work" <<'PYTHON' || fail "reductions: JSON"
import json, sys

document = json.load(open(sys.argv[1]))
for run in document["runs"]:
    library = "yield.so" if run["side"] == "plain" else "stand_in.so"
    assert run["header"]["preload"] == f"{sys.argv[2]}/{library}", run["header"]
details = {result["name"]: result["sides"]["plain"]["detail"] for result in document["results"]}
assert details.keys() == {f"{ranks} ranks: {rest}" for ranks in (2, 4) for rest in
                          ("Allreduce MAX INT", "Allreduce user float16 sum", "Scan MAX INT")}
assert details["2 ranks: Scan MAX INT"] == {"of": 1024}
assert details["2 ranks: Allreduce user float16 sum"]["of"] == 2048
for name, detail in details.items():
    assert ("busiest" in detail) == ("user" in name), name
    assert "user" not in name or 0.5 * detail["of"] <= detail["busiest"] <= 3 * detail["of"], detail
PYTHON
    timeout 60 "$bench" reductions --quick --plain-only --sizes 1K --calls reduce --ops user > "$work/text" \
        2> "$work/err" || fail "reductions, plain: $(tail -n 1 "$work/err")"
    grep -q "no yield (see --plain-yield)" "$work/text" || fail "reductions: does not say that none yields"
}

# A stand-in that reports as the library does: 800 elements in 4 calls on 2 ranks are 100 a call and rank.
check_counter() {
    "${CC:-cc}" -shared -fPIC -x c -o "$work/counts.so" - <<'C' || fail "no compiler"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
__attribute__((destructor)) static void report(void) {
    const char *target = getenv("VECMPI_REPORT"), *rank = getenv("PMI_RANK");
    if (target == NULL || rank == NULL || strcmp(rank, "0") != 0) return;
    FILE *file = fopen(target + strlen("json:"), "w");
    fputs("{\"events\": {\"elements_reduced\": {\"count\": 800, \"text\": \"\"}}}", file);
    fclose(file);
}
C
    timeout 100 "$bench" reductions --quick --sizes 1K --calls allreduce --library "$work/counts.so" \
        --json "$work/out.json" > "$work/text" 2> "$work/err" || fail "counter: $(tail -n 1 "$work/err")"
    grep -qE "^2 ranks: Allreduce SUM FLOAT .* - +100 = 0.39 n \(mean\)$" "$work/text" ||
        fail "counter: no 100 in the text"
    grep -qE "^2 ranks: Allreduce user .* 512 = 1.00 n +512 = 1.00 n$" "$work/text" ||
        fail "counter: no 512 in the text"
}

# All collectives on two and three ranks, blocking and not; sides by --set; what a stand-in spoils is no figure.
check_allreduce() {
    local all=allreduce,bcast,reduce,reduce_scatter,allgather,alltoall
    check_measurement allreduce "Allreduce SUM FLOAT,Allreduce user float16 sum,Bcast,Reduce SUM FLOAT,\
Reduce user float16 sum,Reduce_scatter_block SUM FLOAT,Reduce_scatter_block user float16 sum,Allgather,Alltoall" \
        --ranks 3 --sizes 8,40K --collectives $all --ops sum,user
    check_measurement allreduce "Iallreduce user float16 sum,Ibcast,Ireduce user float16 sum,\
Ireduce_scatter_block user float16 sum,Iallgather,Ialltoall" --sizes 64 --collectives $all --ops user --nonblocking
    timeout 100 "$bench" allreduce --quick --sizes 8 --library "$work/stand_in.so" --set VECMPI_ALLREDUCE=ring \
        --set "VECMPI_ALLREDUCE=mpi A=b=c" --json "$work/out.json" > "$work/text" 2> "$work/err" ||
        fail "allreduce --set: $(tail -n 1 "$work/err")"
    python3 - "$work/out.json" <<'PYTHON' || fail "allreduce --set: JSON"
import json, math, sys

document = json.load(open(sys.argv[1]))
sides = {side["name"]: side["environment"] for side in document["sides"]}
assert sides == {"plain": {}, "vecmpi auto ALLREDUCE=ring": {"VECMPI_ALLREDUCE": "ring"},
                 "vecmpi auto ALLREDUCE=mpi A=b=c": {"VECMPI_ALLREDUCE": "mpi", "A": "b=c"}}, sides
for side in document["results"][0]["sides"].values():
    assert side["detail"]["moved"] == 8, side  # 2n(p-1)/p
    assert math.isclose(side["detail"]["mbit"], 8e3 * 8 / side["median"], rel_tol=1e-6), side
PYTHON
    check_wrong_results
}

# A stand-in whose MPI_Allreduce of 64 bytes leaves one element wrong on rank 1, and which ends a rank at 1 KiB.
check_wrong_results() {
    local status=0
    "${CC:-cc}" -shared -fPIC -x c -o "$work/spoils.so" - <<'C' || fail "no compiler"
#include <stdlib.h>
int PMPI_Allreduce(const void *, void *, int, int, int, int);
int MPI_Allreduce(const void *in, void *out, int count, int type, int op, int comm) {
    int status = PMPI_Allreduce(in, out, count, type, op, comm);
    if (count == 16 && getenv("PMI_RANK")[0] == '1') ((float *)out)[7] += 1;
    if (count == 256 && getenv("DIES") != NULL) _Exit(3);
    return status;
}
C
    timeout 100 "$bench" allreduce --quick --sizes 8,64 --library "$work/spoils.so" > "$work/text" 2> "$work/err"
    status=$?
    [ $status -eq 1 ] || fail "wrong result: status $status, not 1"
    grep -qF "wrong result, vecmpi auto: Allreduce SUM FLOAT 64 B: element 7 on rank 1 is wrong, 1 of 2 ranks" \
        "$work/err" || fail "wrong result: $(cat "$work/err")"
    grep -qE "^Allreduce SUM FLOAT +8 B " "$work/text" || fail "wrong result: the right one has no figure"
    ! grep -qE "^Allreduce SUM FLOAT +64 B " "$work/text" || fail "wrong result: has a figure"
    status=0
    timeout 100 "$bench" allreduce --quick --sizes 8,1K --library "$work/spoils.so" -e DIES=1 > "$work/text" \
        2> "$work/err" || status=$?
    [ $status -eq 1 ] || fail "a rank that dies: status $status, not 1"
    grep -qE "^Allreduce SUM FLOAT +8 B " "$work/text" || fail "a rank that dies: its figures before are lost"
    tail -n 1 "$work/err" | grep -q "^vecmpi-bench: a run ended with status " || fail "a rank that dies: $(cat "$work/err")"
}

check_network() {
    check_measurement network "latency,bandwidth one way,bandwidth both ways,overhead of a message" --ranks 3
    tail -n 1 "$work/text" | grep -qE \
        '^VECMPI_NETWORK=latency=[0-9]+(us|ns),bandwidth=[0-9]+Mbit,overhead=[0-9]+(us|ns)$' ||
        fail "network: no line to set: $(tail -n 1 "$work/text")"
}

# Over virtual hosts: shares of the limit, and an end although MPICH may hang in MPI_Finalize.
check_lab() {
    local lab=$here/../../scripts/lab.sh
    if ! why=$("$lab" -n 1 -- true 2>&1); then
        echo "test_bench: no runs over virtual hosts: $why" >&2
        return
    fi
    timeout 150 "$bench" allreduce --quick --lab 3 --rate 500mbit --lab-script "$lab" --sizes 64,256K --plain-only \
        --json "$work/out.json" > "$work/text" 2> "$work/err" || fail "lab: $(tail -n 1 "$work/err")"
    grep -q "3 virtual hosts at 500mbit" "$work/text" || fail "lab: not in the title"
    python3 - "$work/out.json" <<'PYTHON' || fail "lab: JSON"
import json, math, sys

document = json.load(open(sys.argv[1]))
assert len({place.partition(":")[0] for place in document["runs"][0]["header"]["places"]}) == 3
for result in document["results"]:
    side = result["sides"]["plain"]
    least_ns = result["at"] * 4 / 3 / (500e6 / 8) * 1e9
    assert math.isclose(side["detail"]["of_limit"], least_ns / side["median"], rel_tol=1e-2), result
PYTHON
    timeout 100 "$bench" network --quick --lab 2 --lab-script "$lab" > "$work/text" 2> "$work/err" ||
        fail "network over virtual hosts: $(tail -n 1 "$work/err")"
    grep -q '^VECMPI_NETWORK=' "$work/text" || fail "network over virtual hosts: no line to set"
}

# Pictures of `allreduce`, `collectives` and `applications`.
check_curves() {
    local word
    python3 -c 'import matplotlib' 2> "$work/err" || return 0
    timeout 100 "$bench" allreduce --quick --plain-only --plot "$work/curve.svg" > "$work/text" 2> "$work/err" ||
        fail "allreduce --plot: $(tail -n 1 "$work/err")"
    grep -q 'time of a call, ms' "$work/curve.svg" || fail "allreduce: the picture has no axis"
    grep -q 'Allreduce SUM FLOAT' "$work/curve.svg" || fail "allreduce: the picture has no title"
    timeout 100 "$bench" collectives --quick --collectives bcast,barrier --library "$work/stand_in.so" \
        --plot "$work/gains.svg" > "$work/text" 2> "$work/err" || fail "collectives --plot: $(tail -n 1 "$work/err")"
    for word in 'SINGLE blocking, over plain' 'times faster' barrier; do
        grep -q "$word" "$work/gains.svg" || fail "collectives: the picture has no '$word'"
    done
    timeout 100 "$bench" applications --quick --layouts nas_mg_x,fft2 --sizes small,middle --library "$work/stand_in.so" \
        --plot "$work/bars.svg" > "$work/text" 2> "$work/err" || fail "applications --plot: $(tail -n 1 "$work/err")"
    for word in 'long-lived, over plain' 'short-lived, over packing by hand' nas_mg_x middle; do
        grep -q "$word" "$work/bars.svg" || fail "applications: the picture has no '$word'"
    done
}

# What is worked out from figures, with figures that are known. The tool is a zip that Python can import from.
check_arithmetic() {
    python3 - "$bench" "$work" <<'PYTHON' || fail "arithmetic"
import sys
from types import SimpleNamespace

sys.path.insert(0, sys.argv[1])
import allreduce, applications, cells, collectives, network, pack_report, reduce_report, reduced_elements, report, values
from runs import Side

report_file = f"{sys.argv[2]}/report.json"
open(report_file, "w").write('{"events": {"elements_reduced": {"count": 96, "text": "t"}}}')
assert reduced_elements.counted(report_file) == 96
open(report_file, "w").write('{"events": {}}')
assert reduced_elements.counted(report_file) is None
assert reduced_elements.counted("/nowhere") is None
assert reduced_elements.text({"of": 100}) == "-"
assert reduced_elements.text({"of": 100, "busiest": 75.0}) == "75 = 0.75 n"
assert reduced_elements.text({"of": 100, "mean": 150.0}) == "150 = 1.50 n (mean)"

side = Side("vecmpi auto", True, {})
def row(op, type_name, kind, bits, plain, other, share):
    entry = {"median": other, "values": [1, 2], "spread_percent": 1.0, "gain": other / plain,
             "detail": {"memcpy": 100.0, "of_memcpy": share}}
    return {"name": f"{op} {type_name}", "at": 4096, "unit": "GB/s",
            "labels": {"op": op, "type": type_name, "kind": kind, "bits": bits},
            "sides": {"plain": {"median": plain}, side.name: entry}}
results = [row("SUM", "INT", "signed", 32, 10, 90, 0.85), row("BXOR", "BYTE", "byte", 8, 10, 100, 1.0),
           row("SUM", "LONG_DOUBLE", "floating", 128, 10, 9, 0.1), row("MAX", "C_FLOAT16", "floating", 16, 1, 4, 0.2),
           row("PROD", "COMPLEX", "complex", 32, 10, 25, 0.3)]
at_4k = reduce_report.cells_at(results, side, 4096)
assert [cell.is_vector_cell() for cell in at_4k] == [True, True, False, False, False]
options = SimpleNamespace(ops=["max", "sum", "prod", "bxor"],
                          types=["byte", "int", "c_float16", "long_double", "complex"])
assert reduce_report.axes_of(options, at_4k) == (["MAX", "SUM", "PROD", "BXOR"],
                                                 [name.upper() for name in options.types])
text = "\n".join(reduce_report.size_lines(options, at_4k, side, 4096))
for line in ("geometric mean 3.82x, worst 0.90x (SUM LONG_DOUBLE)",
             "below 1.0, 1 of 5: SUM LONG_DOUBLE 0.90 (+-1%)",
             "below 0.9 of memcpy's rate, 1 of 2: SUM INT 0.85", "least gain: complex PROD 2.50x (PROD COMPLEX)"):
    assert line in text, text
assert reduce_report.ratio_text(0.9996) == "0.999" and reduce_report.ratio_text(1.0) == "1.00"
assert values.words("SUM, max") == ["sum", "max"]

def face(at, plain, other):
    return {"name": "pack face", "at": at, "sides": {
        "plain": {"median": 1.0, "detail": {"of_limit": plain}},
        side.name: {"median": 4.0, "gain": 4.0, "detail": {"of_limit": other}}}}
faces, both = [face(2048, 0.004, 0.5), face(2048, 0.006, 0.7), face(4096, 0.1, 1.02)], [Side("plain", False, {}), side]
assert pack_report.rates_text(faces[0], both) == "1.00 / 4.00  4.00x  50%"
assert pack_report.rates_text(faces[0], both[:1]) == "1.00  0.4%"
assert pack_report.limit_line(faces, both[0]).endswith("median, plain: 2 KiB 0.5%, 4 KiB 10%")
assert pack_report.limit_line(faces, side).endswith("vecmpi auto: 2 KiB 60%, 4 KiB 102%")
message = {"sides": {"plain": {"median": 1.0, "detail": {"contiguous": 2.0}}}}
assert pack_report.rates_text(message, both[:1]) == "1.00"

rates = {"500mbit": 62.5e6, "1gbit": 125e6, "1.5gbit": 187.5e6, "100mbps": 1e8, "0": 0}
assert {text: values.rate_bytes(text) for text in rates} == rates
assert values.settings("A=b C=d=e,f") == {"A": "b", "C": "d=e,f"}
for lab, rate, share, text in ((2, "1gbit", 0.8, "800 Mbit/s = 80 %"), (2, "0", None, "800 Mbit/s"),
                               (None, "1gbit", None, "800 Mbit/s")):
    figure = {"value": 1e7, "detail": {"moved": 1e6}}  # 1 MB in 10 ms
    allreduce.annotate(SimpleNamespace(options=SimpleNamespace(lab=lab, rate=rate), runs=[{"figures": [figure]}]))
    assert figure["detail"].get("of_limit") == share and allreduce.text(figure["detail"]) == text, figure
medians = {"latency": 31234.5, "bandwidth one way": 940.4, "overhead of a message": 8200}
assert network.setting(medians) == "VECMPI_NETWORK=latency=31us,bandwidth=940Mbit,overhead=8200ns"

beside = [Side("plain", False, {}), side, Side("plain a", False, {}, mpi="a"), Side("plain b", False, {}, mpi="b")]
times = {"plain": ((40, 30), 8), side.name: ((10, 20), 2), "plain a": ((30, 45), None), "plain b": ((15, 50), None)}
def run(name, repeat):
    bcast, barrier = times[name]
    figures = [{"name": "SINGLE blocking in place bcast", "at": 8, "value": bcast[repeat]}]
    return {"side": name, "figures": figures + [{"name": "SINGLE blocking barrier", "at": 0, "value": barrier}][:barrier or 0]}
outcome = SimpleNamespace(sides=beside, runs=[run(name, repeat) for repeat in (0, 1) for name in times])
bcast, barrier = cells.Cell("SINGLE blocking in place", "bcast", 8), cells.Cell("SINGLE blocking", "barrier", 0)
assert cells.gains(outcome) == {bcast: 3, barrier: 4}
assert cells.best_of_all(outcome) == {bcast: (15, "plain b"), barrier: (8, "plain")}
assert cells.gains_over_best(outcome) == {bcast: 1.5, barrier: 4}
assert cells.geometric_mean([2, 8]) == 4
assert cells.grouped([bcast, barrier]) == {bcast.group: {"bcast": [8]}, barrier.group: {"barrier": [0]}}
assert cells.cell_text(bcast, [0.5]) == "SINGLE blocking in place bcast 8 B: 0.50"
assert collectives.lines_of(cells.gains(outcome), barrier.group) == {"barrier": [(8, 4)]}
def figures(long, short, hand):
    return [{"name": f"{group} fft2", "at": 64, "value": value}
            for group, value in (("long-lived", long), ("short-lived", short), ("by-hand", hand))]
pair = SimpleNamespace(sides=beside[:2], runs=[{"side": "plain", "figures": figures(40, 60, 25)},
                                               {"side": side.name, "figures": figures(20, 90, 30)}])
long, short = cells.Cell("long-lived", "fft2", 64), cells.Cell("short-lived", "fft2", 64)
assert cells.gains(pair) == {long: 2, short: 60 / 90}  # by hand there is none
assert applications.by_hand(pair) == {("fft2", 64): 25}
assert applications.gains_over_hand(pair) == {long: 1.25, short: 25 / 90}
assert applications.summary_lines({short: 60 / 90}, {short: 25 / 90}) == [
    "short-lived: geometric mean 0.667 over plain; 1 of 1 cells under 0.95",
    "short-lived: geometric mean 0.278 over packing by hand; 1 of 1 cells more than 1.1 times as slow"]
sized = SimpleNamespace(sizes=["large", "small"], seconds=1, layouts=["fft2"], lifetimes=["short-lived"])
ratios = {cells.Cell("long-lived", "fft2", at): at for at in (64, 8)}
assert applications.bars_of(sized, ratios, "long-lived") == {"small": [("fft2", 8)], "large": [("fft2", 64)]}
assert applications.launches(sized)[0].arguments == ["--types", "fft2", "--calls", "short-lived,by-hand", "--sizes", "2,0"]
(job,) = applications.relaunch(sized, [long, short])
assert job.what == "fft2" and job.arguments[3] == "long-lived,short-lived", job

outcome.sides = beside[:2]
assert cells.best_of_all(outcome) == {} and cells.gains_over_best(outcome) == {}
outcome.sides = beside[:1]
assert cells.gains(outcome) == {}
chosen = SimpleNamespace(levels=["single", "multiple"], forms=["persistent"], in_place=True, sizes=[8, 64], seconds=1, lab=None,
                         ranks=3, table={"bcast": {"has_size": 1, "in_place": 0}, "gather": {"has_size": 1, "in_place": 1},
                                         "barrier": {"has_size": 0, "in_place": 0}})
jobs = collectives.launches(chosen)
assert [job.what for job in jobs] == [f"{level} persistent {what}" for level in ("SINGLE", "MULTIPLE") for what in
                                      ("bcast", "gather", "barrier", "in place gather")], jobs
(job,) = collectives.relaunch(chosen, [cells.Cell("MULTIPLE persistent in place", "gather", 64)])
assert job.arguments == ["--calls", "gather", "--sizes", "64", "--multiple", "1", "--form", "persistent", "--in-place", "1"], job
assert values.minutes_text(95.4) == "1:35 min"
rows = [{"values": {"plain": [1, 2], "x": [3]}, "details": {"plain": ["a", "b"]}}, {"values": {"plain": [1]}, "details": {}}]
sides = [SimpleNamespace(name="plain"), SimpleNamespace(name="x")]
assert list(report.trim(rows, sides)) == [{"values": {"plain": [1], "x": [3]}, "details": {"plain": ["a"]}}]
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
check_measurement everyday "SINGLE ping-pong,SINGLE window,SINGLE stream,SINGLE sendrecv,SINGLE probe,SINGLE waitany,\
SINGLE waitsome,SINGLE start,SINGLE scatter,SINGLE gather,SINGLE scan,SINGLE alltoall" --levels single --sizes 1,4K
check_measurement everyday "MULTIPLE 1 probe,MULTIPLE 2 probe" --levels multiple --patterns probe --threads 1,2
check_measurement collectives "SINGLE blocking bcast,SINGLE nonblocking bcast,SINGLE persistent bcast,\
SINGLE blocking alltoallw,SINGLE nonblocking alltoallw,SINGLE persistent alltoallw,SINGLE blocking in place alltoallw,\
SINGLE nonblocking in place alltoallw,SINGLE persistent in place alltoallw" --collectives bcast,alltoallw \
    --forms blocking,nonblocking,persistent --in-place --sizes 8,4K
check_measurement collectives "$("$bench-ranks" calls | sed -E 's/.*"name":"(\w+)".*/MULTIPLE nonblocking \1/' | paste -sd,)" \
    --collectives all --levels multiple --forms nonblocking --ranks 3 --sizes 64
check_measurement overlap 'Isend/Irecv,Isend/Irecv of a vector,Iallreduce,Ibcast,Ialltoall' --sizes 64K
check_measurement overlap Iallreduce --sizes 64K --ops iallreduce --tests 7 --offload off
check_measurement training "step,hidden" --threads 0,1 --ranks 3
check_measurement training step --threads 0 --buckets 2 --size 8 --compute 1 --steps 2
check_measurement wake "recv,recv: CPU of who waits,wait,wait: CPU of who waits,barrier,barrier: CPU of who waits" --threads 0,2
check_measurement threads messages --threads 1,2
check_measurement threads messages --threads 2 --comms --unpinned
check_measurement team "exchange of two lines,barrier,sum 1 double,sum 3 doubles,sum 7 doubles" --threads 1,2,3
check_measurement intranode "exchange of two lines,Barrier,Allreduce SUM FLOAT,Bcast,memcpy" --sizes 8,4K \
    --collectives allreduce,bcast
check_measurement intranode "exchange of two lines,Barrier,Iallreduce SUM FLOAT,memcpy" --sizes 8,4K --nonblocking
check_measurement oversub "Allreduce 64 B,Allreduce 64 KiB,Barrier,ring lap 8 B" --ranks 3
check_measurement footprint "MPI_Init,RSS before Init,RSS after Init,peak RSS after Init,\
threads after Init,MPI_Finalize,RSS after Finalize,peak RSS at the end,threads at the end,\
exec of true,MPI libraries in cat" --ranks 2
check_measurement idle "other threads: idle,compute: idle,other threads: receive pending,\
compute: receive pending"
check_measurement reduce "MAX INT,SUM INT,SUM FLOAT,LXOR FLOAT,MINLOC 2INT,LXOR INT,MAX FLOAT" --sizes 64,4K,1M \
    --ops sum,MAX,minloc,lxor --types float,int,2int
check_measurement pack "pack face normal to y,unpack face normal to y,pack face normal to x,unpack face normal to x" \
    --layouts face --sizes 2K,32K
check_limit_of_pack
check_measurement messages "message face normal to y,message face normal to x" --layouts face --sizes 2K,32K
check_measurement applications "$(applications_figures long-lived short-lived by-hand)"
check_measurement applications "short-lived fft2,by-hand fft2,short-lived wrf_y_sa,by-hand wrf_y_sa" \
    --layouts fft2,wrf_y_sa --sizes small,middle --lifetimes short-lived
check_measurement reductions "2 ranks: Allreduce SUM FLOAT,2 ranks: Allreduce user float16 sum,\
2 ranks: Reduce SUM FLOAT,2 ranks: Reduce user float16 sum,2 ranks: Reduce_scatter_block SUM FLOAT,\
2 ranks: Scan SUM FLOAT"
check_preloaded
check_limit "SINGLE ping-pong" everyday --patterns ping-pong
check_limit "SINGLE blocking scatter" collectives --collectives scatter
check_against
check_applications
check_openmpi
check_allreduce
check_curves
check_network
check_lab
check_reduce_table
check_reduce_view
check_reductions
check_counter
check_arithmetic
check_time_limit

check_refusal "MEASUREMENT"
check_refusal "nonsense" nonsense
check_refusal "--nonsense" post --plain-only --nonsense
check_refusal "'7' is not a multiple of 8" latency --plain-only --sizes 7
check_refusal "'x' is not a size" post --plain-only --sizes x
check_refusal "empty range" post --plain-only --sizes 64K-8
check_refusal "not a whole number from 1 to 64" threads --plain-only --threads 0
check_refusal "'q' is none of single, multiple" everyday --plain-only --levels q
check_refusal "'0' is not a number such as 0.95" everyday --plain-only --fail-below 0
check_refusal "leave out --plain-only" everyday --plain-only --fail-below 0.95
check_refusal "one preloaded side" everyday --library "$work/stand_in.so" --offload off,on
check_refusal "--mpi takes a folder" everyday --plain-only --mpi /nowhere
check_refusal "'q' is none of bcast, reduce" collectives --plain-only --collectives bcast,q
check_refusal "'q' is none of blocking, nonblocking, persistent" collectives --plain-only --forms q
check_refusal "'7' is not a multiple of 8" collectives --plain-only --sizes 7
check_refusal "'q' is no library: takes system, mpich4, mpich5, mpich5-ofi, intel" collectives --against q
check_refusal "'intel' is named twice" collectives --against intel,intel
check_refusal "no file /nowhere/lib/libmpich.so.12: --against takes" collectives --library "$work/stand_in.so" \
    --against q=/nowhere
VECMPI_CACHE=$work check_refusal "no intel in $work/libraries: it takes system" collectives \
    --library "$work/stand_in.so" --against intel
check_refusal "leave out --plain-only" collectives --plain-only --against system
check_refusal "leave out --mpi and --against" collectives --lab 2 --lab-script /bin/true \
    --library "$work/stand_in.so" --against system
check_refusal "leave out --plain-only" collectives --plain-only --plot "$work/x.png"
check_refusal "leave out --plain-only" applications --plain-only --plot "$work/x.png"
check_refusal "'q' is none of wrf_x_vec, wrf_y_vec" applications --plain-only --layouts q
check_refusal "'7' is none of small, middle, large" applications --plain-only --sizes 7
check_refusal "'by-hand' is none of long-lived, short-lived" applications --plain-only --lifetimes by-hand
check_refusal "'q' is none of" overlap --plain-only --ops p2p,q
check_refusal "not a whole number from 0 to 100000" overlap --plain-only --tests -1
check_refusal "'FOO' is not NAME=VALUE" post --plain-only -e FOO
check_refusal "set by --offload" post --plain-only -e VECMPI_OFFLOAD=on
check_refusal "CPU 4000" post --plain-only --cpus 4000
check_refusal "named twice" post --plain-only --cpus 0,0
check_refusal "no library at /nowhere.so" post --library /nowhere.so
check_refusal "/bin/true is not MPICH's mpirun" post --plain-only --mpirun /bin/true
check_refusal "no ranks program at /nowhere" post --plain-only --ranks-program /nowhere
check_refusal "'q' is none of max, min, sum" reduce --plain-only --ops sum,q
check_refusal "'q' is none of signed_char, short" reduce --plain-only --types q
check_refusal "has an empty name" reduce --plain-only --types int,
check_refusal "no op of --ops takes a type of --types" reduce --plain-only --ops minloc --types float
check_refusal "the op user is measured with allreduce and reduce only" reductions --plain-only \
    --ops user --calls scan
check_refusal "'user' is none of max" reduce --plain-only --ops user
check_refusal "'q' is none of max" reductions --plain-only --ops q
check_refusal "'q' is none of allreduce" reductions --plain-only --calls q
check_refusal "no library that yields at /nowhere" reductions --plain-only --yield-library /nowhere
check_refusal "/bin/true does not list its ops" reduce --plain-only --ranks-program /bin/true
check_refusal "wake is measured between two ranks" wake --plain-only --lab 3 --lab-script /bin/true
check_refusal "'q' is none of recv, wait, barrier" wake --plain-only --calls q
check_refusal "no lab script at /nowhere" overlap --plain-only --lab 2 --lab-script /nowhere
check_refusal "'fast' is not a rate" allreduce --plain-only --lab 2 --rate fast
check_refusal "'0mbit' is not a rate" network --lab 2 --rate 0mbit
check_refusal "'q' is none of allreduce, bcast" allreduce --plain-only --collectives q
check_refusal "'max' is none of sum, user" allreduce --plain-only --ops max
check_refusal "the op user is measured with allreduce, reduce, reduce_scatter only" allreduce --plain-only \
    --ops user --collectives bcast
check_refusal "not a whole number from 2 to 64" allreduce --plain-only --lab 1
check_refusal "does not end in .svg or .png" allreduce --plain-only --plot "$work/x.pdf"
check_refusal "'FOO' is not NAME=VALUE" allreduce --set "VECMPI_SEGMENTS=4 FOO"
check_refusal "no NAME=VALUE given" allreduce --set ""
check_refusal "set by --offload" allreduce --set VECMPI_OFFLOAD=on
check_refusal "leave out --plain-only" allreduce --plain-only --set VECMPI_SEGMENTS=4
check_refusal "'7' is not a multiple of 8" network --size 7
check_refusal "no folder" post --plain-only --json /nowhere/out.json

[ $failures -eq 0 ] && echo "test_bench: all passed"
exit $((failures > 0))
