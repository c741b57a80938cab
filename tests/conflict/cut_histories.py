"""Histories in memory that are read from the middle."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from conflict.engine.ledger.contradictions import Effects
from conflict.engine.ledger.resolution import Resolution
from conflict.history.model import Cluster, History, Start
from conflict.history.scheduling.schedule_columns import ScheduleColumns
from conflict.history.scheduling.start import certain_applies
from conflict.history.timeline import EpochApply, Transaction, timeline_of

__all__ = ["cut_history", "from_middle"]


def from_middle(cluster: Cluster, first: int) -> Cluster:
    """Return a cluster whose log starts at an epoch."""
    items = [item for item in cluster.timeline if item.epoch >= first]
    applies = [item for item in items if isinstance(item, EpochApply)]
    certain = certain_applies(ScheduleColumns.of_applies(applies[0].source if applies else "", applies), first)
    own = [item for item in items if isinstance(item, Transaction)]
    return attrs.evolve(cluster, timeline=timeline_of(own, certain.applies()), start=Start(first))


def cut_history(history: History, whole: Resolution, cuts: tuple[int, int]) -> tuple[History, Mapping[str, Effects]]:
    """
    Return the rest of a History, and what its binlogs show of the appliers' work.

    Args:
        history: The History.
        whole: Its result.
        cuts: Per cluster, a number that chooses where it is cut.
    """
    clusters = []
    for cluster, cut in zip(history.clusters, cuts, strict=True):
        epochs = sorted({item.epoch for item in cluster.timeline} | {1})
        clusters.append(from_middle(cluster, epochs[cut % len(epochs)]))
    shown = {
        cluster.name: {
            place: effects
            for place, effects in whole.clusters[cluster.name].effects.items()
            if effects and place[0] >= cluster.start.epoch
        }
        for cluster in clusters
        if cluster.start is not None
    }
    return attrs.evolve(history, clusters=tuple(clusters)), shown
