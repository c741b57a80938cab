"""
The form in which compiled code receives its input: named tuples of arrays of records.

A fold accesses rows in random order. So all facts of a row, a change or an epoch apply are in one record, which takes
one access to memory. A named tuple of many arrays is one argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from conflict.engine.kernels.apply_order import Early
from conflict.engine.kernels.arrays import (
    Bool,
    BucketRows,
    Decisions,
    EpochApplies,
    Int8,
    Int16,
    Int32,
    Int64,
    Presence,
    RowMoments,
    UInt64,
    holds_anything,
)
from ndb_formats.columnar.kernel import each_read_only, kernel
from ndb_formats.events.rows_event import Operation

Records = npt.NDArray[np.void]
UPDATE = int(Operation.UPDATE_ROW)
PRESENT, NO_COLUMNS = int(Presence.PRESENT), int(Presence.NO_COLUMNS)

# A change in the log of a cluster. `incomplete`: its after image lacks a column that a new row must be given.
# `relayed`: the cluster that made it, by number from 1, if its applier logged it for a third one; else 0.
CHANGE = np.dtype(
    [
        *[("epoch", "u8"), ("key", "i4"), ("group", "i4"), ("operation", "i1"), ("relayed", "i1")],
        *[("before_given", "?"), ("after_given", "?"), ("empty", "?"), ("incomplete", "?")],
    ],
    align=True,
)
# A number for the before image of a change, and one for its after image.
BOTH = np.dtype([("before", "u8"), ("after", "u8")])
# What an applier does with a table; see `Rules`. `next` is the rule after the next change of its definition.
RULE = np.dtype(
    [
        *[("unwritten", "u8"), ("next", "i2"), ("gci_bits", "i1")],
        *[("refreshes", "?"), ("secondary", "?"), ("reflects", "?"), ("whole_rows", "?"), ("skips", "?")],
        ("drops", "?"),
    ],
    align=True,
)
_VERSION = [("epoch", "u8"), ("value", "u8"), ("exists", "?"), ("local", "?")]
# A row of a cluster: epoch and author of its last change, its resolve column.
# See docs/concepts.md, "Author and row epoch".
ROW_STATE = np.dtype([*_VERSION, ("table", "i2")], align=True)
# Facts of a row of a cluster that are seldom read. Where the applier reflects parts of rows, `wrote` is the last pass
# that wrote the row, and `given` whether it wrote the resolve column. `logged` is the last epoch apply that logged the
# row, `kept` the last that saved it to undo a pass, `last_own` an own change. -1 is none.
NOTE = np.dtype([("wrote", "i8"), ("logged", "i4"), ("kept", "i4"), ("last_own", "i4"), ("given", "?")], align=True)
# An earlier state of a row: before a pass that is undone (`key`), or before an own change (`previous`: the one before).
EARLIER = np.dtype([*_VERSION, ("key", "i4"), ("previous", "i4")], align=True)
# The columns of `Logged`.
ENTRY = np.dtype(
    [
        *[("value", "u8"), ("apply", "i8"), ("decision", "i8"), ("key", "i4")],
        *[("cluster", "i1"), ("operation", "i1"), ("refresh", "?"), ("given", "?")],
    ],
    align=True,
)
# The operations that an epoch apply receives in this bucket: own changes of the source from `first` to before `last`,
# and entries that its applier logged, from `queue_start` to before `queue_stop` of its `ApplierLog.queue`.
# `Early.moments[early_start:early_stop]` are the rows that were judged earlier.
ARRIVAL = np.dtype(
    [
        *[("first", "i4"), ("last", "i4"), ("queue_start", "i4"), ("queue_stop", "i4")],
        *[("early_start", "i4"), ("early_stop", "i4")],
    ],
    align=True,
)
COMPARED = np.dtype([("incoming", "u8"), ("stored", "u8")])


class Schedule(NamedTuple):
    """
    All epoch applies of both appliers, the same for every bucket.

    Attributes:
        applies: In order of cause and effect. `EPOCH_APPLY`, shape (applies,).
        by_epoch: Their numbers by foreign epoch, the first applier's before the second's. Shape (applies,), int32.
        second: Index in `by_epoch` of the second applier's first.
    """

    applies: Records
    by_epoch: Int32
    second: int


class Changes(NamedTuple):
    """
    The changes of each cluster, one cluster's after the other's.

    Attributes:
        rows: `CHANGE`, shape (changes,).
        values: The resolve column in both images. `BOTH`, shape (changes,), or (1,) if all are 0.
        value_step: 1, or 0 where `values` has one record.
        begin: First change of each cluster, and the number of all. Shape (clusters + 1,).
    """

    rows: Records
    values: Records
    value_step: int
    begin: Int64


class Rules(NamedTuple):
    """
    What each applier does with each table in its role.

    The first two rows are those of the clusters in their roles at the start, others those in other roles; see
    `conflict.engine.kernels.arrays.acting`.

    Attributes:
        tables: `RULE`, shape (rows, tables). `unwritten`: the resolve column of a row to which no operation wrote
            it; `refreshes`: a rejected operation refreshes its row; `secondary`: the role is SECONDARY, and the
            function uses roles; `reflects`: applied operations are logged for the secondary; `whole_rows`: an update
            is logged with all columns; `skips`: operations that lack the value to compare are skipped; `drops`: a
            filter of the applier drops all operations.
        cells: `Cell` by operation. Shape (rows, tables, operations), int8.
    """

    tables: Records
    cells: Int8


class State(NamedTuple):
    """
    The rows of a bucket on each cluster.

    Attributes:
        rows: `ROW_STATE`, shape (keys, clusters): a row's two states are used close to each other.
        notes: `NOTE`, shape (keys, clusters).
        unexplained: Own changes that found no row (see `ClusterResult`). Shape (clusters, keys), int32.
        done: Per cluster, the first own change that was not done yet. Shape (clusters,), int64.
    """

    rows: Records
    notes: Records
    unexplained: Int32
    done: Int64

    @classmethod
    def of(cls, key_table: Int16, begin: Int64) -> State:
        """Return rows that do not exist yet; `key_table` is the table number of each key, `begin` that of `Changes`."""
        rows = np.zeros((len(key_table), len(begin) - 1), ROW_STATE)
        rows["table"] = key_table[:, None]
        notes = np.zeros(rows.shape, NOTE)
        for name in ("wrote", "logged", "kept", "last_own"):
            notes[name] = -1
        return cls(rows, notes, np.zeros(rows.shape[::-1], np.int32), begin[:-1].copy())


class ApplierLog(NamedTuple):
    """
    The operations that appliers logged, in order.

    Attributes:
        entries: `ENTRY`, shape (capacity,).
        queue: Per cluster, the numbers of the entries that it logged. Shape (clusters, capacity), int64.
        tail: Per cluster, how many there are. Shape (clusters,), int64.
    """

    entries: Records
    queue: Int64
    tail: Int64


class DecisionBuffers(NamedTuple):
    """The columns of `Decisions`, to be filled in. Shape (capacity,)."""

    apply: Int32
    source: Int32
    key: Int32
    group: Int32
    operation: Int8
    kind: Int8
    verdict: Int8
    cause: Int8
    existed: Bool
    compared: Records

    @classmethod
    def of(cls, capacity: int) -> DecisionBuffers:
        """Return empty buffers; the system provides their memory as they fill."""
        kinds: list[npt.DTypeLike] = [*[np.int32] * 4, *[np.int8] * 4, np.bool_, COMPARED]
        return cls._make(np.empty(capacity, kind) for kind in kinds)

    def first(self, count: int) -> Decisions:
        """Return the first `count` decisions."""
        return Decisions(**{name: column[:count] for name, column in self._asdict().items()})


class PassDecisions(NamedTuple):
    """
    The decisions of passes. Apart from `Work`, because compiled code counts the users of each array that it passes on.

    Attributes:
        final: Of the passes that were committed.
        tracked: Of pass TRACK.
        trial: Of pass TRACK, had it run at another time.
        candidates: What it may have decided; see `conflict.engine.kernels.fold.Folded`. Shape (capacity,), int64.
    """

    final: DecisionBuffers
    tracked: DecisionBuffers
    trial: DecisionBuffers
    candidates: Int64

    @classmethod
    def of(cls, capacity: int, *, keeping: bool) -> PassDecisions:
        """Return empty buffers; arguments as for `Work.of`."""
        final, tracked = DecisionBuffers.of(capacity), DecisionBuffers.of(capacity)
        trial = DecisionBuffers.of(capacity if keeping else 1)
        return cls(final, tracked, trial, np.empty(capacity, np.int64))


class Arrivals(NamedTuple):
    """
    What the epoch applies of a bucket apply.

    Attributes:
        records: The first is empty, and stands for the epoch applies that apply nothing. The system provides the memory
            of as many as there are. `ARRIVAL`, shape (applies + 1,).
        places: Record of each epoch apply; 0 for one that applies nothing. Shape (applies,), int32.
        used: How many records there are besides the first. Shape (1,), int64.
    """

    records: Records
    places: Int32
    used: Int64

    @classmethod
    def of(cls, applies: int) -> Arrivals:
        """Return those of epoch applies that apply nothing yet."""
        return cls(np.zeros(applies + 1, ARRIVAL), np.zeros(applies, np.int32), np.zeros(1, np.int64))


class Work(NamedTuple):
    """
    What a fold reads and writes as it goes.

    Attributes:
        state: The rows.
        arrivals: What each epoch apply applies.
        log: What appliers logged.
        marks: Rows that pass TRACK decides otherwise than the last pass. Shape (keys,), bool.
        pending: Decisions whose rows are sent again, of one apply. Shape (capacity,), int64.
        saved: Rows as they were before a pass that is undone. `EARLIER`, shape (keys,).
        earlier: Rows as they were before each own change. `EARLIER`, shape (changes,), or (1,) if not kept.
        moved: Rows that are set back for a trial. `EARLIER`, shape (keys,), or (1,) if not kept.
        early: Rows that are judged as they stood some time ago.
        not_known_before: Own change before which nothing had shown a row that is older than the log; -1 for none.
            Shape (keys, clusters), or (0, clusters) if no row is.
    """

    state: State
    arrivals: Arrivals
    log: ApplierLog
    marks: Bool
    pending: Int64
    saved: Records
    earlier: Records
    moved: Records
    early: Early
    not_known_before: Int32

    @classmethod
    def of(
        cls,
        key_table: Int16,
        changes: Changes,
        applies: EpochApplies,
        early: RowMoments,
        capacity: int,
        *,
        keeping: bool,
        not_known_before: Int32 | None = None,
    ) -> Work:
        """
        Return everything empty.

        Args:
            key_table: Table number of each key. Shape (keys,).
            changes: The own changes of both clusters.
            applies: All epoch applies.
            early: Rows of the bucket that were judged early.
            capacity: Largest number of log entries, and of decisions.
            keeping: Keep rows as they were before their cluster's own changes, to find what else pass TRACK may have
                decided.
            not_known_before: See the attribute; None if no row is older than the log.
        """
        keys = len(key_table)
        return cls(
            state=State.of(key_table, changes.begin),
            arrivals=Arrivals.of(len(applies)),
            log=ApplierLog(np.empty(capacity, ENTRY), np.empty((2, capacity), np.int64), np.zeros(2, np.int64)),
            marks=np.zeros(keys, np.bool_),
            pending=np.empty(capacity, np.int64),
            saved=np.empty(keys, EARLIER),
            earlier=np.empty(len(changes.rows) if keeping else 1, EARLIER),
            moved=np.empty(keys if keeping else 1, EARLIER),
            early=Early.of(early, applies.applier, np.zeros(len(early), ROW_STATE)),
            not_known_before=np.zeros((0, 2), np.int32) if not_known_before is None else not_known_before,
        )


def packed_schedule(applies: EpochApplies) -> Schedule:
    """Return the epoch applies in the form that the fold reads; nothing is copied."""
    return Schedule(applies.records, applies.by_epoch, applies.second)


def packed_changes(rows: Sequence[BucketRows]) -> Changes:
    """Return the own changes of both clusters in the form that the fold reads."""
    first, total = len(rows[0]), sum(len(side) for side in rows)
    records = np.empty(total, CHANGE)
    for part, side in zip((records[:first], records[first:]), rows, strict=True):
        columns = (side.key, side.operation, side.epoch, side.group, side.before_presence, side.after_presence)
        _pack_changes(part, *each_read_only(*columns, side.incomplete))
    values = _of_both([(side.before_value, side.after_value) for side in rows])
    begin = np.array([0, first, total], np.int64)
    return Changes(records, values, min(len(values) - 1, 1) if total else 0, begin)


def _of_both(sides: Sequence[tuple[UInt64, UInt64]]) -> Records:
    """Return a number for each before and after image, as `BOTH`; one record if all are 0."""
    if not any(holds_anything(column) for side in sides for column in side):
        return np.zeros(1, BOTH)
    records = np.empty(sum(len(before) for before, _ in sides), BOTH)
    for number, name in enumerate(("before", "after")):
        records[name] = np.concatenate([side[number] for side in sides])
    return records


@kernel
def _pack_changes(records, key, operation, epoch, group, before_presence, after_presence, incomplete):
    """Fill in `CHANGE` records from columns of `BucketRows`. Shape (changes,)."""
    for place in range(len(key)):
        row = records[place]
        row["key"], row["epoch"], row["group"] = key[place], epoch[place], group[place]
        row["operation"], row["before_given"] = operation[place], before_presence[place] == PRESENT
        row["after_given"] = after_presence[place] == PRESENT
        row["empty"] = operation[place] == UPDATE and after_presence[place] == NO_COLUMNS
        row["incomplete"], row["relayed"] = incomplete[place], 0
