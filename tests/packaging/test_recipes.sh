#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The recipes that scripts/release.sh writes. EasyBuild judges its own (style, checksum, every dependency up to the
# compiler); conda's is rendered, its build.sh builds the archive, and its tests are run; Spack's is run against recorded
# directives. The environment module is loaded by Lmod. EasyBuild comes from PyPI into the cache.
#
#   test_recipes.sh BUILD_FOLDER CHECKOUT
set -uo pipefail
build=$(realpath "${1:?usage: test_recipes.sh BUILD_FOLDER CHECKOUT}")
checkout=$(realpath "${2:?usage: test_recipes.sh BUILD_FOLDER CHECKOUT}")
here=$checkout/tests/packaging
# shellcheck source=tests/checks.sh
. "$here/../checks.sh"
# shellcheck source=tests/packaging/snapshot.sh
. "$here/snapshot.sh"
# shellcheck source=scripts/packages.sh
. "$checkout/scripts/packages.sh"
cache=${VECMPI_CACHE:-$HOME/.cache/vecmpi}/recipes
prefix=$work/conda # of what conda's build.sh installs

fetch_tools() {
    (
        flock 9
        cmp -s "$here/requirements.txt" "$cache/ready" && exit
        /usr/bin/python3 -m venv --clear "$cache/venv" &&
            "$cache/venv/bin/pip" install -q -r "$here/requirements.txt" && cp "$here/requirements.txt" "$cache/ready"
    ) 9>"$cache/lock"
}

# Debian's modulecmd.tcl is not where EasyBuild looks.
easybuild() { # ARGUMENT...
    local home=$work/modules
    mkdir -p "$home/libexec"
    ln -sf "$(find /usr/lib -name modulecmd.tcl | head -n 1)" "$home/libexec/modulecmd.tcl"
    PATH=$cache/venv/bin:$PATH MODULESHOME=$home EASYBUILD_MODULES_TOOL=EnvironmentModules EASYBUILD_MODULE_SYNTAX=Tcl \
        eb --allow-use-as-root-and-accept-consequences --prefix="$work/easybuild" "$@"
}

knows_all_dependencies() { # EASYCONFIG
    easybuild --dry-run --robot "$1" >"$work/plan" 2>&1 && grep 'MPICH-.*\.eb' "$work/plan" && grep "$1" "$work/plan"
}

# As conda-build does: the unpacked archive, and a prefix that has what `host` names; here Debian's MPICH. No links: Hydra
# looks for its proxy beside the name that it was called by.
builds_for_conda() (
    mkdir -p "$prefix/bin" && tar -C "$work" -xzf "$release/vecmpi-$version.tar.gz" || return
    local program
    for program in mpicc mpirun; do
        printf '#!/bin/sh\nexec %s.mpich "$@"\n' "$program" >"$prefix/bin/$program"
        chmod +x "$prefix/bin/$program"
    done
    cd "$work/vecmpi-$version" && PREFIX=$prefix "$release/recipes/conda/recipe/build.sh"
)

passes_in_conda() { # COMMAND
    PREFIX=$prefix PATH=$prefix/bin:$PATH PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib \
        timeout 60 bash -eo pipefail -c "$1"
}

# Debian lets only one of Lmod and environment-modules be installed.
loads_with_lmod() {
    local lmod
    (cd "$work" && apt-get download lmod && dpkg-deb -x lmod_*.deb lmod) || return
    lmod=$(find "$work/lmod" -path '*/libexec/lmod' -type f)
    MODULEPATH=$prefix/share/vecmpi/modulefiles LMOD_DIR=${lmod%/lmod} lua5.3 "$lmod" bash load "vecmpi/$version" |
        grep "^PATH=$prefix/bin"
}

git -C "$checkout" ls-files >/dev/null 2>&1 || { echo "git names no files: not its checkout"; exit 77; }
need_packages recipes || exit 77
mkdir -p "$cache"
fetch_tools || { echo "no EasyBuild here, and it cannot be fetched"; exit 77; }
release=$work/release
check "a commit" snapshot "$checkout" "$work/tree"
check "release" "$work/tree/scripts/release.sh" --source-only --out "$release"
version=$("$work/tree/scripts/release.sh" --check)
version=${version##* }

easyconfig=$(find "$release" -name '*.eb')
check "EasyBuild: style and checksum" easybuild --check-contrib "$easyconfig"
check "EasyBuild: dependencies" knows_all_dependencies "$easyconfig"
check "Spack" python3 -B "$here/check_recipes.py" spack "$release/recipes/spack/package.py" "$version" "$build/CMakeCache.txt"
check "conda: recipe" "$cache/venv/bin/python" -B "$here/check_recipes.py" conda "$release/recipes/conda/recipe/meta.yaml" \
    "$version"
mapfile -t commands <"$work/out"
check "conda: build.sh" builds_for_conda
for command in "${commands[@]}"; do
    check "conda: $command" passes_in_conda "$command"
done
check "environment module, Lmod" loads_with_lmod
finish
