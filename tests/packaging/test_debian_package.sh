#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The Debian package that scripts/release.sh makes from an archive of the sources: lintian, whether apt would install it,
# and all preload scenarios with the library of the unpacked package. Installs nothing of vecmpi.
#
#   test_debian_package.sh BUILD_FOLDER CHECKOUT
set -uo pipefail
build=$(realpath "${1:?usage: test_debian_package.sh BUILD_FOLDER CHECKOUT}")
checkout=$(realpath "${2:?usage: test_debian_package.sh BUILD_FOLDER CHECKOUT}")
# shellcheck source=tests/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
# shellcheck source=tests/packaging/snapshot.sh
. "$(dirname "${BASH_SOURCE[0]}")/snapshot.sh"

git -C "$checkout" ls-files >/dev/null 2>&1 || { echo "git names no files: not its checkout"; exit 77; }
check "a commit" snapshot "$checkout" "$work/tree"
check "release" "$work/tree/scripts/release.sh" --out "$work/release"
package=$(find "$work/release" -name 'vecmpi_*.deb')
[[ -n $package ]] || { finish; exit 1; }
check "lintian" lintian --allow-root --fail-on error,warning "$package"
check "apt would install it" apt-get --simulate install "$package"
dpkg-deb -x "$package" "$work/root"
library=$(find "$work/root/usr/lib" -name libvecmpi.so)
check "scenarios" "$checkout/tests/preload/run.sh" --programs "$build/tests/preload/programs" "$library"
tail -n 1 "$work/out"
finish
