"""Transactions with a rejected change, and which of them were rejected in part."""

from pathlib import Path

import numpy as np
import pytest

import conflict
from conflict.engine.kernels.arrays import BucketRows, Presence
from conflict.whatif.comparing.rejected_transactions import Rejected, Transactions, partly_rejected
from ndb_formats.events.rows_event import Operation
from tests.corpora import DEMO

HIGH = 2**64 - 1  # an epoch that no signed number holds


def rows(*changes: tuple[int, int, Operation, Presence]) -> BucketRows:
    """Return changes of a cluster: epoch, group, operation, what the after image has."""
    epoch, group, operation, after = zip(*changes, strict=True)
    size = len(changes)
    none, zero = np.zeros(size, np.int8), np.zeros(size, np.uint64)
    return BucketRows(
        np.zeros(size, np.int32),
        np.array(operation, np.int8),
        np.array(epoch, np.uint64),
        np.array(group, np.int32),
        np.arange(size, dtype=np.int32),
        none,
        zero,
        np.array(after, np.int8),
        zero,
        none,
    )


def transactions(*pairs: tuple[int, int]) -> Transactions:
    """Return transactions: epoch, and group counted from 0."""
    epoch, group = zip(*pairs, strict=True) if pairs else ((), ())
    return Transactions(np.array(epoch, np.uint64), np.array(group, np.int64))


class TestTransactions:
    """Transactions are epochs and groups."""

    def test_union(self):
        """Each transaction is there once, by epoch and then group; epochs are unsigned."""
        union = Transactions.union([transactions((HIGH, 1), (3, 2)), transactions((3, 0), (HIGH, 1))])
        assert (union.epoch.tolist(), union.group.tolist()) == ([3, 3, HIGH], [0, 2, 1])

    def test_changes_of_other_transactions_do_not_count(self):
        """Nor do updates that write no column; a group of the rows is one less than that of a transaction."""
        plain = Operation.UPDATE_ROW, Presence.PRESENT
        wanted = transactions((3, 0), (3, 2), (HIGH, 1))
        bucket = rows(
            (3, -1, *plain),
            (3, 1, *plain),
            (3, 1, Operation.DELETE_ROW, Presence.NO_COLUMNS),
            (3, 1, Operation.UPDATE_ROW, Presence.NO_COLUMNS),
            (3, 2, *plain),
            (5, 0, *plain),
            (HIGH, 0, *plain),
        )
        assert wanted.changes_among(bucket).tolist() == [1, 2, 1]

    def test_without_transactions(self):
        """There is nothing to count."""
        assert transactions().changes_among(rows((3, 1, Operation.WRITE_ROW, Presence.PRESENT))).tolist() == []


@pytest.mark.parametrize(
    ("codes", "counted"), [([], {}), ([3], {3: 1}), ([7, 0, 7, 7, 0, 2**40], {0: 2, 7: 3, 2**40: 1})]
)
def test_transactions_of_several_buckets(codes: list[int], counted: dict[int, int]) -> None:
    """Each once, in order, with the changes of all buckets."""
    one = np.ones(1, np.int64)
    parts = [Rejected(one[:0], one[:0]), *(Rejected(each * one, one) for each in codes)]
    found = Rejected.added(parts)
    assert dict(zip(found.code.tolist(), found.changes.tolist(), strict=True)) == counted
    assert len(found) == len(counted)
    assert found.code.tolist() == sorted(counted)


def test_rejected_in_part():
    """Of two transactions with a rejected change, one lost all of its two changes, the other one of three."""
    buckets = [Rejected(np.array([4, 7]), np.array([1, 1])), Rejected(np.array([4]), np.array([1]))]
    together = Rejected.added(buckets)
    assert (together.code.tolist(), together.changes.tolist()) == ([4, 7], [2, 1])
    mine = transactions((3, 4), (3, 7))
    assert partly_rejected(mine, together.changes, mine, np.array([2, 3])) == 1


def from_outcomes(run: Path) -> tuple[int, int]:
    """Return the same figures, from every operation as the reference engine decided it."""
    found: dict[tuple[object, ...], set[bool]] = {}
    for row in conflict.resolve(run, engine="reference", all_outcomes=True).outcomes().to_pylist():
        if not row["refresh"] and row["group"] >= 0:
            transaction = row["applier"], row["source_epoch"], row["group"]
            found.setdefault(transaction, set()).add(row["verdict"] == "REJECTED")
    return sum(True in each for each in found.values()), sum(len(each) == 2 for each in found.values())


def test_of_a_recording():
    """A comparison counts what the outcomes of the run show."""
    compared = conflict.compare(DEMO / "run.toml", functions=["NDB$EPOCH2_TRANS()"])
    (used,) = [row.figures for row in compared.rows if row.used]
    (transactional,) = [row.figures for row in compared.rows if not row.used]
    assert used is not None
    assert transactional is not None
    counted = used.rejected_transactions, used.partly_rejected_transactions
    assert counted == from_outcomes(DEMO / "run.toml")
    assert counted[1] > 0
    assert transactional.partly_rejected_transactions == 0  # it rejects transactions as a whole
