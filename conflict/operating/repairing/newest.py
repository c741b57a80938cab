"""
Which of the two rows has the later change of a user. Computes docs/repair.md, "The newest change".

Changes of one cluster have the order of its log. A change that was made after the other one had arrived is later than
it. Between two that had not seen each other, the clocks of the clusters decide, if the logs do not show that these
differ: an epoch that was applied before it was made, by the times of two logs, was so by their clocks alone.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property
from itertools import accumulate

import attrs

from conflict.engine.reference.row_store import RowKey
from conflict.history.timeline import EpochApply, Origin, Position
from conflict.operating.repairing.ended_run import EndedRun
from conflict.operating.repairing.watched_cluster import UserChange
from conflict.operating.repairing.winners import NotDecidedError

_SECOND = 1_000_000  # microseconds


@attrs.frozen(eq=False)
class ChangeOrder:
    """
    The order of changes of users.

    Attributes:
        ended: The clusters that they were made on.
    """

    ended: EndedRun

    def newest(self, row: RowKey) -> str:
        """
        Return the cluster whose row has the later change.

        Raises:
            NotDecidedError: It is not known which one that is.
        """
        first, second = self.ended.clusters
        found = [self.ended.last_change(name, row) for name in (first, second)]
        unknown = [name for name, by in zip((first, second), found, strict=True) if by is None]
        if unknown:
            message = f"the time of its last change is not known on {' and '.join(unknown)}"
            raise NotDecidedError(message)
        one, other = (by for by in found if by is not None)
        return first if self._later(one, other) is one else second

    def _later(self, one: UserChange, other: UserChange) -> UserChange:
        if one.cluster == other.cluster:
            if one.place == other.place:
                message = "both clusters have the same last change of it"
                raise NotDecidedError(message)
            return max(one, other, key=lambda each: each.place)
        for change, seen in ((one, other), (other, one)):
            if self.had_seen((change.cluster, change.position), seen):
                return change
        return self._later_by_clocks(one, other)

    def had_seen(self, made: tuple[str, Position], other: UserChange) -> bool:
        """Whether a change, given by its cluster and position, was made after another one was there, as logs show."""
        cluster, position = made
        if cluster == other.cluster:
            return other.position < position
        positions, epochs = self._received[cluster]
        place = bisect_left(positions, position)
        return place > 0 and epochs[place - 1] >= other.epoch

    def repeats(self, made: tuple[str, Position], origin: Origin | None) -> bool:
        """
        Whether a change, given by its cluster, position and place, made a row what it was on the other cluster already.

        It was made after the change that the row had there, and arrived before any other. So does a repair.
        """
        by = self.ended.watched(made[0]).repeated.get(origin) if origin else None
        return by is not None and self.had_seen(made, by)

    @cached_property
    def _received(self) -> dict[str, tuple[list[Position], list[int]]]:
        """By cluster, the positions at which its log shows epoch applies, and the last foreign epoch up to each."""
        applies = {name: self._shown(name) for name in self.ended.clusters}
        return {
            name: (
                [(each.epoch, each.group) for each in own],
                list(accumulate((each.foreign_epoch for each in own), max)),
            )
            for name, own in applies.items()
        }

    def _shown(self, cluster: str) -> list[EpochApply]:
        timeline = self.ended.cluster(cluster).cluster.timeline
        return [each for each in timeline if isinstance(each, EpochApply) and each.applied and each.traced]

    def _later_by_clocks(self, one: UserChange, other: UserChange) -> UserChange:
        times = {each.cluster: self.ended.committed_at(each.cluster, each.epoch) for each in (one, other)}
        unknown = [name for name, time in times.items() if not time]
        if unknown:
            message = f"the time of the last change that {' and '.join(unknown)} made of it is not known"
            raise NotDecidedError(message)
        first, second = self.ended.clusters
        lead, (low, high) = times[second] - times[first], self._ahead
        if lead == 0 and low <= 0 <= high:
            message = "the time of its last change is the same on both clusters"
            raise NotDecidedError(message)
        if low <= lead <= high and not low <= 0 <= high:
            ahead, least = (second, low) if low > 0 else (first, -high)
            message = (
                f"the clock of {ahead} is {least / _SECOND:.1f} s ahead or more, so that the times of its last changes "
                "do not tell which is newer"
            )
            raise NotDecidedError(message)
        later = second if lead > min(max(low, 0), high) else first
        return one if one.cluster == later else other

    @cached_property
    def _ahead(self) -> tuple[float, float]:
        """How many microseconds the clock of the second cluster is ahead of that of the first: least and most."""
        first, second = self.ended.clusters
        low = max((-each for each in self._journeys(first, second)), default=float("-inf"))
        high = min(self._journeys(second, first), default=float("inf"))
        return min(low, high), max(low, high)

    def _journeys(self, cluster: str, source: str) -> list[int]:
        """Return how long the epochs of a source took at most until they were applied, by the clocks of both."""
        pairs = (
            (self.ended.committed_at(cluster, each.epoch), self.ended.committed_at(source, each.foreign_epoch))
            for each in self._shown(cluster)
        )
        # A log without the microsecond has whole seconds, which the time has passed.
        return [here - there + (0 if here % _SECOND else _SECOND - 1) for here, there in pairs if here and there]
