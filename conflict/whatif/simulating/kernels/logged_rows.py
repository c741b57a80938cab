"""
What a cluster of a simulation logs, row by row: its users' changes, and what its applier did to rows.

It follows the cluster's rows through its own log, which gives each row event the whole row before and after it. What
one transaction did to a row is one event.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from conflict.engine.kernels.arrays import YES, ZERO, Bool, Int8, Int16, Int64, UInt64
from conflict.engine.kernels.records import DecisionBuffers, Records
from conflict.rules.decision import Verdict
from conflict.whatif.simulating.kernels.world import RESOLVE_BIT, MoreOfChanges, MoreOfEntries
from ndb_formats.columnar.kernel import inlined, kernel
from ndb_formats.events.rows_event import ConflictFlag, Operation

WRITE, UPDATE, DELETE = (int(operation) for operation in Operation)
APPLIED = int(Verdict.APPLIED)
REFLECTED, REFRESH = int(ConflictFlag.REFLECTED), int(ConflictFlag.REFRESH)
APPLIED_BIT = np.uint64(1 << 47)  # of a transaction id: a transaction of the applier


class RowKind(IntEnum):
    """What a row event is; 1 to 3 are those of `Operation`."""

    NOTHING = 0  # the transaction left no row where there was none, which is not logged
    WRITE = 1
    UPDATE = 2
    DELETE = 3
    REFRESH_DELETE = 4  # of a row that is missing
    STATUS = 5  # a row of `ndb_apply_status` of another cluster


NOTHING, REFRESH_DELETE, STATUS = int(RowKind.NOTHING), int(RowKind.REFRESH_DELETE), int(RowKind.STATUS)


class RowOrigin(NamedTuple):
    """
    What a cluster did, as the simulation has it.

    Attributes:
        side: Its number.
        sources: The cluster that each cluster replicates from; -1 for none.
        server_ids: Of each cluster.
        relays: Whether clusters relay what they apply.
        epochs: What it logged, in order. `EPOCH`.
        changes: The changes of all clusters. `CHANGE`.
        values: Their resolve columns. `BOTH`.
        made: More of them.
        begin: First change of each cluster.
        applies: All epoch applies. `EPOCH_APPLY`.
        mine: Numbers of those of its applier that its log shows, in order.
        first_apply: First of `mine` in each of `epochs`; one more at the end.
        taken: The place of the foreign epoch of each of `mine` among the epochs of the source.
        learnt: `World.learnt` of the source. Shape (its epochs, clusters).
        decisions: The decisions of both appliers.
        first_decision: First decision of each epoch apply; one more at the end.
        log: What appliers logged for each other. `ENTRY`.
        entries: More of it.
        first_entry: First entry of each epoch apply; one more at the end.
        key_table: Table of each key.
        first_key: First key of each table; one more at the end.
        columns: Number of data columns of each table.
    """

    side: int
    sources: Int64
    server_ids: Int64
    relays: bool
    epochs: Records
    changes: Records
    values: Records
    made: MoreOfChanges
    begin: Int64
    applies: Records
    mine: Int64
    first_apply: Int64
    taken: Int64
    learnt: UInt64
    decisions: DecisionBuffers
    first_decision: Int64
    log: Records
    entries: MoreOfEntries
    first_entry: Int64
    key_table: Int16
    first_key: Int64
    columns: Int64


class Held(NamedTuple):
    """
    The rows of a cluster as its log goes on.

    Attributes:
        exists: Shape (keys,).
        columns: Data columns, and the resolve column last. Shape (keys, columns + 1).
        apply: The last epoch apply that changed the row, by number from 1. Shape (keys,).
        place: Its row event. Shape (keys,).
    """

    exists: Bool
    columns: UInt64
    apply: Int64
    place: Int64


class SimulatedRows(NamedTuple):
    """
    Row events, in the order of the log. Shape (rows,) unless said.

    Attributes:
        kind: `RowKind`.
        table: Number of the table; -1 for `ndb_apply_status`.
        server: Number of the cluster under whose id it is logged.
        flags: `ConflictFlag`.
        transaction: Transaction id.
        written: Columns that were written, as a set of bits; see `RESOLVE_BIT`.
        before: The row before, by ordinal of the column; 0 in a data column is NULL. Shape (rows, ordinals).
        after: The row after.
    """

    kind: Int8
    table: Int16
    server: Int8
    flags: Int8
    transaction: UInt64
    written: UInt64
    before: UInt64
    after: UInt64


@kernel
def log_epochs(first, last, origin, held, out, starts):
    """
    Find the row events of some epochs.

    Args:
        first: The first epoch, by number among `origin.epochs`.
        last: One past the last.
        origin: `RowOrigin`.
        held: `Held`; moves on.
        out: `SimulatedRows` with room for them; filled in.
        starts: First row event of each epoch; one more at the end. Filled in. Shape (last - first + 1,), int64.
    """
    row = ZERO
    for number in range(first, last):
        starts[number - first] = row
        place, end = origin.epochs[number]["first"], origin.epochs[number]["last"]
        apply, stop = origin.first_apply[number], origin.first_apply[number + 1]
        while place < end or apply < stop:
            applies = place >= end
            if not applies and apply < stop:
                applies = origin.applies[origin.mine[apply]]["group"] < origin.changes[place]["group"]
            if applies:
                row = _log_apply(apply, row, origin, held, out)
                apply += 1
            elif origin.changes[place]["relayed"]:
                place += 1  # it comes with the epoch apply
            else:
                _log_change(place, row, origin, held, out)
                row, place = row + 1, place + 1
    starts[last - first] = row


@inlined
def _show(row, shown, key, origin, held, exists):
    """Put a row of a cluster into an image; of one that is missing, the key alone."""
    table = origin.key_table[key]
    count = origin.columns[table]
    shown[row, 0] = key - origin.first_key[table]
    for column in range(count):
        shown[row, column + 1] = held.columns[key, column] if exists else np.uint64(0)
    if count + 1 < shown.shape[1]:
        shown[row, count + 1] = held.columns[key, held.columns.shape[1] - 1] if exists else np.uint64(0)


@kernel
def _change_row(key, operation, carried, values, given, value, origin, held):
    """Do a row operation."""
    count, resolve = origin.columns[origin.key_table[key]], held.columns.shape[1] - 1
    if not held.exists[key] or operation == DELETE:
        held.columns[key] = 0
    held.exists[key] = operation != DELETE
    if operation == DELETE:
        return
    for column in range(count):
        if carried & (np.uint64(1) << np.uint64(column)):
            held.columns[key, column] = values[column]
    if given:
        held.columns[key, resolve] = value


@kernel
def _log_change(place, row, origin, held, out):
    """Log a change of a user."""
    change = origin.changes[place]
    key, operation, carried = change["key"], change["operation"], origin.made.carried[place]
    existed = held.exists[key]
    _show(row, out.before, key, origin, held, existed)
    _change_row(key, operation, carried, origin.made.columns[place], YES, origin.values[place]["after"], origin, held)
    _show(row, out.after, key, origin, held, held.exists[key])
    out.kind[row] = UPDATE if existed and operation == WRITE else operation
    out.table[row], out.server[row], out.flags[row] = origin.key_table[key], origin.side, 0
    out.transaction[row] = np.uint64(origin.side) << np.uint64(48) | np.uint64(origin.made.transaction[place] + 1)
    out.written[row] = origin.made.written[place]


@kernel
def _log_status(apply, row, origin, out):
    """Log the rows of `ndb_apply_status` of an epoch apply: of its source, and of those before that it had news of."""
    there, epoch = origin.sources[origin.side], origin.applies[origin.mine[apply]]["foreign_epoch"]
    for _ in range(len(origin.sources) - 1):
        if epoch:
            out.kind[row], out.table[row], out.written[row] = STATUS, -1, 0
            out.server[row], out.flags[row] = origin.side, 0
            out.after[row, 0], out.after[row, 1] = origin.server_ids[there], epoch
            row += 1
        there = origin.sources[there]
        if there < 0 or there == origin.side:
            break
        epoch = origin.learnt[origin.taken[apply], there]
    return row


@kernel
def _log_apply(apply, row, origin, held, out):
    """Log an epoch apply: its rows of `ndb_apply_status`, and one event per row that it changed or refreshed."""
    begun, number, decisions = row, origin.mine[apply], origin.decisions
    there = origin.sources[origin.side]
    transaction = np.uint64(origin.side) << np.uint64(48) | APPLIED_BIT | np.uint64(number + 1)
    row = first = _log_status(apply, row, origin, out)
    for place in range(origin.first_decision[number], origin.first_decision[number + 1]):
        if decisions.verdict[place] != APPLIED:
            continue
        key, source = decisions.key[place], decisions.source[place]
        if held.apply[key] != number + 1:
            row = _begin_event(key, number, row, origin, held, out)
        author = there
        if source >= 0:
            change = source + origin.begin[there]
            carried, values = origin.made.carried[change], origin.made.columns[change]
            written = carried if origin.relays else origin.made.written[change]
            if origin.changes[change]["relayed"]:
                author = np.int64(origin.changes[change]["relayed"]) - 1
            given, value = origin.changes[change]["after_given"], origin.values[change]["after"]
        else:
            entry = -1 - source
            carried, values = origin.entries.carried[entry], origin.entries.columns[entry]
            given, value = origin.log[entry]["given"], origin.log[entry]["value"]
            written = carried | RESOLVE_BIT if given else carried
        _change_row(key, decisions.operation[place], carried, values, given, value, origin, held)
        out.written[held.place[key]] |= written
        out.server[held.place[key]] = author
    for entry in range(origin.first_entry[number], origin.first_entry[number + 1]):
        key, refresh = origin.log[entry]["key"], origin.log[entry]["refresh"]
        if held.apply[key] != number + 1:
            row = _begin_event(key, number, row, origin, held, out)
        out.flags[held.place[key]] = REFRESH if refresh else REFLECTED
    for event in range(begun, row):
        out.transaction[event] = transaction
        if event >= first:
            _end_event(event, origin, held, out)
    return row


@inlined
def _begin_event(key, number, row, origin, held, out):
    """Begin the event of a row in an epoch apply: it shows how the row was; `kind` says whether it existed."""
    held.apply[key], held.place[key] = number + 1, row
    _show(row, out.before, key, origin, held, held.exists[key])
    out.kind[row], out.table[row], out.flags[row], out.written[row] = held.exists[key], origin.key_table[key], 0, 0
    out.after[row, 0] = key
    return row + 1


@inlined
def _end_event(event, origin, held, out):
    """End the event of a row in an epoch apply: it shows how the row is now."""
    key, existed = np.int64(out.after[event, 0]), out.kind[event] != 0
    exists = held.exists[key]
    _show(event, out.after, key, origin, held, exists)
    if out.flags[event] == REFRESH:
        out.kind[event] = WRITE if exists else REFRESH_DELETE
        if not exists:
            _show(event, out.before, key, origin, held, False)
    elif existed:
        out.kind[event] = UPDATE if exists else DELETE
    else:
        out.kind[event] = WRITE if exists else NOTHING
    if out.flags[event]:
        out.server[event] = origin.side
