"""
The items of all timelines in one order: each cluster's own order is kept, and every cause comes before its effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from conflict.errors import HistoryError
from conflict.history.model import Cluster, DefinitionChange, EpochApply, History, Timeline, Transaction

__all__ = ["Item", "Judging", "interleave"]


@attrs.frozen
class Judging:
    """The moment at which an applier judges an epoch (see `EpochApply.judged`), some time before it commits it."""

    apply: EpochApply

    @property
    def source(self) -> str:
        """Name of the cluster that made the epoch."""
        return self.apply.source

    @property
    def foreign_epoch(self) -> int:
        """The epoch."""
        return self.apply.foreign_epoch

    @property
    def epoch(self) -> int:
        """Own epoch of that moment."""
        return self.apply.judged[0] if self.apply.judged else self.apply.epoch


Item = Transaction | EpochApply | DefinitionChange | Judging


def _with_judging(timeline: Timeline) -> list[Item]:
    """Return a timeline with the moments at which its epochs were judged."""
    items: list[Item] = []
    for item in timeline:
        if isinstance(item, EpochApply) and item.judged is not None:
            place = len(items)
            while place and (items[place - 1].epoch, getattr(items[place - 1], "group", -1)) > item.judged:
                place -= 1
            items.insert(place, Judging(item))
        items.append(item)
    return items


def interleave(history: History) -> Iterator[tuple[Cluster, Item]]:
    """
    Yield each item with its cluster, in an order that respects cause and effect.

    An epoch can be applied once everything that its cluster logged in it has happened.

    Raises:
        HistoryError: No such order exists.
    """
    places = dict.fromkeys((cluster.name for cluster in history.clusters), 0)
    timelines = {cluster.name: _with_judging(cluster.timeline) for cluster in history.clusters}
    while True:
        moved = False
        for cluster in history.clusters:
            timeline = timelines[cluster.name]
            while places[cluster.name] < len(timeline):
                item = timeline[places[cluster.name]]
                if isinstance(item, EpochApply | Judging) and not _logged(
                    timelines[item.source], places[item.source], item.foreign_epoch
                ):
                    break
                places[cluster.name] += 1
                moved = True
                yield cluster, item
        if not moved:
            break
    for cluster in history.clusters:
        if places[cluster.name] < len(timelines[cluster.name]):
            item = timelines[cluster.name][places[cluster.name]]
            message = (
                f"the schedule is circular: cluster {cluster.name} applies epoch "
                f"{getattr(item, 'foreign_epoch', '?')} before it can have been made"
            )
            raise HistoryError(message)


def _logged(timeline: Sequence[Item], place: int, epoch: int) -> bool:
    """Whether everything that a cluster did in `epoch` lies before `place`."""
    return place == len(timeline) or timeline[place].epoch > epoch
