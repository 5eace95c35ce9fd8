# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# A commit of what is in the checkout, committed there or not, for tests of scripts/release.sh. Source it.

# Files that are deleted and not committed are left out.
snapshot() { # CHECKOUT FOLDER
    local file
    mkdir "$2" && git -C "$1" ls-files -z --cached --others --exclude-standard |
        while IFS= read -r -d '' file; do [[ ! -f $1/$file ]] || printf '%s\0' "$file"; done |
        tar -C "$1" --null -T - -cf - | tar -C "$2" -xf - && commit_all "$2"
}

# Whatever the machine's git is told, the time is the same each time.
commit_all() { # FOLDER
    [[ -d $1/.git ]] || git init -q "$1"
    git -C "$1" add -A && GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' GIT_COMMITTER_DATE='2026-01-01T00:00:00Z' \
        git -C "$1" -c user.name=test -c user.email=test@localhost -c commit.gpgSign=false commit -qm snapshot
}
