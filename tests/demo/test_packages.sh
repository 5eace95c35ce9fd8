#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests of scripts/packages.sh with stand-ins for dpkg-query and apt-get. Installs nothing.
set -uo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../scripts" && pwd)
# shellcheck source=scripts/packages.sh
. "$scripts/packages.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

expect() { # WHAT GOT WANTED
    [[ $2 == "$3" ]] && return
    echo "FAIL: $1: '$2', not '$3'" >&2
    failures=$((failures + 1))
}

# What the stand-ins pretend: installed packages, packages that exist, what apt-get answers.
installed='' existing='' answer=''
package_is_installed() { [[ " $installed " == *" $1 "* ]]; }
apt-cache() { [[ " $existing " == *" $2 "* ]]; }
apt_get() {
    echo "$*" >>"$work/calls"
    [[ -z $answer || $1 == update ]] && return
    echo "E: $answer"
    return 100
}

need() { # GROUP: its messages and its status
    : >"$work/calls"
    need_packages "$1" 2>&1
    echo "status $?"
}

original=$(packages_of build)
packages_of() { echo one 'two|three' four; }

installed='one three four'
expect "nothing missing" "$(need build)" "status 0"
expect "nothing missing, apt-get" "$(cat "$work/calls")" ""

installed='one' existing='three four'
expect "two missing" "$(need build)" "packages.sh: installing two|three four
status 0"
expect "two missing, apt-get" "$(cat "$work/calls")" "update
install --yes --no-install-recommends three four"

answer='Unable to locate package four'
expect "apt-get fails" "$(need build)" "packages.sh: installing two|three four
packages.sh: apt-get could not install three four: E: Unable to locate package four
status 1"

# shellcheck source=scripts/packages.sh
. "$scripts/packages.sh"
expect "an unknown group" "$(need nonsense)" "packages.sh: no group of packages is called 'nonsense'
status 2"
for name in $original; do
    expect "test holds $name" "$(packages_of test | tr ' ' '\n' | grep -cx -- "$name")" 1
done
((failures == 0)) || exit 1
echo "packages.sh: all checks passed"
