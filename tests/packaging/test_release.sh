#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/release.sh without the Debian package: what it writes, and what it refuses.
#
#   test_release.sh CHECKOUT
set -uo pipefail
checkout=$(realpath "${1:?usage: test_release.sh CHECKOUT}")
# shellcheck source=tests/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
# shellcheck source=tests/packaging/snapshot.sh
. "$(dirname "${BASH_SOURCE[0]}")/snapshot.sh"
tree=$work/tree

release() { (cd / && "$tree/scripts/release.sh" "$@"); }

refused() { # COMMAND...: its one line; nothing was written
    local said
    said=$("$@" 2>&1) && said="status 0: $said"
    [[ ! -e $work/none ]] || said+=", and something was written"
    echo "$said"
}

holds_all() { # FOLDER
    local name
    for name in "vecmpi-$version.tar.gz" RELEASE_NOTES.md SHA256SUMS recipes/spack/package.py \
        "recipes/easybuild/vecmpi-$version-gmpich-2025b.eb" recipes/conda/recipe/{meta.yaml,build.sh}; do
        [[ -s $1/$name ]] || { echo "no $name"; return 1; }
    done
    ! grep -rn '@[A-Z0-9]*@' "$1/recipes" && (cd "$1" && sha256sum --quiet -c SHA256SUMS)
}

is_the_commit() { # FOLDER
    mkdir "$work/unpacked" && tar -C "$work/unpacked" -xzf "$1/vecmpi-$version.tar.gz" &&
        diff -r --exclude=.git "$tree" "$work/unpacked/vecmpi-$version"
}

git -C "$checkout" ls-files >/dev/null 2>&1 || { echo "git names no files: not its checkout"; exit 77; }
check "a commit" snapshot "$checkout" "$tree"
version=$(release --check)
version=${version##* }
check "release" release --source-only --out "$work/first"
check "all files, right sums" holds_all "$work/first"
check "the archive is the commit" is_the_commit "$work/first"
check "again" release --source-only --out "$work/second" --url "file://$work/first"
check "the same bytes" diff -r "$work/first" "$work/second"
check "notes" grep -q '^### ' "$work/first/RELEASE_NOTES.md"
expect "notes of one version" "$(grep -c '^## ' "$work/first/RELEASE_NOTES.md")" 0

expect "an option" "$(refused release --nonsense)" "release.sh: '--nonsense' is no option (--help shows them)"
expect "a folder that exists" "$(refused release --out "$work/first")" "release.sh: $work/first: exists already"
touch "$tree/new"
expect "dirty" "$(refused release --out "$work/none")" "release.sh: not committed: new"
echo >>"$tree/README.md"
expect "dirtier" "$(refused release --out "$work/none")" "release.sh: not committed: README.md, and 1 more"
commit_all "$tree"
git -C "$tree" tag v0.0.1
expect "another tag" "$(refused release --out "$work/none")" \
    "release.sh: CMakeLists.txt is version $version, the commit's tag is v0.0.1"
git -C "$tree" tag -d v0.0.1 >/dev/null
sed -i "s/^## $version/## 99.0/" "$tree/CHANGELOG.md" && commit_all "$tree"
expect "another version" "$(refused release --out "$work/none")" \
    "release.sh: CMakeLists.txt is version $version, the newest part of CHANGELOG.md is '99.0'"
finish
