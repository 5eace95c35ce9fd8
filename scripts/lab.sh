#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Virtual hosts on one machine: network namespaces joined by a bridge, each link rate-limited in
# both directions. Runs an MPI program over them with MPICH's Hydra and removes everything when it
# ends. It measures networks, not processors: all hosts share this machine's CPUs.
set -euo pipefail

usage() {
    cat <<'TEXT'
lab.sh [-n HOSTS] [-p RANKS] [-r RATE] [-t SECONDS] [-e NAME=VALUE]... -- PROGRAM [ARG...]

  -n  number of hosts (1 to 64, default 2)
  -p  ranks on each host (1 to 64, default 1), or on each of them in turn: 3,1
  -r  link rate as tc writes it, e.g. 1gbit, 200mbit (default 1gbit; 0: no limit)
  -t  give up after this many seconds (default 120); the exit status is then 124
  -e  an environment variable for the ranks only, e.g. -e LD_PRELOAD=$PWD/build/libvecmpi.so
  -h  this text

Needs root, the right to make network namespaces, iproute2 and MPICH. Between the hosts only TCP is
used (UCX_TLS), so that the link rate is the limit; within a host shared memory, too. MPI sees HOSTS nodes.
TEXT
}

die() {
    echo "lab.sh: $1" >&2
    exit "${2:-1}"
}

hosts=2 ranks=1 rate=1gbit limit=120 environment=()
while getopts ":n:p:r:t:e:h" option; do
    case $option in
        n) hosts=$OPTARG ;;
        p) ranks=$OPTARG ;;
        r) rate=$OPTARG ;;
        t) limit=$OPTARG ;;
        e)
            [[ $OPTARG == ?*=* ]] || die "-e takes NAME=VALUE, not '$OPTARG'" 2
            environment+=(-genv "${OPTARG%%=*}" "${OPTARG#*=}")
            ;;
        h)
            usage
            exit 0
            ;;
        :) die "-$OPTARG needs a value (-h shows the options)" 2 ;;
        *) die "'-$OPTARG' is not an option (-h shows them)" 2 ;;
    esac
done
shift $((OPTIND - 1))
[[ $hosts =~ ^([1-9]|[1-5][0-9]|6[0-4])$ ]] || die "-n takes 1 to 64, not '$hosts'" 2
[[ $ranks =~ ^([1-9]|[1-5][0-9]|6[0-4])(,([1-9]|[1-5][0-9]|6[0-4]))*$ ]] ||
    die "-p takes 1 to 64, or such numbers separated by commas, not '$ranks'" 2
