#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs programs that other people wrote, plain and with libvecmpi.so preloaded: mpi4py's test suite, Horovod with
# PyTorch, a Fortran and a C++ application of the distribution. Prints every check that passes plain and not preloaded.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/packages.sh
. "$here/scripts/packages.sh"
# shellcheck source=scripts/sources.sh
. "$here/scripts/sources.sh"

mpi4py=4.1.0 mpi4py_abi=4.1.2 horovod=0.28.1               # released sources
mumps=mumps=5.5.1-1 lammps=lammps=20220106.git7586adbb6a+ds1-2 # source packages of Debian 12

action=check only=mpi4py,mpi4py_abi,horovod,fortran,cxx modes=off,on ranks=1,2,3,4 yield=on timeout=900 limit=60
library=$here/build/libvecmpi.so
out=$here/build/clients
cache=${VECMPI_CACHE:-$HOME/.cache/vecmpi}/clients
tests='' horovod_tests=''
hosts=2,4 rate=500mbit steps=6 repeats=3 batch=2 pixels=64 gradients=float32 settings=''

usage() {
    cat <<'TEXT'
usage: scripts/clients.sh [check | build | training] [options]

  check     (default) builds what is missing, runs the clients plain and preloaded, and prints every check that
            passes plain and not preloaded; the last line is "N passed, N failed"
  build     only builds
  training  measures ResNet-50 trained by Horovod over virtual hosts, plain and preloaded in turn (root)

  --only LIST         of mpi4py, mpi4py_abi (built for the standard ABI of MPI 5, run with the MPICH 5 that
                      scripts/libraries.sh fetches), horovod, fortran, cxx (default: all)
  --library PATH      library to preload (default: build/libvecmpi.so); with mpi4py_abi the libvecmpi_abi.so beside it
  --cache DIR         sources and builds of the clients (default: ${VECMPI_CACHE:-$HOME/.cache/vecmpi}/clients)
  --out DIR           logs of every run (default: build/clients)

check:
  --modes LIST        of off, on, segments: the settings of scripts/conformance.sh (default: off,on)
  --ranks LIST        numbers of ranks (default: 1,2,3,4)
  --tests FILE        only the tests of mpi4py's suite that FILE names, a module, class or test on each line
  --horovod-tests DIR the folder test of Horovod's sources, of the version above; the released archive has none, and
                      without it only the checks of tests/clients run
  --limit S           seconds for one check of a Python client, after which its ranks are ended (default: 60)
  --timeout S         seconds for one start of the ranks (default: 900)
  --yield on|off      preload tests/conformance/yield.c too, plain and behind the library (default: on)

training:
  --hosts LIST        numbers of hosts, one rank on each (default: 2,4)
  --rate RATE         link rate as tc writes it (default: 500mbit)
  --steps N           steps a run (default: 6), after two that are not counted
  --repeats N         runs of each kind, plain and preloaded in turn (default: 3)
  --batch N           pictures a rank and step (default: 2)
  --pixels N          width and height of a picture (default: 64)
  --gradients TYPE    float32 or float16, to which Horovod compresses them (default: float32)
  --set LIST          settings of the preloaded runs, e.g. VECMPI_OFFLOAD=on,VECMPI_CPU=none (default: none)

Exit status: 0 no difference, 1 some check passes plain and not preloaded, 2 bad arguments, 3 no set-up.
TEXT
}

bad_argument() {
    echo "clients.sh: $1 (--help shows the options)" >&2
    exit 2
}

fail() {
    echo "clients.sh: $1" >&2
    exit 3
}

