#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# libvecmpi.so exports what is interposed and nothing else, and needs no library but libc's and the unwinder, of which a
# process must have one only.
#
#   exported_names.sh LIBVECMPI
set -uo pipefail
library=${1:?usage: exported_names.sh LIBVECMPI}
ours='^P?MPIX?_|^vecmpi_|^ucp_(init_version|disconnect_nb|worker_progress|dt_create_generic|dt_destroy)$|^MPII_Errhandler_set_cxx$'
symbols=$(nm -D --defined-only "$library") || exit 1
more=$(awk '{print $3}' <<<"$symbols" | grep -vE "$ours")
[ -z "$more" ] || { echo "exported as well: $more"; exit 1; }
needed=$(readelf -d "$library" | grep NEEDED | grep -vE 'lib(c|m|gcc_s|pthread|dl)\.so|ld-linux')
[ -z "$needed" ] || { echo "needed as well: $needed"; exit 1; }
