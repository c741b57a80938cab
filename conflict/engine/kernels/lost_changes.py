"""
Changes that were lost: `conflict.rules.lost_updates` over arrays, for what binlogs hold and for what a simulation made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import attrs
import numpy as np

from conflict.engine.kernels.arrays import (
    Bool,
    BucketRows,
    Decisions,
    Int8,
    Int16,
    Int32,
    Int64,
    OperationKind,
    UInt64,
)
from conflict.engine.kernels.provenance_records import ColumnSets, ImageArrays
from conflict.engine.kernels.rules import is_delete_delete
from conflict.history.grid.schemas import RowStep
from conflict.rules.decision import Cause, Verdict
from conflict.rules.lost_updates import HIDDEN, OVERWRITTEN, WRITTEN, Parts
from ndb_formats.columnar.kernel import each_read_only, kernel
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.tables import Table

WORD = 64
APPLIED, REJECTED = int(Verdict.APPLIED), int(Verdict.REJECTED)
MISSING, TRANSACTION = int(Cause.ROW_DOES_NOT_EXIST), int(Cause.TRANS_IN_CONFLICT)
WRITE, DELETE = int(Operation.WRITE_ROW), int(Operation.DELETE_ROW)
LAST_OPERATION = max(map(int, Operation))
OWN = int(OperationKind.CHANGE)
NEVER = np.iinfo(np.int64).max


@attrs.frozen(eq=False)
class LostChanges:
    """
    What was lost of the changes of one cluster. bool, shape (changes,).

    Attributes:
        rejected: Whether the other cluster rejected the change, and that lost it.
        overwritten: Whether a change that had not seen it overwrote it.
    """

    rejected: Bool
    overwritten: Bool

    @property
    def lost(self) -> Bool:
        """Whether the change was lost in either way."""
        return self.rejected | self.overwritten


@attrs.frozen(eq=False)
class TimedDecisions:
    """
    All decisions on the changes of both clusters, and when they were made.

    Attributes:
        applier: See `EpochApplies`. int8, shape (applies,).
        own_end: See `Folded`. int32, shape (applies,).
        decisions: The decisions.
    """

    applier: Int8
    own_end: Int32
    decisions: Decisions


class Judged(NamedTuple):
    """
    All decisions, and when they were made.

    Attributes:
        applier: See `EpochApplies`. int8, shape (applies,).
        own_end: See `Folded`. int32, shape (applies,).
        apply: See `Decisions`, as the rest. int32, shape (operations,).
        source: Row number in the source's rows. int32.
        key: Its row. int32.
        operation: `Operation`. int8.
        kind: `OperationKind`. int8.
        verdict: `Verdict`. int8.
        cause: `Cause`. int8.
    """

    applier: Int8
    own_end: Int32
    apply: Int32
    source: Int32
    key: Int32
    operation: Int8
    kind: Int8
    verdict: Int8
    cause: Int8


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
    What the changes of one cluster do to their rows: a bit for each part of the row, as `written_parts` has them.

    All arrays: uint64, shape (changes, words).

    Attributes:
        wanted: What the user of each change wanted.
        hidden: What it leaves nothing of that its cluster wrote before.
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

    An update writes the columns of its after image but those of the key.

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
        updated = np.where(image.after[:, np.newaxis] < 0, np.uint64(0), carried[image.after] & columns)
        return written_parts(side.operation, (updated, updated), columns, widest)

    first, second = map(written, rows, sides)
    return first, second


def whole_images(
    rows: Sequence[BucketRows],
    images: tuple[ColumnSets, Sequence[ImageArrays]],
    keys: tuple[Int16, Sequence[Table]],
) -> tuple[Bool, Bool]:
    """Return, per cluster, whether the after image of each change has all stored columns; arguments: `written_by`."""
    (sets, sides), (key_table, tables) = images, keys
    stored = [[place for place, column in enumerate(each.columns) if column.generated != "virtual"] for each in tables]
    widest = max([0, *sets.columns.tolist(), *(len(each.columns) for each in tables)]) + 1
    carried, wanted = _bitmaps(sets, widest), _bitmaps(_sets_of(stored), widest)

    def whole(side: BucketRows, image: ImageArrays) -> Bool:
        columns = wanted[key_table[side.key]]
        return np.asarray((carried[image.after] & columns == columns).all(axis=1) & (image.after >= 0))

    first, second = map(whole, rows, sides)
    return first, second


def written_parts(operation: Int8, updated: tuple[UInt64, UInt64], columns: UInt64, row_bit: int) -> Written:
    """
    Return what changes do to their rows, in words of bits. Shape (changes,) and (changes, words).

    Args:
        operation: `Operation` of each change as it was logged.
        updated: The columns that it set, and those that its after image carries; without those of the key.
        columns: All columns of its row without those of the key.
        row_bit: That the row is there has this bit, that it is gone the next one; columns have others.
    """
    wanted, hidden = (_words(operation, updated[0], columns, row_bit, each) for each in (WRITTEN, HIDDEN))
    return Written(*each_read_only(wanted, hidden, _words(operation, updated[1], columns, row_bit, OVERWRITTEN)))


def own_causes(decisions: Decisions, tracked: Decisions, deletes_conflict: Bool) -> Int8:
    """
    Return the cause of each decision; of a delete that put its transaction in conflict, as its row was gone, its own.

    Args:
        decisions: The decisions.
        tracked: Those of pass TRACK.
        deletes_conflict: Whether such a delete does, as the function is; see `FunctionSpec.delete_delete_conflicts`.
            Shape (operations,).
    """
    deleted = (decisions.operation == DELETE) & (decisions.cause == TRANSACTION) & deletes_conflict
    gone = (tracked.operation == DELETE) & (tracked.cause == MISSING)
    ids = [
        each.apply[chosen].astype(np.int64) << 32 | each.source[chosen].astype(np.int64) & 0xFFFFFFFF
        for each, chosen in ((decisions, deleted), (tracked, gone))
    ]
    causes = decisions.cause.copy()
    causes[np.flatnonzero(deleted)[np.isin(*ids)]] = MISSING
    return causes


def lost_changes(
    made: TimedDecisions, keys: Sequence[Int32], written: Sequence[Written], rows: int
) -> list[LostChanges]:
    """
    Return, per cluster, which of its changes were lost.

    Args:
        made: The decisions on them.
        keys: Per cluster, the row of each of its changes.
        written: Per cluster, what its changes do to their rows.
        rows: Number of rows.
    """
    return [
        LostChanges(rejected, by >= 0) for rejected, by in (_lost(own, made, keys, written, rows) for own in (0, 1))
    ]


def overwriting(
    made: TimedDecisions, keys: Sequence[Int32], written: Sequence[Written], rows: int
) -> tuple[Int32, Int32]:
    """
    Return, per cluster, which decision first overwrote each of its changes with one that had not seen it; -1 for none.

    Shape (changes,); arguments as of `lost_changes`.
    """
    first, second = (_lost(own, made, keys, written, rows)[1] for own in (0, 1))
    return first, second


def _lost(
    own: int, made: TimedDecisions, keys: Sequence[Int32], written: Sequence[Written], rows: int
) -> tuple[Bool, Int32]:
    """Return which changes of a cluster were rejected, and which decision overwrote each."""
    names = Judged._fields[2:]
    judged = Judged(*each_read_only(made.applier, made.own_end, *(getattr(made.decisions, name) for name in names)))
    seen, rejected = _delivered(1 - own, judged, len(keys[own]))
    changes = OwnChanges(*each_read_only(keys[own], written[own].wanted, written[own].hidden, seen))
    (foreign,) = each_read_only(written[1 - own].overwrites)
    return rejected, _overwritten(own, judged, changes, foreign, rows)


def _bitmaps(sets: ColumnSets, row_bit: int) -> UInt64:
    """Return the columns of each set, a bit each, with room for those of the row. Shape (sets, words)."""
    words = np.zeros((len(sets.offsets) - 1, -(-(row_bit + 2) // WORD)), np.uint64)
    owner = np.repeat(np.arange(len(words)), np.diff(sets.offsets))
    bits = np.uint64(1) << (sets.columns % WORD).astype(np.uint64)
    np.bitwise_or.at(words, (owner, sets.columns // WORD), bits)
    return words


def _sets_of(columns: Sequence[Sequence[int]]) -> ColumnSets:
    offsets = np.cumsum([0, *map(len, columns)]).astype(np.int64)
    return ColumnSets(offsets, np.array([column for each in columns for column in each], np.int32))


def _words(
    operation: Int8, updated: UInt64, columns: UInt64, row_bit: int, meaning: Mapping[Operation, Parts]
) -> UInt64:
    """Return the parts of its row that each change concerns, as `parts` of `conflict.rules.lost_updates` does."""
    words = updated.copy()
    partial = (operation == WRITE) & (updated != columns).any(axis=1)
    for kind, row in meaning.items():
        chosen = (operation == int(kind)) & ~partial
        words[chosen] = columns[chosen] if row.columns else 0
        words[chosen] |= _row_words(row, row_bit, words.shape[1])
    if meaning is OVERWRITTEN:
        words[partial] |= _row_words(Parts(columns=False, there=False, gone=True), row_bit, words.shape[1])
    words[operation > LAST_OPERATION] = 0
    if meaning is HIDDEN:
        words[operation == RowStep.EMPTIED] = ~np.uint64(0)
    return words


def _row_words(row: Parts, row_bit: int, words: int) -> UInt64:
    """Return the bits of a row: that it is there, that it is gone. Shape (words,)."""
    found = np.zeros(words, np.uint64)
    for place, on in ((row_bit, row.there), (row_bit + 1, row.gone)):
        found[place // WORD] |= np.uint64(on) << np.uint64(place % WORD)
    return found


@kernel
def _delivered(receiver, judged, size):
    """
    Return when and how the other cluster received the changes of a cluster.

    Returns:
        The number of the receiver's first own change after it applied each, `NEVER` if it did not receive it, int64;
        and whether it rejected each in a way that loses it, bool. Shape (size,).
    """
    seen, rejected = np.full(size, NEVER, np.int64), np.zeros(size, np.bool_)
    for decision in range(len(judged.apply)):
        number, apply = judged.source[decision], judged.apply[decision]
        if judged.applier[apply] == receiver and number >= 0:
            seen[number] = min(seen[number], judged.own_end[apply])
            gone = is_delete_delete(judged.operation[decision], judged.cause[decision])
            if judged.kind[decision] == OWN and judged.verdict[decision] == REJECTED and not gone:
                rejected[number] = True
    return seen, rejected


@kernel
def _overwritten(side, judged, own, foreign, keys):
    """
    Return which decisions first overwrote own changes of a cluster with changes that had not seen them; -1 for none.

    Args:
        side: The cluster.
        judged: All decisions.
        own: Its changes.
        foreign: What each change of the other cluster overwrites, a bit each. Shape (its changes, words).
        keys: Number of rows.
    """
    by = np.full(len(own.key), -1, np.int32)
    last, previous = np.full(keys, -1, np.int32), np.full(len(own.key), -1, np.int32)
    # Of each change and the earlier ones of its row: an epoch that the other cluster skipped was never seen.
    latest = own.seen.copy()
    # Of each row, what the other cluster's changes overwrote since an own change last wrote it. A replica that is set
    # back applies old changes after newer ones that had seen more; what these overwrote, the old ones find no more.
    taken = np.zeros((keys, foreign.shape[1]), np.uint64)
    left, done = np.zeros(foreign.shape[1], np.uint64), 0
    for decision in range(len(judged.apply)):
        number, apply = judged.source[decision], judged.apply[decision]
        if judged.applier[apply] != side:
            continue
        for place in range(done, judged.own_end[apply]):
            row = own.key[place]
            before = last[row]
            previous[place], last[row] = before, place
            for word in range(len(left)):
                taken[row, word] &= ~own.hides[place, word]
            if before >= 0:
                latest[place] = max(latest[place], latest[before])
        done = max(done, judged.own_end[apply])
        if number < 0 or judged.kind[decision] != OWN or judged.verdict[decision] != APPLIED:
            continue
        row = judged.key[decision]
        for word in range(len(left)):
            left[word] = foreign[number, word] & ~taken[row, word]
            taken[row, word] |= foreign[number, word]
        place = last[row]
        # From the last change back: what a later own change wrote over, the foreign one does not take away.
        while place >= 0 and latest[place] > number and left.any():
            hit, unseen = False, own.seen[place] > number
            for word in range(len(left)):
                hit |= unseen and (left[word] & own.written[place, word]) != 0
                left[word] &= ~own.hides[place, word]
            if hit and by[place] < 0:
                by[place] = decision
            place = previous[place]
    return by
