#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# pinned.sh CPU,CPU,... PROGRAM [ARG...]: a rank of MPICH on its CPU, the r-th of the list, and again from its begin.
cpus=$1
shift
count=$(echo "$cpus" | tr , '\n' | wc -l)
cpu=$(echo "$cpus" | cut -d , -f $((${PMI_RANK:-0} % count + 1)))
exec taskset -c "$cpu" "$@"
