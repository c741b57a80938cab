"""
The order of all takes, computed once for every bucket.

Max replicated epoch is a step function of this order alone: before a take it is the highest own epoch
whose `ndb_apply_status` row came back in an epoch taken before.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from conflict.engine.replay import interleave
from conflict.history import Cluster, History, Take
from conflict.kernels.arrays import TakeArrays

__all__ = ["plan_takes", "without_takes_after"]


def without_takes_after(cluster: Cluster, stopped_at: int | None) -> Cluster:
    """Return the cluster with the takes from the one of epoch `stopped_at` on left out."""
    if stopped_at is None:
        return cluster
    kept = []
    stopped = False
    for item in cluster.timeline:
        if isinstance(item, Take):
            stopped = stopped or item.foreign_epoch == stopped_at
            if stopped:
                continue
        kept.append(item)
    return attrs.evolve(cluster, timeline=tuple(kept))


def plan_takes(clusters: Sequence[Cluster]) -> TakeArrays:
    """
    Order the takes of both clusters.

    Args:
        clusters: The two clusters, in the order of their numbers.

    Raises:
        HistoryError: The schedule is circular.
    """
    numbers = {cluster.name: number for number, cluster in enumerate(clusters)}
    relayed: dict[tuple[str, int], int] = {}
    known = dict.fromkeys(numbers, 0)
    rows = []
    for cluster, item in interleave(History(tuple(clusters), {})):
        if not isinstance(item, Take):
            continue
        rows.append(
            (numbers[cluster.name], item.foreign_epoch, item.epoch, item.group, item.traced, known[cluster.name])
        )
        if item.traced:
            relayed[cluster.name, item.epoch] = item.foreign_epoch
        back = relayed.get((item.source, item.foreign_epoch), 0)
        known[cluster.name] = max(known[cluster.name], back)
    columns = list(zip(*rows, strict=True)) or [()] * 6
    types = (np.int8, np.uint64, np.uint64, np.int32, np.bool_, np.uint64)
    return TakeArrays(*(np.array(column, kind) for column, kind in zip(columns, types, strict=True)))
