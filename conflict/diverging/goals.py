"""
The words of a search: what to look for, and what the application writes.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Goal", "Values"]


class Goal(StrEnum):
    """
    What a schedule is searched for.

    DIFFERENCE: Rows end different on the two clusters once everything has been applied.
    LOST: A change of a user is rejected, or overwritten by one that had not seen it.
    STOP: An applier stops with an error.
    """

    DIFFERENCE = "difference"
    LOST = "lost"
    STOP = "stop"


class Values(StrEnum):
    """
    What the application sets the resolve column to.

    VERSION: one more than the value that it finds, and 1 in a new row, so both clusters can come to one value.
    CLOCK: a value greater than all before it, on either cluster.
    UNSET: 1 in a new row; updates do not set it.
    """

    VERSION = "version"
    CLOCK = "clock"
    UNSET = "unset"
