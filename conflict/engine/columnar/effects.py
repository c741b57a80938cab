"""
Compares what appliers do to a bucket's rows with what their binlogs show.

Computes `compared_with_binlogs` and `contradicted_by_binlogs` of docs/result.md, "run.json".
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import attrs
import numpy as np

from conflict.engine.columnar.bucket_result import BucketResult
from conflict.engine.kernels.arrays import Int8, Int32, Int64, UInt64, each_read_only, read_only
from conflict.engine.kernels.effects import DecidedRows, SentRows, ShownRows, compare, in_order, touched_rows
from conflict.history.scheduling.placing import MAX_CONTRADICTIONS

__all__ = ["Differing", "DifferingRows", "compare_effects"]

# Number of the applier, own epoch and group of an epoch apply.
Applied = tuple[int, int, int]


@attrs.frozen(eq=False)
class DifferingRows:
    """
    Rows for which a binlog shows another effect, or other values, than were derived. All arrays have shape (rows,).

    Attributes:
        epoch: Own epoch of the epoch apply.
        group: Group of that epoch.
        key: The row.
        derived: The effect that was derived, bit n for effect n; 0 for none. int8.
        shown: The effects in the binlog, bit n for effect n; 0 for none. int8.
    """

    epoch: UInt64
    group: Int32
    key: Int64
    derived: Int8
    shown: Int8

    def __len__(self) -> int:
        return len(self.key)

    def of_kinds(self) -> DifferingRows:
        """Return those that differ in their effect, not in values alone."""
        kept = self.derived != self.shown
        return DifferingRows(*(each[kept] for each in attrs.astuple(self, recurse=False)))


@attrs.frozen(eq=False)
class Differing:
    """
    How the effects of both appliers compare with what their binlogs show.

    Attributes:
        compared: Number of rows, per epoch apply, that either has, per applier.
        rows: Those that differ, per applier.
        applies: The epoch applies that differ, the first `MAX_CONTRADICTIONS` + 1 of each applier: with more, nothing
            is explained.
    """

    compared: tuple[int, ...]
    rows: tuple[DifferingRows, ...]
    applies: AbstractSet[Applied]


def compare_effects(result: BucketResult, *, with_applies: bool) -> Differing:
    """
    Compare the effects of both appliers with what their binlogs show.

    Args:
        result: A decided bucket.
        with_applies: Return which epoch applies differ too.
    """
    compared, differing = zip(*(_compare(result, number) for number in range(len(result.clusters))), strict=True)
    applies: set[Applied] = set()
    for number, rows in enumerate(differing if with_applies else ()):
        applies |= _differing_applies(number, rows.of_kinds())
    return Differing(compared, differing, applies)


def _compare(result: BucketResult, number: int) -> tuple[int, DifferingRows]:
    """Return the number of an applier's rows that were compared, and those that differ."""
    decisions, logged, applies = result.folded.decisions, result.folded.logged, result.applies
    keys = len(result.bucket.key_table)
    mine = np.flatnonzero(logged.refresh & (logged.cluster == number))
    decided = DecidedRows(*each_read_only(*(getattr(decisions, name) for name in DecidedRows._fields)))
    sent = SentRows(*each_read_only(*(getattr(logged, name)[mine] for name in SentRows._fields)))
    given = result.bucket.changes[1 - number].array("after_digest")
    apply, key, effect, digest = touched_rows(number, read_only(applies.applier), decided, sent, read_only(given), keys)
    found = ShownRows(*each_read_only(applies.epoch[apply], applies.group[apply], key, effect, digest))
    shown = ShownRows(*each_read_only(*_shown(result, number)))
    count, *differing = compare(found, apply, shown, keys)
    return count, DifferingRows(*differing)


def _shown(result: BucketResult, number: int) -> list[np.ndarray]:
    """Return the columns of `ShownRows` that an applier's binlog shows, in order."""
    names = ("epoch", "group", "key", "effect", "after_digest")
    result.bucket.consequences[number].read(names)
    shown = [result.bucket.consequences[number].array(name) for name in names]
    if result.older is not None:
        told = ~result.older.left_open[shown[2]]
        shown = [column[told] for column in shown]
    if in_order(read_only(shown[0]), read_only(shown[1])):
        return shown
    order = np.lexsort((shown[1], shown[0]))
    return [column[order] for column in shown]


def _differing_applies(number: int, rows: DifferingRows) -> set[Applied]:
    """Return the first epoch applies of an applier that differ, given the differing rows."""
    found: set[Applied] = set()
    for epoch, group in zip(rows.epoch.tolist(), rows.group.tolist(), strict=True):
        found.add((number, epoch, group))
        if len(found) > MAX_CONTRADICTIONS:
            break
    return found
