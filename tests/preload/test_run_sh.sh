#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/run.sh and vecmpi-info --check on programs of each kind: what they say, what is started by what. The last line
# is "N passed, N failed".
#
#   test_run_sh.sh BUILD
set -uo pipefail
build=$(realpath "${1:?usage: test_run_sh.sh BUILD}")
here=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/checks.sh
. "$here/tests/checks.sh"
run=$here/scripts/run.sh info=$build/vecmpi-info
export VECMPI_LIBRARY=$build/libvecmpi.so
unset VECMPI VECMPI_REPORT SLURM_JOB_ID LD_PRELOAD
cd "$work" || exit 1
cc=${CC:-cc}

# says STATUS TEXT COMMAND...: TEXT is in what the command writes; for a wrong use (2) that is one line.
says() {
    local status=0
    timeout 60 "${@:3}" >said 2>&1 </dev/null || status=$?
    cat said
    [ $status = "$1" ] && grep -qF -- "$2" said && { [ "$status" != 2 ] || [ "$(wc -l <said)" = 1 ]; }
}
says_not() { ! grep -qF -- "$1" said; } # in what the last command wrote

# ---- programs ----------------------------------------------------------------------------------------------

cat >mpi.c <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    int rank, size, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("ranks: %d, sum: %d, argument: %s\n", size, sum, argc > 1 ? argv[1] : "none");
    MPI_Finalize();
    return 0;
}
C
cat >session.c <<'C'
#include <mpi.h>
int main(void) {
    MPI_Session session;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    return MPI_Session_finalize(&session);
}
C
echo '#include <mpi.h>
void user(void) { MPI_Init(0, 0); MPI_Finalize(); }' >user.c
echo 'void user(void); int main(void) { user(); return 0; }' >through.c
echo 'void nothing(void) {}' >nothing.c
echo 'int main(void) { return 0; }' >none.c
echo '#include <dlfcn.h>
int main(void) { return dlopen("libnosuch.so", RTLD_NOW) != 0; }' >later.c
printf '#!/usr/bin/env -S python3 -u\n' >script.py
echo 'some text' >text
chmod +x script.py text

fake() { # SONAME FOLDER: a library of that name
    mkdir -p "$2" && "$cc" -shared -fPIC nothing.c -Wl,-soname,"$1" -o "$2/$1"
}
linked() { # PROGRAM SONAME FOLDER
    fake "$2" "$3" && "$cc" none.c -Wl,--no-as-needed "$3/$2" -Wl,-rpath,"$work/$3" -o "$1"
}
stand_in() { # FILE VERSION: a launcher that prints how it was called
    # shellcheck disable=SC2016 # the launcher expands it
    printf '#!/bin/sh\n[ "$1" = --version ] && echo "%s" && exit\necho "called: $* report: $VECMPI_REPORT"\n' "$2" >"$1"
    chmod +x "$1"
}

mpicc.mpich mpi.c -o mpi && mpicc.mpich session.c -o session &&
    mpicc.mpich -shared -fPIC user.c -o libuser.so && "$cc" through.c ./libuser.so -Wl,-rpath,"$work" -o through &&
    "$cc" none.c -o none && "$cc" later.c -o later && "$cc" -static none.c -o static && "$cc" -static-pie none.c -o static_pie &&
    linked openmpi libmpi.so.40 open && linked abi libmpi_abi.so.1 abi5 && linked gone libmpi.so.12 removed &&
    linked other libmpi.so.12 prefix/lib &&
    fake libhelper.so.1 removed &&
    mpicc.mpich mpi.c -Wl,--no-as-needed removed/libhelper.so.1 -Wl,-rpath,"$work/removed" -o helpless &&
    fake libcudart.so.12 gpu && mpicc.mpich mpi.c -Wl,--no-as-needed gpu/libcudart.so.12 -Wl,-rpath,"$work/gpu" -o on_gpu &&
    "$cc" none.c -Wl,--no-as-needed open/libmpi.so.40 prefix/lib/libmpi.so.12 -Wl,-rpath,"$work/open:$work/prefix/lib" -o two &&
    built=yes
[ -n "${built:-}" ] || { echo "FAIL the programs cannot be built"; exit 1; }
rm -r removed
cp mpi elsewhere && printf '\xf3\x00' | dd of=elsewhere bs=1 seek=18 conv=notrunc status=none # the processor: RISC-V

# ---- vecmpi-info --check -----------------------------------------------------------------------------------

