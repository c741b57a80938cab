"""
What the kernels read and write, for Python: one bucket of a History as arrays.

Everything comes in pairs, one array per cluster, in the order of `History.clusters`. What compiled code is handed is in
`conflict.columnar.kernels.records`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import attrs
import numpy as np
import numpy.typing as npt

__all__ = [
    "BucketRows",
    "Conflicts",
    "Decisions",
    "EpochApplies",
    "Logged",
    "OperationKind",
    "Presence",
    "each_read_only",
    "holds_anything",
    "read_only",
]

Bool = npt.NDArray[np.bool_]
Int8 = npt.NDArray[np.int8]
Int16 = npt.NDArray[np.int16]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a view that cannot be written to: compiled code has one version for one kind of array."""
    view = np.ascontiguousarray(array).view()
    view.setflags(write=False)
    return view


def each_read_only(*arrays: npt.NDArray[Any]) -> list[Any]:
    """Return such views of several arrays."""
    return [read_only(array) for array in arrays]


def holds_anything(column: npt.NDArray[Any]) -> bool:
    """Whether a column holds anything but 0; one number that stands for all need not be looked at again and again."""
    return bool(column[:1].any() if column.strides == (0,) else column.any())


class Presence(IntEnum):
    """Whether an image carries the resolve column; an image without any column says so."""

    ABSENT = 0
    PRESENT = 1
    NO_COLUMNS = 2


class OperationKind(IntEnum):
    """
    Where an operation that an applier took comes from.

    The other cluster changed the row itself (and wrote no column, which has no effect whatever, if `EMPTY`), or its
    applier sent the row again after a conflict, or logged what it had applied.
    """

    CHANGE = 0
    REFRESH = 1
    REFLECTED = 2
    EMPTY = 3


@attrs.frozen
class BucketRows:
    """
    What one cluster did itself to the keys of a bucket, in its own order.

    All arrays have shape (rows,).

    Attributes:
        key: Dense number of the row's identity within the bucket.
        operation: `Operation`.
        epoch: Own epoch.
        group: Group within the epoch.
        ordinal: Number among the cluster's own changes of the epoch, over all buckets.
        before_presence: `Presence` of the resolve column in the before image.
        before_value: Its value; NULL counts as 0.
        after_presence: `Presence` of the resolve column in the after image.
        after_value: Its value; NULL counts as 0.
        before_lacks: Columns that a new row must be given and the before image does not carry, one bit each.
        after_lacks: The same of the after image.
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
    before_lacks: UInt64
    after_lacks: UInt64

    def __len__(self) -> int:
        return len(self.key)


@attrs.frozen(eq=False)
class EpochApplies:
    """
    All takes of both appliers, in an order that respects cause and effect. Shape (takes,).

    Attributes:
        applier: Number of the cluster that takes.
        foreign_epoch: Epoch of the other cluster.
        epoch: Own epoch in which it commits.
        group: Its place in that epoch.
        traced: Whether the binlog shows it.
        max_replicated_epoch: Highest own epoch known to have come back before it.
        number: Its number among the takes of its applier, from 0.
        restarted: Whether the applier was started since the take before.
        arrived_epoch: Own epoch before which the applier cannot have begun with it.
        arrived_group: Group of that epoch.
        judged: Whether it was judged at another place than where it commits.
        judged_epoch: Own epoch of that place.
        judged_group: Group of that epoch.
    """

    applier: Int8
    foreign_epoch: UInt64
    epoch: UInt64
    group: Int32
    traced: Bool
    max_replicated_epoch: UInt64
    number: Int64
    restarted: Bool
    arrived_epoch: UInt64
    arrived_group: Int32
    judged: Bool
    judged_epoch: UInt64
    judged_group: Int32

    def __len__(self) -> int:
        return len(self.applier)


class Conflicts(NamedTuple):
    """
    Transactions that are in conflict, as far as is known. Compiled code takes it as it is.

    Attributes:
        offsets: Those of apply n are ``groups[offsets[n]:offsets[n + 1]]``. Shape (applies + 1,), int64.
        groups: Groups of the foreign epoch, sorted per apply. int32.
    """

    offsets: Int64
    groups: Int32

    @property
    def applies(self) -> Int64:
        """Numbers of the epoch applies that hold transactions in conflict."""
        return np.flatnonzero(np.diff(self.offsets))


@attrs.frozen
class Decisions:
    """
    One entry per row operation that an applier took, in the order in which they were taken. Shape (operations,).

    Attributes:
        apply: Number of the take.
        source: Row number in the source's `BucketRows`; -1 - n is entry n of `Logged`.
        key: Its row.
        group: Group of the foreign epoch to which it belongs: its transaction.
        operation: `Operation`.
        kind: `OperationKind`.
        verdict: `Verdict`.
        cause: `Cause`.
        existed: Whether the row was there before.
        compared: The value of the operation that was compared, ``incoming``, and what it was compared with, ``stored``:
            records of two uint64. Anything stands there where the cause is not `Cause.ROW_IN_CONFLICT`.
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


@attrs.frozen
class Logged:
    """
    What appliers logged themselves, for the other side to apply, in the order in which it was made. Shape (entries,).

    Rows that were sent again after a conflict (refreshes), and rows that a primary changed for
    the secondary (reflected): one entry per row and take.

    Attributes:
        cluster: Number of the cluster whose applier made it.
        key: Row.
        apply: Number of the take in which it was made.
        operation: `Operation`.
        refresh: Whether it is a refresh, else it is reflected.
        given: Whether its after image carries the resolve column.
        value: Its resolve column.
        lacks: Columns that a new row must be given and the after image does not carry.
        decision: Number of the decision that caused it.
    """

    cluster: Int8
    key: Int32
    apply: Int64
    operation: Int8
    refresh: Bool
    given: Bool
    value: UInt64
    lacks: UInt64
    decision: Int64

    def __len__(self) -> int:
        return len(self.key)
