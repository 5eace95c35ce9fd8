#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests of vecmpi-tune and of profiles in jobs: options, what is written where and when, signals, profiles that do not fit
# or differ between ranks. It asserts no time.
#
#   test_tune.sh BUILD_FOLDER
set -uo pipefail
build=$(realpath "${1:?usage: test_tune.sh BUILD_FOLDER}")
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/checks.sh
. "$here/../checks.sh"
tune=$build/vecmpi-tune
mpirun=$(command -v mpirun.mpich || echo mpirun)
program=$build/tests/mpi/bin/collectives
for name in $(env | sed -n 's/^\(VECMPI[A-Z_]*\)=.*/\1/p'); do unset "$name"; done
export XDG_CONFIG_HOME=$work/config

tunes() { # STATUS ARGUMENT... : standard output in $work/text, errors in $work/err
    local wanted=$1 status=0
    timeout -k 5 300 "$tune" "${@:2}" >"$work/text" 2>"$work/err" </dev/null || status=$?
    [[ $status == "$wanted" ]] || { echo "status $status, not $wanted"; cat "$work/text" "$work/err"; return 1; }
}

says() { # FILE WORDS...
    grep -qF -- "${*:2}" "$1" || { echo "no '${*:2}' in"; cat "$1"; return 1; }
}

silent_on() { # FILE WORDS...
    ! grep -F -- "${*:2}" "$1"
}

refuses() { # WORDS ARGUMENT... : one line that holds the words, nothing else, status 2
    tunes 2 "${@:2}" || return
    [[ $(wc -l <"$work/err") == 1 && ! -s $work/text ]] || { cat "$work/text" "$work/err"; return 1; }
    says "$work/err" "$1"
}

nothing_left() { # FOLDER
    ! find "$1" -name '.vecmpi-tune*' | grep .
}

fits() { # FILE
    "$build/vecmpi-tune-kernels" check "$1"
}

stub() { # NAME, standard input: a script
    { echo '#!/bin/bash'; cat; } >"$work/$1" && chmod +x "$work/$1"
}

write_profile() { # FILE ROW... : for this host
    "$build/vecmpi-tune-kernels" host | python3 -c '
import json, sys
host = json.load(sys.stdin)
print("version = 1", "cpu = " + host["cpu"], "isa = " + host["isa"], *sys.argv[1:], sep="\n")
' "${@:2}" >"$1"
}

# ---- options ------------------------------------------------------------------------------------------------

mkdir -p "$work/made"
mkfifo "$work/made/pipe"
ln -s pipe "$work/made/to_pipe"
echo old >"$work/made/old"
check "help" tunes 0 --help
check "help names the parts" says "$work/text" "kernels,pack,node,network"
check "unknown option" refuses "--nonsense" --nonsense
check "unknown part" refuses "'fast' is none of kernels, pack, node, network" --only kernels,fast
check "no part" refuses "none of" --only ''
check "no limit" refuses "--timeout" --timeout 0
check "mpirun without a program" refuses "--mpirun: no program given" --mpirun ''
check "mpirun that is not there" refuses "--mpirun: no program nowhere" --mpirun 'nowhere -n 2'
check "mpirun with half a quotation" refuses "--mpirun: No closing quotation" --mpirun "mpirun '"
check "library that is not there" refuses "no library at $work/no.so" --library "$work/no.so"
check "output: a folder" refuses "no regular file" --output "$work/made"
check "output: a pipe" refuses "no regular file" --output "$work/made/pipe"
check "output: a link to a pipe" refuses "no regular file" --output "$work/made/to_pipe"
check "output: a device" refuses "no regular file" --output /dev/null
check "output: no name" refuses "--output: '' names no file" --output ''
check "output: a folder that is not there" refuses "/newdir/' names no file" --output "$work/newdir/"
check "it is not made" test ! -e "$work/newdir"
check "library: no name" refuses "--library: '' names no file" --library ''
check "output: no folder" refuses "$work/none/x: No such file" --output "$work/none/x"
check "output: nobody may write there" refuses "/proc/x: " --output /proc/x
if [[ $(id -u) != 0 ]]; then
    chmod a-w "$work/made/old"
    check "output: a file that may not be written" refuses "no permission" --output "$work/made/old"
    chmod u+w "$work/made/old"
