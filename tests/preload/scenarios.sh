# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh sets $library, $sources, $mpirun, $limit and $name
# What the scenarios do. Sourced by run.sh, whose table names each of them. $name is the name of the scenario that runs;
# it runs in a work folder of its own.

# ---- a program without and with the library -------------------------------------------------------------

# On COUNT ranks, without and with the offload thread.
same() { # COUNT PROGRAM [ARGUMENT...]
    need "$2" || return
    same_of "$1" "./$2" "${@:3}"
}

same_of() { # COUNT COMMAND...
    local mode
    record_ranks plain "$1" -- "${@:2}"
    for mode in off on; do
        record_preloaded "$1" VECMPI_OFFLOAD=$mode -- "${@:2}"
        compare "$name, thread $mode"
    done
}

same_on_more_ranks_than_cpus() { # PROGRAM
    same $(($(nproc) + 2)) "$1"
}

same_process() { # COMMAND... : one process, no launcher
    record plain "$@"
    record preloaded env LD_PRELOAD="$library" "$@"
    compare "$name"
}

# One process, without and with the offload thread, and no launcher: what that says of a process which ends without
# MPI_Finalize is not the same each time.
same_alone() { # PROGRAM [ARGUMENT...]
    need "$1" || return
    local mode
    record plain "./$1" "${@:2}"
    for mode in off on; do
        record preloaded env LD_PRELOAD="$library" VECMPI_OFFLOAD=$mode "./$1" "${@:2}"
        compare "$name, thread $mode"
    done
}

# MPI 2's C++ bindings, where this MPICH has them.
cxx_bindings() {
    if build cxx_bindings; then same 2 cxx_bindings; else skip "$name" "not in this MPICH"; fi
}

# By a path of ours, whose requests are virtual.
last_requests() { # [ARGUMENT]
    VECMPI_ALLREDUCE=ring same 2 last_requests "$@"
}

unchecked_aliases() {
    MPIR_CVAR_COLL_ALIAS_CHECK=0 VECMPI_INTRANODE=on same 3 unchecked_aliases
}

# Plain it would not end.
ends_over_hosts() {
    local lab=$sources/../../scripts/lab.sh why
    need late_rank || return
    if ! why=$("$lab" -n 1 -- true 2>&1); then skip "$name" "$why"; return; fi
    record preloaded "$lab" -n 3 -t 60 -e LD_PRELOAD="$library" -- ./late_rank
    if [ "$(cat preloaded.rc)" = 0 ] && [ ! -s preloaded.err ]; then
        ok "$name"
    else
        fail "$name" "status $(cat preloaded.rc)" preloaded.err
    fi
}

loads_while_waiting() {
    need loading libsends.so || return
    same 2 loading
}

# The report counts what woke it: messages, and what rank 0 has written to shared memory.
sleeps_until_woken() {
    need blocked || return
    VECMPI_WAIT="sleep" same 2 blocked
    record_preloaded 2 VECMPI_WAIT=sleep VECMPI_INTRANODE=on VECMPI_REPORT=summary -- ./blocked
    local what
    for what in "sleeps of a blocked call" "sleeps that a message ended" "sleeps that another rank of the node ended"; do
        if grep -q "[1-9][0-9]*  $what" preloaded.err; then ok "$name: $what"; else fail "$name" "no $what" preloaded.err; fi
    done
}

# What the ranks say; not what UCX says of descriptors that are closed or of a message that nobody takes, nor what the
# launcher does of ranks that end without MPI_Finalize.
said_by_ranks() { # RUN
    sed -i '/^rank /!d' "$1.out"
    : >"$1.err"
}

waits_and_is_cancelled() { # [ARGUMENT]
    need cancelled || return
    local way
    record_ranks plain 2 -- ./cancelled "$@"
    said_by_ranks plain
    for way in auto sleep; do
        record_preloaded 2 VECMPI_WAIT=$way -- ./cancelled "$@"
        said_by_ranks preloaded
        compare "$name, $way"
        record_preloaded 2 VECMPI_WAIT=$way VECMPI_OFFLOAD=on -- ./cancelled "$@"
        said_by_ranks preloaded
        compare "$name, $way, thread on"
    done
}

