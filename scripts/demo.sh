#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The main job on a real program: builds vecmpi, trains a network on handwritten digits with the
# plain MPI library and with vecmpi preloaded, side by side, and prints what was gained or lost and
# which paths ran. A demonstration, not a benchmark: vecmpi-bench measures.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(dirname "$here")
# shellcheck source=scripts/packages.sh
. "$here/packages.sh"

usage() {
    cat <<'TEXT'
demo.sh [--quick] [--ranks N] [--hosts N] [--rate RATE] [--library FILE] [-- OPTION...]

  --quick         shorter runs, and fewer kinds of them
  --ranks N       ranks of the runs on this machine (default 2; 0: none)
  --hosts N       virtual hosts, one rank on each (default 2; 0: none); they need root
  --rate RATE     link rate between the virtual hosts, as tc writes it (default 1gbit)
  --library FILE  preload this libvecmpi.so instead of building one
  -- OPTION...    options of train_digits, e.g. -- --half --width 1024 --batch 16

Installs missing Debian packages, builds in build/, takes about four minutes on two cores, half of it the build.
VECMPI_ variables that are set already stay set in the preloaded runs.
TEXT
}

die() {
    clear_status
    echo "demo.sh: $1" >&2
    exit "${2:-1}"
}

clear_status() { [[ ! -t 1 ]] || printf '\r\033[K'; }

whole_number() { # OPTION VALUE LEAST MOST
    [[ $2 =~ ^(0|[1-9][0-9]{0,3})$ ]] && (($2 >= $3 && $2 <= $4)) && return
    die "$1 takes $3 to $4, not '$2'" 2
}

ranks=2 hosts=2 rate=1gbit epochs=8 quick=no library='' training=()
while (($# > 0)); do
    case $1 in
        --quick) quick=yes epochs=3 ;;
        --ranks | --hosts | --rate | --library)
            (($# > 1)) || die "$1 needs a value (--help shows the options)" 2
            declare "${1#--}=$2"
            shift
            ;;
        -h | --help)
            usage
            exit 0
            ;;
        --)
            shift
            training=("$@")
            break
            ;;
        *) die "'$1' is not an option (--help shows them)" 2 ;;
    esac
    shift
done
whole_number --ranks "$ranks" 0 1024
whole_number --hosts "$hosts" 0 64
((ranks + hosts > 0)) || die "--ranks 0 --hosts 0 leaves nothing to run" 2
[[ -z $library || -r $library ]] || die "--library $library: cannot be read" 2
[[ -z $library ]] || library=$(realpath "$library")

cpus=$(nproc)
repeats=3
limit=120 # seconds a run may take
work=$(mktemp -d -t vecmpi-demo.XXXXXX)
child=''
trap '[[ -z $child ]] || kill "$child" 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# 1. Build.

quietly() { # WHAT COMMAND...: shows the end of the output if the command fails
    local what=$1
    shift
    "$@" >"$work/log" 2>&1 && return
    tail -n 25 "$work/log" >&2
    die "$what failed (its last lines stand above)"
}

build() {
    local generator=() targets=(train_digits)
    [[ -e $top/build/CMakeCache.txt ]] || generator=(-G Ninja)
    [[ -n $library ]] || targets+=(vecmpi)
    echo "building in build/ ..."
    quietly "cmake" cmake -S "$top" -B "$top/build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release
    quietly "the build" cmake --build "$top/build" --parallel --target "${targets[@]}"
    program=$top/build/examples/train_digits
    [[ -n $library ]] || library=$top/build/libvecmpi.so
    [[ -r $library ]] || die "the build made no $library"
    mpirun=$(command -v mpirun.mpich || command -v mpiexec.hydra) || die "MPICH's mpirun is missing"
}

# 2. What to run. A row is: place (machine or hosts), ranks, settings of the preloaded runs, title.
# Each row runs with --overlap and with --blocking.

rows=()

plan_machine() {
    ((ranks > 0)) || return 0
    rows+=("machine|$ranks||$ranks ranks, this machine")
    # Twice as many ranks as CPUs: what laptops and test machines do. Pointless to wait for on many.
    if [[ $quick == no ]] && ((cpus <= 4 && 2 * cpus != ranks)); then
        rows+=("machine|$((2 * cpus))||$((2 * cpus)) ranks on $cpus CPUs")
    fi
}

plan_hosts() {
    local why status=0
    ((hosts > 0)) || return 0
    if [[ $(id -u) == 0 ]] && ! need_packages lab; then return 0; fi
    why=$("$here/lab.sh" -n "$hosts" -r "$rate" -- true 2>&1) || status=$?
    ((status != 2)) || die "--rate: $why" 2
    if ((status == 0)); then
        # Hosts that share CPUs do not know of each other: let the kernel place their threads.
        rows+=("hosts|$hosts|VECMPI_OFFLOAD=on VECMPI_CPU=none|$hosts hosts, $rate")
    else
        echo "no runs over virtual hosts: $(tail -n 1 <<<"$why")"
    fi
}

