#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A manual page from its source: what a table of the program knows is taken from there.

    make_page.py --version VERSION SOURCE.in PAGE

A line @SETTINGS@ becomes the rows of src/base/api/settings.def; @COMMON_OPTIONS@ and @MEASUREMENTS@ what the driver
of vecmpi-bench knows, @TUNE_OPTIONS@ what that of vecmpi-tune does; @VERSION@ the version. The
rest of a source is roff, with the macros of man(7).
"""

import argparse
import re
import sys
from pathlib import Path
from types import SimpleNamespace

TOP = Path(__file__).resolve().parents[2]


def escape(text):
    """Plain text as roff: no letter of it is a request, a minus can be copied."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def tagged(tag, text):
    return f".TP\n{tag}\n{escape(text)}"


# ---- the table of settings --------------------------------------------------------------------------


def arguments_of_row(row):
    """The arguments of one VECMPI_SETTING(...): words, and strings of one or several parts."""
    tokens = re.findall(r'"((?:\\.|[^"\\])*)"|([\w]+)|(,)', row)
    arguments, current = [], ""
    for string, word, comma in tokens:
        if comma:
            arguments.append(current)
            current = ""
        else:
            current += string or word
    return [*arguments, current]


def settings_rows(text):
    text = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
    for match in re.finditer(r'VECMPI_SETTING\(((?:"(?:\\.|[^"\\])*"|[^()"])*)\)', text):
        _, name, _, default, accepted, agree, meaning = arguments_of_row(match[1])
        yield SimpleNamespace(
            name=name, default=default, accepted=accepted, agree=agree == "yes", meaning=meaning
        )


def settings_page():
    table = (TOP / "src/base/api/settings.def").read_text(encoding="utf-8")
    for row in settings_rows(table):
        agree = " The same on all ranks." if row.agree else ""
        text = f"{row.meaning}.\nAccepted: {row.accepted}.\nDefault: {row.default}.{agree}"
        yield tagged(f".B {escape(row.name)}", text)


# ---- the driver of vecmpi-bench -----------------------------------------------------------------------


class Recorder:
    """Takes the place of an argparse parser, and keeps what it is told."""

    def __init__(self):
        self.options = []

    def add_argument(self, *names, **words):
        takes_value = words.get("action") not in ("store_true", "store_const")
        value = words.get("metavar") or names[-1].lstrip("-").replace("-", "_").upper()
        if words.get("choices"):
            value = ",".join(words["choices"])
        self.options.append((names, value if takes_value else "", words["help"]))


def option_page(names, value, text):
    tag = ", ".join(escape(name) for name in names)
    tag = f'.BI "{tag}" " {escape(value)}"' if value else f'.B "{tag}"'
    return tagged(tag, text)


def driver_table():
    sys.path.insert(0, str(TOP / "tools/bench/driver"))
    sys.dont_write_bytecode = True
    import cli
    import measurements

    return cli, measurements.TABLE


def common_options_page():
    cli, _ = driver_table()
    recorder = Recorder()
    by_measurement = "by measurement"
    cli.add_common(
        recorder,
        SimpleNamespace(
            library="libvecmpi.so",
            program="vecmpi-bench-ranks",
            offload=[by_measurement],
            repeats=by_measurement,
            pin=by_measurement,
        ),
    )
    yield option_page(("-h", "--help"), "", "the options of the tool, or of a measurement")
    for names, value, text in recorder.options:
        yield option_page(names, value, text)


def tune_options_page():
    driver_table()  # modules that both drivers have
    sys.path.insert(0, str(TOP / "tools/tune/driver"))
    import tune_options

    recorder = Recorder()
    tune_options.add_options(recorder)
    yield option_page(("-h", "--help"), "", "the options")
    for names, value, text in recorder.options:
        yield option_page(names, value, text)


def measurement_page(measurement):
    offload = ",".join(measurement.offload)
    sides = f"--offload {offload}" if offload else "plain runs only"
    lines = [
        f".SS {escape(measurement.name)}",
        escape(measurement.summary[0].upper() + measurement.summary[1:] + "."),
        escape(f"Default: --pin {measurement.pin}, {sides}, {measurement.repeats} runs a side."),
    ]
    for option in measurement.options:
        if option.help:
            value = "" if option.type is bool else option.name().upper()
            lines.append(option_page((option.flag,), value, option.help))
    return "\n".join(lines)


def measurements_page():
    _, table = driver_table()
    return (measurement_page(measurement) for measurement in table)


PARTS = {
    "@SETTINGS@": settings_page,
    "@COMMON_OPTIONS@": common_options_page,
    "@MEASUREMENTS@": measurements_page,
    "@TUNE_OPTIONS@": tune_options_page,
}


def page_of(source, version):
    lines = []
    for line in source.splitlines():
        part = PARTS.get(line)
        lines += part() if part else [line.replace("@VERSION@", version)]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--version", required=True)
    parser.add_argument("source", type=Path)
    parser.add_argument("page", type=Path)
    options = parser.parse_args()
    source = options.source.read_text(encoding="utf-8")
    options.page.write_text(page_of(source, options.version), encoding="utf-8")


if __name__ == "__main__":
    main()
