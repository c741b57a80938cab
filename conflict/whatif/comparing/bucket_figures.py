"""
The figures of a bucket under one pair. Computes docs/compare.md, "Figures".

Users' transactions with a rejected change, and whether all of it was. Computes docs/compare.md, "Figures".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import attrs
import numpy as np
import numpy.typing as npt

from conflict.engine.columnar.applier_stops import StoppingOperation
from conflict.engine.columnar.bucket import Bucket
from conflict.engine.columnar.bucket_result import BucketResult, count_bucket
from conflict.engine.columnar.final_rows import count_unequal
from conflict.engine.columnar.image_values import ImageReader
from conflict.engine.kernels.arrays import BucketRows, EpochApplies, Int64, OperationKind, Presence, UInt64
from conflict.engine.kernels.logged_rows import logged_rows
from conflict.engine.kernels.lost_changes import LAST_OPERATION, TimedDecisions, Written, lost_changes, written_by
from conflict.results.ledger import table_figures
from conflict.rules.decision import Verdict
from ndb_formats.events.rows_event import Operation

__all__ = ["BucketFigures", "Rejected", "Transactions", "bucket_figures", "partly_rejected", "written_in"]

# A group of an epoch takes the low half of a code; groups start at -1.
_GROUP_BITS, _LOWEST_GROUP = 32, -1
_UPDATE = int(Operation.UPDATE_ROW)


@attrs.frozen(eq=False)
class Rejected:
    """
    Transactions with rejected changes. Shape (transactions,).

    Attributes:
        code: Epoch apply and group of each, as one number, ascending.
        changes: How many of its changes were rejected.
    """

    code: Int64
    changes: Int64

    @classmethod
    def added(cls, parts: Sequence[Self]) -> Self:
        """Return the transactions of several buckets together."""
        code = np.concatenate([each.code for each in parts])
        return cls(*_added(code, np.concatenate([each.changes for each in parts])))

    def __len__(self) -> int:
        return len(self.code)

    def of(self, applier: int, applies: EpochApplies) -> tuple[Transactions, Int64]:
        """Return those that one applier received, and how many changes of each it rejected."""
        chosen = applies.applier[self.code >> _GROUP_BITS] == applier
        code, changes = self.code[chosen], self.changes[chosen]
        return Transactions(applies.foreign_epoch[code >> _GROUP_BITS], code & (1 << _GROUP_BITS) - 1), changes


@attrs.frozen(eq=False)
class Transactions:
    """
    Transactions of one cluster. Shape (transactions,).

    Attributes:
        epoch: The epoch of each.
        group: Its group in that epoch, counted from 0.
    """

    epoch: UInt64
    group: Int64

    @classmethod
    def union(cls, parts: Sequence[Self]) -> Self:
        """Return the transactions of several together, each once, in order."""
        both = [np.concatenate([getattr(each, name) for each in parts]) for name in ("group", "epoch")]
        order = np.lexsort(both)
        group, epoch = (each[order] for each in both)
        new = np.ones(len(order), np.bool_)
        new[1:] = (epoch[1:] != epoch[:-1]) | (group[1:] != group[:-1])
        return cls(epoch[new], group[new])

    def places(self, epoch: UInt64, group: Int64) -> Int64:
        """Return which of the transactions, which are in order, some are; -1 for others. Shape of `epoch`."""
        if not len(self.epoch):
            return np.full(len(epoch), -1)
        epochs = np.unique(self.epoch)
        number = np.minimum(np.searchsorted(epochs, epoch), len(epochs) - 1)
        mine = np.searchsorted(epochs, self.epoch) << _GROUP_BITS | self.group
        code = number << _GROUP_BITS | group
        place = np.minimum(np.searchsorted(mine, code), len(mine) - 1)
        return np.where((epochs[number] == epoch) & (mine[place] == code), place, -1)

    def changes_among(self, rows: BucketRows) -> Int64:
        """Return how many of a cluster's changes each transaction has; updates that write no column do not count."""
        empty = (rows.operation == _UPDATE) & (rows.after_presence == Presence.NO_COLUMNS)
        places = self.places(rows.epoch, rows.group.astype(np.int64) - _LOWEST_GROUP)[~empty]
        return np.bincount(places[places >= 0], minlength=len(self.epoch))


def _rejected_in(result: BucketResult) -> Rejected:
    """Return the transactions with a rejected change in a bucket."""
    made = result.folded.decisions
    chosen = np.flatnonzero((made.verdict == Verdict.REJECTED) & (made.kind == OperationKind.CHANGE))
    group = made.group[chosen].astype(np.int64) - _LOWEST_GROUP
    code = (made.apply[chosen].astype(np.int64) << _GROUP_BITS) + group
    return Rejected(*_added(code, np.ones(len(code), np.int64)))


