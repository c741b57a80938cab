"""
The order of all epoch applies, computed once for all buckets. Computes docs/concepts.md, "Max replicated epoch".

The max replicated epoch follows from this order alone: before an epoch apply it is the highest own epoch whose
`ndb_apply_status` row came back in an epoch applied before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conflict.columnar.kernels.apply_order import NO_CLUSTER, known_before, order
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
    The epoch applies of one applier in order; see `EpochApplies` for the columns. Shape (applies,).
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
        """Return the epoch applies of a cluster of a History in memory."""
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
        """Return the epoch applies of an applier in a table `SCHEDULE`; none is judged early."""
        mine = table.filter(pc.and_(pc.equal(table.column("applier"), applier), table.column("applied")))
        count = len(mine)
        known = {name: mine.column(name).to_numpy() for name in _TYPES if name in mine.column_names}
        not_judged = {"judged": np.zeros(count), "judged_epoch": np.zeros(count), "judged_group": np.full(count, -1)}
        return cls(**{name: np.asarray(column, _TYPES[name]) for name, column in (known | not_judged).items()})

    def first(self, kept: int | None) -> ApplierEpochs:
        """Return the first `kept` epoch applies, or all if it is None."""
        return ApplierEpochs(*(getattr(self, name)[:kept] for name in _TYPES))


def plan_applies(clusters: Sequence[Cluster]) -> EpochApplies:
    """
    Order the epoch applies of two clusters of a History in memory.

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
    Order the epoch applies of both appliers, causes before effects; those of one applier stay in order.

    An epoch can be applied only after everything that its own cluster's applier committed in it.

    Args:
        applied: Per cluster, its epoch applies.
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
            # An epoch that is judged before it commits must have arrived by then.
            [np.where(each.judged, each.judged_epoch, each.epoch) for each in applied],
        )
    )
    applier, number, stuck = order(begins, foreign)
    if stuck != NO_CLUSTER:
        at = len(applier) - int((applier != stuck).sum())
        message = (
            f"the schedule is circular: cluster {names[stuck]} applies epoch "
            f"{applied[stuck].foreign_epoch[at]} before the other cluster can have made it"
        )
        raise HistoryError(message)
    known = known_before(applier, number, epochs, foreign, traced)
    chosen = number + applier.astype(np.int64) * len(applied[0])
    columns = {name: np.concatenate([getattr(each, name) for each in applied])[chosen] for name in _TYPES}
    return EpochApplies(applier=applier, number=number, max_replicated_epoch=known, **columns)
