#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs MPICH's own test suite plain and with libvecmpi.so preloaded, or with --abi libvecmpi_abi.so, and prints every
# test that passes plain and not preloaded. Not for timing: the two runs do not share the machine in equal measure.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
cache=${VECMPI_CACHE:-$HOME/.cache/vecmpi}
# shellcheck source=scripts/packages.sh
. "$here/scripts/packages.sh"
# shellcheck source=scripts/sources.sh
. "$here/scripts/sources.sh"

abi=off library=''
modes=off,on,segments,traitless
dirs="" lists=testlist,testlist.dtp,testlist.cvar
subset="" part="" max_np=4 timeout=180 jobs=1 confirm=2 yield=on
out=""
plain_cache=""

usage() {
    cat <<'TEXT'
usage: scripts/conformance.sh [options]

Fetches the source package of the installed MPICH, builds its test/mpi against the installed library,
runs it plain and preloaded, and prints every test that passes plain and not preloaded.

  --abi               the C tests of the suite, built for the standard ABI of MPI 5 and run with the MPICH 5 that
                      scripts/libraries.sh fetches; what the ABI lacks is not built
  --library PATH      library to preload (default: build/libvecmpi.so, with --abi build/libvecmpi_abi.so)
  --modes LIST        of off, on, segments, traitless; "none" runs plain only (default: all)
                        off       VECMPI_OFFLOAD=off VECMPI_INTRANODE=on VECMPI_SINGLE_COPY=off
                        on        VECMPI_OFFLOAD=on VECMPI_INTRANODE=on VECMPI_SINGLE_COPY=1K
                        segments  VECMPI_OFFLOAD=on VECMPI_SEGMENTS=4 and VECMPI_ALLREDUCE, _BCAST,
                                  _REDUCE, _REDUCE_SCATTER, _ALLGATHER=segmented
                        traitless VECMPI_OFFLOAD=off VECMPI_TRAITS_OFF=all
  --dirs LIST         directories of test/mpi, e.g. coll,pt2pt,f08/coll (default: all that the suite runs)
  --lists LIST        list files to read (default: testlist,testlist.dtp,testlist.cvar)
  --subset            only the tests of tests/conformance/subset.txt
  --tests FILE        only the tests that FILE names, in the form of subset.txt
  --part K/N          the K-th of N parts of the tests chosen, each with tests from all over the suite
  --max-np N          most ranks a test gets (default: 4)
  --timeout S         seconds for a test whose list entry names no limit (default: 180)
  --jobs N            tests run, and files compiled, at a time (default: 1)
  --confirm N         runs of each differing test to tell a steady failure from a rare one (default: 2)
  --yield on|off      preload tests/conformance/yield.c too, behind the library (default: on)
  --plain-cache FILE  take plain results from an earlier run's plain.json where it has them
  --out DIR           results as JSON and logs of what failed (default: build/conformance, with --abi
                      build/conformance_abi)
  --help              this text

The source and the built suite are kept under ${VECMPI_CACHE:-$HOME/.cache/vecmpi}.
Exit status: 0 no difference, 1 some test passes plain and not preloaded, 2 bad arguments, 3 no set-up, 77 MPICH 5
cannot be fetched here.
TEXT
}

bad_argument() {
    echo "conformance.sh: $1" >&2
    usage >&2
    exit 2
}

fail() {
    echo "conformance.sh: $1" >&2
    exit 3
}

need_number() {
    [[ $2 =~ ^[1-9][0-9]*$ || ($1 == --confirm && $2 == 0) ]] || bad_argument "$1 takes a number, not '$2'"
}

need_part() {
    if ! [[ $1 =~ ^([1-9][0-9]{0,3})/([1-9][0-9]{0,3})$ ]] || ((BASH_REMATCH[1] > BASH_REMATCH[2])); then
        bad_argument "--part takes K/N such as 1/8, not '$1'"
    fi
}

check_modes() {
    [[ $modes == none ]] && return
    local mode
    for mode in ${modes//,/ }; do
        [[ $mode =~ ^(off|on|segments|traitless)$ ]] || bad_argument "unknown mode '$mode'"
    done
    [[ $modes =~ [a-z] ]] || bad_argument "--modes takes none, or a list of off, on, segments, traitless"
}

parse_arguments() {
    while (($#)); do
        case $1 in
            --help | -h) usage; exit 0 ;;
            --abi) abi=on; shift; continue ;;
            --subset) subset=$here/tests/conformance/subset.txt; shift; continue ;;
            --library | --modes | --dirs | --lists | --part | --max-np | --timeout | --jobs | --confirm | \
                --yield | --plain-cache | --tests | --out) (($# > 1)) || bad_argument "$1 needs a value" ;;
            *) bad_argument "unknown option '$1'" ;;
        esac
        case $1 in
            --library) library=$2 ;;
            --modes) modes=$2 ;;
            --dirs) dirs=$2 ;;
            --lists) lists=$2 ;;
            --part) need_part "$2"; part=$2 ;;
            --max-np) need_number "$1" "$2"; max_np=$2 ;;
            --timeout) need_number "$1" "$2"; timeout=$2 ;;
            --jobs) need_number "$1" "$2"; jobs=$2 ;;
            --confirm) need_number "$1" "$2"; confirm=$2 ;;
            --yield) [[ $2 == on || $2 == off ]] || bad_argument "--yield takes on or off"; yield=$2 ;;
            --plain-cache) [[ -f $2 ]] || bad_argument "no such file: $2"; plain_cache=$2 ;;
            --tests) [[ -f $2 ]] || bad_argument "no such file: $2"; subset=$2 ;;
            --out) out=$2 ;;
        esac
        shift 2
    done
    check_modes
    if [[ $abi == on ]]; then
        : "${library:=$here/build/libvecmpi_abi.so}" "${out:=$here/build/conformance_abi}"
    else
        : "${library:=$here/build/libvecmpi.so}" "${out:=$here/build/conformance}"
    fi
}

