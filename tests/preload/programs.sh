# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2016 # run.sh sets $sources, $programs and $name; $ORIGIN is the loader's
# The programs of the scenarios: what each is compiled from. A scenario compiles those that it needs. Sourced by run.sh.

first_of() { # COMMAND... : the first that is installed, empty where none is
    local command
    for command; do command -v "$command" >/dev/null && echo "$command" && return; done
}

declare -A compilers=(
    [cc]=${CC:-cc}
    [mpicc]=${MPICC:-$(first_of mpicc.mpich mpicc)}
    [mpicxx]=${MPICXX:-$(first_of mpicxx.mpich mpicxx)}
    [mpifort]=${MPIFORT:-$(first_of mpifort.mpich mpifort)}
    [openmpi]=$(first_of mpicc.openmpi)
)

# MPI_STATUSES_IGNORE is the address 1: GCC warns of it.
declare -A compiler_flags=(
    [cc]='-O1'
    [mpicc]='-O1 -Wno-stringop-overflow'
    [mpicxx]='-O1 -Wno-stringop-overflow'
    [mpifort]='-O1 -w'
    [openmpi]='-O1'
)

# PROGRAM -> compiler, sources, flags. @PROGRAM is another program that it is linked with. A name with .so in it is the
# name of a shared library.
declare -A recipes=(
    [weak]='cc weak.c'
    [no_mpi]='cc no_mpi.c'
    [libucx_a.so]='cc fake_ucx.c -DCOPY="a"'
    [libucx_b.so]='cc fake_ucx.c -DCOPY="b"'
    [libuser_a.so]='cc fake_ucx.c -DUSER="a" @libucx_a.so -Wl,-rpath,$ORIGIN'
    [libuser_b.so]='cc fake_ucx.c -DUSER="b" @libucx_b.so -Wl,-rpath,$ORIGIN'
    [two_ucx]='cc two_ucx.c -ldl'

    [c_point_to_point]='mpicc c_point_to_point.c'
    [c_collectives]='mpicc c_collectives.c'
    [c_objects]='mpicc c_objects.c'
    [mpi3_calls]='mpicc mpi3_calls.c'
    [outside]='mpicc outside.c'
    [thread_init]='mpicc thread_init.c -lpthread'
    [sessions]='mpicc sessions.c'
    [session_first]='mpicc session_first.c'
    [late_rank]='mpicc late_rank.c'
    [forks]='mpicc forks.c -lpthread'
    [short_of_memory]='mpicc short_of_memory.c'
    [unreadable]='mpicc -rdynamic unreadable.c'
    [by_handle]='mpicc by_handle.c -ldl'
    [cxx_threads]='mpicxx -std=c++20 cxx_threads.cpp -lpthread'
    [cxx_bindings]='mpicxx -w cxx_bindings.cpp'
    [cxx_exceptions]='mpicxx cxx_exceptions.cpp'
    [last_requests]='mpicc last_requests.c'
    [unchecked_aliases]='mpicc unchecked_aliases.c'
    [blocked]='mpicc blocked.c'
    [cancelled]='mpicc cancelled.c -lpthread'
    [closed_descriptors]='mpicc closed_descriptors.c -lpthread'
    [session_collectives]='mpicc session_collectives.c'
    [loading]='mpicc -rdynamic loading.c -ldl -lpthread'
    [libsends.so]='mpicc sends.c'
    [f77_calls]='mpifort -fallow-argument-mismatch f77_calls.f'
    [f90_calls]='mpifort -fallow-argument-mismatch f90_calls.f90'
    [f90_errors]='mpifort -fallow-argument-mismatch f90_errors.f90'
    [f08_calls]='mpifort f08_calls.f90'
    [f08_errors]='mpifort f08_errors.f90'
    [libuser.so]='mpicc user_library.c'
    [late_host]='cc late_host.c -ldl'
    [libno_wipe.so]='cc no_wipe.c'

    [sections]='mpicc sections.c'
    [datatypes]='mpicc datatypes.c'
    [f90_sections]='mpifort f90_sections.f90'
    [libprofiler.so]='mpicc profiler.c'
    [libprofiler_of_sections.so]='mpicc profiler_of_sections.c'
    [tool_names]='mpicc tool_names.c'

    [mpi3_open]='openmpi mpi3_calls.c'
)
# A fake MPI library, a library that calls it, and their host. Each has a folder of its own: the loader goes by names.
for soname in libmpi.so.40 libmpi_abi.so.1 libmpich.so.12 libmpi_gnu_91.so.12; do
    recipes[fake-$soname/$soname]='cc fake_mpi.c'
    recipes[fake-$soname/libelsewhere.so]='cc fake_elsewhere.c'
    recipes[fake-$soname/host]="cc fake_host.c @fake-$soname/$soname @fake-$soname/libelsewhere.so -Wl,-rpath,\$ORIGIN"
done

is_source() { [[ $1 == *.c || $1 == *.cpp || $1 == *.f || $1 == *.f90 ]]; }

is_current() { # PROGRAM WORD... : it is there, and newer than the sources among the words of its recipe
    local output=$programs/$1 word
    [ -e "$output" ] && [ "$output" -nt "$sources/programs.sh" ] && [ "$output" -nt "$sources/report.h" ] || return
    for word in "${@:2}"; do
        ! is_source "$word" || [ "$output" -nt "$sources/$word" ] || return
    done
}

# Two scenarios may build it at once: each writes a file of its own, and the renaming is atomic.
compile() { # PROGRAM COMPILER ARGUMENT...
    local output=$programs/$1
    local written=$output.$$
    mkdir -p "$(dirname "$output")"
    if "$2" -o "$written" "${@:3}" 2>build.err; then mv "$written" "$output"; else rm -f "$written"; return 1; fi
}

build() { # PROGRAM : and what it is linked with, where it is missing or old; the compiler's words are in build.err
    local words word flags arguments=()
    read -ra words <<<"${recipes[$1]}"
    for word in "${words[@]}"; do [[ $word != @* ]] || build "${word#@}" || return; done
    ! is_current "$1" "${words[@]:1}" || return 0
    read -ra flags <<<"${compiler_flags[${words[0]}]}"
    [[ ${1##*/} != *.so* ]] || flags+=(-shared -fPIC "-Wl,-soname,${1##*/}")
    for word in "${words[@]:1}"; do
        if is_source "$word"; then word=$sources/$word; fi
        arguments+=("${word/#@/$programs/}")
    done
    compile "$1" "${compilers[${words[0]}]}" "${flags[@]}" "${arguments[@]}"
}

# Builds what the scenario needs and links it into the work folder. Where it fails, the check is decided: return.
need() { # PROGRAM...
    local program
    for program; do
        if [ -z "${compilers[${recipes[$program]%% *}]}" ]; then
            skip "$name" "no ${recipes[$program]%% *} here"
            return 1
        elif ! build "$program"; then
            fail "$name" "$program does not compile" build.err
            return 1
        fi
        mkdir -p "$(dirname "$program")"
        ln -sf "$programs/$program" "$program"
    done
}
