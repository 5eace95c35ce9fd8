#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the demo program on 1 to 3 ranks and checks what it promises: it learns, repeats itself to the
# last bit, all ranks agree, a bad option is one line; and with libvecmpi.so preloaded the same bits.
# It asserts no time.
#
#   test_train_digits.sh TRAIN_DIGITS [LIBVECMPI]
set -uo pipefail
program=$(realpath "${1:?usage: test_train_digits.sh TRAIN_DIGITS [LIBVECMPI]}")
library=${2:+$(realpath "$2")}
mpirun=$(command -v mpirun.mpich || command -v mpiexec.hydra)
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

# NAME=VALUE... go to the ranks, what follows the first other word to the program.
train() { # RANKS [NAME=VALUE...] [OPTION...]
    local ranks=$1 environment=()
    shift
    while [[ ${1-} == *=* ]]; do
        environment+=(-genv "${1%%=*}" "${1#*=}")
        shift
    done
    timeout 100 "$mpirun" -n "$ranks" "${environment[@]}" "$program" "$@"
}

value() { awk -v name="$1" '$1 == "result" && $2 == name { print $3 }'; }

small=(--width 48 --layers 3 --batch 16 --epochs 2 --bucket 8K)

hash_of() { train "$@" "${small[@]}" | value hash; } # RANKS [NAME=VALUE...] [OPTION...]

check_repetition() {
    local ranks=$1 first
    first=$(hash_of "$ranks" --overlap)
    [[ $first =~ ^[0-9a-f]{16}$ ]] || fail "$ranks ranks: hash '$first'"
    expect "$ranks ranks, again" "$(hash_of "$ranks" --overlap)" "$first"
}

# The sum of two is the same in either order, so two ranks agree whatever the algorithm.
check_two_ranks() {
    local first settings
    first=$(hash_of 2 --overlap)
    expect "blocking" "$(hash_of 2 --blocking)" "$first"
    expect "one bucket" "$(train 2 "${small[@]}" --bucket 4M | value hash)" "$first"
    [[ $(train 2 "${small[@]}" --seed 2 | value hash) != "$first" ]] || fail "another seed, same hash"
    [[ -n $library ]] || return 0
    for settings in VECMPI_OFFLOAD=auto VECMPI_OFFLOAD=on VECMPI_OFFLOAD=off VECMPI_SEGMENTS=4; do
        for mode in --overlap --blocking; do
            expect "preloaded, $settings $mode" \
                "$(hash_of 2 "LD_PRELOAD=$library" "$settings" "$mode")" "$first"
        done
    done
}

# Sums of float16 by the program's own op: other bits than those of floats, the same in each run.
check_halves() {
    local first ranks accuracy
    first=$(hash_of 2 --half)
    [[ $first =~ ^[0-9a-f]{16}$ && $first != "$(hash_of 2)" ]] || fail "halves: hash '$first'"
    expect "halves, blocking" "$(hash_of 2 --half --blocking)" "$first"
    for ranks in 1 3; do
        expect "halves, $ranks ranks agree" "$(train "$ranks" "${small[@]}" --half | value ranks_agree)" yes
    done
    accuracy=$(train 2 --width 64 --layers 2 --batch 16 --epochs 12 --half | value accuracy)
    awk "BEGIN { exit !($accuracy > 0.9 && $accuracy <= 1) }" || fail "halves: accuracy $accuracy"
    [[ -n $library ]] || return 0
    expect "halves, preloaded" "$(hash_of 2 "LD_PRELOAD=$library" --half)" "$first"
    expect "halves, preloaded, blocking" "$(hash_of 2 "LD_PRELOAD=$library" --half --blocking)" "$first"
}

check_learning() {
    local output accuracy
    output=$(train 2 --width 64 --layers 2 --batch 16 --epochs 12) || fail "training: status $?"
    accuracy=$(value accuracy <<<"$output")
    awk "BEGIN { exit !($accuracy > 0.9 && $accuracy <= 1) }" || fail "accuracy $accuracy"
    expect "epochs shown" "$(grep -c '^epoch [0-9]*/12  loss ' <<<"$output")" 12
    expect "epochs in the curve" "$(grep -oE '^result curve .*' <<<"$output" | grep -o '0x1\.' | wc -l)" 12
    expect "steps" "$(value steps <<<"$output")" $((12 * (1438 / 32)))
}

check_agreement() {
    local ranks
    for ranks in 1 2 3; do
        expect "$ranks ranks agree" "$(train "$ranks" "${small[@]}" | value ranks_agree)" yes
    done
    # More images in a batch than there are.
    expect "large batch" "$(train 2 "${small[@]}" --batch 900 | value ranks_agree)" yes
}

check_error() { # STATUS LINE OPTION...
    local status=0 wanted=$1 line=$2
    shift 2
    train 2 "$@" >"$work/out" 2>"$work/err" || status=$?
    expect "$* status" "$status" "$wanted"
    expect "$*" "$(cat "$work/err")" "train_digits: $line"
    [[ ! -s $work/out ]] || fail "$*: prints '$(head -n 1 "$work/out")'"
}

check_errors() {
    check_error 2 "'--wide' is not an option (see --help)" --wide 3
    check_error 2 "--epochs: '0' is not a whole number from 1 to 10000" --epochs 0
    check_error 2 "--data $work/none: cannot be read" --data "$work/none"
    printf '5 0\n' >"$work/broken"
    check_error 2 "--data $work/broken: line 1 is not a digit, a space and 64 pixels from 0 to g" \
        --data "$work/broken"
    expect "--help" "$(train 2 --help | grep -c '^train_digits: ')" 1
}

check_repetition 1
check_repetition 2
check_repetition 3
check_two_ranks
check_halves
check_learning
check_agreement
check_errors
((failures == 0)) || exit 1
echo "train_digits: all checks passed${library:+, also with $library preloaded}"