def partly_rejected(mine: Transactions, rejected: Int64, known: Transactions, changes: Int64) -> int:
    """
    Return of how many transactions some changes were rejected and others not.

    Args:
        mine: Transactions.
        rejected: How many changes of each were rejected. Shape (mine,).
        known: Transactions in order, these among them.
        changes: How many changes each of those has. Shape (known,).
    """
    return int(np.count_nonzero(changes[known.places(mine.epoch, mine.group)] > rejected))


def _added(code: Int64, counts: Int64) -> tuple[Int64, Int64]:
    """Return the different codes, ascending, and the sum of the counts of each; sorting is faster than hashing."""
    order = np.argsort(code, kind="stable")
    code, counts = code[order], counts[order]
    first = np.flatnonzero(np.diff(code, prepend=-1))
    return code[first], np.add.reduceat(counts, first) if len(first) else counts


@attrs.frozen(eq=False)
class BucketFigures:
    """
    The figures of a bucket.

    Attributes:
        counters: Per cluster, its status counters.
        tables: Per cluster and table, operations by verdict and cause, and refreshed rows.
        rejected: Transactions with a rejected change.
        lost: Per cluster, its changes that were rejected, those that were overwritten, and those of either kind.
        lost_by_table: Per table, changes that were lost.
        made: Per cluster, its changes.
        differing: Per table, rows that end different.
        rows: Per table, the keys that some change names.
        reflected: Per cluster, the rows that its applier reflected.
        logged: Per cluster, the rows that its applier logged.
        rowless: Per cluster, its updates and deletes that found no row.
        stopping: Per cluster, the first operation that stops its applier.
    """

    counters: dict[str, dict[str, int]]
    tables: dict[str, dict[str, dict[str, int]]]
    rejected: Rejected
    lost: dict[str, tuple[int, int, int]]
    lost_by_table: dict[str, int]
    made: dict[str, int]
    differing: dict[str, int]
    rows: dict[str, int]
    reflected: dict[str, int]
    logged: dict[str, int]
    rowless: dict[str, int]
    stopping: dict[str, StoppingOperation]


def written_in(bucket: Bucket) -> tuple[Written, Written]:
    """Return, per cluster, what its changes in a bucket do to their rows."""
    return written_by(bucket.rows, bucket.column_sets, (bucket.key_table, bucket.numbers.tables))


def bucket_figures(
    result: BucketResult, stopping: dict[str, StoppingOperation], written: tuple[Written, Written]
) -> BucketFigures:
    """
    Return the figures of a decided bucket.

    Args:
        result: The bucket.
        stopping: Per cluster, the first operation that stops its applier.
        written: What `written_in` returned for it.
    """
    bucket, folded, logged = result.bucket, result.folded, result.folded.logged
    names = [cluster.name for cluster in result.clusters]
    tables, keys = [table.full_name for table in bucket.numbers.tables], len(bucket.key_table)
    counted = dict(zip(names, count_bucket(result), strict=True))
    made = TimedDecisions(result.applies.applier, folded.own_end, folded.decisions)
    lost = lost_changes(made, [rows.key for rows in bucket.rows], written, keys)
    lost_keys = np.concatenate([rows.key[each.lost] for rows, each in zip(bucket.rows, lost, strict=True)])
    ended = BucketResult(bucket, result.clusters, result.applies, result.conflicts, folded.applied_alone())
    reader = ImageReader(bucket)
    reflected = logged.cluster[~logged.refresh]
    own = [int(np.count_nonzero(rows.operation <= LAST_OPERATION)) for rows in bucket.rows]
    return BucketFigures(
        counters={name: each.counters for name, each in counted.items()},
        tables={name: table_figures(tables, each.operations, each.refreshes) for name, each in counted.items()},
        rejected=_rejected_in(result),
        lost={
            name: (int(each.rejected.sum()), int(each.overwritten.sum()), int(each.lost.sum()))
            for name, each in zip(names, lost, strict=True)
        },
        lost_by_table=_counted(tables, bucket.key_table[lost_keys]),
        made=dict(zip(names, own, strict=True)),
        differing={name: count_unequal(ended, reader, number) for number, name in enumerate(tables)},
        rows=_counted(tables, bucket.key_table),
        reflected=_counted(names, reflected),
        logged=dict(zip(names, logged_rows(result.applies, keys, folded), strict=True)),
        rowless={name: int(folded.unexplained[number].sum()) for number, name in enumerate(names)},
        stopping=stopping,
    )


def _counted(names: Sequence[str], numbers: npt.NDArray[np.integer[Any]]) -> dict[str, int]:
    """Return how often the number of each name is among some numbers."""
    return dict(zip(names, np.bincount(numbers, minlength=len(names)).tolist(), strict=True))
