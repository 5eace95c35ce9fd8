#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/preload.sh: what it says and does for each kind of command. The last line is "N passed, N failed".
#
#   test_preload_sh.sh BUILD
set -uo pipefail
build=$(realpath "${1:?usage: test_preload_sh.sh BUILD}")
script=$(cd "$(dirname "$0")/../.." && pwd)/scripts/preload.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
library=$build/libvecmpi.so program=$build/examples/train_digits
passed=0 failed=0

# expect WHAT STATUS PATTERN COMMAND...: PATTERN, fixed text, is in what the command writes.
expect() {
    local status
    timeout 60 "${@:4}" >out 2>&1 </dev/null
    status=$?
    if [ $status = "$2" ] && grep -qF -- "$3" out; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $1: status $status, '$3' expected in:"
        head -n 10 out
    fi
}

# Stand-ins for launchers, which print how they were called. Links: the program beside one is a real one.
stand_in() { # NAME VERSION
    # shellcheck disable=SC2016 # the launcher expands it
    printf '#!/bin/sh\n[ "$1" = --version ] && echo "%s" && exit\necho "called: $* preload: $LD_PRELOAD"\n' "$2" >"$1"
    chmod +x "$1"
}
stand_in srun 'slurm 22.05'
stand_in mpiexec 'mpirun (Open MPI) 4.1.4'

export VECMPI_LIBRARY=$library
expect 'help' 0 'usage: preload.sh COMMAND' "$script" --help
expect 'nothing' 2 'usage: preload.sh mpirun' "$script"
expect 'no such command' 2 'nosuch: command not found' "$script" nosuch
expect 'a program alone' 0 "$library is preloaded into the program: /bin/cat" "$script" /bin/cat /dev/null
expect 'ranks' 0 "the ranks only: $program, linked with lib" "$script" mpirun.mpich -n 2 "$program" --help
# shellcheck disable=SC2016
expect 'ranks have it' 0 "rank: $library" "$script" mpirun.mpich -n 1 sh -c 'echo "rank: $LD_PRELOAD"'
# shellcheck disable=SC2016 # the script expands it
printf '#!/bin/sh\necho "script: $LD_PRELOAD"\n' >script && chmod +x script
expect 'ranks of a script' 0 "script: $library" "$script" mpirun.mpich -n 1 ./script
expect '... which is no ELF file' 0 "the ranks only" "$script" mpirun.mpich -n 1 ./script
expect 'srun' 0 "called: --export=ALL,LD_PRELOAD=$library -n 2 $program preload: " "$script" ./srun -n 2 "$program"
expect 'another launcher' 0 'does not start programs of the MPICH family' "$script" ./mpiexec -n 1 true
expect 'another launcher preloads' 0 "called: -n 1 true preload: $library" "$script" ./mpiexec -n 1 true
expect 'a wrong library' 2 'VECMPI_LIBRARY=/no/such.so: no such file' env VECMPI_LIBRARY=/no/such.so "$script" true

# A program that says it is linked with Open MPI.
echo 'void nothing(void) {}' >mpi.c
echo 'int main(void) { return 0; }' >other.c
"${CC:-cc}" -shared -fPIC mpi.c -Wl,-soname,libmpi.so.40 -o libmpi.so.40 &&
    "${CC:-cc}" other.c -Wl,--no-as-needed ./libmpi.so.40 -Wl,-rpath,"$work" -o other
# Installed, it finds the build for the program's ABI.
"${CC:-cc}" -shared -fPIC mpi.c -Wl,-soname,libmpi_abi.so.1 -o libmpi_abi.so.1 &&
    "${CC:-cc}" other.c -Wl,--no-as-needed ./libmpi_abi.so.1 -Wl,-rpath,"$work" -o abi
"${CC:-cc}" -shared -fPIC mpi.c -o libtool.so
mkdir -p prefix/bin prefix/lib
cp "$script" "$build/vecmpi-info" prefix/bin && cp "$build/libvecmpi.so" "$build/libvecmpi_abi.so" prefix/lib
# shellcheck disable=SC2016
expect 'behind what is preloaded, before an MPI library' 0 "rank: $work/libtool.so:$library:$work/libmpi_abi.so.1" \
    env LD_PRELOAD="$work/libtool.so $work/libmpi_abi.so.1" "$script" mpirun.mpich -n 1 sh -c 'echo "rank: $LD_PRELOAD"'
# shellcheck disable=SC2016
expect 'behind what is preloaded' 0 "rank: $work/libtool.so:$library" \
    env LD_PRELOAD="$work/libtool.so" "$script" mpirun.mpich -n 1 sh -c 'echo "rank: $LD_PRELOAD"'
expect 'the standard ABI' 0 "lib/libvecmpi_abi.so is preloaded into the program: $work/abi, linked with libmpi_abi.so.1" \
    env -u VECMPI_LIBRARY prefix/bin/preload.sh "$work/abi"
expect 'the ABI of MPICH' 0 "lib/libvecmpi.so is preloaded into the program: $program, linked with libmpich.so.12" \
    env -u VECMPI_LIBRARY prefix/bin/preload.sh "$program" --help
expect '... where the user named another' 0 "$library is preloaded into the program: $work/abi" prefix/bin/preload.sh "$work/abi"
rm prefix/lib/libvecmpi_abi.so
expect '... which is not there' 2 'there is no ' env -u VECMPI_LIBRARY prefix/bin/preload.sh "$work/abi"

expect 'another MPI' 0 'linked with libmpi.so.40 (Open MPI), which vecmpi does not serve' "$script" ./other

echo "$passed passed, $failed failed"
((failed == 0))
