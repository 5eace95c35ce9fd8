#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs programs without and with the library preloaded: they must print the same. Also: processes without MPI, other MPI
# libraries, profilers, settings that are wrong. Prints `ok NAME`, `FAIL NAME` or `skip NAME` a case; exit status 1
# after a FAIL. It asserts no time.
#
#   run.sh LIBVECMPI [CASE...]      CASE: only the cases whose names begin so
#
# MPICC, MPICXX, MPIFORT, MPIRUN choose MPICH; RUN_TIMEOUT is the limit of one run in seconds (120).
set -uo pipefail

library=$(realpath "${1:?usage: run.sh LIBVECMPI [CASE...]}")
shift
chosen=("$@")
sources=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
limit=${RUN_TIMEOUT:-120}
failures=0

first_of() { # COMMAND... : the first that is installed, empty where none is
    local command
    for command; do command -v "$command" >/dev/null && echo "$command" && return; done
}
mpicc=${MPICC:-$(first_of mpicc.mpich mpicc)}
mpicxx=${MPICXX:-$(first_of mpicxx.mpich mpicxx)}
mpifort=${MPIFORT:-$(first_of mpifort.mpich mpifort)}
mpirun=${MPIRUN:-$(first_of mpirun.mpich mpiexec.hydra mpirun)}
c_flags=(-O1 -Wno-stringop-overflow) # MPI_STATUSES_IGNORE is the address 1: GCC warns of it

# ---- frame -------------------------------------------------------------------------------------------

