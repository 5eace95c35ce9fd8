#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests of scripts/libraries.sh that fetch nothing and start no ranks: options, counts, what it says where it may not
# fetch.
set -uo pipefail
script=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../scripts" && pwd)/libraries.sh
# shellcheck source=tests/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"

refused() { # OPTION...: one line, status 2
    local status=0
    "$script" "$@" >"$work/refused.out" 2>"$work/refused.err" || status=$?
    [[ $status == 2 && ! -s $work/refused.out && $(wc -l <"$work/refused.err") == 1 ]]
}

check "--help" "$script" --help
for arguments in --nonsense "--only openmpi" "--only" "--ranks 0" "--ranks two" "--timeout 0" "--modes ," "--seed x"; do
    # shellcheck disable=SC2086
    check "refused: $arguments" refused $arguments
done

cat >"$work/log" <<'LOG'
seed 5
ok   probes plain 2 (seed 5)
ok   probes off 2 (seed 5)
FAIL probes on 2 (seed 5)
     no end within the time limit
left out: rma 2 (seed 5): plain: exit status 1
ok   packing:often plain 1 (seed 5)
ok   packing:often off 1 (seed 5)
LOG
expect "counts of a mode" "$(bash -c '. "$1"; summary "$2"' _ "$script" "$work/log")" \
    "plain: 2 passed, 1 left out; off: 2 passed, 0 failed; on: 0 passed, 1 failed"

# No index, and no folder to look in: nothing to fetch from.
status=0
env PIP_NO_INDEX=1 PIP_FIND_LINKS="$work" PIP_CONFIG_FILE=/dev/null "$script" --only mpich4 --cache "$work/cache" \
    >"$work/offline" 2>&1 || status=$?
expect "nothing can be fetched: status" "$status" 77
expect "nothing can be fetched: last line" "$(tail -n 1 "$work/offline")" "none of the libraries can be fetched here"
finish
