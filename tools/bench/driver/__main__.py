# SPDX-License-Identifier: BSD-3-Clause
"""vecmpi-bench: measures MPI programs plain and with libvecmpi.so preloaded, side by side.

Entry point of the zip application that the build makes of this folder. It measures nothing.
"""

import sys

from cli import main

sys.exit(main(sys.argv[1:]))
