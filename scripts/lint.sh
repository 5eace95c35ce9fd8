#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Looks for faults without running anything: clang-format and clang-tidy over C and C++, shellcheck over scripts, ruff
# over Python. Changes no file. What each looks for stands in .clang-format, .clang-tidy, .shellcheckrc and ruff.toml.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top"
# shellcheck source=scripts/packages.sh
. scripts/packages.sh

# LINT: program and version (another version finds other faults); how it judges a file; how to repair one.
declare -ra lints=(format tidy shell python)
declare -rA tools=([format]='clang-format 14' [tidy]='clang-tidy 14' [shell]='shellcheck 0.9' [python]='ruff 0.17.6')
declare -rA arguments=([format]='--dry-run -Werror' [tidy]='--quiet -p BUILD/lint'
    [shell]='--severity=style --format=gcc' [python]='check --no-cache --quiet --output-format=concise')
declare -rA repairs=([format]='clang-format-14 -i FILE' [tidy]='by hand, or NOLINT(check) and the reason'
    [shell]='by hand, or "# shellcheck disable=CODE" and the reason'
    [python]='ruff check --fix FILE, or "# noqa: CODE" and the reason')

chosen=() changed='' sample='' seed='' jobs=2
build=$top/build
cache=${VECMPI_CACHE:-$HOME/.cache/vecmpi}

usage() {
    cat <<'TEXT'
usage: scripts/lint.sh [format | tidy | shell | python | all]... [options]

  format  clang-format 14 over C and C++
  tidy    clang-tidy 14 over the sources of the library, the tools, the examples and the tests that CMake builds:
          some seconds a file
  shell   shellcheck 0.9 over scripts
  python  ruff over Python; fetched into the cache where there is none of the version
  all     (default) these four

  --changed COMMIT  only files that differ from COMMIT; for tidy also one source that includes a changed header
  --sample N        of each lint only N files, chosen at random
  --seed S          of that choice (default: a random one, printed)
  --jobs N          files at the same time (default: 2)
  --build DIR       for tidy: a build folder, configured if need be (default: build)
  --cache DIR       for ruff (default: ${VECMPI_CACHE:-$HOME/.cache/vecmpi})

A file is one count; the last line is "N passed, N failed". Exit status: 0 nothing was found, 1 something was, 2 bad
arguments, 3 no set-up, 77 the tools are not here and cannot be installed.
TEXT
}

bad_argument() {
    echo "lint.sh: $1 (--help shows the options)" >&2
    exit 2
}

fail() {
    echo "lint.sh: $1" >&2
    exit 3
}

whole_number() { [[ $2 =~ ^[1-9][0-9]{0,8}$ ]] || bad_argument "$1 takes a whole number from 1 on, not '$2'"; }

is_commit() { git rev-parse --verify --quiet "$2^{commit}" >/dev/null || bad_argument "$1 takes a commit, not '$2'"; }

# Each of the given lints once, in the order of the table.
in_order() {
    local lint
    for lint in "${lints[@]}"; do
        [[ " $* " != *" $lint "* ]] || echo "$lint"
    done
}

parse_arguments() {
    while (($#)); do
        case $1 in
            --help | -h) usage; exit 0 ;;
            all) chosen+=("${lints[@]}"); shift; continue ;;
            format | tidy | shell | python) chosen+=("$1"); shift; continue ;;
            --changed | --sample | --seed | --jobs | --build | --cache) (($# > 1)) || bad_argument "$1 needs a value" ;;
            *) bad_argument "'$1' is no lint and no option" ;;
        esac
        case $1 in
            --changed) is_commit "$1" "$2"; changed=$2 ;;
            --sample) whole_number "$1" "$2"; sample=$2 ;;
            --seed) whole_number "$1" "$2"; seed=$2 ;;
            --jobs) whole_number "$1" "$2"; jobs=$2 ;;
            --build) build=$(realpath -m "$2") ;;
            --cache) cache=$2 ;;
        esac
        shift 2
    done
    mapfile -t chosen < <(in_order "${chosen[@]:-${lints[@]}}")
    seed=${seed:-$((RANDOM + 1))}
}

