# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Which Debian packages vecmpi needs, and how a script gets the missing ones. Source it; it does
# nothing by itself. The names are those of Debian 12; `a|b` is satisfied by either.

packages_of() {
    case $1 in
        runtime) echo mpich libnuma1 ;;
        build) echo cmake ninja-build g++ python3 libboost-dev libboost-context-dev libnuma-dev libhwy-dev libxxhash-dev mpich libmpich-dev ;;
        packaging) echo dpkg-dev binutils ;;
        lab) echo iproute2 util-linux ;;
        emulated)
            packages_of build
            echo g++-aarch64-linux-gnu qemu-user
            ;;
        test)
            packages_of build
            packages_of lab
            packages_of packaging
            echo catch2 gfortran libfftw3-dev openmpi-bin libopenmpi-dev strace \
                'pkgconf|pkg-config' environment-modules groff-base lintian
            ;;
        libraries) echo python3 python3-venv python3-pip ;;
        recipes)
            packages_of libraries
            echo environment-modules lua5.3 lua-posix lua-filesystem lua-json lua-term tcl # what Lmod needs
            ;;
        lint)
            packages_of libraries
            echo git 'clang-format-14|clang-format' 'clang-tidy-14|clang-tidy' shellcheck
            ;;
        clients) echo dpkg-dev gcc g++ gfortran make mpich libmpich-dev python3-dev python3-venv python3-numpy ;;
        client-horovod)
            packages_of clients
            echo cmake python3-torch libtorch-dev pybind11-dev python3-yaml python3-psutil
            ;;
        client-fortran)
            packages_of clients
            echo libscalapack-mpich-dev liblapack-dev libblas-dev
            ;;
        applications)
            packages_of client-fortran
            packages_of lab
            echo libopenblas-serial-dev libfftw3-dev libhdf5-mpich-dev
            ;;
        pictures) echo python3-matplotlib ;;
        *)
            echo "packages.sh: no group of packages is called '$1'" >&2
            return 2
            ;;
    esac
}

package_is_installed() {
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# Prints those of the given packages that are not there.
missing_packages() {
    local choice name
    for choice in "$@"; do
        for name in ${choice//|/ }; do
            package_is_installed "$name" && continue 2
        done
        echo "$choice"
    done
}

# Prints the first name of a choice such as `a|b` that this distribution has.
available_package() {
    local name
    for name in ${1//|/ }; do
        apt-cache show "$name" >/dev/null 2>&1 && break
    done
    echo "$name"
}

# Runs apt-get as root, or through sudo.
apt_get() {
    local root=()
    [[ $(id -u) == 0 ]] || root=(sudo)
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 "$@"
}

# need_packages GROUP: installs what is missing of a group above; quiet where nothing
# is. Returns 1 after one line that says what to do where it cannot.
need_packages() {
    local wanted missing names=() choice log
    wanted=$(packages_of "$1") || return 2
    read -r -d '' -a wanted <<<"$wanted" || true
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        echo "packages.sh: not a Debian system, nothing was checked; needed are ${wanted[*]}" >&2
        return 0
    fi
    mapfile -t missing < <(missing_packages "${wanted[@]}")
    ((${#missing[@]} > 0)) || return 0
    if [[ $(id -u) != 0 ]] && ! command -v sudo >/dev/null; then
        echo "packages.sh: run this as root: apt-get install ${missing[*]}" >&2
        return 1
    fi
    echo "packages.sh: installing ${missing[*]}" >&2
    log=$(mktemp)
    apt_get update >"$log" 2>&1 || true # without a network the install says more
    for choice in "${missing[@]}"; do names+=("$(available_package "$choice")"); done
    if ! apt_get install --yes --no-install-recommends "${names[@]}" >>"$log" 2>&1; then
        echo "packages.sh: apt-get could not install ${names[*]}: $(grep -E '^(E|sudo):' "$log" | tail -n 1)" >&2
        rm -f "$log"
        return 1
    fi
    rm -f "$log"
}