checked() { says "$1" "$2" "$info" --check "./$3"; } # STATUS TEXT PROGRAM
check "a program of MPICH's" checked 0 './mpi: yes, vecmpi would serve it: linked with libmpich.so.12' mpi
check "... with the library" grep -qE '^  MPI library  .*/libmpich.so.12: MPICH Version' said
check "... what of it" grep -q '^  collectives of a node  *yes' said
check "... what to do" grep -qx 'next: vecmpi-run -n 4 ./mpi' said
if [[ $("$info" --library 2>/dev/null) =~ ^MPICH\ Version:\ *4\.0 ]]; then
    check "... reductions, of MPICH 4.0" grep -q '^  reductions  *yes, by SIMD' said
    check "... without a trait" says 0 '  reductions              in part: our kernels' env VECMPI_TRAITS_OFF=op_table "$info" --check ./mpi
fi
check "through a library" checked 0 'linked with libmpich.so.12 through libuser.so' through
check "a library itself" checked 0 'linked with libmpich.so.12' libuser.so
check "... what to do" grep -qx 'next: vecmpi-run -n 4, with the program that loads it' said
check "by a name in PATH" says 0 'linked with libmpich.so.12' env PATH="$work:$PATH" "$info" --check mpi
check "with a GPU runtime" checked 0 'no, a GPU runtime is linked' on_gpu
check "off" says 1 'VECMPI=off is set' env VECMPI=off "$info" --check ./mpi
check "statically linked" checked 1 'statically linked, so nothing can be preloaded' static
check "statically linked, relocatable" checked 1 'statically linked' static_pie
check "Open MPI's" checked 1 'linked with libmpi.so.40 (Open MPI), which vecmpi does not serve' openmpi
check "of MPI 5's ABI" checked 0 'linked with libmpi_abi.so.1' abi
check "... which build serves it" grep -q '^  preload  *libvecmpi_abi.so ' said
check "of two libraries" checked 1 'so calls may go to either' two
# Debian 13 has one of that name.
compgen -G '/usr/lib/*/libmpi.so.12' >/dev/null || check "a library that is gone" checked 1 'linked with libmpi.so.12, which the loader does not find' gone
check "another library that is gone" checked 1 'but the loader does not find libhelper.so.1, so it does not start' helpless
check "... what to do" grep -qx 'next: set LD_LIBRARY_PATH to the folder of libhelper.so.1' said
check "sessions alone" checked 1 'by MPI sessions alone' session
check "no MPI" checked 1 'linked with no MPI library, and loads and starts nothing else' none
check "MPI later" checked 3 'what it loads or starts later is served' later
check "a script" checked 3 'a script of' script.py
check "for another processor" checked 1 'built for another processor' elsewhere
check "no such file" checked 2 'vecmpi-info: ./nosuch: no such program' nosuch
check "a folder" checked 2 'not a file that can be read' gpu
check "a text" checked 2 'neither an ELF file nor a script' text
check "no program" says 2 '--check takes one program' "$info" --check
check "two programs" says 2 '--check takes one program' "$info" --check ./mpi ./none
check "in two lines" says 0 'linked with libmpich.so.12' "$info" --check ./mpi --brief
expect "... the second is the library" "$(wc -l <said) $(sed -n '2s/.*\/libmpich.so.12.*/its file/p' said)" '2 its file'
if [ "$(id -u)" = 0 ]; then
    cp mpi secure && chown 65534 secure && chmod u+s secure
    check "setuid" checked 1 'setuid, setgid or with file capabilities' secure
fi

# ---- run.sh ------------------------------------------------------------------------------------------------

check "help" says 0 'usage: run.sh [-n RANKS]' "$run" --help
check "two ranks" says 0 'ranks: 2, sum: 1, argument: -n' "$run" -n 2 ./mpi -n
check "... what was done" grep -qF "run.sh: $VECMPI_LIBRARY is preloaded into the ranks only: ./mpi, linked with libmpich.so.12; started by /usr/bin/mpi" said
check "... with a report" grep -q '^vecmpi report: 2 ranks on 1 node, vecmpi was on' said
check "... without" says 0 'ranks: 2' env VECMPI_REPORT=off "$run" -np 2 -- ./mpi
check "... as was asked" says_not 'vecmpi report'
check "... into a file" says 0 'vecmpi report' env VECMPI_REPORT="summary,json:$work/report" "$run" -n 2 ./mpi
expect "... that is named last" "$(tail -n 1 said)" "all of it: $work/report"
check "... and holds it" grep -q '"ranks": 2' report
check "off, which is said" says 0 'VECMPI=off, so it does nothing' env VECMPI=off "$run" -n 1 ./mpi
check "the program's status" says 3 'preloaded' "$run" -n 1 sh -c 'exit 3'
check "a script of Python" says 0 'is preloaded into the ranks only: ./script.py, linked with no MPI library' "$run" ./script.py