list_of() { # OPTION VALUE WORD...: VALUE is a list of these words
    local word
    [[ $2 =~ ^[a-z0-9_]+(,[a-z0-9_]+)*$ ]] || bad_argument "$1 takes a list, not '$2'"
    for word in ${2//,/ }; do
        [[ " ${*:3} " == *" $word "* ]] || bad_argument "$1 takes a list of ${*:3}, not '$word'"
    done
}

whole_number() { [[ $2 =~ ^[1-9][0-9]{0,5}$ ]] || bad_argument "$1 takes a whole number from 1 on, not '$2'"; }

numbers() { [[ $2 =~ ^[1-9][0-9]?(,[1-9][0-9]?)*$ ]] || bad_argument "$1 takes numbers such as 2,4, not '$2'"; }

parse_arguments() {
    case ${1:-} in
        check | build | training) action=$1; shift ;;
    esac
    while (($#)); do
        case $1 in
            --help | -h) usage; exit 0 ;;
            --only | --library | --cache | --out | --modes | --ranks | --tests | --horovod-tests | --timeout | \
                --limit | --yield | --hosts | --rate | --steps | --repeats | --batch | --pixels | --gradients | \
                --set)
                (($# > 1)) || bad_argument "$1 needs a value" ;;
            *) bad_argument "'$1' is not an option" ;;
        esac
        case $1 in
            --only) list_of "$1" "$2" mpi4py mpi4py_abi horovod fortran cxx; only=$2 ;;
            --library) library=$2 ;;
            --cache) cache=$2 ;;
            --out) out=$2 ;;
            --modes) list_of "$1" "$2" off on segments; modes=$2 ;;
            --ranks) numbers "$1" "$2"; ranks=$2 ;;
            --tests) [[ -f $2 ]] || bad_argument "$1: no such file: $2"; tests=$2 ;;
            --horovod-tests)
                [[ -f $2/parallel/test_torch.py ]] || bad_argument "$1: $2/parallel/test_torch.py is not there"
                horovod_tests=$(realpath "$2") ;;
            --limit) whole_number "$1" "$2"; limit=$2 ;;
            --timeout) whole_number "$1" "$2"; timeout=$2 ;;
            --yield) list_of "$1" "$2" on off; yield=$2 ;;
            --hosts) numbers "$1" "$2"; hosts=$2 ;;
            --rate) [[ $2 =~ ^[0-9.]+[kmg]bit$ ]] || bad_argument "$1 takes a rate such as 500mbit, not '$2'"; rate=$2 ;;
            --steps) whole_number "$1" "$2"; steps=$2 ;;
            --repeats) whole_number "$1" "$2"; repeats=$2 ;;
            --batch) whole_number "$1" "$2"; batch=$2 ;;
            --pixels) whole_number "$1" "$2"; pixels=$2 ;;
            --gradients)
                [[ $2 == float32 || $2 == float16 ]] || bad_argument "--gradients takes float32 or float16, not '$2'"
                gradients=$2 ;;
            --set) [[ $2 =~ ^VECMPI_[A-Z_]+=[^,]*(,VECMPI_[A-Z_]+=[^,]*)*$ ]] ||
                bad_argument "$1 takes VECMPI_NAME=VALUE, or such separated by commas, not '$2'"; settings=$2 ;;
        esac
        shift 2
    done
}

wants() { [[ ,$only, == *,$1,* ]]; }

# logged LOG WHAT COMMAND...: shows the end of the log where the command fails.
logged() {
    echo "clients.sh: $2 (log: $1)"
    "${@:3}" >"$1" 2>&1 </dev/null && return
    tail -n 15 "$1" >&2
    fail "$2 failed"
}

# Debian's Python, whatever stands before it in PATH: its packages hold numpy and torch.
python_environment() {
    [[ ! -f $cache/venv/ready ]] || return 0
    logged "$cache/venv.log" "making a virtual environment" /usr/bin/python3 -m venv --system-site-packages "$cache/venv"
    logged "$cache/venv.log" "installing tests/clients/requirements.txt" \
        "$cache/venv/bin/pip" install -r "$here/tests/clients/requirements.txt"
    touch "$cache/venv/ready"
}

is_installed() { # MODULE VERSION: in the virtual environment itself
    [[ -n $(find "$cache/venv/lib" -maxdepth 3 -name "$1-$2.dist-info" -print -quit) ]]
}

# fetch_release NAME VERSION: the released archive, unpacked in the cache.
fetch_release() {
    [[ ! -d $cache/$1-$2 ]] || return 0
    logged "$cache/$1.log" "fetching $1 $2" "$cache/venv/bin/pip" download --no-deps --no-build-isolation \
        --no-binary "$1" --dest "$cache" "$1==$2"
    tar -xzf "$cache/$1-$2.tar.gz" -C "$cache"
}

# Optimising the one large C file of the bindings takes minutes and changes no call.
build_mpi4py() {
    need_packages clients || exit 3
    python_environment
    fetch_release mpi4py "$mpi4py"
    is_installed mpi4py "$mpi4py" ||
        logged "$cache/mpi4py.log" "building mpi4py $mpi4py" env MPICC="$(command -v mpicc.mpich)" CFLAGS='-O1 -g0' \
            "$cache/venv/bin/pip" install --no-deps "$cache/mpi4py-$mpi4py"
}

