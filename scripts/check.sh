#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The project's one test command: installs what is missing, builds everything with warnings as errors, runs all tests.
# The last line is "N passed, N failed". CI runs this and nothing else.
#
#   check.sh [--quick]        --quick: without sanitizers, emulated CPUs, MPICH's own tests, mpi4py's, other libraries
#
# CHECK_BUILD names the build folder (default build/check).
set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top" || exit 1
# shellcheck source=scripts/packages.sh
. scripts/packages.sh

quick=no
case ${1:-} in
    '') ;;
    --quick) quick=yes ;;
    *) echo "check.sh: '$1' is not an option (--quick)" >&2; exit 2 ;;
esac
build=${CHECK_BUILD:-$top/build/check}
logs=$build/logs
passed=0 failed=0
for name in $(env | sed -n 's/^\(VECMPI[A-Z_]*\)=.*/\1/p'); do
    [ "$name" = VECMPI_CACHE ] || unset "$name"
done
unset LD_PRELOAD
export VECMPI_PROFILE=off  # nobody's own profile

# step NAME COMMAND...: one test, or as many as the command's own last "N passed, N failed" line says.
step() {
    local name=$1 log counts status begun=$SECONDS
    log=$logs/${name// /-}.log
    shift
    "$@" >"$log" 2>&1 </dev/null
    status=$?
    counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1)
    if [[ $counts =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
        passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
        ((status == 0 || BASH_REMATCH[2] > 0)) || failed=$((failed + 1))
    elif ((status == 0)); then
        passed=$((passed + 1)) counts='passed'
    elif ((status == 77)); then  # not counted: this machine does not allow what the test needs
        counts="skipped: $(tail -n 1 "$log")" status=0
    else
        failed=$((failed + 1)) counts='FAILED'
    fi
    printf '%-34s %s (%d s)\n' "$name" "$counts" $((SECONDS - begun))
    if ((status != 0)); then
        sed 's/^/    | /' "$log" | grep -vE '^ {4}\| ok ' | tail -n 60
    fi
    return $status
}

finish() {
    echo "$passed passed, $failed failed"
    ((failed == 0)) && exit 0
    exit 1
}

configure_and_build() { # FOLDER CMAKE_OPTION...
    cmake -S "$top" -B "$1" -G Ninja -DVECMPI_WERROR=ON "${@:2}" && cmake --build "$1" -j2
}

# The reductions that Highway compiles for each instruction set take longer than all the rest with sanitizers in them, and
# 'kernels' has tried them between pages that may not be touched. Catch's macros take three times as long with the checks of
# undefined behaviour.
unit_with() { # SANITIZERS [TESTS]
    local folder=$build/unit-${1//,/-}
    cmake -S "$top" -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=None -DVECMPI_TOOLS=OFF \
        -DCMAKE_CXX_FLAGS="-O1 -g1 -fsanitize=$1 -fno-sanitize-recover=all" \
        -DVECMPI_VECTOR_OPTIONS=-fno-sanitize=all -DVECMPI_TEST_OPTIONS=-fno-sanitize=undefined &&
        cmake --build "$folder" -j2 --target vecmpi_unit || return 1
    timeout 600 "$folder/tests/unit/vecmpi_unit" "${@:2}"
}

# MPI and vecmpi see two or three nodes. There plain MPICH 4.0.2 crashes in an MPI_Reduce in place whose root is not
# the first rank of its node, and fails `refused`.
several_nodes() {
    tests/mpi/over_nodes.sh -n 1 true || return
    NODES=$1 python3 tests/mpi/run.py --library "$build/libvecmpi.so" --build-dir "$build/tests/mpi" \
        --mpirun tests/mpi/over_nodes.sh --ranks "$2" --modes off,on,hierarchical-on --where-plain-passes --only \
        "$(printf '%s,' collectives:{blocking,mixed} small_collectives:{random,ahead,free,last,inside})threads_comms"
}

only_our_names() {
    local names
    names=$(nm -D --defined-only "$build/libvecmpi.so" | awk '{print $3}' | grep -vE '^P?MPIX?_|^vecmpi_|^ucp_(worker_progress|dt_create_generic|dt_destroy)$|^MPII_Errhandler_set_cxx$')
    [ -z "$names" ] || { echo "exported as well: $names"; return 1; }
    ! readelf -d "$build/libvecmpi.so" | grep NEEDED | grep -vE 'lib(c|m|pthread|dl)\.so|ld-linux'
}

need_packages test || exit 1
mkdir -p "$logs"
step 'build' configure_and_build "$build" -DCMAKE_BUILD_TYPE=Release || finish
step 'structure' python3 tests/structure/check_includes.py
step 'documents check' python3 -B tests/structure/check_docs.py --selftest
step 'documents' python3 -B tests/structure/check_docs.py --build "$build" .
step 'exported names' only_our_names
step 'vector code check' python3 tests/structure/check_vector_code.py --selftest
step 'vector code' python3 tests/structure/check_vector_code.py "$build/libvecmpi.so" \
    "$build/libvecmpi_team.so" "$build/vecmpi_kernel_check"
step 'kernels' "$build/vecmpi_kernel_check"
step 'unit tests' "$build/tests/unit/vecmpi_unit"
step 'handlers' "$build/tests/intercept/vecmpi_handlers"
step 'generator' python3 -B tests/intercept/check_generator.py src/intercept
step 'vecmpi-info' tools/info/test_info.sh "$build/vecmpi-info" docs/settings.md
step 'preload.sh' tests/preload/test_preload_sh.sh "$build"
step 'preload scenarios' tests/preload/run.sh "$build/libvecmpi.so"
step 'MPI programs' python3 tests/mpi/run.py --library "$build/libvecmpi.so" --build-dir "$build/tests/mpi" --sample
step 'schedules on 7 and 9 ranks' python3 tests/mpi/run.py --library "$build/libvecmpi.so" \
    --build-dir "$build/tests/mpi" --only collectives --ranks 7,9 --modes ring,halving-on,trees --timeout 120
step 'two nodes' several_nodes 2 3,4
step 'three nodes' several_nodes 3 5,7
step 'same bits' python3 tests/mpi/reproducible.py --library "$build/libvecmpi.so" --build-dir "$build/tests/mpi" --ranks 5
step 'demo parts' "$build/tests/demo/test_demo_parts"
step 'demo program' tests/demo/test_train_digits.sh "$build/examples/train_digits" "$build/libvecmpi.so"
step 'demo packages' tests/demo/test_packages.sh
step 'thread teams' tests/demo/test_team_sum.sh "$build" .
step 'datatype examples' tests/demo/test_datatype_examples.sh "$build"
step 'tool example' tests/demo/test_tool_counters.sh "$build"
step 'installed' tests/packaging/test_installed.sh "$build" .
step 'virtual hosts' tests/demo/test_lab.sh
step 'conformance runner' python3 -B tests/conformance/selftest.py
step 'clients runner' python3 -B tests/clients/selftest.py
step 'libraries runner' tests/libraries/test_libraries.sh
step 'vecmpi-bench' tests/bench/test_bench.sh "$build/vecmpi-bench"
step 'vecmpi-tune' tests/tune/test_tune.sh "$build"
if [ $quick = no ]; then
    EMULATED_BUILD=$build/emulated step 'kernels on other CPUs' scripts/emulated.sh --x86-64 "$build/vecmpi_kernel_check"
    step 'unit tests, address+undefined' unit_with address,undefined '~[cost]~[long]'  # those are arithmetic alone
    step 'unit tests, thread' unit_with thread '~[schedules]~[cost]~[kernels]~[layouts]'  # functions of one thread
    step 'MPICH tests, subset' scripts/conformance.sh --subset --library "$build/libvecmpi.so" \
        --modes off,on --timeout 60 --out "$build/conformance"
    step 'mpi4py tests, subset' scripts/clients.sh --only mpi4py --tests tests/clients/mpi4py_subset.txt --ranks 2 \
        --modes on --library "$build/libvecmpi.so" --out "$build/clients"
    for library in mpich4 mpich5 ofi intel; do  # skipped where it cannot be fetched
        step "MPI programs on $library" scripts/libraries.sh --subset --only $library --build "$build" --out "$build/libraries"
    done
fi
finish
