# SPDX-License-Identifier: BSD-3-Clause
"""A host that knows nothing of MPI and loads a library that does, as Python loads its modules: with RTLD_LOCAL."""

import ctypes
import os
import sys

library = ctypes.CDLL(sys.argv[1], mode=os.RTLD_LOCAL | os.RTLD_NOW)
library.library_sum.restype = ctypes.c_long
library.library_sum.argtypes = [ctypes.c_long]
library.library_start()
rank = library.library_rank()
line = f"{rank}: sum {library.library_sum(rank + 1)} ring {library.library_ring(rank * 5)}\n"
os.write(1, line.encode())  # in one piece, so that ranks do not mix
library.library_stop()
