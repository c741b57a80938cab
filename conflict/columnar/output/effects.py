"""
Compares what appliers do to a bucket's rows with what their binlogs show.

Computes `compared_with_binlogs` and `contradicted_by_binlogs` of docs/run-file.md, "run.json".
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from conflict.columnar.bucket_result import BucketResult
from conflict.columnar.kernels.arrays import Int8, Int32, Int64, UInt64, each_read_only, read_only
from conflict.columnar.kernels.effects import DecidedRows, SentRows, ShownRows, compare, in_order, touched_rows
from conflict.columnar.kernels.records import packed_changes, packed_schedule
from conflict.columnar.kernels.search import open_start
from conflict.history.reconcile import MAX_CONTRADICTIONS

__all__ = ["Difference", "Differing", "DifferingRows", "compare_effects"]

# Number of the applier, own epoch and group of an epoch apply.
Applied = tuple[int, int, int]


@attrs.frozen
class Difference:
    """
    An epoch apply of which the binlog shows other effects.

    Attributes:
        rows: Number of rows of the bucket that differ.
        changed_at: Epoch and group of the cluster's own changes of these rows while its applier may have been applying
            the epoch.
    """

    rows: int = 0
    changed_at: frozenset[tuple[int, int]] = frozenset()

    def __add__(self, other: Difference) -> Difference:
        return Difference(self.rows + other.rows, self.changed_at | other.changed_at)


@attrs.frozen(eq=False)
class DifferingRows:
    """
    Rows of which a binlog shows another effect, or other values, than were derived. All arrays have shape (rows,).

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
        compared: Number of rows, per epoch apply, that either has.
        rows: Those that differ, per applier.
        applies: The epoch applies that differ, the first `MAX_CONTRADICTIONS` + 1 of each applier: with more, nothing
            is explained.
    """

    compared: int
    rows: tuple[DifferingRows, ...]
    applies: Mapping[Applied, Difference]


def compare_effects(result: BucketResult, *, with_applies: bool) -> Differing:
    """
    Compare the effects of both appliers with what their binlogs show.

    Args:
        result: A decided bucket.
        with_applies: Return which epoch applies differ too.
    """
    compared, differing = 0, []
    applies: dict[Applied, Difference] = {}
    for number in range(len(result.clusters)):
        count, rows = _compare(result, number)
        compared += count
        differing.append(rows)
        if with_applies:
            applies.update(_differing_applies(result, number, rows.of_kinds()))
    return Differing(compared, tuple(differing), applies)


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
    if in_order(read_only(shown[0]), read_only(shown[1])):
        return shown
    order = np.lexsort((shown[1], shown[0]))
    return [column[order] for column in shown]


def _differing_applies(result: BucketResult, number: int, rows: DifferingRows) -> dict[Applied, Difference]:
    """Return the first epoch applies of an applier that differ, given the differing rows."""
    found: dict[Applied, Difference] = {}
    for epoch, group, key in zip(rows.epoch.tolist(), rows.group.tolist(), rows.key.tolist(), strict=True):
        applied = (number, epoch, group)
        if applied not in found and len(found) > MAX_CONTRADICTIONS:
            break
        found[applied] = found.get(applied, Difference()) + Difference(1, _changed_at(result, applied, key))
    return found


def _changed_at(result: BucketResult, applied: Applied, key: int) -> frozenset[tuple[int, int]]:
    """Return epoch and group of a cluster's own changes of a row while its applier may have applied an epoch."""
    number, epoch, group = applied
    applies, rows = result.applies, result.bucket.rows[number]
    here = (applies.applier == number) & (applies.epoch == epoch) & (applies.group == group) & applies.traced
    schedule, changes = packed_schedule(applies), packed_changes(result.bucket.rows)
    changed: set[tuple[int, int]] = set()
    for apply in np.flatnonzero(here).tolist():
        first = open_start(apply, schedule, changes) - changes.begin[number]
        meanwhile = slice(int(first), int(result.folded.own_end[apply]))
        mine = np.flatnonzero(rows.key[meanwhile] == key) + meanwhile.start
        changed.update(zip(rows.epoch[mine].tolist(), rows.group[mine].tolist(), strict=True))
    return frozenset(changed)
