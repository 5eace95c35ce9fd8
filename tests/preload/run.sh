#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs programs without and with the library preloaded: they must print the same. Also: processes without MPI, other MPI
# libraries, profilers, settings that are wrong. It asserts no time.
#
#   run.sh --list                                   the names of the scenarios
#   run.sh [--programs DIR] LIBVECMPI [NAME...]     all scenarios, or those with these names
#
# A NAME that no scenario has stands for those whose names begin so. Programs are compiled when a scenario needs them;
# --programs keeps them in DIR, which several run.sh may share. MPICC, MPICXX, MPIFORT, MPIRUN choose MPICH; RUN_TIMEOUT
# is the limit of one run in seconds (60).
#
# It prints `ok CHECK`, `FAIL CHECK: why` or `skip CHECK: reason` a check, and last "N passed, N failed". Exit status: 1
# after a FAIL, 2 for a bad argument, 77 where everything was skipped.
set -uo pipefail
sources=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/preload/programs.sh
. "$sources/programs.sh"
# shellcheck source=tests/preload/record.sh
. "$sources/record.sh"
# shellcheck source=tests/preload/scenarios.sh
. "$sources/scenarios.sh"

# ---- the table ----------------------------------------------------------------------------------------------

# Calls VISIT NAME FUNCTION ARGUMENT... for each scenario. `same COUNT PROGRAM`: plain and preloaded print the same.
scenarios() { # VISIT
    "$1" "two copies of UCX" two_copies_of_ucx
    "$1" "true" same_process /bin/true
    "$1" "sh" same_process /bin/sh -c 'echo one; ls / | head -1; exit 0'
    "$1" "weak references without MPI" weak_references
    "$1" "loads no MPI" loads_no_mpi
    "$1" "MPI call without MPI" call_without_mpi
    "$1" "exports" exports

    "$1" "C point-to-point, 2 ranks" same 2 c_point_to_point
    "$1" "C point-to-point, 3 ranks" same 3 c_point_to_point
    "$1" "C collectives, 1 rank" same 1 c_collectives
    "$1" "C collectives, 2 ranks" same 2 c_collectives
    "$1" "C collectives, 3 ranks" same 3 c_collectives
    "$1" "C objects, 2 ranks" same 2 c_objects
    "$1" "C++ threads, 2 ranks" same 2 cxx_threads
    "$1" "C++ bindings, error handlers, 2 ranks" cxx_bindings
    "$1" "C++ exceptions, delete function of a communicator" same_alone cxx_exceptions comm
    "$1" "C++ exceptions, copy function" same_alone cxx_exceptions copy
    "$1" "C++ exceptions, delete function of a type" same_alone cxx_exceptions type
    "$1" "C++ exceptions, delete function of a window" same_alone cxx_exceptions window
    "$1" "C++ exceptions, operator" same_alone cxx_exceptions operator
    "$1" "C++ exceptions, delete function in Finalize" same_alone cxx_exceptions finalize
    "$1" "Fortran 77, 2 ranks" same 2 f77_calls
    "$1" "Fortran use mpi, 2 ranks" same 2 f90_calls
    "$1" "Fortran use mpi, error handlers, 2 ranks" same 2 f90_errors
    "$1" "Fortran use mpi_f08, 2 ranks" same 2 f08_calls
    "$1" "Fortran use mpi_f08, 3 ranks" same 3 f08_calls
    "$1" "Fortran use mpi_f08, error handlers, 2 ranks" same 2 f08_errors

    "$1" "outside Init and Finalize, 1 rank" same 1 outside
    "$1" "outside Init and Finalize, 2 ranks" same 2 outside
    "$1" "Init in another thread, 2 ranks" same 2 thread_init
    "$1" "requests in Finalize's delete functions, 2 ranks" last_requests
    "$1" "requests in Finalize's delete functions, threads" last_requests threads
    "$1" "one buffer for both sides, unchecked, 3 ranks" unchecked_aliases
    "$1" "Finalize over hosts" ends_over_hosts
    "$1" "a thread loads, a thread waits, 2 ranks" loads_while_waiting
    "$1" "sessions only, 2 ranks" same 2 sessions
    "$1" "session around all, 2 ranks" same 2 session_first
    "$1" "session around all, more ranks than CPUs" same_on_more_ranks_than_cpus session_first
    "$1" "collectives of a session, 2 ranks" same 2 session_collectives
    "$1" "collectives of a session, opened late" same 2 session_collectives late
    "$1" "a blocked rank sleeps until it is woken" sleeps_until_woken
    "$1" "a thread that waits is cancelled, receive" waits_and_is_cancelled
    "$1" "a thread that waits is cancelled, barrier" waits_and_is_cancelled barrier
    "$1" "descriptors closed after Init, 3 ranks" closes_descriptors
    "$1" "past the entries, 1 rank" same 1 by_handle
    "$1" "fork, 2 ranks" same 2 forks
    "$1" "no large files, 3 ranks" same 3 short_of_memory 4
    "$1" "no files for staging buffers, 3 ranks" same 3 short_of_memory 1030
    "$1" "no files for large slots, 3 ranks" same 3 short_of_memory 2048
    "$1" "others' memory unreadable, 2 ranks" same 2 unreadable always
    "$1" "others' memory unreadable, 3 ranks" same 3 unreadable always
    "$1" "others' memory unreadable later, 2 ranks" same 2 unreadable later
    "$1" "others' memory unreadable later, 3 ranks" same 3 unreadable later
    "$1" "others' memory unreadable now and then, 2 ranks" same 2 unreadable
    "$1" "others' memory unreadable now and then, 3 ranks" same 3 unreadable
    "$1" "no launcher" same_alone mpi3_calls
    "$1" "RTLD_LOCAL host, 2 ranks" rtld_local_python
    "$1" "RTLD_LOCAL host that asked before, 2 ranks" rtld_local_c
    "$1" "one rank" one_rank
    "$1" "no engine on one rank" no_engine_on_one_rank

    "$1" "PMPI profiler before" profiler_before
    "$1" "PMPI profiler behind, VECMPI=off" profiler_behind_off
    "$1" "MPI_Pcontrol, no report, C" same 2 sections
    "$1" "MPI_Pcontrol, no report, Fortran" same 2 f90_sections
    "$1" "MPI_Pcontrol, C" reported_sections sections
    "$1" "MPI_Pcontrol, Fortran" reported_sections f90_sections
    "$1" "MPI_Pcontrol, PMPI profiler before" profiled_sections
    "$1" "report in another locale" report_in_locale
    "$1" "report, derived datatypes" reported_datatypes
    "$1" "MPI_T, VECMPI=off" switched_off 1 tool_names
    "$1" "MPI_T" tool_variables

    "$1" "VECMPI=off, point-to-point" switched_off 2 c_point_to_point
    "$1" "VECMPI=off, collectives" switched_off 2 c_collectives
    "$1" "VECMPI=off on one rank" off_on_one_rank
    "$1" "bad value VECMPI_SEGMENTS=banana" bad_value VECMPI_SEGMENTS=banana
    "$1" "bad value VECMPI=maybe" bad_value VECMPI=maybe
    "$1" "unknown name" warned 'VECMPI_OFLOAD.*VECMPI_OFFLOAD' VECMPI_OFLOAD=on
    "$1" "profile of another host" profile_refused \
        'version = 1\ncpu = Other\nisa = none\n' 'is for Other with none, this is'
    "$1" "profile, malformed" profile_refused \
        'version = 1\ncpu = x\nspeed = 3\n' 'profile:3: speed = 3: accepted keys are'
    "$1" "profile, empty" profile_refused '' 'profile: empty'

    "$1" "Open MPI" open_mpi by-launcher
    "$1" "Open MPI, launcher too" open_mpi in-environment
    "$1" "Open MPI, VECMPI=off" open_mpi off
    "$1" "fake libmpi.so.40" fake_of_another_abi libmpi.so.40
    "$1" "fake libmpi_abi.so.1" fake_of_another_abi libmpi_abi.so.1
    "$1" "fake libmpich.so.12" fake_mpich libmpich.so.12
    "$1" "fake libmpi_gnu_91.so.12" fake_mpich libmpi_gnu_91.so.12
    "$1" "fake libmpich.so.12, both builds" fake_mpich_both_builds libvecmpi.so
    "$1" "fake libmpich.so.12, the other build first" fake_mpich_both_builds libvecmpi_abi.so
    "$1" "fake libmpich.so.12, VECMPI=off" fake_mpich_off
    "$1" "fake libmpich.so.12, missing function" fake_mpich_lacks_function
}

