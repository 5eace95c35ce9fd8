# SPDX-License-Identifier: BSD-3-Clause
"""The text of `reduce`: a table of op by type for some sizes, what stands out, a line a size.

Works on the rows that report.py makes, and chooses what plot.py draws.
"""

import statistics
import textwrap

import operators
import plot
import report
import values

# Groups of cells that the text sums up: name, ops, kinds, bits of the value (empty: any).
VECTOR_OPS = ("MAX", "MIN", "SUM", "BAND", "BOR", "BXOR")
NUMBERS = {
    "signed": (8, 16, 32, 64),
    "unsigned": (8, 16, 32, 64),
    "byte": (8,),
    "floating": (32, 64),
}
GROUPS = [
    ("complex PROD", ("PROD",), ("complex",)),
    ("LAND LOR LXOR", ("LAND", "LOR", "LXOR"), ("signed", "unsigned", "logical", "floating")),
    ("MINLOC MAXLOC", ("MINLOC", "MAXLOC"), ("pair",)),
]
ENOUGH_OF_MEMCPY = 0.9


class Cell:
    """One op and type at one size, seen from one side."""

    def __init__(self, result, side):
        self.name, self.at, self.unit = result["name"], int(result["at"]), result["unit"]
        labels = result["labels"]
        self.op, self.type = labels["op"], labels["type"]
        self.kind, self.bits = labels["kind"], labels["bits"]
        entry = result["sides"][side.name]
        self.value = entry["median"]
        self.spread = entry["spread_percent"] if len(entry["values"]) > 1 else None
        self.plain = result["sides"]["plain"]["median"]
        self.gain = entry.get("gain")
        self.memcpy = entry["detail"]["memcpy"]
        self.of_memcpy = entry["detail"]["of_memcpy"]

    def is_vector_cell(self):
        """What is expected to be as fast as memory: see NUMBERS and VECTOR_OPS."""
        return self.op in VECTOR_OPS and self.bits in NUMBERS.get(self.kind, ())


def cells_at(results, side, size):
    return [Cell(result, side) for result in results if result["at"] == size]


def sizes_in(results):
    return sorted({int(result["at"]) for result in results})


def shown_sizes(options, results):
    """Those of --show that were measured, else the largest."""
    measured = sizes_in(results)
    return [size for size in options.show if size in measured] or measured[-1:]


def ratio_text(ratio):
    """Three figures, but what is below 1 must not become 1.00."""
    return f"{min(ratio, 0.9994):.3f}" if 0.95 < ratio < 1 else report.three_figures(ratio)


def axes_of(options, cells):
    """Ops and types that the cells have, in the order of the table."""
    return (
        [op.upper() for op in options.ops if any(op.upper() == cell.op for cell in cells)],
        [name.upper() for name in options.types if any(name.upper() == c.type for c in cells)],
    )


def grid(options, cells, text_of):
    """Lines of a table: a row for each type, a column for each op."""
    ops, types = axes_of(options, cells)
    texts = {(cell.op, cell.type): text_of(cell) for cell in cells}
    rows = [[name] + [texts.get((op, name), "") for op in ops] for name in types]
    return report.align([[""] + ops] + rows)


def noise_text(cell):
    """The spread of the preloaded runs, where there are several."""
    return "" if cell.spread is None else f" (+-{cell.spread:.0f}%)"


def wrapped(title, items):
    text = f"{title}: {', '.join(items) if items else 'none'}"
    return textwrap.wrap(text, 118, subsequent_indent="  ", break_on_hyphens=False)


def vector_lines(cells):
    """The cells that should be as fast as memcpy."""
    cells = [cell for cell in cells if cell.is_vector_cell()]
    if not cells:
        return []
    least = min(cells, key=lambda cell: cell.of_memcpy)
    slow = sorted((c for c in cells if c.of_memcpy < ENOUGH_OF_MEMCPY), key=lambda c: c.of_memcpy)
    lines = [
        f"of memcpy's rate ({statistics.median(cell.memcpy for cell in cells):.0f} GB/s), "
        f"MAX MIN SUM BAND BOR BXOR on 8- to 64-bit integers, float and double: "
        f"least {least.of_memcpy:.2f} ({least.name}), "
        f"median {statistics.median(cell.of_memcpy for cell in cells):.2f}",
    ]
    below = f"below {ENOUGH_OF_MEMCPY} of memcpy's rate, {len(slow)} of {len(cells)}"
    names = [f"{cell.name} {cell.of_memcpy:.2f}" for cell in slow]
    return lines + wrapped(below, names) if cells[0].gain is not None else lines


