"""
The operations that wrote rows last: for the few operations that lost, the ones that won.

The kernels know of a row when and where it was last changed, not by what. So the last write is looked up here: among
the own changes of the applier's cluster, the operations that it applied, and the rows that it refreshed; where rows
stood before all of these, also what they stood with. All are put into one order of time, which is a number:

    number of the epoch apply    own changes before it 0, pass TRACK 1, the last pass 2, refreshes 3    number
    29 bits                      2 bits                                                                 32 bits
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum

import attrs
import numpy as np
import pyarrow as pa

from conflict.engine.columnar.folded_bucket import FoldedBucket
from conflict.engine.columnar.standing_rows import NOBODY
from conflict.engine.kernels.arrays import Bool, Decisions, Int32, Int64, OperationKind, UInt64
from conflict.engine.ledger.layout import labelled
from conflict.engine.ledger.ledger import LedgerColumn
from conflict.history.grid.columns import GridColumns
from conflict.history.grid.schemas import PLACE, RowStep
from conflict.rules.decision import Cause, Verdict
from ndb_formats.events.rows_event import Operation

NO_ORIGIN = -1


def origins_of(changes: GridColumns, row: Int32 | Int64) -> dict[str, np.ndarray]:
    """
    Return where operations are in the binlogs, by the names of `PLACE`. Shape (operations,).

    Args:
        changes: The changes of the cluster that logged them.
        row: Their rows there; a negative one represents an operation that its applier logged, which has the file
            `NO_ORIGIN`.
    """
    changes.read(PLACE)
    own = row >= 0
    found = {name: changes.of_rows(name, np.where(own, row, 0)) for name in PLACE}
    found["file"][~own] = NO_ORIGIN
    return found


_NOTHING = -1
_LOST = (Cause.ROW_IN_CONFLICT, Cause.ROW_ALREADY_EXISTS)
_REMOVES = (Operation.DELETE_ROW, RowStep.EMPTIED)
_NUMBER_BITS, _STEP_BITS = 32, 2
_APPLY_SHIFT = _NUMBER_BITS + _STEP_BITS
_MOMENT = ("apply", "key", "epoch", "group")
_WRITTEN = ("epoch", "operation", "refresh")


class _Step(IntEnum):
    """What happens in an epoch apply, in this order."""

    OWN = 0
    TRACKED = 1
    APPLIED = 2
    REFRESHED = 3


def _time(apply: np.ndarray, step: _Step, number: np.ndarray | int) -> Int64:
    """Return the place of events in the order of time; `number` is the place within their step."""
    return ((apply.astype(np.int64) << _STEP_BITS | step) << _NUMBER_BITS) + number


@attrs.frozen(eq=False)
class _Writes:
    """
    Operations that wrote rows of the applier's cluster. Shape (writes,).

    Attributes:
        key: The row.
        time: See `_time`.
        side: Number of the cluster that logged the operation.
        row: Its row among the changes of that cluster; negative for what the applier there logged. Those that standing
            rows were written by follow, see `_standing`.
        epoch: Epoch of that cluster.
        operation: `Operation`, or `RowStep.EMPTIED`.
        refresh: Whether it is a refresh.
    """

    key: Int64
    time: Int64
    side: Int64
    row: Int64
    epoch: UInt64
    operation: Int64
    refresh: Bool

    @classmethod
    def of(cls, key: np.ndarray, time: Int64, side: int, *others: np.ndarray) -> _Writes:
        """Return the writes that one cluster logged; `others` are the columns from `row` on."""
        row, epoch, operation, refresh = others
        sides = np.full(len(key), side, np.int64)
        return cls(key.astype(np.int64), time, sides, row.astype(np.int64), epoch, operation.astype(np.int64), refresh)

    @classmethod
    def joined(cls, parts: Sequence[_Writes]) -> _Writes:
        """Return several as one."""
        return cls(*(np.concatenate([getattr(part, name.name) for part in parts]) for name in attrs.fields(cls)))

    def last_before(self, key: Int64, time: Int64) -> Int64:
        """Return which of them was the last one of a row before a time; `_NOTHING` if none. Shape (times,)."""
        both, writes = np.concatenate([self.key, key]), len(self.key)
        order = np.lexsort((np.arange(len(both)) < writes, np.concatenate([self.time, time]), both))
        latest = np.maximum.accumulate(np.where(order < writes, np.arange(len(order)), _NOTHING))
        found = np.full(len(both), _NOTHING)
        found[order] = np.where(latest >= 0, order[latest], _NOTHING)
        found = found[writes:]
        return np.where((found >= 0) & (both[found] == key), found, _NOTHING)


def winner_columns(
    result: FoldedBucket,
    applier: int,
    chosen: Int64,
    with_transaction: tuple[Int64, Int64],
    files: Mapping[str, Sequence[str]],
) -> dict[str, LedgerColumn]:
    """
    Return the columns `winner_...` of outcomes; NULL where an operation did not lose against another.

    Args:
        result: A decided bucket.
        applier: Number of the applying cluster.
        chosen: Numbers of the decisions. Shape (operations,).
        with_transaction: Places in `chosen` of operations that put their transaction in conflict, and the numbers of
            the decisions of pass TRACK on them.
        files: Per cluster, its binlog files by number.
    """
    decisions, tracked = result.folded.decisions, result.folded.tracked
    lost = np.flatnonzero(np.isin(decisions.cause[chosen], _LOST))
    lost_too = np.isin(tracked.cause[with_transaction[1]], _LOST)
    in_track = with_transaction[1][lost_too]
    asked = np.zeros(len(result.bucket.key_table), np.bool_)
    asked[decisions.key[chosen[lost]]] = asked[tracked.key[in_track]] = True
    writes = _writes(result, applier, asked)
    winner = np.full(len(chosen), _NOTHING)
    winner[lost] = writes.last_before(*_met_by(result, applier, chosen[lost]))
    if len(in_track):
        key, apply = tracked.key[in_track].astype(np.int64), tracked.apply[in_track]
        time = _time(apply, _Step.TRACKED, in_track)
        before = writes.last_before(key, time)
        # What the pass itself wrote before counts too; it was undone afterwards.
        undone = _applied(result, applier, asked, tracked, _Step.TRACKED)
        in_pass = undone.last_before(key, time)
        here = in_pass >= 0
        here[here] = undone.time[in_pass[here]] >> _APPLY_SHIFT == apply[here]
        winner[with_transaction[0][lost_too]] = np.where(here, in_pass + len(writes.key), before)
        writes = _Writes.joined([writes, undone])
    return _columns(result, writes, winner, files)


def _writes(result: FoldedBucket, applier: int, asked: Bool) -> _Writes:
    """Return all writes to rows of the applier's cluster that are asked for."""
    applies, folded, rows = result.applies, result.folded, result.bucket.rows[applier]
    changes = np.flatnonzero(asked[rows.key] & (rows.operation != RowStep.CHANGED))
    mine = np.flatnonzero(folded.own_end)
    mine = mine[applies.applier[mine] == applier]
    place = np.searchsorted(np.maximum.accumulate(folded.own_end[mine]), changes, "right")
    time = _time(np.append(mine, len(applies))[place], _Step.OWN, changes)  # before the epoch apply that follows
    own = changes, rows.epoch[changes], rows.operation[changes], np.zeros(len(changes), np.bool_)
    logged = folded.logged
    entries = np.flatnonzero(logged.refresh & (logged.cluster == applier) & asked[logged.key])
    made_in = logged.apply[entries]
    refreshes = -1 - entries, applies.epoch[made_in], logged.operation[entries], logged.refresh[entries]
    return _Writes.joined(
        [
            *_standing(result, applier, asked),
            _Writes.of(rows.key[changes], time, applier, *own),
            _applied(result, applier, asked, folded.decisions, _Step.APPLIED),
            _Writes.of(logged.key[entries], _time(made_in, _Step.REFRESHED, 0), applier, *refreshes),
        ]
    )


