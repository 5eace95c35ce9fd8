#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes digits.txt from scikit-learn's digits.csv.gz. Kept to show where the data came from; no build needs it."""
import gzip
import sys

PIXEL = "0123456789abcdefg"  # pixel values 0 to 16


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: convert.py digits.csv.gz digits.txt")
    with gzip.open(sys.argv[1], "rt") as source, open(sys.argv[2], "w") as target:
        for line in source:
            values = [int(float(v)) for v in line.split(",")]
            pixels, label = values[:64], values[64]
            target.write(f"{label} " + "".join(PIXEL[p] for p in pixels) + "\n")


if __name__ == "__main__":
    main()