# ---- tools ---------------------------------------------------------------------------------------

# is_version PROGRAM VERSION: is it there, of this version or one that begins with it?
is_version() {
    local said
    said=$("$1" --version 2>/dev/null) || return
    [[ " ${said//$'\n'/ } " == *[\ v]"$2"[.\ ]* ]]
}

# Prints the program of a lint, if it is here.
find_tool() { # LINT
    local name version candidate
    read -r name version <<<"${tools[$1]}"
    for candidate in "$name-$version" "$name" "$cache/$name-$version/bin/$name"; do
        is_version "$candidate" "$version" && echo "$candidate" && return
    done
    return 1
}

# Ruff is not in Debian 12: a virtual environment with the wheel.
fetch_ruff() { # VERSION
    local folder=$cache/ruff-$1
    mkdir -p "$cache"
    exec 9>"$cache/ruff.lock"
    flock 9 # two of these scripts may share the cache
    if [[ ! -f $folder/ready ]]; then
        rm -rf "$folder"
        {
            /usr/bin/python3 -m venv --without-pip "$folder" &&
                /usr/bin/python3 -m pip --python "$folder/bin/python" install --no-deps "ruff==$1" &&
                touch "$folder/ready"
        } >"$cache/ruff.log" 2>&1 </dev/null || true
    fi
    exec 9>&-
}

install_tool() { # LINT
    need_packages lint || true
    [[ $1 != python ]] || fetch_ruff "${tools[python]#* }"
}

# ---- files ---------------------------------------------------------------------------------------

# Files of the checkout, and those that are not committed yet. What others wrote stays as they wrote it.
files_named() { # PATTERN...
    local file
    git ls-files --cached --others --exclude-standard -- "$@" ':!third_party' | while read -r file; do
        [[ ! -f $file ]] || echo "$file"
    done
}

# Those without an ending say in their first line what they are.
files_run_by() { # INTERPRETER
    local file line
    files_named | grep -vE '\.[^/]*$' | while read -r file; do
        read -r line <"$file" || true
        [[ ! $line =~ ^#!.*[/\ ]$1($|\ ) ]] || echo "$file"
    done
}

# Headers are judged by tidy where a source includes them.
files_of() { # LINT
    case $1 in
        format) files_named '*.cpp' '*.hpp' '*.c' '*.h' ;;
        tidy) comm -12 <(files_named '*.cpp' '*.c' | sort) "$build/lint/sources" ;;
        shell) files_named '*.sh' && files_run_by '(ba)?sh' ;;
        python) files_named '*.py' && files_run_by 'python3?' ;;
    esac | sort -u
}

only_changed() { # LINT: of the files on standard input
    local all header
    all=$(cat)
    { git diff --name-only "$changed" -- && git ls-files --others --exclude-standard; } >"$work/changed"
    grep -xFf "$work/changed" <<<"$all" || true
    [[ $1 == tidy ]] || return 0
    while read -r header; do # the first source that includes it
        [[ ! $header =~ \.(hpp|h)$ ]] ||
            xargs grep -lE "^#include [\"<](.*/)?${header##*/}[\">]" <<<"$all" | head -n 1 || true
    done <"$work/changed"
}

only_sample() { # of the files on standard input
    python3 -c 'import random, sys
seed, number, files = sys.argv[1], int(sys.argv[2]), sorted(sys.stdin)
sys.stdout.writelines(random.Random(seed).sample(files, min(len(files), number)))' "$seed" "$sample"
}

chosen_files() { # LINT
    files_of "$1" | if [[ -n $changed ]]; then only_changed "$1"; else cat; fi |
        sort -u | if [[ -n $sample ]]; then only_sample; else cat; fi
}

