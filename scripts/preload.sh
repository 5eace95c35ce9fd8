#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs an MPI command with libvecmpi.so preloaded into the ranks only, not into the launcher.
#
#   scripts/preload.sh mpirun -n 4 ./app [ARG...]      (also mpiexec, mpirun.mpich, srun; or a program by itself)
#
# VECMPI_LIBRARY names the library; else it is looked for beside this script, in build/, and in the library path.
# Installed as vecmpi-preload.
set -euo pipefail

me=${0##*/}
fail() { echo "$me: $*" >&2; exit 2; }

usage() {
    cat <<TEXT
usage: $me COMMAND [ARG...]

Runs a command with libvecmpi.so preloaded, where COMMAND is MPICH's mpirun or mpiexec, or srun, into
the ranks only; any other command by its environment.

  --help  this text

VECMPI_LIBRARY names the library; else it is looked for beside this program and in the loader's cache.
TEXT
}

find_library() {
    local here; here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
    local candidate
    for candidate in "${VECMPI_LIBRARY:-}" "$here/../build/libvecmpi.so" "$here/../lib/libvecmpi.so" \
                     "$here"/../lib/*/libvecmpi.so "$here/../../lib/libvecmpi.so" "$here"/../../lib/*/libvecmpi.so; do
        if [ -n "$candidate" ] && [ -f "$candidate" ]; then realpath "$candidate"; return; fi
    done
    candidate=$(ldconfig -p 2>/dev/null | awk '/libvecmpi\.so/ {print $NF; exit}')
    [ -n "$candidate" ] || return 1
    echo "$candidate"
}

[ $# -gt 0 ] || fail "usage: $me mpirun -n RANKS PROGRAM [ARG...]"
if [ "$1" = --help ]; then usage; exit 0; fi
library=$(find_library) || fail "libvecmpi.so not found; build it or set VECMPI_LIBRARY to its path"
unset VECMPI_LIBRARY
launcher=$(basename "$1")
case $launcher in
    mpirun|mpiexec|mpirun.*|mpiexec.*)
        command -v "$1" >/dev/null || fail "$1: command not found"
        if "$1" --version 2>&1 | grep -qiE 'hydra|mpich|intel'; then
            exec "$1" -genv LD_PRELOAD "$library${LD_PRELOAD:+:$LD_PRELOAD}" "${@:2}"
        fi
        echo "$me: $1 does not start MPICH-family programs; vecmpi will pass every call through" >&2
        exec env LD_PRELOAD="$library${LD_PRELOAD:+:$LD_PRELOAD}" "$@" ;;
    srun)
        exec "$1" --export="ALL,LD_PRELOAD=$library${LD_PRELOAD:+:$LD_PRELOAD}" "${@:2}" ;;
    *)
        exec env LD_PRELOAD="$library${LD_PRELOAD:+:$LD_PRELOAD}" "$@" ;;
esac