# From the sources, since the released wheels have no build for the standard ABI. Beside the other one, which the
# virtual environment holds.
build_mpi4py_abi() {
    local mpich_5
    need_packages clients || exit 3
    python_environment
    mpich_5=$("$here/scripts/libraries.sh" where --only abi) || fail "no MPICH 5: $mpich_5"
    ln -sfn "$mpich_5" "$cache/mpich_5"
    fetch_release mpi4py "$mpi4py_abi"
    [[ -d $cache/mpi4py_abi/mpi4py-$mpi4py_abi.dist-info ]] ||
        logged "$cache/mpi4py_abi.log" "building mpi4py $mpi4py_abi for the standard ABI" \
            env MPICC="$mpich_5/bin/mpicc_abi" CFLAGS='-O0 -g0' "$cache/venv/bin/pip" install --no-deps --upgrade \
            --target "$cache/mpi4py_abi" "$cache/mpi4py-$mpi4py_abi"
}

# Without isolation: the build asks the installed torch how it was built.
build_horovod() {
    need_packages client-horovod || exit 3
    python_environment
    link_tools "$cache/tools" || exit 3
    fetch_release horovod "$horovod"
    is_installed horovod "$horovod" ||
        logged "$cache/horovod.log" "building Horovod $horovod" env PATH="$cache/tools/bin:$cache/venv/bin:$PATH" \
            MPI_HOME="$cache/tools" HOROVOD_WITH_MPI=1 HOROVOD_WITH_PYTORCH=1 HOROVOD_WITHOUT_TENSORFLOW=1 \
            HOROVOD_WITHOUT_MXNET=1 HOROVOD_WITHOUT_GLOO=1 HOROVOD_CPU_OPERATIONS=MPI MAKEFLAGS=-j2 \
            "$cache/venv/bin/pip" install --no-deps --no-build-isolation "$cache/horovod-$horovod"
}

build_fortran() {
    need_packages client-fortran || exit 3
    [[ ! -x $cache/mumps/examples/dsimpletest ]] || return 0
    fetch_source "$mumps" "$cache/mumps" || exit 3
    cp "$cache/mumps/debian/Makefile.par.inc" "$cache/mumps/Makefile.inc"
    mkdir -p "$cache/mumps/lib"
    logged "$cache/mumps.log" "building MUMPS" make -C "$cache/mumps" -j2 d MUMPS_MPI=mpich CC=mpicc.mpich \
        FC=mpifort.mpich FL=mpifort.mpich MPICLIB= OPTL= OPTC=-O2 OPTF='-O2 -fallow-argument-mismatch -Dintel_'
}

# Its smallest set of packages: atoms, and molecules.
build_cxx() {
    need_packages clients || exit 3
    [[ ! -x $cache/lammps/src/lmp_mpi ]] || return 0
    fetch_source "$lammps" "$cache/lammps" || exit 3
    logged "$cache/lammps.log" "choosing LAMMPS' packages" make -C "$cache/lammps/src" yes-molecule
    logged "$cache/lammps.log" "building LAMMPS" make -C "$cache/lammps/src" -j2 mpi CC=mpicxx.mpich LINK=mpicxx.mpich \
        CCFLAGS='-O2 -std=c++11' LINKFLAGS=-O2
}

build_all() {
    local client
    mkdir -p "$cache"
    exec 9>"$cache/lock"
    flock 9 # two of these scripts may share the cache
    for client in ${only//,/ }; do "build_$client"; done
    build_yield "$cache/libyield.so" || exit 3
    exec 9>&-
}

main() {
    parse_arguments "$@"
    [[ $action != training ]] || only=horovod
    [[ $action == build || -f $library ]] || fail "no $library: build it first (cmake -S . -B build && cmake --build build)"
    [[ $action != check || -f $(dirname "$library")/libvecmpi_abi.so ]] || ! wants mpi4py_abi ||
        fail "mpi4py_abi needs libvecmpi_abi.so beside $library"
    build_all
    [[ $action != build ]] || return 0
    mkdir -p "$out"
    local arguments=(--library "$(realpath "$library")" --cache "$cache" --out "$(realpath "$out")")
    if [[ $action == training ]]; then
        need_packages lab || exit 3
        exec python3 -B "$here/tests/clients/training.py" "${arguments[@]}" --hosts "$hosts" --rate "$rate" \
            --steps "$steps" --repeats "$repeats" --batch "$batch" --pixels "$pixels" \
            --gradients "$gradients" --set "$settings"
    fi
    [[ $yield == off ]] || arguments+=(--yield-library "$cache/libyield.so")
    [[ -z $tests ]] || arguments+=(--tests "$tests")
    [[ -z $horovod_tests ]] || arguments+=(--horovod-tests "$horovod_tests")
    exec python3 -B "$here/tests/clients/run_clients.py" "${arguments[@]}" --mpirun "$(command -v mpirun.mpich)" \
        --only "$only" --modes "$modes" --ranks "$ranks" --timeout "$timeout" --limit "$limit" --mpi4py "$mpi4py" --mpi4py-abi "$mpi4py_abi"
}

main "$@"
