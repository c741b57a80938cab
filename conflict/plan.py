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


def without_takes_after(cluster: Cluster, kept: int | None) -> Cluster:
    """Return the cluster with its first `kept` takes alone; None is all of them."""
    if kept is None:
        return cluster
    timeline = []
    taken = 0
    for item in cluster.timeline:
        if isinstance(item, Take):
            taken += 1
            if taken > kept:
                continue
        timeline.append(item)
    return attrs.evolve(cluster, timeline=tuple(timeline))


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
    known, taken = dict.fromkeys(numbers, 0), dict.fromkeys(numbers, 0)
    rows = []
    for cluster, item in interleave(History(tuple(clusters), {})):
        if not isinstance(item, Take):
            continue
        name = cluster.name
        place = (item.foreign_epoch, item.epoch, item.group, item.traced)
        judged = (item.judged is not None, *(item.judged or (0, -1)))
        rows.append((numbers[name], *place, known[name], taken[name], item.restarted, *item.arrived, *judged))
        taken[name] += 1
        if item.traced:
            relayed[name, item.epoch] = max(relayed.get((name, item.epoch), 0), item.foreign_epoch)
        back = relayed.get((item.source, item.foreign_epoch), 0)
        known[name] = max(known[name], back)
    types = (
        *(np.int8, np.uint64, np.uint64, np.int32, np.bool_, np.uint64, np.int64, np.bool_),
        *(np.uint64, np.int32, np.bool_, np.uint64, np.int32),
    )
    columns = list(zip(*rows, strict=True)) or [()] * len(types)
    return TakeArrays(*(np.array(column, kind) for column, kind in zip(columns, types, strict=True)))
