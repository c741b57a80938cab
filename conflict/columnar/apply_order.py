"""
The order of all epoch applies, computed once for all buckets. Computes docs/concepts.md, "Max replicated epoch".

The max replicated epoch follows from this order alone: before an epoch apply it is the highest own epoch whose
`ndb_apply_status` row came back in an epoch applied before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conflict.columnar.kernels.apply_order import NO_CLUSTER, known_before, order
from conflict.columnar.kernels.arrays import Bool, EpochApplies, Int32, Int64, RowMoments, UInt64, read_only
from conflict.history.model import Cluster, EpochApply
from conflict.history.scheduling.causal_order import circular_schedule

__all__ = ["ApplierEpochs", "Located", "order_applies", "plan_applies"]

_TYPES = {
    "foreign_epoch": np.uint64,
    "epoch": np.uint64,
    "group": np.int32,
    "traced": np.bool_,
    "restarted": np.bool_,
    "arrived_epoch": np.uint64,
    "arrived_group": np.int32,
    "committed": np.int64,
}

# Bucket and number in it of rows, by table and key.
Located = Mapping[tuple[str, bytes], tuple[int, int]]
_MOMENTS = tuple(field.name for field in attrs.fields(RowMoments))


@attrs.frozen(eq=False)
class ApplierEpochs:
    """
    The epoch applies of one applier in order; see `EpochApplies` for the columns. Shape (applies,).

    The `apply` of a moment is the number among these.
    """

    foreign_epoch: UInt64
    epoch: UInt64
    group: Int32
    traced: Bool
    restarted: Bool
    arrived_epoch: UInt64
    arrived_group: Int32
    committed: Int64
    moments: RowMoments

    def __len__(self) -> int:
        return len(self.epoch)

    @classmethod
    def of_cluster(cls, cluster: Cluster, located: Located | None = None) -> Self:
        """Return the epoch applies of a cluster of a History in memory; `located` has the rows of their moments."""
        applies = [item for item in cluster.timeline if isinstance(item, EpochApply)]
        rows = [
            (
                each.foreign_epoch,
                each.epoch,
                each.group,
                each.traced,
                each.restarted,
                *each.arrived,
                each.committed or 0,
            )
            for each in applies
        ]
        columns = list(zip(*rows, strict=True)) or [()] * len(_TYPES)
        known: dict[str, Any] = {
            name: np.array(each, kind) for (name, kind), each in zip(_TYPES.items(), columns, strict=True)
        }
        moments = [
            (number, *(located or {})[each.table, each.key], *each.after)
            for number, apply in enumerate(applies)
            for each in apply.moments
        ]
        return cls(**known, moments=RowMoments.of_rows(moments))

    @classmethod
    def of_table(cls, table: pa.Table, applier: str) -> Self:
        """Return the epoch applies of an applier in a table `SCHEDULE`; no row is judged early."""
        mine = table.filter(pc.and_(pc.equal(table.column("applier"), applier), table.column("applied")))
        columns = {name: mine.column(name) for name in _TYPES}
        columns["committed"] = pc.fill_null(columns["committed"], 0)
        known = {name: column.to_numpy() for name, column in columns.items()}
        return cls(**{name: np.asarray(each, _TYPES[name]) for name, each in known.items()}, moments=RowMoments.none())

    def first(self, kept: int | None) -> ApplierEpochs:
        """Return the first `kept` epoch applies, or all if it is None."""
        count = len(self) if kept is None else kept
        moments = self.moments.chosen(self.moments.apply < count)
        return ApplierEpochs(**{name: getattr(self, name)[:kept] for name in _TYPES}, moments=moments)


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
    epochs, foreign, traced = (
        tuple(read_only(array) for array in arrays)
        for arrays in (
            [each.epoch for each in applied],
            [each.foreign_epoch for each in applied],
            [each.traced for each in applied],
        )
    )
    applier, number, stuck = order(epochs, foreign)
    if stuck != NO_CLUSTER:
        at = len(applier) - int((applier != stuck).sum())
        raise circular_schedule(names[stuck], int(applied[stuck].foreign_epoch[at]))
    known = known_before(applier, number, epochs, foreign, traced)
    chosen = number + applier.astype(np.int64) * len(applied[0])
    columns = {name: np.concatenate([getattr(each, name) for each in applied])[chosen] for name in _TYPES}
    place = np.empty(len(chosen), np.int32)
    place[chosen] = np.arange(len(chosen), dtype=np.int32)
    moments = [
        attrs.evolve(each.moments, apply=place[each.moments.apply + side * len(applied[0])])
        for side, each in enumerate(applied)
    ]
    joined = RowMoments(*(np.concatenate([getattr(each, name) for each in moments]) for name in _MOMENTS))
    return EpochApplies(applier=applier, number=number, max_replicated_epoch=known, moments=joined, **columns)
