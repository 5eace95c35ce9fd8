#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What a site installs: the archive and the Debian package that cpack makes, unpacked somewhere else, found by pkg-config,
# by find_package and, the archive, by an environment module; and the preloading of a program from there. Installs nothing.
#
#   test_installed.sh BUILD_FOLDER CHECKOUT
set -uo pipefail
build=$(realpath "${1:?usage: test_installed.sh BUILD_FOLDER CHECKOUT}")
checkout=$(realpath "${2:?usage: test_installed.sh BUILD_FOLDER CHECKOUT}")
# shellcheck source=tests/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"

packs() { # GENERATOR SUFFIX: the one file that it makes
    cpack --config "$build/CPackConfig.cmake" -G "$1" -B "$work/$1" || return
    [[ $(find "$work/$1" -maxdepth 1 -name "*$2" | wc -l) == 1 ]]
}
file_of() { find "$work/$1" -maxdepth 1 -name "*$2"; }

says() { # PATTERN COMMAND...
    "${@:2}" >"$work/said" 2>&1
    local status=$?
    cat "$work/said"
    ((status == 0)) && grep -q -- "$1" "$work/said"
}

holds_all() { # FOLDER NAME... : what all have, and these
    local name
    for name in libvecmpi.so libvecmpi_abi.so libvecmpi_team.so team.h vecmpi-info vecmpi-bench vecmpi-tune vecmpi-preload vecmpi-run \
        vecmpi-team.pc vecmpi-config.cmake settings.md troubleshooting.md man7/vecmpi.7 README.md "${@:2}"; do
        find "$1" -path "*/$name*" | grep -q . || { echo "no $name"; return 1; }
    done
    ! grep -rIl -- "$build\|$checkout" "$1" # no path of the machine that built it
}

# A page for each program, which groff formats without a warning, from wherever the tree lies.
has_manual_pages() ( # PREFIX
    cp -rL "$1/share/man" "$work/man" && cd "$work/man" && { gunzip man?/*.gz 2>/dev/null || true; } || return
    trap 'rm -rf "$work/man"' EXIT
    for program in "$1"/bin/*; do
        [[ -s man1/${program##*/}.1 ]] || { echo "no page of ${program##*/}"; return 1; }
    done
    warnings=$(groff -ww -s -man -Tutf8 -z man?/* 2>&1)
    [[ -z $warnings ]] || { echo "$warnings"; return 1; }
)

builds_with_pkg_config() { # PREFIX
    local flags pc
    pc=$(dirname "$(find "$1" -name vecmpi-team.pc)")
    flags=$(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs vecmpi-team) || return
    # shellcheck disable=SC2086
    cc -fopenmp "$checkout/examples/team_sum.c" -o "$work/by_pkg_config" $flags || return
    LD_LIBRARY_PATH=$(PKG_CONFIG_PATH=$pc pkg-config --variable=libdir vecmpi-team) timeout 60 "$work/by_pkg_config"
}

builds_with_cmake() { # PREFIX
    rm -rf "$work/project" && mkdir "$work/project" && cat >"$work/project/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.25)
project(client C)
find_package(vecmpi $("$1/bin/vecmpi-info" --version) REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS C)
add_executable(client $checkout/examples/team_sum.c)
target_link_libraries(client PRIVATE vecmpi::team OpenMP::OpenMP_C)
message(STATUS "preload \${vecmpi_LIBRARY}")
CMAKE
    if ! cmake -G Ninja -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$1" >"$work/cmake.log" 2>&1 ||
        ! cmake --build "$work/project/build" >>"$work/cmake.log" 2>&1; then
        cat "$work/cmake.log"
        return 1
    fi
    grep -q "preload $1/lib.*/libvecmpi.so" "$work/cmake.log" && timeout 60 "$work/project/build/client"
}

preloads() { # PREFIX: a report of a program that knows nothing of it
    says 'vecmpi report: 2 ranks' env VECMPI_REPORT=summary timeout 60 "$1/bin/vecmpi-preload" mpirun.mpich -n 2 \
        "$build/examples/stencil" --points 60 --steps 3
}

module_sets_paths() { # PREFIX
    local modulecmd
    modulecmd=$(find /usr/lib /usr/share -name 'modulecmd*' -perm -u+x 2>/dev/null | head -n 1)
    [[ -n $modulecmd ]] || { echo "no modulecmd"; return 1; }
    says "PATH=$1/bin" "$modulecmd" bash load "$(find "$1" -path '*modulefiles/vecmpi/*')"
}

check "archive" packs TGZ .tar.gz
check "Debian package" packs DEB .deb
mkdir -p "$work/tree" && tar -C "$work/tree" --strip-components=1 -xzf "$(file_of TGZ .tar.gz)"
dpkg-deb -x "$(file_of DEB .deb)" "$work/debian"
for prefix in "$work/tree" "$work/debian/usr"; do
    name=${prefix#"$work/"}
    check "$name: manual pages" has_manual_pages "$prefix"
    check "$name: pkg-config" builds_with_pkg_config "$prefix"
    check "$name: find_package" builds_with_cmake "$prefix"
    check "$name: vecmpi-preload" preloads "$prefix"
    check "$name: vecmpi-info" says '^vecmpi ' "$prefix/bin/vecmpi-info"
done
check "archive: all files" holds_all "$work/tree" modulefiles/vecmpi LICENSE CHANGELOG.md
check "archive: environment module" module_sets_paths "$work/tree"
check "Debian package: all files" holds_all "$work/debian/usr" copyright changelog.gz changelog.Debian.gz
check "Debian package: what it needs" says 'Depends:.*libc6 (>= .*libmpich12' dpkg-deb -I "$(file_of DEB .deb)"
# The build folder is not configured for /usr, where a Debian package has its libraries.
check "Debian package: lintian" lintian --allow-root --fail-on error,warning \
    --suppress-tags pkg-config-unavailable-for-cross-compilation "$(file_of DEB .deb)"
finish
