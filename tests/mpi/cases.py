# SPDX-License-Identifier: BSD-3-Clause
"""The battery's cases: program, argument, ranks. Must not know of modes or of how programs are run."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    program: str
    argument: str = ""
    least_ranks: int = 1
    most_ranks: int = 99
    # Expected to end the job; its standard error then contains this.
    aborts: str = ""

    @property
    def name(self):
        return f"{self.program}:{self.argument}" if self.argument else self.program


CASES = [
    Case("p2p_random"),
    Case("probes"),
    Case("persistent"),
    Case("partitioned"),
    Case("collectives", "blocking"),
    Case("collectives", "nonblocking"),
    Case("collectives", "mixed"),
    Case("collectives", "persistent"),
]