def gain_lines(cells):
    worst = min(cells, key=lambda cell: cell.gain)
    below = sorted((cell for cell in cells if cell.gain < 1), key=lambda cell: cell.gain)
    lines = [
        f"geometric mean {ratio_text(statistics.geometric_mean(c.gain for c in cells))}x, "
        f"worst {ratio_text(worst.gain)}x ({worst.name})",
        *wrapped(
            f"below 1.0, {len(below)} of {len(cells)}",
            [f"{cell.name} {ratio_text(cell.gain)}{noise_text(cell)}" for cell in below],
        ),
    ]
    least = []
    for name, ops, kinds in GROUPS:
        group = [cell for cell in cells if cell.op in ops and cell.kind in kinds]
        if group:
            cell = min(group, key=lambda cell: cell.gain)
            least.append(f"{name} {ratio_text(cell.gain)}x ({cell.name})")
    return lines + (wrapped("least gain", least) if least else [])


def call_time_line(cells):
    """For sizes that are shown by time."""
    plain = statistics.median(cell.plain for cell in cells)
    value = statistics.median(cell.value for cell in cells)
    return f"a call takes {value:.1f} ns, plain {plain:.1f} ns (medians over the cells)"


def size_lines(options, cells, side, size):
    at = values.size_text(size)
    if not side.preloaded:
        yield f"MPI_Reduce_local of {at}, {cells[0].unit}, {side.name}"
        yield from grid(options, cells, lambda cell: report.three_figures(cell.value))
    else:
        yield f"MPI_Reduce_local of {at}: gain over plain, {side.name}"
        yield from grid(options, cells, lambda cell: ratio_text(cell.gain))
        yield from gain_lines(cells)
    if cells[0].unit != "ns":
        yield from vector_lines(cells)
    elif side.preloaded:
        yield call_time_line(cells)


def summary_row(cells, side, size):
    row = [values.size_text(size), str(len(cells))]
    memcpy = statistics.median(cell.memcpy for cell in cells)
    row += [report.quantity(memcpy, cells[0].unit)]
    vector = [cell.of_memcpy for cell in cells if cell.is_vector_cell()]
    row += [f"{min(vector):.2f}", f"{statistics.median(vector):.2f}"] if vector else ["-", "-"]
    if side.preloaded:
        gains = [cell.gain for cell in cells]
        worst = min(cells, key=lambda cell: cell.gain)
        row += [f"{ratio_text(statistics.geometric_mean(gains))}x", f"{ratio_text(min(gains))}x"]
        row += [worst.name, str(sum(gain < 1 for gain in gains))]
    return row


def summary_lines(results, side):
    header = ["bytes", "cells", "memcpy", "of memcpy: least", "median"]
    header += ["gain: mean", "worst", "worst cell", "below 1.0"] if side.preloaded else []
    sizes = sizes_in(results)
    rows = [summary_row(cells_at(results, side, size), side, size) for size in sizes]
    yield f"by size, {side.name} (of memcpy: the integers, float and double named above)"
    yield from report.align([header] + rows)


def skipped_lines(outcome):
    reasons = {operators.DEADLY: dict.fromkeys(name.upper() for name in outcome.options.left_out)}
    for run in outcome.runs:
        for record in run["skipped"]:
            reasons.setdefault(record["why"], {})[record["name"]] = True
    for why, names in reasons.items():
        if names:
            yield from wrapped(f"not measured, {why}", list(names))


def print_view(outcome, results, file):
    sides = [side for side in outcome.sides if side.preloaded] or outcome.sides
    for side in sides:
        for size in shown_sizes(outcome.options, results):
            cells = cells_at(results, side, size)
            for line in size_lines(outcome.options, cells, side, size):
                print(line, file=file)
            print(file=file)
        for line in summary_lines(results, side):
            print(line, file=file)
        print(file=file)
    for line in skipped_lines(outcome):
        print(line, file=file)


def draw_picture(outcome):
    """Of the first preloaded side and the largest size shown."""
    if not outcome.options.plot:
        return
    results = report.results_of(outcome)
    size = max(shown_sizes(outcome.options, results))
    side = next(side for side in outcome.sides if side.preloaded)
    cells = cells_at(results, side, size)
    plot.draw(outcome, cells, axes_of(outcome.options, cells), side, size)
