"""
Users' transactions with a rejected change, and whether all of it was. Computes docs/compare.md, "Figures".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import attrs
import numpy as np

from conflict.engine.columnar.folded_bucket import FoldedBucket
from conflict.engine.kernels.arrays import (
    Bool,
    BucketRows,
    EpochApplies,
    Int64,
    OperationKind,
    Presence,
    UInt64,
)
from conflict.rules.decision import Verdict
from ndb_formats.events.rows_event import Operation

# A group of an epoch takes the low half of a code; groups start at -1.
_GROUP_BITS, _LOWEST_GROUP = 32, -1


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

    def changes_among(self, rows: BucketRows, counting: Bool | None = None) -> Int64:
        """
        Return how many of a cluster's changes each transaction has; updates that write no column do not count.

        `counting`: the changes that count; None for all. Shape (rows,).
        """
        left_out = (rows.operation == int(Operation.UPDATE_ROW)) & (rows.after_presence == Presence.NO_COLUMNS)
        left_out = left_out if counting is None else left_out | ~counting
        places = self.places(rows.epoch, rows.group.astype(np.int64) - _LOWEST_GROUP)[~left_out]
        return np.bincount(places[places >= 0], minlength=len(self.epoch))


def rejected_in(result: FoldedBucket) -> Rejected:
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
