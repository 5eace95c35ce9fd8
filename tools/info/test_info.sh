#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Checks what vecmpi-info prints. Arguments: the program, and docs/settings.md that must be up to date.
set -eu
info=$1
page=$2
for name in $(env | sed -n 's/^\(VECMPI[A-Z_]*\)=.*/\1/p'); do unset "$name"; done

fail() {
    echo "test_info: $1" >&2
    exit 1
}

"$info" --markdown | diff -u "$page" - || fail "$page is out of date: vecmpi-info --markdown > $page"
"$info" | grep -q '^offload thread  *o[nf]' || fail "no word about the offload thread"
"$info" | grep -q '^VECMPI_WAIT  *auto  *default' || fail "a default is not shown as one"
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
[ "$status" = 2 ] && [ "$lines" = 1 ] || fail "an unknown option gave status $status, $lines lines"

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
assert info["offload_thread"]["reason"]'
fi
