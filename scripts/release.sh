#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Makes what is published of a version, from the commit that is checked out. Changes nothing in the checkout.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top"
# shellcheck source=scripts/packages.sh
. scripts/packages.sh

usage() {
    cat <<'TEXT'
usage: scripts/release.sh [options]

Writes into a new folder:
  vecmpi-VERSION.tar.gz    the sources; the same bytes for the same commit
  vecmpi_VERSION-1_ARCHITECTURE.deb
  recipes/                 for Spack, EasyBuild and conda, with the archive's address and checksum
  RELEASE_NOTES.md         this version's part of CHANGELOG.md
  SHA256SUMS               of all of these

VERSION is that of CMakeLists.txt; the newest part of CHANGELOG.md, and a tag v... of the commit, must name the same.

  --out DIR      where to write; must not exist (default: build/release-VERSION)
  --url URL      where the archive will be found (default: file:// and the folder)
  --source-only  no Debian package
  --check        only compares the versions
TEXT
}

fail() {
    echo "release.sh: $1" >&2
    exit "${2:-1}"
}

out='' url='' source_only='' only_check=''
parse_arguments() {
    while (($#)); do
        case $1 in
            --help | -h) usage; exit 0 ;;
            --source-only) source_only=yes ;;
            --check) only_check=yes ;;
            --out | --url)
                (($# > 1)) || fail "$1 needs a value (--help shows the options)" 2
                if [[ $1 == --out ]]; then out=$(realpath -m "$2"); else url=${2%/}; fi
                shift ;;
            *) fail "'$1' is no option (--help shows them)" 2 ;;
        esac
        shift
    done
}

# ---- what may be released ----------------------------------------------------------------------------

check_versions() { # sets version
    local newest tag
    version=$(sed -nE 's/^project\(vecmpi VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
    [[ -n $version ]] || fail "CMakeLists.txt names no version"
    newest=$(sed -nE 's/^## ([^ ]+).*/\1/p' CHANGELOG.md | head -n 1)
    [[ $newest == "$version" ]] || fail "CMakeLists.txt is version $version, the newest part of CHANGELOG.md is '$newest'"
    for tag in $(git tag --points-at HEAD 'v*' 2>/dev/null); do
        [[ $tag == "v$version" ]] || fail "CMakeLists.txt is version $version, the commit's tag is $tag"
    done
}

check_tree() {
    local changed
    changed=$(git status --porcelain 2>/dev/null) || fail "not a checkout of git"
    [[ -z $changed ]] || fail "not committed: $(head -n 1 <<<"$changed" | cut -c 4-)$(
        (($(wc -l <<<"$changed") == 1)) || echo ", and $(($(wc -l <<<"$changed") - 1)) more")"
}

# ---- the parts ---------------------------------------------------------------------------------------

# Times of files are the commit's, owners are git's (root).
write_archive() {
    git -c tar.umask=0022 archive --format=tar --prefix="$name/" HEAD | gzip -9n >"$out/$name.tar.gz"
}

# From the archive: what it lacks is missed here.
write_debian_package() {
    local sources=$work/$name build=$work/build
    need_packages build || fail "no compiler"
    need_packages packaging || fail "no dpkg-shlibdeps"
    tar -C "$work" -xzf "$out/$name.tar.gz"
    if ! {
        cmake -S "$sources" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr \
            -DVECMPI_TESTS=OFF -DCMAKE_CXX_FLAGS="-ffile-prefix-map=$work=." &&
            cmake --build "$build" && cpack --config "$build/CPackConfig.cmake" -G DEB -B "$work/packed"
    } >"$work/log" 2>&1 </dev/null; then
        tail -n 30 "$work/log" >&2
        fail "the Debian package does not build"
    fi
    cp "$work"/packed/*.deb "$out"
}

write_recipes() {
    local sum recipe target
    sum=$(sha256sum "$out/$name.tar.gz" | cut -d ' ' -f 1)
    for recipe in spack/package.py easybuild/vecmpi.eb conda/recipe/{meta.yaml,build.sh,conda_build_config.yaml}; do
        target=$out/recipes/$recipe
        [[ $recipe != *.eb ]] || target=${target%.eb}-$version-$(toolchain_of "packaging/$recipe").eb
        mkdir -p "$(dirname "$target")"
        sed "s|@VERSION@|$version|g; s|@SHA256@|$sum|g; s|@URL@|$url|g" "packaging/$recipe" >"$target"
    done
    chmod +x "$out/recipes/conda/recipe/build.sh"
}

toolchain_of() { sed -nE "s/^toolchain = \{'name': '(.*)', 'version': '(.*)'\}/\1-\2/p" "$1"; } # EASYCONFIG

write_notes() {
    awk -v version="$version" '/^## /{inside = ($2 == version)} inside' CHANGELOG.md |
        sed "1s/.*/# vecmpi $version/" >"$out/RELEASE_NOTES.md"
}

write_sums() {
    (cd "$out" && find . -type f -printf '%P\0' | sort -z | xargs -0 sha256sum) >"$work/sums"
    mv "$work/sums" "$out/SHA256SUMS"
}

parse_arguments "$@"
check_versions
[[ -z $only_check ]] || { echo "release.sh: version $version"; exit 0; }
check_tree
name=vecmpi-$version
out=${out:-$top/build/release-$version}
url=${url:-file://$out}
[[ ! -e $out ]] || fail "$out: exists already"
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
write_archive
[[ -n $source_only ]] || write_debian_package
write_recipes
write_notes
write_sums
echo "release.sh: $out"
(cd "$out" && find . -type f -printf '  %P\n' | sort)
