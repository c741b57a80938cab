"""
What is not known of all buckets together, where the logs start in the middle: transactions, and moments of judging.

A transaction may be rejected if a decision on one of its rows is not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import attrs
import numpy as np

from conflict.engine.columnar.fixed_point import in_conflict
from conflict.engine.kernels.arrays import Bool, Conflicts, Int32, Int64


@attrs.frozen(eq=False)
class SettledRows:
    """
    What is known of the moments at which rows were judged, from the functions that were in force.

    Attributes:
        rows: By bucket, the rows that can have been judged before a change of their own cluster, and of which it is
            known when: epoch apply and row as one number each, sorted. Shape of each (rows,).
        contradicted: Epoch applies where the logs contradict what is known: some of their rows were judged earlier.
            Shape (applies,).
    """

    rows: Mapping[int, Int64]
    contradicted: Bool

    @classmethod
    def none(cls, applies: int) -> Self:
        """Return that none is known."""
        return cls({}, np.zeros(applies, np.bool_))

    def of(self, bucket: int, places: Int64) -> Bool:
        """Return which decisions of a bucket are on such rows; `places`: epoch apply and row of each, as one number."""
        return np.isin(places, self.rows.get(bucket, np.zeros(0, np.int64)))


@attrs.frozen(eq=False)
class Unsure:
    """
    What is not known under a pair of all buckets together.

    Attributes:
        conflicts: Transactions whose rejection is uncertain, per epoch apply.
        start: Per cluster, the epoch apply from which on any transaction may be one of them. Shape (clusters,).
        settled: What is known of the moments of judging.
    """

    conflicts: Conflicts
    start: Int64
    settled: SettledRows

    @classmethod
    def none(cls, applies: int, settled: SettledRows | None = None) -> Self:
        """Return that no transaction is unsure, as far as it is known; without `settled`, no moment of judging is."""
        nothing = Conflicts(np.zeros(applies + 1, np.int64), np.zeros(0, np.int32))
        known = settled is not None and len(settled.contradicted) == applies  # no applier stops
        return cls(nothing, np.full(2, applies, np.int64), settled if settled and known else SettledRows.none(applies))

    @property
    def pairs(self) -> Int64:
        """Epoch apply and group of each. Shape (transactions, 2)."""
        return _pairs(self.conflicts)

    def joined(self, pairs: Int64) -> Self:
        """Return more; `pairs` as the property."""
        both = np.unique(np.concatenate([self.pairs, pairs]), axis=0)
        counts = np.bincount(both[:, 0], minlength=len(self.conflicts.offsets) - 1)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return attrs.evolve(self, conflicts=Conflicts(offsets, both[:, 1].astype(np.int32)))

    def from_the_first_after(self, before: Self, judged: Bool) -> Self:
        """
        Take any transaction to be unsure from the first one on that a last round added.

        Args:
            before: Those before that round: what comes before the first new one is settled.
            judged: Which appliers may reject transactions. Shape (clusters,).
        """
        new = np.setxor1d(_codes(self.pairs), _codes(before.pairs)).min() >> 32
        return attrs.evolve(self, start=np.where(judged, new, self.start))

    def leave_out(self, conflicts: Conflicts) -> Conflicts:
        """Return the transactions in conflict that are certainly rejected; all are epoch applies of the same pair."""
        pairs = _pairs(conflicts)
        kept = ~np.isin(_codes(pairs), _codes(self.pairs)) & (pairs[:, 0] < self.start.min())
        counts = np.bincount(pairs[kept, 0], minlength=len(conflicts.offsets) - 1)
        return Conflicts(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), conflicts.groups[kept])


@attrs.frozen(eq=False)
class UnsureFindings:
    """
    What a bucket shows of transactions that may be rejected: epoch apply and group, shape (transactions, 2).

    Attributes:
        unsure: Those with a decision that is not known.
        rejected: Those with a conflict that is known.
        dependencies: Epoch apply, group, and a group that depends on it. Shape (pairs, 3).
        settled: What `SettledRows.rows` has of the bucket, if the functions were in force.
        contradicted: What `SettledRows.contradicted` has, likewise.
    """

    unsure: Int64
    rejected: Int64
    dependencies: Int64
    settled: Int64
    contradicted: Bool

    @classmethod
    def transactions(cls, parts: Sequence[Self]) -> Int64:
        """Return epoch apply and group of all transactions that may be rejected, and may not."""
        unsure, rejected, links = (
            np.concatenate([getattr(each, name) for each in parts]) for name in ("unsure", "rejected", "dependencies")
        )
        may_be, are = in_conflict(_int32(unsure), _int32(links)), in_conflict(_int32(rejected), _int32(links))
        return may_be[~np.isin(_codes(may_be), _codes(are))]


def _pairs(conflicts: Conflicts) -> Int64:
    counts = np.diff(conflicts.offsets)
    return np.stack([np.repeat(np.arange(len(counts)), counts), conflicts.groups.astype(np.int64)], axis=1)


def _codes(pairs: Int64) -> Int64:
    """Return epoch apply and group as one number each; groups start at -1."""
    return (pairs[:, 0] << 32) + pairs[:, 1] + 1


def _int32(columns: Int64) -> Int32:
    return columns.astype(np.int32)
