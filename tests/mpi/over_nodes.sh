#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mpirun for run.py: MPI and vecmpi see several nodes, by their names, all of which are this machine.
# Takes -n RANKS, -genv NAME VALUE and the program. NODES=K: so many (default 2), on which the ranks
# are as even as can be, the first ones having more. Messages go through shared memory: over TCP,
# MPICH 4.0.2 with UCX 1.13 itself hangs in MPI_Finalize now and then. Status 77 where this user may
# not name nodes.
set -euo pipefail
ranks=1 nodes=${NODES:-2} environment=()
while (($# > 0)); do
    case $1 in
        -n) ranks=$2; shift 2 ;;
        -genv) environment+=("$1" "$2" "$3"); shift 3 ;;
        *) break ;;
    esac
done
((nodes <= ranks)) || nodes=$ranks
unshare --uts true 2>/dev/null || { echo "over_nodes.sh: may not make UTS namespaces" >&2; exit 77; }
directory=$(mktemp -d -t vecmpi-nodes.XXXXXX)
trap 'rm -rf "$directory"' EXIT
for ((i = 0; i < nodes; i++)); do
    echo "vecmpi-node$((i + 1)):$((ranks / nodes + (i < ranks % nodes)))" >>"$directory/hosts"
done
# Hydra starts a proxy as: launcher [OPTION...] NODE COMMAND...
cat >"$directory/enter" <<'LAUNCHER'
#!/bin/bash
while [[ $1 == -* ]]; do shift; done
node=$1
shift
exec unshare --uts sh -c "hostname $node; exec $*"
LAUNCHER
chmod +x "$directory/enter"
child=''
trap '[[ -z $child ]] || kill -TERM "$child" 2>/dev/null' TERM INT
"$(command -v mpirun.mpich || echo mpirun)" -launcher rsh -launcher-exec "$directory/enter" \
    -f "$directory/hosts" -iface lo -n "$ranks" -genv UCX_TLS self,posix,cma \
    ${environment[@]+"${environment[@]}"} "$@" &
child=$!
status=0
wait "$child" || status=$?
((status <= 128)) || wait "$child" || true # a signal came, and was handed on
exit "$status"