closes_descriptors() {
    need closed_descriptors || return
    local way
    record_ranks plain 3 -- ./closed_descriptors
    said_by_ranks plain
    echo 0 >plain.rc
    for way in auto sleep; do
        record_preloaded 3 VECMPI_WAIT=$way VECMPI_INTRANODE=on -- ./closed_descriptors
        said_by_ranks preloaded
        echo 0 >preloaded.rc
        compare "$name, $way"
    done
}

# ---- processes without MPI ------------------------------------------------------------------------------

weak_references() {
    need weak || return
    same_process ./weak
}

two_copies_of_ucx() {
    need two_ucx libucx_a.so libucx_b.so libuser_a.so libuser_b.so || return
    same_process ./two_ucx
}

loads_no_mpi() {
    LD_PRELOAD=$library cat /proc/self/maps >maps
    if grep -qE 'lib(p?mpi|mpich|numa)' maps; then fail "$name" "loaded" maps; else ok "$name"; fi
}

call_without_mpi() {
    need no_mpi || return
    record call env LD_PRELOAD="$library" ./no_mpi
    if [ "$(cat call.rc)" = 134 ] && [ "$(wc -l <call.err)" = 1 ] && grep -q 'MPI_Barrier was called' call.err; then
        ok "$name"
    else
        fail "$name" "status $(cat call.rc)" call.err
    fi
}

exports() {
    local ours='^(P?MPIX?_|vecmpi_|ucp_(init_version|disconnect_nb|worker_progress|dt_create_generic|dt_destroy)$|MPII_Errhandler_set_cxx$)'
    nm -D --defined-only "$library" >symbols || { fail "$name" "nm"; return; }
    awk '{print $3}' symbols | grep -vE "$ours" >exports
    if [ -s exports ]; then fail "$name" "more than MPI names" exports; else ok "$name"; fi
}

# ---- other ways to start --------------------------------------------------------------------------------

rtld_local_python() {
    need libuser.so || return
    same_of 2 python3 "$sources/host.py" ./libuser.so
}

rtld_local_c() {
    need late_host libuser.so || return
    same_of 2 ./late_host ./libuser.so
}

# One rank alone, too, is the library's: nobody else needs the engine.
one_rank() {
    need mpi3_calls || return
    record_preloaded 1 VECMPI_OFFLOAD=off VECMPI_REPORT=summary -- ./mpi3_calls
    if grep -q 'MPI_Send  *direct' preloaded.err; then ok "$name"; else fail "$name" "not direct" preloaded.err; fi
}

# Where one rank has no engine, none uses its own: blocking collectives of some as nonblocking ones would be a hang.
no_engine_on_one_rank() {
    need mpi3_calls libno_wipe.so || return
    local mode line="rank 1 has no memory for vecmpi's engine"
    record_ranks plain 4 -- ./mpi3_calls
    for mode in off on; do
        record_ranks preloaded 4 LD_PRELOAD="$PWD/libno_wipe.so:$library" VECMPI_OFFLOAD=$mode -- ./mpi3_calls
        if grep -q 'no_wipe: ' preloaded.err; then
            skip "$name, thread $mode" "$(grep -m 1 'no_wipe: ' preloaded.err)"
        elif [ "$(grep -c "$line" preloaded.err)" != 1 ]; then
            fail "$name, thread $mode" "one line of rank 1 expected" preloaded.err
        else
            sed -i "/$line/d" preloaded.err
            compare "$name, thread $mode"
        fi
    done
}

# ---- profilers ------------------------------------------------------------------------------------------

profiled_plain() {
    record_ranks plain 2 LD_PRELOAD="$PWD/libprofiler.so" -- ./mpi3_calls
    grep -q '1 sends 1 receives 2 waits 1 reductions' plain.out || fail "$name" "not profiled" plain.out plain.err
}