wanted() { # CASE
    local prefix
    [ ${#chosen[@]} -eq 0 ] && return 0
    for prefix in "${chosen[@]}"; do [[ $1 == "$prefix"* ]] && return 0; done
    return 1
}

failed() { # CASE WHY [FILE...]
    local file
    failures=$((failures + 1))
    echo "FAIL $1: $2"
    for file in "${@:3}"; do [ -s "$file" ] && sed 's/^/    /' "$file" | head -20; done
}

# Writes the sorted output to NAME.out, standard error to NAME.err, the exit status to NAME.rc.
record() { # NAME COMMAND...
    # In a shell of its own, whose word on an aborted program is not wanted.
    (timeout "$limit" "${@:2}" >"$1.raw" 2>"$1.err"; exit $?) 2>/dev/null
    echo $? >"$1.rc"
    sort "$1.raw" >"$1.out"
}

ranks() { # COUNT NAME=VALUE... -- PROGRAM...
    local count=$1 environment=()
    shift
    while [[ $1 != -- ]]; do
        environment+=(-genv "${1%%=*}" "${1#*=}")
        shift
    done
    shift
    "$mpirun" -n "$count" "${environment[@]}" "$@"
}
export -f ranks
export mpirun

compare() { # CASE PLAIN PRELOADED : same output, same status, nothing on standard error
    if ! cmp -s "$2.out" "$3.out" || ! cmp -s "$2.rc" "$3.rc"; then
        diff "$2.out" "$3.out" >"$3.diff"
        failed "$1" "status $(cat "$2.rc") and $(cat "$3.rc")" "$3.diff" "$3.err"
    elif [ "$(cat "$2.rc")" != "${expected_status:-0}" ]; then
        failed "$1" "status $(cat "$2.rc") without the library" "$2.err"
    elif ! cmp -s "$2.err" "$3.err"; then
        failed "$1" "standard error differs" "$3.err"
    else
        echo "ok $1"
    fi
}

# The program plain and preloaded, on COUNT ranks, without and with the offload thread.
same() { # CASE COUNT PROGRAM...
    local mode
    wanted "$1" || return 0
    record plain ranks_of "$2" -- "${@:3}"
    for mode in off on; do
        record preloaded ranks_of "$2" LD_PRELOAD="$library" VECMPI_OFFLOAD=$mode -- "${@:3}"
        compare "$1 on $2 ranks, thread $mode" plain preloaded
    done
}

# `timeout` runs commands, not functions.
cat >ranks_of <<'SCRIPT'
#!/usr/bin/env bash
ranks "$@"
SCRIPT
chmod +x ranks_of
PATH=$work:$PATH

same_process() { # CASE COMMAND... : one process, no launcher
    wanted "$1" || return 0
    record plain "${@:2}"
    record preloaded env LD_PRELOAD="$library" "${@:2}"
    compare "$1" plain preloaded
}

build() { # OUTPUT COMPILER ARGUMENT...
    "$2" -o "$1" "${@:3}" 2>build.err || failed "build $1" "does not compile" build.err
}

lines_of_vecmpi() { grep -c '^vecmpi' "$1"; }

# ---- processes without MPI ---------------------------------------------------------------------------------

without_mpi() {
    build weak "${CC:-cc}" "$sources/weak.c"
    build no_mpi "${CC:-cc}" "$sources/no_mpi.c"
    local copy
    for copy in a b; do
        build libucx_$copy.so "${CC:-cc}" -shared -fPIC -DCOPY="\"$copy\"" "$sources/fake_ucx.c"
        build libuser_$copy.so "${CC:-cc}" -shared -fPIC -DUSER="\"$copy\"" "$sources/fake_ucx.c" \
            -L. -lucx_$copy -Wl,-rpath,'$ORIGIN'
    done
    build two_ucx "${CC:-cc}" "$sources/two_ucx.c" -ldl
    same_process "two copies of UCX" ./two_ucx
    same_process "true" /bin/true
    same_process "sh" /bin/sh -c 'echo one; ls / | head -1; exit 0'
    same_process "weak references without MPI" ./weak
    if wanted "loads no MPI"; then
        LD_PRELOAD=$library cat /proc/self/maps >maps
        if grep -qE 'lib(p?mpi|mpich|numa)' maps; then failed "loads no MPI" "" maps; else echo "ok loads no MPI"; fi
    fi
    if wanted "MPI call without MPI"; then
        record call env LD_PRELOAD="$library" ./no_mpi
        if [ "$(cat call.rc)" = 134 ] && [ "$(wc -l <call.err)" = 1 ] && grep -q 'MPI_Barrier was called' call.err; then
            echo "ok MPI call without MPI"
        else
            failed "MPI call without MPI" "status $(cat call.rc)" call.err
        fi
    fi
    if wanted "exports"; then
        nm -D --defined-only "$library" | awk '{print $3}' | grep -vE '^(P?MPIX?_|vecmpi_|ucp_(worker_progress|dt_create_generic|dt_destroy)$|MPII_Errhandler_set_cxx$)' >exports
        if [ -s exports ]; then failed "exports" "more than MPI names" exports; else echo "ok exports"; fi
    fi
}

# ---- languages and starts ---------------------------------------------------------------------------------------

mpich_programs() {
    local program
    for program in c_point_to_point c_collectives c_objects sections outside thread_init sessions session_first forks short_of_memory mpi3_calls; do
        build "$program" "$mpicc" "${c_flags[@]}" "$sources/$program.c" -lpthread
    done
    build unreadable "$mpicc" "${c_flags[@]}" -rdynamic "$sources/unreadable.c"
    build by_handle "$mpicc" "${c_flags[@]}" "$sources/by_handle.c" -ldl
    build cxx_threads "$mpicxx" -std=c++20 -O1 "${c_flags[@]}" "$sources/cxx_threads.cpp" -lpthread
    same "C point-to-point" 2 ./c_point_to_point
    same "C point-to-point" 3 ./c_point_to_point
    same "C collectives" 1 ./c_collectives
    same "C collectives" 2 ./c_collectives
    same "C collectives" 3 ./c_collectives
    same "C objects" 2 ./c_objects "$work/objects.data"
    same "C++ threads" 2 ./cxx_threads
    # MPI 2's C++ bindings, where this MPICH has them.
    if "$mpicxx" -w -o cxx_bindings "$sources/cxx_bindings.cpp" 2>/dev/null; then
        same "C++ bindings, error handlers" 2 ./cxx_bindings
    else
        echo "skip C++ bindings: not in this MPICH"
    fi
    same "outside Init and Finalize" 1 ./outside
    same "outside Init and Finalize" 2 ./outside
    same "Init in another thread" 2 ./thread_init
    same "sessions only" 2 ./sessions
    same "session around all" 2 ./session_first
    same "session around all" $(($(nproc) + 2)) ./session_first
    same "past the entries" 1 ./by_handle
    same "fork" 2 ./forks
    same "no large files" 3 ./short_of_memory
    same "others' memory unreadable" 2 ./unreadable always
    same "others' memory unreadable" 3 ./unreadable always
    same "others' memory unreadable later" 2 ./unreadable later
    same "others' memory unreadable later" 3 ./unreadable later
    same "others' memory unreadable now and then" 2 ./unreadable
    same "others' memory unreadable now and then" 3 ./unreadable
    same_process "no launcher" ./mpi3_calls
}

fortran() {
    if [ -z "$mpifort" ]; then
        echo "skip Fortran: no mpifort"
        return
    fi
    build f77_calls "$mpifort" -O1 -w -fallow-argument-mismatch "$sources/f77_calls.f"
    build f90_calls "$mpifort" -O1 -w -fallow-argument-mismatch "$sources/f90_calls.f90"
    build f08_calls "$mpifort" -O1 "$sources/f08_calls.f90"
    build f90_errors "$mpifort" -O1 -w -fallow-argument-mismatch "$sources/f90_errors.f90"
    build f08_errors "$mpifort" -O1 "$sources/f08_errors.f90"
    same "Fortran use mpi, error handlers" 2 ./f90_errors
    same "Fortran use mpi_f08, error handlers" 2 ./f08_errors
    same "Fortran 77" 2 ./f77_calls
    same "Fortran use mpi" 2 ./f90_calls
    same "Fortran use mpi_f08" 2 ./f08_calls
    same "Fortran use mpi_f08" 3 ./f08_calls
}

late_mpi() {
    build libuser.so "$mpicc" -shared -fPIC "$sources/user_library.c"
    build late_host "${CC:-cc}" -O1 "$sources/late_host.c" -ldl
    same "RTLD_LOCAL host" 2 python3 "$sources/host.py" "$work/libuser.so"
    same "RTLD_LOCAL host that asked before" 2 ./late_host "$work/libuser.so"
}

# One rank alone, too, is the library's: nobody else needs the engine.
one_rank() {
    wanted "one rank" || return 0
    record report ranks_of 1 LD_PRELOAD="$library" VECMPI_OFFLOAD=off VECMPI_REPORT=summary -- ./mpi3_calls
    if grep -q 'MPI_Send  *direct' report.err; then echo "ok one rank"; else failed "one rank" "" report.err; fi
}

# Where one rank has no engine, none uses its own: blocking collectives of some as nonblocking ones would be a hang.
no_engine_on_one_rank() {
    wanted "no engine on one rank" || return 0
    build libno_wipe.so "${CC:-cc}" -shared -fPIC "$sources/no_wipe.c"
    record plain ranks_of 4 -- ./mpi3_calls
    local mode
    for mode in off on; do
        record preloaded ranks_of 4 LD_PRELOAD="$work/libno_wipe.so:$library" VECMPI_OFFLOAD=$mode -- ./mpi3_calls
        if grep -q 'no_wipe: ' preloaded.err; then
            echo "skip no engine on one rank: $(cat preloaded.err)"
        elif [ "$(grep -c "rank 1 has no memory for vecmpi's engine" preloaded.err)" != 1 ]; then
            failed "no engine on one rank, thread $mode" "one line of rank 1 expected" preloaded.err
        else
            sed -i "/rank 1 has no memory for vecmpi's engine/d" preloaded.err
            compare "no engine on one rank, thread $mode" plain preloaded
        fi
    done
}

# ---- profilers -------------------------------------------------------------------------------------------------

profiler_before() {
    wanted "PMPI profiler" || return 0
    build libprofiler.so "$mpicc" -shared -fPIC "$sources/profiler.c"
    record plain ranks_of 2 LD_PRELOAD="$work/libprofiler.so" -- ./mpi3_calls
    local mode
    for mode in off on; do
        record preloaded ranks_of 2 LD_PRELOAD="$work/libprofiler.so:$library" VECMPI_OFFLOAD=$mode -- ./mpi3_calls
        compare "PMPI profiler before, thread $mode" plain preloaded
    done
    if ! grep -q '1 sends 1 receives 2 waits 1 reductions' plain.out; then failed "PMPI profiler" "" plain.out; fi
    # With VECMPI=off one behind is in place too, as without the library.
    record preloaded ranks_of 2 LD_PRELOAD="$library:$work/libprofiler.so" VECMPI=off -- ./mpi3_calls
    compare "PMPI profiler behind, VECMPI=off" plain preloaded
}

# ---- tools -----------------------------------------------------------------------------------------------------

barriers_of() { # REPORT : in all rows
    awk '$1 == "MPI_Barrier" { sum += $3 } END { print sum + 0 }' "$1"
}

# What the report counts between MPI_Pcontrol(2), (1) and (0); without a report the calls are the library's.
sections() {
    wanted "MPI_Pcontrol" || return 0
    local program programs=(./sections) mode
    [ -z "$mpifort" ] || build f90_sections "$mpifort" -O1 -w "$sources/f90_sections.f90"
    [ ! -x f90_sections ] || programs+=(./f90_sections)
    for program in "${programs[@]}"; do
        same "MPI_Pcontrol, no report: $program" 2 "$program"
        record plain ranks_of 2 -- "$program"
        for mode in off on; do
            record preloaded ranks_of 2 LD_PRELOAD="$library" VECMPI_OFFLOAD=$mode VECMPI_REPORT=summary -- "$program"
            if cmp -s plain.out preloaded.out && [ "$(barriers_of preloaded.err)" = 14 ]; then
                echo "ok MPI_Pcontrol: $program, thread $mode"
            else
                failed "MPI_Pcontrol: $program, thread $mode" "$(barriers_of preloaded.err) barriers, not 14" preloaded.err
            fi
        done
    done
    build libprofiler_of_sections.so "$mpicc" -shared -fPIC "$sources/profiler_of_sections.c"
    record plain ranks_of 2 LD_PRELOAD="$work/libprofiler_of_sections.so" -- ./sections
    record preloaded ranks_of 2 LD_PRELOAD="$work/libprofiler_of_sections.so:$library" VECMPI_REPORT=summary -- ./sections
    if grep -q 'profiler: sections' plain.out && cmp -s plain.out preloaded.out && [ "$(barriers_of preloaded.err)" = 14 ]; then
        echo "ok MPI_Pcontrol, PMPI profiler before"
    else
        failed "MPI_Pcontrol, PMPI profiler before" "$(barriers_of preloaded.err) barriers" plain.out preloaded.err
    fi
}

# A program with decimal commas has a report without: scripts read it.
report_in_locale() {
    wanted "report in another locale" || return 0
    if ! localedef -i de_DE -f UTF-8 "$work/de_DE.UTF-8" 2>/dev/null; then
        echo "skip report in another locale: localedef has none"
        return
    fi
    record preloaded ranks_of 2 LD_PRELOAD="$library" LOCPATH="$work" LC_ALL=de_DE.UTF-8 VECMPI_REPORT=summary -- ./sections
    if grep -q 'half is 0,5 here' preloaded.out && grep -qE ' [0-9]+\.[0-9]+ %' preloaded.err &&
        ! grep -qE '[0-9],[0-9]' preloaded.err; then
        echo "ok report in another locale"
    else
        failed "report in another locale" "" preloaded.out preloaded.err
    fi
}

names_of_library() { # NAME.out : without numbers, and without ours
    sed 's/\(variable\|category\) [0-9]* /\1 /' "$1" | grep -v ' vecmpi' | sort
}

tool_variables() {
    wanted "MPI_T" || return 0
    build tool_names "$mpicc" "${c_flags[@]}" "$sources/tool_names.c"
    # One rank: the launcher would mix what two print.
    record plain ranks_of 1 -- ./tool_names
    record preloaded ranks_of 1 LD_PRELOAD="$library" VECMPI=off -- ./tool_names
    compare "MPI_T, VECMPI=off" plain preloaded
    record preloaded ranks_of 1 LD_PRELOAD="$library" VECMPI_OFFLOAD=off -- ./tool_names
    names_of_library plain.out >expected
    if ! names_of_library preloaded.out | cmp -s expected -; then
        failed "MPI_T" "the library's variables differ" preloaded.err
    elif [ "$(cat preloaded.rc)" != 0 ] || [ "$(grep -c 'vecmpi_offload$' preloaded.out)" != 3 ] ||
        [ "$(grep -c 'vecmpi_elements_reduced$' preloaded.out)" != 3 ] ||
        [ "$(sed -n 's/.*variable \([0-9]*\) vecmpi_offload$/\1/p' preloaded.out | sort -u | wc -l)" != 1 ]; then
        failed "MPI_T" "not at the same place before, in and after" preloaded.err
    else
        echo "ok MPI_T"
    fi
}

# ---- settings ------------------------------------------------------------------------------------------------------

switched_off() {
    wanted "VECMPI=off" || return 0
    local program
    for program in c_point_to_point c_collectives; do
        record plain ranks_of 2 -- ./$program
        record preloaded ranks_of 2 LD_PRELOAD="$library" VECMPI=off -- ./$program
        compare "VECMPI=off $program" plain preloaded
    done
}

# Nobody can end such a job but its user, who must be told why it stands. It says so after 10 s.
off_on_one_rank() {
    wanted "VECMPI=off on one rank" || return 0
    limit=25 record apart "$mpirun" -n 1 -env LD_PRELOAD "$library" ./c_collectives : \
        -n 1 -env LD_PRELOAD "$library" -env VECMPI off ./c_collectives
    if [ "$(cat apart.rc)" = 124 ] && [ "$(lines_of_vecmpi apart.err)" = 1 ] &&
        grep -q '^vecmpi.*every rank must be preloaded, with the same VECMPI' apart.err; then
        echo "ok VECMPI=off on one rank"
    else
        failed "VECMPI=off on one rank" "status $(cat apart.rc)" apart.err
    fi
}

bad_value() { # NAME VALUE : one line, from one rank, and the job ends
    wanted "bad value" || return 0
    record bad ranks_of 2 LD_PRELOAD="$library" "$1=$2" -- ./mpi3_calls
    if [ "$(cat bad.rc)" = 0 ] || [ "$(cat bad.rc)" = 124 ] || [ "$(lines_of_vecmpi bad.err)" != 1 ] ||
        ! grep '^vecmpi' bad.err | grep -q "$1=$2"; then
        failed "bad value $1=$2" "status $(cat bad.rc), $(lines_of_vecmpi bad.err) lines" bad.err
    else
        echo "ok bad value $1=$2"
    fi
}

unknown_name() {
    wanted "unknown name" || return 0
    record plain ranks_of 2 -- ./mpi3_calls
    record unknown ranks_of 2 LD_PRELOAD="$library" VECMPI_OFLOAD=on -- ./mpi3_calls
    if cmp -s plain.out unknown.out && [ "$(cat unknown.rc)" = 0 ] && [ "$(lines_of_vecmpi unknown.err)" = 1 ] &&
        grep -q 'VECMPI_OFLOAD.*VECMPI_OFFLOAD' unknown.err; then
        echo "ok unknown name"
    else
        failed "unknown name" "status $(cat unknown.rc)" unknown.err
    fi
}

profile_refused() { # NAME TEXT WORDS : one line, from one rank, and the program runs as before
    wanted "profile" || return 0
    printf '%b' "$2" >profile
    record plain ranks_of 2 -- ./mpi3_calls
    record refused ranks_of 2 LD_PRELOAD="$library" VECMPI_PROFILE="$work/profile" -- ./mpi3_calls
    if cmp -s plain.out refused.out && [ "$(cat refused.rc)" = 0 ] && [ "$(lines_of_vecmpi refused.err)" = 1 ] &&
        grep -q "$3" refused.err; then
        echo "ok profile, $1"
    else
        failed "profile, $1" "status $(cat refused.rc)" refused.err
    fi
}

# ---- other MPI libraries ----------------------------------------------------------------------------------------------

# Without and with the library, once by the launcher alone and once in the environment of everything.
open_mpi() {
    wanted "Open MPI" || return 0
    if ! command -v mpicc.openmpi >/dev/null || ! command -v mpirun.openmpi >/dev/null; then
        echo "skip Open MPI: not installed"
        return
    fi
    local launch=(mpirun.openmpi --allow-run-as-root --oversubscribe -n 2)
    build mpi3_open mpicc.openmpi -O1 "$sources/mpi3_calls.c"
    record plain "${launch[@]}" ./mpi3_open
    record preloaded "${launch[@]}" -x LD_PRELOAD="$library" ./mpi3_open
    explained "Open MPI" plain preloaded
    record preloaded env LD_PRELOAD="$library" "${launch[@]}" ./mpi3_open
    explained "Open MPI, launcher too" plain preloaded
    record preloaded "${launch[@]}" -x LD_PRELOAD="$library" -x VECMPI=off ./mpi3_open
    compare "Open MPI, VECMPI=off" plain preloaded
}

explained() { # CASE PLAIN PRELOADED : same output, and one line that says why nothing is done
    local lines
    lines=$(lines_of_vecmpi "$3.err")
    if [ "$lines" != 1 ] || ! grep -q 'does not have the MPICH ABI' "$3.err"; then
        failed "$1" "$lines lines, not one" "$3.err"
    else
        sed -i '/^vecmpi/d' "$3.err"
        compare "$1" "$2" "$3"
    fi
}

fake_library() { # SONAME FOLDER
    mkdir -p "$2"
    "${CC:-cc}" -shared -fPIC -Wl,-soname,"$1" -o "$2/$1" "$sources/fake_mpi.c" &&
        "${CC:-cc}" -shared -fPIC -o "$2/libelsewhere.so" "$sources/fake_elsewhere.c" &&
        "${CC:-cc}" -o "$2/host" "$sources/fake_host.c" "$2/$1" "$2/libelsewhere.so" -Wl,-rpath,"$work/$2"
}

# Every argument arrives, on the first call too, whatever the ABI; a missing function is missing only when it is called.
fake_libraries() {
    wanted "fake" || return 0
    local soname
    for soname in libmpi.so.40 libmpi_abi.so.1; do
        fake_library $soname "fake-$soname" 2>build.err || failed "build $soname" "" build.err
        record plain "fake-$soname/host"
        record preloaded env LD_PRELOAD="$library" "fake-$soname/host"
        explained "fake $soname" plain preloaded
    done
    fake_library libmpich.so.12 fake-mpich 2>build.err || failed "build libmpich.so.12" "" build.err
    record plain fake-mpich/host
    record preloaded env LD_PRELOAD="$library" VECMPI=off fake-mpich/host
    compare "fake libmpich.so.12, VECMPI=off" plain preloaded
    # In front of the MPICH ABI both names lead to PMPI_X.
    sed 's/^MPI_Pcontrol 5: 1 0.5000/PMPI_Pcontrol 5: 44281 29519.0000/; s/returned 6/returned 5/
         s/^2.5 1.5/1.5 1.5/; s/^9.2/9.1/' plain.raw | sort >plain.out
    record preloaded env LD_PRELOAD="$library" fake-mpich/host
    compare "fake libmpich.so.12" plain preloaded
    record missing env LD_PRELOAD="$library" fake-mpich/host call
    if [ "$(cat missing.rc)" = 134 ] && grep -q 'MPI_Barrier is not in libmpich.so.12' missing.err; then
        echo "ok fake libmpich.so.12, missing function"
    else
        failed "fake libmpich.so.12, missing function" "status $(cat missing.rc)" missing.err
    fi
}

without_mpi
mpich_programs
fortran
late_mpi
one_rank
no_engine_on_one_rank
profiler_before
sections
report_in_locale
tool_variables
switched_off
off_on_one_rank
bad_value VECMPI_SEGMENTS banana
bad_value VECMPI maybe
unknown_name
profile_refused "of another host" 'version = 1\ncpu = Other\nisa = none\n' 'is for Other with none, this is'
profile_refused "malformed" 'version = 1\ncpu = x\nspeed = 3\n' 'profile:3: speed = 3: accepted keys are'
profile_refused "empty" '' 'profile: empty'
open_mpi
fake_libraries
[ $failures -eq 0 ]
