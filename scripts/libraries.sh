#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the programs of the MPI battery, plain and preloaded, with other MPI libraries than the one they were built with:
# the same programs, the same libvecmpi.so, libraries and launchers from wheels. For the standard ABI the programs are
# built once more, and preloaded is libvecmpi_abi.so. Not for timing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/packages.sh
. "$here/scripts/packages.sh"

# NAME: the wheel, and what the ranks have in their environment besides.
declare -rA wheels=([mpich3]=mpich==3.4.3.post1 [mpich4]=mpich==4.3.2 [mpich5]=mpich==5.0.2 [ofi]=mpich==5.0.2 [intel]=impi-rt==2021.18.1)
# Intel MPI: recursive doubling, so that plain sums have the order of MPICH 4.0's, which is that of our lines.
declare -rA ranks_environment=([ofi]=MPIR_CVAR_CH4_NETMOD=ofi
    [intel]='I_MPI_ADJUST_ALLREDUCE=2 I_MPI_ADJUST_REDUCE=2')
# The same libraries by their standard ABI -> the name under which all else is known.
declare -rA abis=([abi]=mpich5 [abi_ofi]=ofi [abi_intel]=intel)
# Cases that fail plain as well, but not each time. Intel MPI, MPICH 4.3 and 5.0: statuses of complete persistent requests,
# with MPICH 5.0.2 over libfabric in 50 of 60 plain runs. MPICH 5.0.2: wrong bytes in collectives of derived types, by what
# the heap holds (MALLOC_PERTURB_): on 4 ranks in 4 of 40 plain runs (neighbourhood) and 2 of 25 (rooted); so has Intel MPI,
# on 2 ranks with one seed in 11 of 13 plain runs (rooted). MPICH 4.3 and 5.0 hang in the fifth or sixth Allreduce of a
# callback of MPI_Finalize, a plain one as well. MPICH 3.4 hangs in the first three of its row. Its MPI_Irecv
# of a message that has arrived calls the error handler, and MPI_Wait once more, and not every abort has a number
# (error_handlers, handler_calls). A jump out of a handler inside the library leaves its lock held, which a plain run at
# MPI_THREAD_SINGLE does not have (handler_calls, left_calls).
declare -rA unsteady=([intel]='persistent,derived_collectives:rooted' [mpich4]='persistent,schedules:last'
    [mpich3]='persistent,callbacks:operators-wait,schedules:operator,error_handlers,handler_calls,left_calls'
    [mpich5]='persistent,derived_collectives,schedules:last' [ofi]='persistent,derived_collectives,schedules:last')

action=check only=mpich3,mpich4,mpich5,ofi,intel,abi,abi_ofi,abi_intel modes=off,on,auto ranks=1,2,4 cases='' seed='' timeout=60
build=$here/build library=''
out=$here/build/libraries
cache=${VECMPI_CACHE:-$HOME/.cache/vecmpi}/libraries
subset=p2p_random,many_requests,error_handlers,collectives:mixed,small_collectives:random,node_collectives:random
subset+=,packing:errors,random_types,callbacks,rma,later

usage() {
    cat <<'TEXT'
usage: scripts/libraries.sh [check | fetch | where] [options]

  check   (default) fetches what is missing, runs the battery with each library, plain and preloaded, and prints the
          counts and what passes plain and not preloaded; the last line is "N passed, N failed"
  fetch   only fetches
  where   only fetches, and prints the folder of each

  --only LIST      of mpich3 (MPICH 3.4), mpich4 (MPICH 4.3), mpich5 (MPICH 5.0), ofi (the same over libfabric), intel
                   (Intel MPI), and abi, abi_ofi, abi_intel: the standard ABI of the last three (default: all)
  --modes LIST     modes of tests/mpi/run.py (default: off,on,auto)
  --ranks LIST     numbers of ranks (default: 1,2,4)
  --cases LIST     cases of tests/mpi/run.py whose name contains one of these (default: all)
  --subset         some short cases, 2 ranks, modes off,on: what scripts/check.sh runs
  --seed N         of the programs (default: a random one, printed)
  --timeout S      seconds for one start of the ranks (default: 60)
  --build DIR      holds libvecmpi.so, libvecmpi_abi.so and the programs, tests/mpi/bin; those for the standard ABI are
                   built into its tests/mpi_abi (default: build)
  --library PATH   library to preload (default: libvecmpi.so or libvecmpi_abi.so of --build)
  --cache DIR      the libraries (default: ${VECMPI_CACHE:-$HOME/.cache/vecmpi}/libraries)
  --out DIR        output of tests/mpi/run.py, a file for each library (default: build/libraries)

Exit status: 0 no difference, 1 something passes plain and not preloaded, 2 bad arguments, 3 no set-up, 77 none of the
libraries can be fetched here.
TEXT
}