profiler_before() {
    need mpi3_calls libprofiler.so || return
    local mode
    profiled_plain
    for mode in off on; do
        record_ranks preloaded 2 LD_PRELOAD="$PWD/libprofiler.so:$library" VECMPI_OFFLOAD=$mode -- ./mpi3_calls
        compare "$name, thread $mode"
    done
    record_ranks served 2 LD_PRELOAD="$PWD/libprofiler.so:$library" VECMPI_REPORT=summary -- ./mpi3_calls
    if grep -q 'vecmpi was on' served.err; then
        ok "$name: served"
    else
        fail "$name: served" "no report of a run that was served" served.out served.err
    fi
}

# With VECMPI=off one behind is in place too, as without the library.
profiler_behind_off() {
    need mpi3_calls libprofiler.so || return
    profiled_plain
    record_ranks preloaded 2 LD_PRELOAD="$library:$PWD/libprofiler.so" VECMPI=off -- ./mpi3_calls
    compare "$name"
}

# ---- reports and tools ----------------------------------------------------------------------------------

barriers_of() { # REPORT : in all rows
    awk '$1 == "MPI_Barrier" { sum += $3 } END { print sum + 0 }' "$1"
}

# What the report counts between MPI_Pcontrol(2), (1) and (0).
reported_sections() { # PROGRAM
    need "$1" || return
    local mode
    record_ranks plain 2 -- "./$1"
    for mode in off on; do
        record_preloaded 2 VECMPI_OFFLOAD=$mode VECMPI_REPORT=summary -- "./$1"
        barriers_are_counted "$name, thread $mode"
    done
}

barriers_are_counted() { # CHECK
    local barriers
    barriers=$(barriers_of preloaded.err)
    if cmp -s plain.out preloaded.out && [ "$barriers" = 14 ]; then
        ok "$1"
    else
        fail "$1" "$barriers barriers, not 14" plain.out preloaded.out preloaded.err
    fi
}

profiled_sections() {
    need sections libprofiler_of_sections.so || return
    local profiler=$PWD/libprofiler_of_sections.so
    record_ranks plain 2 LD_PRELOAD="$profiler" -- ./sections
    record_ranks preloaded 2 LD_PRELOAD="$profiler:$library" VECMPI_REPORT=summary -- ./sections
    if grep -q 'profiler: sections' plain.out; then
        barriers_are_counted "$name"
    else
        fail "$name" "not profiled" plain.out plain.err
    fi
}

# A program with decimal commas has a report without: scripts read it.
report_in_locale() {
    need sections || return
    localedef -i de_DE -f UTF-8 "$PWD/de_DE.UTF-8" 2>/dev/null || { skip "$name" "localedef has none"; return; }
    record_preloaded 2 LOCPATH="$PWD" LC_ALL=de_DE.UTF-8 VECMPI_REPORT=summary -- ./sections
    if grep -q 'half is 0,5 here' preloaded.out && grep -qE ' [0-9]+\.[0-9]+ %' preloaded.err &&
        ! grep -qE '[0-9],[0-9]' preloaded.err; then
        ok "$name"
    else
        fail "$name" "decimal commas in the report, or none in the program" preloaded.out preloaded.err
    fi
}

# Each use of a datatype of datatypes.c is in its row, by a plan or by the library. Messages are seen where UCX packs.
reported_datatypes() {
    need datatypes || return
    local mode
    record_ranks plain 2 -- ./datatypes
    for mode in off on; do
        record_preloaded 2 VECMPI_OFFLOAD=$mode VECMPI_REPORT=summary VECMPI_LOG=debug -- ./datatypes
        if cmp -s plain.out preloaded.out && particles_are_counted && { ! ucx_packs || messages_are_counted; }; then
            ok "$name, thread $mode"
        else
            fail "$name, thread $mode" "other rows than the program has" plain.out preloaded.out preloaded.err
        fi
    done
}

particles='resized(0, 40) of struct(3) of {MPI_INT, MPI_DOUBLE, ...}'
particles_are_counted() {
    [ "$(row_of_type "$particles")" = "400 11 MiB, all" ] && grep -qF ", $particles, has a plan of " preloaded.err
}

