"""
Changes of a bucket that were lost. Computes docs/compare.md, "Lost updates".

A committed change is lost if the other cluster rejected it, or if a change of the other cluster overwrote columns that
it wrote and had not seen it: it was committed before its cluster applied the lost one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import attrs
import numpy as np

from conflict.columnar.kernels.arrays import (
    Bool,
    BucketRows,
    EpochApplies,
    Int8,
    Int16,
    Int32,
    Int64,
    OperationKind,
    UInt64,
    each_read_only,
    read_only,
)
from conflict.columnar.kernels.fold import Folded
from conflict.columnar.kernels.provenance_records import ColumnSets, ImageArrays
from conflict.rules.decision import Verdict
from ndb_formats.columnar.kernel import kernel
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.tables import Table

__all__ = ["LAST_OPERATION", "LostChanges", "Written", "lost_changes", "written_by"]

WORD = 64
APPLIED, REJECTED = int(Verdict.APPLIED), int(Verdict.REJECTED)
INSERT, DELETE = int(Operation.WRITE_ROW), int(Operation.DELETE_ROW)
LAST_OPERATION = max(map(int, Operation))
OWN = int(OperationKind.CHANGE)
NEVER = np.iinfo(np.int64).max


@attrs.frozen(eq=False)
class LostChanges:
    """
    What was lost of the changes of one cluster. All arrays have the shape of its `BucketRows`.

    Attributes:
        rejected: Whether the other cluster rejected the change.
        overwritten: Whether a change that had not seen it overwrote it.
    """

    rejected: Bool
    overwritten: Bool

    @property
    def lost(self) -> Bool:
        """Whether the change was lost in either way."""
        return self.rejected | self.overwritten


class _Row(NamedTuple):
    """What an insert or a delete concerns: the columns of the row, that it was made, that it was taken away."""

    columns: bool
    made: bool
    taken: bool


# What the user of a change wanted; what a later change of the same cluster leaves nothing of; what a foreign change
# overwrites: an insert over a delete makes the row again, and over an insert changes its columns alone.
INSERTED, DELETED = _Row(True, True, False), _Row(False, False, True)
EVERYTHING = _Row(True, True, True)
OVER_DELETED, OVER_INSERTED = _Row(True, False, True), _Row(True, True, False)


class Judged(NamedTuple):
    """
    All decisions, and when they were made.

    Attributes:
        applier: See `EpochApplies`. int8, shape (applies,).
        own_end: See `Folded`. int64, shape (applies,).
        apply: See `Decisions`, as the rest. int32, shape (operations,).
        source: Row number in the source's rows. int32.
        key: Its row. int32.
        kind: `OperationKind`. int8.
        verdict: `Verdict`. int8.
    """

    applier: Int8
    own_end: Int64
    apply: Int32
    source: Int32
    key: Int32
    kind: Int8
    verdict: Int8


class OwnChanges(NamedTuple):
    """
    The changes of a cluster.

    Attributes:
        key: Row of each. int32, shape (changes,).
        written: What each wrote, a bit each (see `_words`). uint64, shape (changes, words).
        hides: What it leaves nothing of that was written before. uint64, shape (changes, words).
        seen: Number of the other cluster's first change that had seen each. int64, shape (changes,).
    """

    key: Int32
    written: UInt64
    hides: UInt64
    seen: Int64


@attrs.frozen(eq=False)
class Written:
    """
    What the changes of one cluster do to their rows, a bit each (see `_words`). All arrays: shape (changes, words).

    Attributes:
        wanted: What the user of each change wanted.
        hidden: What it leaves nothing of that was written before.
        overwrites: What it overwrites of the other cluster's changes.
    """

    wanted: UInt64
    hidden: UInt64
    overwrites: UInt64


def written_by(
    rows: Sequence[BucketRows],
    images: tuple[ColumnSets, Sequence[ImageArrays]],
    keys: tuple[Int16, Sequence[Table]],
) -> tuple[Written, Written]:
    """
    Return, per cluster, what its changes do to their rows; the same under all functions.

    An update writes the columns of its after image but those of the key. An insert writes all columns and makes the
    row; a delete takes it away.

    Args:
        rows: As given to `fold`.
        images: The column sets, and per cluster the sets of the rows' images.
        keys: Table number of each key, shape (keys,); the tables.
    """
    (sets, sides), (key_table, tables) = images, keys
    values = [[place for place in range(len(each.columns)) if place not in each.key_ordinals] for each in tables]
    widest = max([0, *sets.columns.tolist(), *(len(each.columns) for each in tables)]) + 1
    carried, stored = _bitmaps(sets, widest), _bitmaps(_sets_of(values), widest)

    def written(side: BucketRows, image: ImageArrays) -> Written:
        columns = stored[key_table[side.key]]
        plain = side.operation, carried[image.after] & columns, columns, widest
        kinds = (INSERTED, DELETED), (EVERYTHING, EVERYTHING), (OVER_DELETED, OVER_INSERTED)
        return Written(*(read_only(_words(*plain, *each)) for each in kinds))

    first, second = map(written, rows, sides)
    return first, second


def lost_changes(
    applies: EpochApplies, rows: Sequence[BucketRows], written: tuple[Written, Written], keys: int, folded: Folded
) -> tuple[LostChanges, LostChanges]:
    """
    Return, per cluster, which of its changes were lost.

    Args:
        applies: As given to `fold`.
        rows: As given to `fold`.
        written: What `written_by` returned for them.
        keys: Number of keys.
        folded: What `fold` returned.
    """
    decisions = folded.decisions
    made = (decisions.apply, decisions.source, decisions.key, decisions.kind, decisions.verdict)
    judged = Judged(*each_read_only(applies.applier, folded.own_end, *made))
    found = []
    for own in (0, 1):
        seen, rejected = _delivered(1 - own, judged, len(rows[own]))
        mine, other = written[own], written[1 - own]
        changes = OwnChanges(*each_read_only(rows[own].key, mine.wanted, mine.hidden, seen))
        found.append(LostChanges(rejected, _overwritten(own, judged, changes, other.overwrites, keys)))
    return found[0], found[1]


def _bitmaps(sets: ColumnSets, widest: int) -> UInt64:
    """Return the columns of each set, a bit each, and room for two bits more. Shape (sets, words)."""
    words = np.zeros((len(sets.offsets) - 1, -(-(widest + 2) // WORD)), np.uint64)
    owner = np.repeat(np.arange(len(words)), np.diff(sets.offsets))
    bits = np.uint64(1) << (sets.columns % WORD).astype(np.uint64)
    np.bitwise_or.at(words, (owner, sets.columns // WORD), bits)
    return words


def _sets_of(columns: Sequence[Sequence[int]]) -> ColumnSets:
    offsets = np.cumsum([0, *map(len, columns)]).astype(np.int64)
    return ColumnSets(offsets, np.array([column for each in columns for column in each], np.int32))


def _words(operation: Int8, updated: UInt64, columns: UInt64, widest: int, insert: _Row, delete: _Row) -> UInt64:
    """
    Return a set of what each change concerns, a bit each: columns, that the row was made, that it was taken away.

    Args:
        operation: `Operation` of each change. Shape (changes,).
        updated: The columns of its after image but the key. Shape (changes, words).
        columns: All columns of its row but the key. Shape (changes, words).
        widest: Number of columns; the two bits from there on are those of the row.
        insert: What an insert concerns.
        delete: What a delete concerns.
    """
    words = updated.copy()
    for kind, row in ((INSERT, insert), (DELETE, delete)):
        chosen = operation == kind
        words[chosen] = columns[chosen] if row.columns else 0
        bits = [widest + place for place, on in enumerate((row.made, row.taken)) if on]
        words[chosen] |= _bitmaps(_sets_of([bits]), widest)[0]
    words[operation > LAST_OPERATION] = 0
    return words


@kernel
def _delivered(receiver, judged, size):
    """
    Return when and how the other cluster received the changes of a cluster.

    Returns:
        The number of the receiver's first own change after it applied each, `NEVER` if it did not receive it, int64;
        and whether it rejected each, bool. Shape (size,).
    """
    seen, rejected = np.full(size, NEVER, np.int64), np.zeros(size, np.bool_)
    for decision in range(len(judged.apply)):
        number, apply = judged.source[decision], judged.apply[decision]
        if judged.applier[apply] == receiver and number >= 0:
            seen[number] = min(seen[number], judged.own_end[apply])
            if judged.kind[decision] == OWN and judged.verdict[decision] == REJECTED:
                rejected[number] = True
    return seen, rejected


@kernel
def _overwritten(side, judged, own, foreign, keys):
    """
    Return which own changes of a cluster were overwritten by changes that it applied and that had not seen them.

    Args:
        side: The cluster.
        judged: All decisions.
        own: Its changes.
        foreign: What each change of the other cluster overwrites, a bit each. Shape (its changes, words).
        keys: Number of rows.
    """
    lost = np.zeros(len(own.key), np.bool_)
    last, previous = np.full(keys, -1, np.int32), np.full(len(own.key), -1, np.int32)
    left, done = np.zeros(foreign.shape[1], np.uint64), 0
    for decision in range(len(judged.apply)):
        number, apply = judged.source[decision], judged.apply[decision]
        if judged.applier[apply] != side:
            continue
        for place in range(done, judged.own_end[apply]):
            previous[place], last[own.key[place]] = last[own.key[place]], place
        done = max(done, judged.own_end[apply])
        if number < 0 or judged.kind[decision] != OWN or judged.verdict[decision] != APPLIED:
            continue
        left[:] = foreign[number]
        place = last[judged.key[decision]]
        # From the last change back: what a later own change wrote over, the foreign one does not take away.
        while place >= 0 and own.seen[place] > number and left.any():
            hit = False
            for word in range(len(left)):
                hit |= (left[word] & own.written[place, word]) != 0
                left[word] &= ~own.hides[place, word]
            lost[place] |= hit
            place = previous[place]
    return lost