fi
check "the device is still one" test -c /dev/null
check "the pipe is still one" test -p "$work/made/pipe"
check "no profile to show" tunes 1 --show
no_errors() { # without standard error there are none on standard output either
    "$tune" --output "$work/none/x" 2>&- >"$work/text"
    [[ $? == 2 && ! -s $work/text ]]
}
check "standard error is closed" no_errors
check "it says where it looked" says "$work/err" "$work/config/vecmpi/"

# ---- what is written ---------------------------------------------------------------------------------------------

check "a quick run" tunes 0 --quick --mpirun "$mpirun -n 2" --output "$work/made/full"
check "progress" says "$work/err" '[1/6] kernels'
check "a table" says "$work/text" 'built in'
check "the network is left out" says "$work/err" 'network: not measured: ranks 0 and 1 are on one host'
check "the profile fits" fits "$work/made/full"
expect "ways of five collectives" "$(grep -c '^node\.2\.' "$work/text")" 5
check "the library's name" grep -q '^mpi = MPICH' "$work/made/full"
check "a profile that anybody may read" test "$(stat -c %a "$work/made/full")" = "$(printf %o $((0666 & ~$(umask))))"

check "where the library looks" tunes 0 --quick --only kernels
check "show" tunes 0 --show
check "show says that it fits" says "$work/text" 'fits this host'
check "vecmpi-info" grep -q "^profile  *$work/config/vecmpi/.* (auto): [0-9]* measured" <("$build/vecmpi-info")
check "standard output" tunes 0 --quick --only kernels --output -
check "the profile, and nothing else" grep -q 'version = 1' <(sed -n 2p "$work/text")

write_profile "$work/made/kept" 'mpi = MPICH' 'network = latency=7us' 'node.7.bcast = copy,copy,copy' \
    'reduce.half = scalar' 'pack.gather.8.far = no'
ln -s kept "$work/made/link"
chmod 640 "$work/made/kept"
check "over a link" tunes 0 --quick --only kernels --output "$work/made/link"
check "the link is one" test -L "$work/made/link"
check "its file keeps its mode" test "$(stat -c %a "$work/made/kept")" = 640
for row in 'mpi = MPICH' 'network = latency=7us' 'node.7.bcast = copy,copy,copy' 'pack.gather.8.far = no'; do
    check "kept: $row" says "$work/made/kept" "$row"
done
check "measured anew: reductions" silent_on "$work/made/kept" 'reduce.half = scalar'
ln -s later "$work/made/dangling"
check "over a link to nothing" tunes 0 --quick --only kernels --output "$work/made/dangling"
check "what it leads to" fits "$work/made/later"
check "a file that is no profile" tunes 0 --quick --only kernels --output "$work/made/old"
check "nothing is kept of it" says "$work/err" 'nothing is kept of'
check "nothing is left beside" nothing_left "$work/made"

# ---- failures and signals --------------------------------------------------------------------------------------

