"""
Numbers of an exceptions table that an applier may have used up before the rows of an epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from conflict.history.model import START, Position

__all__ = ["NO_GAP", "AppliedEpoch", "Gap", "TrackedOperation", "gap_before"]


@attrs.frozen
class TrackedOperation:
    """
    An operation on which pass TRACK may have decided otherwise than was decided here.

    Attributes:
        epoch: Its foreign epoch.
        moves: What each candidate moves counters by, beyond what was counted.
        exceptions: The exceptions table to which a rejected operation goes; None if there is none.
        rows: How many more rows each candidate adds to that table in one pass.
    """

    epoch: int
    moves: tuple[tuple[tuple[str, int], ...], ...]
    exceptions: str | None
    rows: tuple[int, ...]


@attrs.frozen
class AppliedEpoch:
    """
    A foreign epoch that an applier applied.

    Attributes:
        epoch: The epoch.
        rows: How many rows it added to each exceptions table.
        position: The own position at which it was committed.
        disturbed: Whether the cluster itself changed anything since the epoch that was applied before.
    """

    epoch: int
    rows: Mapping[str, int]
    position: Position = START
    disturbed: bool = False


@attrs.frozen
class Gap:
    """
    Numbers that may have been used up before the rows of an epoch.

    Attributes:
        known: How many, as far as the passes are known.
        or_more: Whether any more are possible. While other transactions change rows, an applier that waits too long for
            a lock, or finds other transactions in conflict, goes over an epoch again; how often, nothing shows.
    """

    known: frozenset[int]
    or_more: bool = False

    def __contains__(self, numbers: int) -> bool:
        return numbers in self.known or (self.or_more and numbers >= min(self.known))


NO_GAP = Gap(frozenset((0,)))


def gap_before(tracked: Iterable[TrackedOperation], applied: AppliedEpoch, table: str, gap: int, further: int) -> Gap:
    """Return the numbers that may have been used up before the rows of an epoch that were `gap` here."""
    mine = [each for each in tracked if each.epoch == applied.epoch]
    # Two passes at most were rolled back here, each with its own decisions.
    less = 2 * sum(min(each.rows) for each in mine if each.exceptions == table)
    return Gap(frozenset((max(0, gap + less), gap + further)), bool(mine) or applied.disturbed)
