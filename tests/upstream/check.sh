#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds the programs of docs/upstream with Debian's MPICH, runs them on each MPI library that is here, and compares what
# they show with the table of docs/upstream/README.md. Fetches nothing: scripts/libraries.sh does.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly here reports=$here/docs/upstream
cache=${VECMPI_CACHE:-$HOME/.cache/vecmpi}/libraries
only='' limit=12

# NAME: the column of the table, from 4 on; the folder in the cache, but for Debian's.
readonly names=(debian mpich4 mpich5 ofi intel)
declare -rA columns=([debian]=4 [mpich4]=5 [mpich5]=6 [ofi]=6 [intel]=7)
declare -rA folders=([mpich4]=mpich-4.3.2 [mpich5]=mpich-5.0.2 [ofi]=mpich-5.0.2 [intel]=impi-rt-2021.18.1)

usage() {
    cat <<'TEXT'
usage: tests/upstream/check.sh [options]

  --only TEXT    programs whose name and argument contain it (default: all)
  --limit S      seconds for one run (default: 12)
  --cache DIR    libraries that scripts/libraries.sh has fetched (default: ${VECMPI_CACHE:-$HOME/.cache/vecmpi}/libraries)

A line for each library and program: present or absent. Exit status: 0 all as recorded, 1 some are not, 2 bad arguments,
77 Debian's MPICH is not the 4.0.2 that the table speaks of.
TEXT
}

bad_argument() {
    echo "check.sh: $1 (--help shows the options)" >&2
    exit 2
}

parse_arguments() {
    while (($#)); do
        case $1 in
            --help | -h) usage; exit 0 ;;
            --only | --limit | --cache) (($# > 1)) || bad_argument "$1 needs a value" ;;
            *) bad_argument "'$1' is no option" ;;
        esac
        case $1 in
            --only) only=$2 ;;
            --limit) [[ $2 =~ ^[1-9][0-9]{0,3}$ ]] || bad_argument "--limit takes a whole number, not '$2'"; limit=$2 ;;
            --cache) cache=$2 ;;
        esac
        shift 2
    done
}

# rows COLUMN: "PROGRAM[ ARGUMENT]|RANKS|yes, no or now and then" of the table; what was not run is left out.
rows() {
    awk -F ' *[|] *' -v column="$(($1 + 1))" '
        $2 ~ /^`[0-9][0-9]_/ && $column != "–" { gsub("`", "", $2); print $2 "|" $3 "|" $column }' "$reports/README.md"
}

build() {
    local source
    for source in "$reports"/programs/*.c; do
        mpicc.mpich -O1 -Wall -Wextra -Werror -o "$work/$(basename "$source" .c)" "$source" -ldl
    done
}

is_here() { [[ $1 == debian || -f $cache/${folders[$1]}/ready ]]; }

# start NAME RANKS PROGRAM [ARGUMENT]
start() {
    local prefix=$cache/${folders[$1]:-} netmod=()
    [[ $1 != ofi ]] || netmod=(MPIR_CVAR_CH4_NETMOD=ofi)
    if [[ $1 == debian ]]; then
        timeout -k 2 "$limit" mpirun.mpich -n "${@:2}"
    else
        env LD_LIBRARY_PATH="$prefix/lib" I_MPI_ROOT="$prefix" FI_PROVIDER_PATH="$prefix/lib" "${netmod[@]}" \
            timeout -k 2 "$limit" "$prefix/bin/mpiexec" -n "${@:2}"
    fi
}

# compare NAME PROGRAM RANKS RECORDED
compare() {
    local status=0 words found=absent verdict=ok wanted=absent
    read -ra words <<<"$2"
    start "$1" "$3" "$work/${words[0]}" "${words[@]:1}" >"$work/out" 2>&1 </dev/null || status=$?
    ((status == 0)) || found=present
    [[ $4 == no ]] || wanted=present
    [[ $found == "$wanted" || $4 == "now and then" ]] || verdict=FAIL
    printf '%-4s %-7s %-36s %s\n' "$verdict" "$1" "$2" "$found"
    [[ $verdict == ok ]] || { echo "     recorded: $4, exit status $status"; grep -v '^=\|^$' "$work/out" | head -n 3; }
    [[ $verdict == ok ]] && passed=$((passed + 1)) || failed=$((failed + 1))
}

main() {
    local name program ranks recorded
    parse_arguments "$@"
    mpirun.mpich --version 2>/dev/null | grep 'Version: *4\.0\.2$' >/dev/null || { echo "no MPICH 4.0.2 here"; exit 77; }
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    build
    passed=0 failed=0
    for name in "${names[@]}"; do
        is_here "$name" || { echo "left out: $name is not in $cache"; continue; }
        while IFS='|' read -r program ranks recorded; do
            [[ $program == *"$only"* ]] || continue
            compare "$name" "$program" "$ranks" "$recorded"
        done < <(rows "${columns[$name]}")
    done
    echo "$passed passed, $failed failed"
    ((failed == 0))
}

main "$@"
