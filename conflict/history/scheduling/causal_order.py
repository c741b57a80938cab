"""
The items of all timelines in one order: each cluster's own order is kept, and every cause comes before its effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conflict.errors import HistoryError
from conflict.history.model import Cluster, DefinitionChange, EpochApply, History, Transaction

__all__ = ["circular_schedule", "interleave"]

Item = Transaction | EpochApply | DefinitionChange


def interleave(history: History) -> Iterator[tuple[Cluster, Item]]:
    """
    Yield each item with its cluster, in an order that respects cause and effect.

    An epoch can be applied once everything that its cluster logged in it has happened.

    Raises:
        HistoryError: No such order exists.
    """
    places = dict.fromkeys((cluster.name for cluster in history.clusters), 0)
    timelines = {cluster.name: cluster.timeline for cluster in history.clusters}
    while True:
        moved = False
        for cluster in history.clusters:
            timeline = timelines[cluster.name]
            while places[cluster.name] < len(timeline):
                item = timeline[places[cluster.name]]
                if isinstance(item, EpochApply) and not _logged(
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
            raise circular_schedule(cluster.name, getattr(item, "foreign_epoch", "?"))


def circular_schedule(cluster: str, epoch: int | str) -> HistoryError:
    """Return the error of a cluster that applies an epoch before the other one can have made it."""
    return HistoryError(
        f"the schedule is circular: cluster {cluster} applies epoch {epoch} before the other cluster can have made it; "
        "a file may be missing, or be of another time: give all binlog files of both clusters"
    )


def _logged(timeline: Sequence[Item], place: int, epoch: int) -> bool:
    """Whether everything that a cluster did in `epoch` lies before `place`."""
    return place == len(timeline) or timeline[place].epoch > epoch