# With MPICH 4.2 sends of the vector alone are seen.
messages_are_counted() {
    local expected='800 6.1 MiB, all'
    [[ ! $(mpichversion) =~ Version:[[:space:]]*4\.2 ]] || expected='400 3 MiB, all'
    [ "$(row_of_type 'vector(1000, 1, 2) of MPI_DOUBLE')" = "$expected" ] &&
        [ "$(row_of_type 'hindexed(2, absolute) of MPI_INT')" = "100 390.6 KiB, all" ]
}

ucx_packs() { grep -q 'inside, on rank 0: [^;]*message_types' preloaded.err; }

row_of_type() { # MADE : its times and bytes, and that those by a plan and by the library are all
    awk -v made="  $1" 'NF > 5 && substr($0, length($0) - length(made) + 1) == made {
        print $1, $2, $3 ($4 + $5 == $1 ? ", all" : ", not all") }' preloaded.err
}

# The library's variables stay, ours come behind them, each at the same place before MPI_Init, within, and after.
# One rank: the launcher would mix what two print.
tool_variables() {
    need tool_names || return
    record_ranks plain 1 -- ./tool_names
    record_preloaded 1 VECMPI_OFFLOAD=off -- ./tool_names
    names_of_library plain.out >expected
    if ! names_of_library preloaded.out | cmp -s expected -; then
        fail "$name" "the library's variables differ" preloaded.err
    elif [ "$(cat preloaded.rc)" != 0 ] || [ "$(grep -c 'vecmpi_offload$' preloaded.out)" != 3 ] ||
        [ "$(grep -c 'vecmpi_elements_reduced$' preloaded.out)" != 3 ] ||
        [ "$(sed -n 's/.*variable \([0-9]*\) vecmpi_offload$/\1/p' preloaded.out | sort -u | wc -l)" != 1 ]; then
        fail "$name" "not at the same place before, in and after" preloaded.err
    else
        ok "$name"
    fi
}

names_of_library() { # OUTPUT : without numbers, and without ours
    sed 's/\(variable\|category\) [0-9]* /\1 /' "$1" | grep -v ' vecmpi' | sort
}

# ---- settings -------------------------------------------------------------------------------------------

switched_off() { # COUNT PROGRAM
    need "$2" || return
    record_ranks plain "$1" -- "./$2"
    record_preloaded "$1" VECMPI=off -- "./$2"
    compare "$name"
}

# Nobody can end such a job but its user, who must be told why it stands, once. It says so after 10 s.
off_on_one_rank() {
    need c_collectives || return
    local job stands=no
    timeout -k 10 "$limit" "$mpirun" -n 1 -env LD_PRELOAD "$library" ./c_collectives : \
        -n 1 -env LD_PRELOAD "$library" -env VECMPI off ./c_collectives >apart.out 2>apart.err </dev/null &
    job=$!
    while kill -0 $job 2>/dev/null && ! grep -q '^vecmpi' apart.err; do sleep 0.1; done
    sleep 2 # a second line would follow
    kill $job 2>/dev/null && stands=yes
    wait $job 2>/dev/null
    if [ $stands = yes ] && [ "$(lines_of_vecmpi apart.err)" = 1 ] &&
        grep -q '^vecmpi.*every rank must be preloaded, with the same VECMPI' apart.err; then
        ok "$name"
    else
        fail "$name" "the job stands: $stands; one line expected" apart.err
    fi
}

bad_value() { # VARIABLE=VALUE : one line, from one rank, and the job ends
    need mpi3_calls || return
    record_preloaded 2 "$1" -- ./mpi3_calls
    local status lines
    status=$(cat preloaded.rc) lines=$(lines_of_vecmpi preloaded.err)
    if [ "$status" = 0 ] || [ "$status" = 124 ] || [ "$lines" != 1 ] ||
        ! grep '^vecmpi' preloaded.err | grep -q "$1"; then
        fail "$name" "status $status, $lines lines" preloaded.err
    else
        ok "$name"
    fi
}

