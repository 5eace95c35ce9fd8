#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the battery of all kernels on CPUs that this machine is not: x86-64 without AVX-512, AVX2 and SSE4.2, Arm with
# NEON and with SVE of four lengths, by user-mode emulation. Also cross-compiles the whole library for Arm.
# The last line is "N passed, N failed".
#
#   emulated.sh [--x86-64 PROGRAM] [--cpu NAME]
#
# PROGRAM: a vecmpi_kernel_check that was built already. NAME: one of the CPUs alone (qemu64 Conroe Nehalem Haswell cortex-a72
# sve-128 sve-256 sve-512 sve-2048), or `library`, the cross-compilation alone.
# EMULATED_BUILD names the build folder (default build/emulated), EMULATED_JOBS the compilers and emulators at once (default 2).
set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top" || exit 1
# shellcheck source=scripts/packages.sh
. scripts/packages.sh
# shellcheck source=scripts/sources.sh
. scripts/sources.sh

x86_cpus=(qemu64:scalar Conroe:scalar Nehalem:sse4 Haswell:avx2)
arm_cpus=(cortex-a72 sve-128 sve-256 sve-512 sve-2048)
x86_check='' cpu=''
while (($# > 0)); do
    case $1 in
        --x86-64) x86_check=${2:?--x86-64 needs a program} ;;
        --cpu)
            cpu=${2:-}
            [[ " ${x86_cpus[*]%%:*} ${arm_cpus[*]} library " == *" $cpu "* && -n $cpu ]] ||
                { echo "emulated.sh: --cpu takes one of ${x86_cpus[*]%%:*} ${arm_cpus[*]} library, not '$cpu'" >&2; exit 2; } ;;
        *) echo "emulated.sh: '$1' is not an option (--x86-64 PROGRAM, --cpu NAME)" >&2; exit 2 ;;
    esac
    shift 2
done
build=${EMULATED_BUILD:-$top/build/emulated}
jobs=${EMULATED_JOBS:-2}
passed=0 failed=0

build_target() { # FOLDER TARGET CMAKE_OPTION...: prints the compiler's output only where it fails
    local log=$1.log
    { cmake -S "$top" -B "$1" -G Ninja -DCMAKE_BUILD_TYPE=Release -DVECMPI_WERROR=ON -DVECMPI_TOOLS=OFF "${@:3}" &&
        cmake --build "$1" -j"$jobs" --target "$2"; } >"$log" 2>&1 && return
    tail -n 40 "$log"
    return 1
}

result() { # NAME STATUS TEXT
    if (($2 == 0)); then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    printf '%-28s %s\n' "$1" "$3"
}

# check NAME EXPECTED_ISA COMMAND...: starts the battery beside the others; `counted` waits for them and adds their counts.
declare -a names=() isas=() checks=()
check() {
    names+=("$1") isas+=("$2")
    "${@:3}" --quick --expect "$2" >"$build/check-${#checks[@]}.log" 2>&1 &
    checks+=($!)
    while (($(jobs -rp | wc -l) >= jobs)); do sleep 0.2; done
}

counted() {
    local i counts status log
    for i in "${!checks[@]}"; do
        wait "${checks[i]}"
        status=$?
        log=$build/check-$i.log
        counts=$(tail -n 1 "$log")
        if [[ $counts =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
            passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
            printf '%-28s %-8s %s\n' "${names[i]}" "${isas[i]}" "$counts"
            ((status == 0 || BASH_REMATCH[2] > 0)) || result "${names[i]}" 1 "FAILED: exit status $status"
            ((BASH_REMATCH[2] > 0)) && sed 's/^/    | /' "$log"
        else
            result "${names[i]}" 1 "FAILED: $counts"
            sed 's/^/    | /' "$log" | tail -n 20
        fi
    done
    names=() isas=() checks=()
}

x86_64() { # QEMU_CPU EXPECTED_ISA
    check "x86-64 $1" "$2" qemu-x86_64 -cpu "$1" "$x86_check"
}

aarch64() { # QEMU_CPU EXPECTED_ISA
    check "aarch64 ${1%%,*}" "$2" qemu-aarch64 -cpu "$1" -L /usr/aarch64-linux-gnu "$build/aarch64/vecmpi_kernel_check"
}

need_packages emulated || exit 1
mkdir -p "$build"

wanted() { # CPU
    [[ -z $cpu || $cpu == "$1" ]]
}

on_x86_64() {
    local row
    if [[ -z $x86_check ]]; then
        x86_check=$build/x86_64/vecmpi_kernel_check
        build_target "$build/x86_64" vecmpi_kernel_check || exit 1
    fi
    for row in "${x86_cpus[@]}"; do
        wanted "${row%%:*}" && x86_64 "${row%%:*}" "${row#*:}"
    done
    counted
}

on_arm() {
    local name bits
    if ! build_target "$build/aarch64" vecmpi_kernel_check "-DCMAKE_TOOLCHAIN_FILE=$top/cmake/aarch64.cmake"; then
        result 'aarch64 build' 1 FAILED
        return
    fi
    for name in "${arm_cpus[@]}"; do
        wanted "$name" || continue
        bits=${name#sve-}
        if [[ $bits == "$name" ]]; then
            aarch64 "$name" neon
        else # without a default length QEMU gives 512 at most, as Linux does
            aarch64 "max,sve-max-vq=$((bits / 128)),sve-default-vector-length=$((bits / 8))" "$name"
        fi
    done
    counted
}

# The one library that it links whose code is not the same on all machines.
boost_context_of_arm() {
    local version
    version=$(dpkg-query -W -f '${Depends}' libboost-context-dev | grep -o 'libboost-context[0-9.]*-dev') || return 1
    fetch_foreign_package arm64 "$version" "$build/arm64" >&2 || return 1
    find "$build/arm64" -name libboost_context.a
}

arm_library() {
    local context
    context=$(boost_context_of_arm)
    if [[ -n $context ]] && build_target "$build/aarch64" vecmpi \
        "-DCMAKE_TOOLCHAIN_FILE=$top/cmake/aarch64.cmake" "-DVECMPI_BOOST_CONTEXT=$context"; then
        result 'aarch64 libvecmpi.so' 0 links
    else
        result 'aarch64 libvecmpi.so' 1 FAILED
    fi
}

[[ -n $cpu && " ${x86_cpus[*]%%:*} " != *" $cpu "* ]] || on_x86_64
[[ -n $cpu && " ${arm_cpus[*]} " != *" $cpu "* ]] || on_arm
wanted library && arm_library

echo "$passed passed, $failed failed"
((failed == 0))
