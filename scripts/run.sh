#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs an MPI program with libvecmpi.so in its ranks, and shows the report: finds the launcher that belongs to the
# program's MPI library, and leaves the rest to preload.sh.
#
#   scripts/run.sh -n 4 ./app [ARG...]
#
# Installed as vecmpi-run.
set -euo pipefail

beside=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
preload_script=$beside/preload.sh
[ -f "$preload_script" ] || preload_script=$beside/vecmpi-preload
# shellcheck source=scripts/preload.sh
. "$preload_script"

usage() {
    cat <<TEXT
usage: $me [-n RANKS] [--launcher COMMAND] PROGRAM [ARG...]

Runs PROGRAM on RANKS ranks with libvecmpi.so preloaded into them, and shows the report at the end. A line on standard
error says what was started by what. A PROGRAM that vecmpi would not serve is not started: a line says why.

  -n RANKS            how many ranks; by default what the launcher starts
  --launcher COMMAND  in place of the launcher that is found, with its options: 'mpiexec -ppn 2 -hosts a,b'
  --help              this text

The launcher: srun in an allocation of Slurm; else the mpirun or mpiexec that belongs to the MPI library with which
PROGRAM is linked; else the first one of MPICH's family in PATH. For whatever else a launcher can do there is
vecmpi-preload. VECMPI_REPORT is 'summary' where it is unset; VECMPI_LIBRARY names the library.
TEXT
}

ranks='' launcher=() program=''

parse() { # ARGUMENT...: sets the three, and $arguments
    while [ $# -gt 0 ]; do
        case $1 in
            --help | -h) usage; exit 0 ;;
            -n | -np | --launcher)
                [ $# -gt 1 ] || fail "$1 needs a value"
                take_option "$1" "$2"
                shift 2 ;;
            --) shift; break ;;
            -*) fail "$1: no such option (--help shows them; a launcher's own go into --launcher)" ;;
            *) break ;;
        esac
    done
    [ $# -gt 0 ] || fail "no program: $me -n RANKS PROGRAM [ARG...]"
    program=$1 arguments=("${@:2}")
}

take_option() { # OPTION VALUE
    case $1 in
        --launcher)
            read -r -a launcher <<<"$2"
            type -P -- "${launcher[0]:-}" >/dev/null || fail "--launcher '$2': no such command" ;;
        *)
            [[ $2 =~ ^[1-9][0-9]{0,6}$ ]] || fail "$1 $2: accepted is a number of ranks from 1 on"
            ranks=$2 ;;
    esac
}

# What vecmpi would not serve is not worth a start. Sets $mpi, the file of the MPI library, if it is known.
look_at_program() {
    local answer status=0
    answer=$(about "$program") || status=$?
    [ $status = 0 ] || [ $status = 3 ] || fail "$program: ${answer%%$'\n'*} (vecmpi-info --check)"
    mpi=''
    [[ $answer != *$'\n'* ]] || mpi=${answer#*$'\n'}
}

# The first of MPICH's family in these folders; Debian's mpirun may be Open MPI's.
launcher_in() { # FOLDER...
    local folder name
    for folder; do
        for name in mpirun.mpich mpiexec.hydra mpiexec mpirun; do
            if [ -x "$folder/$name" ] && starts_mpich "$folder/$name"; then echo "$folder/$name"; return; fi
        done
    done
    return 1
}

find_launcher() { # prints it
    local lib path
    if [ -n "${SLURM_JOB_ID:-}" ] && type -P srun; then return; fi
    if [ -n "$mpi" ]; then
        lib=$(dirname "$(realpath "$mpi")")
        # PREFIX/lib, or PREFIX/lib/KIND
        if launcher_in "$(realpath "$lib/../bin")" "$(realpath "$lib/../../bin")"; then return; fi
    fi
    IFS=: read -r -a path <<<"$PATH"
    launcher_in "${path[@]}" ||
        fail "no launcher of MPICH's family beside ${mpi:-the MPI library} or in PATH: install MPICH, or name one by --launcher"
}

run() {
    local note
    parse "$@"
    need_library
    look_at_program
    [ ${#launcher[@]} -gt 0 ] || launcher=("$(find_launcher)") || exit 2
    [ -z "$ranks" ] || launcher+=(-n "$ranks")
    export VECMPI_REPORT=${VECMPI_REPORT-summary}
    note="started by ${launcher[*]}, VECMPI_REPORT=$VECMPI_REPORT"
    start "$program" "$note" "${launcher[@]}" "$program" "${arguments[@]}"
}

run "$@"
