#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The project's one test command: installs what is missing, builds everything with warnings as errors, runs tests by CTest.
# The last line is "N passed, N failed", with ", N skipped" where some were. CI runs this and nothing else.
#
#   check.sh                    what a submission needs: 20 to 25 minutes on two cores; of long lists a part, by a seed
#   check.sh --quick            only short tests
#   check.sh --all              everything, hours: for releases
#   check.sh --only NAME        the test of this name, or all that match it; --seed N repeats a run
#   check.sh --changed [COMMIT] what the files changed since COMMIT (default HEAD) can break
#   check.sh --list             names and labels
#
# Also --stop-on-failure, and --jobs N tests at once (default 2).
#
# CHECK_BUILD names the build folder (default build/check); in it `ctest` knows the same tests.
set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top" || exit 1
# shellcheck source=scripts/packages.sh
. scripts/packages.sh

build=${CHECK_BUILD:-$top/build/check}
for name in $(env | sed -n 's/^\(VECMPI[A-Z_]*\)=.*/\1/p'); do
    [ "$name" = VECMPI_CACHE ] || unset "$name"
done
unset LD_PRELOAD
export VECMPI_PROFILE=off # nobody's own profile

check() { python3 -B tests/ctest/check.py --build "$build" "$@"; }

build_all() {
    cmake -S "$top" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DVECMPI_WERROR=ON \
        -DCMAKE_EXPORT_COMPILE_COMMANDS=ON && cmake --build "$build" -j2
}

need_packages test || exit 1 # python3 as well
check --parse-only "$@" || exit 2
for word; do
    [[ $word != --help && $word != -h ]] || exit 0
    [[ $word != --list ]] || lists=1
done
mkdir -p "$build"
begun=$SECONDS
if ! build_all >"$build/build.log" 2>&1 </dev/null; then
    grep -E -A 12 'FAILED|error|Error' "$build/build.log" | head -n 60
    echo "check.sh: the build failed, see $build/build.log"
    echo "0 passed, 1 failed"
    exit 1
fi
[[ -n ${lists:-} ]] || echo "build: $((SECONDS - begun)) s"
check "$@"
