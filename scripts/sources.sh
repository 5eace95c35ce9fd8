# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Source packages of the distribution, and MPICH's compilers under the names that builds look for. Source it
# after packages.sh; it does nothing by itself. What goes wrong is said in one line, and the status is 1.

# The machine's own archives in a list of our own, where each line begins as given; its apt configuration and its
# package lists stay as they are. Only archives of the distribution can hold the source of its package.
write_source_list() { # FILE BEGIN
    local distribution
    distribution=$(. /etc/os-release && echo "$ID")
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(ORIGIN)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)' 'Created-By: Packages' |
        sort -u | while IFS='|' read -r origin uri release component; do
            [[ ${origin,,} == "$distribution" ]] && echo "$2 $uri $release $component"
        done >"$1" || true
    [[ -s $1 ]]
}

# own_apt WORK BEGIN OPTION...: sets the array `apt` to an apt-get that knows these lines and leaves its files in WORK.
own_apt() {
    local work=$1 begin=$2
    mkdir -p "$work"/{lists,archives}/partial "$work/unpack"
    if ! write_source_list "$work/sources.list" "$begin"; then
        apt_get update >"$work/log" 2>&1 || true # no package lists yet: apt does not know whose archives these are
        write_source_list "$work/sources.list" "$begin" ||
            { echo "apt names no archive of this distribution" >&2; return 1; }
    fi
    apt=(apt-get -q -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o Dir::State::lists="$work/lists" -o Dir::Cache="$work" -o Dir::Cache::archives="$work/archives"
        -o Acquire::Languages=none -o APT::Sandbox::User="$(id -un)" "${@:3}")
    "${apt[@]}" update >"$work/log" 2>&1 && return
    echo "apt-get update failed, see $work/log" >&2
    return 1
}

# fetch_source PACKAGE=VERSION TARGET [original]: the unpacked and patched source, once; original: without the
# distribution's patches.
fetch_source() {
    local version=$1 target=$2 part=${3:-patched} work apt
    [[ ! -d $target ]] || return 0
    echo "fetching the source package $version"
    mkdir -p "$(dirname "$target")"
    work=$(mktemp -d "$(dirname "$target")/fetch.XXXXXX")
    own_apt "$work" deb-src || return 1
    if [[ $part == original ]]; then
        (cd "$work/unpack" && "${apt[@]}" source --tar-only "$version" && tar -xf ./*.orig.tar.*) >>"$work/log" 2>&1
    else
        (cd "$work/unpack" && "${apt[@]}" source "$version") >>"$work/log" 2>&1
    fi || {
        echo "apt-get source $version failed, see $work/log" >&2
        return 1
    }
    mv "$(find "$work/unpack" -mindepth 1 -maxdepth 1 -type d)" "$target" && rm -rf "$work"
}

# fetch_foreign_package ARCHITECTURE PACKAGE TARGET: the files of a package for another architecture, once.
fetch_foreign_package() {
    local architecture=$1 package=$2 target=$3 work apt
    [[ ! -d $target ]] || return 0
    mkdir -p "$(dirname "$target")"
    work=$(mktemp -d "$(dirname "$target")/fetch.XXXXXX")
    own_apt "$work" "deb [arch=$architecture]" -o "APT::Architectures=$architecture" || return 1
    if ! { (cd "$work" && "${apt[@]}" download "$package:$architecture") &&
        dpkg-deb -x "$work/$package"_*.deb "$work/unpack"; } >>"$work/log" 2>&1; then
        echo "apt-get download $package:$architecture failed, see $work/log" >&2
        return 1
    fi
    mv "$work/unpack" "$target" && rm -rf "$work"
}

# link_tools FOLDER: mpicc, mpicxx ... of MPICH in FOLDER/bin. Builds look for these names in one prefix, and plain
# mpicc may be Open MPI.
link_tools() {
    local tool found
    mkdir -p "$1/bin"
    for tool in mpicc mpicxx mpifort mpif77 mpiexec; do
        found=$(command -v "$tool.mpich") || { echo "$tool.mpich is missing" >&2; return 1; }
        ln -sf "$found" "$1/bin/$tool"
    done
}

# build_yield FILE: the preload that makes plain ranks give their CPU away while they wait (docs/conformance.md).
build_yield() {
    local source
    source=$(dirname "${BASH_SOURCE[0]}")/../tests/conformance/yield.c
    ${CC:-cc} -O2 -Wall -Wextra -shared -fPIC -o "$1" "$source" -ldl && return
    echo "tests/conformance/yield.c does not build" >&2
    return 1
}
