# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh sets $library, $limit and $mpirun
# Runs a program, keeps what it printed, compares two runs, counts checks. Sourced by run.sh. It asserts no time.
passed=0 failed=0 skipped=0

ok() { # CHECK
    passed=$((passed + 1))
    echo "ok $1"
}

fail() { # CHECK WHY [FILE...] : with the beginning of each file
    local file
    failed=$((failed + 1))
    echo "FAIL $1: $2"
    for file in "${@:3}"; do [ -s "$file" ] && sed 's/^/    /' "$file" | head -20; done
}

skip() { # CHECK REASON
    skipped=$((skipped + 1))
    echo "skip $1: $2"
}

# The last line, and the status: 77 where nothing could be tried here.
finish() {
    local counts="$passed passed, $failed failed"
    ((skipped == 0)) || counts+=", $skipped skipped"
    echo "$counts"
    ((failed == 0)) || return 1
    ((passed > 0 || skipped == 0)) || return 77
}

# Writes the sorted output to RUN.out, as it was to RUN.raw, standard error to RUN.err, the exit status to RUN.rc.
record() { # RUN COMMAND...
    # In a shell of its own, which says that a program was aborted: nobody wants to read that.
    (timeout -k 10 "$limit" "${@:2}" >"$1.raw" 2>"$1.err" </dev/null; exit $?) 2>/dev/null
    echo $? >"$1.rc"
    sort "$1.raw" >"$1.out"
}

record_ranks() { # RUN COUNT [VARIABLE=VALUE...] -- PROGRAM...
    local run=$1 count=$2 environment=()
    shift 2
    while [[ $1 != -- ]]; do
        environment+=(-genv "${1%%=*}" "${1#*=}")
        shift
    done
    record "$run" "$mpirun" -n "$count" "${environment[@]}" "${@:2}"
}

record_preloaded() { # COUNT [VARIABLE=VALUE...] -- PROGRAM...
    record_ranks preloaded "$1" LD_PRELOAD="$library" "${@:2}"
}

# The run `preloaded` is as the run `plain`: same output, same status, which is 0, and the same on standard error.
compare() { # CHECK
    local status preloaded_status
    status=$(cat plain.rc) preloaded_status=$(cat preloaded.rc)
    if ! diff plain.out preloaded.out >difference || [ "$status" != "$preloaded_status" ]; then
        fail "$1" "status $status and $preloaded_status" difference preloaded.err
    elif [ "$status" != 0 ]; then
        fail "$1" "status $status without the library" plain.err
    elif ! cmp -s plain.err preloaded.err; then
        fail "$1" "standard error differs" preloaded.err
    else
        ok "$1"
    fi
}

lines_of_vecmpi() { grep -c '^vecmpi' "$1"; }

# As compare, but for one line that says why nothing is done.
compare_explained() { # CHECK
    local lines
    lines=$(lines_of_vecmpi preloaded.err)
    if [ "$lines" != 1 ] || ! grep -q 'does not have the MPICH ABI' preloaded.err; then
        fail "$1" "$lines lines, not one" preloaded.err
    else
        sed -i '/^vecmpi/d' preloaded.err
        compare "$1"
    fi
}