# ---- which of them, and running them ------------------------------------------------------------------------

die() {
    echo "run.sh: $1" >&2
    exit 2
}

print_name() { echo "$1"; }

choose() { # NAME... : fills $chosen, of all scenarios where no name is given
    local all asked one found
    mapfile -t all < <(scenarios print_name)
    (($# > 0)) || set -- ''
    for asked; do
        found=()
        for one in "${all[@]}"; do
            if [[ $one == "$asked" ]]; then found=("$one") && break; fi
            [[ $one != "$asked"* ]] || found+=("$one")
        done
        ((${#found[@]} > 0)) || die "no scenario is named '$asked', and no name begins so: run.sh --list"
        for one in "${found[@]}"; do chosen[$one]=yes; done
    done
}

run_chosen() { # NAME FUNCTION ARGUMENT...
    local before=$((passed + failed + skipped)) folder
    [ -n "${chosen[$1]:-}" ] || return 0
    name=$1
    folder=$(mktemp -d "$work/scenario.XXXXXX") && cd "$folder" || exit 1
    "${@:2}"
    cd "$work" && rm -rf "$folder"
    ((passed + failed + skipped > before)) || fail "$name" "checked nothing"
}

usage='usage: run.sh [--programs DIR] LIBVECMPI [NAME...] | --list'
if [ "${1:-}" = --list ]; then
    scenarios print_name
    exit
fi
programs=
if [ "${1:-}" = --programs ]; then
    [ $# -gt 2 ] || die "$usage"
    mkdir -p "$2" || exit 2
    programs=$(realpath "$2")
    shift 2
fi
[[ $# -gt 0 && $1 != -* ]] || die "$usage"
[ -f "$1" ] || die "$1: no such file"
library=$(realpath "$1")
declare -A chosen=()
choose "${@:2}"
mpirun=${MPIRUN:-$(first_of mpirun.mpich mpiexec.hydra mpirun)}
limit=${RUN_TIMEOUT:-60}
for tool in mpicc mpicxx; do [ -n "${compilers[$tool]}" ] || die "no $tool of MPICH is installed: set ${tool^^}"; done
[ -n "$mpirun" ] || die "no mpirun of MPICH is installed: set MPIRUN"
# Nobody's own settings and profile.
unset LD_PRELOAD "${!VECMPI@}"
export VECMPI_PROFILE=off
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
programs=${programs:-$work/programs}
scenarios run_chosen
finish
