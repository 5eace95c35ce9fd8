#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The examples that exchange derived datatypes: the same bits on any number of ranks, with and without libvecmpi.so, and
# one line for a bad option. That plans of ours moved their data is read from the report. It asserts no time.
#
#   test_datatype_examples.sh BUILD_FOLDER
set -uo pipefail
build=$(realpath "${1:?usage: test_datatype_examples.sh BUILD_FOLDER}")
mpirun=$(command -v mpirun.mpich || command -v mpiexec.hydra)
# shellcheck source=tests/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"

run() { # RANKS [NAME=VALUE...] PROGRAM [OPTION...]
    local ranks=$1 environment=()
    shift
    while [[ $1 == *=* ]]; do
        environment+=(-genv "${1%%=*}" "${1#*=}")
        shift
    done
    timeout 100 "$mpirun" -n "$ranks" "${environment[@]}" "$build/examples/$1" "${@:2}" 2>&1
}

# The hash, or what went wrong.
hash_of() { # as run
    local output status
    output=$(run "$@")
    status=$?
    ((status == 0)) || { echo "exit status $status: $output" && return; }
    sed -n 's/^hash \([0-9a-f]\{16\}\).*/\1/p' <<<"$output"
}

# A run in which every type moves often enough for a plan with nothing set: the same bits, and the report counts what plans
# moved, in the library's messages or in buffers of our own: which of the two a collective takes is found by trials.
check_plans() { # PROGRAM OPTION...
    rm -f "$work/report"
    expect "$1: the same bits by plans" \
        "$(hash_of 2 "$preload" VECMPI_REPORT="json:$work/report" "$@")" "$(hash_of 2 "$@")"
    expect "$1: by plans" "$(python3 -c '
import json, sys
events = json.load(open(sys.argv[1]))["events"]
moved = events["plan_messages"]["count"] + events["plan_buffers"]["count"]
print("yes" if moved > 0 else events)' "$work/report")" yes
}

preload="LD_PRELOAD=$build/libvecmpi.so"
for radius in 1 2 3; do
    wanted=$(hash_of 1 stencil --points 60 --radius $radius --steps 40)
    expect "stencil, radius $radius: a hash" "${#wanted}" 16
    for ranks in 2 3 4 5; do
        for setting in VECMPI_PACK=on VECMPI_OFFLOAD=on VECMPI_PACK=off; do
            expect "stencil, radius $radius, $ranks ranks, $setting" \
                "$(hash_of $ranks "$preload" $setting stencil --points 60 --radius $radius --steps 40)" "$wanted"
        done
    done
    expect "stencil, radius $radius, plain" "$(hash_of 4 stencil --points 60 --radius $radius --steps 40)" "$wanted"
done
expect "stencil: other steps, another hash" "$(printf '%s\n' \
    "$(hash_of 1 stencil --points 60 --steps 41)" "$(hash_of 1 stencil --points 60 --steps 40)" | grep . | sort -u | wc -l)" 2
check_plans stencil --points 500 --radius 2 --steps 200

if [[ -x $build/examples/fft2d ]]; then  # FFTW was found
    for ranks in 1 2 3 4; do
        wanted=$(hash_of $ranks fft2d --points 96 --rounds 8)
        expect "fft2d, $ranks ranks: a hash" "${#wanted}" 16
        for setting in VECMPI_PACK=on VECMPI_OFFLOAD=on VECMPI_PACK=off; do
            expect "fft2d, $ranks ranks, $setting" "$(hash_of $ranks "$preload" $setting fft2d --points 96 --rounds 8)" "$wanted"
        done
    done
    check_plans fft2d --points 512 --rounds 40
    expect "fft2d: ranks that do not divide" "$(run 2 fft2d --points 7)" \
        "fft2d: --points takes a multiple of the number of ranks"
fi

expect "stencil: an unknown option" "$(run 2 stencil --size 3)" \
    "stencil: --size is no option; accepted are --points --radius --steps"
expect "stencil: a bad number" "$(run 2 stencil --radius 4)" "stencil: --radius takes a number from 1 to 3"
expect "stencil: no number" "$(run 2 stencil --points)" "stencil: --points takes a number from 1 to 1048576"
expect "stencil: too few points" "$(run 4 stencil --points 3 --radius 3)" \
    "stencil: --points leaves a rank less than the halo; take more"
finish
