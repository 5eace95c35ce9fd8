# SPDX-License-Identifier: BSD-3-Clause
"""The two ways to end early, each with one line for the user. Not for errors in this program."""


class BadArgument(Exception):
    """The command line cannot be followed: exit status 2."""


class RunFailed(Exception):
    """A program that was started did not do its work: exit status 1."""
