"""
The order of all takes, computed once for every bucket.

Max replicated epoch is a step function of this order alone: before a take it is the highest own epoch
whose `ndb_apply_status` row came back in an epoch taken before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conflict.columnar.kernels.apply_order import known_before, order
from conflict.columnar.kernels.arrays import Bool, EpochApplies, Int32, UInt64, read_only
from conflict.errors import HistoryError
from conflict.history.model import Cluster, EpochApply

__all__ = ["ApplierEpochs", "order_applies", "plan_applies"]

_TYPES = {
    "foreign_epoch": np.uint64,
    "epoch": np.uint64,
    "group": np.int32,
    "traced": np.bool_,
    "restarted": np.bool_,
    "arrived_epoch": np.uint64,
    "arrived_group": np.int32,
    "judged": np.bool_,
    "judged_epoch": np.uint64,
    "judged_group": np.int32,
}


@attrs.frozen(eq=False)
class ApplierEpochs:
    """
    The takes of one applier in order; see `EpochApplies` for the columns. Shape (takes,).
    """

    foreign_epoch: UInt64
    epoch: UInt64
    group: Int32
    traced: Bool
    restarted: Bool
    arrived_epoch: UInt64
    arrived_group: Int32
    judged: Bool
    judged_epoch: UInt64
    judged_group: Int32

    def __len__(self) -> int:
        return len(self.epoch)

    @classmethod
    def of_cluster(cls, cluster: Cluster) -> Self:
        """Return the takes of a cluster of a History in memory."""
        rows = [
            (
                *(item.foreign_epoch, item.epoch, item.group, item.traced, item.restarted, *item.arrived),
                *(item.judged is not None, *(item.judged or (0, -1))),
            )
            for item in cluster.timeline
            if isinstance(item, EpochApply)
        ]
        columns = list(zip(*rows, strict=True)) or [()] * len(_TYPES)
        return cls(*(np.array(column, kind) for column, kind in zip(columns, _TYPES.values(), strict=True)))

    @classmethod
    def of_table(cls, table: pa.Table, applier: str) -> Self:
        """Return the takes of an applier out of `conflict.grid.folder.SCHEDULE`; none is judged before it commits."""
        mine = table.filter(pc.equal(table.column("applier"), applier))
        count = len(mine)
        known = {name: mine.column(name).to_numpy() for name in _TYPES if name in mine.column_names}
        nothing = {"judged": np.zeros(count), "judged_epoch": np.zeros(count), "judged_group": np.full(count, -1)}
        return cls(**{name: np.asarray(column, _TYPES[name]) for name, column in (known | nothing).items()})

    def first(self, kept: int | None) -> ApplierEpochs:
        """Return the first `kept` takes alone; None is all of them."""
        return ApplierEpochs(*(getattr(self, name)[:kept] for name in _TYPES))


def plan_applies(clusters: Sequence[Cluster]) -> EpochApplies:
    """
    Order the takes of two clusters of a History in memory.

    Args:
        clusters: The two clusters, in the order of their numbers.

    Raises:
        HistoryError: The schedule is circular.
    """
    return order_applies(
        [ApplierEpochs.of_cluster(cluster) for cluster in clusters], [cluster.name for cluster in clusters]
    )


def order_applies(applied: Sequence[ApplierEpochs], names: Sequence[str]) -> EpochApplies:
    """
    Order the takes of both appliers, causes before effects, each one's own order kept.

    An epoch can be taken once all takes that its cluster committed in it have been made.

    Args:
        applied: Per cluster, its takes.
        names: Names of the clusters.

    Raises:
        HistoryError: The schedule is circular.
    """
    epochs, foreign, traced, begins = (
        tuple(read_only(array) for array in arrays)
        for arrays in (
            [each.epoch for each in applied],
            [each.foreign_epoch for each in applied],
            [each.traced for each in applied],
            # What is judged before it commits stands in the way from then on.
            [np.where(each.judged, each.judged_epoch, each.epoch) for each in applied],
        )
    )
    applier, number, stuck = order(begins, foreign)
    if stuck >= 0:
        at = len(applier) - int((applier != stuck).sum())
        message = (
            f"the schedule is circular: cluster {names[stuck]} applies epoch "
            f"{applied[stuck].foreign_epoch[at]} before it can have been made"
        )
        raise HistoryError(message)
    known = known_before(applier, number, epochs, foreign, traced)
    place = number + applier.astype(np.int64) * len(applied[0])
    columns = {name: np.concatenate([getattr(each, name) for each in applied])[place] for name in _TYPES}
    return EpochApplies(applier=applier, number=number, max_replicated_epoch=known, **columns)
