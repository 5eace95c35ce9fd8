# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What test scripts share: a folder $work that goes with them, counts, and two kinds of check. Source it.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

check() { # NAME COMMAND...
    if "${@:2}" >"$work/out" 2>&1; then
        passed=$((passed + 1)) && echo "ok   $1"
    else
        failed=$((failed + 1)) && echo "FAIL $1: $(tail -n 12 "$work/out")"
    fi
}

expect() { # WHAT GOT WANTED
    if [[ $2 == "$3" ]]; then
        passed=$((passed + 1)) && echo "ok   $1"
    else
        failed=$((failed + 1)) && echo "FAIL $1: '$2', not '$3'"
    fi
}

# The last line, and the status of the script that ends with it.
finish() {
    echo "$passed passed, $failed failed"
    ((failed == 0))
}