check "no ranks" tunes 1 --quick --only kernels,node --mpirun false --output "$work/made/failed"
check "no ranks: why" says "$work/err" 'vecmpi-tune: node: a run ended with status 1'
check "no ranks: what was measured" fits "$work/made/failed"
# Runs that are no runs: figures of a node and of a network that are clear, but for MPI_Bcast's. The last one fails.
stub canned <<SCRIPT
echo run >>$work/runs
run=\$(wc -l <$work/runs)
[[ \$run != 5 ]] || exit 3
echo '{"bench":"header","ranks":2,"mpi":"MPICH Version: 4.0.2","places":["a:0-1","'\$HOST_OF_1':0-1"]}'
echo '{"bench":"figure","name":"latency","at":8,"value":1999.6}'
echo '{"bench":"figure","name":"bandwidth one way","at":8,"value":94123.4}'
echo '{"bench":"figure","name":"overhead of a message","at":8,"value":80'\$run'0}'
tried="vecmpi[0]: on this node MPI"
for size in 64 256 1024; do
    echo "\${tried}_Allreduce of \$size KiB takes by copy-in copy-out 9.\$run us, by single copy 5.\$run us, by the library 8.0 us: single copy"
    echo "\${tried}_Reduce of \$size KiB takes by copy-in copy-out 9.\$run us, by single copy -, by the library 8.6 us: copy-in copy-out"
    echo "\${tried}_Bcast of \$size KiB takes by copy-in copy-out \$((run % 2 * 9 + 1)).0 us, by single copy 5.0 us, by the library 8.0 us: the library"
done >&2
SCRIPT
export HOST_OF_1=a
check "the last run fails" tunes 1 --only node --mpirun "$work/canned" --output "$work/made/canned"
check "what ran before is kept" says "$work/made/canned" 'node.2.allreduce = copy,copy,copy'
check "a way that is not better by enough" silent_on "$work/made/canned" node.2.reduce
check "a way that is not better always" silent_on "$work/made/canned" node.2.bcast
check "the table says so" grep -qE '^node.2.bcast .* tried in each job' "$work/text"
rm "$work/runs"
export HOST_OF_1=b
check "constants of a network" tunes 1 --only network --mpirun "$work/canned" --output "$work/made/canned"
check "those that differ" says "$work/made/canned" 'network = latency=2000ns,bandwidth=94123Mbit'
check "and the others" silent_on "$work/made/canned" overhead=
check "ways of before" says "$work/made/canned" 'node.2.allreduce = copy,copy,copy'
check "the library reads that" fits "$work/made/canned"
# One figure of a network is none; the kernels are written all the same.
stub no_figure <<'SCRIPT'
echo '{"bench":"header","ranks":2,"mpi":"'"$MPI"'","places":["a:0-1","b:0-1"]}'
echo '{"bench":"figure","name":"latency","at":8,"value":'"$FIGURE"'}'
echo '{"bench":"figure","name":"bandwidth one way","at":8,"value":94123.4}'
echo '{"bench":"figure","name":"overhead of a message","at":8,"value":800}'
SCRIPT
export MPI='MPICH Version: 4.0.2'
# shellcheck disable=SC2089,SC2090 # the quotes are the figure's
for FIGURE in NaN Infinity -1 0 0.4 null '"fast"' true '[1]'; do
    export FIGURE
    check "no figure: $FIGURE" tunes 1 --quick --only kernels,network --mpirun "$work/no_figure" --output "$work/made/none"
    check "one line: $FIGURE" test "$(grep -v '^\[' "$work/err" | grep -c .)" = 1
    check "why: $FIGURE" says "$work/err" 'network: a run printed what is no figure'
    check "what was measured: $FIGURE" fits "$work/made/none"
done
# Text of the MPI library that would break the file: the library's own reader says so, the old profile stays.
export FIGURE=1999 MPI='MPICH\nnonsense'
write_profile "$work/made/stays" 'reduce.half = scalar'
cp "$work/made/stays" "$work/made/before"
for output in "$work/made/stays" -; do
    check "a profile that is refused" tunes 1 --only network --mpirun "$work/no_figure" --output "$output"
    check "it is said" says "$work/err" "$output: not written: the new profile:6: nonsense: accepted is"
