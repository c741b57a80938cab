"""
The order of all epoch applies, and of the operations in each, computed once for all buckets.

The max replicated epoch follows from the order of epoch applies alone: before an epoch apply it is the highest own
epoch whose `ndb_apply_status` row came back in an epoch applied before. Computes docs/concepts.md, "Max replicated
epoch".

The order of an operation is a list of numbers, `_STEP` for each step from the operation to what caused it. Orders
compare as lists do.

* The other cluster's own change has no cause: its group, 0, its number among the own changes of its epoch, -1.
* What its applier logged: its group, 1, number of the epoch apply that logged it, 1 for a refresh and 0 for a reflected
  change; then the order of the operation that caused it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from conflict.engine.kernels.apply_order import NO_CLUSTER, order
from conflict.engine.kernels.arrays import (
    Bool,
    BucketRows,
    Decisions,
    EpochApplies,
    Int8,
    Int32,
    Int64,
    Logged,
    RowMoments,
)
from conflict.engine.ledger.layout import OPERATION_ORDER
from conflict.history.model import Cluster, Start
from conflict.history.scheduling.placing import circular_schedule
from conflict.history.scheduling.schedule_columns import (
    COLUMNS,
    ScheduleColumns,
    known_before,
    stored_once,
    with_defaults,
)
from conflict.history.timeline import EpochApply
from ndb_formats.columnar.kernel import read_only

# The columns of a schedule that engines read: those for which `EpochApplies` has a place.
_READ = tuple(name for name in COLUMNS if hasattr(EpochApplies, name))

# Bucket and number in it of rows, by table and key.
Located = Mapping[tuple[str, bytes], tuple[int, int]]


@attrs.frozen(eq=False)
class ApplierEpochs:
    """
    What one applier applied.

    Attributes:
        columns: Its epoch applies in order; all count as applied.
        moments: Rows that it judged some time before the commit; `apply` is the number among these epoch applies.
        returned: The max replicated epoch before the first of them.
    """

    columns: ScheduleColumns
    moments: RowMoments = attrs.field(factory=RowMoments.none)
    returned: int = 0

    def __len__(self) -> int:
        return len(self.columns)

    @classmethod
    def of_cluster(cls, cluster: Cluster, located: Located | None = None) -> Self:
        """Return the epoch applies of a cluster of a History in memory; `located` has the rows of their moments."""
        applies = [item for item in cluster.timeline if isinstance(item, EpochApply)]
        moments = [
            (number, *(located or {})[each.table, each.key], *each.after)
            for number, apply in enumerate(applies)
            for each in apply.moments
        ]
        own = ScheduleColumns.of_applies("", applies)
        return cls.of_columns(own, cluster.start, RowMoments.of_rows(moments))

    @classmethod
    def of_columns(cls, own: ScheduleColumns, start: Start | None = None, moments: RowMoments | None = None) -> Self:
        """Return the epoch applies of an applier that count as applied; no row is judged early without `moments`."""
        moments = RowMoments.none() if moments is None else moments
        return cls(own.applied_alone(), moments, 0 if start is None else start.returned)

    def first(self, kept: int | None) -> ApplierEpochs:
        """Return the first `kept` epoch applies, or all if it is None."""
        if kept is None:
            return self
        moments = self.moments.chosen(self.moments.apply < kept)
        return attrs.evolve(self, columns=self.columns.chosen(slice(kept)), moments=moments)


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
    applier, number = _ordered(applied, names)
    first = applier == 0

    def in_order(own: Iterable[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """Return a column of all, given that of each applier, which keeps its order."""
        found = None
        for mine, column in zip((first, ~first), own, strict=True):
            found = np.empty(len(applier), column.dtype) if found is None else found
            found[mine] = column
        assert found is not None
        return found

    def columns() -> Iterator[tuple[str, npt.NDArray[Any]]]:  # one after the other: there can be very many epochs
        known = (known_before(a.columns, b.columns, a.returned) for a, b in (applied, applied[::-1]))
        yield "max_replicated", in_order(known)
        yield "applier", applier
        for name in _READ:
            yield name, stored_once(in_order(each.columns[name] for each in applied))

    return EpochApplies.of(columns(), number, _moments_in_order(applied, first))


def _ordered(applied: Sequence[ApplierEpochs], names: Sequence[str]) -> tuple[Int8, Int32]:
    """Return applier and number of the epoch applies in order; arguments and errors as for `order_applies`."""
    epochs, foreign = (tuple(read_only(each.columns[name]) for each in applied) for name in ("epoch", "foreign_epoch"))
    applier, number, stuck = order(epochs, foreign)
    if stuck != NO_CLUSTER:
        at = len(applier) - int((applier != stuck).sum())
        raise circular_schedule(names[stuck], int(foreign[stuck][at]))
    return applier, number


def schedule_of(applies: EpochApplies, applier: int, source: str) -> ScheduleColumns:
    """Return the epoch applies of one applier, in order, each at the place that it was given."""
    mine = np.flatnonzero(applies.applier == applier)
    read = {name: getattr(applies, name)[mine] for name in _READ}
    return ScheduleColumns(source, with_defaults(len(mine), read))


def _moments_in_order(applied: Sequence[ApplierEpochs], first: Bool) -> RowMoments:
    """Return the moments of both appliers; `first`: which epoch applies are of the first one. Shape (applies,)."""
    moments = [
        attrs.evolve(each.moments, apply=np.flatnonzero(mine)[each.moments.apply].astype(np.int32))
        for mine, each in zip((first, ~first), applied, strict=True)
        if len(each.moments)
    ]
    return RowMoments.joined(moments)


ORDER = OPERATION_ORDER.type
_STEP = 4
OWN, LOGGED, NO_CAUSE = 0, 1, -1


def operation_orders(
    chosen: Int64, decisions: Decisions, logged: Logged, applies: EpochApplies, rows: Sequence[BucketRows]
) -> pa.ListArray:
    """
    Return the order of the operations of some decisions.

    Args:
        chosen: Numbers of the decisions. Shape (operations,).
        decisions: All decisions of a bucket.
        logged: What the appliers logged in it.
        applies: All epoch applies.
        rows: The own changes of both clusters.

    Returns:
        `ORDER`, shape (operations,).
    """
    owners, steps = [np.zeros(0, np.int64)], [np.zeros((0, _STEP), np.int64)]
    owner, decision = np.arange(len(chosen)), chosen
    while len(decision):
        source, applier = decisions.source[decision], applies.applier[decisions.apply[decision]]
        step = np.empty((len(decision), _STEP), np.int64)
        for side in (0, 1):
            own = (source >= 0) & (applier == 1 - side)
            row = source[own]
            step[own] = _columns(rows[side].group[row], OWN, rows[side].ordinal[row], NO_CAUSE)
        caused = source < 0
        entry = -1 - source[caused]
        made_in = logged.apply[entry]
        step[caused] = _columns(applies.group[made_in], LOGGED, made_in, logged.refresh[entry])
        owners.append(owner)
        steps.append(step)
        owner, decision = owner[caused], logged.decision[entry]
    owner, step = np.concatenate(owners), np.concatenate(steps)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(chosen)))]) * _STEP
    numbers = step[np.argsort(owner, kind="stable")].ravel()
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(numbers))


def _columns(first: np.ndarray, kind: int, second: np.ndarray, third: np.ndarray | int) -> Int64:
    return np.stack(np.broadcast_arrays(first, kind, second, third), axis=1).astype(np.int64)


def sorted_by_order(keys: Int64, orders: pa.ListArray) -> Int64:
    """
    Return the numbers of operations, sorted by keys, then by order; the sort is stable.

    Args:
        keys: What comes before the order. Shape (operations, keys).
        orders: The order of each operation. `ORDER`, shape (operations,).
    """
    offsets = (orders.offsets.to_numpy() - orders.offsets[0].as_py()) // _STEP
    steps = orders.flatten().to_numpy().reshape(-1, _STEP)
    first, depth = offsets[:-1], np.diff(offsets)
    rank = _refined(np.zeros(len(keys), np.int64), keys)
    # Operations of one rank are equal up to here: either all of them have another step, or none has.
    for level in range(int(depth.max(initial=0))):
        deep = np.flatnonzero(depth > level)
        rank[deep] = _refined(rank[deep], steps[first[deep] + level])
    return np.argsort(rank, kind="stable")


def _refined(rank: Int64, keys: Int64) -> Int64:
    """
    Sort operations of equal rank by keys, and return the new ranks. Shape (operations,).

    Args:
        rank: How many operations come before each; equal for operations that are equal so far. Shape (operations,).
        keys: Shape (operations, keys).
    """
    order = np.lexsort((*keys.T[::-1], rank))
    ranks, sorted_keys, numbers = rank[order], keys[order], np.arange(len(order))
    other_rank = np.diff(ranks, prepend=-1) != 0
    other = other_rank | np.append(True, np.any(sorted_keys[1:] != sorted_keys[:-1], axis=1))[: len(order)]
    moved = ranks + numbers - np.maximum.accumulate(np.where(other_rank, numbers, 0))
    refined = np.empty_like(rank)
    refined[order] = moved[np.maximum.accumulate(np.where(other, numbers, 0))]
    return refined