install_packages() {
    local missing
    mapfile -t missing < <(missing_packages dpkg-dev gcc g++ gfortran make perl python3 mpich libmpich-dev)
    ((${#missing[@]})) || return 0
    echo "conformance.sh: installing ${missing[*]}"
    { apt_get update && apt_get install --yes --no-install-recommends "${missing[@]}"; } >/dev/null ||
        fail "cannot install; as root: apt-get install ${missing[*]}"
}

# MPICH 5's compiler for the standard ABI, under the name that configure looks for. dtpools, which is linked into
# every program, has two names of MPI 1 that the ABI lacks.
link_abi_compiler() { # TOOLS MPICH5
    mkdir -p "$1/bin"
    printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$2/bin/mpicc_abi" \
        "-DMPI_Type_hvector=MPI_Type_create_hvector -DMPI_Type_hindexed=MPI_Type_create_hindexed" >"$1/bin/mpicc"
    chmod +x "$1/bin/mpicc"
}

# FROM_MPICH and its companions are what MPICH's own configure passes down; without them the suite leaves
# out Fortran 2008, MPI_THREAD_MULTIPLE, name publishing and the device's own tests.
configure_suite() { # SOURCE BUILD TOOLS MPICHVERSION OPTION...
    local source=$1 build=$2 tools=$3 device
    [[ -f $build/config.done ]] && return
    echo "conformance.sh: configuring test/mpi (log: $build/configure.log)"
    rm -rf "$build"
    mkdir -p "$build"
    device=$("$4" | sed -n 's/^MPICH Device:[[:space:]]*\([^ ]*\).*/\1/p')
    (cd "$build" && env FROM_MPICH=yes MPICH_THREAD_LEVEL=MPI_THREAD_MULTIPLE nameserv_name=pmi \
        main_top_srcdir="$source" MPICC="$tools/bin/mpicc" CC="$tools/bin/mpicc" F77="$tools/bin/mpif77" \
        FC="$tools/bin/mpifort" CXX="$tools/bin/mpicxx" "$source/test/mpi/configure" --prefix="$tools" \
        --with-device="$device" --with-pm=hydra "${@:5}" --enable-large-tests \
        --enable-checkfaults --without-cuda --without-hip --without-ze --disable-shared \
        --disable-maintainer-mode) >"$build/configure.log" 2>&1 ||
        fail "configure failed, see $build/configure.log"
    touch "$build/config.done"
}

# The suite of the installed MPICH: sets build, mpich and mpirun.
prepare_installed() { # SUITE VERSION
    build=$1/build mpich=$2 mpirun=$(command -v mpiexec.mpich)
    link_tools "$1/tools" || fail "MPICH's compilers are missing"
    configure_suite "$1/source" "$build" "$1/tools" mpichversion --enable-fortran=all
}

# The same source, for MPICH 5 and the standard ABI.
prepare_abi() { # SUITE MPICH5
    local prefix=$2
    build=$1/build-abi mpich="$(basename "$prefix"), standard ABI" mpirun=$prefix/bin/mpiexec
    link_abi_compiler "$1/tools-abi" "$prefix"
    configure_suite "$1/source" "$build" "$1/tools-abi" "$prefix/bin/mpichversion" --disable-fortran --disable-cxx
}

main() {
    parse_arguments "$@"
    if [[ $modes != none && ! -f $library ]]; then
        fail "no $library: build it first (cmake -S . -B build && cmake --build build)"
    fi
    install_packages
    local version suite mpich_5 status build mpich mpirun
    if [[ $abi == on ]]; then
        mpich_5=$("$here/scripts/libraries.sh" where --only abi) || { status=$?; echo "$mpich_5"; exit "$status"; }
    fi
    version=$(dpkg-query -W -f '${source:Package}=${source:Version}' libmpich-dev)
    suite=$cache/mpich-${version#*=}
    mkdir -p "$suite" "$out"
    exec 9>"$cache/lock"
    flock 9 # two of these scripts may share the cache
    fetch_source "$version" "$suite/source" || fail "no source of $version"
    if [[ $abi == on ]]; then prepare_abi "$suite" "$mpich_5"; else prepare_installed "$suite" "$version"; fi
    exec 9>&-
    local arguments=(--source "$suite/source/test/mpi" --build "$build" --mpich "$mpich"
        --mpirun "$mpirun" --library "$library" --modes "$modes" --dirs "$dirs"
        --lists "$lists" --max-np "$max_np" --timeout "$timeout" --jobs "$jobs" --confirm "$confirm"
        --out "$out")
    [[ -n $subset ]] && arguments+=(--subset "$subset")
    [[ -n $part ]] && arguments+=(--part "$part")
    [[ -n $plain_cache ]] && arguments+=(--plain-cache "$plain_cache")
    if [[ $yield == on ]]; then
        build_yield "$suite/libyield.so" || exit 3
        arguments+=(--yield-library "$suite/libyield.so")
    fi
    exec python3 "$here/tests/conformance/run_suite.py" "${arguments[@]}"
}

main "$@"