# What clang-tidy is told of each source: one command, without the words that only GCC knows. It has no name for one of
# the instruction sets that half_sum.cpp asks for, refuses the reductions of team.cpp, and has no std::source_location.
write_compile_commands() {
    python3 - "$build/compile_commands.json" "$top" "$build/lint" <<'PYTHON'
import json, os, re, sys
database, top, folder = sys.argv[1:]
words = (r"Winvalid-pch -include \S+", "Werror", "fno-tree-slp-vectorize", "fno-plt", "Wno-maybe-uninitialized",
         r"mmem(cpy|set)-strategy=\S+")
only_gcc = rf" -({'|'.join(words)})(?= )"
left_out = ("/tools/bench/ranks/half_sum.cpp", "/tools/bench/ranks/team.cpp")
entries = {}
for entry in json.load(open(database)):
    entry["command"] = re.sub(only_gcc, "", entry["command"])
    if "/tests/mpi/" in entry["file"]:
        entry["command"] += f" -include {top}/tests/structure/source_location.hpp"
    if not entry["file"].endswith(left_out):
        entries.setdefault(entry["file"], entry)
json.dump(list(entries.values()), open(f"{folder}/compile_commands.json", "w"))
print(*sorted(os.path.relpath(file, top) for file in entries), sep="\n", file=open(f"{folder}/sources", "w"))
PYTHON
}

# The commands of the compiler, and the headers that are generated.
configure() {
    local log=$build/lint/configure.log
    mkdir -p "$build/lint"
    {
        need_packages test || true
        cmake -S . -B "$build" -G Ninja -DCMAKE_EXPORT_COMPILE_COMMANDS=ON &&
            cmake --build "$build" --target vecmpi_generate && write_compile_commands
    } >"$log" 2>&1 </dev/null || fail "CMake does not configure $build (log: $log)"
}

# ---- judging -------------------------------------------------------------------------------------

# Judges files, each by a call of its own. What is found goes into a file beside others, of which one word is the name.
judge() { # LINT PROGRAM: files on standard input
    local words=${arguments[$1]//BUILD/$build}
    mkdir "$work/$1"
    # shellcheck disable=SC2016,SC2086 # the inner shell expands it; several words
    tr '\n' '\0' | xargs -0 -r -n 1 -P "$jobs" bash -c \
        'found=$0/${!#//\//!}; "$@" >"$found" 2>&1 </dev/null || mv "$found" "$found.failed"' "$work/$1" "$2" $words
}

show_found() { # LINT
    local found
    for found in "$work/$1"/*.failed; do
        [[ -f $found ]] || continue
        grep -vE '^[0-9]+ warnings? .*generated|^Suppressed|^Use -header' "$found" || true
    done
    echo "to repair: ${repairs[$1]}"
}

# Sets passed and failed.
run_lint() { # LINT PROGRAM
    local files faulty begun=$SECONDS
    [[ $1 != tidy ]] || configure
    chosen_files "$1" >"$work/files"
    judge "$1" "$2" <"$work/files"
    files=$(wc -l <"$work/files")
    faulty=$(find "$work/$1" -name '*.failed' | wc -l)
    passed=$((passed + files - faulty)) failed=$((failed + faulty))
    ((faulty == 0)) || show_found "$1"
    echo "$1: $faulty of $files files with findings ($((SECONDS - begun)) s)"
}

main() {
    local lint program left=()
    parse_arguments "$@"
    git ls-files >/dev/null || { echo "git names no files: not its checkout"; exit 77; }
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    [[ -z $sample ]] || echo "seed $seed"
    for lint in "${chosen[@]}"; do
        find_tool "$lint" >/dev/null || install_tool "$lint"
        if program=$(find_tool "$lint"); then
            run_lint "$lint" "$program"
        else
            left+=("$lint: no ${tools[$lint]} here, and it cannot be installed")
        fi
    done
    ((${#left[@]} == 0)) || printf 'left out: %s\n' "${left[@]}"
    ((${#left[@]} < ${#chosen[@]})) || exit 77
    echo "$passed passed, $failed failed"
    ((failed == 0))
}

passed=0 failed=0
[[ ${BASH_SOURCE[0]} != "$0" ]] || main "$@"