IFS=, read -ra ranks_of <<<"$ranks"
[[ $rate =~ ^0$|^[0-9.]+[kmgt]?(bit|bps)$ ]] || die "-r takes a rate such as 1gbit or 0, not '$rate'" 2
[[ $limit =~ ^[1-9][0-9]*$ ]] || die "-t takes a number of seconds, not '$limit'" 2
(($# > 0)) || die "no program given (-h shows the options)" 2
command -v "$1" >/dev/null || die "$1: no such program" 2

[[ $(id -u) == 0 ]] || die "needs root (virtual hosts are network namespaces)"
PATH=$PATH:/usr/sbin:/sbin
for tool in ip tc unshare setpriv; do
    command -v $tool >/dev/null || die "needs '$tool' (Debian packages iproute2 and util-linux)"
done
mpirun=$(command -v mpirun.mpich || command -v mpiexec.hydra) || die "needs MPICH's mpirun (Debian package mpich)"

# Every namespace carries this process's id, so that a later run can tell what a killed one left.
tag=vecmpi-lab-$$
directory=''
child=''

namespaces() { ip netns list 2>/dev/null | awk -v tag="$1" 'index($1, tag) == 1 { print $1 }'; }

# Ends what still runs in a namespace, then removes it; its links go with it.
remove_namespaces() {
    local name
    for name in $(namespaces "$1"); do
        # shellcheck disable=SC2046 # a list of process ids
        kill -KILL $(ip netns pids "$name" 2>/dev/null) 2>/dev/null || true
        ip netns del "$name" 2>/dev/null || true
    done
}

remove_leftovers_of_killed_runs() {
    local owner
    for owner in $(namespaces vecmpi-lab- | sed -E 's/^vecmpi-lab-([0-9]+)-.*/\1/' | sort -u); do
        [[ -e /proc/$owner ]] && continue
        remove_namespaces "vecmpi-lab-$owner-"
        rm -rf "${TMPDIR:-/tmp}/vecmpi-lab-$owner".??????
    done
}

# Asks the run to end, gives Hydra a second to do so in order, and removes everything.
cleanup() {
    local tries=0
    trap '' INT TERM HUP
    exec 2>/dev/null # or bash reports how the run ended
    if [[ -n $child ]]; then
        kill -TERM "$child" || true
        while kill -0 "$child" && ((++tries < 20)); do sleep 0.05; done
    fi
    remove_namespaces "$tag-"
    [[ -z $directory ]] || rm -rf "$directory"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

shape() {
    [[ $rate == 0 ]] || tc -n "$1" qdisc add dev "$2" root tbf rate "$rate" burst 256k latency 100ms
}

make_switch() {
    ip netns add "$tag-sw"
    ip -n "$tag-sw" link add br0 type bridge
    ip -n "$tag-sw" link set br0 up
}

ranks_on() { echo "${ranks_of[$1 % ${#ranks_of[@]}]}"; }

make_host() {
    local i=$1 host=$tag-$1
    ip netns add "$host"
    ip -n "$host" link set lo up
    ip link add eth0 netns "$host" type veth peer name "p$i" netns "$tag-sw"
    ip -n "$host" addr add "10.77.0.$((i + 1))/24" dev eth0
    ip -n "$host" link set eth0 up
    ip -n "$tag-sw" link set "p$i" master br0 up
    shape "$host" eth0
    shape "$tag-sw" "p$i"
    echo "10.77.0.$((i + 1)):$(ranks_on "$i")" >>"$directory/hosts"
}

make_lab() {
    local i
    make_switch
    for ((i = 0; i < hosts; i++)); do make_host "$i"; done
}

# Hydra starts a remote proxy as: launcher [OPTION...] HOST COMMAND...; this one enters that host's
# namespace instead.
write_launcher() {
    cat >"$directory/enter" <<LAUNCHER
#!/bin/bash
while [[ \$1 == -* ]]; do shift; done
host=\$1
shift
exec ip netns exec $tag-\$((\${host##*.} - 1)) unshare --uts --ipc sh -c "hostname host\${host##*.}; exec \$*"
LAUNCHER
    chmod +x "$directory/enter"
}

# Shared memory also where a host has one rank, as on a real one: where waits may sleep, UCX's `self` is left out.
total=0 transports=tcp,self,posix,cma
for ((i = 0; i < hosts; i++)); do ((total += $(ranks_on "$i"))); done

remove_leftovers_of_killed_runs
directory=$(mktemp -d -t "$tag.XXXXXX")
# A subshell with its own -e: in a condition, a function would run on after an error.
set +e
(
    set -e
    make_lab
) 2>"$directory/log"
made=$?
set -e
((made == 0)) || die "cannot make virtual hosts here: $(tail -n 1 "$directory/log")"
write_launcher

# In the background, because bash runs a trap only after a foreground command has ended.
# Should this shell be killed outright, the kernel ends the run; the next lab.sh removes the rest.
setpriv --pdeathsig TERM timeout --kill-after=5 "$limit" ip netns exec "$tag-0" \
    unshare --uts --ipc sh -c 'hostname host1; exec "$@"' sh \
    "$mpirun" -launcher rsh -launcher-exec "$directory/enter" -f "$directory/hosts" -iface eth0 -n "$total" \
    -genv UCX_TLS "$transports" ${environment[@]+"${environment[@]}"} "$@" <&0 &
child=$!
status=0
wait "$child" || status=$?
child=''
exit "$status"