done
check "nothing of it on standard output" silent_on "$work/text" version
check "the old one stays" cmp "$work/made/stays" "$work/made/before"
# Another run writes its part meanwhile.
stub meanwhile <<SCRIPT
"$work/no_figure"
grep -q reduce.pairs "$work/made/stays" || echo 'reduce.pairs = scalar' >>"$work/made/stays"
SCRIPT
export MPI='MPICH Version: 4.0.2'
check "two at a time" tunes 0 --only network --mpirun "$work/meanwhile" --output "$work/made/stays"
check "what was there is kept" says "$work/made/stays" 'reduce.half = scalar'
check "what the other wrote is kept" says "$work/made/stays" 'reduce.pairs = scalar'
check "and its own" says "$work/made/stays" 'network = latency=1999ns'
write_profile "$work/made/latin" 'reduce.half = scalar'
printf '# f\xfcr uns\n' >>"$work/made/latin"
check "a comment in another encoding" tunes 0 --show --output "$work/made/latin"
check "it is shown as it is" cmp <(tail -n +2 "$work/text") "$work/made/latin"
write_profile "$work/made/wild" $'mpi = \e[31mX' 'network = latency=7us'
check "over a profile of a strange library" tunes 0 --quick --only network --mpirun "$work/no_figure" --output "$work/made/wild"
check "its control characters are not printed" says "$work/err" 'were of ?[31mX: not kept'
check "nothing measured" tunes 1 --only node --mpirun false --output "$work/made/nothing"
check "nothing written" test ! -e "$work/made/nothing"
stub late <<'SCRIPT'
sleep 1000
SCRIPT
check "a run that takes too long" tunes 1 --only network --mpirun "$work/late" --timeout 1 --output "$work/made/nothing"
check "it is said" says "$work/err" 'limit 1 s'