bad_argument() {
    echo "libraries.sh: $1 (--help shows the options)" >&2
    exit 2
}

fail() {
    echo "libraries.sh: $1" >&2
    exit 3
}

whole_number() { [[ $2 =~ ^[1-9][0-9]{0,8}$ ]] || bad_argument "$1 takes a whole number from 1 on, not '$2'"; }

words() { [[ $2 =~ ^[A-Za-z0-9_:-]+(,[A-Za-z0-9_:-]+)*$ ]] || bad_argument "$1 takes a list, not '$2'"; }

known_libraries() {
    local name
    words "$1" "$2"
    for name in ${2//,/ }; do
        [[ -n ${wheels[$name]:-}${abis[$name]:-} ]] || bad_argument "$1 takes a list of mpich3 mpich4 mpich5 ofi intel abi abi_ofi abi_intel, not '$name'"
    done
}

parse_arguments() {
    case ${1:-} in
        check | fetch | where) action=$1; shift ;;
    esac
    while (($#)); do
        case $1 in
            --help | -h) usage; exit 0 ;;
            --subset) cases=$subset ranks=2 modes=off,on; shift; continue ;;
            --only | --modes | --ranks | --cases | --seed | --timeout | --build | --library | --cache | --out)
                (($# > 1)) || bad_argument "$1 needs a value" ;;
            *) bad_argument "'$1' is not an option" ;;
        esac
        case $1 in
            --only) known_libraries "$1" "$2"; only=$2 ;;
            --modes) words "$1" "$2"; modes=$2 ;;
            --ranks) [[ $2 =~ ^[1-9](,[1-9])*$ ]] || bad_argument "$1 takes numbers such as 2,4, not '$2'"; ranks=$2 ;;
            --cases) words "$1" "$2"; cases=$2 ;;
            --seed) whole_number "$1" "$2"; seed=$2 ;;
            --timeout) whole_number "$1" "$2"; timeout=$2 ;;
            --build) build=$2 ;;
            --library) library=$2 ;;
            --cache) cache=$2 ;;
            --out) out=$2 ;;
        esac
        shift 2
    done
}

# Of NAME: the file that serves its ABI, the library to preload, the folder of the programs.
file_for() { if [[ $1 == abi* ]]; then echo libvecmpi_abi.so; else echo libvecmpi.so; fi; }
library_for() { echo "${library:-$build/$(file_for "$1")}"; }
has_its_abi() { [[ $(basename "$(library_for "$1")") == "$(file_for "$1")" ]]; }
programs_for() { if [[ $1 == abi* ]]; then echo "$build/tests/mpi_abi"; else echo "$build/tests/mpi"; fi; }

name_of() { echo "${abis[$1]:-$1}"; }
wheel_of() { echo "${wheels[$(name_of "$1")]}"; }
prefix_of() { wheel_of "$1" | sed "s|^|$cache/|; s/==/-/"; } # NAME; no "=" in it, for env

# A virtual environment for each wheel: its bin has the launcher, its lib the library. Programs that were linked to
# Debian's MPICH look for libmpich.so.12; the link stands beside the library, which finds its own parts from there.
fetch() { # NAME
    local wheel prefix
    wheel=$(wheel_of "$1")
    prefix=$(prefix_of "$1")
    [[ ! -f $prefix/ready ]] || return 0
    rm -rf "$prefix"
    {
        /usr/bin/python3 -m venv --without-pip "$prefix" &&
            /usr/bin/python3 -m pip --python "$prefix/bin/python" install --no-deps "$wheel" &&
            ln -sf libmpi.so.12 "$prefix/lib/libmpich.so.12" && touch "$prefix/ready"
    } >"$cache/$1.log" 2>&1 </dev/null
}