def _standing(result: FoldedBucket, applier: int, asked: Bool) -> Iterator[_Writes]:
    """Yield, per cluster, the writes that rows which are asked for stood with, before all others."""
    standing = result.bucket.standing
    if standing is None:
        return
    for side in range(len(result.clusters)):
        writer = {name: column[:, applier] for name, column in standing.writer.items()}
        key = np.flatnonzero(asked & (writer["cluster"] == side))
        row = len(result.bucket.rows[side]) + 2 * key + applier
        yield _Writes.of(key, np.full(len(key), -1), side, row, *(writer[name][key] for name in _WRITTEN))


def _origins(result: FoldedBucket, side: int, row: Int64) -> dict[str, np.ndarray]:
    """Return where writes of a cluster are in the binlogs, as `origins_of`."""
    standing, changes = result.bucket.standing, len(result.bucket.rows[side])
    if standing is None:
        return origins_of(result.bucket.changes[side], row)
    before = row >= changes
    found = origins_of(result.bucket.changes[side], np.where(before, -1, row))
    for name in PLACE:
        found[name][before] = standing.writer[name].ravel()[row[before] - changes]
    return found


def last_written(result: FoldedBucket, applier: int) -> dict[str, np.ndarray]:
    """Return what wrote each row of a cluster last, by the names of `WRITER`; shape (keys,)."""
    keys = len(result.bucket.key_table)
    writes, at_end = _writes(result, applier, np.ones(keys, np.bool_)), np.full(keys, np.iinfo(np.int64).max)
    last = writes.last_before(np.arange(keys), at_end)
    known = np.flatnonzero(last >= 0)
    found: dict[str, np.ndarray] = {"cluster": np.full(keys, NOBODY, np.int8)}
    chosen = last[known]
    found["cluster"][known] = writes.side[chosen]
    for name in _WRITTEN:
        column: np.ndarray = getattr(writes, name)
        found[name] = np.zeros(keys, column.dtype)
        found[name][known] = column[chosen]
    for side in range(len(result.clusters)):
        mine = known[writes.side[chosen] == side]
        for name, column in _origins(result, side, writes.row[last[mine]]).items():
            found.setdefault(name, np.zeros(keys, column.dtype))[mine] = column
    return found