is_gone() { # PID: or a zombie that nobody asks for
    local state
    state=$(sed -n 's/^State:\s*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null)
    [[ -z $state || $state == Z ]]
}

# The ranks' launcher is a script with a child of its own.
stub slow <<SCRIPT
sleep 1000 &
echo \$! >$work/child
wait
SCRIPT
ended_by() { # SIGNAL STATUS
    local pid status=0 i
    rm -f "$work/child"
    # Under nohup, or in the background of a shell, a signal may be ignored.
    env --default-signal=INT,HUP,QUIT,TERM "$tune" --only node --mpirun "$work/slow" --output "$work/made/ended" \
        >"$work/text" 2>"$work/err" &
    pid=$!
    for ((i = 0; i < 300; i++)); do [[ -s $work/child ]] && break; sleep 0.1; done
    kill -s "$1" $pid
    wait $pid || status=$?
    [[ $status == "$2" ]] || { echo "status $status"; cat "$work/err"; return 1; }
    is_gone "$(cat "$work/child")" || { echo "the child is there"; return 1; }
    [[ ! -e $work/made/ended ]] && nothing_left "$work/made"
}
check "SIGTERM" ended_by TERM 143
check "SIGINT" ended_by INT 130
check "SIGHUP" ended_by HUP 129
check "SIGQUIT" ended_by QUIT 131
stub hangs_up <<'SCRIPT'
kill -s HUP $PPID
exit 3
SCRIPT
under_nohup() { # SIGHUP reaches the tool, which goes on until its run has failed
    local status=0
    nohup "$tune" --only node --mpirun "$work/hangs_up" --output "$work/made/ended" </dev/null || status=$?
    [[ $status == 1 ]]
}
check "SIGHUP under nohup" under_nohup

# ---- profiles in jobs ----------------------------------------------------------------------------------------------

ranks() { # NAME=VALUE... -- : two ranks; results in $work/results, the library's lines in $work/lines
    local settings=()
    while [[ $1 != -- ]]; do settings+=(-genv "${1%%=*}" "${1#*=}") && shift; done
    timeout -k 5 120 "$mpirun" -n 2 "${settings[@]}" "$program" mixed --seed 1 >"$work/results" 2>"$work/lines"
}
preloaded() { # NAME=VALUE... : and the same results as plain
    ranks LD_PRELOAD="$build/libvecmpi.so" "$@" -- && diff "$work/plain" "$work/results"
}
check "plain" ranks --
cp "$work/results" "$work/plain"
one_line() { # FILE WORDS : the job runs, and one rank says this
    preloaded VECMPI_PROFILE="$1" || return
    [[ $(grep -c '^vecmpi' "$work/lines") == 1 ]] || { cat "$work/lines"; return 1; }
    says "$work/lines" "$2"
}
printf 'version = 1\ncpu = Other\nisa = avx2\n' >"$work/other"
printf 'version = 9\n' >"$work/newer"
write_profile "$work/bad" 'speed = 3'
check "a profile of another host" one_line "$work/other" 'is for Other with avx2, this is'
check "a newer profile" one_line "$work/newer" "$work/newer:1: version = 9: accepted is version = 1"
check "a malformed line" one_line "$work/bad" "$work/bad:4: speed = 3: accepted keys are"
check "no such file" one_line "$work/nowhere" 'VECMPI_PROFILE accepts auto, off, learn, or a file'
check "a pipe" one_line "$work/made/pipe" 'no regular file'
check "VECMPI=off reads nothing" preloaded VECMPI=off VECMPI_PROFILE="$work/bad"
check "VECMPI=off says nothing" silent_on "$work/lines" vecmpi
write_profile "$work/library" 'mpi = Other MPI' 'network = latency=7us'
if [[ $(id -u) == 0 ]] && command -v setpriv >/dev/null; then
    unreadable() { # by who may look at the folder, but not at the file
        setpriv --reuid 65534 --clear-groups test -x "$build/vecmpi-info" || return 0
        "$tune" --quick --only kernels >/dev/null 2>&1
        chmod 711 "$work" && chmod -R go+x "$work/config" && chmod 600 "$work/config/vecmpi/"*
        setpriv --reuid 65534 --clear-groups "$build/vecmpi-info" >"$work/text"
        chmod 700 "$work"
        says "$work/text" 'cannot be read (Permission denied)'
    }
    check "a personal profile that may not be read" unreadable
fi
check "of another MPI library" one_line "$work/library" 'was measured with Other MPI, this is MPICH'

# Every entry there is, for or against: the bytes stay the same.
every_entry() { # yes|no
    local rows=() kernel length distance
    for kernel in pack.permute unpack.permute pack.gather unpack.gather move.masked move.columns; do
        for length in 1 2 4 8 16 32 long; do
            for distance in dense open sparse far; do rows+=("$kernel.$length.$distance = $1"); done
        done
    done
    write_profile "$work/every" "${rows[@]}" 'reduce.arithmetic = scalar' 'reduce.pairs = sse4' 'reduce.complex = sse4'
    for case in "packing" "reduce_bits"; do
        same_with "$work/every" "$case" || return
    done
}
same_with() { # PROFILE PROGRAM
    local run=(timeout -k 5 120 "$mpirun" -n 2)
    "${run[@]}" "$build/tests/mpi/bin/$2" --seed 1 >"$work/plain_$2" 2>&1 || return
    "${run[@]}" -genv LD_PRELOAD "$build/libvecmpi.so" -genv VECMPI_PACK on -genv VECMPI_PROFILE "$1" \
        "$build/tests/mpi/bin/$2" --seed 1 >"$work/results" 2>&1 && diff "$work/plain_$2" "$work/results"
}
check "every kernel where it can" every_entry yes
check "no kernel but blocks" every_entry no

# Less than 1 MiB: longer calls go to the library until they have moved 32 MiB.
trial="$build/vecmpi-bench-ranks allreduce --pin none --sizes 786432 --ops sum --calls allreduce"
seconds=0.3
allreduces() { # PROFILE OTHER_PROFILE : of the two ranks
    local usual=(-env LD_PRELOAD "$build/libvecmpi.so" -env VECMPI_LOG info)
    # shellcheck disable=SC2086 # several words
    timeout -k 5 120 "$mpirun" -n 1 "${usual[@]}" -env VECMPI_PROFILE "$1" $trial --seconds $seconds : \
        -n 1 "${usual[@]}" -env VECMPI_PROFILE "$2" $trial --seconds $seconds >"$work/results" 2>"$work/lines" || return
    says "$work/results" '"bench":"figure"' && silent_on "$work/results" '"bench":"wrong"'
}
tries() { # PROFILE OTHER_PROFILE : until the trial has ended, for which a busy host needs longer
    local seconds
    for seconds in 0.3 2 10; do
        allreduces "$@" || return
        ! grep -qF 'on this node MPI_Allreduce of' "$work/lines" || return 0
    done
    says "$work/lines" 'on this node MPI_Allreduce of'
}
write_profile "$work/rounds" 'node.2.allreduce = rounds,rounds,rounds'
write_profile "$work/copy" 'node.2.allreduce = copy,copy,copy'
check "without a profile ways are tried" tries off off
for one in rounds copy; do
    check "with the same profile: $one" allreduces "$work/$one" "$work/$one"
    check "nothing is tried: $one" silent_on "$work/lines" 'on this node MPI_Allreduce of'
done
check "with different profiles ways are tried" tries "$work/rounds" "$work/copy"
check "it is said" says "$work/lines" 'the profiles of the ranks differ'
check "with a profile on one rank" allreduces "$work/rounds" off
check "with a bad one on the other" allreduces "$work/rounds" "$work/bad"

# ---- what a job learns ----------------------------------------------------------------------------------------------

learned=$work/made/new/learned
check "the first job tries" tries "learn:$learned" "learn:$learned"
check "it writes" says "$work/lines" "winners of trials added"
one_row() { [[ $(grep -c '^learned\.2\.allreduce = .*512K:[a-z]*$' "$learned") == 1 ]]; }
check "a row" one_row
check "the second one reads" allreduces "learn:$learned" "learn:$learned"
check "it reads" says "$work/lines" "profile $learned: "
check "it is the same row" one_row
check "vecmpi-tune keeps it" tunes 0 --quick --only kernels --output "$learned"
check "it is kept" one_row
sed 's/^mpi = .*/mpi = Other MPI/' "$learned" >"$work/learned_before"
cp "$work/learned_before" "$learned"
check "of another library" tries "learn:$learned" "learn:$learned"
check "it stays" cmp "$learned" "$work/learned_before"
check "it is said that it stays" says "$work/lines" "what was learned is not written: profile $learned was measured with"
check "no place" tries "learn:/proc/nowhere/learned" "learn:/proc/nowhere/learned"
check "no place is said" says "$work/lines" 'profile /proc/nowhere/learned: what was learned is not written: '

# ---- the network ----------------------------------------------------------------------------------------------------

over="$here/../mpi/over_nodes.sh"
if "$over" -n 1 true >"$work/made/log" 2>&1; then
    check "two nodes" tunes 0 --quick --only node,network --mpirun "env NODES=2 $over -n 2" --output "$work/made/net"
    check "constants" says "$work/text" 'network latency'
    check "ways by this host's mpirun" grep -q '^node\.' "$work/text"
    says_network() { # the constants of the profile, unless the user gave others
        VECMPI_PROFILE=$1 "$build/vecmpi-info" --explain bcast >"$work/text" && says "$work/text" "$2"
    }
    write_profile "$work/network" 'network = latency=2us,bandwidth=100Gbit'
    check "--explain reckons with it" says_network "$work/network" 'latency 2 us, 12500 MB/s'
    check "VECMPI_NETWORK wins" env VECMPI_NETWORK=latency=3us bash -c \
        "VECMPI_PROFILE=$work/network $build/vecmpi-info --explain bcast | grep -q 'latency 3 us, 12500 MB/s'"
else
    echo "skip two nodes: $(tail -n 1 "$work/made/log")"
fi
finish
