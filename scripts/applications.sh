#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs real programs plain and with libvecmpi.so preloaded by turns, on ranks of this machine and over virtual hosts.
# Each program checks its own results. --help shows the options, docs/applications.md says what it is for.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/packages.sh
. "$here/scripts/packages.sh"

case " $* " in
    *" --help "* | *" -h "* | *" --list "*) ;; # needs nothing but python3
    *)
        need_packages applications || exit 3
        [[ " $*" != *" --plot"* ]] || need_packages pictures || exit 3
        ;;
esac
# Debian's Python, whatever stands before it in PATH: its package holds matplotlib.
python=/usr/bin/python3
[[ -x $python ]] || python=python3
exec "$python" -B "$here/tests/applications/run_applications.py" "$@"