def _applied(result: FoldedBucket, applier: int, asked: Bool, decisions: Decisions, step: _Step) -> _Writes:
    """Return the operations that a pass applied to rows that are asked for."""
    found = np.flatnonzero((decisions.verdict == Verdict.APPLIED) & asked[decisions.key])
    found = found[result.applies.applier[decisions.apply[found]] == applier]
    apply, refresh = decisions.apply[found], decisions.kind[found] == OperationKind.REFRESH
    others = decisions.source[found], result.applies.foreign_epoch[apply], decisions.operation[found], refresh
    return _Writes.of(decisions.key[found], _time(apply, step, found), 1 - applier, *others)


def _met_by(result: FoldedBucket, applier: int, lost: Int64) -> tuple[Int64, Int64]:
    """Return the rows that operations met in the last pass, given by the numbers of their decisions, and when."""
    applies, decisions = result.applies, result.folded.decisions
    key, apply = decisions.key[lost].astype(np.int64), decisions.apply[lost]
    time = _time(apply, _Step.APPLIED, lost)
    moments = applies.moments.of_bucket(result.bucket.number)
    seen = [getattr(moments, name).tolist() for name in _MOMENT]
    for number, row, epoch, group in zip(*seen, strict=True):
        early = (apply == number) & (key == row)
        if applies.applier[number] == applier and early.any():
            early &= lost <= _locked_at(decisions, number, row)
            time[early] = _time_of_moment(result, applier, epoch, group)
    return key, time


def _locked_at(decisions: Decisions, apply: int, key: int) -> int:
    """Return the decision of an epoch apply that locked a row: the first operation on it that was applied."""
    first, stop = (int(place) for place in np.searchsorted(decisions.apply, [apply, apply + 1]))
    applied = (decisions.key[first:stop] == key) & (decisions.verdict[first:stop] == Verdict.APPLIED)
    return first + int(np.argmax(applied)) if applied.any() else stop


def _time_of_moment(result: FoldedBucket, applier: int, epoch: int, group: int) -> Int64:
    """Return the time right after an own group of the applier's cluster."""
    applies, own = result.applies, result.bucket.rows[applier]
    mine = np.unique(result.folded.decisions.apply)
    mine = mine[applies.applier[mine] == applier]
    follows = applies.group[mine].astype(np.int64) + ~applies.traced[mine]
    later = (applies.epoch[mine] > epoch) | ((applies.epoch[mine] == epoch) & (follows > group))
    done = (own.epoch < epoch) | ((own.epoch == epoch) & (own.group <= group))
    return _time(mine[later][:1], _Step.OWN, int(done.sum()))


def _columns(
    result: FoldedBucket, writes: _Writes, winner: Int64, files: Mapping[str, Sequence[str]]
) -> dict[str, LedgerColumn]:
    """Return the columns of `outcome_table`; `winner` is which of the writes won, `_NOTHING` for none."""
    found = np.flatnonzero(winner >= 0)
    found = found[~np.isin(writes.operation[winner[found]], _REMOVES)]  # the row was missing, and something else wrong
    won, names = winner[found], [each.name for each in result.clusters]
    places: dict[str, np.ndarray] = {name: np.full(len(winner), NO_ORIGIN, np.int64) for name in PLACE}
    files_before = 0
    for side, name in enumerate(names):
        mine = found[writes.side[won] == side]
        where = _origins(result, side, writes.row[winner[mine]])
        logged = where["file"] == NO_ORIGIN
        for part in PLACE:
            places[part][mine] = np.where(logged, NO_ORIGIN, where[part].astype(np.int64))
        places["file"][mine] += np.where(logged, 0, files_before)
        files_before += len(files[name])

    def column(values: np.ndarray) -> np.ndarray:
        spread = np.full(len(winner), _NOTHING).astype(values.dtype)
        spread[found] = values[won]
        return spread

    nothing, nowhere = np.ones(len(winner), np.bool_), places["file"] == NO_ORIGIN
    nothing[found] = False
    all_files = [file for name in names for file in files[name]]
    return {
        "winner_cluster": labelled(column(writes.side), names),
        "winner_epoch": pa.array(column(writes.epoch), mask=nothing),
        "winner_operation": column(writes.operation - 1) + 1,
        "winner_refresh": pa.array(column(writes.refresh), mask=nothing),
        "winner_file": labelled(places["file"], all_files),
        "winner_position": pa.array(places["position"].astype(np.uint64), mask=nowhere),
        "winner_payload_position": pa.array(places["payload_position"].astype(np.uint32), mask=nowhere),
        "winner_row": pa.array(places["row"].astype(np.int32), mask=nowhere),
    }
