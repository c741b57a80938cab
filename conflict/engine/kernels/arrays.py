"""
One bucket of a History as arrays: the input and the output of the kernels.

What exists once per cluster comes in pairs, in the order of `History.clusters`. `conflict.engine.kernels.records` has
the form in which compiled code receives it. The plain values that kernels count with are no literals: numba compiles a
function anew for each literal that it is called with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Self, TypeVar

import attrs
import numpy as np
import numpy.typing as npt

from conflict.engine.kernels.linked_applies import link_applies, rises
from ndb_formats.columnar.kernel import read_only

Bool = npt.NDArray[np.bool_]
Int8 = npt.NDArray[np.int8]
Int16 = npt.NDArray[np.int16]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]
AnyNumber = TypeVar("AnyNumber", int, Int8)


def holds_anything(column: npt.NDArray[Any]) -> bool:
    """Whether a column has a number other than 0; of a broadcast column only the one number is read."""
    return bool(column[:1].any() if column.strides == (0,) else column.any())


class Presence(IntEnum):
    """Whether an image carries the resolve column; `NO_COLUMNS` is an image without any column."""

    ABSENT = 0
    PRESENT = 1
    NO_COLUMNS = 2


class OperationKind(IntEnum):
    """
    Where an operation that an applier received comes from.

    `CHANGE` is an own change of the other cluster, `EMPTY` one that writes no column and so has no effect. The other
    cluster's applier logged the rest: it refreshed the row after a conflict, or reflected what it had applied.
    """

    CHANGE = 0
    REFRESH = 1
    REFLECTED = 2
    EMPTY = 3


@attrs.frozen
class BucketRows:
    """
    The own changes of one cluster in a bucket, in its own order.

    All arrays have shape (rows,).

    Attributes:
        key: Dense number of the row's identity within the bucket.
        operation: `Operation`.
        epoch: Own epoch.
        group: Group within the epoch.
        ordinal: Number among the cluster's own changes of the epoch, over all buckets.
        before_presence: `Presence` of the resolve column in the before image.
        before_value: Its value; 0 for NULL.
        after_presence: `Presence` of the resolve column in the after image.
        after_value: Its value; 0 for NULL.
        incomplete: 1 where the after image lacks a column that a new row must be given, else 0.
    """

    key: Int32
    operation: Int8
    epoch: UInt64
    group: Int32
    ordinal: Int32
    before_presence: Int8
    before_value: UInt64
    after_presence: Int8
    after_value: UInt64
    incomplete: Int8

    def __len__(self) -> int:
        return len(self.key)

    def chosen(self, rows: Int64) -> BucketRows:
        """Return some of them."""
        return BucketRows(*(getattr(self, field.name)[rows] for field in attrs.fields(BucketRows)))


@attrs.frozen(eq=False)
class RowMoments:
    """
    Rows that an applier judged some time before it committed their epoch; see `RowMoment`. Shape (moments,).

    Attributes:
        apply: Number of the epoch apply.
        bucket: Number of the row's bucket.
        key: Number of the row in the bucket.
        epoch: Own epoch after which it was judged.
        group: Group of that epoch.
    """

    apply: Int32
    bucket: Int32
    key: Int32
    epoch: UInt64
    group: Int32

    def __len__(self) -> int:
        return len(self.apply)

    @classmethod
    def none(cls) -> RowMoments:
        """Return no moments."""
        return cls.of_rows([])

    @classmethod
    def of_rows(cls, rows: Sequence[tuple[int, ...]]) -> RowMoments:
        """Return moments, each given with its attributes in order."""
        columns = list(zip(*rows, strict=True)) or [()] * len(attrs.fields(RowMoments))
        kinds = (np.int32, np.int32, np.int32, np.uint64, np.int32)
        return cls(*(np.array(column, kind) for column, kind in zip(columns, kinds, strict=True)))

    def chosen(self, chosen: Bool | Int64) -> RowMoments:
        """Return some of them."""
        return RowMoments(*(getattr(self, field.name)[chosen] for field in attrs.fields(RowMoments)))

    @classmethod
    def joined(cls, parts: Iterable[RowMoments]) -> RowMoments:
        """Return the moments of several parts."""
        columns = zip(*(attrs.astuple(each, recurse=False) for each in (cls.none(), *parts)), strict=True)
        return cls(*(np.concatenate(column) for column in columns))

    def of_bucket(self, number: int) -> RowMoments:
        """Return those of one bucket."""
        return self.chosen(self.bucket == number)

    def of_keys(self, keys: Int32) -> RowMoments:
        """Return those of some keys of a bucket, which are numbered anew; `keys` are sorted."""
        kept = self.chosen(np.isin(self.key, keys))
        return attrs.evolve(kept, key=np.searchsorted(keys, kept.key).astype(np.int32))


# An epoch apply. `max_replicated` is that before it. Before own epoch and group `arrived_...` the applier cannot have
# begun with it. `traced`: its binlog shows it. `restarted`: the applier was restarted since the one before.
# `previous` is the epoch apply before of the same applier, -1 for none. Those of the other applier that receive what
# this one logs stand in `EpochApplies.by_epoch` from `received_start` on, as far as their foreign epoch is its own.
# `acting` is the row of `Rules`: that of its cluster in its role.
EPOCH_APPLY = np.dtype(
    [
        *[("epoch", "u8"), ("foreign_epoch", "u8"), ("max_replicated", "u8")],
        *[("arrived_epoch", "u8"), ("group", "i4"), ("arrived_group", "i4")],
        *[("previous", "i4"), ("received_start", "i4")],
        *[("applier", "i1"), ("source", "i1"), ("acting", "i1"), ("traced", "?"), ("restarted", "?")],
    ],
    align=True,
)


@attrs.frozen(eq=False)
class EpochApplies:
    """
    All epoch applies of both appliers, causes before effects. Shape (applies,).

    Compiled code reads the records, everything else their columns, which are no copies.

    Attributes:
        records: `EPOCH_APPLY`.
        applier: Number of the applying cluster: a column of its own, which is read as a whole.
        by_epoch: Their numbers by foreign epoch, the first applier's before the second's. int32.
        second: Index in `by_epoch` of the second applier's first.
        number: Its number among the epoch applies of its applier, from 0. int32.
        committed: Microsecond since 1970 at which the foreign epoch committed; 0 if not known.
        server: Server id of the SQL node that applied it; 0 for that of the cluster. uint32.
        source_server: Server id of the SQL node from whose binlog it was applied; 0 likewise. uint32.
        moments: Rows that were judged some time before the commit.
    """

    records: npt.NDArray[np.void]
    applier: Int8
    by_epoch: Int32
    second: int
    number: Int32
    committed: Int64
    server: UInt32
    source_server: UInt32
    moments: RowMoments

    @classmethod
    def of(
        cls,
        columns: Iterable[tuple[str, npt.NDArray[Any]]],
        number: Int32,
        moments: RowMoments,
    ) -> Self:
        """
        Return epoch applies in order.

        Args:
            columns: By name, the columns of `EPOCH_APPLY` and the attributes that do not follow from others, and the
                number of the role of each, -1 for that at the start.
            number: See the attribute.
            moments: See the attribute.
        """
        records, others = np.zeros(len(number), EPOCH_APPLY), dict[str, npt.NDArray[Any]]()
        for name, column in columns:
            if name in (EPOCH_APPLY.names or ()):
                records[name] = column
            else:
                others[name] = column
        records["source"] = 1 - records["applier"]
        records["acting"] = acting(records["applier"], others.pop("role"))
        applier = np.ascontiguousarray(records["applier"])
        by_epoch, second = _by_epoch(records, applier)
        return cls(records, applier, by_epoch, second, number, moments=moments, **others)

    def receiving(self, applier: int, epochs: UInt64) -> Int64:
        """Return the first epoch apply of each of some foreign epochs by an applier; -1 for none. Shape (epochs,)."""
        own = self.by_epoch[self.second :] if applier else self.by_epoch[: self.second]
        low, high = np.zeros(len(epochs), np.int64), np.full(len(epochs), len(own))
        while (low < high).any():  # by halves: few are asked for of very many
            middle = (low + high) // 2
            before = self.foreign_epoch[own[np.minimum(middle, len(own) - 1)]] < epochs
            low, high = np.where(before & (low < high), middle + 1, low), np.where(before, high, middle)
        found, there = np.full(len(epochs), -1), np.flatnonzero(low < len(own))
        there = there[self.foreign_epoch[own[low[there]]] == epochs[there]]
        found[there] = own[low[there]]
        return found

    @property
    def foreign_epoch(self) -> UInt64:
        """Epoch of the other cluster."""
        return self.records["foreign_epoch"]

    @property
    def epoch(self) -> UInt64:
        """Own epoch in which it commits."""
        return self.records["epoch"]

    @property
    def group(self) -> Int32:
        """Group of that epoch."""
        return self.records["group"]

    @property
    def traced(self) -> Bool:
        """Whether the binlog shows it."""
        return self.records["traced"]

    @property
    def max_replicated_epoch(self) -> UInt64:
        """Max replicated epoch before it."""
        return self.records["max_replicated"]

    @property
    def role(self) -> Int8:
        """Number of the role of its cluster then; -1 for that at the start."""
        return np.asarray((self.records["acting"] - self.applier) // 2 - 1)

    @property
    def restarted(self) -> Bool:
        """Whether the applier was restarted since the one before."""
        return self.records["restarted"]

    @property
    def arrived_epoch(self) -> UInt64:
        """Own epoch before which the applier cannot have begun with it."""
        return self.records["arrived_epoch"]

    @property
    def arrived_group(self) -> Int32:
        """Group of that epoch."""
        return self.records["arrived_group"]

    def __len__(self) -> int:
        return len(self.records)


def acting(applier: AnyNumber, role: AnyNumber) -> AnyNumber:
    """Return the row of `Rules` of an applier in a role, given by number; -1 for the role at the start."""
    return applier + 2 * (role + 1)


def _by_epoch(records: npt.NDArray[np.void], applier: Int8) -> tuple[Int32, int]:
    """Return `EpochApplies.by_epoch` and `second`, and fill in what epoch applies are to each other."""
    by_epoch, second = np.empty(len(records), np.int32), int(np.count_nonzero(applier == 0))
    for side, place in enumerate((slice(second), slice(second, None))):
        mine = by_epoch[place]
        mine[:] = np.flatnonzero(applier == side)
        if not rises(records, read_only(mine)):
            mine[:] = mine[np.argsort(records["foreign_epoch"][mine], kind="stable")]
    link_applies(records, read_only(by_epoch), second)
    return by_epoch, second


class Conflicts(NamedTuple):
    """
    Transactions in conflict, as far as they are known. Compiled code receives it in this form.

    Attributes:
        offsets: Those of apply n are ``groups[offsets[n]:offsets[n + 1]]``. Shape (applies + 1,), int64.
        groups: Groups of the foreign epoch, sorted per apply. int32.
    """

    offsets: Int64
    groups: Int32

    @property
    def applies(self) -> Int64:
        """Numbers of the epoch applies with transactions in conflict. Shape (applies with conflicts,)."""
        return np.flatnonzero(self.offsets[1:] != self.offsets[:-1])


@attrs.frozen
class Decisions:
    """
    One decision per row operation that an applier received, in the order of the appliers. Shape (operations,).

    Attributes:
        apply: Number of the epoch apply.
        source: Row number in the source's `BucketRows`; -1 - n is entry n of `Logged`.
        key: Its row.
        group: Its transaction: the group of the foreign epoch.
        operation: `Operation`.
        kind: `OperationKind`.
        verdict: `Verdict`.
        cause: `Cause`.
        existed: Whether the row existed before.
        compared: The value of the operation that was compared, ``incoming``, and what it was compared with, ``stored``:
            records of two uint64. Undefined where the cause is not `Cause.ROW_IN_CONFLICT`.
    """

    apply: Int32
    source: Int32
    key: Int32
    group: Int32
    operation: Int8
    kind: Int8
    verdict: Int8
    cause: Int8
    existed: Bool
    compared: npt.NDArray[np.void]

    def __len__(self) -> int:
        return len(self.apply)

    def chosen(self, chosen: Bool | Int64) -> Decisions:
        """Return some of them."""
        return Decisions(*(getattr(self, field.name)[chosen] for field in attrs.fields(Decisions)))


@attrs.frozen
class Logged:
    """
    The operations that appliers logged for the other applier, in order. Shape (entries,).

    Refreshes of rows in conflict, and changes that a primary reflects to the secondary: one entry per row and epoch
    apply.

    Attributes:
        cluster: Number of the cluster whose applier logged it.
        key: Its row.
        apply: Number of the epoch apply in which it was logged.
        operation: `Operation`.
        refresh: Whether it is a refresh; else it is reflected.
        given: Whether its after image carries the resolve column.
        value: Value of the resolve column.
        decision: Number of the decision that caused it.
    """

    cluster: Int8
    key: Int32
    apply: Int64
    operation: Int8
    refresh: Bool
    given: Bool
    value: UInt64
    decision: Int64

    def __len__(self) -> int:
        return len(self.key)


# To the type checker they are ints and bools.
ZERO: Any = np.int64(0)
NONE: Any = np.int64(-1)
YES: Any = np.bool_(True)
NO: Any = np.bool_(False)
