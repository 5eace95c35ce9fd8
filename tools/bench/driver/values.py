# SPDX-License-Identifier: BSD-3-Clause
"""Texts of the command line to values: sizes, lists, NAME=VALUE. Knows nothing of measurements."""

import re
from argparse import ArgumentTypeError

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_MOST_BYTES = 1 << 30  # the programs use int counts


def size(text, step=8):
    """8, 64K, 16M: bytes, a multiple of 8 (or `step`) so that every operation can divide it."""
    match = re.fullmatch(r"(\d+)([KMG]?)", text.upper().removesuffix("B").removesuffix("I"))
    if not match:
        raise ArgumentTypeError(f"'{text}' is not a size such as 8, 64K or 16M")
    number = int(match[1]) * _UNITS[match[2]]
    if number % step or not step <= number <= _MOST_BYTES:
        raise ArgumentTypeError(f"size '{text}' is not a multiple of {step} from {step} to 1G")
    return number


def byte_sizes(text):
    """A list of any sizes: 1,8,4K."""
    return [size(item, 1) for item in text.split(",")]


def sizes(text):
    """A list (8,64K) or a range (8-16M) in steps of four that ends exactly at its upper end."""
    low, dash, high = text.partition("-")
    if not dash:
        return [size(item) for item in text.split(",")]
    first, last = size(low), size(high)
    if first > last:
        raise ArgumentTypeError(f"'{text}' is an empty range")
    steps = [last]
    while steps[0] // 4 > 2 * first:  # 8, 64, 256 ...: no step from 8 to 16
        steps.insert(0, steps[0] // 4)
    return steps if steps[0] == first else [first] + steps


def whole(least, most):
    """A whole number from `least` to `most`."""

    def parse(text):
        if not re.fullmatch(r"\d+", text) or not least <= int(text) <= most:
            raise ArgumentTypeError(f"'{text}' is not a whole number from {least} to {most}")
        return int(text)

    return parse


def wholes(least, most):
    """A comma-separated list of whole numbers."""
    parse = whole(least, most)
    return lambda text: [parse(item) for item in text.split(",")]


def seconds(text):
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 0 < number <= 3600:
        raise ArgumentTypeError(f"'{text}' is not a number of seconds up to 3600")
    return number


def words(text):
    """A comma-separated list of names; which ones there are is found out later."""
    items = [item.strip().lower() for item in text.split(",")]
    if not all(items):
        raise ArgumentTypeError(f"'{text}' has an empty name")
    return items


def choices(*allowed):
    """A comma-separated list of words out of `allowed`."""

    def parse(text):
        items = text.split(",")
        for item in items:
            if item not in allowed:
                raise ArgumentTypeError(f"'{item}' is none of {', '.join(allowed)}")
        return items

    return parse


def ratio(text):
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1000:
        raise ArgumentTypeError(f"'{text}' is not a number such as 0.95")
    return value


def assignment(text):
    """NAME=VALUE for the ranks' environment."""
    name, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ArgumentTypeError(f"'{text}' is not NAME=VALUE")
    if name == "LD_PRELOAD":
        raise ArgumentTypeError("LD_PRELOAD is set by --library")
    if name == "VECMPI_OFFLOAD":
        raise ArgumentTypeError("VECMPI_OFFLOAD is set by --offload")
    return name, value


def settings(text):
    """NAME=VALUE of one preloaded side; several with blanks between them."""
    pairs = [assignment(word) for word in text.split()]
    if not pairs:
        raise ArgumentTypeError("no NAME=VALUE given")
    return dict(pairs)


_RATE_FACTORS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


def rate_bytes(text):
    """Bytes a second of a rate as tc writes it: 500mbit, 1.5gbit, 100mbps (bytes), 0 (no limit)."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(?:([kmgt]?)(bit|bps))", text)
    if text != "0" and not (match and float(match[1]) > 0):
        raise ArgumentTypeError(f"'{text}' is not a rate such as 500mbit, 1gbit or 0")
    if text == "0":
        return 0.0
    return float(match[1]) * _RATE_FACTORS[match[2]] / (8 if match[3] == "bit" else 1)


def rate(text):
    """A rate that lab.sh takes, as it was written."""
    rate_bytes(text)
    return text


def size_text(number):
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if number >= factor and number % factor == 0:
            return f"{number // factor} {unit}"
    return f"{number} B"


def minutes_text(seconds):
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d} min"
