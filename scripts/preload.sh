#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs an MPI command with libvecmpi.so preloaded into the ranks only, not into the launcher.
#
#   scripts/preload.sh mpirun -n 4 ./app [ARG...]      (also mpiexec, mpirun.mpich, srun; or a program by itself)
#
# VECMPI_LIBRARY names the library; else it is looked for beside this script, in build/, and in the library path.
# Says on standard error what it did, and whether the program is linked with an MPI library that vecmpi serves.
# Installed as vecmpi-preload. scripts/run.sh reads it for its functions.
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
    # lib, lib64 (Fedora, SUSE), lib/KIND (Debian)
    for candidate in "$here/../build/libvecmpi.so" "$here"/../{,../}lib{,64,/*}/libvecmpi.so; do
        if [ -f "$candidate" ]; then realpath "$candidate"; return; fi
    done
    candidate=$(ldconfig -p 2>/dev/null | awk '/libvecmpi\.so/ {print $NF; exit}')
    [ -n "$candidate" ] || return 1
    echo "$candidate"
}

# The first word that is a program: behind a launcher's options and their values. Nothing where none is.
program_of() { # WORD...
    local word path
    for word; do
        [[ $word == -* ]] && continue
        if path=$(type -P -- "$word") && file_is_program "$path"; then echo "$path"; return; fi
    done
}
file_is_program() { [ -f "$1" ] && [ "$(head -c 4 "$1" | tr -d '\0')" = $'\177ELF' ]; }

# What vecmpi-info knows of a program: a sentence, then the file of its MPI library. Nothing where there is no
# vecmpi-info. The status is that of vecmpi-info --check.
about() { # PROGRAM
    local here info
    here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
    for info in "$(dirname "$library")/vecmpi-info" "$here/vecmpi-info"; do
        # Whether vecmpi is on, and what is preloaded already, is another question.
        if [ -x "$info" ]; then env -u VECMPI -u LD_PRELOAD "$info" --check "$1" --brief; return; fi
    done
}

# Libraries of the standard ABI of MPI 5 have a build of their own, which stands beside the other. Sets $library, unless
# VECMPI_LIBRARY named it, and $sentence, what is known of the program.
choose_build() { # PROGRAM
    local answer mpi='' build
    answer=$(about "$1") || true
    sentence=${answer%%$'\n'*}
    [[ $answer != *$'\n'* ]] || mpi=$(basename "${answer#*$'\n'}")
    if [ -n "$is_named" ] || [[ $mpi != libmpi_abi.* ]]; then return; fi
    build=$(dirname "$library")/libvecmpi_abi.so
    [ -f "$build" ] || fail "$1 is linked with $mpi, and there is no $build, which serves it"
    library=$build
}

# says WHAT [PROGRAM] [NOTE]: into what the library is preloaded
says() {
    local line="$me: $library is preloaded into $1"
    [ -z "${2:-}" ] || line+=": $2${sentence:+, $sentence}"
    [ -z "${3:-}" ] || line+="; $3"
    [[ ${VECMPI:-} != [oO][fF][fF] ]] || line+="; VECMPI=off, so it does nothing"
    echo "$line" >&2
}

# No pipe: one whose reader has seen enough ends its writer by a signal, and then fails (pipefail).
starts_mpich() { # LAUNCHER
    local version
    version=$("$1" --version 2>&1) || true
    [[ ${version,,} =~ hydra|mpich|intel ]]
}

# The value of LD_PRELOAD: $library behind what is there, so that what counts calls sees them before they are served, but in
# front of an MPI library.
with_library() {
    local entries entry before='' is_placed=''
    IFS=': ' read -ra entries <<<"${LD_PRELOAD-}"
    for entry in "${entries[@]}"; do
        case ${entry##*/} in
            libmpi.so* | libmpich.so* | libmpi_abi.so* | libmpi_gnu* | libmpi_cray*) [ -n "$is_placed" ] || before+=$library: is_placed=yes ;;
        esac
        before+=$entry:
    done
    [ -n "$is_placed" ] || before+=$library:
    echo "${before%:}"
}

# start PROGRAM NOTE COMMAND...: ends as the command. PROGRAM and NOTE are for the line; an empty PROGRAM is looked for.
start() {
    local program=$1 note=$2 preload sentence=''
    shift 2
    case $(basename "$1") in
        mpirun | mpiexec | mpirun.* | mpiexec.* | srun) program=${program:-$(program_of "${@:2}")} ;;
        *) program=${program:-$(program_of "$@")} ;;
    esac
    [ -z "$program" ] || choose_build "$program"
    preload=$(with_library)
    case $(basename "$1") in
        mpirun|mpiexec|mpirun.*|mpiexec.*)
            if starts_mpich "$1"; then
                says "the ranks only" "$program" "$note"
                exec "$1" -genv LD_PRELOAD "$preload" "${@:2}"
            fi
            echo "$me: $1 does not start programs of the MPICH family, where mpirun.mpich may: vecmpi will pass every call" \
                "through, and a program of MPICH's would start as single ranks" >&2
            says "all processes" "$program" "$note"
            exec env LD_PRELOAD="$preload" "$@" ;;
        srun)
            says "the tasks only" "$program" "$note"
            exec "$1" --export="ALL,LD_PRELOAD=$preload" "${@:2}" ;;
        *)
            says "the program" "$program" "$note"
            exec env LD_PRELOAD="$preload" "$@" ;;
    esac
}

# Sets $library, and $is_named where the user did.
need_library() {
    is_named=${VECMPI_LIBRARY:-}
    library=$(find_library) || {
        [ -n "${VECMPI_LIBRARY:-}" ] || fail "libvecmpi.so not found; build it or set VECMPI_LIBRARY to its path"
        exit 2
    }
    [[ $library != *[:\ ]* ]] || fail "$library: the loader takes no path with a blank or a colon"
    unset VECMPI_LIBRARY
}

preload() {
    [ $# -gt 0 ] || fail "usage: $me mpirun -n RANKS PROGRAM [ARG...]"
    if [ "$1" = --help ]; then usage; exit 0; fi
    need_library
    command -v "$1" >/dev/null || fail "$1: command not found"
    start '' '' "$@"
}

[ "${BASH_SOURCE[0]}" != "$0" ] || preload "$@"
