# SPDX-License-Identifier: BSD-3-Clause
"""The battery's cases: program, argument, ranks. Must not know of modes or of how programs are run."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    program: str
    argument: str = ""
    ranks: tuple = (1, 2, 3, 4, 5)
    aborts: bool = False  # expected to end the job
    schedules: bool = False  # also where every collective is a schedule of ours
    rounds: bool = False  # its sums are rounded: not where segments have the order of other algorithms
    not_in: tuple = ()  # modes in which it may fail
    says: str = ""  # what standard error then contains, where the launcher still passes it on
    # Beginnings of names of events, or of "path PATH of CALL" as in the report: it must have counted some of each,
    # where a path of ours is used from the first call on.
    counts: tuple = ()
    counts_at_home: tuple = ()  # the same with the library that the battery is built for; others have ways of their own
    counted: tuple = ("off", "on")  # the modes in which it must
    counted_from: int = 1  # and the least number of ranks
    more: tuple = ()  # arguments of the program besides
    library_says: str = ""  # where the library itself fails with some seeds: others are drawn
    loop: int = 1  # more than once: with the next seeds, and only in a whole run (scripts/check.sh --all)

    @property
    def name(self):
        return f"{self.program}:{self.argument}" if self.argument else self.program


MANY = tuple(range(1, 10))
PACKED = ("plans", "packed_by_")
# MPICH 4.0.2, of target types on which yaksa_iov_len and yaksa_iov do not agree: one seed in 40.
TARGETS = {"library_says": "MPIR_Typerep_to_iov: Assertion"}
LINES = {"counts": ("node_comms", "path node"), "counted_from": 2}
STAGED = {"counts": ("node_comms", "node_staging_buffers", "path node"), "counted_from": 2}

CASES = [
    Case("p2p_random"),
    Case("probes"),
    Case("persistent", schedules=True),
    Case("persistent_arrays", schedules=True, counts=("path node",), counted_from=2),
    Case("partitioned"),
    Case("cancel"),
    Case("generalized"),
    Case("many_requests"),
    Case("mixed_all"),
    Case("truncation"),
    Case("later"),
    Case("bad_arguments", ranks=(1, 2, 4), schedules=True),
    Case("error_handlers", ranks=(1, 2, 4), schedules=True),
    Case("handler_calls", "calls", ranks=(1, 2, 4)),
    Case("handler_calls", "jumps", ranks=(1, 2, 4)),
    Case("handler_calls", "throws", ranks=(1, 2, 4)),
    Case("handler_calls", "objects", ranks=(1, 2, 4)),
    Case("handler_calls", "many", ranks=(1, 2)),
    Case("handler_calls", "abort", ranks=(1, 2), aborts=True, says="Abort(42)"),
    Case("fatal", "isend", ranks=(2,), aborts=True, says="Invalid rank"),
    Case("fatal", "allreduce", ranks=(2,), aborts=True, says="Null MPI_Op"),
    Case("fatal", "wait", ranks=(2,), aborts=True, says="truncated"),
    Case("fatal", "freed", ranks=(2,), aborts=True, says="Fatal error in internal_Send: Invalid communicator"),
    Case("fatal", "abort", ranks=(2,), aborts=True, says="MPI_Abort"),
    Case("fatal", "exit", ranks=(2,), aborts=True),
    Case("collectives", "blocking", ranks=MANY, schedules=True),
    Case("collectives", "nonblocking", ranks=MANY, schedules=True),
    Case("collectives", "mixed", ranks=MANY, schedules=True, counts_at_home=("path node of MPI_I",), counted_from=2),
    Case("collectives", "persistent", ranks=MANY, schedules=True, counts=("path node",), counted_from=2),
    Case("neighbourhood"),
    Case("intercomm", ranks=(2, 3, 4, 5), schedules=True),
    Case("comm_order", schedules=True),
    Case("derived_types", ranks=(1,), schedules=True),
    Case("derived_types", ranks=(2, 3, 4, 5), schedules=True, counts_at_home=("plan_messages",)),
    Case("derived_collectives", "rooted", ranks=(1,), schedules=True),
    Case("derived_collectives", "rooted", ranks=(2, 3, 4, 5), schedules=True, counts_at_home=("plan_messages",)),
    Case("derived_collectives", "all", ranks=(1,), schedules=True),
    Case("derived_collectives", "all", ranks=(2, 3, 4, 5), schedules=True, counts_at_home=("plan_messages",)),
    Case("derived_collectives", "neighbours", ranks=(1,)),
    Case("derived_collectives", "neighbours", ranks=(2, 3, 4, 5), counts=("path node",)),
    Case("derived_probes", ranks=(1,)),
    Case("derived_probes", ranks=(2, 3, 4, 5), counts_at_home=("plan_messages",)),
    Case("derived_truncation", ranks=(1,)),
    Case("derived_truncation", ranks=(2, 3, 4, 5), counts_at_home=("plan_messages",)),
    Case("derived_requests"),
    Case("derived_requests", "threads", ranks=(2, 4)),
    Case("random_types", ranks=(2, 3, 4, 5), schedules=True, counts=PACKED, counts_at_home=("plan_messages",)),
    Case("random_types", "10000", ranks=(2,), loop=10),
    Case("packed_collectives", ranks=(2, 3, 4, 5), schedules=True, counts=("plan_buffers",),
         counted=("off", "on", "segments", "ring", "halving-on")),
    Case("packed_collectives", "threads", ranks=(2,), schedules=True),
    Case("packed_collectives", "alive", ranks=(2, 3), schedules=True),
    Case("packing", ranks=(1, 2, 4), counts=PACKED),
    Case("packing", "block", ranks=(1,), counts=("plans", "packed_by_blocks")),
    Case("packing", "gather", ranks=(1,), counts=PACKED),
    Case("packing", "permute", ranks=(1,), counts=PACKED),
    Case("packing", "columns", ranks=(1, 2), counts=("plans", "packed_by_transposes")),
    Case("packing", "often", ranks=(1,), counts=("plans", "packed_by_blocks", "packed_by_permutes"),
         counted=("auto", "off", "on")),
    Case("packing", "errors", ranks=(1, 2), counts=PACKED),
    Case("packing", "handles", ranks=(1, 2), counts=PACKED),
    Case("packing", "fortran", ranks=(1,), counts=PACKED),
    Case("packing", "external", ranks=(1, 2), counts=(*PACKED, "path plan of MPI_Pack_external"),
         counted=("auto", "off", "on")),
    Case("packing", "refused", ranks=(1, 2), counts=PACKED),
    Case("packing", "threads", ranks=(1, 2), counts=PACKED),
    Case("progress", schedules=True),
    Case("progress", "multiple", schedules=True),
    Case("schedules", "order", schedules=True),
    Case("schedules", "many", schedules=True),
    Case("schedules", "empty", schedules=True),
    Case("schedules", "attributes", schedules=True),
    Case("schedules", "operator", schedules=True),
    Case("schedules", "beside", schedules=True),
    Case("schedules", "free", schedules=True),
    Case("schedules", "numbers", ranks=(2,), schedules=True),
    Case("schedules", "callback", schedules=True),
    Case("schedules", "last", schedules=True),
    Case("small_collectives", "random", ranks=MANY, **STAGED),
    Case("small_collectives", "ahead", ranks=MANY, **LINES),
    Case("small_collectives", "free", **LINES),
    Case("small_collectives", "many", ranks=(2, 3), **LINES),
    Case("small_collectives", "refused", ranks=(2, 3, 4, 5), **LINES),
    Case("small_collectives", "killed", ranks=(2, 4), aborts=True),
    Case("small_collectives", "last", ranks=(2, 3, 4), **LINES),
    Case("small_collectives", "inside", ranks=(2, 3, 4, 5), **LINES),
    Case("node_collectives", "random", ranks=MANY, rounds=True, **STAGED),
    Case("node_collectives", "ahead", ranks=(2, 3, 5), rounds=True, **STAGED),
    Case("node_collectives", "pending", ranks=MANY, rounds=True, **STAGED),
    Case("node_collectives", "chain", ranks=(2, 3, 5), **LINES, counts_at_home=("node_staging_buffers",)),
    Case("node_collectives", "beside", ranks=(2, 3, 4)),
    Case("node_collectives", "many", ranks=(2, 3), rounds=True, **STAGED),
    Case("node_collectives", "refused", ranks=(2, 3, 4, 5), **STAGED),
    Case("node_collectives", "uneven", ranks=(2, 3, 4, 5), rounds=True, **STAGED),
    Case("node_collectives", "killed", ranks=(2, 4), aborts=True),
    Case("node_blocks", "random", ranks=MANY, **STAGED),
    Case("node_blocks", "ahead", ranks=MANY, **STAGED),
    Case("node_blocks", "empty", ranks=(2, 3, 5), **STAGED),
    Case("node_blocks", "refused", ranks=(2, 3, 4, 5), **STAGED),
    Case("node_blocks", "later", ranks=(2, 3, 4, 5), counts_at_home=("path node of MPI_I",)),
    Case("node_blocks", "persistent", ranks=(2, 3, 4, 5), counts=("path node",)),
    Case("node_neighbours", "random", ranks=MANY, **STAGED),
    Case("node_neighbours", "ahead", ranks=MANY, **STAGED),
    Case("node_neighbours", "refused", ranks=(2, 3, 4, 5), **STAGED),
    Case("single_looks", ranks=(2, 4), **LINES),
    # Without traits MPICH's lock stays held in a call that a handler has left.
    Case("left_calls", ranks=(2, 3), not_in=("segments", "bytes", "traitless-on"), **LINES),
    # All ranks wait for each other in the parts of a call that is cut.
    Case("late_roots", ranks=(2, 4), not_in=("segments", "bytes"), **LINES),
    Case("unlike_ranks", schedules=True),
    Case("same_bits", schedules=True),
    Case("reduce_bits"),
    Case("reduce_bits", "avx2", ranks=(1,)),
    Case("reduce_bits", "sse4", ranks=(1,)),
    Case("reduce_bits", "scalar", ranks=(1,)),
    Case("half_bits", schedules=True),
    Case("half_bits", "sse4", ranks=(1,)),
    Case("half_bits", "scalar", ranks=(1,)),
    Case("user_op", ranks=(2, 3, 4, 5), schedules=True),
    Case("rounding", ranks=(1, 2, 4), schedules=True),
    Case("large_count", ranks=(1, 2, 4), schedules=True),
    Case("threads_messages", ranks=(2, 3, 4, 5)),
    Case("threads_one_request", ranks=(2, 3)),
    Case("threads_comms", ranks=(2, 3, 4, 5), schedules=True),
    Case("waits", ranks=(2, 3, 4)),
    Case("waits", "threads", ranks=(2, 3, 4)),
    Case("callbacks", ranks=(1, 2, 4), schedules=True),
    Case("callbacks", "operators-wait", schedules=True),
    Case("callbacks", "queries-wait", schedules=True),
    Case("locks"),
    Case("rma"),
    Case("typed_transfers", ranks=(1,)),
    Case("typed_transfers", ranks=(2, 3, 4, 5), counts=("plan_transfers",), **TARGETS),
    Case("typed_transfers", "threads", ranks=(1,)),
    Case("typed_transfers", "threads", ranks=(2, 4), counts=("plan_transfers",), **TARGETS),
    Case("typed_transfers", "late", ranks=(2, 3), counts=("plan_transfers",)),
    Case("files"),
    Case("file_types", ranks=(1, 2, 4), counts=("plan_buffers",)),
    Case("file_types", "often", ranks=(1, 2)),
    Case("file_types", "errors", ranks=(1, 2), counts=("plan_buffers",)),
    Case("levels", ranks=(1, 4)),
    Case("levels", "single", ranks=(1, 4)),
    Case("levels", "funneled", ranks=(1, 4)),
    Case("levels", "serialized", ranks=(1, 4)),
    Case("levels", "multiple", ranks=(1, 4), schedules=True),
    Case("levels", "thread", ranks=(1, 4)),
    Case("levels", "mpi_thread_multiple", ranks=(1, 4)),
    Case("levels", "mpi_nonsense", ranks=(1, 4), aborts=True),
    Case("sessions", "alone", ranks=(1, 2, 5), schedules=True),
    Case("sessions", "beside", ranks=(1, 2, 5), schedules=True),
    Case("sessions", "before", ranks=(1, 2, 5), schedules=True),
    Case("dynamic", ranks=(1, 2, 4), schedules=True),
    Case("forks", ranks=(1, 2, 4), schedules=True),
    Case("forks", "node", ranks=(2, 3, 4)),
    Case("tools", ranks=(1, 2, 4), counts_at_home=("elements_reduced",)),
    Case("tools", "threads", ranks=(1, 2), counts_at_home=("elements_reduced",)),
    Case("finalize_active", ranks=(1, 2, 4), schedules=True),
]

# What a program is about: labels of CTest, as the folders of src.
MESSAGES, COLLECTIVES, NODE = ("offload",), ("pipeline", "node"), ("node",)
AREAS = {
    "p2p_random": MESSAGES, "probes": MESSAGES, "persistent": ("offload", "pipeline"), "partitioned": MESSAGES,
    "cancel": MESSAGES, "generalized": MESSAGES, "many_requests": MESSAGES, "mixed_all": MESSAGES,
    "truncation": MESSAGES, "later": ("intercept", "offload"), "bad_arguments": ("intercept", *COLLECTIVES),
    "error_handlers": ("intercept", "offload"), "handler_calls": ("intercept", "offload"), "fatal": ("intercept",),
    "collectives": COLLECTIVES, "neighbourhood": ("offload", "datatype"), "intercomm": COLLECTIVES,
    "comm_order": COLLECTIVES, "derived_types": ("datatype", *COLLECTIVES),
    "derived_collectives": ("datatype", *COLLECTIVES), "derived_probes": ("datatype",),
    "derived_truncation": ("datatype",), "derived_requests": ("datatype", *MESSAGES),
    "packed_collectives": ("datatype", *COLLECTIVES), "packing": ("datatype",),
    "random_types": ("datatype", *COLLECTIVES),
    "progress": ("offload", "pipeline"), "schedules": ("pipeline",), "small_collectives": NODE,
    "node_collectives": NODE, "node_blocks": NODE, "node_neighbours": NODE, "late_roots": NODE,
    "unlike_ranks": COLLECTIVES, "left_calls": ("intercept", "node"), "single_looks": ("intercept", "node"),
    "same_bits": ("kernels", *COLLECTIVES), "reduce_bits": ("kernels", "offload"),
    "half_bits": ("kernels", "offload"), "persistent_arrays": COLLECTIVES,
    "user_op": ("pipeline",), "rounding": ("kernels", "pipeline"), "large_count": ("intercept", *COLLECTIVES),
    "waits": ("base", "library", "offload", "node"),
    "threads_messages": MESSAGES, "threads_one_request": MESSAGES, "threads_comms": ("offload", *COLLECTIVES),
    "callbacks": ("offload", *COLLECTIVES),
    "locks": ("offload", "pipeline"), "rma": ("offload", "datatype"), "files": ("intercept",),
    "file_types": ("datatype", "intercept"), "typed_transfers": ("datatype",),
    "levels": ("intercept", "offload"), "sessions": ("intercept", "offload"), "dynamic": ("intercept", *COLLECTIVES),
    "forks": ("offload", "node"), "tools": ("intercept", "base"), "finalize_active": ("offload", "pipeline"),
}
