#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests of scripts/lint.sh on a checkout of a few lines, with stand-ins for the tools: options, choice of files, counts.
# They fetch nothing; what the tools find is theirs.
set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tests/checks.sh
. "$top/tests/checks.sh"

# A tool that says its version, and finds fault with every file that contains the word "fault".
stand_in() { # NAME VERSION
    cat >"$work/bin/$1" <<SCRIPT
#!/bin/sh
[ "\$1" = --version ] && echo "$1 version $2" && exit
for file; do :; done
! grep -H fault "\$file"
SCRIPT
    chmod +x "$work/bin/$1"
}

make_checkout() {
    mkdir -p "$work/tree/scripts" "$work/bin"
    cp "$top/scripts/lint.sh" "$top/scripts/packages.sh" "$work/tree/scripts"
    cd "$work/tree" || exit 1
    sed -i '/^need_packages() {/a return 1' scripts/packages.sh # installs nothing
    export HOME=$work PATH=$work/bin:$PATH GIT_CONFIG_NOSYSTEM=1 PIP_NO_INDEX=1 PIP_CONFIG_FILE=/dev/null
    unset VECMPI_CACHE
    git init --quiet . && git config user.name test && git config user.email test@localhost
    echo 'fault' >old.py
    echo 'good' >good.py
    printf '#!/bin/sh\n# fault\n' >launcher
    git add . && git commit --quiet -m 'all: begin'
    echo 'fault' >new.py
}

lint() { scripts/lint.sh "$@" 2>&1; }

refused() { # OPTION...: one line, status 2
    local status=0
    scripts/lint.sh "$@" >"$work/refused.out" 2>"$work/refused.err" || status=$?
    [[ $status == 2 && ! -s $work/refused.out && $(wc -l <"$work/refused.err") == 1 ]]
}

make_checkout
check "--help" scripts/lint.sh --help
for arguments in nonsense --nonsense "--sample" "--sample 0" "--seed x" "--changed nothing" "--jobs 0"; do
    # shellcheck disable=SC2086
    check "refused: $arguments" refused $arguments
done

stand_in ruff 0.1.0
stand_in ruff-0.17.6 0.1.0
expect "a tool of another version: last line" "$(lint python | tail -n 1)" \
    "left out: python: no ruff 0.17.6 here, and it cannot be installed"
scripts/lint.sh python >/dev/null 2>&1
expect "a tool of another version: status" "$?" 77

stand_in ruff 0.17.6
expect "all files, those not committed too" "$(lint python | tail -n 1)" "1 passed, 2 failed"
expect "what is found" "$(lint python | grep -c '^[a-z]*\.py:fault$')" 2
expect "changed files" "$(lint python --changed HEAD | tail -n 1)" "0 passed, 1 failed"
expect "a sample" "$(lint python --sample 2 | tail -n 1 | awk '{ print $1 + $3 }')" 2
chosen=$(lint python --sample 1 --seed 7 | sed 's/(.*//')
expect "a seed chooses the same" "$chosen" "$(lint python --sample 1 --seed 7 | sed 's/(.*//')"
stand_in shellcheck 0.9.0
expect "scripts without an ending" "$(lint shell | grep -c '^launcher:')" 1
expect "nothing has changed" "$(lint shell --changed HEAD | tail -n 1)" "0 passed, 0 failed"
scripts/lint.sh python >/dev/null 2>&1
expect "findings: status" "$?" 1
rm old.py new.py
scripts/lint.sh python >/dev/null 2>&1
expect "none: status" "$?" 0
finish
