#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Checks what vecmpi-info prints. Arguments: the program, and docs/settings.md that must be up to date.
set -eu
info=$1
page=$2
for name in $(env | sed -n 's/^\(VECMPI[A-Z_]*\)=.*/\1/p'); do unset "$name"; done
export XDG_CONFIG_HOME=/nowhere # no profile of whoever runs this

fail() {
    echo "test_info: $1" >&2
    exit 1
}

"$info" --markdown | diff -u "$page" - || fail "$page is out of date: vecmpi-info --markdown > $page"
"$info" | grep -q '^offload thread  *o[nf]' || fail "no word about the offload thread"
"$info" | grep -q '^VECMPI_WAIT  *auto  *default' || fail "a default is not shown as one"
"$info" | grep -q '^profile  *\(none, looked for /nowhere/vecmpi/\|/etc/vecmpi/\).*\.profile' || fail "no word about the profile"
VECMPI_PROFILE=off "$info" | grep -q '^profile  *off$' || fail "a profile although it is off"
VECMPI_PROFILE=/nowhere/x "$info" | grep -q '^profile  *profile /nowhere/x cannot be read' || fail "no word about a bad profile"
VECMPI_WAIT=yield "$info" --settings | grep -q '^VECMPI_WAIT  *yield  *environment' ||
    fail "a value of the environment is not shown as one"
VECMPI_SEGMENT=4 "$info" --settings | grep -q 'warning: VECMPI_SEGMENT: .*VECMPI_SEGMENTS?' ||
    fail "no warning about an unknown name"

status=0
VECMPI_WAIT=fast "$info" --settings >/dev/null || status=$?
[ "$status" = 1 ] || fail "a bad value gave exit status $status"
status=0
lines=$("$info" --nonsense 2>&1 | wc -l)
"$info" --nonsense 2>/dev/null || status=$?
[ "$status $lines" = "2 1" ] || fail "an unknown option gave status $status, $lines lines"

root=$(dirname "$(dirname "$page")")
sed -n 's/^VECMPI_TRAIT(\([a-z_]*\),.*/\1/p' "$root/src/base/api/traits.def" | while read -r name; do
    grep -q "^| \`$name\` |" "$root/docs/libraries.md" || fail "docs/libraries.md does not name the trait $name"
done

# Of MPICH 4.0 all is known; the offload thread has its polls hold a lock.
on_library() { VECMPI_OFFLOAD=on "$info" --library; }
if on_library >"${TMPDIR:-/tmp}/test_info.$$" 2>&1 && grep -q '^MPICH Version: *4\.0' "${TMPDIR:-/tmp}/test_info.$$"; then
    [ "$(grep -v '^wakeup' "${TMPDIR:-/tmp}/test_info.$$" | grep -c '^[a-z_]*  *yes  ')" = 9 ] || fail "--library: not all traits hold, wakeup aside, which depends on ranks and CPUs: $(cat "${TMPDIR:-/tmp}/test_info.$$")"
    VECMPI_TRAITS_OFF=all on_library | grep -q '^[a-z_]*  *yes' && fail "--library: traits hold that are off"
    VECMPI_TRAITS_OFF=polls on_library | grep -q '^polls  *off ' || fail "--library: polls are not off"
fi
rm -f "${TMPDIR:-/tmp}/test_info.$$"
status=0
lines=$("$info" --library /nowhere.so 2>&1 | wc -l)
"$info" --library /nowhere.so 2>/dev/null || status=$?
[ "$("$info" --library a b 2>&1)" = "vecmpi-info: --library takes one file, not also b" ] || fail "--library of two files"
[ "$status $lines" = "1 1" ] || fail "--library of no file gave status $status, $lines lines"

explain() { "$info" --explain "$@"; }
explain allreduce --bytes 4M --ranks 64 --nodes 16 | grep -q '^hierarchical  *[0-9]* .*[0-9] ms$' ||
    fail "--explain lists no algorithms"
explain allreduce --bytes 4M --ranks 64 --nodes 1 | grep -q '^chosen: mpi: .*one node' || fail "one node left to auto"
VECMPI_ALLREDUCE=ring:1M-max VECMPI_SEGMENTS=4 explain allreduce --bytes 4M --ranks 8 --nodes 8 |
    grep -q '^chosen: ring, 4 segments: as VECMPI_ALLREDUCE says' || fail "--explain ignores the settings"
VECMPI_REPRODUCIBLE=on explain allreduce --bytes 1K | grep -q '^chosen: recursive_doubling: VECMPI_REPRODUCIBLE' ||
    fail "--explain ignores VECMPI_REPRODUCIBLE"
explain reduce --op noncommutative | grep -q '^chosen: mpi: .*commute' || fail "--op is ignored"
VECMPI_NETWORK=latency=2us,bandwidth=100Gbit explain bcast | grep -q 'latency 2 us, 12500 MB/s' ||
    fail "VECMPI_NETWORK is ignored"
for words in '' gather '--ranks 4' 'bcast --bytes' 'bcast --bytes 1.5M' 'bcast --ranks 0' 'bcast --ranks 2 --nodes 3' \
    'bcast --op min' 'bcast --speed 3'; do
    status=0
    # shellcheck disable=SC2086 # several words
    lines=$("$info" --explain $words 2>&1 >/dev/null | wc -l)
    # shellcheck disable=SC2086
    "$info" --explain $words >/dev/null 2>&1 || status=$?
    [ "$status $lines" = "2 1" ] || fail "--explain $words gave status $status, $lines lines"
done

# What the launcher may use counts, not what a wrapper script that runs as the rank was bound to.
offered=$("$info" | sed -n 's/^usable CPUs.*offers \([0-9]*\).*/\1/p')
first=$("$info" | sed -n 's/^usable CPUs  *\([0-9]*\).*/\1/p')
offers() { # command that starts the ranks, command that binds one
    $1 sh -c "PMI_RANK=0 MPI_LOCALNRANKS=2 MPI_LOCALRANKID=0 $2 sh -c '\"$info\"; :'; :" |
        sed -n 's/^usable CPUs.*offers \([0-9]*\).*/\1/p'
}
if command -v taskset >/dev/null && [ "$(nproc)" -gt 1 ] && [ "$offered" -gt 1 ]; then
    bind="taskset -c $first"
    [ "$(offers "" "$bind")" -gt 1 ] || fail "a bound wrapper was taken for the launcher"
    [ "$(offers "$bind" "")" = 1 ] || fail "a bound launcher was not seen"
fi

if command -v python3 >/dev/null; then
    VECMPI_REPORT='json:a"b\c' "$info" --json | python3 -c '
import json, sys
info = json.load(sys.stdin)
assert {row["name"]: row["value"] for row in info["settings"]}["VECMPI_REPORT"] == "json:a\"b\\c"
assert info["offload_thread"]["reason"]
assert info["profile"]["origin"] == "auto" and info["profile"]["places"][0].startswith("/nowhere/vecmpi/")'
    explain bcast --ranks 5 --json | python3 -c '
import json, sys
answer = json.load(sys.stdin)
assert [row["path"] for row in answer["algorithms"]] == ["chain", "binomial", "scatter_allgather", "circulant"]
assert answer["nodes"] == 5 and answer["chosen"] and answer["why"]'
fi