# What fetch() cannot get is left out, with a line.
fetch_all() {
    local name fetched=()
    mkdir -p "$cache"
    exec 9>"$cache/lock"
    flock 9 # two of these scripts may share the cache
    for name in ${only//,/ }; do
        if fetch "$name"; then fetched+=("$name"); else echo "left out: $name: no $(wheel_of "$name") (log: $cache/$name.log)"; fi
    done
    exec 9>&-
    only=$(IFS=,; echo "${fetched[*]}")
}

# with_library NAME COMMAND...: Intel MPI is told where its parts lie, MPICH finds them.
with_library() {
    local prefix
    prefix=$(prefix_of "$1")
    # shellcheck disable=SC2086 # words
    env LD_LIBRARY_PATH="$prefix/lib" I_MPI_ROOT="$prefix" FI_PROVIDER_PATH="$prefix/lib" ${ranks_environment[$(name_of "$1")]:-} \
        "${@:2}"
}

# With the header of the MPI Forum, and linked to whatever library of that ABI is there: it is chosen at run time. Only
# what the cases need. Two of these scripts may share the folder.
build_programs_for_abi() { # NAME
    local folder log=$out/programs_$1.log name file targets=(battery_probes vecmpi_yield)
    folder=$(programs_for "$1")
    for name in ${cases//,/ }; do
        for file in "$here"/tests/mpi/programs/*"${name%%:*}"*.cpp; do
            [[ ! -f $file ]] || targets+=("battery_$(basename "$file" .cpp)")
        done
    done
    [[ -n $cases ]] || targets=(all)
    { flock 9 && cmake -S "$here/tests/mpi" -B "$folder" -G Ninja -DVECMPI_MPI_INCLUDE="$here/third_party/mpi_abi" \
        -DVECMPI_MPI_LIBRARY="$(prefix_of "$1")/lib/libmpi_abi.so.1" &&
        cmake --build "$folder" -j2 --target "${targets[@]}"; } >"$log" 2>&1 9>"$build/mpi_abi.lock" ||
        fail "the programs cannot be built for the standard ABI: $(tail -n 1 "$log") (log: $log)"
}

# Does a rank load this library, and no other?
is_loaded() { # NAME
    local prefix loaded
    prefix=$(realpath "$(prefix_of "$1")")
    loaded=$(with_library "$1" "$prefix/bin/mpiexec" -n 1 ldd "$(programs_for "$1")/bin/probes" 2>&1) || return
    [[ $loaded == *"=> $prefix/lib/libmpi"* ]]
}

# summary LOG: "plain: N passed, N left out; MODE: N passed, N failed; ..." from the lines of tests/mpi/run.py.
summary() {
    awk '$1 == "ok" || $1 == "FAIL" { mode = $(NF - 3); if (!(mode in seen)) { seen[mode] = ++modes; name[modes] = mode }
             count[mode, $1]++ }
         /^left out: / { left++ }
         END { printf "plain: %d passed, %d left out", count["plain", "ok"], left
               for (i = 1; i <= modes; i++) if (name[i] != "plain")
                   printf "; %s: %d passed, %d failed", name[i], count[name[i], "ok"], count[name[i], "FAIL"] }' "$1"
}

# A preloaded run is compared where the plain one passed; what does not pass plain is left out by run.py. Sums of floats
# have the order of MPICH 4.0's algorithms, not of those that another library chooses.
check_library() { # NAME
    local log=$out/$1.log arguments=(--build-dir "$(programs_for "$1")" --library "$(library_for "$1")" --modes "$modes"
        --ranks "$ranks" --timeout "$timeout" --only "$cases" --leave-out "${unsteady[$(name_of "$1")]:-}" --where-plain-passes
        --other-library)
    [[ -z $seed ]] || arguments+=(--seed "$seed")
    with_library "$1" python3 -B "$here/tests/mpi/run.py" "${arguments[@]}" \
        --mpirun "$(prefix_of "$1")/bin/mpiexec" >"$log" 2>&1 </dev/null || true
    grep -qE '^[0-9]+ passed, [0-9]+ failed$' "$log" || fail "run.py did not end with $1: $(tail -n 1 "$log")"
    echo "$1 ($(wheel_of "$1")): $(summary "$log")"
    grep -A 13 '^FAIL' "$log" | grep -E '^(FAIL|     )' || true
}

main() {
    parse_arguments "$@"
    local name passed=0 failed=0
    for name in ${only//,/ }; do
        has_its_abi "$name" || bad_argument "--library of $name is a $(file_for "$name"), not '$library'; choose with --only"
    done
    need_packages libraries || exit 3
    fetch_all
    if [[ -z $only ]]; then
        echo "none of the libraries can be fetched here"
        exit 77
    fi
    case $action in
        fetch) return 0 ;;
        where) for name in ${only//,/ }; do prefix_of "$name"; done; return 0 ;;
    esac
    mkdir -p "$out"
    for name in ${only//,/ }; do
        [[ -f $(library_for "$name") && -d $build/tests/mpi/bin ]] ||
            fail "no $(library_for "$name"), or no $build/tests/mpi/bin: build them (-DVECMPI_TESTS=ON), or name another --build"
        [[ $name != abi* ]] || build_programs_for_abi "$name"
        is_loaded "$name" || fail "the ranks do not load $name ($(wheel_of "$name"))"
        check_library "$name"
        passed=$((passed + $(grep -c '^ok ' "$out/$name.log" || true)))
        failed=$((failed + $(grep -c '^FAIL' "$out/$name.log" || true)))
    done
    echo "$passed passed, $failed failed"
    ((failed == 0))
}

[[ ${BASH_SOURCE[0]} != "$0" ]] || main "$@"
