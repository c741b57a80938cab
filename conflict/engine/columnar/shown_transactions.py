"""
What the binlogs show of transactions in the epochs with transactions in conflict, where the log starts in the middle.

Every row of a rejected transaction is refreshed. The last transaction that touched a refreshed row was rejected.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from conflict.engine.columnar.folded_bucket import FoldedBucket
from conflict.engine.kernels.arrays import Bool, EpochApplies, Int64, OperationKind
from conflict.history.shown_effects import Effect

# Epoch apply and group
Transaction = tuple[int, int]


@attrs.frozen(eq=False)
class TouchedTransactions:
    """
    The transactions that touched rows of a bucket, of the epoch applies with transactions in conflict.

    Attributes:
        passed: Epoch apply and group of those with a row that was not refreshed. Shape (transactions, 2).
        refreshed: Epoch apply, row and group of the operations on refreshed rows, in order. Shape (operations, 3).
    """

    passed: Int64
    refreshed: Int64


@attrs.frozen(eq=False)
class ShownTransactions:
    """What is shown; see `conflict.engine.inference.observed.KnownTransactions`. Each holds epoch apply and group."""

    passed: frozenset[Transaction] = frozenset()
    last_touching: frozenset[Transaction] = frozenset()
    alone: frozenset[Transaction] = frozenset()


def touched_transactions(result: FoldedBucket) -> TouchedTransactions:
    """Return the transactions that touched the rows of a decided bucket."""
    decisions, keys = result.folded.decisions, len(result.bucket.key_table)
    with_conflicts = np.diff(result.conflicts.offsets) > 0
    chosen = np.flatnonzero(with_conflicts[decisions.apply] & (decisions.kind != OperationKind.EMPTY))
    apply, key, group = (
        column[chosen].astype(np.int64) for column in (decisions.apply, decisions.key, decisions.group)
    )
    refreshed = np.isin(apply * keys + key, _refreshed(result, with_conflicts))
    passed = np.unique(np.stack([apply, group], axis=1)[~refreshed], axis=0)
    return TouchedTransactions(passed, np.stack([apply, key, group], axis=1)[refreshed])


def refreshing_applies(result: FoldedBucket, chosen: Bool) -> Int64:
    """Return the numbers of those of some epoch applies that refreshed rows of a bucket, as the binlogs show."""
    return np.unique(_refreshed(result, chosen) // max(len(result.bucket.key_table), 1))


def _refreshed(result: FoldedBucket, chosen: Bool) -> Int64:
    """Return epoch apply and row of the rows that the binlogs show as refreshed, as one number each."""
    applies, keys = result.applies, len(result.bucket.key_table)
    found = [np.zeros(0, np.int64)]
    for side, consequences in enumerate(result.bucket.consequences):
        effect = consequences.array("effect")
        rows = np.flatnonzero((effect == Effect.REFRESHED) | (effect == Effect.REFRESHED_ABSENT))
        at = _places(applies, side, chosen)
        epochs, groups = (consequences.of_rows(name, rows).tolist() for name in ("epoch", "group"))
        number = np.array([at.get(place, -1) for place in zip(epochs, groups, strict=True)], np.int64)
        key = consequences.of_rows("key", rows).astype(np.int64)
        found.append((number * keys + key)[number >= 0])
    return np.concatenate(found)


def _places(applies: EpochApplies, side: int, chosen: Bool) -> dict[tuple[int, int], int]:
    """Return, by own epoch and group, the numbers of some traced epoch applies of an applier."""
    mine = np.flatnonzero((applies.applier == side) & applies.traced & chosen)
    places = zip(applies.epoch[mine].tolist(), applies.group[mine].tolist(), strict=True)
    return dict(zip(places, mine.tolist(), strict=True))


def shown_transactions(parts: Sequence[TouchedTransactions]) -> ShownTransactions:
    """Return what all buckets together tell."""
    passed = frozenset((apply, group) for part in parts for apply, group in part.passed.tolist())
    last_touching, rows = set[Transaction](), dict[Transaction, set[tuple[int, int]]]()
    for number, part in enumerate(parts):
        last: dict[tuple[int, int], Transaction] = {}
        for apply, key, group in part.refreshed.tolist():
            if (apply, group) not in passed:
                last[apply, key] = apply, group
                rows.setdefault((apply, group), set()).add((number, key))
        last_touching.update(last.values())
    alone = frozenset(transaction for transaction, touched in rows.items() if len(touched) == 1)
    return ShownTransactions(passed, frozenset(last_touching), alone)