# As installed: links would lead back to the checkout.
mkdir -p installed/bin installed/lib
cp "$here/scripts/preload.sh" installed/bin/vecmpi-preload && cp "$run" installed/bin/vecmpi-run
cp "$info" installed/bin && cp "$VECMPI_LIBRARY" installed/lib
check "installed" says 0 "vecmpi-run: $work/installed/lib/libvecmpi.so is preloaded into the ranks only: ./mpi, linked with" \
    env -u VECMPI_LIBRARY installed/bin/vecmpi-run -n 2 ./mpi
check "... with a report" grep -q '^vecmpi report: 2 ranks' said
check "... with vecmpi-info" says 0 '  collectives of a node   yes' env -u VECMPI_LIBRARY installed/bin/vecmpi-info --check ./mpi
mv installed/lib installed/lib64
check "... in lib64" says 0 'installed/lib64/libvecmpi.so is preloaded' env -u VECMPI_LIBRARY installed/bin/vecmpi-run -n 1 ./mpi
check "... with vecmpi-info" says 0 '  collectives of a node   yes' env -u VECMPI_LIBRARY installed/bin/vecmpi-info --check ./mpi
mkdir installed/lib && mv installed/lib64 installed/lib/x86_64-linux-gnu
check "... in a folder of lib" says 0 'linux-gnu/libvecmpi.so is preloaded' env -u VECMPI_LIBRARY installed/bin/vecmpi-run -n 1 ./mpi

stand_in srun 'slurm 22.05'
stand_in prefix_mpiexec 'HYDRA build details'
mkdir -p prefix/bin && mv prefix_mpiexec prefix/bin/mpiexec
check "in an allocation of Slurm" says 0 "called: --export=ALL,LD_PRELOAD=$VECMPI_LIBRARY -n 3 ./mpi -x report: summary" \
    env SLURM_JOB_ID=7 PATH="$work:$PATH" "$run" -n 3 ./mpi -x
check "the library's own launcher" says 0 "called: -genv LD_PRELOAD $VECMPI_LIBRARY ./other report: summary" "$run" ./other
check "... is named" grep -qF "started by $work/prefix/bin/mpiexec" said
check "a launcher by name" says 0 "called: -genv LD_PRELOAD $VECMPI_LIBRARY -ppn 2 -n 4 ./mpi" \
    "$run" --launcher "prefix/bin/mpiexec -ppn 2" -n 4 ./mpi
mkdir tools && for tool in bash dirname basename realpath env head cat tr; do ln -s "$(command -v $tool)" tools/; done
stand_in tools/mpirun 'mpirun (Open MPI) 4.1.4'
rm -r prefix/bin
check "no launcher" says 2 "run.sh: no launcher of MPICH's family beside $work/prefix/lib/libmpi.so.12 or in PATH" \
    env PATH="$work/tools" "$run" -n 2 ./other

refused() { says 2 "run.sh: $1" "$run" "${@:2}"; } # TEXT ARGUMENT...
check "wrong: no program" refused 'no program: run.sh -n RANKS PROGRAM' -n 2
check "wrong: no ranks" refused '-n needs a value' -n
check "wrong: ranks" refused '-n two: accepted is a number' -n two ./mpi
check "wrong: option" refused '-ppn: no such option' -ppn 2 ./mpi
check "wrong: launcher" refused "--launcher 'nosuch -x': no such command" --launcher 'nosuch -x' ./mpi
check "wrong: not there" refused './nosuch: no such program' -n 2 ./nosuch
check "wrong: no program's file" refused './text: not a program' -n 2 ./text
check "wrong: static" refused './static: statically linked' -n 2 ./static
check "wrong: Open MPI's" refused './openmpi: linked with libmpi.so.40 (Open MPI), which vecmpi does not serve' ./openmpi
check "wrong: library" says 2 'run.sh: VECMPI_LIBRARY=/no/such.so: no such file' env VECMPI_LIBRARY=/no/such.so "$run" ./mpi
finish