# 3. Run. Every result lies in a file $work/ROW.MODE.VARIANT.REPEAT.

training_command() { # PLACE RANKS MODE NAME=VALUE...: prints nothing, sets `command`
    local place=$1 ranks=$2 mode=$3 setting
    shift 3
    if [[ $place == hosts ]]; then
        command=("$here/lab.sh" -n "$ranks" -r "$rate" -t "$limit")
        for setting in "$@"; do command+=(-e "$setting"); done
        command+=(--)
    else
        command=(timeout --kill-after=5 "$limit" "$mpirun" -n "$ranks")
        for setting in "$@"; do command+=(-genv "${setting%%=*}" "${setting#*=}"); done
    fi
    command+=("$program" "--$mode" --epochs "$epochs" ${training[@]+"${training[@]}"})
}

# Waits for the process `child`; meanwhile shows the program's progress line on a terminal. Returns
# its status, or 75 where it had printed its results but was still in MPI_Finalize 10 s later:
# MPICH 4.0 can hang there over TCP (a rank that waits in the PMI barrier no longer answers the
# others' disconnects; MPICH pull request 6596). Preloaded it ends, unless UCX lies inside MPICH.
wait_for_run() { # TITLE FILE
    local finished=0 status=0
    while kill -0 "$child" 2>/dev/null; do
        [[ ! -t 1 ]] || printf '\r\033[K%s: %.100s' "$1" "$(grep '^epoch' "$2" | tail -n 1)"
        ! grep -q '^result waiting_ms' "$2" || ((++finished <= 50)) || break
        sleep 0.2
    done
    kill "$child" 2>/dev/null && status=75
    wait "$child" || status=$((status ? status : $?))
    child=''
    clear_status
    return "$status"
}

run_one() { # ROW MODE VARIANT REPEAT
    local place ranks settings title environment=() command status=0
    IFS='|' read -r place ranks settings title <<<"${rows[$1]}"
    local file=$work/$1.$2.$3.$4
    [[ $3 == plain ]] || environment=("LD_PRELOAD=$library" VECMPI_REPORT=summary)
    # shellcheck disable=SC2206 # settings are words
    [[ $3 == plain ]] || environment+=($settings)
    training_command "$place" "$ranks" "$2" "${environment[@]}"
    : >"$file"
    "${command[@]}" >"$file" 2>&1 </dev/null &
    child=$!
    wait_for_run "run $((++runs))/$all_runs, $title, $2, $3" "$file" || status=$?
    if ((status == 75)) && [[ $place == hosts ]]; then
        stuck[$3]=$((stuck[$3] + 1)) status=0
    fi
    if ((status != 0)) || ! grep -q '^result ranks_agree yes' "$file"; then
        tail -n 15 "$file" >&2
        ((status != 75)) || die "$title, $2, $3: hung in MPI_Finalize"
        ((status != 124)) || die "$title, $2, $3: not finished after $limit s"
        die "$title, $2, $3: failed with status $status (its last lines stand above)"
    fi
    printf '  %-22s %-9s %-10s %7.1f ms a step, %6.1f of it in MPI, accuracy %s\n' "$title" "$2" \
        "$3" "$(value "$file" step_ms)" "$(value "$file" communication_ms)" \
        "$(value "$file" accuracy)"
}

