# SPDX-License-Identifier: BSD-3-Clause
"""Names of ops and types on the command line. The ranks program has the table; this asks it.

It does not know which op takes which type, but finds out which types the library dies of.
"""

import subprocess

import launch
from failure import BadArgument
from runs import Side

ANY = -1  # kinds of an op that is not in the table
DEADLY = "the library ends the process over this type"


def read_table(program):
    """Records of kind op and type, in the order of the table."""
    records = launch.records_of(program, "operators")
    if not records:
        raise BadArgument(f"{program} does not list its ops: build vecmpi or give --ranks-program")
    return records


def names_of(records, kind):
    return [record["name"].lower() for record in records if record["bench"] == kind]


def check_names(flag, chosen, known):
    for name in chosen:
        if name not in known:
            raise BadArgument(f"argument {flag}: '{name}' is none of {', '.join(known)}")


def settle(options, usual_ops, usual_types, more_ops=()):
    """Fills in options.ops and options.types, in the order of the table.

    `usual_ops` and `usual_types` are functions from the records to names.
    """
    records = read_table(options.programs.ranks)
    ops, types = names_of(records, "op") + list(more_ops), names_of(records, "type")
    chosen_ops = options.ops or usual_ops(records)
    chosen_types = options.types or usual_types(records)
    check_names("--ops", chosen_ops, ops)
    check_names("--types", chosen_types, types)
    options.ops = [name for name in ops if name in chosen_ops]
    options.types = [name for name in types if name in chosen_types]
    if not any_pair(records, options):
        raise BadArgument("no op of --ops takes a type of --types")
    fragile = [record["name"].lower() for record in records if record.get("fragile")]
    options.left_out = [
        name for name in fragile if name in options.types and not survives(options, name)
    ]
    options.types = [name for name in options.types if name not in options.left_out]
    if not options.types:
        raise BadArgument(f"argument --types: {DEADLY}: {', '.join(options.left_out)}")


def any_pair(records, options):
    """Whether an op takes a type by the bits of their kinds."""
    kinds = {record["name"].lower(): int(record["kinds"]) for record in records}
    return any(kinds.get(op, ANY) & kinds[name] for op in options.ops for name in options.types)


def survives(options, type_name):
    """Whether plain ranks get through a sum of that type; tried in a run of its own."""
    words = ["--sizes", "64", "--ops", "sum", "--types", type_name]
    job = launch.Launch(1, words)
    command = launch.command_line(options, Side("plain", False, {}), job, "reduce")
    try:
        return not subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            env=launch.clean_environment(),
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        return False


def arguments(options):
    """For the ranks program."""
    return ["--ops", ",".join(options.ops), "--types", ",".join(options.types)]
