#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs an MPI command with libvecmpi.so preloaded into the ranks only, not into the launcher.
#
#   scripts/preload.sh mpirun -n 4 ./app [ARG...]      (also mpiexec, mpirun.mpich, srun; or a program by itself)
#
# VECMPI_LIBRARY names the library; else it is looked for beside this script, in build/, and in the library path.
# Says on standard error what it did, and whether the program is linked with an MPI library that vecmpi serves.
# Installed as vecmpi-preload.
set -euo pipefail

me=${0##*/}
fail() { echo "$me: $*" >&2; exit 2; }

usage() {
    cat <<TEXT
usage: $me COMMAND [ARG...]

Runs a command with libvecmpi.so preloaded, where COMMAND is MPICH's mpirun or mpiexec, or srun, into
the ranks only; any other command by its environment. One line on standard error says what was
preloaded into what, and which MPI library the program is linked with.

  --help  this text

VECMPI_LIBRARY names the library; else it is looked for beside this program and in the loader's cache.
TEXT
}

find_library() {
    local here; here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
    local candidate
    if [ -n "${VECMPI_LIBRARY:-}" ]; then
        [ -f "$VECMPI_LIBRARY" ] || fail "VECMPI_LIBRARY=$VECMPI_LIBRARY: no such file; accepted is the path of libvecmpi.so"
        realpath "$VECMPI_LIBRARY"
        return
    fi
    for candidate in "$here/../build/libvecmpi.so" "$here/../lib/libvecmpi.so" \
                     "$here"/../lib/*/libvecmpi.so "$here/../../lib/libvecmpi.so" "$here"/../../lib/*/libvecmpi.so; do
        if [ -f "$candidate" ]; then realpath "$candidate"; return; fi
    done
    candidate=$(ldconfig -p 2>/dev/null | awk '/libvecmpi\.so/ {print $NF; exit}')
    [ -n "$candidate" ] || return 1
    echo "$candidate"
}

# The first word that is a program: behind a launcher's options and their values.
program_of() { # WORD...
    local word path
    for word; do
        [[ $word == -* ]] && continue
        path=$(type -P -- "$word") && file_is_program "$path" && echo "$path" && return
    done
    return 1
}
file_is_program() { [ -f "$1" ] && [ "$(head -c 4 "$1" | tr -d '\0')" = $'\177ELF' ]; }

# What is known of the MPI library of a program; nothing for one that loads MPI later, as Python does.
mpi_of() { # PROGRAM
    local libraries mpi
    libraries=$(ldd "$1" 2>/dev/null) || return 0
    [[ $libraries =~ lib(mpi|mpich|mpi_abi)\.so\.[0-9]+ ]] || return 0
    mpi=${BASH_REMATCH[0]}
    case $mpi in
        libmpi.so.12 | libmpich.so.12) echo ", linked with $mpi" ;;
        *) echo ", linked with $mpi, which vecmpi does not serve: every MPI call will pass through" ;;
    esac
}

# says WHAT WORD...: the command is WORD...
says() {
    local program
    if program=$(program_of "${@:2}"); then
        echo "$me: $library is preloaded into $1: $program$(mpi_of "$program")" >&2
    else
        echo "$me: $library is preloaded into $1" >&2
    fi
}

[ $# -gt 0 ] || fail "usage: $me mpirun -n RANKS PROGRAM [ARG...]"
if [ "$1" = --help ]; then usage; exit 0; fi
library=$(find_library) || {
    [ -n "${VECMPI_LIBRARY:-}" ] || fail "libvecmpi.so not found; build it or set VECMPI_LIBRARY to its path"
    exit 2
}
unset VECMPI_LIBRARY
command -v "$1" >/dev/null || fail "$1: command not found"
preload=$library${LD_PRELOAD:+:$LD_PRELOAD}
case $(basename "$1") in
    mpirun|mpiexec|mpirun.*|mpiexec.*)
        # No pipe: one whose reader has seen enough ends its writer by a signal, and then fails (pipefail).
        version=$("$1" --version 2>&1) || true
        if [[ ${version,,} =~ hydra|mpich|intel ]]; then
            says "the ranks only" "${@:2}"
            exec "$1" -genv LD_PRELOAD "$preload" "${@:2}"
        fi
        echo "$me: $1 does not start programs of the MPICH family, where mpirun.mpich may: vecmpi will pass every call" \
            "through, and a program of MPICH's would start as single ranks" >&2
        says "all processes" "${@:2}"
        exec env LD_PRELOAD="$preload" "$@" ;;
    srun)
        says "the tasks only" "${@:2}"
        exec "$1" --export="ALL,LD_PRELOAD=$preload" "${@:2}" ;;
    *)
        says "the program" "$@"
        exec env LD_PRELOAD="$preload" "$@" ;;
esac