# One line, from one rank, and the program runs as before.
warned() { # WORDS [VARIABLE=VALUE...]
    need mpi3_calls || return
    record_ranks plain 2 -- ./mpi3_calls
    record_preloaded 2 "${@:2}" -- ./mpi3_calls
    if cmp -s plain.out preloaded.out && [ "$(cat preloaded.rc)" = 0 ] &&
        [ "$(lines_of_vecmpi preloaded.err)" = 1 ] && grep -q "$1" preloaded.err; then
        ok "$name"
    else
        fail "$name" "status $(cat preloaded.rc), $(lines_of_vecmpi preloaded.err) lines" preloaded.err
    fi
}

profile_refused() { # TEXT WORDS
    printf '%b' "$1" >profile
    warned "$2" VECMPI_PROFILE="$PWD/profile"
}

# ---- other MPI libraries --------------------------------------------------------------------------------

# With the library by the launcher alone, in the environment of everything, and switched off.
open_mpi() { # by-launcher | in-environment | off
    command -v mpirun.openmpi >/dev/null || { skip "$name" "no mpirun.openmpi here"; return; }
    need mpi3_open || return
    # Without a network Open MPI 5 complains of it, with the number of the job.
    local launch=(mpirun.openmpi --allow-run-as-root --oversubscribe --mca btl ^tcp -n 2)
    record plain "${launch[@]}" ./mpi3_open
    case $1 in
        by-launcher) record preloaded "${launch[@]}" -x LD_PRELOAD="$library" ./mpi3_open ;;
        in-environment) record preloaded env LD_PRELOAD="$library" "${launch[@]}" ./mpi3_open ;;
        off) record preloaded "${launch[@]}" -x LD_PRELOAD="$library" -x VECMPI=off ./mpi3_open ;;
    esac
    if [ "$1" = off ]; then compare "$name"; else compare_explained "$name"; fi
}

# Every argument arrives, on the first call too, whatever the ABI.
fake_of_another_abi() { # SONAME
    need "fake-$1/host" || return
    record plain "fake-$1/host"
    record preloaded env LD_PRELOAD="$library" "fake-$1/host"
    compare_explained "$name"
}

fake_mpich() { # SONAME
    need "fake-$1/host" || return
    record plain "fake-$1/host"
    # In front of the MPICH ABI both names lead to PMPI_X.
    sed 's/^MPI_Pcontrol 5: 1 0.5000/PMPI_Pcontrol 5: 44281 29519.0000/; s/returned 6/returned 5/
         s/^2.5 1.5/1.5 1.5/; s/^9.2/9.1/' plain.raw | sort >plain.out
    record preloaded env LD_PRELOAD="$library" "fake-$1/host"
    compare "$name"
}

# The build of the library's ABI serves, whichever comes first, and the other one is silent.
fake_mpich_both_builds() { # FIRST
    local other preload
    other=$(dirname "$library")/libvecmpi_abi.so
    [ -e "$other" ] || { skip "$name" "no libvecmpi_abi.so here" && return; }
    need fake-libmpich.so.12/host || return
    if [ "$1" = libvecmpi.so ]; then preload=$library:$other; else preload=$other:$library; fi
    record plain env LD_PRELOAD="$library" fake-libmpich.so.12/host
    record preloaded env LD_PRELOAD="$preload" fake-libmpich.so.12/host
    compare "$name"
}

fake_mpich_off() {
    need fake-libmpich.so.12/host || return
    record plain fake-libmpich.so.12/host
    record preloaded env LD_PRELOAD="$library" VECMPI=off fake-libmpich.so.12/host
    compare "$name"
}

# A missing function is missing only when it is called.
fake_mpich_lacks_function() {
    need fake-libmpich.so.12/host || return
    record missing env LD_PRELOAD="$library" fake-libmpich.so.12/host call
    if [ "$(cat missing.rc)" = 134 ] && grep -q 'MPI_Barrier is not in libmpich.so.12' missing.err; then
        ok "$name"
    else
        fail "$name" "status $(cat missing.rc)" missing.err
    fi
}