# Plain and preloaded take turns, and take turns in going first.
run_all() {
    local repeat row mode variants
    declare -gA stuck=([plain]=0 [preloaded]=0)
    runs=0 all_runs=$((repeats * ${#rows[@]} * 4))
    for ((repeat = 1; repeat <= repeats; repeat++)); do
        variants=(plain preloaded)
        ((repeat % 2)) || variants=(preloaded plain)
        for row in "${!rows[@]}"; do
            for mode in overlap blocking; do
                run_one "$row" "$mode" "${variants[0]}" "$repeat"
                run_one "$row" "$mode" "${variants[1]}" "$repeat"
            done
        done
    done
}

# 4. Show.

value() { awk -v name="$2" '$1 == "result" && $2 == name { print $3 }' "$1"; } # FILE NAME

values() { # ROW.MODE.VARIANT NAME: of all repeats
    local repeat
    for ((repeat = 1; repeat <= repeats; repeat++)); do value "$work/$1.$repeat" "$2"; done
}

# "1.23", with a ~ before it where the plain and the preloaded runs' times overlap: within noise.
speed_up() { # ROW.MODE
    paste <(values "$1.plain" step_ms | sort -g) <(values "$1.preloaded" step_ms | sort -g) |
        awk '{ plain[NR] = $1; preloaded[NR] = $2 }
             END { middle = int(NR / 2) + 1
                   noise = plain[1] <= preloaded[NR] && preloaded[1] <= plain[NR]
                   printf "%s%.2f", noise ? "~" : "", plain[middle] / preloaded[middle] }'
}

median() { values "$@" | sort -g | sed -n "$((repeats / 2 + 1))p"; }

# Whether the preloaded runs gave the plain runs' gradients, losses and network to the last bit.
identical() { # ROW.MODE
    local plain preloaded
    plain=$(values "$1.plain" hash | sort -u)
    preloaded=$(values "$1.preloaded" hash | sort -u)
    if [[ $(wc -l <<<"$plain") != 1 ]]; then
        echo "plain varies"
    elif [[ $plain == "$preloaded" ]]; then
        echo yes
    else
        echo no
    fi
}

show_table() {
    local row mode title
    printf '\n%-22s %-9s | %19s | %8s | %19s | %s\n' '' '' 'ms a step' 'speed-up' 'of it in MPI, ms' 'losses'
    printf '%-22s %-9s | %8s %10s | %8s | %8s %10s | %s\n' '' mode plain preloaded '' plain preloaded 'identical'
    for row in "${!rows[@]}"; do
        IFS='|' read -r _ _ _ title <<<"${rows[$row]}"
        for mode in overlap blocking; do
            printf '%-22s %-9s | %8.1f %10.1f | %8s | %8.1f %10.1f | %s\n' "$title" "$mode" \
                "$(median "$row.$mode.plain" step_ms)" \
                "$(median "$row.$mode.preloaded" step_ms)" "$(speed_up "$row.$mode")" \
                "$(median "$row.$mode.plain" communication_ms)" \
                "$(median "$row.$mode.preloaded" communication_ms)" "$(identical "$row.$mode")"
        done
    done
}

show_explanation() {
    local row settings title
    echo
    echo "The program: $(sed -n 's/^train_digits: [^,]*, \(.*\), overlap$/\1/p' "$work/0.overlap.plain.1")."
    echo "Speed-up: plain / preloaded; below 1 the preloaded program is slower; ~ where the slowest runs"
    echo "of one are slower than the fastest of the other, so that the difference may be noise. Medians of"
    echo "$repeats runs, of the steps in each run, mean of the ranks. Identical: every summed gradient, every"
    echo "loss and the trained network have the same bits; no: the sums were taken in another order, which"
    echo "VECMPI_REPRODUCIBLE=on forbids (docs/reductions.md), and the ranks still agree. The virtual hosts share"
    echo "the $cpus CPUs of this machine."
    awk -v cpus="$cpus" -v load="$load" 'BEGIN { if (load > cpus / 4)
        print "The machine was busy when the demo began (load " load "): its times mean little." }'
    if ((stuck[plain] + stuck[preloaded] > 0)); then
        echo "Hung in MPI_Finalize after their results, and were ended: ${stuck[plain]} plain runs, ${stuck[preloaded]} preloaded"
        echo "(MPICH 4.0 over TCP can do so by itself, see MPICH pull request 6596)."
    fi
    echo "Preloaded runs: LD_PRELOAD=$library VECMPI_REPORT=summary"
    for row in "${!rows[@]}"; do
        IFS='|' read -r _ _ settings title <<<"${rows[$row]}"
        echo "  and on $title: ${settings:-nothing else}"
    done
    env | grep '^VECMPI' | sed 's/^/  and from your environment: /' || true
}

# What a preloaded run printed beyond the program's own lines is vecmpi's report; a run that was ended
# has Hydra's banner behind it.
show_reports() {
    local row mode title
    for row in "${!rows[@]}"; do
        IFS='|' read -r _ _ _ title <<<"${rows[$row]}"
        for mode in overlap blocking; do
            printf '\nWhich paths ran: %s, %s\n' "$title" "$mode"
            sed -E '/^=====/,$d; /^(train_digits:|epoch|result) /d; /^\[mpiexec@/d; /^$/d; s/^/  /' \
                "$work/$row.$mode.preloaded.$repeats"
        done
    done
}

read -r load _ </proc/loadavg
need_packages build || exit 1
build
unset LD_PRELOAD # plain is to be plain
plan_machine
plan_hosts
((${#rows[@]} > 0)) || die "nothing to run"
echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $cpus CPUs, $("$mpirun" --version | sed -n 's/^ *Version: */MPICH /p')"
run_all
show_table
show_explanation
show_reports
printf '\nThe demo took %d s.\n' "$SECONDS"
