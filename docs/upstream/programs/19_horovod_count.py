#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Horovod over MPI broadcasts a tensor of 2^32 + 16 elements as one of 16. Two ranks. Exit status 1: the fault is
there.

Where Horovod were right, this would take 4 GiB of memory on each rank. Status 77: there is no Horovod.
"""

import sys

try:
    import horovod.torch as hvd
    import torch
except ImportError:
    sys.exit(77)

ELEMENTS = 2**32 + 16

hvd.init()
tensor = torch.zeros(ELEMENTS, dtype=torch.int8)  # memory that nobody has touched yet
if hvd.rank() == 0:
    tensor[0] = tensor[-1] = 1
hvd.broadcast_(tensor, root_rank=0)
first, last = int(tensor[0]), int(tensor[-1])
if (first, last) != (1, 1):
    print(f"rank {hvd.rank()}: the first element is {first}, the last {last}, both should be 1")
    sys.exit(1)
