#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests of scripts/lab.sh: ranks see hosts of their own, arguments and the exit status arrive whole,
# and nothing stays behind, also when it is killed. Status 77 where virtual hosts cannot be made.
set -uo pipefail
lab=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../scripts" && pwd)/lab.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
    echo "FAIL: $*" >&2
    failures=$((failures + 1))
}

expect() { # WHAT GOT WANTED
    [[ $2 == "$3" ]] || fail "$1: '$2', not '$3'"
}

check_bad_options() {
    local arguments status
    while IFS='|' read -r arguments message; do
        status=0
        # shellcheck disable=SC2086 # a list of options
        expect "lab.sh $arguments" "$("$lab" $arguments 2>&1)" "lab.sh: $message"
        # shellcheck disable=SC2086
        "$lab" $arguments 2>/dev/null || status=$?
        expect "lab.sh $arguments, status" "$status" 2
    done <<'CASES'
-n 0 -- true|-n takes 1 to 64, not '0'
-n 65 -- true|-n takes 1 to 64, not '65'
-n two -- true|-n takes 1 to 64, not 'two'
-r fast -- true|-r takes a rate such as 1gbit or 0, not 'fast'
-t 0 -- true|-t takes a number of seconds, not '0'
-e LD_PRELOAD -- true|-e takes NAME=VALUE, not 'LD_PRELOAD'
-x -- true|'-x' is not an option (-h shows them)
-n|-n needs a value (-h shows the options)
--|no program given (-h shows the options)
-- no-such-program|no-such-program: no such program
CASES
}

namespaces_of() { ip netns list | grep -c "^vecmpi-lab-$1-"; } # PROCESS
files_of() { find "${TMPDIR:-/tmp}" -maxdepth 1 -name "vecmpi-lab-$1.*" | wc -l; } # PROCESS

check_hosts() {
    # shellcheck disable=SC2016 # the ranks expand it
    expect "hosts and arguments" "$("$lab" -n 3 -r 0 -e 'A=b  c;d' -- \
        sh -c 'echo "$(hostname) [$A] [$1]"' sh 'x  y;z $A' | sort)" "$(printf 'host%d [b  c;d] [x  y;z $A]\n' 1 2 3)"
    expect "standard input" "$(echo hello | "$lab" -n 1 -- cat)" hello
}

check_status() {
    local status=0
    "$lab" -- false 2>/dev/null || status=$?
    expect "status of false" "$status" 1
    status=0
    "$lab" -t 1 -- sleep 60 2>/dev/null || status=$?
    expect "status after -t" "$status" 124
}

# Starts a lab whose ranks sleep, and waits until they do.
start_sleeping_lab() {
    rm -f "$work"/*.pid
    # Under nohup HUP is ignored, and a shell cannot undo that.
    env --default-signal=HUP "$lab" -n 2 -- sh -c "echo \$\$ >$work/\$(hostname).pid; exec sleep 60" 2>/dev/null &
    lab_process=$!
    local tries=0
    until [[ -s $work/host1.pid && -s $work/host2.pid ]] || ((++tries > 200)); do sleep 0.05; done
}

# The ranks are gone, at the latest after 5 s.
ranks_ended() {
    local tries=0
    while kill -0 "$(<"$work/host1.pid")" 2>/dev/null || kill -0 "$(<"$work/host2.pid")" 2>/dev/null; do
        ((++tries < 100)) || return 1
        sleep 0.05
    done
}

check_end_by_signal() { # SIGNAL STATUS
    local status=0
    start_sleeping_lab
    expect "namespaces while it runs" "$(namespaces_of "$lab_process")" 3
    kill -s "$1" "$lab_process"
    wait "$lab_process" 2>/dev/null || status=$?
    expect "status after $1" "$status" "$2"
    ranks_ended || fail "$1: ranks go on"
}

check_nothing_left() { # WHAT
    expect "$1: namespaces" "$(namespaces_of "$lab_process")" 0
    expect "$1: files" "$(files_of "$lab_process")" 0
}

check_bad_options
if ! why=$("$lab" -n 1 -- true 2>&1); then
    echo "skipped: $why"
    exit 77
fi
check_hosts
check_status
check_end_by_signal TERM 143
check_nothing_left TERM
check_end_by_signal HUP 129
check_nothing_left HUP
check_end_by_signal KILL 137
"$lab" -n 1 -- true # removes what the killed one left
check_nothing_left KILL
((failures == 0)) || exit 1
echo "lab.sh: all checks passed"
